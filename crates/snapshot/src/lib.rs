//! The snapshot engine of nono: capture, compare, restore, exactly and fast.
#![allow(dead_code, unused_imports)]

mod bytes;
mod dirs;
mod disk;
pub mod exclusion;
pub mod hash;
pub mod node;
mod pool;
pub mod store;

#[cfg(feature = "failpoints")]
pub use disk::failpoint;
