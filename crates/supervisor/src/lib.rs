//! Supervisor: runs a confined command and its services.
//!
//! [`run`] forks through `nono-sys`, hardens the parent, and runs one event loop over a handful of descriptors:
//! signals, init's notices, the terminal, the scanned output and the timers of the limits. It returns the result as a
//! value and prints nothing. [`replace`] is the same without a parent. [`Watcher`] reports when a tree changes.
//! [`program`], [`command_env`] and [`trusted`] check what a command is started with: its file, its variables, and the
//! files that decide what it may do.

pub mod approval;
mod bucket;
mod canary;
mod catch_panic;
pub mod channel;
pub mod command_env;
mod error;
mod escape_boundary;
#[cfg(test)]
mod fuzzed;
mod hardening;
mod limits;
pub mod mediate;
mod modes;
mod options;
mod pipes;
pub mod program;
mod proxy_server;
mod pump;
pub mod recorded;
pub mod report;
pub mod request;
pub mod request_service;
mod run;
mod screen;
mod services;
mod stderr_scan;
mod terminal;
pub mod terminal_lease;
mod terminal_lender;
pub mod trusted;
pub mod urls;
mod watcher;

pub use canary::{Canary, canary};
pub use catch_panic::is_contained;
pub use error::{RunError, ServiceError};
pub use limits::{LimitHit, MemoryMethod};
pub use options::{CommandSpec, GENTLY, Options};
pub use pipes::Streams;
pub use proxy_server::TakesListener;
pub use run::{RunOutcome, replace, run, take_signals};
pub use stderr_scan::{Complaint, DenialKind, complaints};
pub use watcher::Watcher;
