//! Supervisor: runs a confined command and its services.
//!
//! [`run`] forks through `nono-sys`, hardens the parent, and runs one event loop over a handful of descriptors:
//! signals, init's notices, the terminal, the scanned output and the timers of the limits. It returns the result as a
//! value and prints nothing. [`replace`] is the same without a parent. [`Watcher`] reports when a tree changes.

pub mod approval;
mod beside;
mod canary;
pub mod channel;
mod contain;
mod edge;
mod error;
#[cfg(test)]
mod fuzzed;
mod hardened;
mod lending;
mod limits;
pub mod mediate;
mod mirror;
mod modes;
mod options;
mod pipes;
mod proxy_server;
mod pump;
pub mod recorded;
pub mod report;
mod run;
pub mod stage;
mod tap;
mod terminal;
pub mod urls;
mod watcher;

pub use canary::{Canary, canary};
pub use contain::is_contained;
pub use error::RunError;
pub use limits::{LimitHit, MemoryMethod};
pub use options::{CommandSpec, GENTLY, Options};
pub use pipes::Streams;
pub use proxy_server::TakesListener;
pub use run::{Outcome, replace, run, take_signals};
pub use tap::{About, Complaint, complaints};
pub use watcher::Watcher;
