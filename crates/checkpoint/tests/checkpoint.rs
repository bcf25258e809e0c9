//! Checkpoints from outside. `faults` is a program of its own: failures are injected for a whole process.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that cannot run says so")]

#[allow(dead_code, reason = "shared with the tests of faults")]
mod common;
mod engine;
mod keeping;
