//! Restore and comparison, through the public interface, on real trees. Objects are kept by the kit.

#[cfg(feature = "failpoints")]
mod faults;
mod kit;
mod limits;
mod links;
mod races;
mod round;
mod rules;
mod text;
