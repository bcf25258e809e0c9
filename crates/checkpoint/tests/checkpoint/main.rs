//! Checkpoints from outside.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that cannot run says so")]

mod common;
mod engine;
#[cfg(feature = "failpoints")]
mod faults;
mod keeping;
