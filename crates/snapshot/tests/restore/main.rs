//! Restore and comparison, through the public interface, on real trees. Objects are kept by the kit.
//!
//! A program of its own: the disk fails for its whole process, whose other tests wait meanwhile (`World::alone`).
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::type_complexity,
    clippy::needless_for_each,
    reason = "tests"
)]

#[cfg(feature = "failpoints")]
mod faults;
mod kit;
mod limits;
mod links;
mod races;
mod random;
mod round;
mod rules;
mod text;
mod writers;
