//! Tests of the snapshot engine's laws, clause by clause, through the public interface only.
//!
//! Oracles are `find`, `getfattr`, `getfacl`, `sha256sum` and `git`. Tests that need an ordinary user run as one. A
//! test that cannot run here says `skipped: why`, and fails where `CI=true`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod common;

#[path = "laws/conflicts.rs"]
mod conflicts;
#[path = "laws/coverage.rs"]
mod coverage;
#[path = "laws/deep.rs"]
mod deep;
#[path = "laws/exclusion.rs"]
mod exclusion;
#[path = "laws/foreign.rs"]
mod foreign;
#[path = "laws/home.rs"]
mod home;
#[path = "laws/interface.rs"]
mod interface;
#[path = "laws/late.rs"]
mod late;
#[path = "laws/links.rs"]
mod links;
#[path = "laws/losses.rs"]
mod losses;
#[path = "laws/next.rs"]
mod next;
#[path = "laws/permissions.rs"]
mod permissions;
#[path = "laws/purge.rs"]
mod purge;
#[path = "laws/roots.rs"]
mod roots;
#[path = "laws/round_trip.rs"]
mod round_trip;
#[path = "laws/sparse.rs"]
mod sparse;
#[path = "laws/special.rs"]
mod special;
#[path = "laws/state.rs"]
mod state;
#[path = "laws/units.rs"]
mod units;
#[path = "laws/untouched.rs"]
mod untouched;
