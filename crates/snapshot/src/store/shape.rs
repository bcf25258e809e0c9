//! Names of files in `large/`.

use crate::hash::ContentHash;

pub(super) const PACKED: &str = ".zst";

/// Kind of a file in `large/`, by the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    Packed,
    Chunks,
    /// Not an object: the hashes that the address of one over 1 GiB was made from.
    Hashes,
}

impl Shape {
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Shape::Plain => "",
            Shape::Packed => PACKED,
            Shape::Chunks => ".chunks",
            Shape::Hashes => ".hashes",
        }
    }
}

/// Forms of an object. The plain one first: settling removes it only when another form exists.
pub(super) const OBJECTS: [Shape; 3] = [Shape::Plain, Shape::Packed, Shape::Chunks];

/// Name of a large object's folder.
pub(super) fn folder_name(hash: &[u8; 32]) -> String {
    format!("{:02x}", hash[0])
}

fn file_name(hash: &[u8; 32]) -> String {
    ContentHash::from_bytes(*hash).hex()
}

/// Name of a file in `large/<xx>`.
pub(super) fn name_of(hash: &[u8; 32], shape: Shape) -> String {
    file_name(hash) + shape.suffix()
}

/// Address and kind, from a file's name.
pub(super) fn parse_name(name: &str) -> Option<([u8; 32], Shape)> {
    let (digits, shape) = match name.split_at_checked(64)? {
        (digits, "") => (digits, Shape::Plain),
        (digits, ".zst") => (digits, Shape::Packed),
        (digits, ".chunks") => (digits, Shape::Chunks),
        (digits, ".hashes") => (digits, Shape::Hashes),
        _ => return None,
    };
    let hash = *digits.parse::<ContentHash>().ok()?.as_bytes();
    // Accept only the canonical spelling.
    (file_name(&hash) == digits).then_some((hash, shape))
}
