//! The part of a session that has to do with undoing: whether it is wanted, where it is kept, and its beginning.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nono_policy::{HostContext, MergedProfile, ResolvedPolicy, is_within};
use nono_sys::process::Signals;

use super::capturing::Capturing;
use super::{RunObserver, SessionError};
use crate::rollback::ending::Ending;
use crate::rollback::settings::Settings;
use crate::rollback::tracking::{Plan, RollbackRequest, Tracking};
use crate::rollback::watching::Watching;
use crate::rollback::{RollbackError, folder};

/// Whether what the command does can be undone, and how.
#[derive(Clone, Debug, Default)]
pub struct Rollback {
    /// `None`: as the profile says.
    pub wanted: Option<bool>,
    pub request: RollbackRequest,
}

impl Rollback {
    /// With the place where the session is to live absolute, and resolved as far as it exists.
    pub(super) fn placed(mut self, host: &HostContext) -> Rollback {
        self.request.dest = self.request.dest.map(|dest| resolved(&host.absolute(&dest)));
        self
    }

    /// Whether a flag or the profile asks for it: then it is said where it cannot be had.
    pub(super) fn is_asked_for(&self, profile: &MergedProfile) -> bool {
        self.wanted.or(profile.rollback.enabled).unwrap_or(false)
    }

    /// What is to be tracked, if anything is. Whoever says how must have said that. `by_setting`: a run that the
    /// person's own settings may turn it on for.
    pub(super) fn tracked(
        &self,
        policy: &ResolvedPolicy,
        profile: &MergedProfile,
        state_dir: &Path,
        by_setting: bool,
    ) -> Result<Option<RollbackRequest>, SessionError> {
        let chosen = self.wanted.or(profile.rollback.enabled);
        let always = || Settings::load(&state_dir.join("config.toml")).map(|settings| settings.always);
        let wanted = match chosen {
            Some(wanted) => wanted,
            None => by_setting && always()?,
        };
        if !wanted {
            return match self.request.named() {
                Some(flag) => Err(SessionError::NotTracked { flag }),
                None => Ok(None),
            };
        }
        if let Some(dest) = &self.request.dest {
            check_dest(dest, policy, state_dir)?;
        }
        Ok(Some(self.request.clone()))
    }
}

/// Without links as far as it exists; what is to be made below that can have none. Else a link could lead from a place
/// that looks closed into a folder that the command writes.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut there = path;
    let mut found = loop {
        if let Ok(found) = there.canonicalize() {
            break found;
        }
        let mut components = there.components();
        let Some(last) = components.next_back() else { return path.to_owned() };
        missing.push(last);
        there = components.as_path();
    };
    let goes_back = missing.contains(&Component::ParentDir);
    for component in missing.into_iter().rev() {
        if component == Component::ParentDir {
            found.pop();
        } else {
            found.push(component);
        }
    }
    // Beside what does not exist there may be something that does.
    if goes_back { resolved(&found) } else { found }
}

/// A session stands in a folder of its own, beside a store of its own: not where the command writes, not in nono's
/// state, and not in another session, which would take the store for its own.
fn check_dest(dest: &Path, policy: &ResolvedPolicy, state_dir: &Path) -> Result<(), SessionError> {
    let store = dest.join("store");
    let writable = policy.grants.iter().any(|grant| {
        grant.access.writes() && is_within(dest, &grant.resolved) || is_within(&grant.resolved, &store)
    });
    if writable {
        return Err(SessionError::DestWritable { dest: dest.to_owned() });
    }
    let state = resolved(state_dir);
    if let Some(owner) = dest.ancestors().find(|dir| **dir == state || folder::is_session(dir)) {
        return Err(SessionError::DestTaken { dest: dest.to_owned(), owner: owner.to_owned() });
    }
    Ok(())
}

/// The place of the session, if a grant around it would let the command read its own snapshots.
pub(super) fn readable_dest(wanted: &RollbackRequest, policy: &ResolvedPolicy) -> Option<PathBuf> {
    let dest = wanted.dest.as_ref()?;
    policy.grants.iter().any(|grant| is_within(dest, &grant.resolved)).then(|| dest.clone())
}

/// Make it: only what is there can be closed.
pub(super) fn make_dest(dest: PathBuf) -> Result<PathBuf, SessionError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dest);
    made.and_then(|()| dest.canonicalize())
        .map_err(|source| SessionError::Rollback(RollbackError::Io { path: dest, source }))
}

/// Take the baseline, and watch from then on.
pub(super) fn begin(
    plan: &Plan,
    signals: &Arc<Signals>,
    observer: &Arc<dyn RunObserver>,
) -> Result<(Watching, Ending), SessionError> {
    let began = Instant::now();
    let capturing = Arc::new(Capturing::new(signals.clone(), observer.clone()));
    let tracking = match (Tracking::begin(plan, capturing.clone()), capturing.signal()) {
        (Err(_), Some(signal)) => return Err(SessionError::Interrupted { signal }),
        (Err(_), None) if observer.cancelled() => return Err(SessionError::Cancelled),
        (result, _) => result?,
    };
    observer.baseline(&tracking.told(began.elapsed()));
    Ok(tracking.watch()?)
}
