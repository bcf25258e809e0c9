//! The review on a real terminal: keys in, screen and files looked at from outside.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod after;
mod hostile;
mod leaving;
mod plain;
mod restoring;
mod stage;

use crate::world;
