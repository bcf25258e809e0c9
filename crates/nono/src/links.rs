//! Symbolic links that the user agreed to, each with its target, in `links.json` of nono's state folder.
//!
//! `nono_policy::links` decides which links need agreement. An agreement holds for one link and one target: if a
//! command changes the target, the user is asked again.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nono_policy::links::{self, EscapingLink, LinkTrace, TypedLink};
use nono_policy::{CapabilitySource, HostFacts, MergedProfile, RunRequest};
use nono_sys::fs;
use rustix::fs::{Mode, OFlags, openat};

use crate::session::Host;
use nono_policy::state_dir::{self, StateFileError};

const FILE: &str = "links.json";

/// Add the links that were agreed to before to the request. Returns the paths with links that need agreement.
pub fn recall(request: &mut RunRequest, profile: &MergedProfile, host: &Host) -> Vec<TypedLink> {
    let typed = links::typed(request, &host.context, profile, &HostFacts);
    let (known, doubtful) = sort(typed, host);
    request.links.extend(known.into_iter().flat_map(|typed| typed.way.escaping_links));
    doubtful
}

/// The target of a path that is not a grant; and the path itself, if it leaves a folder through a link that needs
/// agreement.
pub fn look(path: &Path, host: Option<&Host>) -> io::Result<(PathBuf, Option<TypedLink>)> {
    let home = host.and_then(|host| host.context.home.as_deref());
    let way = links::follow(&HostFacts, home, path)?;
    let end = way.end.clone();
    let typed = TypedLink { path: path.to_owned(), way, source: CapabilitySource::User };
    if typed.way.escaping_links.is_empty() {
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
    let is_known =
        |LinkTrace { escaping_links, .. }: &LinkTrace| escaping_links.iter().all(|one| agreed.contains(one));
    typed.into_iter().partition(|typed| is_known(&typed.way))
}

/// The saved agreements; an unreadable file counts as none.
fn agreed(state_dir: &Path) -> Vec<EscapingLink> {
    let bytes = std::fs::read(state_dir.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

pub fn agree(state_dir: &Path, escaping_links: &[EscapingLink]) -> Result<(), StateFileError> {
    let mut all = agreed(state_dir);
    // A link has one target.
    all.retain(|old| escaping_links.iter().all(|new| new.link != old.link));
    all.extend(escaping_links.iter().cloned());
    state_dir::save_json(state_dir, FILE, &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaping(link: &str, target: &str) -> EscapingLink {
        EscapingLink { link: link.into(), target: target.into() }
    }

    #[test]
    fn an_answer_holds_for_one_link_with_one_target() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let one = escaping("/p/build", "/data");
        agree(&state, std::slice::from_ref(&one)).unwrap();
        agree(&state, &[escaping("/p/other", "/x")]).unwrap();
        assert_eq!(agreed(&state), [one, escaping("/p/other", "/x")]);
        agree(&state, &[escaping("/p/build", "/")]).unwrap();
        assert_eq!(agreed(&state), [escaping("/p/other", "/x"), escaping("/p/build", "/")]);
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
}
