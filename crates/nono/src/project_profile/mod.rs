//! The profile of a project, `.nono/profile.json`: found, read once, and used as far as the user agreed to it.
//!
//! Its author is not the user at the terminal: it came with a clone, or an agent wrote it. So what it opens needs the
//! user's agreement (`agreement`) to its bytes and to what they mean on this host; what it closes holds without one,
//! since ignoring that would give the command more than either side wants. The bytes that were read are the ones
//! judged, shown and used. Anything doubtful (a link, another user's file, too large) is an error, not a reason to run
//! without the profile.

mod agreement;
mod read;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use nono_checkpoint::{CheckpointError, project};
use nono_policy::profile::PROJECT_FILE;
use nono_policy::{
    EffectiveProfile, HostContext, HostFacts, PolicyData, PolicyError, ProfileError, ProjectEntry,
    ProjectOverlay, ProjectProfile,
};
use nono_sys::errno;
use nono_sys::hex;
use nono_sys::time;
use sha2::{Digest, Sha256};
use thiserror::Error;

pub use agreement::Agreement;

use nono_policy::state_dir::StateFileError;

/// Reasons why a project's profile cannot be used. The command is not run then.
#[derive(Debug, Error)]
pub enum ProjectProfileError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("the project's profile: {0}")]
    Policy(#[from] PolicyError),
    #[error("{} is a link; a project's profile must be a regular file", .path.display())]
    Link { path: PathBuf },
    #[error("{} belongs to user {uid}; a project's profile must belong to you", .path.display())]
    Foreign { path: PathBuf, uid: u32 },
    #[error("{} can be written by others (mode {mode:04o})", .path.display())]
    WritableByOthers { path: PathBuf, mode: u32 },
    #[error(transparent)]
    Save(#[from] StateFileError),
    #[error("{}: {}", .path.display(), errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
}

impl ProjectProfileError {
    /// The next step for the user.
    pub fn hint(&self) -> String {
        let without = "--no-project-profile runs without it";
        match self {
            ProjectProfileError::WritableByOthers { path, .. } => {
                format!("chmod go-w {}; {without}", path.display())
            }
            ProjectProfileError::Profile(error) => match error.hint() {
                Some(hint) => format!("{hint}; {without}"),
                None => without.to_owned(),
            },
            ProjectProfileError::Save(StateFileError::State(error)) => error.hint().unwrap_or_default(),
            // The policy's hints are about grants of the user's own.
            _ => without.to_owned(),
        }
    }
}

/// The user's decision about a project's profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The profile opens nothing, so no agreement is needed.
    ClosesOnly,
    /// The user agreed to exactly this content.
    Agreed,
    /// The user declined exactly this content.
    Declined,
    /// The user decided on another content or meaning.
    Changed,
    New,
}

impl Standing {
    /// Name in `nono status --json`.
    pub fn name(self) -> &'static str {
        match self {
            Standing::ClosesOnly => "closes_only",
            Standing::Agreed => "agreed",
            Standing::Declined => "declined",
            Standing::Changed => "changed",
            Standing::New => "new",
        }
    }

    /// Whether the whole profile is used.
    pub fn is_used(self) -> bool {
        matches!(self, Standing::Agreed | Standing::ClosesOnly)
    }
}

/// A profile file with its digest, read once.
#[derive(Clone, Debug)]
struct Carried {
    profile: ProjectProfile,
    digest: String,
}

/// The profile of the project around a directory.
#[derive(Clone, Debug)]
pub struct ProjectProfileHere {
    nearest: Carried,
    /// Profiles of parent folders, up to the project's root; only what they close holds.
    above: Vec<Carried>,
    pub meaning: EffectiveProfile,
    pub standing: Standing,
    /// The user's previous decision.
    pub before: Option<Agreement>,
}

/// The profile for commands that start in `context.cwd`, with the user's decision about it.
pub fn look(context: &HostContext) -> Result<Option<ProjectProfileHere>, ProjectProfileError> {
    let mut carried = carried(context)?.into_iter();
    let Some(nearest) = carried.next() else { return Ok(None) };
    let meaning = nearest.profile.meaning(context, PolicyData::embedded(), &HostFacts)?;
    let before = Agreement::load(&context.state_dir, &nearest.profile.root);
    let standing = match &before {
        _ if !meaning.widens() => Standing::ClosesOnly,
        None => Standing::New,
        Some(known) if !known.is_of(&nearest.digest, &meaning) => Standing::Changed,
        Some(known) if known.agreed => Standing::Agreed,
        Some(_) => Standing::Declined,
    };
    Ok(Some(ProjectProfileHere { nearest, above: carried.collect(), meaning, standing, before }))
}

