//! The real binary in one program, so that it is linked once: each module is a theme, and `cargo test -p nono-cli --test cli
//! terminal::` runs one of them. All of them run side by side in one process, so none may change what belongs to the process:
//! working directory, environment, umask, handlers of signals.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod agreement;
mod approval;
mod asking;
mod audit;
mod checkpoints;
mod golden;
mod hooks;
mod inside;
mod links;
mod mcp;
mod network;
mod power;
mod project_profile;
mod review;
mod rollback;
mod terminal;
mod tools;
mod world;
