//! Interface to the filtering proxy: the supervisor hands it the listening socket of the command's network.

use std::os::fd::OwnedFd;

use crate::error::ServiceError;

/// Server of the command's filtering proxy, where the command has a network namespace of its own.
pub trait TakesListener: Send + Sync {
    /// Begins to serve. The listener is in the command's network, on the port of [`nono_sandbox::ProxyPlace::Own`]. The command is
    /// started after this, and not at all if it fails: the error gives the reason.
    fn take(&self, listener: OwnedFd) -> Result<(), ServiceError>;
}

impl<F: Fn(OwnedFd) -> Result<(), ServiceError> + Send + Sync> TakesListener for F {
    fn take(&self, listener: OwnedFd) -> Result<(), ServiceError> {
        self(listener)
    }
}

impl std::fmt::Debug for dyn TakesListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TakesListener")
    }
}
