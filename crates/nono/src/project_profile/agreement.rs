//! The user's decisions about projects' profiles: `trusted/<hash>.json` in nono's state folder.

use std::io;
use std::path::{Path, PathBuf};

use nono_checkpoint::ProjectHash;
use nono_policy::EffectiveProfile;
use nono_sys::{fs, time};
use serde::{Deserialize, Serialize};

use super::ProjectProfileError;
use nono_policy::state_dir;

/// A decision, with the exact content it was made about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    #[serde(with = "nono_sys::path_serde")]
    pub project: PathBuf,
    /// SHA-256 of the file.
    pub content: String,
    /// Effects of the profile at that time.
    pub meaning: EffectiveProfile,
    pub agreed: bool,
    /// ISO 8601, UTC.
    pub time: String,
}

impl Agreement {
    pub(super) fn new(project: &Path, content: &str, meaning: &EffectiveProfile, agreed: bool) -> Agreement {
        Agreement {
            project: project.to_owned(),
            content: content.to_owned(),
            meaning: meaning.clone(),
            agreed,
            time: time::now_iso(),
        }
    }

    /// Load the decision; an unreadable one counts as none.
    pub(super) fn load(state_dir: &Path, project: &Path) -> Option<Agreement> {
        let bytes = std::fs::read(file(state_dir, project)).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|agreement: &Agreement| agreement.project == project)
    }

    /// Whether the decision is about these bytes with this meaning.
    pub(super) fn is_of(&self, content: &str, meaning: &EffectiveProfile) -> bool {
        self.content == content && self.meaning == *meaning
    }

    pub(super) fn save(&self, state_dir: &Path) -> Result<(), ProjectProfileError> {
        state_dir::ensure(state_dir)?;
        let path = file(state_dir, &self.project);
        let failed = |source| ProjectProfileError::Io { path: path.clone(), source };
        match fs::make_dir(&state_dir.join(FOLDER), 0o700) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result.map_err(failed)?,
        }
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        text.and_then(|text| fs::write_whole(&path, &text)).map_err(failed)
    }

    pub(super) fn remove(state_dir: &Path, project: &Path) -> Result<bool, ProjectProfileError> {
        let path = file(state_dir, project);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(ProjectProfileError::Io { path, source }),
        }
    }
}

const FOLDER: &str = "trusted";

fn file(state_dir: &Path, project: &Path) -> PathBuf {
    state_dir.join(FOLDER).join(format!("{}.json", ProjectHash::of(project)))
}
