//! The embedded policy: one readable file of groups and environment lists, parsed into types.
//!
//! Three kinds of groups. *Base* groups are what any program needs to start and always apply unless a profile
//! leaves one out; *protected* groups are kept whatever is granted above them; *tool* groups apply when a profile
//! includes them. Every path of a group is optional: what a host does not have is skipped.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use once_cell::race::OnceBox;
use serde::{Deserialize, Serialize};

const EMBEDDED: &str = include_str!("../data/policy.json");

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKind {
    Base,
    Protected,
    Tool,
}

/// One named list of paths. A trailing `*` in the last component stands for every entry with that beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub name: String,
    pub kind: GroupKind,
    pub description: String,
    #[serde(default)]
    pub read: Vec<String>,
    #[serde(default)]
    pub write: Vec<String>,
    /// Paths to read and write.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Directories to read and write that are created when missing: a tool that cannot create them does not start.
    #[serde(default)]
    pub create: Vec<String>,
    /// Paths that a protected group closes.
    #[serde(default)]
    pub closed: Vec<String>,
    /// Autorun paths that a protected group keeps from being written.
    #[serde(default)]
    pub held: Vec<String>,
    /// Directories among the closed ones that a program makes at its first start: created where one is granted for
    /// writing and missing.
    #[serde(default)]
    pub made: Vec<String>,
}

/// A coding agent: how it is started, and the files that decide what it runs. Where a grant covers those files they can
/// be read inside the sandbox, and never written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Name of the agent and of its profile.
    pub name: String,
    /// Display name.
    pub title: String,
    /// Name of its program.
    pub program: String,
    #[serde(default)]
    pub start: AgentStart,
    /// Folders that hold its settings; an agent without any of them is not installed.
    pub folders: Vec<String>,
    /// Files in these folders, each with the empty content that stands in for it where it is absent.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Files among these in which the agent saves its own settings.
    #[serde(default)]
    pub saves: BTreeMap<String, SavedFile>,
    /// Folders in these folders.
    #[serde(default)]
    pub directories: Vec<String>,
    /// Settings in the folder of a project, where they exist.
    #[serde(default)]
    pub project: Vec<String>,
}

/// Settings for starting an agent in the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentStart {
    /// Arguments inserted before the user's own.
    pub arguments: Vec<String>,
    pub variables: BTreeMap<String, String>,
    /// Description of what the arguments and variables switch off.
    pub switches_off: Option<String>,
    /// Service of its API key, and the variable in which the user has the key.
    pub credential: Option<AgentCredential>,
    /// Variables in which the user sets another address of its service.
    pub base_urls: Vec<String>,
}

/// API key that stays outside the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCredential {
    pub service: String,
    pub variable: String,
}

/// A file in which an agent saves its settings and which decides what it runs. Inside the sandbox it has a writable
/// copy; a change to that takes effect outside only where it cannot run or open anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedFile {
    /// Path of the file outside the sandbox, if it is not in the agent's folder there.
    #[serde(default)]
    pub outside_at: Option<String>,
    /// The variable that makes the agent look for it in its folder.
    #[serde(default)]
    pub moved_by: Option<String>,
    pub format: SavedFormat,
    /// Keys whose changes are saved outside too: names separated by `/`, with `*` for any one, and everything below
    /// them.
    #[serde(default)]
    pub outward: Vec<String>,
    /// Exceptions from `outward`.
    #[serde(default)]
    pub inward: Vec<String>,
    /// Keys that are never saved, because they call nono itself.
    #[serde(default)]
    pub never: Vec<String>,
    /// Lists in which the agent remembers the user's answers about API keys.
    #[serde(default)]
    pub keys: Option<RememberedKeys>,
}

/// Lists of API keys in a saved file, each key by its last characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedKeys {
    /// Names separated by `/`.
    pub lists: Vec<String>,
    /// Number of last characters that identify a key.
    pub last: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SavedFormat {
    #[default]
    Json,
    Toml,
    Yaml,
}

/// Kind and content of a settings file or folder that an agent lacks, as it is created for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultSetting<'a> {
    File(&'a str),
    Directory,
}

/// The environment lists. A pattern is a name, or a name with one `*` at either end or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentData {
    /// Passed unless a profile denies it.
    pub allow: Vec<String>,
    /// Variables that are never passed and never set.
    pub never: Vec<String>,
    /// Passed only when named in full (or when everything is passed).
    pub secret: Vec<String>,
}

/// Content of the embedded policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyData {
    pub groups: Vec<Group>,
    #[serde(default)]
    pub agents: Vec<Agent>,
    pub environment: EnvironmentData,
}