/// All profiles from the working directory up to the project's root, nearest first.
fn carried(context: &HostContext) -> Result<Vec<Carried>, ProjectProfileError> {
    let cwd = context.cwd.canonicalize().unwrap_or_else(|_| context.cwd.clone());
    let Some(home) = context.home.clone() else { return Ok(Vec::new()) };
    let host = nono_checkpoint::Host { state_dir: context.state_dir.clone(), home };
    let root = match project::root_of(&host, &cwd) {
        Ok(root) => root.dir,
        // The home folder, system folders and nono's own folder are no projects.
        Err(CheckpointError::TooBroad { .. } | CheckpointError::NoProject { .. }) => return Ok(Vec::new()),
        Err(error) => {
            return Err(ProjectProfileError::Io { path: cwd, source: io::Error::other(error.to_string()) });
        }
    };
    let dirs = cwd.ancestors().take_while(|dir| dir.starts_with(&root));
    let mut found = Vec::new();
    for dir in dirs {
        if let Some(content) = read::content(dir, &context.state_dir)? {
            let digest = hex::encode(&Sha256::digest(&content));
            let profile = ProjectProfile::read(&content, dir, &dir.join(PROJECT_FILE))?;
            found.push(Carried { profile, digest });
        }
    }
    Ok(found)
}

impl ProjectProfileHere {
    pub fn file(&self) -> &Path {
        &self.nearest.profile.file
    }

    /// The folder of the nearest profile.
    pub fn root(&self) -> &Path {
        &self.nearest.profile.root
    }

    /// SHA-256 of the file.
    pub fn digest(&self) -> &str {
        &self.nearest.digest
    }

    /// Overlays for a run: the whole profile if it was agreed to, otherwise only what it closes.
    pub fn overlays(&self, context: &HostContext) -> Result<Vec<ProjectOverlay>, ProjectProfileError> {
        let Carried { profile, digest } = &self.nearest;
        let agreed = self.standing.is_used();
        let used = if agreed { profile.agreed(&self.meaning, context)? } else { profile.closing(context)? };
        let overlay = |carried: &Carried, agreed, profile| ProjectOverlay {
            file: carried.profile.file.clone(),
            digest: carried.digest.clone(),
            agreed,
            profile,
        };
        let mut overlays =
            vec![overlay(&Carried { profile: profile.clone(), digest: digest.clone() }, agreed, used)];
        for carried in &self.above {
            overlays.push(overlay(carried, false, carried.profile.closing(context)?));
        }
        Ok(overlays)
    }

    /// Entries added and entries removed since the user agreed.
    pub fn differences(&self) -> (Vec<ProjectEntry>, Vec<ProjectEntry>) {
        let agreed = self.before.as_ref().filter(|before| before.agreed);
        let (now, then) =
            (self.meaning.entries(), agreed.map(|before| before.meaning.entries()).unwrap_or_default());
        let without = |list: &[ProjectEntry], other: &[ProjectEntry]| {
            list.iter().filter(|entry| !other.contains(entry)).cloned().collect()
        };
        (without(&now, &then), without(&then, &now))
    }

    /// Whether the user agreed to an earlier content.
    pub fn was_agreed(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.agreed)
    }

    /// Save the user's decision about exactly this content.
    pub fn answer(&mut self, state_dir: &Path, agreed: bool) -> Result<(), ProjectProfileError> {
        let answer = Agreement {
            project: self.root().to_owned(),
            content: self.digest().to_owned(),
            meaning: self.meaning.clone(),
            agreed,
            time: time::now_iso(),
        };
        answer.save(state_dir)?;
        self.standing = if agreed { Standing::Agreed } else { Standing::Declined };
        self.before = Some(answer);
        Ok(())
    }
}

/// Remove the decision about the project in this folder. Returns whether there was one.
pub fn forget(state_dir: &Path, root: &Path) -> Result<bool, ProjectProfileError> {
    let path = state_dir.join(agreement::file(root));
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(ProjectProfileError::Io { path, source }),
    }
}
