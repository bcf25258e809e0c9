//! Changes that agents save in their own settings files.
//!
//! An agent's settings decide what it runs, outside the sandbox as well, so the command must not write them; but an
//! agent that cannot save an answer asks again at each start. So inside the sandbox each such file is replaced by a
//! copy, and after the command every changed key is judged: a theme or a model is saved outside, too; a hook, a server
//! to start or the trust in a folder is kept for sandboxed runs of the same project. Changes made by others meanwhile
//! stay.
//!
//! Everything needed for the second half is stored beside the copies, so that the next session can save what a killed
//! one left.

mod keys;
mod merge;
mod project_changes;
mod text;
mod yaml;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use nono_policy::data::{DefaultSetting, SavedFile};
use nono_policy::environment::ReplacedKey;
use nono_policy::resolved::{ClosedBy, ClosedHow, ClosedPath, PathKind};
use nono_policy::{HostContext, PolicyData, ResolvedPolicy};
use nono_sandbox::SessionPaths;
use nono_sys::fs::make_file;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::replace_file::{ReplaceError, replace};
use merge::{ChangeScope, changes, reach};
use project_changes::KeptDir;

const INDEX: &str = "index.json";
/// Maximum size of a settings file in bytes. A larger copy is not read.
const MOST: u64 = 64 << 20;

/// Record stored beside the copies of a session.
#[derive(Debug, Serialize, Deserialize)]
struct SavedIndex {
    #[serde(with = "nono_sys::path_serde")]
    state_dir: PathBuf,
    #[serde(with = "nono_sys::path_serde")]
    project: PathBuf,
    files: Vec<SavedEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedEntry {
    agent: String,
    name: String,
    #[serde(with = "nono_sys::path_serde")]
    outside: PathBuf,
}

/// Result of saving the changes to one settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedReport {
    pub file: PathBuf,
    /// Keys saved outside the sandbox.
    pub outside: Vec<String>,
    /// Keys kept for sandboxed runs of this project.
    pub inside: Vec<String>,
    /// Reason why the changes could not be saved.
    pub problem: Option<String>,
}

/// Mount copies in place of the settings files, which would otherwise be read-only. Returns the variables that tell agents
/// where the copies are.
pub fn place(
    policy: &mut ResolvedPolicy,
    paths: &SessionPaths,
    host: &HostContext,
    keys: &[ReplacedKey],
) -> io::Result<Vec<(OsString, OsString)>> {
    let (mut files, mut variables) = (Vec::new(), Vec::new());
    for closed in &mut policy.closed {
        let Some((agent, name, file)) = saved_file(closed, host) else { continue };
        let elsewhere =
            file.outside_at.as_ref().zip(file.moved_by.as_ref()).filter(|_| !has_moved(&agent, host));
        let elsewhere = elsewhere.and_then(|(text, variable)| Some((host.expand(text).ok()?, variable)));
        let outside = match (elsewhere, closed.resolved.parent()) {
            (Some((outside, variable)), Some(folder)) => {
                variables.push((variable.into(), folder.into()));
                outside
            }
            _ => closed.resolved.clone(),
        };
        files.push(SavedEntry { agent, name, outside });
        closed.how = ClosedHow::Copy;
    }
    if files.is_empty() {
        return Ok(variables);
    }
    let index = SavedIndex { state_dir: host.state_dir.clone(), project: policy.workdir.clone(), files };
    let kept = KeptDir::new(&index.state_dir).load(&index.project);
    nono_sys::fs::make_dir(&saved_dir(&paths.dir), 0o700)?;
    for ((_, copy), entry) in paths.copies(policy).zip(&index.files) {
        let outside = Some(read(&entry.outside)?).filter(|text| !text.is_empty());
        let outside = outside.unwrap_or_else(|| entry.nothing().to_owned());
        // A file that cannot be edited is copied unchanged.
        let inside = entry.file().and_then(|file| {
            let inside = text::edit(&outside, file.format, kept.of(&entry.outside))?;
            text::edit(&inside, file.format, &keys::beside_keys(&inside, file, keys))
        });
        let inside = inside.unwrap_or(outside);
        make_file(&copy, 0o600, inside.as_bytes())?;
        make_file(&base_of(&copy), 0o400, inside.as_bytes())?;
    }
    make_file(&saved_dir(&paths.dir).join(INDEX), 0o400, &serde_json::to_vec(&index)?)?;
    Ok(variables)
}

/// Whether a variable moved the agent's folder, so that it looks for everything there.
fn has_moved(agent: &str, host: &HostContext) -> bool {
    host.agent_folders.iter().any(|(name, _)| name == agent)
}

