//! Snapshots of a run: baseline, snapshots while it runs, final snapshot.
//!
//! `Tracking::begin` takes the baseline or leaves nothing behind. While the command runs, `watching` takes snapshots in
//! a thread of its own. `Ending::finish` takes the final one when all processes have ended and closes the record; if
//! that fails, the baseline stays valid, and the report says so. All of them use the exclusion rules of the baseline: a
//! command that writes an ignore file hides nothing.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nono_policy::profile::RollbackSection;
use nono_snapshot::{
    CaptureOptions, Coverage, Example, Gaps, Limits, Lost, ManagerOptions, Observer, SessionMetadata,
    SnapshotManager,
};

use nono_sys::process;

use super::catalogue::Catalogue;
use super::changes::Changed;
use super::ending::Ending;
use super::error::RollbackError;
use super::live_lock::LiveLock;
use super::periodic_snapshots::Watching;
use super::quota::{self, StoreQuota};
use super::recorder::Recorder;
use super::running::SnapshotWork;
use super::settings::RollbackSettings;
use super::{folder, interrupted, scope};
use nono_policy::state_dir;

/// Options for tracking a run.
#[derive(Clone, Debug, Default)]
pub struct RollbackRequest {
    pub exclude: Vec<String>,
    pub include: Vec<String>,
    /// Include ignored files and build output.
    pub all: bool,
    /// Directory of the session, instead of nono's state folder.
    pub dest: Option<PathBuf>,
    /// Longest time between two snapshots while something changes.
    pub interval: Option<Duration>,
    pub paranoid: bool,
    /// Run even if not everything fits into the store, and report what is not protected.
    pub best_effort: bool,
}

impl RollbackRequest {
    /// First flag among the options that are set.
    pub fn named(&self) -> Option<&'static str> {
        let asked = [
            ("--rollback-exclude", !self.exclude.is_empty()),
            ("--rollback-include", !self.include.is_empty()),
            ("--rollback-all", self.all),
            ("--rollback-dest", self.dest.is_some()),
            ("--snapshot-interval", self.interval.is_some()),
            ("--paranoid", self.paranoid),
        ];
        asked.into_iter().find_map(|(flag, asked)| asked.then_some(flag))
    }
}

/// Result of tracking a run.
#[derive(Debug)]
pub struct RollbackReport {
    pub id: String,
    pub dir: PathBuf,
    /// Coverage of the baseline.
    pub coverage: Coverage,
    /// Paths created since the baseline that are in no snapshot: the first few.
    pub made_uncovered: Vec<Example>,
    /// Paths left out of the baseline that are gone or changed: no restore brings them back.
    pub lost: Vec<Lost>,
    pub snapshots: u32,
    /// Changes from the baseline to the end; an error if the final snapshot could not be taken.
    pub changes: Result<Changed, RollbackError>,
    /// Problems that did not end the run.
    pub warnings: Vec<String>,
    /// Other information for the user, such as pruned sessions.
    pub notes: Vec<String>,
}

/// Everything known before the baseline.
#[derive(Debug)]
pub struct TrackingPlan {
    pub id: String,
    pub name: Option<String>,
    pub command: Vec<String>,
    pub roots: Vec<PathBuf>,
    /// State of tools that the command may write and that is not tracked.
    pub of_tools: Vec<PathBuf>,
    /// Coverage settings of the profile.
    pub profile: RollbackSection,
    pub request: RollbackRequest,
    /// Folders of nono itself.
    pub own: Vec<PathBuf>,
    pub state_dir: PathBuf,
    pub recorder: Arc<dyn Recorder>,
}

impl TrackingPlan {
    /// Also leave these out of every snapshot: they are nono's own.
    #[must_use]
    pub fn without(mut self, own: Vec<PathBuf>) -> TrackingPlan {
        self.own.extend(own);
        self
    }
}

/// A run whose baseline is taken.
#[derive(Debug)]
pub struct Tracking {
    interval: Option<Duration>,
    manager: SnapshotManager,
    notes: Vec<String>,
    ending: Ending,
}

