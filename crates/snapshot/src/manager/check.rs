//! Verification: every object of the store, every snapshot of a session down to the last file, and the lost paths.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use super::sessions::sessions;
use super::upkeep::{caches, each_object};
use super::{Result, SnapshotManager};
use crate::hash::{ContentHash, MerkleRoot, TreeId};
use crate::manifest::{ManifestBody, SnapshotId};
use crate::node::{Entry, Kind};
use crate::objects::StoreObjects;
use crate::session::SnapshotList;
use crate::state::{Objects, Observer};
use crate::store::{ObjectKey, Store, StoreVerified};

/// Result of a full check.
#[derive(Clone, Debug)]
pub struct VerifyReport {
    /// Result for the store's files and objects.
    pub store: StoreVerified,
    /// Problems with the session's record and manifests, and the trees they name.
    pub snapshots: Vec<SnapshotProblem>,
    pub caches: Vec<CacheProblem>,
}

impl VerifyReport {
    pub fn is_clean(&self) -> bool {
        self.store.problems.is_empty() && self.snapshots.is_empty() && self.caches.is_empty()
    }
}

/// A damaged snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotProblem {
    /// `None` for the session's record itself.
    pub id: Option<SnapshotId>,
    pub what: String,
}

/// A damaged stat cache. It is not used; the next capture reads everything and makes a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheProblem {
    pub path: PathBuf,
}

/// State shared by the checks of several sessions: each store, and each undamaged tree, is read once.
#[derive(Debug, Default)]
pub struct Checks {
    stores: HashMap<PathBuf, StoreChecks>,
}

#[derive(Debug, Default)]
struct StoreChecks {
    /// Result of the check of the store itself, once it was made.
    report: Option<VerifyReport>,
    /// Trees that are intact with everything below them.
    good: HashSet<TreeId>,
}

impl Checks {
    /// Check a store and what belongs to no session, once for all sessions.
    pub fn verify_store(&mut self, store: &Store, observer: &dyn Observer) -> Result<VerifyReport> {
        let known = &mut self.of(store).report;
        if let Some(report) = known {
            return Ok(report.clone());
        }
        let report = verify_store(store, observer)?;
        if !report.store.cancelled {
            *known = Some(report.clone());
        }
        Ok(report)
    }

    fn of(&mut self, store: &Store) -> &mut StoreChecks {
        self.stores.entry(store.dir().to_owned()).or_default()
    }
}

impl SnapshotManager {
    /// Check everything: each object in the store, and each snapshot of this session down to the last file.
    pub fn verify(&mut self) -> Result<VerifyReport> {
        self.verify_with(&mut Checks::default())
    }

    /// The same for one of several sessions.
    pub fn verify_with(&mut self, checks: &mut Checks) -> Result<VerifyReport> {
        let mut report = self.verify_store_with(checks)?;
        report.snapshots.extend(self.verify_session_with(checks));
        Ok(report)
    }

    /// Check the store of this session and what belongs to no session, once for several sessions.
    pub fn verify_store_with(&mut self, checks: &mut Checks) -> Result<VerifyReport> {
        self.background.stop();
        checks.verify_store(&self.store, &*self.observer)
    }

    /// Check one of several sessions: its record, its manifests, and the trees they name; the objects are not read.
    pub fn verify_session_with(&self, checks: &mut Checks) -> Vec<SnapshotProblem> {
        let good = &mut checks.of(&self.store).good;
        let mut problems = Vec::new();
        let damage = self.session.record_damage();
        problems.extend(
            damage.unwrap_or_else(Some).map(|error| SnapshotProblem { id: None, what: error.to_string() }),
        );
        match self.session.record() {
            Ok(Some(record)) => self.verify_snapshots(&record, good, &mut problems),
            Ok(None) => {}
            Err(_) if !problems.is_empty() => {}
            Err(error) => problems.push(SnapshotProblem { id: None, what: error.to_string() }),
        }
        self.verify_kept(&mut problems);
        problems
    }

    /// Paths of a snapshot that cannot be restored, because an object is missing or among the `damaged` ones found by a
    /// check of the store. A directory stands for everything in it.
    pub fn lost(&self, id: &SnapshotId, damaged: &HashSet<ObjectKey>) -> Result<Vec<PathBuf>> {
        let sheet = self.session.sheet(&self.recorded()?, id)?;
        let objects = StoreObjects::new(&self.store);
        let mut lost = Vec::new();
        let roots = sheet.state.roots.iter();
        let mut waiting: Vec<_> =
            roots.filter_map(|root| Some((root.path.clone(), root.content.entry()?.clone()))).collect();
        let is_lost =
            |key: ObjectKey| -> Result<bool> { Ok(damaged.contains(&key) || !self.store.contains(key)?) };
        while let Some((path, entry)) = waiting.pop() {
            match entry.kind {
                Kind::File { hash, .. } if is_lost(ObjectKey::from(hash))? => lost.push(path),
                Kind::Dir { tree, .. } => match objects.node(tree) {
                    Ok(node) => waiting
                        .extend(node.entries.iter().map(|entry| (path.join(&entry.name), entry.clone()))),
                    Err(_) => lost.push(path),
                },
                _ => {}
            }
        }
        lost.sort();
        Ok(lost)
    }

