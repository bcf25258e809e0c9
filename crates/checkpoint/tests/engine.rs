//! Checkpoints of real folders: taken, listed, compared, restored, undone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test stops where it fails"
)]

#[path = "engine/attribution.rs"]
mod attribution;
#[path = "engine/choosing.rs"]
mod choosing;
#[allow(dead_code, reason = "each suite uses its part")]
mod common;
#[path = "engine/fidelity.rs"]
mod fidelity;
#[path = "engine/git.rs"]
mod git;
#[path = "engine/large.rs"]
mod large;
#[path = "engine/notes.rs"]
mod notes;
#[path = "engine/plain.rs"]
mod plain;
#[path = "engine/project.rs"]
mod project;
#[path = "engine/together.rs"]
mod together;
#[path = "engine/turns.rs"]
mod turns;
