//! Crashes, full and broken disks, damage, forgery, races: Laws 4, 5 and 6, and integrity.
//!
//! What can only happen to a whole process (a kill, an injected error, a trace) happens to a child: this binary runs
//! itself again with the scenario in the environment (see `child.rs`). Everything else uses the public API as a caller
//! would. Mounts need root; what cannot run says `skipped: why`, and in CI that is a failure.
#![cfg(feature = "failpoints")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it counted"
)]

#[path = "faults/changes.rs"]
mod changes;
#[path = "faults/child.rs"]
mod child;
#[path = "faults/closed.rs"]
mod closed;
#[path = "faults/errors.rs"]
mod errors;
#[path = "faults/flips.rs"]
mod flips;
#[path = "faults/forged.rs"]
mod forged;
#[path = "faults/full.rs"]
mod full;
#[path = "faults/fuse.rs"]
mod fuse;
#[path = "faults/kill.rs"]
mod kill;
#[path = "faults/lab.rs"]
mod lab;
#[path = "faults/late.rs"]
mod late;
#[path = "faults/many.rs"]
mod many;
#[path = "faults/mapped.rs"]
mod mapped;
#[path = "faults/mounts.rs"]
mod mounts;
#[path = "faults/order.rs"]
mod order;
#[path = "faults/others.rs"]
mod others;
#[path = "faults/racing.rs"]
mod racing;
#[path = "faults/reflink.rs"]
mod reflink;
#[path = "faults/shared.rs"]
mod shared;
#[path = "faults/trees.rs"]
mod trees;
