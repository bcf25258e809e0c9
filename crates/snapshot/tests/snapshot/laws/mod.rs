//! Tests of the snapshot engine's laws, clause by clause, through the public interface only.
//!
//! Oracles are `find`, `getfattr`, `getfacl`, `sha256sum` and `git`. Tests that need an ordinary user run as one. A
//! test that cannot run here says `skipped: why`, and fails where `CI=true`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod conflicts;
mod coverage;
mod deep;
mod exclusion;
mod foreign;
mod home;
mod interface;
mod late;
mod links;
mod losses;
mod next;
mod permissions;
mod purge;
mod roots;
mod round_trip;
mod sparse;
mod special;
mod state;
mod units;
mod untouched;
