//! Names and modes of the store's files that several of its parts know.

/// Size from which on files are large objects; smaller ones are stored in packs in one piece.
pub const LARGE: u64 = 4 << 20;

/// Mode of a durable file; the next constant is that of one that is not durable yet.
pub(super) const DURABLE: u32 = 0o400;
pub(super) const NEW: u32 = 0o600;
/// Mode bit of a large object that stays as it is: shared with the user's file, or incompressible.
pub(super) const KEEP: u32 = 0o100;

/// Lock that all writers share.
pub(super) const LOCK: &str = "lock";
/// File with the store's id.
pub(super) const ID: &str = "ID";
/// Start of the names of a writer's temporary folder.
pub(super) const WRITER_TEMP: &str = "w-";
/// Start of the names of the temporary folder of a rewrite of packs.
pub(super) const REWRITE_TEMP: &str = "m-";
/// List of contents for which there was no room.
pub(super) const REFUSED: &str = "refused";
