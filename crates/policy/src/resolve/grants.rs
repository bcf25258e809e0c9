//! Grants of a run: by flags, by profiles, by groups, and by nono itself.
//!
//! A path that the user or a profile asks for is granted or refused with an error. A path of a group is granted where
//! it exists and is not closed, and skipped with a note otherwise. nono's own grants never open a closed path either.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Inputs;
use super::protected::{Closures, refusal};
use crate::access::{AccessMode, CapabilitySource};
use crate::data::{Group, GroupKind};
use crate::error::{PolicyError, nearest};
use crate::expand::expand;
use crate::facts::{FoundKind, ResolvedPath};
use crate::request::GrantKind;
use crate::resolved::{FsCapability, PolicyNote};
use crate::{is_within, links};

/// Every grant of the run, not yet merged; the stronger sources come first.
pub(super) fn collect(
    inputs: &Inputs<'_>,
    closures: &Closures,
    notes: &mut Vec<PolicyNote>,
) -> Result<Vec<FsCapability>, PolicyError> {
    let mut collector = Collector { inputs, closures, notes, grants: Vec::with_capacity(128) };
    collector.add_request()?;
    collector.add_profile()?;
    collector.add_groups()?;
    collector.add_own();
    Ok(collector.grants)
}

/// The unix sockets the run may connect to.
pub(super) fn sockets(
    inputs: &Inputs<'_>,
    closures: &Closures,
    notes: &mut Vec<PolicyNote>,
) -> Result<Vec<FsCapability>, PolicyError> {
    let mut out = Vec::new();
    for path in &inputs.request.unix_sockets {
        out.push(socket(inputs, closures, path, &inputs.host.absolute(path), CapabilitySource::User)?);
    }
    for wanted in &inputs.profile.filesystem.unix_socket {
        let source = CapabilitySource::Profile(wanted.profile.clone());
        let path = expand(&wanted.path, inputs.host)?;
        if wanted.optional && inputs.locator.find(&path).is_err() {
            notes.push(PolicyNote::Skipped { path, source });
        } else {
            out.push(socket(inputs, closures, Path::new(&wanted.path), &path, source)?);
        }
    }
    Ok(out)
}

fn socket(
    inputs: &Inputs<'_>,
    closures: &Closures,
    original: &Path,
    path: &Path,
    source: CapabilitySource,
) -> Result<FsCapability, PolicyError> {
    let found = found(inputs, original, path, &source)?;
    if found.kind != FoundKind::Socket {
        return Err(PolicyError::NotASocket { path: original.to_path_buf() });
    }
    check_links(inputs, original, path, &found.path, &source)?;
    let access = AccessMode::ReadWrite;
    if let Some(closure) = closures.forbids(&found.path, access) {
        return Err(refusal(&closure, original));
    }
    Ok(FsCapability { original: original.to_path_buf(), resolved: found.path, access, is_file: true, source })
}

fn found(
    inputs: &Inputs<'_>,
    original: &Path,
    path: &Path,
    source: &CapabilitySource,
) -> Result<ResolvedPath, PolicyError> {
    let original = original.to_path_buf();
    if original.as_os_str().is_empty() {
        return Err(PolicyError::PathNotFound { path: original, from: source.clone() });
    }
    inputs.locator.find(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if inputs.locator.facts.is_symlink(path) => {
            PolicyError::DanglingLink { path: original, from: source.clone() }
        }
        io::ErrorKind::NotFound => PolicyError::PathNotFound { path: original, from: source.clone() },
        _ => PolicyError::Resolve { path: original, source: error },
    })
}

/// Refuses a path of a flag or profile that leads out of a folder by a link the user has not agreed to.
pub(super) fn check_links(
    inputs: &Inputs<'_>,
    original: &Path,
    path: &Path,
    found: &Path,
    source: &CapabilitySource,
) -> Result<(), PolicyError> {
    let asked = (inputs.request, inputs.host);
    links::check(inputs.locator.facts, asked, (original, path), found, source)
}

