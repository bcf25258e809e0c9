//! Audit log: a tamper-evident record of what happened in a session.
//!
//! Each event is one record on one line; a record holds the digest of its event's exact bytes and of everything before
//! it. This crate knows neither the sources of events nor the terminal on which they are shown.

mod aggregate;
mod clip;
pub mod event;
pub mod export;
mod files;
pub mod hash;
pub mod ledger;
pub mod log;
pub mod merkle;
pub mod proof;
pub mod reader;
pub mod record_format;
pub mod redact;
mod reserve;
pub mod session;
pub mod sign;
pub mod summary;
pub mod verify;
mod writer;

pub use event::AuditEvent;
pub use hash::Digest;
pub use ledger::Ledger;
pub use log::{AuditLog, WriteError};
pub use proof::{EventProof, Proof};
pub use reader::{ReadError, Reader};
pub use record_format::VerifiedRecord;
pub use session::SessionRecord;
pub use sign::{PublicKey, SigningKey};
pub use verify::{Verification, verify, verify_ledger};
