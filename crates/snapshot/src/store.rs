//! The content store: every object once, by its address, for all sessions of a machine.
//!
//! Small objects are appended to packs (`packs/`). A large file is an object in `large/`: a clone that shares its data
//! if the filesystem supports that, otherwise a list of chunks, which are in packs. All become visible by a rename,
//! when they are complete. Writing neither compresses nor waits for the disk: [`Store::settle`] does both later, beside
//! readers and writers of any process. Nothing read is trusted: every object is checked against its address before it
//! is returned.
//!
//! File modes are flags: without its owner's `w` a file is known to be durable; a large object with `x` stays as it is.

mod accounts;
mod chunked;
mod chunks;
mod clones;
mod error;
mod files;
mod format;
mod gc;
mod handle;
mod hashing;
mod id;
mod index;
mod key;
mod large;
mod large_names;
mod large_source;
mod move_in;
mod names;
mod pack;
mod pack_record;
mod quota;
mod refused;
mod reserve;
mod rewrite;
mod settle;
mod spans;
mod staged;
mod temp;
#[cfg(test)]
mod tests;
mod usage;
mod verify;
mod view;
mod writer;

pub use accounts::Balance;
pub use error::{Damage, StoreError, StoreProblem};
pub(crate) use files::pread;
pub use gc::Collected;
pub use handle::{Store, UpkeepPause};
pub use key::{ObjectKey, ObjectKind};
pub(crate) use large_source::LargeSource;
pub use names::LARGE;
pub use quota::{Owner, Quota};
pub(crate) use reserve::RESERVE;
pub use settle::{Settled, Synced};
pub use staged::LargeStaged;
pub use usage::{Shares, Usage};
pub use verify::StoreVerified;
pub use writer::{Appender, Published, Put, StoreWriter, WriteOptions};
