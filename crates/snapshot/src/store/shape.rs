//! The names in `large/`: what a file there is.

use crate::hash::ContentHash;

pub(super) const PACKED: &str = ".zst";

/// What a file in `large/` is, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    Packed,
    Chunks,
    /// No object: what the address of one over 1 GiB was made from.
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

/// The forms of an object. The plain one first: settling removes it only when the other is there.
pub(super) const OBJECTS: [Shape; 3] = [Shape::Plain, Shape::Packed, Shape::Chunks];

/// Where a large object is.
pub(super) fn folder_name(hash: &[u8; 32]) -> String {
    format!("{:02x}", hash[0])
}

fn file_name(hash: &[u8; 32]) -> String {
    ContentHash::from_bytes(*hash).hex()
}

/// The name of a file in `large/<xx>`.
pub(super) fn name_of(hash: &[u8; 32], shape: Shape) -> String {
    file_name(hash) + shape.suffix()
}

/// The address in a file's name, and what it is.
pub(super) fn parse_name(name: &str) -> Option<([u8; 32], Shape)> {
    let (digits, shape) = match name.split_at_checked(64)? {
        (digits, "") => (digits, Shape::Plain),
        (digits, ".zst") => (digits, Shape::Packed),
        (digits, ".chunks") => (digits, Shape::Chunks),
        (digits, ".hashes") => (digits, Shape::Hashes),
        _ => return None,
    };
    let hash = *digits.parse::<ContentHash>().ok()?.as_bytes();
    // Only as we write it.
    (file_name(&hash) == digits).then_some((hash, shape))
}
