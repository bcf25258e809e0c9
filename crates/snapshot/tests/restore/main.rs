//! Restore and comparison, through the public interface, on real trees. Objects are kept by the kit.
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
