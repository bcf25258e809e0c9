//! Names of files in `large/`.

use crate::hash::ContentHash;

pub(super) const PACKED: &str = ".zst";

/// Kind of a file in `large/`, by the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LargeName {
    Plain,
    Packed,
    Chunks,
    /// Not an object: the hashes that the address of one over 1 GiB was made from.
    Hashes,
}

impl LargeName {
    pub(super) fn suffix(self) -> &'static str {
        match self {
            LargeName::Plain => "",
            LargeName::Packed => PACKED,
            LargeName::Chunks => ".chunks",
            LargeName::Hashes => ".hashes",
        }
    }
}

/// Forms of an object. The plain one first: settling removes it only when another form exists.
pub(super) const OBJECTS: [LargeName; 3] = [LargeName::Plain, LargeName::Packed, LargeName::Chunks];

/// Name of a large object's folder.
pub(super) fn folder_name(hash: &[u8; 32]) -> String {
    format!("{:02x}", hash[0])
}

fn file_name(hash: &[u8; 32]) -> String {
    ContentHash::from_bytes(*hash).hex()
}

/// Name of a file in `large/<xx>`.
pub(super) fn name_of(hash: &[u8; 32], shape: LargeName) -> String {
    file_name(hash) + shape.suffix()
}

/// Address and kind, from a file's name.
pub(super) fn parse_name(name: &str) -> Option<([u8; 32], LargeName)> {
    let (digits, shape) = match name.split_at_checked(64)? {
        (digits, "") => (digits, LargeName::Plain),
        (digits, ".zst") => (digits, LargeName::Packed),
        (digits, ".chunks") => (digits, LargeName::Chunks),
        (digits, ".hashes") => (digits, LargeName::Hashes),
        _ => return None,
    };
    let hash = *digits.parse::<ContentHash>().ok()?.as_bytes();
    // Accept only the canonical spelling.
    (file_name(&hash) == digits).then_some((hash, shape))
}