/// Summary of the baseline, shown before the command starts.
#[derive(Debug)]
pub struct Baseline<'a> {
    pub id: &'a str,
    pub coverage: &'a Coverage,
    pub took: Duration,
    /// Sessions pruned to make room, or that could not be.
    pub warnings: &'a [String],
    /// Other information for the user.
    pub notes: &'a [String],
}

impl Tracking {
    /// Make room and take the baseline. On an error nothing of the session is left.
    pub fn begin(plan: &TrackingPlan, observer: SharedObserver) -> Result<Tracking, RollbackError> {
        let catalogue = Catalogue::new(&plan.state_dir);
        let settings = RollbackSettings::load(&plan.state_dir.join("config.toml"))?;
        let (mut warnings, mut notes) = (Vec::new(), Vec::new());
        if plan.request.dest.is_none() {
            notes.extend(quota::prune_by_rule(&catalogue, &settings, None)?);
        }
        notes.extend(scope::not_part_of_an_undo(&plan.of_tools));
        warnings.extend(catalogue.complete_restores(&plan.roots, &*plan.recorder)?);
        notes.extend(interrupted::end_all(&catalogue, &plan.roots)?);
        let (session_dir, live) = place(&catalogue, plan)?;
        let made = (session_dir.clone(), live);
        let began = Tracking::baseline(plan, catalogue.clone(), settings, made, observer, &mut warnings);
        match began {
            Ok(Tracking { interval, manager, ending, .. }) => {
                Ok(Tracking { interval, manager, notes, ending: Ending { warnings, ..ending } })
            }
            Err(error) => {
                // A folder that cannot be removed is not a session without its session.json; the next prune removes it.
                let _ = fs::remove_dir_all(&session_dir);
                let _ = fs::remove_dir_all(catalogue.sessions_dir().join(&plan.id));
                Err(error)
            }
        }
    }

    fn baseline(
        plan: &TrackingPlan,
        catalogue: Catalogue,
        settings: RollbackSettings,
        (session_dir, live): (PathBuf, LiveLock),
        observer: SharedObserver,
        warnings: &mut Vec<String>,
    ) -> Result<Tracking, RollbackError> {
        // This session is already marked as live: a restore that begins now sees it, and one that began before is
        // detected here.
        catalogue.refuse_restoring(&plan.roots, &session_dir)?;
        let elsewhere = plan.request.dest.clone().map(|dest| (dest, plan.id.clone()));
        let quota = StoreQuota::new(&catalogue, &settings, elsewhere);
        let options = ManagerOptions {
            store: Some(quota.store()),
            quota: Some(quota.quota()),
            capture: CaptureOptions { paranoid: plan.request.paranoid, ..CaptureOptions::default() },
            own: plan.own.clone(),
            ..ManagerOptions::default()
        };
        let rules = scope::exclusion(&plan.request, &plan.profile, &settings);
        if rules.use_gitignore {
            let who = if plan.profile.use_gitignore.is_some() { "the profile" } else { "config.toml" };
            warnings
                .push(format!("files ignored by git are not covered and cannot be undone (set by {who})"));
        }
        let mut manager =
            SnapshotManager::with_options(&session_dir, &plan.roots, rules, Limits::NONE, options)?;
        manager.observe(observer);
        let last = if plan.request.best_effort { Gaps::Allow } else { Gaps::Refuse };
        let baseline = quota.with_room(&mut manager, last, warnings, SnapshotManager::create_baseline)?;
        warnings.extend(manager.take_completed().iter().map(ToString::to_string));
        manager.observe(());
        warnings.extend(nono_history::quota::gaps(&baseline.coverage));
        let mut metadata = SessionMetadata::new(&plan.id, plan.command.clone(), manager.roots().to_vec());
        metadata.sequence = catalogue.next_sequence()?;
        metadata.name.clone_from(&plan.name);
        metadata.snapshot_count = 1;
        metadata.merkle_roots = vec![baseline.merkle_root];
        metadata.coverage = Some(baseline.coverage.clone());
        manager.save_session_metadata(&metadata)?;
        plan.recorder.taken(&baseline);
        let ending = Ending {
            catalogue,
            session_dir,
            metadata,
            settings,
            baseline,
            live,
            quota,
            recorder: plan.recorder.clone(),
            lost: Vec::new(),
            warnings: Vec::new(),
        };
        Ok(Tracking { interval: plan.request.interval, manager, notes: Vec::new(), ending })
    }

