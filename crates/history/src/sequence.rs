//! Order of sessions and restores of one state folder, of all owners: a counter in a file, independent of wrong clocks
//! and of several restores in one second. If a power failure took it, the highest stored number counts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nono_snapshot::file;
use rustix::fs::OFlags;
use serde::Deserialize;

use crate::log;

/// Folder of the sessions in the state folder.
const SESSIONS: &str = "rollbacks";
/// Folder of the projects.
const PROJECTS: &str = "projects";
/// File in a session's place that holds the path of its folder, if that is elsewhere.
const ELSEWHERE: &str = "elsewhere";
/// Counter in the folder of the sessions.
pub const FILE: &str = ".sequence";

/// Path of the counter of a state folder.
pub fn counter(state_dir: &Path) -> PathBuf {
    state_dir.join(SESSIONS).join(FILE)
}

/// Take the next number of a state folder; None if it has no folder of sessions.
pub fn next_in(state_dir: &Path) -> io::Result<Option<u64>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let opened = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(counter(state_dir));
    let Some(mut file) = file::existing(opened)? else { return Ok(None) };
    file.lock()?;
    let taken = count_up(&mut file, || highest(state_dir));
    // Closing is not enough: a child between fork and exec still has the descriptor.
    file.unlock()?;
    taken.map(Some)
}

fn count_up(file: &mut File, highest: impl FnOnce() -> u64) -> io::Result<u64> {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    let last = match read {
        Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
        _ => text.strip_suffix('\n').and_then(|number| number.parse::<u64>().ok()),
    };
    let next = last.unwrap_or_else(highest).saturating_add(1);
    let text = format!("{next:020}\n");
    file.write_all_at(text.as_bytes(), 0).and_then(|()| file.set_len(text.len() as u64))?;
    Ok(next)
}

/// What has a number: a session, or a restore.
#[derive(Deserialize)]
struct Numbered {
    #[serde(default)]
    sequence: Option<u64>,
}

#[derive(Deserialize)]
struct Log {
    restores: Vec<Numbered>,
}

/// Highest number of all sessions and restores. Those that cannot be read count as none.
fn highest(state_dir: &Path) -> u64 {
    let owners =
        [SESSIONS, PROJECTS].into_iter().filter_map(|name| std::fs::read_dir(state_dir.join(name)).ok());
    let dirs = owners.flatten().filter_map(|entry| Some(resolved(entry.ok()?.path())));
    dirs.map(|dir| highest_of(&dir)).max().unwrap_or(0)
}

fn highest_of(dir: &Path) -> u64 {
    let session = read::<Numbered>(&dir.join("session.json")).and_then(|session| session.sequence);
    let restores = read::<Log>(&dir.join(log::FILE)).map(|log| log.restores).unwrap_or_default();
    restores.iter().filter_map(|restore| restore.sequence).chain(session).max().unwrap_or(0)
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&file::read(path).ok()?).ok()
}

/// Folder of a session that is kept elsewhere, or the place itself.
fn resolved(place: PathBuf) -> PathBuf {
    let elsewhere = file::read(&place.join(ELSEWHERE)).ok();
    elsewhere.map_or(place, |bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_counter_is_found_again_in_sessions_and_projects() {
        let state = tempfile::tempdir().unwrap();
        let state = state.path();
        assert_eq!(next_in(state).unwrap(), None, "no folder of sessions");
        let write = |name: &str, text: &str| {
            let path = state.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("rollbacks/a/session.json", r#"{"sequence": 3, "other": []}"#);
        write("rollbacks/a/restores.json", r#"{"restores": [{"sequence": 4}, {}]}"#);
        write("rollbacks/b/session.json", "{");
        assert_eq!(next_in(state).unwrap(), Some(5));
        write(
            "projects/c/restores.json",
            r#"{"restores": [{"sequence": 9, "details": {}}, {"sequence": 7}]}"#,
        );
        assert_eq!(next_in(state).unwrap(), Some(6), "the counter is there");
        for text in ["", "nonsense\n", "\0"] {
            write("rollbacks/.sequence", text);
            assert_eq!(next_in(state).unwrap(), Some(10));
        }
        assert_eq!(next_in(state).unwrap(), Some(11));
    }
}
