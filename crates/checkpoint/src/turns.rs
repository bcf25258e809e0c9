//! Current turns of agents whose every hook is a separate process: `turns/<digest>.json` below nono's state, one file
//! for each conversation, locked while it is read and written.
//!
//! The project's history links turns to checkpoints; here is only the current turn. A damaged or missing file is
//! started anew, with ids that were never used before: a repeated id would seem to have its checkpoint already.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nono_history::lock::Lock;

use nono_snapshot::file::{self, Sync};
use nono_sys::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{CheckpointError, Result};
use crate::json;
use crate::origin::{Origin, bounded};

/// State of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnState {
    pub agent: String,
    pub session: String,
    /// Id of the turn by the agent, or made from the number of prompts.
    pub turn: String,
    pub prompts: u64,
    /// First words of the user's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Random part of generated ids, which differ from those of a lost file.
    #[serde(default)]
    tag: String,
}

/// The turn that a hook belongs to.
#[derive(Debug)]
pub struct Turn {
    pub id: String,
    /// First words of the user's prompt.
    pub prompt: Option<String>,
    /// Whether it begins with this hook.
    pub fresh: bool,
    /// Error of an unreadable state, which was started anew.
    pub damaged: Option<CheckpointError>,
}

/// Turns of all conversations.
#[derive(Clone, Debug)]
pub struct Turns {
    dir: PathBuf,
}

impl Turns {
    pub fn new(state_dir: &Path) -> Turns {
        Turns { dir: dir(state_dir) }
    }

    /// Begins a turn for a prompt of the user, with the agent's id if it gives a new one.
    pub fn prompt(&self, origin: &Origin) -> Result<Turn> {
        self.turn(origin, true)
    }

    /// Turn of a later hook. An unknown id of the agent begins a new turn.
    pub fn current(&self, origin: &Origin) -> Result<Turn> {
        self.turn(origin, false)
    }

    fn turn(&self, origin: &Origin, begins: bool) -> Result<Turn> {
        let name = |text: &Option<String>| bounded(text.as_deref().unwrap_or_default());
        let (agent, session, given) = (name(&origin.agent), name(&origin.session), name(&origin.turn));
        file::make_dirs(&self.dir).map_err(CheckpointError::io(&self.dir))?;
        let _lock = self.lock()?;
        let path = self.dir.join(file_name(&agent, &session));
        let (known, damaged) = match json::load::<TurnState>(&path) {
            Ok(known) => (known, None),
            Err(error @ CheckpointError::Damaged { .. }) => (None, Some(error)),
            Err(error) => return Err(error),
        };
        let known = known.filter(|known| known.agent == agent && known.session == session);
        let mut state = if let Some(known) = known {
            known
        } else {
            let tag = nono_sys::random::id::<3>().map_err(CheckpointError::io("/dev/urandom"))?;
            TurnState { agent, session, tag, ..TurnState::default() }
        };
        let fresh = state.turn.is_empty() || if given.is_empty() { begins } else { given != state.turn };
        if fresh {
            state.prompt = origin.prompt.as_deref().map(bounded);
            state.prompts += 1;
            state.turn = if given.is_empty() { format!("{}-{}", state.prompts, state.tag) } else { given };
            json::save(&path, &state, Sync::No)?;
        }
        Ok(Turn { id: state.turn, prompt: state.prompt, fresh, damaged })
    }

    /// Locks the turns of all conversations for a short lookup.
    fn lock(&self) -> Result<Lock> {
        Ok(Lock::wait(&self.dir.join("lock"))?)
    }
}

fn dir(state_dir: &Path) -> PathBuf {
    state_dir.join("turns")
}

/// Name of a conversation's file.
pub(crate) fn file_name(agent: &str, session: &str) -> String {
    let mut digest = Sha256::new();
    // With its length, so that different pairs have different digests.
    digest.update((agent.len() as u64).to_le_bytes());
    digest.update(agent);
    digest.update(session);
    format!("{}.json", &hex::encode(&digest.finalize())[..32])
}

