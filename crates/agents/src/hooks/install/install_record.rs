//! Record of what was installed, in `hooks.json` of nono's folder: the digest of what nono left in a file, and the
//! backup of the earlier content. With it an unchanged file is restored exactly.

use std::path::{Path, PathBuf};

use nono_sys::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::agents::Agent;
use super::{InstallError, read};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct InstallRecord {
    #[serde(default)]
    files: Vec<File>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct File {
    agent: String,
    #[serde(with = "nono_sys::path_serde")]
    path: PathBuf,
    /// Digest of what nono left there.
    after: String,
    /// `None`: there was no such file.
    before: Option<Before>,
    /// Folders created for the file, outermost first.
    #[serde(default)]
    folders: Vec<Folder>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Before {
    digest: String,
    #[serde(with = "nono_sys::path_serde")]
    backup: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Folder(#[serde(with = "nono_sys::path_serde")] PathBuf);

/// Earlier content of a file, or the reason why it cannot be read.
pub(super) type Original = Result<Option<Vec<u8>>, InstallError>;

fn digest(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

impl InstallRecord {
    pub(super) fn path(state_dir: &Path) -> PathBuf {
        state_dir.join("hooks.json")
    }

    pub(super) fn load(state_dir: &Path) -> Result<InstallRecord, InstallError> {
        let path = InstallRecord::path(state_dir);
        let Some(bytes) = read(&path)? else { return Ok(InstallRecord::default()) };
        serde_json::from_slice(&bytes).map_err(|error| InstallError::Record { path, what: error.to_string() })
    }

    pub(super) fn save(&self, state_dir: &Path) -> Result<(), InstallError> {
        let path = InstallRecord::path(state_dir);
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| InstallError::Record { path: path.clone(), what: error.to_string() })?;
        text.push(b'\n');
        nono_sys::fs::write_whole(&path, &text).map_err(InstallError::io(&path))
    }

    fn find(&self, path: &Path, agent: Agent) -> Option<&File> {
        self.files.iter().find(|file| file.path == path && file.agent == agent.name())
    }

    /// Content before the install, if the file is still what nono left: `Some(Ok(None))` means no file. `None`: the
    /// file was changed since, or the backup is gone or altered.
    pub(super) fn original(&self, path: &Path, agent: Agent, now: &[u8]) -> Option<Original> {
        let file = self.find(path, agent).filter(|file| file.after == digest(now))?;
        let Some(before) = &file.before else { return Some(Ok(None)) };
        match read(&before.backup) {
            Ok(Some(bytes)) if digest(&bytes) == before.digest => Some(Ok(Some(bytes))),
            _ => None,
        }
    }

    /// Record that an install wrote this file. The content before an earlier install stays on record, if the file was
    /// not changed in between.
    pub(super) fn installed(
        &mut self,
        path: &Path,
        agent: Agent,
        bytes: (Option<&[u8]>, &[u8]),
        backup: Option<PathBuf>,
        folders: Vec<PathBuf>,
    ) {
        let (before, after) = bytes;
        let earlier = self.forget(path, agent);
        let kept = earlier.filter(|file| before.is_some_and(|before| file.after == digest(before)));
        let file = match kept {
            Some(file) => File { after: digest(after), ..file },
            None => File {
                agent: agent.name().to_owned(),
                path: path.to_owned(),
                after: digest(after),
                before: before.zip(backup).map(|(bytes, backup)| Before { digest: digest(bytes), backup }),
                folders: folders.into_iter().map(Folder).collect(),
            },
        };
        self.files.push(file);
    }

    /// Drop the record of a file: nono's part is gone.
    pub(super) fn forget(&mut self, path: &Path, agent: Agent) -> Option<File> {
        let at = self.files.iter().position(|file| file.path == path && file.agent == agent.name())?;
        Some(self.files.remove(at))
    }
}

impl File {
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.0.clone()).collect()
    }
}
