//! Profile that a project carries in its own folder.
//!
//! The user did not write it, so it can ask for less than other profiles: it extends built-in profiles only, opens
//! neither sockets nor protected paths, and decides nothing about terminals, hooks or approvals. Relative paths and
//! `$WORKDIR` refer to the project's folder, wherever in it the command starts. Its effect on this host is a
//! [`EffectiveProfile`], computed in `resolve`; that, and not the text alone, is what the user agrees to.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{MergedProfile, Profile, ProfileStore, builtin, parse};
use crate::access::AccessMode;
use crate::data::{Group, PolicyData};
use crate::environment;
use crate::error::ProfileError;

/// Maximum size of the file: the user reads it before agreeing to it.
pub const PROJECT_MAX_BYTES: u64 = 64 << 10;

/// Path of the profile, relative to the project's folder.
pub const PROJECT_FILE: &str = ".nono/profile.json";

/// Profile of a project, with the built-in profiles it extends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectProfile {
    /// The project's folder, resolved.
    pub root: PathBuf,
    /// The file, which is also the name of the profile: no other profile can have a name with a `/` in it.
    pub file: PathBuf,
    pub(crate) merged: MergedProfile,
}

/// Changes that a project's profile makes to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectOverlay {
    pub file: PathBuf,
    /// SHA-256 of the file's content, in hexadecimal digits.
    pub digest: String,
    /// Whether the user agreed to what it opens. If not, `profile` holds only what it closes.
    pub agreed: bool,
    pub profile: MergedProfile,
}

/// A grant of a project's profile, with its resolved path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedGrant {
    /// Resolved path; for a missing one, resolved as far as it exists.
    pub path: String,
    pub access: AccessMode,
    pub is_file: bool,
    pub optional: bool,
}

/// Everything that a project's profile opens and closes on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectiveProfile {
    pub grants: Vec<AgreedGrant>,
    /// Denied paths, resolved.
    pub deny: Vec<String>,
    /// Groups that it includes, as they are defined now.
    pub groups: Vec<Group>,
    pub without_groups: Vec<String>,
    /// `false`: the whole network is open.
    pub network_block: Option<bool>,
    pub hosts: Vec<String>,
    pub connect_ports: Vec<u16>,
    pub listen_ports: Vec<u16>,
    pub allow_vars: Vec<String>,
    pub set_vars: BTreeMap<String, String>,
    pub deny_vars: Vec<String>,
    pub snapshots: bool,
    /// Rules for what snapshots exclude and include.
    pub snapshot_rules: Vec<String>,
}

/// Description of one thing that a project's profile opens or closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectEntry {
    pub what: &'static str,
    pub text: String,
}

impl ProjectProfile {
    /// Reads the content of `file`, which is the profile of the project in `root`.
    pub fn read(content: &[u8], root: &Path, file: &Path) -> Result<ProjectProfile, ProfileError> {
        let not_text = |path: &Path, error: &str| ProfileError::Read {
            path: path.to_path_buf(),
            source: io::Error::new(io::ErrorKind::InvalidData, error.to_owned()),
        };
        let text = std::str::from_utf8(content).map_err(|error| not_text(file, &error.to_string()))?;
        let name = file.to_str().ok_or_else(|| not_text(file, "its path is not UTF-8"))?;
        let profile = parse::parse(text, file)?;
        check(&profile, file)?;
        let mut merged = ProfileStore::default().merge(name, &profile, &[])?;
        // What its bases grant is attributed to this file too.
        merged.chain = vec![name.to_owned()];
        for grant in &mut merged.filesystem.grants {
            name.clone_into(&mut grant.at.profile);
        }
        merged.domain_from = merged.domain_from.into_keys().map(|host| (host, name.to_owned())).collect();
        merged.workdir.profile = Some(name.to_owned());
        merged.filesystem.bypass_protection.clear();
        merged.filesystem.unix_socket.clear();
        merged.hooks.clear();
        merged.interactive = false;
        merged.security.capability_elevation = None;
        merged.environment.allow_vars.retain(|name| !is_secret(name));
        Ok(ProjectProfile { root: root.to_path_buf(), file: file.to_path_buf(), merged })
    }

