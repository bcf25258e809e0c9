//! What protects a supervisor from the others of its user.

use std::io;

use nono_sys::process;

/// While a command runs nobody of the same user may look into its supervisor.
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
        // What comes after the command may be looked into again; failing that, it stays on the safe side.
        let _ = process::set_dumpable(self.was_dumpable);
    }
}
