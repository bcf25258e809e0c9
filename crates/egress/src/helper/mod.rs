//! Common parts of helpers: nono's own processes that talk to a network, so that the supervisor does not have to.
//!
//! A helper gets no environment, no folder and no descriptor but those it communicates over. It confines itself
//! ([`confine()`]) before any outside data reaches it, and ends when the supervisor closes its end. Its messages are not
//! trusted: frames are bounded, and an unexpected message ends it.

mod certificates;
mod confine;
mod fd_passing;
mod process;
mod wire;

pub use certificates::{Bundle, CertificatesError};
pub use confine::{ConfineError, confine, harden};
pub(crate) use fd_passing::{Inbox, send};
pub(crate) use process::{HelperProcessError, Incoming, Process, START};
pub(crate) use wire::Frames;
