//! Processes of ours that talk to a network, so that the supervisor does not have to: what all of them share.
//!
//! A helper gets no environment, no folder and no descriptor but the ones it talks over. It confines itself
//! ([`confine`]) before anything from outside reaches it, and ends when the supervisor closes its end. Nothing it says is
//! believed beyond its form: frames are bounded, and whoever speaks out of turn is ended.

mod certificates;
mod confine;
mod process;
mod random;
mod rights;
mod wire;

pub use certificates::{Bundle, CertificatesError};
pub use confine::{ConfineError, confine, harden};
pub(crate) use process::{Incoming, Process, START, Trouble};
pub(crate) use random::{hex, random_hex};
pub(crate) use rights::{Inbox, send};
pub(crate) use wire::Frames;
