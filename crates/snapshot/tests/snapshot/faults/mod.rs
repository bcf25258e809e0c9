//! Crashes, full and broken disks, damage, forgery, races: Laws 4, 5 and 6, and integrity.
//!
//! What can only happen to a whole process (a kill, an injected error, a trace) happens to a child: this binary runs
//! itself again with the scenario in the environment (see `child.rs`). Everything else uses the public API as a caller
//! would. Mounts need root; what cannot run says `skipped: why`, and in CI that is a failure.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it counted"
)]

mod changes;
mod child;
mod closed;
mod errors;
mod flips;
mod forged;
mod full;
mod fuse;
mod kill;
pub(crate) mod lab;
mod late;
mod many;
mod mapped;
mod mounts;
mod order;
mod others;
mod racing;
mod reflink;
mod shared;
pub(crate) mod trees;
