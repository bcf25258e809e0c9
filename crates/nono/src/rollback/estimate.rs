//! What removing sessions would free, without removing them: contents that no other session has, at the rate that the
//! store takes for its contents on the whole. An estimate, for dry runs.

use std::collections::{HashMap, HashSet};

use nono_snapshot::ContentHash;

use super::catalogue::{Catalogue, SessionEntry};
use super::error::RollbackError;

pub(super) struct Estimate {
    sessions: HashMap<String, HashMap<ContentHash, u64>>,
    /// In how many sessions a content is.
    users: HashMap<ContentHash, usize>,
    store_bytes: u64,
    all_bytes: u64,
}

impl Estimate {
    pub(super) fn new(catalogue: &Catalogue, sessions: &[SessionEntry], store_bytes: u64) -> Estimate {
        let mut estimate =
            Estimate { sessions: HashMap::new(), users: HashMap::new(), store_bytes, all_bytes: 0 };
        for entry in sessions.iter().filter(|entry| catalogue.is_home(&entry.dir)) {
            // A session that cannot be read frees nothing that is known.
            let contents = contents(catalogue, entry).unwrap_or_default();
            for (hash, size) in &contents {
                let users = estimate.users.entry(*hash).or_insert(0);
                if *users == 0 {
                    estimate.all_bytes = estimate.all_bytes.saturating_add(*size);
                }
                *users += 1;
            }
            estimate.sessions.insert(entry.id.clone(), contents);
        }
        estimate
    }

    /// Bytes that go with this session, after those that went before.
    pub(super) fn remove(&mut self, id: &str) -> u64 {
        let mut freed = 0u64;
        for (hash, size) in self.sessions.remove(id).unwrap_or_default() {
            if let Some(users) = self.users.get_mut(&hash) {
                *users = users.saturating_sub(1);
                freed = freed.saturating_add(if *users == 0 { size } else { 0 });
            }
        }
        let scaled = u128::from(freed) * u128::from(self.store_bytes) / u128::from(self.all_bytes.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// The contents of all snapshots of a session, with their sizes.
fn contents(catalogue: &Catalogue, entry: &SessionEntry) -> Result<HashMap<ContentHash, u64>, RollbackError> {
    let session = catalogue.open(entry.clone())?;
    let mut contents = HashMap::new();
    let mut seen = HashSet::new();
    for info in session.snapshots()?.into_iter().filter(|info| !info.thinned) {
        let manifest = session.manager.load(&info.id)?;
        if seen.insert(manifest.state_root) {
            let files = manifest.files().map_err(nono_snapshot::SnapshotError::from)?;
            contents.extend(files.into_values().map(|file| (file.hash, file.size)));
        }
    }
    Ok(contents)
}
