//! Reading files that decide what a command may do: only where no other user, and above all not the command, can change
//! them.
//!
//! The path is followed component by component, because every folder and link on the way matters as much as the file: a
//! process that can replace one of them chooses what is read. The file that was checked is the one that is read; only
//! root and this user could change it in between.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nono_policy::links::walk;
use nono_policy::{AccessMode, AccessRule, QueryResult, ResolvedPolicy, RuleAccess, is_within, query_path};
use nono_sys::{errno, process};
use thiserror::Error;

const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;
const OPEN_TO_OTHERS: u32 = 0o077;

/// Reasons why a file is not trusted.
#[derive(Debug, Error)]
pub enum TrustError {
    #[error("cannot read {}: {}", .path.display(), errno::describe(.source))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is not a regular file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("{} is larger than {limit} bytes", .path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{} is not UTF-8 text", .path.display())]
    NotText { path: PathBuf },
    #[error("{} belongs to user {owner}{}", .place.display(), on_the_way(.place, .file))]
    ForeignOwner { file: PathBuf, place: PathBuf, owner: u32 },
    #[error("{} can be written by others (mode {mode:04o}){}", .place.display(), on_the_way(.place, .file))]
    WritableByOthers { file: PathBuf, place: PathBuf, mode: u32 },
    #[error("{} can be read by others (mode {mode:04o})", .file.display())]
    ReadableByOthers { file: PathBuf, mode: u32 },
    #[error("{} has {names} hard links, and could be changed through another one", .file.display())]
    ManyNames { file: PathBuf, names: u64 },
    #[error(
        "{} is writable inside the sandbox through the grant of {}{}",
        .place.display(), .grant.display(), on_the_way(.place, .file)
    )]
    WritableInside { file: PathBuf, place: PathBuf, grant: PathBuf },
    #[error("{} is readable inside the sandbox through the grant of {}", .file.display(), .grant.display())]
    ReadableInside { file: PathBuf, grant: PathBuf },
}

impl TrustError {
    /// The next step for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            TrustError::WritableByOthers { place, .. } => Some(format!("chmod go-w {}", place.display())),
            TrustError::ReadableByOthers { file, .. } => Some(format!("chmod 600 {}", file.display())),
            TrustError::ForeignOwner { .. } => Some("keep it in a folder that you or root own".to_owned()),
            TrustError::ManyNames { file, .. } => Some(format!("copy {} and use the copy", file.display())),
            TrustError::WritableInside { .. } | TrustError::ReadableInside { .. } => {
                Some("keep it outside the grants of the command".to_owned())
            }
            _ => None,
        }
    }
}

fn on_the_way(place: &Path, file: &Path) -> String {
    if place == file { String::new() } else { format!(", and leads to {}", file.display()) }
}

/// Whether the file must be unreadable for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    Open,
    Secret,
}

/// The text and resolved path of a file that only this user or root can have written. `path` is absolute.
pub fn read(
    path: &Path,
    policy: &ResolvedPolicy,
    secrecy: Secrecy,
    limit: u64,
) -> Result<(String, PathBuf), TrustError> {
    let unreadable = |source| TrustError::Unreadable { path: path.to_owned(), source };
    let way = Way::follow(path).map_err(unreadable)?;
    let end = way.end.as_path();
    for place in &way.places {
        check_place(place, end)?;
    }
    check_grants(&way, policy)?;
    // Without NONBLOCK, opening a FIFO would wait for a writer.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(end)
        .map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    check_file(&meta, end)?;
    if secrecy == Secrecy::Secret {
        check_secret(end, &meta, policy)?;
    }
    Ok((read_text(file, end, limit)?, way.end))
}

/// A folder, link or file on the path, with its metadata.
struct PathStep {
    path: PathBuf,
    meta: Metadata,
}

struct Way {
    places: Vec<PathStep>,
    /// The path without links.
    end: PathBuf,
}

impl Way {
    fn follow(path: &Path) -> io::Result<Way> {
        let mut places = vec![PathStep::at("/".into())?];
        let end = walk(path, |_, next| {
            let step = PathStep::at(next.to_owned())?;
            let target = step.meta.is_symlink().then(|| std::fs::read_link(next)).transpose();
            places.push(step);
            target
        })?;
        Ok(Way { places, end })
    }
}

impl PathStep {
    fn at(path: PathBuf) -> io::Result<PathStep> {
        Ok(PathStep { meta: std::fs::symlink_metadata(&path)?, path })
    }
}

/// Check that only this user or root can replace this component. In a folder like `/tmp` (sticky) others may add names,
/// but only owners can change them.
fn check_place(place: &PathStep, file: &Path) -> Result<(), TrustError> {
    let PathStep { path, meta } = place;
    let (owner, mode) = (meta.uid(), meta.mode() & 0o7777);
    if owner != 0 && owner != process::uid() {
        return Err(TrustError::ForeignOwner { file: file.to_owned(), place: path.clone(), owner });
    }
    // The mode of a link has no meaning.
    let shared = meta.is_dir() && mode & STICKY != 0;
    if !meta.is_symlink() && !shared && mode & WRITABLE_BY_OTHERS != 0 {
        return Err(TrustError::WritableByOthers { file: file.to_owned(), place: path.clone(), mode });
    }
    Ok(())
}

/// Check that no component of the path is in a folder that the command can write: it could put another file there. This
/// holds for masked components, too: the folder could be renamed, and the next run would read another file.
fn check_grants(way: &Way, policy: &ResolvedPolicy) -> Result<(), TrustError> {
    let writing = |rule: &&AccessRule| matches!(rule.access, RuleAccess::Mode(access) if access.writes());
    for rule in policy.rules.iter().filter(writing) {
        let around = |path: &Path| path.parent().is_some_and(|dir| is_within(dir, &rule.path));
        let changed = way
            .places
            .iter()
            .find(|place| around(&place.path) || place.path == way.end && rule.path == way.end);
        if let Some(place) = changed {
            let grant = policy.grants.get(rule.grant).map_or(&rule.path, |grant| &grant.resolved);
            return Err(TrustError::WritableInside {
                file: way.end.clone(),
                place: place.path.clone(),
                grant: grant.clone(),
            });
        }
    }
    Ok(())
}

fn check_file(meta: &Metadata, path: &Path) -> Result<(), TrustError> {
    if !meta.is_file() {
        return Err(TrustError::NotAFile { path: path.to_owned() });
    }
    if meta.nlink() > 1 {
        return Err(TrustError::ManyNames { file: path.to_owned(), names: meta.nlink() });
    }
    Ok(())
}

fn check_secret(path: &Path, meta: &Metadata, policy: &ResolvedPolicy) -> Result<(), TrustError> {
    let mode = meta.mode() & 0o7777;
    if mode & OPEN_TO_OTHERS != 0 {
        return Err(TrustError::ReadableByOthers { file: path.to_owned(), mode });
    }
    match query_path(policy, path, true, AccessMode::Read) {
        QueryResult::Allowed { granted_path, .. } => {
            Err(TrustError::ReadableInside { file: path.to_owned(), grant: granted_path })
        }
        QueryResult::Denied { .. } => Ok(()),
    }
}

fn read_text(file: File, path: &Path, limit: u64) -> Result<String, TrustError> {
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| TrustError::Unreadable { path: path.to_owned(), source })?;
    if bytes.len() as u64 > limit {
        return Err(TrustError::TooLarge { path: path.to_owned(), limit });
    }
    String::from_utf8(bytes).map_err(|_| TrustError::NotText { path: path.to_owned() })
}
