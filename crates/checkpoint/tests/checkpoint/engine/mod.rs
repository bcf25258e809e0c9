//! Checkpoints of real folders: taken, listed, compared, restored, undone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test stops where it fails"
)]

mod attribution;
mod choosing;
mod fidelity;
mod git;
mod large;
mod notes;
mod plain;
mod project;
mod together;
mod turns;
