//! Notes to agents about restores: `notes/<digest>.json` below nono's state, one file for each conversation.

use std::path::PathBuf;

use nono_history::lock::Lock;
use nono_snapshot::file::{self, Sync};

use crate::error::{CheckpointError, Result};
use crate::host::Host;
use crate::json;
use crate::manager::RestoreNote;
use crate::turns::file_name;

/// Maximum number of notes of a conversation; those of an ended one are never fetched.
const NOTES: usize = 20;

fn dir(host: &Host) -> PathBuf {
    host.state_dir.join("notes")
}

fn path(host: &Host, agent: &str, session: &str) -> PathBuf {
    dir(host).join(file_name(agent, session))
}

/// Locks the notes of all conversations for a short change.
fn lock(host: &Host) -> Result<Lock> {
    Ok(Lock::wait(&dir(host).join("lock"))?)
}

pub(crate) fn add(host: &Host, agent: &str, session: &str, note: RestoreNote) -> Result<()> {
    let dir = dir(host);
    file::make_dirs(&dir).map_err(CheckpointError::io(&dir))?;
    let _lock = lock(host)?;
    let path = path(host, agent, session);
    // Unreadable notes are lost; the new one must not be.
    let mut notes: Vec<RestoreNote> = json::load(&path).ok().flatten().unwrap_or_default();
    notes.push(note);
    let beyond = notes.len().saturating_sub(NOTES);
    notes.drain(..beyond);
    json::save(&path, &notes, Sync::No)
}

/// Removes and returns the notes of a conversation about these projects.
pub(crate) fn take(
    host: &Host,
    agent: &str,
    session: &str,
    about: impl Fn(&RestoreNote) -> bool,
) -> Result<Vec<RestoreNote>> {
    let path = path(host, agent, session);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let _lock = lock(host)?;
    let notes: Vec<RestoreNote> = json::load_or_set_aside(&path)?.0.unwrap_or_default();
    let (taken, others): (Vec<RestoreNote>, Vec<RestoreNote>) = notes.into_iter().partition(about);
    if others.is_empty() {
        file::remove(&path).map_err(CheckpointError::io(&path))?;
    } else {
        json::save(&path, &others, Sync::No)?;
    }
    Ok(taken)
}

/// Removes the note of a restore that was undone. True if the agent had not fetched it: then no other is needed.
pub(crate) fn withdraw(host: &Host, agent: &str, session: &str, restore: &str) -> Result<bool> {
    let path = path(host, agent, session);
    if !path.exists() {
        return Ok(false);
    }
    let _lock = lock(host)?;
    let mut notes: Vec<RestoreNote> = json::load_or_set_aside(&path)?.0.unwrap_or_default();
    let before = notes.len();
    notes.retain(|note| note.restore != restore);
    json::save(&path, &notes, Sync::No)?;
    Ok(notes.len() < before)
}
