//! Settles a whole store in a separate process: syncs and compresses what short runs left.
//!
//! It yields to a collection, check or restore, and stops when the disk is full or the store is removed. One process
//! works at a time, and at most one waits for it.

use std::time::Duration;

use super::sessions::session_dirs;
use super::upkeep::mark_durable;
use super::{Result, SnapshotError};
use crate::session::Session;
use crate::store::{Store, StoreError};

/// Pause after yielding, and number of retries: a long run settles its own snapshots, and its end starts another
/// process like this.
const PAUSE: Duration = Duration::from_millis(500);
const ATTEMPTS: usize = 240;

/// Sync everything first, then compress it. False if that is left to another process, or the store is gone.
pub fn settle_store(store: &Store) -> Result<bool> {
    let Some(_turn) = store.settlers_turn()? else { return Ok(false) };
    for _ in 0..ATTEMPTS {
        if store.is_gone() {
            return Ok(false);
        }
        match sync(store).and_then(|()| Ok(store.settle(&|| store.is_gone(), &|_, _| {})?)) {
            Ok(settled) if !settled.cancelled => return Ok(true),
            _ if store.is_gone() => return Ok(false),
            // The next run starts another process.
            _ if store.is_disk_full() => return Ok(false),
            Ok(_) | Err(SnapshotError::Store(StoreError::Busy { .. })) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Make published snapshots durable, and mark them so in the records of the sessions.
fn sync(store: &Store) -> Result<()> {
    let mut waiting = Vec::new();
    for dir in session_dirs(store)?.into_iter().filter(|dir| dir.is_dir()) {
        let session = Session::new(dir);
        // An unreadable session is left to commands that name it; the others continue.
        let Ok(Some(record)) = session.record() else { continue };
        if record.snapshots.iter().any(|recorded| !recorded.durable && !recorded.thinned) {
            waiting.push((session, record));
        }
    }
    if !store.sync()?.durable {
        return Ok(());
    }
    for (session, before) in &waiting {
        mark_durable(session, before, &|| false)?;
    }
    Ok(())
}