struct Collector<'a, 'b> {
    inputs: &'a Inputs<'b>,
    closures: &'a Closures,
    notes: &'a mut Vec<PolicyNote>,
    grants: Vec<FsCapability>,
}

impl Collector<'_, '_> {
    fn add_request(&mut self) -> Result<(), PolicyError> {
        for grant in &self.inputs.request.grants {
            let path = self.inputs.host.absolute(&grant.path);
            let found = self.ask(&grant.path, &path, grant.access, grant.kind, CapabilitySource::User)?;
            check_links(self.inputs, &grant.path, &path, &found, &CapabilitySource::User)?;
        }
        if self.inputs.request.allow_cwd {
            self.workdir(AccessMode::ReadWrite, CapabilitySource::User)?;
        }
        Ok(())
    }

    fn add_profile(&mut self) -> Result<(), PolicyError> {
        for grant in &self.inputs.profile.filesystem.grants {
            let source = CapabilitySource::Profile(grant.at.profile.clone());
            let path = match expand(&grant.at.path, self.inputs.host) {
                Err(PolicyError::NoHome { .. }) if grant.at.optional => continue,
                other => other?,
            };
            if grant.at.optional && self.inputs.locator.find(&path).is_err() {
                self.notes.push(PolicyNote::Skipped { path, source });
            } else {
                let found =
                    self.ask(Path::new(&grant.at.path), &path, grant.access, grant.kind, source.clone())?;
                if grant.at.exact && found != path {
                    return Err(PolicyError::NotAsAgreed { path, found, from: source });
                }
                check_links(self.inputs, Path::new(&grant.at.path), &path, &found, &source)?;
            }
        }
        let workdir = &self.inputs.profile.workdir;
        let source = CapabilitySource::Profile(workdir.profile.clone().unwrap_or_default());
        workdir.access.mode().map_or(Ok(()), |access| self.workdir(access, source))
    }

    fn workdir(&mut self, access: AccessMode, source: CapabilitySource) -> Result<(), PolicyError> {
        let cwd = self.inputs.host.cwd.clone();
        self.ask(&cwd, &cwd, access, GrantKind::Directory, source).map(drop)
    }

    /// Adds a grant of a flag or profile, in full, or fails. Returns the resolved path.
    fn ask(
        &mut self,
        original: &Path,
        path: &Path,
        access: AccessMode,
        kind: GrantKind,
        source: CapabilitySource,
    ) -> Result<PathBuf, PolicyError> {
        let found = found(self.inputs, original, path, &source)?;
        check_kind(found.kind, kind, access, original)?;
        if let Some(closure) = self.closures.forbids(&found.path, access) {
            return Err(refusal(&closure, original));
        }
        let resolved = found.path.clone();
        self.push(original, found, access, source);
        Ok(resolved)
    }

    fn add_groups(&mut self) -> Result<(), PolicyError> {
        let (inputs, chosen) = (self.inputs, &self.inputs.profile.groups);
        for name in chosen.include.iter().chain(&chosen.exclude) {
            let Some(group) = inputs.data.group(name) else {
                let nearest = nearest(name, inputs.data.groups.iter().map(|group| group.name.as_str()));
                return Err(PolicyError::UnknownGroup { name: name.clone(), nearest });
            };
            if group.kind == GroupKind::Protected && chosen.exclude.contains(name) {
                return Err(PolicyError::ProtectedGroupExcluded { name: name.clone() });
            }
        }
        let applies = |group: &&Group| match group.kind {
            GroupKind::Base => !chosen.exclude.contains(&group.name),
            GroupKind::Tool => chosen.include.contains(&group.name),
            GroupKind::Protected => false,
        };
        for group in inputs.data.groups.iter().filter(applies) {
            self.add_group(group);
        }
        Ok(())
    }

    fn add_group(&mut self, group: &Group) {
        let lists = [
            (&group.read, AccessMode::Read),
            (&group.write, AccessMode::Write),
            (&group.allow, AccessMode::ReadWrite),
            (&group.create, AccessMode::ReadWrite),
        ];
        for (list, access) in lists {
            for text in list {
                let source = CapabilitySource::Group(group.name.clone());
                match expand(text, self.inputs.host) {
                    Ok(path) => self.offer_all(path, access, &source),
                    // No home folder, or no such variable: nothing to grant.
                    Err(_) => self.notes.push(PolicyNote::Skipped { path: PathBuf::from(text), source }),
                }
            }
        }
    }

