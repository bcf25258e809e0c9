//! The proxy on real sockets: everything is on 127.0.0.1, and names lead where a test says.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where it fails")]

#[path = "wire/forward.rs"]
mod forward;
#[path = "wire/handle.rs"]
mod handle;
#[path = "wire/judged.rs"]
mod judged;
#[path = "wire/limits.rs"]
mod limits;
#[path = "wire/reach.rs"]
mod reach;
#[path = "wire/tunnel.rs"]
mod tunnel;
#[path = "wire/upstream.rs"]
mod upstream;
#[path = "wire/world.rs"]
mod world;
