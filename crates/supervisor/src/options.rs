//! What to run, and how to stand beside it.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use crate::pipes::Streams;
use crate::stage::Stage;

/// The command, resolved.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    pub program: PathBuf,
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
}

/// The word in [`Options::cancel`] that leaves time.
pub const GENTLY: u8 = b'.';

/// How to stand beside it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keep the caller's terminal: no pty.
    pub interactive: bool,
    /// The person may be asked, on their terminal, which the command never gets then. Leases can be had from the stage
    /// while [`run`](crate::run) goes on. Not together with `interactive`.
    pub asking: Option<Stage>,
    /// Listen to the error output for the diagnostic.
    pub listen: bool,
    /// What the command says on its output, where that is no terminal, goes where its errors go.
    pub output_aside: bool,
    /// The command's standard streams, given by the caller. It has no terminal then, nothing of ours stands between,
    /// and when it is stopped that is its own affair.
    pub streams: Option<Streams>,
    /// [`GENTLY`] in here asks everything to end (TERM, the grace, KILL); after any other byte, or when its other end is
    /// closed, everything is ended at once. In a process that others may fork, say it by a byte: a copy of the other end
    /// would keep it open.
    pub cancel: Option<Arc<OwnedFd>>,
    /// How long what the command leaves behind has between TERM and KILL.
    pub grace_ms: u32,
}
