//! Opening a manager: on a new session folder, on an existing one with its paths, or on one as it is.

use std::path::PathBuf;
use std::sync::Arc;

use super::background::Background;
use super::{Limits, ManagerOptions, Result, SnapshotError, SnapshotManager, roots, sessions};
use crate::exclusion::{ExclusionConfig, Rules};
use crate::node::Time;
use crate::read;
use crate::session::{Session, SessionError, SessionHold, SnapshotList};
use crate::state::Observer;
use crate::store::Store;

impl SnapshotManager {
    /// Open a manager on this session folder, with a store of its own. A folder that has snapshots is continued.
    pub fn new(
        session_dir: impl Into<PathBuf>,
        tracked_paths: impl IntoIterator<Item = impl Into<PathBuf>>,
        exclusion: ExclusionConfig,
        limits: Limits,
    ) -> Result<SnapshotManager> {
        let options = ManagerOptions::default();
        SnapshotManager::with_options(session_dir, tracked_paths, exclusion, limits, options)
    }

    pub fn with_options(
        session_dir: impl Into<PathBuf>,
        tracked_paths: impl IntoIterator<Item = impl Into<PathBuf>>,
        exclusion: ExclusionConfig,
        limits: Limits,
        options: ManagerOptions,
    ) -> Result<SnapshotManager> {
        SnapshotManager::observed(session_dir, tracked_paths, exclusion, limits, options, ())
    }

    /// The same with an observer from the start: another process may hold the session for a while.
    pub fn observed(
        session_dir: impl Into<PathBuf>,
        tracked_paths: impl IntoIterator<Item = impl Into<PathBuf>>,
        exclusion: ExclusionConfig,
        limits: Limits,
        options: ManagerOptions,
        observer: impl Observer + Send + 'static,
    ) -> Result<SnapshotManager> {
        Rules::check(&exclusion)?;
        let session = Session::new(session_dir);
        session.create()?;
        // The real path: needed when it lies in a tracked tree, and after a change of the working directory.
        let session = session.resolved()?;
        let (roots, forced) = roots::merge_nested(roots::resolve(tracked_paths.into_iter().map(Into::into))?);
        let mut exclusion = exclusion;
        exclusion.force_include.extend(forced);
        let held = super::hold(&session, &observer)?;
        let record = match session.record() {
            // Nothing of it can be read: it is set aside, and the session begins anew.
            Err(SessionError::Record { .. }) if session.is_damaged() => {
                session.mend(&held)?;
                None
            }
            other => other?,
        };
        if let Some(record) = &record
            && !roots.is_empty()
            && record.roots != roots
            && record.first_roots() != roots
            && !record.snapshots.is_empty()
        {
            return Err(SnapshotError::OtherRoots {
                dir: session.dir().to_owned(),
                roots: record.roots.clone(),
            });
        }
        let started = record.as_ref().map_or_else(read::now, SnapshotList::started);
        // Including roots added later.
        let known = record.filter(|record| roots.is_empty() || !record.snapshots.is_empty());
        let roots = known.map_or(roots, |record| record.roots);
        let mut manager =
            SnapshotManager::assemble(&held, session, (roots, started), (exclusion, limits), options)?;
        manager.observe(observer);
        Ok(manager)
    }

    /// Open a manager on an existing session, with the roots of its record and the store in its folder, or else that of
    /// the options. Its snapshots have their frozen rules; new ones use the default rules and limits.
    pub fn resume(session_dir: impl Into<PathBuf>, options: ManagerOptions) -> Result<SnapshotManager> {
        let session = Session::new(session_dir);
        let none = || SnapshotError::NoSession { dir: session.dir().to_owned() };
        session.record()?.ok_or_else(none)?;
        let session = session.resolved()?;
        let own = session.dir().join("store");
        // A symbolic link is not the session's own store: the store is written to and collected.
        let is_own = own.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let store = if is_own { Some(own) } else { options.store.clone().filter(|store| store.is_dir()) };
        let store = store.ok_or_else(|| SnapshotError::NoStore { dir: session.dir().to_owned() })?;
        // A session removed meanwhile is not created again.
        session.create_parts()?;
        let held = session.hold()?;
        let none = || SnapshotError::NoSession { dir: session.dir().to_owned() };
        let record = session.record()?.ok_or_else(none)?;
        let (started, roots) = (record.started(), record.roots);
        let options = ManagerOptions { store: Some(store), ..options };
        SnapshotManager::assemble(&held, session, (roots, started), Default::default(), options)
    }

    fn assemble(
        _held: &SessionHold,
        session: Session,
        (roots, started): (Vec<PathBuf>, Time),
        (exclusion, limits): (ExclusionConfig, Limits),
        options: ManagerOptions,
    ) -> Result<SnapshotManager> {
        let own = || session.dir().join("store");
        let store = Store::open(&options.store.clone().unwrap_or_else(own))?;
        let store = Arc::new(match &options.quota {
            Some(quota) => store.with_quota(quota.clone()),
            None => store,
        });
        sessions::register(&store, &session)?;
        Ok(SnapshotManager {
            session,
            store,
            roots,
            exclusion,
            limits,
            options,
            observer: Box::new(()),
            started,
            background: Background::default(),
            recovered: None,
            completed: Vec::new(),
            written: Arc::default(),
        })
    }
}
