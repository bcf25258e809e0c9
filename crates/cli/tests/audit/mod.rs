//! The audit log of real runs: its content, that no change goes unnoticed, and that it never holds more than it should.

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

use crate::world;
use crate::world::said;
