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
#[allow(dead_code, reason = "shared with the tests on a terminal")]
#[path = "../terminal/look.rs"]
mod look;
mod names;
mod proofs;
mod redaction;
mod restores;
mod runs;
#[allow(dead_code, reason = "shared with the other tests")]
#[path = "../world/said.rs"]
mod said;
#[allow(dead_code, reason = "shared with the tests on a terminal")]
#[path = "../terminal/screen.rs"]
mod screen;
mod tamper;
mod urls;
#[path = "../world/mod.rs"]
mod world;
