//! Resolution of a document's groups to grants.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::{DenyOverlap, DocumentError};
use super::{Allow, DocumentGroup, DocumentRole, PolicyDocument};
use crate::access::{AccessMode, CapabilitySource};
use crate::capability_set::{CapabilitySet, GrantShape};
use crate::error::CapabilityError;
use crate::facts::{Facts, HostFacts};
use crate::resolved::NetworkPolicy;

/// Result of resolving groups of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedDocument {
    /// The groups that are for this platform, in the order they were asked for.
    pub names: Vec<String>,
    pub needs_unlink_overrides: bool,
    /// Denied paths: each expanded as written, and where it leads.
    pub deny_paths: Vec<PathBuf>,
}

impl PolicyDocument {
    /// Adds what the groups allow to `caps`, and closes its network where one says so. On an error `caps` is as it was.
    pub fn resolve<S: AsRef<str>>(
        &self,
        names: &[S],
        place: &DocumentRole,
        caps: &mut CapabilitySet,
    ) -> Result<ResolvedDocument, DocumentError> {
        let groups = self.named(names, place)?;
        let mut changed = caps.clone();
        let mut resolved = ResolvedDocument::default();
        for (name, group) in groups {
            if let Some(allow) = &group.allow {
                grant(&mut changed, name, allow, place)?;
            }
            if group.network.as_ref().is_some_and(|network| network.block || network.needs_proxy()) {
                changed.set_network(NetworkPolicy::Blocked);
            }
            resolved.deny_paths.extend(denied(name, group, place)?);
            resolved.needs_unlink_overrides |=
                group.deny.as_ref().is_some_and(|deny| deny.unlink_override_for_user_writable);
            resolved.names.push(name.to_owned());
        }
        *caps = changed;
        Ok(resolved)
    }

    pub fn deny_paths<S: AsRef<str>>(
        &self,
        names: &[S],
        place: &DocumentRole,
    ) -> Result<Vec<PathBuf>, DocumentError> {
        let groups = self.named(names, place)?.into_iter();
        let lists = groups.map(|(name, group)| denied(name, group, place));
        Ok(lists.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

fn grant(
    caps: &mut CapabilitySet,
    name: &str,
    allow: &Allow,
    place: &DocumentRole,
) -> Result<(), DocumentError> {
    let lists = [
        (&allow.read, AccessMode::Read),
        (&allow.write, AccessMode::Write),
        (&allow.readwrite, AccessMode::ReadWrite),
    ];
    for (paths, access) in lists {
        for text in paths {
            let path = expand(name, text, place)?;
            let source = CapabilitySource::Group(name.to_owned());
            match caps.add(&path, access, GrantShape::Any, source) {
                Ok(()) => {}
                Err(error) if is_absent(&error) => {}
                Err(source) => return Err(DocumentError::Grant { group: name.to_owned(), source }),
            }
        }
    }
    Ok(())
}

/// Whether a path of a group is to be skipped: it is missing here, or this user may not look it up.
fn is_absent(error: &CapabilityError) -> bool {
    match error {
        CapabilityError::PathNotFound { .. } => true,
        CapabilityError::Resolve { source, .. } => {
            matches!(source.kind(), ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
        }
        CapabilityError::ExpectedDirectory { .. }
        | CapabilityError::ExpectedFile { .. }
        | CapabilityError::Elsewhere { .. } => false,
    }
}

fn denied(name: &str, group: &DocumentGroup, place: &DocumentRole) -> Result<Vec<PathBuf>, DocumentError> {
    let mut paths = Vec::new();
    for text in group.deny.iter().flat_map(|deny| &deny.access) {
        let path = expand(name, text, place)?;
        let leads = leads_to(&path).filter(|leads| *leads != path);
        paths.push(path);
        paths.extend(leads);
    }
    Ok(paths)
}

/// Resolved path; for a missing one, where it would be created.
fn leads_to(path: &Path) -> Option<PathBuf> {
    if let Ok(found) = HostFacts.resolve(path) {
        return Some(found.path);
    }
    let (parent, name) = (path.parent()?, path.file_name()?);
    Some(HostFacts.resolve(parent).ok()?.path.join(name))
}

/// Expands `~`, `$HOME` and `$TMPDIR`, alone or before a `/`. Everything else is literal.
fn expand(group: &str, text: &str, place: &DocumentRole) -> Result<PathBuf, DocumentError> {
    let (start, rest) = text.split_once('/').map_or((text, None), |(start, rest)| (start, Some(rest)));
    let (variable, value) = match start {
        "~" | "$HOME" => ("HOME", &place.home),
        "$TMPDIR" => ("TMPDIR", &place.tmpdir),
        _ => return Ok(PathBuf::from(text)),
    };
    let (group, text) = (group.to_owned(), text.to_owned());
    match value {
        None => Err(DocumentError::Unset { group, text, variable }),
        Some(value) if !value.is_absolute() => {
            Err(DocumentError::NotAbsolute { group, text, variable, value: value.clone() })
        }
        // A second slash must not turn the rest into a path of its own.
        Some(value) => {
            Ok(rest.map_or_else(|| value.clone(), |rest| value.join(rest.trim_start_matches('/'))))
        }
    }
}

/// Refuses a denied path below a directory that the user granted, where nothing would keep it closed. Lexical.
pub fn deny_overlaps<P: AsRef<Path>>(deny: &[P], caps: &CapabilitySet) -> Result<(), DenyOverlap> {
    let by_user = |grant: &&crate::FsCapability| !grant.is_file && grant.source == CapabilitySource::User;
    for deny in deny.iter().map(AsRef::as_ref) {
        let mut grants = caps.fs_capabilities().iter().filter(by_user);
        if let Some(grant) = grants.find(|grant| deny != grant.resolved && deny.starts_with(&grant.resolved))
        {
            return Err(DenyOverlap { deny: deny.to_path_buf(), grant: grant.resolved.clone() });
        }
    }
    Ok(())
}
