//! The profile that a project carries: what it may say, and what it means here.
//!
//! Its text is not the person's, so it can ask for less than other profiles can: it builds on built-in profiles alone,
//! opens no socket and nothing that is protected, and decides nothing about terminals, hooks or who is asked. Relative
//! paths and `$WORKDIR` are the project's folder, wherever in it the command starts. What it means on this host is a
//! [`Meaning`], worked out in `resolve`; that, and not the text alone, is what a person agrees to.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{MergedProfile, Profile, ProfileStore, builtin, parse};
use crate::access::AccessMode;
use crate::data::{Group, PolicyData};
use crate::environment;
use crate::error::ProfileError;

/// Maximum size: it is read by whoever agrees to it.
pub const PROJECT_MAX_BYTES: u64 = 64 << 10;

/// Where a project has it, from its folder on.
pub const PROJECT_FILE: &str = ".nono/profile.json";

/// A profile as a project carries it, with the built-in profiles it extends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectProfile {
    /// The project's folder, resolved.
    pub root: PathBuf,
    /// The file, which is also the name of the profile: no other profile can have a name with a `/` in it.
    pub file: PathBuf,
    pub(crate) merged: MergedProfile,
}

/// What a project's profile adds to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectOverlay {
    pub file: PathBuf,
    /// SHA-256 of the file's content, in hexadecimal digits.
    pub digest: String,
    /// Whether a person agreed to what it opens. If not, only what it closes is in `profile`.
    pub agreed: bool,
    pub profile: MergedProfile,
}

/// A grant of a project's profile, with the place it leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedGrant {
    /// Resolved; where nothing is there yet, as far as something is.
    pub path: String,
    pub access: AccessMode,
    pub is_file: bool,
    pub optional: bool,
}

/// All that a project's profile opens and closes on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meaning {
    pub grants: Vec<AgreedGrant>,
    /// Resolved.
    pub deny: Vec<String>,
    /// Groups of paths that it opens, as they are defined now.
    pub groups: Vec<Group>,
    pub without_groups: Vec<String>,
    /// `false`: all of it is open.
    pub network_block: Option<bool>,
    pub hosts: Vec<String>,
    pub connect_ports: Vec<u16>,
    pub listen_ports: Vec<u16>,
    pub allow_vars: Vec<String>,
    pub set_vars: BTreeMap<String, String>,
    pub deny_vars: Vec<String>,
    pub snapshots: bool,
    /// What is left out of snapshots, or taken into them.
    pub snapshot_rules: Vec<String>,
}

/// One thing that a project's profile opens or closes, in words.
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
        // Whatever it extends comes by this file.
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

    /// Its name, as sources of grants have it.
    pub fn name(&self) -> &str {
        self.merged.name()
    }
}

/// Refuses what only a person's own flags and profiles can say.
fn check(profile: &Profile, file: &Path) -> Result<(), ProfileError> {
    if let Some(base) = profile.bases().iter().find(|base| builtin::text(base).is_none()) {
        return Err(ProfileError::ProjectExtends { path: file.to_path_buf(), base: base.clone() });
    }
    let refuse = |key: &str, instead| {
        Err(ProfileError::NotForProjects { path: file.to_path_buf(), key: key.to_owned(), instead })
    };
    if !profile.filesystem.bypass_protection.is_empty() {
        return refuse(
            "filesystem.bypass_protection",
            "only you yourself can open what is protected, by a flag",
        );
    }
    if !profile.filesystem.unix_socket.is_empty() {
        return refuse("filesystem.unix_socket", "only you yourself can open a socket, by a flag");
    }
    if !profile.hooks.is_empty() {
        return refuse("hooks", "`nono hooks install` installs hooks");
    }
    if profile.interactive.is_some() {
        return refuse("interactive", "a profile of your own can have it");
    }
    if profile.security.capability_elevation.is_some() {
        return refuse("security", "use the flag --ask");
    }
    if profile.rollback.enabled == Some(false) {
        return refuse("rollback.enabled: false", "use the flag --no-rollback");
    }
    if let Some(name) = profile.environment.allow_vars.iter().find(|name| is_secret(name)) {
        let key = format!("environment.allow_vars: {name}");
        return refuse(&key, "it looks like a secret; only you yourself can pass it on, by a flag");
    }
    Ok(())
}

/// Whether a full name looks like a secret's; a pattern never passes one.
fn is_secret(name: &str) -> bool {
    let secret = &PolicyData::embedded().environment.secret;
    !name.contains('*') && secret.iter().any(|pattern| environment::matches(pattern, name))
}

impl Meaning {
    /// Whether it opens anything, or changes what the person's own flags would do. Closing needs nobody's consent.
    pub fn widens(&self) -> bool {
        !self.opens().is_empty()
    }

    /// What it opens, one by one.
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
            put("network", "all of it".to_owned());
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

    /// What it closes, one by one.
    pub fn closes(&self) -> Vec<ProjectEntry> {
        let block =
            (self.network_block == Some(true)).then(|| "the network but for hosts by name".to_owned());
        let groups = self.without_groups.iter().map(|name| format!("group {name}"));
        let variables = self.deny_vars.iter().map(|name| format!("${name}"));
        let texts = self.deny.iter().cloned().chain(groups).chain(block).chain(variables);
        texts.map(|text| ProjectEntry { what: "closes", text }).collect()
    }

    /// All of it.
    pub fn entries(&self) -> Vec<ProjectEntry> {
        self.opens().into_iter().chain(self.closes()).collect()
    }
}
