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
#[allow(dead_code, reason = "shared with the other tests on a terminal")]
#[path = "../terminal/look.rs"]
mod look;
mod plain;
mod restoring;
#[allow(dead_code, reason = "shared with the other tests on a terminal")]
#[path = "../terminal/screen.rs"]
mod screen;
mod stage;
#[allow(dead_code, reason = "shared with the other tests")]
#[path = "../world/mod.rs"]
mod world;
