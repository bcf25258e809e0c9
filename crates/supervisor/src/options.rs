//! Options of a run: the command, and how to supervise it.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use crate::pipes::Streams;
use crate::terminal_lease::TerminalLeases;

/// Command to run, resolved.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    pub program: PathBuf,
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
}

/// Byte in [`Options::cancel`] that ends everything gently.
pub const GENTLY: u8 = b'.';

#[derive(Clone, Debug)]
pub struct Options {
    /// Keep the caller's terminal: no pty.
    pub interactive: bool,
    /// Prompts may be shown on the user's terminal, which the command never gets then. Leases can be had from the stage
    /// while [`run`](crate::run) goes on. Not together with `interactive`.
    pub asking: Option<TerminalLeases>,
    /// Scan the error output for the diagnostic.
    pub listen: bool,
    /// Send the command's standard output, where that is not a terminal, to its standard error.
    pub output_aside: bool,
    /// Standard streams of the command, given by the caller. It has no terminal then, its output is not scanned, and
    /// when it is stopped this process is not.
    pub streams: Option<Streams>,
    /// Descriptor that ends the run: after [`GENTLY`] everything is asked to end (TERM, the grace period, KILL); after
    /// any other byte, or when its other end is closed, everything is killed at once. In a process that may fork, send
    /// a byte: a copy of the other end would keep it open.
    pub cancel: Option<Arc<OwnedFd>>,
    /// Grace period of the command's remaining processes between TERM and KILL.
    pub grace_ms: u32,
}
