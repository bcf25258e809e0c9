//! Symbolic links that the user agreed to, each with its target, in `links.json` of nono's state folder.
//!
//! `nono_policy::links` decides which links need agreement. An agreement holds for one link and one target: if a
//! command changes the target, the user is asked again.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nono_policy::links::{self, Departure, TypedLink, Way};
use nono_policy::{CapabilitySource, HostFacts, MergedProfile, ProfileError, RunRequest};
use nono_sys::{errno, fs};
use rustix::fs::{Mode, OFlags, openat};
use thiserror::Error;

use crate::session::{self, Host};
use nono_policy::state_dir::{self, StateDirError};

const FILE: &str = "links.json";

/// Reasons why an agreement was not saved.
#[derive(Debug, Error)]
pub enum AgreeError {
    #[error(transparent)]
    State(#[from] StateDirError),
    #[error("{path}: {}", errno::describe(.source), path = .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Add the links that were agreed to before to the request. Returns the paths with links that need agreement.
pub fn recall(request: &mut RunRequest, host: &Host) -> Result<Vec<TypedLink>, ProfileError> {
    // Without a named profile, no profile opens a path.
    let named = request.profile.is_some() || !request.extends.is_empty() || !request.projects.is_empty();
    let profile = if named { session::profile(request, host)? } else { MergedProfile::default() };
    let typed = links::typed(request, &host.context, &profile, &HostFacts);
    let (known, doubtful) = sort(typed, host);
    request.links.extend(known.into_iter().flat_map(|typed| typed.way.departures));
    Ok(doubtful)
}

/// The target of a path that is not a grant; and the path itself, if it leaves a folder through a link that needs
/// agreement.
pub fn look(path: &Path, host: Option<&Host>) -> io::Result<(PathBuf, Option<TypedLink>)> {
    let home = host.and_then(|host| host.context.home.as_deref());
    let way = links::follow(&HostFacts, home, path)?;
    let end = way.end.clone();
    let typed = TypedLink { path: path.to_owned(), way, source: CapabilitySource::User };
    if typed.way.departures.is_empty() {
        return Ok((end, None));
    }
    let doubtful = host.map_or_else(|| Some(typed.clone()), |host| sort(vec![typed.clone()], host).1.pop());
    Ok((end, doubtful))
}

/// Open a file for writing, created with `mode` less the umask, at the place that [`look`] found. No link is followed
/// on the way, and only a regular file is opened. Paths in `/dev` and `/proc` are opened as they are.
pub fn create(path: &Path, place: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let mode = Mode::from_raw_mode(mode);
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return File::options().write(true).open(path);
    }
    let (Some(dir), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let folder = fs::open_path(dir)?;
    let file = File::from(openat(&folder, name, flags | OFlags::NOFOLLOW, mode)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    file.set_len(0)?;
    Ok(file)
}

/// Paths with agreement, and those without. Inside a sandbox nothing can be widened, so none needs agreement.
fn sort(typed: Vec<TypedLink>, host: &Host) -> (Vec<TypedLink>, Vec<TypedLink>) {
    if typed.is_empty() || host.nested {
        return (typed, Vec::new());
    }
    let agreed = agreed(&host.context.state_dir);
    let is_known = |Way { departures, .. }: &Way| departures.iter().all(|one| agreed.contains(one));
    typed.into_iter().partition(|typed| is_known(&typed.way))
}

/// The saved agreements; an unreadable file counts as none.
fn agreed(state_dir: &Path) -> Vec<Departure> {
    let bytes = std::fs::read(state_dir.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Save the user's agreement.
pub fn agree(state_dir: &Path, departures: &[Departure]) -> Result<(), AgreeError> {
    state_dir::ensure(state_dir)?;
    let path = state_dir.join(FILE);
    let mut all = agreed(state_dir);
    // A link has one target.
    all.retain(|old| departures.iter().all(|new| new.link != old.link));
    all.extend(departures.iter().cloned());
    let text = serde_json::to_vec_pretty(&all).map_err(io::Error::from);
    text.and_then(|text| fs::write_whole(&path, &text)).map_err(|source| AgreeError::Io { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(link: &str, target: &str) -> Departure {
        Departure { link: link.into(), target: target.into() }
    }

    #[test]
    fn an_answer_holds_for_one_link_with_one_target() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let one = departure("/p/build", "/data");
        agree(&state, std::slice::from_ref(&one)).unwrap();
        agree(&state, &[departure("/p/other", "/x")]).unwrap();
        assert_eq!(agreed(&state), [one, departure("/p/other", "/x")]);
        agree(&state, &[departure("/p/build", "/")]).unwrap();
        assert_eq!(agreed(&state), [departure("/p/other", "/x"), departure("/p/build", "/")]);
        std::fs::write(state.join(FILE), "{").unwrap();
        assert!(agreed(&state).is_empty());
    }

    #[test]
    fn a_file_is_written_where_it_was_looked_for_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (file, link, pipe) = (base.join("file"), base.join("link"), base.join("pipe"));
        std::fs::write(&file, "longer than before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for wrong in [&link, &pipe, &base] {
            assert!(create(wrong, wrong, 0o600).is_err(), "{}", wrong.display());
        }
        std::os::unix::fs::symlink(&base, base.join("folder")).unwrap();
        let behind = base.join("folder/file");
        assert!(create(&behind, &behind, 0o600).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"longer than before");
        io::Write::write_all(&mut create(&link, &file, 0o600).unwrap(), b"new").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        create(Path::new("/dev/null"), Path::new("/dev/null"), 0o600).unwrap();
    }

    #[test]
    fn no_profile_by_name_means_no_path_of_a_profile() {
        let store = nono_policy::ProfileStore::new(None);
        let default =
            store.resolve(&nono_policy::ProfileRef::Name("default".to_owned()), &[]).unwrap().filesystem;
        assert_eq!(default, nono_policy::profile::MergedFilesystem::default());
    }
}