    fn offer_all(&mut self, path: PathBuf, access: AccessMode, source: &CapabilitySource) {
        let Some(start) = path.file_name().and_then(|name| name.as_bytes().strip_suffix(b"*")) else {
            return self.offer(path, access, source);
        };
        let dir = path.parent().unwrap_or(&path);
        let entries = self.inputs.locator.list(dir).unwrap_or_default();
        let matching: Vec<_> = entries
            .iter()
            .filter(|(name, _)| name.as_bytes().starts_with(start))
            .map(|(name, _)| dir.join(name))
            .collect();
        if matching.is_empty() {
            self.notes.push(PolicyNote::Skipped { path: path.clone(), source: source.clone() });
        }
        for path in matching {
            self.offer(path, access, source);
        }
    }

    /// Adds a grant of a group or of nono itself where possible; otherwise skips it with a note.
    fn offer(&mut self, path: PathBuf, access: AccessMode, source: &CapabilitySource) {
        let found = self.inputs.locator.look_up(&path);
        let found = found
            .filter(|found| matches!(found.kind, FoundKind::Directory | FoundKind::File | FoundKind::Device));
        match found {
            Some(found) if self.closures.forbids(&found.path, access).is_none() => {
                self.push(&path, found, access, source.clone());
            }
            _ => self.notes.push(PolicyNote::Skipped { path, source: source.clone() }),
        }
    }

    fn add_own(&mut self) {
        if let Some(dir) = &self.inputs.host.session_dir {
            self.offer(dir.clone(), AccessMode::Read, &CapabilitySource::System);
            self.offer(dir.join("tmp"), AccessMode::ReadWrite, &CapabilitySource::System);
        }
        // The command's own file; and nono's, so that the command can request more access.
        let program = self.inputs.request.program.as_ref().map(|program| self.inputs.host.absolute(program));
        let nono = self.inputs.host.binary.clone().filter(|_| self.inputs.host.session_dir.is_some());
        for path in program.into_iter().chain(nono) {
            self.add_program(&path);
        }
    }

    fn add_program(&mut self, path: &Path) {
        let Ok(found) = self.inputs.locator.find(path) else { return };
        let covered = |grant: &FsCapability| {
            grant.access.reads()
                && if grant.is_file {
                    grant.resolved == found.path
                } else {
                    is_within(&found.path, &grant.resolved)
                }
        };
        let open = self.closures.forbids(&found.path, AccessMode::Read).is_none();
        if found.kind == FoundKind::File && open && !self.grants.iter().any(covered) {
            self.push(path, found, AccessMode::Read, CapabilitySource::System);
        }
    }

    fn push(&mut self, original: &Path, found: ResolvedPath, access: AccessMode, source: CapabilitySource) {
        let is_file = found.kind != FoundKind::Directory;
        let original = original.to_path_buf();
        self.grants.push(FsCapability { original, resolved: found.path, access, is_file, source });
    }
}

fn check_kind(
    found: FoundKind,
    wanted: GrantKind,
    access: AccessMode,
    path: &Path,
) -> Result<(), PolicyError> {
    let path = path.to_path_buf();
    match (found, wanted) {
        (FoundKind::Directory, GrantKind::Directory) | (FoundKind::File, GrantKind::File) => Ok(()),
        (FoundKind::Directory, GrantKind::File) => Err(PolicyError::ExpectedFile { path, access }),
        (FoundKind::File, GrantKind::Directory) => Err(PolicyError::ExpectedDirectory { path, access }),
        (FoundKind::Socket, _) => Err(PolicyError::IsSocket { path }),
        (FoundKind::Fifo, _) => Err(PolicyError::IsFifo { path }),
        (FoundKind::Device | FoundKind::Other, _) => Err(PolicyError::IsDevice { path }),
    }
}
