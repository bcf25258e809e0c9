//! Rollback settings of a session: whether the run is tracked, where its snapshots are kept, and the baseline.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nono_catalogue::rollback::ending::Ending;
use nono_catalogue::rollback::folder;
use nono_catalogue::rollback::periodic_snapshots::Watching;
use nono_policy::{HostContext, MergedProfile, ResolvedPolicy, is_within};
use nono_sys::process::Signals;

use super::capture_observer::Capturing;
use super::error::SessionError;
use super::observer::RunObserver;
use crate::rollback::RollbackError;
use crate::rollback::settings::RollbackSettings;
use crate::rollback::tracking::{RollbackRequest, Tracking, TrackingPlan};

#[derive(Clone, Debug, Default)]
pub struct Rollback {
    /// `None`: the profile decides.
    pub wanted: Option<bool>,
    pub request: RollbackRequest,
}

impl Rollback {
    /// Make the destination absolute, and resolve its links as far as it exists.
    pub(super) fn placed(mut self, host: &HostContext) -> Rollback {
        self.request.dest = self.request.dest.map(|dest| resolved(&host.absolute(&dest)));
        self
    }

    /// Whether a flag or the profile asks for snapshots: only then is it reported that none can be taken.
    pub(super) fn is_asked_for(&self, profile: &MergedProfile) -> bool {
        self.wanted.or(profile.rollback.enabled).unwrap_or(false)
    }

    /// The rollback request, if the run is tracked. Rollback options are an error unless rollback is on. `by_setting`:
    /// whether the user's configuration may turn it on for this run.
    pub(super) fn tracked(
        &self,
        policy: &ResolvedPolicy,
        profile: &MergedProfile,
        state_dir: &Path,
        by_setting: bool,
    ) -> Result<Option<RollbackRequest>, SessionError> {
        let chosen = self.wanted.or(profile.rollback.enabled);
        let always =
            || RollbackSettings::load(&state_dir.join("config.toml")).map(|settings| settings.always);
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

/// The path with links resolved as far as it exists; the missing rest can have none. Otherwise a link could lead from a
/// place that looks closed into a folder that the command writes.
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
    // A `..` after a missing component may lead to an existing path.
    if goes_back { resolved(&found) } else { found }
}

/// Check the rollback destination. A session needs a folder and a store of its own: not where the command writes, not
/// in nono's state, and not in another session, which would take the store for its own.
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

/// The rollback destination, if a grant around it would let the command read its own snapshots.
pub(super) fn readable_dest(wanted: &RollbackRequest, policy: &ResolvedPolicy) -> Option<PathBuf> {
    let dest = wanted.dest.as_ref()?;
    policy.grants.iter().any(|grant| is_within(dest, &grant.resolved)).then(|| dest.clone())
}

/// Create the destination: only an existing path can be denied.
pub(super) fn make_dest(dest: PathBuf) -> Result<PathBuf, SessionError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dest);
    made.and_then(|()| dest.canonicalize())
        .map_err(|source| SessionError::Rollback(RollbackError::Io { path: dest, source }))
}

/// Take the baseline, and start watching.
pub(super) fn begin(
    plan: &TrackingPlan,
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
