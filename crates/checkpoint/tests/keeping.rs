//! Keeping within bounds: number, size, age; what is left when a folder or an old format goes; checking and purging.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test stops where it fails"
)]

#[allow(dead_code, reason = "each suite uses its part")]
mod common;

#[path = "keeping/bounds.rs"]
mod bounds;
#[path = "keeping/damage.rs"]
mod damage;
#[path = "keeping/purging.rs"]
mod purging;
#[path = "keeping/room.rs"]
mod room;
