//! Escape suite: hostile children against the real `nono` binary.
//!
//! Every attack first runs without nono, as the same ordinary user in the same small world, and must succeed
//! there; only then does "blocked" under nono mean anything. `NONO_ESCAPE=controls` runs that half alone.

#![allow(clippy::expect_used, reason = "a harness that cannot do its work has failed the test")]

mod agents;
mod aliases;
mod asking;
mod environment;
mod files;
mod filtered;
mod harness;
mod home;
mod kernel;
mod limits;
mod links;
mod listened;
mod mediated;
mod metadata;
mod namespaces;
mod network;
mod open;
mod process;
mod root;
mod sanity;
mod sockets;
mod state;
mod survivors;
mod terminal;
