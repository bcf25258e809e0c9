//! Confinement of a helper, before it does anything.
//!
//! Afterwards it can reach the network, the resolver's files and the system's libraries (which the C library loads to
//! look up names), and it can write nothing.

use std::io;
use std::path::Path;

use nono_policy::{AccessMode, CapabilityError, CapabilitySet, NetworkPolicy};
use nono_sys::process;
use thiserror::Error;

use nono_sandbox::{ApplyError, Sandbox};

const RESOLVER_FILES: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ld.so.cache",
];
const LIBRARIES: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"];

/// Reason why a helper cannot be confined; it must not run then.
#[derive(Debug, Error)]
pub enum ConfineError {
    #[error("it cannot harden itself: {0}")]
    Harden(io::Error),
    #[error(transparent)]
    Capability(#[from] CapabilityError),
    #[error("it cannot confine itself: {0}")]
    Apply(#[from] ApplyError),
}

/// Harden a helper that knows secrets: no other process of the same user can inspect this process, it leaves no core
/// file, and inherited descriptors beyond the first three are closed. Call it before anything is opened.
pub fn harden() -> Result<(), ConfineError> {
    process::set_dumpable(false).map_err(ConfineError::Harden)?;
    process::forbid_core_dumps().map_err(ConfineError::Harden)?;
    process::close_from(3).map_err(ConfineError::Harden)
}

/// Restrict this process to the files needed to look up names, and to the network. Call it from a process without other
/// threads.
pub fn confine() -> Result<(), ConfineError> {
    let mut caps = CapabilitySet::new();
    for dir in LIBRARIES {
        present(caps.allow_path(dir, AccessMode::Read))?;
    }
    for file in RESOLVER_FILES {
        present(caps.allow_file(file, AccessMode::Read))?;
    }
    // The resolver's file is replaced when the network changes, so its folder has to be open.
    if let Ok(file) = Path::new("/etc/resolv.conf").canonicalize()
        && let Some(dir) = file.parent().filter(|dir| dir.starts_with("/run"))
    {
        present(caps.allow_path(dir, AccessMode::Read))?;
    }
    caps.set_network(NetworkPolicy::Allowed);
    Ok(Sandbox::apply(&caps)?)
}

/// Ignore missing paths: they need no grant.
fn present(added: Result<(), CapabilityError>) -> Result<(), ConfineError> {
    match added {
        Err(CapabilityError::PathNotFound { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
