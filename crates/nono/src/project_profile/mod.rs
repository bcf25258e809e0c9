//! The profile that a project carries, `.nono/profile.json`: found, read once, and used as far as a person agreed to it.
//!
//! Whoever wrote it is not the person at the terminal: it came with a clone, or an agent made it. So what it opens needs
//! an agreement (`agreement`) to its bytes and to what they mean on this host; what it closes holds without one, since
//! leaving that out would run the command wider than either side wants. The bytes that were read are those that are
//! judged, shown and used. Everything that makes it doubtful (a link, another's file, too large) is an error, and not a
//! reason to run without it.

mod agreement;
mod read;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use nono_checkpoint::{CheckpointError, project};
use nono_policy::profile::PROJECT_FILE;
use nono_policy::{
    HostContext, HostFacts, Meaning, PolicyData, PolicyError, ProfileError, ProjectEntry, ProjectOverlay,
    ProjectProfile,
};
use nono_sys::errno;
use sha2::{Digest, Sha256};
use thiserror::Error;

pub use agreement::Agreement;

use crate::helper::hex;
use crate::state_dir::StateDirError;

/// Why a project's profile cannot be used. The command is not run then.
#[derive(Debug, Error)]
pub enum ProjectProfileError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("the project's profile: {0}")]
    Policy(#[from] PolicyError),
    #[error("{} is a link, and a project's profile has to be a file of its own", .path.display())]
    Link { path: PathBuf },
    #[error("{} belongs to user {uid}, and a project's profile has to be yours", .path.display())]
    Foreign { path: PathBuf, uid: u32 },
    #[error("{} can be written by others (mode {mode:04o})", .path.display())]
    WritableByOthers { path: PathBuf, mode: u32 },
    #[error(transparent)]
    State(#[from] StateDirError),
    #[error("{}: {}", .path.display(), errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
}

impl ProjectProfileError {
    /// What to do about it.
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
            ProjectProfileError::State(error) => error.hint().unwrap_or_default(),
            // Hints of the policy are for grants of the person's own.
            _ => without.to_owned(),
        }
    }
}

/// How a person stands to a project's profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It opens nothing, so there is nothing to agree to.
    ClosesOnly,
    /// To exactly this.
    Agreed,
    /// To exactly this: no.
    Declined,
    /// To something else: it was changed, or leads elsewhere.
    Changed,
    New,
}

impl Standing {
    /// As `nono status --json` has it.
    pub fn name(self) -> &'static str {
        match self {
            Standing::ClosesOnly => "closes_only",
            Standing::Agreed => "agreed",
            Standing::Declined => "declined",
            Standing::Changed => "changed",
            Standing::New => "new",
        }
    }

    /// Whether all of it is used.
    pub fn is_used(self) -> bool {
        matches!(self, Standing::Agreed | Standing::ClosesOnly)
    }
}

/// A file with its content, read once.
#[derive(Clone, Debug)]
struct Carried {
    profile: ProjectProfile,
    digest: String,
}

/// The profile of the project around a directory.
#[derive(Clone, Debug)]
pub struct ProjectProfileHere {
    nearest: Carried,
    /// Those of folders above, up to the project's own: what they close holds as well.
    above: Vec<Carried>,
    pub meaning: Meaning,
    pub standing: Standing,
    /// What was agreed to, or declined, before.
    pub before: Option<Agreement>,
}

/// The profile for commands that start in `context.cwd`, with how the person stands to it.
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

/// All profiles from the working directory up to the project's folder, the nearest first.
fn carried(context: &HostContext) -> Result<Vec<Carried>, ProjectProfileError> {
    let cwd = context.cwd.canonicalize().unwrap_or_else(|_| context.cwd.clone());
    let Some(home) = context.home.clone() else { return Ok(Vec::new()) };
    let host = nono_checkpoint::Host { state_dir: context.state_dir.clone(), home };
    let root = match project::root_of(&host, &cwd) {
        Ok(root) => root.dir,
        // The home folder, the system's own, nono's own: no project.
        Err(CheckpointError::TooBroad { .. } | CheckpointError::NoProject { .. }) => return Ok(Vec::new()),
        Err(error) => {
            return Err(ProjectProfileError::Io { path: cwd, source: io::Error::other(error.to_string()) });
        }
    };
    let dirs = cwd.ancestors().take_while(|dir| dir.starts_with(&root));
    let mut found = Vec::new();
    for dir in dirs {
        if let Some(content) = read::content(dir, &context.state_dir)? {
            let digest = hex(&Sha256::digest(&content));
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

    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.nearest.profile.root
    }

    /// SHA-256 of the content.
    pub fn digest(&self) -> &str {
        &self.nearest.digest
    }

    /// What reaches a run: all of it where that was agreed to, else what it closes.
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

    /// Entries that are there and were not when a person agreed, and the other way round.
    pub fn differences(&self) -> (Vec<ProjectEntry>, Vec<ProjectEntry>) {
        let agreed = self.before.as_ref().filter(|before| before.agreed);
        let (now, then) =
            (self.meaning.entries(), agreed.map(|before| before.meaning.entries()).unwrap_or_default());
        let without = |list: &[ProjectEntry], other: &[ProjectEntry]| {
            list.iter().filter(|entry| !other.contains(entry)).cloned().collect()
        };
        (without(&now, &then), without(&then, &now))
    }

    /// Whether a person agreed to something here before.
    pub fn was_agreed(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.agreed)
    }

    /// Keeps a person's answer to exactly this.
    pub fn answer(&mut self, state_dir: &Path, agreed: bool) -> Result<(), ProjectProfileError> {
        let answer = Agreement::new(self.root(), self.digest(), &self.meaning, agreed);
        answer.save(state_dir)?;
        self.standing = if agreed { Standing::Agreed } else { Standing::Declined };
        self.before = Some(answer);
        Ok(())
    }
}

/// Takes back whatever was answered about the project in this folder. Returned is whether there was something.
pub fn forget(state_dir: &Path, root: &Path) -> Result<bool, ProjectProfileError> {
    Agreement::remove(state_dir, root)
}