/// The description of a settings file in an agent's own folder. Such a file in a project belongs to the project.
fn saved_file(closed: &ClosedPath, host: &HostContext) -> Option<(String, String, &'static SavedFile)> {
    let ClosedBy::Agent(agent) = &closed.by else { return None };
    if closed.how != ClosedHow::Mask || closed.kind != PathKind::File {
        return None;
    }
    // By its original name: a link may lead to a file of any name.
    let name = closed.original.file_name()?;
    let folders = PolicyData::embedded().agents.iter().find(|known| known.name == *agent)?.folders.iter();
    let moved =
        host.agent_folders.iter().filter(|(name, _)| name == agent).map(|(_, dir)| host.absolute(dir));
    let mut own = folders.filter_map(|text| host.expand(text).ok()).chain(moved);
    own.find(|dir| closed.original.parent() == Some(dir))?;
    let file = PolicyData::embedded().saved_file(agent, name)?;
    Some((agent.clone(), name.to_str()?.to_owned(), file))
}

/// Save what the command changed in the copies, given the session's folder.
pub fn carry_out(session_dir: &Path) -> Vec<SavedReport> {
    let dir = saved_dir(session_dir);
    let index =
        fs::read(dir.join(INDEX)).ok().and_then(|bytes| serde_json::from_slice::<SavedIndex>(&bytes).ok());
    let Some(index) = index else { return Vec::new() };
    let kept = KeptDir::new(&index.state_dir);
    let report = |(n, entry): (usize, &SavedEntry)| {
        let file = entry.outside.clone();
        match save(entry, &dir.join(n.to_string()), &kept, &index.project) {
            Ok((outside, inside)) => SavedReport { file, outside, inside, problem: None },
            Err(problem) => {
                SavedReport { file, outside: vec![], inside: vec![], problem: Some(problem.to_string()) }
            }
        }
    };
    let reports = index.files.iter().enumerate().map(report).collect::<Vec<_>>();
    // Without the index the next session does not repeat this.
    let _ = fs::remove_file(dir.join(INDEX));
    let is_empty = |report: &SavedReport| report.outside.is_empty() && report.inside.is_empty();
    reports.into_iter().filter(|report| report.problem.is_some() || !is_empty(report)).collect()
}

/// Reason why changes of an agent are not saved.
#[derive(Debug, Error)]
enum SaveError {
    #[error("{}", nono_sys::errno::describe(.0))]
    Io(#[from] io::Error),
    #[error("cannot parse what the agent wrote")]
    Written,
    #[error("cannot parse the file outside the sandbox")]
    Outside,
    #[error(transparent)]
    Replace(#[from] ReplaceError),
}

/// Save the changes to one file. Returns the keys saved outside, and those kept for sandboxed runs.
fn save(
    entry: &SavedEntry,
    copy: &Path,
    kept: &KeptDir,
    project: &Path,
) -> Result<(Vec<String>, Vec<String>), SaveError> {
    let Some(file) = entry.file() else { return Ok((vec![], vec![])) };
    let (before, after) = (read(&base_of(copy))?, read(copy)?);
    if before == after {
        return Ok((vec![], vec![]));
    }
    let before = text::parse(&before, file.format).ok_or(SaveError::Written)?;
    let after = text::parse(&after, file.format).ok_or(SaveError::Written)?;
    let all = changes(&before, &after);
    let of = |wanted| all.iter().filter(|change| reach(change, file) == wanted).cloned().collect::<Vec<_>>();
    let (outward, inward) = (of(ChangeScope::Outside), of(ChangeScope::Inside));
    if !inward.is_empty() {
        kept.update(project, |kept| kept.add(&entry.outside, &inward))?;
    }
    let shown = |list: &[merge::KeyChange]| {
        list.iter().filter(|change| change.says_something()).map(merge::KeyChange::shown).collect::<Vec<_>>()
    };
    if !outward.is_empty() {
        // Another session may save at the same time.
        let _held = kept.lock()?;
        let now = read(&entry.outside)?;
        let new = text::edit(&now, file.format, &outward).ok_or(SaveError::Outside)?;
        if new != now {
            replace(&entry.outside, new.as_bytes(), 0o600)?;
        }
    }
    Ok((shown(&outward), shown(&inward)))
}

impl SavedEntry {
    /// Text of an empty settings file, for a file that does not exist.
    fn nothing(&self) -> &'static str {
        match PolicyData::embedded().default_setting(&self.agent, self.name.as_ref()) {
            Some(DefaultSetting::File(text)) => text,
            Some(DefaultSetting::Directory) | None => "",
        }
    }

    fn file(&self) -> Option<&'static SavedFile> {
        PolicyData::embedded().saved_file(&self.agent, self.name.as_ref())
    }
}

fn saved_dir(session_dir: &Path) -> PathBuf {
    session_dir.join("saved")
}

fn base_of(copy: &Path) -> PathBuf {
    copy.with_extension("base")
}

/// The text of a regular file; empty if it does not exist.
fn read(path: &Path) -> io::Result<String> {
    let file = match nono_sys::fs::open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        other => other?.ok_or(io::ErrorKind::InvalidData)?,
    };
    let mut text = String::new();
    if file.take(MOST + 1).read_to_string(&mut text)? as u64 > MOST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
