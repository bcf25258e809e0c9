//! One session as a list shows it.

use std::path::{Path, PathBuf};

use nono_snapshot::SessionMetadata;

use crate::session_ref::SessionRef;

/// Status of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The session is running.
    Live,
    Finished,
    /// The supervisor was killed. Until a later command ends the session, the last snapshots may be missing; everything
    /// else is there.
    Interrupted,
}

/// One session in a list.
#[derive(Clone, Debug)]
pub struct SessionEntry {
    pub id: String,
    pub dir: PathBuf,
    pub status: Status,
    pub pinned: bool,
    pub metadata: SessionMetadata,
    /// Project of the session: the first tracked path that is a folder.
    pub project: PathBuf,
    /// Made by the library, by Python or by another program, wherever it is: never pruned.
    pub foreign: bool,
}

impl SessionEntry {
    /// Entry of a running session, for its own supervisor.
    pub(super) fn running(metadata: &SessionMetadata, dir: &Path) -> SessionEntry {
        SessionEntry {
            id: metadata.session_id.clone(),
            dir: dir.to_owned(),
            status: Status::Live,
            pinned: false,
            metadata: metadata.clone(),
            project: PathBuf::new(),
            foreign: false,
        }
    }

    /// Whether the session ended without changes.
    pub fn is_empty(&self) -> bool {
        self.status != Status::Live && self.metadata.is_empty()
    }

    /// Whether the session ended without a final snapshot: its changes are unknown.
    pub fn lacks_final(&self) -> bool {
        self.status == Status::Finished && !self.foreign && self.metadata.final_snapshot.is_none()
    }
}

impl SessionRef for SessionEntry {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> Option<&str> {
        self.metadata.name.as_deref()
    }
}
