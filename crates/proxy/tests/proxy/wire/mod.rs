//! The proxy on real sockets: everything is on 127.0.0.1, and names lead where a test says.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where it fails")]

mod forward;
mod handle;
mod judged;
mod limits;
mod reach;
mod tunnel;
mod upstream;
mod world;
