//! Live canary: a confined child that tries to escape, so that "enforced" is observed and not assumed.

use std::path::Path;

use nono_sandbox::{Prepared, probe_plan};
use nono_sys::launch;
use nono_sys::wait::{self, Ended};

use crate::error::RunError;

/// Result of the canary: what the child managed to do outside its grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    pub read: bool,
    pub wrote: bool,
    /// Whether it exited as expected; a child that died in any other way proves nothing.
    pub finished: bool,
}

impl Canary {
    pub fn held(self) -> bool {
        self.finished && !self.read && !self.wrote
    }
}

/// Starts a child under `prepared` that tries to read `secret` and write `target`, both outside its grants.
pub fn canary(prepared: &Prepared, secret: &Path, target: &Path) -> Result<Canary, RunError> {
    let mut plan = probe_plan(prepared, secret, target)?;
    let failed = |error| RunError::Launch { error, program: secret.to_owned() };
    let launched = launch::spawn(&mut plan).map_err(failed)?;
    if let Err(error) = launched.go() {
        launched.finish();
        return Err(failed(error));
    }
    Ok(match launched.finish().map(wait::decode) {
        Some(Ended::Code(code)) => {
            Canary { read: code & 1 != 0, wrote: code & 2 != 0, finished: code & !3 == 0 }
        }
        _ => Canary { read: false, wrote: false, finished: false },
    })
}