/// Removes the states of conversations that were idle for that long, and returns their number.
pub fn sweep(state_dir: &Path, older_than: Duration) -> Result<u64> {
    let dir = dir(state_dir);
    if !dir.exists() {
        return Ok(0);
    }
    let _lock = Turns { dir: dir.clone() }.lock()?;
    let now = SystemTime::now();
    let mut removed = 0;
    let states = file::entries(&dir).map_err(CheckpointError::io(&dir))?.into_iter();
    for path in states.filter(|path| !path.ends_with("lock")) {
        let data = path.symlink_metadata().and_then(|data| data.modified());
        let changed = data.map_err(CheckpointError::io(&path))?;
        // A time in the future is not old.
        if now.duration_since(changed).is_ok_and(|age| age > older_than) {
            file::remove(&path).map_err(CheckpointError::io(&path))?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::File;

    use super::*;

    fn origin(session: &str, turn: Option<&str>) -> Origin {
        Origin {
            agent: Some("a".to_owned()),
            session: Some(session.to_owned()),
            turn: turn.map(str::to_owned),
            ..Origin::default()
        }
    }

    #[test]
    fn a_prompt_or_a_new_id_begins_one() {
        let state = tempfile::tempdir().unwrap();
        let turns = Turns::new(state.path());
        let id = |turn: Turn| turn.id;
        let first = id(turns.prompt(&origin("s", None)).unwrap());
        let same = turns.current(&origin("s", None)).unwrap();
        assert!(!same.fresh);
        assert_eq!(same.id, first);
        let second = id(turns.prompt(&origin("s", None)).unwrap());
        assert_ne!(second, first);
        // Ids of the agent's own.
        assert_eq!(id(turns.prompt(&origin("s", Some("m1"))).unwrap()), "m1");
        assert!(!turns.current(&origin("s", Some("m1"))).unwrap().fresh);
        assert!(!turns.prompt(&origin("s", Some("m1"))).unwrap().fresh, "one message is one turn");
        assert!(turns.current(&origin("s", Some("m2"))).unwrap().fresh);
        assert_eq!(id(turns.current(&origin("s", None)).unwrap()), "m2");
        // Conversations do not mix.
        assert_ne!(id(turns.prompt(&origin("t", None)).unwrap()), first);
        assert_eq!(id(turns.current(&origin("s", None)).unwrap()), "m2");
        // No prompt was ever seen.
        assert!(turns.current(&origin("u", None)).unwrap().fresh);
        assert!(!turns.current(&origin("u", None)).unwrap().fresh);
    }

    #[test]
    fn what_is_lost_begins_anew_with_other_ids() {
        let state = tempfile::tempdir().unwrap();
        let turns = Turns::new(state.path());
        let mut seen = BTreeSet::from([turns.prompt(&origin("s", None)).unwrap().id]);
        let file = state.path().join("turns").join(file_name("a", "s"));
        for text in ["", "{", "[]", "\0\0", "{\"agent\": 7}"] {
            std::fs::write(&file, text).unwrap();
            let turn = turns.current(&origin("s", None)).unwrap();
            assert!(turn.fresh && turn.damaged.is_some(), "{text:?}");
            assert!(seen.insert(turn.id), "{text:?}");
            assert!(turns.current(&origin("s", None)).unwrap().damaged.is_none());
        }
        std::fs::remove_file(&file).unwrap();
        assert!(seen.insert(turns.prompt(&origin("s", None)).unwrap().id));
    }

    #[test]
    fn everything_an_agent_says_is_bounded() {
        let state = tempfile::tempdir().unwrap();
        let turns = Turns::new(state.path());
        let long = "é/../\0".repeat(100_000);
        let turn = turns.prompt(&origin(&long, Some(&long))).unwrap();
        assert!(turn.id.len() <= 500);
        assert!(!turns.current(&origin(&long, Some(&long))).unwrap().fresh);
        let sizes = std::fs::read_dir(state.path().join("turns")).unwrap();
        assert!(sizes.map(|entry| entry.unwrap().metadata().unwrap().len()).sum::<u64>() < 10_000);
    }

    #[test]
    fn many_at_once_count_every_prompt() {
        let state = tempfile::tempdir().unwrap();
        let turns = Turns::new(state.path());
        let ids: Vec<String> = std::thread::scope(|scope| {
            let one = || scope.spawn(|| turns.prompt(&origin("s", None)).unwrap().id);
            let all: Vec<_> = std::iter::repeat_with(one).take(16).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 16);
        let file: TurnState = json::load(&turns.dir.join(file_name("a", "s"))).unwrap().unwrap();
        assert_eq!(file.prompts, 16);
    }

    #[test]
    fn only_the_old_are_swept() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(sweep(state.path(), Duration::ZERO).unwrap(), 0);
        let turns = Turns::new(state.path());
        turns.prompt(&origin("old", None)).unwrap();
        turns.prompt(&origin("new", None)).unwrap();
        let file = File::open(turns.dir.join(file_name("a", "old"))).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(1000)).unwrap();
        assert_eq!(sweep(state.path(), Duration::from_secs(500)).unwrap(), 1);
        assert!(turns.current(&origin("old", None)).unwrap().fresh);
        assert!(!turns.current(&origin("new", None)).unwrap().fresh);
    }
}
