//! Symbolic links in a path that the user wrote.
//!
//! A command that may write a folder can make a link there, or replace a folder by one, and wait until the user grants
//! that path in a later run. So a link that leads out of its folder widens nothing by itself: the user agrees to that
//! link with that target, or writes the target. Links that no command can have made are followed without asking: those
//! of the system (see [`Facts::is_system_link`]), and those directly in the home folder, where even a grant of the
//! whole home lets no command make a name (`resolve/carve.rs`).

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::access::CapabilitySource;
use crate::error::PolicyError;
use crate::facts::Facts;
use crate::is_within;
use crate::profile::MergedProfile;
use crate::request::{HostContext, RunRequest};

/// Maximum number of links in one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// A link that leads out of the folder it stands in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EscapingLink {
    /// Path of the link itself, without other links.
    #[serde(with = "crate::path_serde")]
    pub link: PathBuf,
    /// Path it finally resolves to.
    #[serde(with = "crate::path_serde")]
    pub target: PathBuf,
}

/// Result of following a path link by link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTrace {
    pub end: PathBuf,
    pub escaping_links: Vec<EscapingLink>,
}

/// A path that the user wrote, in a flag or in a profile, and that a link leads elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedLink {
    /// Path as written, made absolute.
    pub path: PathBuf,
    pub way: LinkTrace,
    pub source: CapabilitySource,
}

pub fn follow(facts: &dyn Facts, home: Option<&Path>, path: &Path) -> io::Result<LinkTrace> {
    let home = home.and_then(|home| facts.resolve(home).ok());
    let is_home = |dir: &Path| home.as_ref().is_some_and(|home| home.path == dir);
    let mut escaping_links = Vec::new();
    let end = walk(path, |dir, next| {
        if !facts.is_symlink(next) {
            return Ok(None);
        }
        if !is_home(dir) && !facts.is_system_link(next) {
            let target = facts.resolve(next)?.path;
            if !is_within(&target, dir) {
                escaping_links.push(EscapingLink { link: next.to_path_buf(), target });
            }
        }
        facts.read_link(next).map(Some)
    })?;
    Ok(LinkTrace { end, escaping_links })
}

/// Follows an absolute path component by component, and returns where it ends. `look` gets the folder reached so far
/// and the path of the next component; it returns the target of a link as it is written, or `None`.
pub fn walk(
    path: &Path,
    mut look: impl FnMut(&Path, &Path) -> io::Result<Option<PathBuf>>,
) -> io::Result<PathBuf> {
    let mut waiting = names(path);
    let mut end = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = waiting.pop_front() {
        if name == ".." {
            end.pop();
            continue;
        }
        let next = end.join(&name);
        let Some(written) = look(&end, &next)? else {
            end = next;
            continue;
        };
        links += 1;
        if links > MOST_LINKS {
            return Err(io::Error::other("too many links"));
        }
        if written.is_absolute() {
            end = PathBuf::from("/");
        }
        let mut rest = names(&written);
        rest.append(&mut waiting);
        waiting = rest;
    }
    Ok(end)
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

/// Refuses a path that leads out by a link the user has not agreed to. `found` is the resolved path.
pub(crate) fn check(
    facts: &dyn Facts,
    (request, host): (&RunRequest, &HostContext),
    (original, path): (&Path, &Path),
    found: &Path,
    source: &CapabilitySource,
) -> Result<(), PolicyError> {
    // Fast path: a path with a link in it resolves to another path.
    if found == path {
        return Ok(());
    }
    let failed = |source| PolicyError::Resolve { path: original.to_path_buf(), source };
    let way = follow(facts, host.home.as_deref(), path).map_err(failed)?;
    if way.end != found {
        return Err(failed(io::Error::other("a link in it changed at this moment")));
    }
    match way.escaping_links.into_iter().find(|escaping| !request.links.contains(escaping)) {
        None => Ok(()),
        Some(EscapingLink { link, .. }) => Err(PolicyError::LeadsOut {
            path: original.to_path_buf(),
            link,
            found: found.to_path_buf(),
            from: source.clone(),
        }),
    }
}

/// Every path of a request and its profile that leads out by a link, agreed to or not. A path that cannot be followed
/// is left out: resolution reports the reason.
pub fn typed(
    request: &RunRequest,
    host: &HostContext,
    profile: &MergedProfile,
    facts: &dyn Facts,
) -> Vec<TypedLink> {
    let flags = request.grants.iter().map(|grant| &grant.path);
    let flags = flags.chain(&request.unix_sockets).chain(&request.bypass_protection);
    let flags = flags.map(|path| (host.absolute(path), CapabilitySource::User));
    let files = &profile.filesystem;
    let entries = files.grants.iter().map(|grant| &grant.at);
    let entries = entries.chain(&files.unix_socket).chain(&files.bypass_protection);
    // The user agreed to exact paths together with their targets.
    let entries = entries.filter(|entry| !entry.exact).filter_map(|entry| {
        let path = crate::expand::expand(&entry.path, host).ok()?;
        Some((path, CapabilitySource::Profile(entry.profile.clone())))
    });
    let mut all: Vec<TypedLink> = Vec::new();
    for (path, source) in flags.chain(entries) {
        if all.iter().any(|known| known.path == path) {
            continue;
        }
        let Ok(way) = follow(facts, host.home.as_deref(), &path) else { continue };
        if !way.escaping_links.is_empty() {
            all.push(TypedLink { path, way, source });
        }
    }
    all
}

#[cfg(test)]
mod tests;