impl PolicyData {
    /// The policy that is compiled in, parsed once per process.
    ///
    /// Kept without a lock, like every value that is computed on first use: in a process that was forked while
    /// another thread computed it, a lock would never be released.
    ///
    /// # Panics
    /// Never in a build that passed its tests: they parse the same text.
    pub fn embedded() -> &'static PolicyData {
        static DATA: OnceBox<PolicyData> = OnceBox::new();
        DATA.get_or_init(|| match PolicyData::parse(EMBEDDED) {
            Ok(data) => Box::new(data),
            Err(error) => panic!("the embedded policy is broken: {error}"),
        })
    }

    /// Comments of the embedded file fill whole lines, so that this, on the path of every run, can leave the work to
    /// the faster parser.
    fn parse(text: &str) -> Result<PolicyData, serde_json::Error> {
        let is_comment = |line: &&str| line.trim_start().starts_with("//");
        let mut json = String::with_capacity(text.len());
        json.extend(text.lines().filter(|line| !is_comment(line)));
        serde_json::from_str(&json)
    }

    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Kind and content of a file or folder that an agent lacks, if the name is one of its settings.
    pub fn default_setting(&self, agent: &str, name: &OsStr) -> Option<DefaultSetting<'_>> {
        let agent = self.agents.iter().find(|known| known.name == agent)?;
        let name = name.to_str()?;
        let file = agent.files.get(name).map(|text| DefaultSetting::File(text));
        file.or_else(|| {
            agent.directories.iter().any(|known| known == name).then_some(DefaultSetting::Directory)
        })
    }

    /// Rules for saving an agent's file of this name, if it saves anything there.
    pub fn saved_file(&self, agent: &str, name: &OsStr) -> Option<&SavedFile> {
        let agent = self.agents.iter().find(|known| known.name == agent)?;
        agent.saves.get(name.to_str()?)
    }

    /// Whether the group protects autorun files, and not secrets.
    pub fn runs_later(&self, group: &str) -> bool {
        self.group(group).is_some_and(|group| !group.held.is_empty())
    }

    /// The groups of one kind, in the order of the file.
    pub fn of_kind(&self, kind: GroupKind) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(move |group| group.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_embedded_policy_is_well_formed() {
        let data = PolicyData::parse(EMBEDDED).unwrap();
        let mut names = HashSet::new();
        for group in &data.groups {
            assert!(names.insert(&group.name), "{} appears twice", group.name);
            assert!(!group.description.is_empty(), "{} says nothing", group.name);
            let grants = group.read.len() + group.write.len() + group.allow.len() + group.create.len();
            match group.kind {
                // The group's name alone decides which of the two it is.
                GroupKind::Protected => {
                    assert!(
                        grants == 0 && group.closed.is_empty() != group.held.is_empty(),
                        "{}",
                        group.name
                    );
                }
                GroupKind::Base | GroupKind::Tool => {
                    assert!(grants > 0 && group.closed.is_empty() && group.held.is_empty(), "{}", group.name);
                }
            }
        }
    }

    #[test]
    fn the_embedded_policy_is_ordinary_json_with_comments() {
        let (collect, options) =
            (jsonc_parser::CollectOptions::default(), jsonc_parser::ParseOptions::default());
        let parsed = jsonc_parser::parse_to_ast(EMBEDDED, &collect, &options).unwrap();
        let value = serde_json::Value::from(parsed.value.unwrap());
        let data: PolicyData = serde_json::from_value(value).unwrap();
        assert_eq!(&data, PolicyData::embedded());
    }

    #[test]
    fn every_path_is_anchored_and_plain() {
        for group in &PolicyData::embedded().groups {
            let granted = group.read.iter().chain(&group.write).chain(&group.allow).chain(&group.create);
            for path in granted.chain(&group.closed).chain(&group.held) {
                assert!(path.starts_with('/') || path.starts_with('~') || path.starts_with('$'), "{path}");
                assert!(!path.contains("..") && !path.ends_with('/'), "{path}");
            }
        }
    }

    #[test]
    fn no_path_is_protected_twice() {
        let mut seen = HashSet::new();
        for group in PolicyData::embedded().of_kind(GroupKind::Protected) {
            for path in group.closed.iter().chain(&group.held) {
                assert!(seen.insert(path), "{path}");
                assert!(!path.contains('*'), "{path}");
            }
            assert!(group.made.iter().all(|path| group.closed.contains(path)), "{}", group.name);
        }
    }

    #[test]
    fn names_of_agents_are_single_components_and_unlike_each_other() {
        for agent in &PolicyData::embedded().agents {
            let mut seen = HashSet::new();
            for name in agent.files.keys().chain(&agent.directories) {
                assert!(!name.contains('/') && seen.insert(name), "{}: {name}", agent.name);
            }
            assert!(!agent.folders.is_empty() && !seen.is_empty(), "{}", agent.name);
            for (name, saved) in &agent.saves {
                assert!(agent.files.contains_key(name), "{}: {name} is saved and not held", agent.name);
                assert_eq!(saved.outside_at.is_some(), saved.moved_by.is_some(), "{}: {name}", agent.name);
                let keys = saved.outward.iter().chain(&saved.inward).chain(&saved.never);
                for key in keys {
                    assert!(key.split('/').all(|part| !part.is_empty()), "{}: {name}: {key}", agent.name);
                }
            }
            for path in &agent.project {
                assert!(!path.starts_with('/') && !path.contains(".."), "{}: {path}", agent.name);
            }
        }
    }

    #[test]
    fn secrets_of_the_system_are_in_no_base_group() {
        for group in PolicyData::embedded().of_kind(GroupKind::Base) {
            for path in group.read.iter().chain(&group.write).chain(&group.allow) {
                assert!(
                    !path.contains("shadow") && !path.contains("sudoers") && !path.contains("machine-id"),
                    "{path}"
                );
                assert_ne!(path, "/etc");
                assert_ne!(path, "/etc/ssh");
            }
        }
    }
}
