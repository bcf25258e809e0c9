//! The audit log of real runs: what is in it, that nobody changes it unseen, and that it never says more than it should.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod before;
mod disk;
mod exports;
mod flood;
mod kit;
mod names;
mod proofs;
mod redaction;
mod restores;
mod runs;
mod tamper;
mod urls;

use crate::terminal::look;
use crate::terminal::screen;
use crate::world;
use crate::world::said;
