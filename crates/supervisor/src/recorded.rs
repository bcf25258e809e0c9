//! What a command did, as it was seen from outside: to propose from, never to decide by.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What was done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    Read,
    Write,
    /// Started as a program.
    Execute,
    /// A folder: names in it were made, removed or renamed.
    Names,
    /// It was not there before.
    Made,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    File,
    Directory,
    /// Devices, pipes, sockets.
    Special,
}

/// One path, without links, as the command saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    pub stands: Stands,
    /// What was tried.
    pub uses: BTreeSet<Use>,
    /// What of it the rules did not allow.
    pub denied: BTreeSet<Use>,
}

/// An internet address that it wanted to connect to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reached {
    /// With its port, as it is written.
    pub address: String,
    pub port: u16,
    pub loopback: bool,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    pub touched: BTreeMap<PathBuf, Touched>,
    /// How often.
    pub reached: BTreeMap<Reached, u64>,
    /// Ports of its own.
    pub bound: BTreeSet<u16>,
    /// Calls beyond what is kept.
    pub unrecorded: u64,
}
