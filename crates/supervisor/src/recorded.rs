//! Record of what a command did, as seen from outside: for proposals, never for decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    Read,
    Write,
    /// Started as a program.
    Execute,
    /// Names in this directory were made, removed or renamed.
    Names,
    /// Did not exist before.
    Made,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathObject {
    File,
    Directory,
    /// Device, pipe or socket.
    Special,
}

/// One path, without links, as the command saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    pub stands: PathObject,
    /// Uses that were tried.
    pub uses: BTreeSet<Use>,
    /// Uses that the rules did not allow.
    pub denied: BTreeSet<Use>,
}

/// Internet address that the command wanted to connect to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reached {
    /// Address with its port, as text.
    pub address: String,
    pub port: u16,
    pub loopback: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    pub touched: BTreeMap<PathBuf, Touched>,
    /// Number of attempts by address.
    pub reached: BTreeMap<Reached, u64>,
    /// Ports the command bound.
    pub bound: BTreeSet<u16>,
    /// Number of calls beyond what is kept.
    pub unrecorded: u64,
}