    pub fn told(&self, took: Duration) -> Baseline<'_> {
        let Ending { metadata, baseline, warnings, .. } = &self.ending;
        let (id, coverage) = (&metadata.session_id, &baseline.coverage);
        Baseline { id, coverage, took, warnings, notes: &self.notes }
    }

    /// Start taking snapshots, whenever something changed and it is quiet again.
    pub fn watch(self) -> Result<(Watching, Ending), RollbackError> {
        let Tracking { interval, manager, ending, .. } = self;
        let work = SnapshotWork {
            manager,
            metadata: ending.metadata.clone(),
            catalogue: ending.catalogue.clone(),
            session_dir: ending.session_dir.clone(),
            recorder: ending.recorder.clone(),
            taken: Vec::new(),
            problems: Vec::new(),
        };
        let watching = Watching::start(work, ending.baseline.clone(), interval)
            .map_err(RollbackError::io(&ending.session_dir))?;
        Ok((watching, ending))
    }
}

/// Create the session's folder: private, and marked as live.
fn place(catalogue: &Catalogue, plan: &TrackingPlan) -> Result<(PathBuf, LiveLock), RollbackError> {
    let (own, live) = catalogue.begin_session(&plan.id, &plan.roots)?;
    let Some(dest) = &plan.request.dest else { return Ok((own, live)) };
    let placed = place_at(dest, &own, plan);
    match placed {
        Ok(_) => live.end(&own).map_err(RollbackError::io(&own))?,
        // A folder that cannot be removed goes with the next prune.
        Err(_) => drop(fs::remove_dir_all(&own)),
    }
    placed
}

/// Create the session's folder in `dest`, and the note in its place in the state folder (`own`) that refers to it.
fn place_at(dest: &Path, own: &Path, plan: &TrackingPlan) -> Result<(PathBuf, LiveLock), RollbackError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dest);
    made.map_err(RollbackError::io(dest))?;
    // The path that was checked must be the one that is used.
    if dest.canonicalize().map_err(RollbackError::io(dest))? != *dest {
        let what = "another process changed this path; run the command again";
        return Err(RollbackError::io(dest)(io::Error::other(what)));
    }
    // A user who can replace the store or the session decides what a restore brings back.
    let meta = fs::metadata(dest).map_err(RollbackError::io(dest))?;
    let others = meta.mode() & 0o002 != 0 && meta.mode() & 0o1000 == 0;
    if others || ![0, process::uid()].contains(&meta.uid()) {
        let source = io::Error::other("other users can replace files in it; choose another folder");
        return Err(RollbackError::Io { path: dest.to_owned(), source });
    }
    let store = dest.join("store");
    state_dir::ensure(&store).map_err(|error| RollbackError::io(&store)(io::Error::other(error)))?;
    let dir = dest.join(&plan.id);
    fs::DirBuilder::new().mode(0o700).create(&dir).map_err(RollbackError::io(&dir))?;
    let there = LiveLock::begin_on(&dir, &plan.roots).map_err(RollbackError::io(&dir))?;
    let note = own.join(folder::ELSEWHERE);
    let text = dir.as_os_str().as_encoded_bytes();
    nono_sys::fs::write_whole(&note, text).map_err(RollbackError::io(&note))?;
    Ok((dir, there))
}

/// Observer of a capture, shared with the caller.
pub type SharedObserver = Arc<dyn Observer + Send>;
