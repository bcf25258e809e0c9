//! The user's decisions about projects' profiles: `trusted/<hash>.json` in nono's state folder.

use std::path::{Path, PathBuf};

use nono_checkpoint::ProjectHash;
use nono_policy::EffectiveProfile;
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
    /// Load the decision; an unreadable one counts as none.
    pub(super) fn load(state_dir: &Path, project: &Path) -> Option<Agreement> {
        let bytes = std::fs::read(state_dir.join(file(project))).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|agreement: &Agreement| agreement.project == project)
    }

    /// Whether the decision is about these bytes with this meaning.
    pub(super) fn is_of(&self, content: &str, meaning: &EffectiveProfile) -> bool {
        self.content == content && self.meaning == *meaning
    }

    pub(super) fn save(&self, state_dir: &Path) -> Result<(), ProjectProfileError> {
        Ok(state_dir::save_json(state_dir, file(&self.project), self)?)
    }
}

/// The decision's file in the state folder.
pub(super) fn file(project: &Path) -> PathBuf {
    Path::new("trusted").join(format!("{}.json", ProjectHash::of(project)))
}
