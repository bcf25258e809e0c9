//! Prerequisites of a session: its folder, and the features this machine supports.

use nono_policy::state_dir;
use nono_sandbox::{Namespaces, Refusal, Support};

use super::check;
use super::error::SessionError;
use super::folder::SessionFolder;
use super::is_confined;
use super::request::Host;

/// Session folder, machine support and host description.
#[derive(Debug)]
pub(super) struct SessionSetup {
    pub(super) folder: SessionFolder,
    pub(super) support: Support,
    /// The host with the session folder and masking support filled in, for policy resolution.
    pub(super) inside: Host,
}

/// Make the session folder, and find out what this machine supports.
pub(super) fn set_up(host: &Host) -> Result<SessionSetup, SessionError> {
    if !host.nested {
        state_dir::ensure(&host.context.state_dir)?;
    }
    let failed = |source| SessionError::Folder { base: host.session_base.clone(), source };
    let folder = SessionFolder::create(&host.session_base).map_err(failed)?;
    let support = checked_support(host, &folder)?;
    let mut inside = host.clone();
    inside.context.session_dir = Some(folder.dir.clone());
    inside.context.can_mask = matches!(support.namespaces, Namespaces::Available { .. });
    Ok(SessionSetup { folder, support, inside })
}

/// Support of this machine, confirmed by the canary. Inside another nono sandbox there is nothing to try: namespaces
/// are not available, and the outer sandbox holds regardless.
fn checked_support(host: &Host, folder: &SessionFolder) -> Result<Support, SessionError> {
    if host.nested {
        return Ok(Support { namespaces: Namespaces::Nested, ..nono_sandbox::support() });
    }
    let (state, binary) = (&host.context.state_dir, host.context.binary.as_deref());
    if let Some(mut support) = check::known_support(state, binary) {
        // An existing filter may have its own listener, which the record of another start does not tell.
        if is_confined() {
            support.notify = nono_sandbox::try_notify();
        }
        return Ok(support);
    }
    let support = nono_sandbox::support();
    if let Err(reason) = &support.landlock {
        return Err(Refusal::NoLandlock { reason: reason.clone() }.into());
    }
    check::verdict(check::try_canary(&support, folder)?)?;
    // If it cannot be written, the next run repeats the check.
    let _ = check::remember(state, binary, &support);
    Ok(support)
}
