//! What agents have to be told: `notes/<digest>.json` below nono's state, one file for each conversation.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use nono_snapshot::file::{self, Sync};
use sha2::{Digest, Sha256};

use crate::error::CheckpointError;
use crate::json;
use crate::manager::{Host, Note};
use crate::project::hex;

/// Nobody fetches the notes of a conversation that is over: only the last ones are kept.
const NOTES: usize = 20;

fn dir(host: &Host) -> PathBuf {
    host.state_dir.join("notes")
}

fn path(host: &Host, agent: &str, session: &str) -> PathBuf {
    let mut digest = Sha256::new();
    // With its length, so that no two pairs read the same.
    digest.update((agent.len() as u64).to_le_bytes());
    digest.update(agent);
    digest.update(session);
    dir(host).join(format!("{}.json", &hex(&digest.finalize())[..32]))
}

/// Held while the notes of any conversation are changed, which takes a moment.
fn lock(host: &Host) -> Result<File, CheckpointError> {
    let path = dir(host).join("lock");
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let lock = open.map_err(CheckpointError::io(&path))?;
    lock.lock().map_err(CheckpointError::io(&path))?;
    Ok(lock)
}

pub(crate) fn add(host: &Host, agent: &str, session: &str, note: Note) -> Result<(), CheckpointError> {
    let dir = dir(host);
    file::make_dirs(&dir).map_err(CheckpointError::io(&dir))?;
    let _lock = lock(host)?;
    let path = path(host, agent, session);
    // Notes that cannot be read are lost; the new one must not be.
    let mut notes: Vec<Note> = json::load(&path).ok().flatten().unwrap_or_default();
    notes.push(note);
    let beyond = notes.len().saturating_sub(NOTES);
    notes.drain(..beyond);
    json::save(&path, &notes, Sync::No)
}

/// The notes of a conversation about these projects; they are gone then.
pub(crate) fn take(
    host: &Host,
    agent: &str,
    session: &str,
    about: impl Fn(&Note) -> bool,
) -> Result<Vec<Note>, CheckpointError> {
    let path = path(host, agent, session);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let _lock = lock(host)?;
    let notes: Vec<Note> = json::load_or_default(&path)?;
    let (taken, others): (Vec<Note>, Vec<Note>) = notes.into_iter().partition(about);
    if others.is_empty() {
        file::remove(&path).map_err(CheckpointError::io(&path))?;
    } else {
        json::save(&path, &others, Sync::No)?;
    }
    Ok(taken)
}

/// An undo brought back what this restore had taken away. Says whether the agent had not been told of it yet: then
/// there is nothing to tell.
pub(crate) fn withdraw(
    host: &Host,
    agent: &str,
    session: &str,
    restore: &str,
) -> Result<bool, CheckpointError> {
    let path = path(host, agent, session);
    if !path.exists() {
        return Ok(false);
    }
    let _lock = lock(host)?;
    let mut notes: Vec<Note> = json::load_or_default(&path)?;
    let before = notes.len();
    notes.retain(|note| note.restore != restore);
    json::save(&path, &notes, Sync::No)?;
    Ok(notes.len() < before)
}