    /// Name of the profile, as used in sources of grants.
    pub fn name(&self) -> &str {
        self.merged.name()
    }
}

/// Refuses keys that only the user's own flags and profiles can have.
fn check(profile: &Profile, file: &Path) -> Result<(), ProfileError> {
    if let Some(base) = profile.bases().iter().find(|base| builtin::text(base).is_none()) {
        return Err(ProfileError::ProjectExtends { path: file.to_path_buf(), base: base.clone() });
    }
    let refuse = |key: &str, instead| {
        Err(ProfileError::NotForProjects { path: file.to_path_buf(), key: key.to_owned(), instead })
    };
    if !profile.filesystem.bypass_protection.is_empty() {
        return refuse("filesystem.bypass_protection", "only your own flags can open a protected path");
    }
    if !profile.filesystem.unix_socket.is_empty() {
        return refuse("filesystem.unix_socket", "only your own flags can open a socket");
    }
    if !profile.hooks.is_empty() {
        return refuse("hooks", "install hooks with `nono hooks install`");
    }
    if profile.interactive.is_some() {
        return refuse("interactive", "set it in a profile of your own");
    }
    if profile.security.capability_elevation.is_some() {
        return refuse("security", "use the flag --ask");
    }
    if profile.rollback.enabled == Some(false) {
        return refuse("rollback.enabled: false", "use the flag --no-rollback");
    }
    if let Some(name) = profile.environment.allow_vars.iter().find(|name| is_secret(name)) {
        let key = format!("environment.allow_vars: {name}");
        return refuse(&key, "it looks like a secret; pass it on yourself, with --env");
    }
    Ok(())
}

/// Whether a full name looks like that of a secret; a pattern never passes one.
fn is_secret(name: &str) -> bool {
    let secret = &PolicyData::embedded().environment.secret;
    !name.contains('*') && secret.iter().any(|pattern| environment::matches(pattern, name))
}

impl EffectiveProfile {
    /// Whether it opens anything, or changes what the user's own flags would do. Closing needs no consent.
    pub fn widens(&self) -> bool {
        !self.opens().is_empty()
    }

    pub fn opens(&self) -> Vec<ProjectEntry> {
        let mut entries = Vec::new();
        let mut put = |what, text: String| entries.push(ProjectEntry { what, text });
        for (what, writes) in [("write", true), ("read", false)] {
            for grant in self.grants.iter().filter(|grant| grant.access.writes() == writes) {
                let only = if grant.access == AccessMode::Write { " (not read)" } else { "" };
                put(what, format!("{}{only}", grant.path));
            }
        }
        for group in &self.groups {
            put("group", format!("{} ({})", group.name, group.description));
        }
        if self.network_block == Some(false) {
            put("network", "all hosts".to_owned());
        }
        self.hosts.iter().for_each(|host| put("network", host.clone()));
        self.connect_ports.iter().for_each(|port| put("network", format!("port {port} of any host")));
        self.listen_ports.iter().for_each(|port| put("network", format!("listens on port {port}")));
        self.allow_vars.iter().for_each(|name| put("passes", format!("${name}")));
        self.set_vars.iter().for_each(|(name, value)| put("sets", format!("{name}={value}")));
        if self.snapshots {
            put("undo", "snapshots are taken".to_owned());
        }
        self.snapshot_rules.iter().for_each(|rule| put("undo", rule.clone()));
        entries
    }

    pub fn closes(&self) -> Vec<ProjectEntry> {
        let block =
            (self.network_block == Some(true)).then(|| "the network, except for hosts by name".to_owned());
        let groups = self.without_groups.iter().map(|name| format!("group {name}"));
        let variables = self.deny_vars.iter().map(|name| format!("${name}"));
        let texts = self.deny.iter().cloned().chain(groups).chain(block).chain(variables);
        texts.map(|text| ProjectEntry { what: "closes", text }).collect()
    }

    /// All entries: what it opens, then what it closes.
    pub fn entries(&self) -> Vec<ProjectEntry> {
        self.opens().into_iter().chain(self.closes()).collect()
    }
}
