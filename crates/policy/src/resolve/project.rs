//! Effect of a project's profile on this host, and the part of it that applies to a run.
//!
//! The profile is resolved on its own first, without the user's flags: a path that only the user's
//! `--bypass-protection` could open is refused, and what the user agreed to does not depend on how the next run is
//! started.

use std::io;
use std::path::{Path, PathBuf};

use super::locate::Locator;
use crate::access::CapabilitySource;
use crate::data::{GroupKind, PolicyData};
use crate::error::PolicyError;
use crate::expand::expand;
use crate::facts::Facts;
use crate::profile::{
    AgreedGrant, EffectiveProfile, MergedProfile, MergedWorkdir, ProfileGrant, ProfilePath, ProjectProfile,
};
use crate::request::{GrantKind, HostContext, RunRequest};
use crate::{is_within, links};

/// Folders of sockets, devices and kernel files, which a project's profile cannot open.
const NEVER_BELOW: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

impl ProjectProfile {
    /// Everything the profile opens and closes, with each path resolved.
    pub fn meaning(
        &self,
        host: &HostContext,
        data: &PolicyData,
        facts: &dyn Facts,
    ) -> Result<EffectiveProfile, PolicyError> {
        let host = self.at_root(host);
        // The user is shown where each path leads, and agrees to that, links included.
        let mut request = RunRequest::default();
        let typed = links::typed(&request, &host, &self.merged, facts);
        request.links.extend(typed.into_iter().flat_map(|typed| typed.way.escaping_links));
        let policy = super::resolve(&request, &host, &self.merged, data, facts)?;
        let locator = Locator::new(facts);
        let (profile, source) = (&self.merged, CapabilitySource::Profile(self.name().to_owned()));
        let mut grants = Vec::new();
        for grant in self.grants() {
            let place = locator.place(&expand(&grant.at.path, &host)?);
            check_narrow(&place.path, &host, &locator, &source)?;
            grants.push(AgreedGrant {
                path: text(place.path)?,
                access: grant.access,
                is_file: grant.kind == GrantKind::File,
                optional: grant.at.optional,
            });
        }
        let denied = |deny: &ProfilePath| text(locator.place(&expand(&deny.path, &host)?).path);
        let groups = data.groups.iter().filter(|group| group.kind != GroupKind::Protected);
        let rollback = &profile.rollback;
        let left_out = rollback.exclude_patterns.iter().chain(&rollback.exclude_globs);
        let ignored =
            (rollback.use_gitignore == Some(true)).then(|| "leaves out what git ignores".to_owned());
        Ok(EffectiveProfile {
            grants,
            deny: profile.filesystem.deny.iter().map(denied).collect::<Result<_, _>>()?,
            groups: groups.filter(|group| profile.groups.include.contains(&group.name)).cloned().collect(),
            without_groups: profile.groups.exclude.clone(),
            network_block: profile.network.block,
            hosts: policy.hosts.iter().map(|host| host.rule.to_string()).collect(),
            connect_ports: profile.network.allow_connect_port.clone(),
            listen_ports: profile.network.listen_port.clone(),
            allow_vars: profile.environment.allow_vars.clone(),
            set_vars: profile.environment.set_vars.clone(),
            deny_vars: profile.environment.deny_vars.clone(),
            snapshots: rollback.enabled == Some(true),
            snapshot_rules: left_out
                .map(|pattern| format!("snapshots leave out {pattern}"))
                .chain(ignored.map(|text| format!("snapshot {text}")))
                .chain(rollback.force_include.iter().map(|pattern| format!("snapshots have {pattern}")))
                .collect(),
        })
    }

    /// Part of the profile that only closes, which needs no consent.
    pub fn closing(&self, host: &HostContext) -> Result<MergedProfile, PolicyError> {
        let mut closing = MergedProfile { chain: self.merged.chain.clone(), ..MergedProfile::default() };
        closing.filesystem.deny = self.denied(host)?;
        closing.groups.exclude.clone_from(&self.merged.groups.exclude);
        closing.network.block = self.merged.network.block.filter(|block| *block);
        closing.environment.deny_vars.clone_from(&self.merged.environment.deny_vars);
        Ok(closing)
    }

    /// Whole profile as the user agreed to it: bound to the resolved paths that were shown.
    pub fn agreed(
        &self,
        meaning: &EffectiveProfile,
        host: &HostContext,
    ) -> Result<MergedProfile, PolicyError> {
        let mut agreed = self.merged.clone();
        agreed.workdir = MergedWorkdir::default();
        agreed.filesystem.deny = self.denied(host)?;
        let grant = |grant: &AgreedGrant| ProfileGrant {
            at: ProfilePath {
                path: grant.path.clone(),
                optional: grant.optional,
                profile: self.name().to_owned(),
                exact: true,
            },
            access: grant.access,
            kind: if grant.is_file { GrantKind::File } else { GrantKind::Directory },
        };
        agreed.filesystem.grants = meaning.grants.iter().map(grant).collect();
        Ok(agreed)
    }

    fn at_root(&self, host: &HostContext) -> HostContext {
        HostContext { cwd: self.root.clone(), ..host.clone() }
    }

    /// Grants of the profile, including that on the project's folder.
    fn grants(&self) -> Vec<ProfileGrant> {
        let at = ProfilePath {
            path: ".".to_owned(),
            optional: false,
            profile: self.name().to_owned(),
            exact: false,
        };
        let root = self.merged.workdir.access.mode().map(|access| ProfileGrant {
            at,
            access,
            kind: GrantKind::Directory,
        });
        root.into_iter().chain(self.merged.filesystem.grants.iter().cloned()).collect()
    }

    /// Denied paths of the profile, made absolute.
    fn denied(&self, host: &HostContext) -> Result<Vec<ProfilePath>, PolicyError> {
        let host = self.at_root(host);
        let deny = |deny: &ProfilePath| {
            let profile = self.name().to_owned();
            Ok(ProfilePath { path: text(expand(&deny.path, &host)?)?, profile, ..deny.clone() })
        };
        self.merged.filesystem.deny.iter().map(deny).collect()
    }
}

/// Refuses the root folder, the home folder and its parents, and folders that hold no ordinary files.
fn check_narrow(
    path: &Path,
    host: &HostContext,
    locator: &Locator<'_>,
    from: &CapabilitySource,
) -> Result<(), PolicyError> {
    let home = host.home.as_ref().map(|home| locator.place(home).path);
    let around_home = home.is_some_and(|home| is_within(&home, path));
    let special = NEVER_BELOW.iter().any(|dir| is_within(path, Path::new(dir)));
    if path.parent().is_none() || around_home || special {
        return Err(PolicyError::TooBroadForProject { path: path.to_path_buf(), from: from.clone() });
    }
    Ok(())
}

/// Path as text; a profile cannot hold any other.
fn text(path: PathBuf) -> Result<String, PolicyError> {
    path.into_os_string().into_string().map_err(|path| PolicyError::Resolve {
        path: path.into(),
        source: io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"),
    })
}

#[cfg(test)]
mod tests;
