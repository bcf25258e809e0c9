//! Protection of the supervisor from other processes of the same user.

use std::io;

use nono_sys::process;

/// Keeps other processes of the same user from tracing the supervisor while a command runs.
pub(crate) struct Hardened {
    was_dumpable: bool,
}

impl Hardened {
    pub(crate) fn new() -> io::Result<Hardened> {
        process::forbid_core_dumps()?;
        Ok(Hardened { was_dumpable: process::set_dumpable(false)? })
    }
}

impl Drop for Hardened {
    fn drop(&mut self) {
        // After the command, tracing is allowed again; if that fails, it stays forbidden.
        let _ = process::set_dumpable(self.was_dumpable);
    }
}
