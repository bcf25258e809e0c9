//! Both channels of a session, with real sockets and real processes at their other ends; only the decisions are the
//! test's own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod bounds;
mod control;
mod frames;
mod kit;
mod peers;
mod requests;