    /// Check that contents displaced by restores are listed and stored.
    fn verify_kept(&self, problems: &mut Vec<SnapshotProblem>) {
        let mut report = |what: String| problems.push(SnapshotProblem { id: None, what });
        let kept = self.session.kept().unwrap_or_else(|error| {
            report(error.to_string());
            Vec::new()
        });
        for hash in kept {
            self.verify_content(hash, ", displaced by a restore,", &mut report);
        }
    }

    fn verify_snapshots(
        &self,
        record: &SnapshotList,
        good: &mut HashSet<TreeId>,
        problems: &mut Vec<SnapshotProblem>,
    ) {
        let objects = StoreObjects::new(&self.store);
        for recorded in record.snapshots.iter().filter(|recorded| !recorded.thinned) {
            let id = recorded.snapshot();
            let mut report = |what: String| problems.push(SnapshotProblem { id: Some(id.clone()), what });
            let sheet = match self.session.sheet(record, &id) {
                Ok(sheet) => sheet,
                Err(error) => {
                    report(error.to_string());
                    continue;
                }
            };
            if (sheet.merkle_root(), sheet.state_root()) != (recorded.merkle_root, recorded.state_root) {
                report("its digests differ from the recorded ones".to_owned());
            }
            let before = problems.len();
            self.verify_trees(&sheet, &objects, good, &mut |what| {
                problems.push(SnapshotProblem { id: Some(id.clone()), what });
            });
            // A problem found here is found again in every other snapshot that has it.
            if problems.len() > before {
                good.clear();
            }
        }
        for late in &record.late {
            if let Err(error) = self.first_state(record, late) {
                let what = format!("the first state of {}: {error}", late.path.display());
                problems.push(SnapshotProblem { id: Some(SnapshotId::Number(late.first)), what });
            }
        }
    }

    /// Check that a snapshot's nodes and contents are stored, and that each node has the digest its parent names.
    fn verify_trees(
        &self,
        sheet: &ManifestBody,
        objects: &dyn Objects,
        good: &mut HashSet<TreeId>,
        report: &mut impl FnMut(String),
    ) {
        for hash in sheet.rules.iter().flatten() {
            if let Err(error) = self.store.read(ObjectKey::rules(*hash)) {
                report(error.to_string());
            }
        }
        let mut contents = HashSet::new();
        let sealed = |entry: &Entry| match entry.kind {
            Kind::Dir { tree, merkle } => Some((tree, merkle)),
            _ => None,
        };
        let mut merkles: BTreeSet<(TreeId, MerkleRoot)> =
            sheet.state.roots.iter().filter_map(|root| sealed(root.content.entry()?)).collect();
        let content = |hash| contents.extend([hash]);
        let walked = each_object(&sheet.state, objects, good, content, |_, node| {
            merkles.extend(node.entries.iter().filter_map(sealed));
        });
        if let Err(error) = walked {
            report(error.to_string());
        }
        for (tree, merkle) in merkles {
            if objects.node(tree).is_ok_and(|node| node.merkle() != merkle) {
                report(format!("the digest of directory {tree} does not match its parent"));
            }
        }
        for hash in contents {
            self.verify_content(hash, "", report);
        }
    }

    /// Check that a content is stored.
    fn verify_content(&self, hash: ContentHash, whose: &str, report: &mut impl FnMut(String)) {
        match self.store.contains(ObjectKey::from(hash)) {
            Ok(true) => {}
            Ok(false) => report(format!("content {hash}{whose} is not in the store")),
            Err(error) => report(error.to_string()),
        }
    }
}

fn verify_store(store: &Store, observer: &dyn Observer) -> Result<VerifyReport> {
    let found = store.verify(&|| observer.cancelled(), &|done, total| observer.progress(done, total))?;
    let caches = caches(store)?.into_iter().filter(|(_, cache)| cache.is_none());
    let note = |path: PathBuf| format!("{}: the session reference names no session", path.display());
    let damaged = sessions(store)?.damaged.into_iter();
    Ok(VerifyReport {
        store: found,
        snapshots: damaged.map(|path| SnapshotProblem { id: None, what: note(path) }).collect(),
        caches: caches.map(|(path, _)| CacheProblem { path }).collect(),
    })
}
