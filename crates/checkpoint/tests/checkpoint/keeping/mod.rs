//! Keeping within bounds: number, size, age; what is left when a folder or an old format goes; checking and purging.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test stops where it fails"
)]

mod bounds;
mod damage;
mod purging;
mod room;
