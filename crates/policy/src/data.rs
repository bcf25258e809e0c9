//! The embedded policy: one readable file of groups and environment lists, parsed into types.
//!
//! Three kinds of groups. *Base* groups are what any program needs to start and always apply unless a profile
//! leaves one out; *protected* groups are kept whatever is granted above them; *tool* groups apply when a profile
//! includes them. Every path of a group is optional: what a host does not have is skipped.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

const EMBEDDED: &str = include_str!("../data/policy.json");

/// What a group is for.
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
    /// Read and write.
    #[serde(default)]
    pub allow: Vec<String>,
    /// The same, for directories that are made where they are missing: a tool that cannot make its own does not start.
    #[serde(default)]
    pub create: Vec<String>,
    /// What a protected group closes.
    #[serde(default)]
    pub closed: Vec<String>,
    /// What a protected group keeps from being written, because it runs later.
    #[serde(default)]
    pub held: Vec<String>,
    /// Directories among what is closed that a program makes at its first start: made where one is granted for writing
    /// and missing.
    #[serde(default)]
    pub made: Vec<String>,
}

/// A coding agent: how it is started, and the files that decide what it runs. Where a grant covers those they can be read
/// inside, and never written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name here, which its profile has too.
    pub name: String,
    /// As its makers call it.
    pub title: String,
    /// The program it is.
    pub program: String,
    #[serde(default)]
    pub start: AgentStart,
    /// Where it keeps them; a folder that is not there belongs to an agent that is not installed.
    pub folders: Vec<String>,
    /// Files in these folders, each with the text that says nothing, to stand where one is absent.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Those of the files that it saves its own settings in.
    #[serde(default)]
    pub saves: BTreeMap<String, SavedFile>,
    /// Folders in these folders.
    #[serde(default)]
    pub directories: Vec<String>,
    /// The like in the folder of a project, as far as it is there.
    #[serde(default)]
    pub project: Vec<String>,
}

/// How an agent is started inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentStart {
    /// Arguments that come before the person's own.
    pub arguments: Vec<String>,
    pub variables: BTreeMap<String, String>,
    /// What these two switch off, in words.
    pub switches_off: Option<String>,
    /// The service that its key is for, and the variable the person has it in.
    pub credential: Option<AgentCredential>,
    /// Variables in which the person names another address of its service.
    pub base_urls: Vec<String>,
}

/// A key that stays outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCredential {
    pub service: String,
    pub variable: String,
}

/// A file that an agent saves its settings in, and acts by. Inside it has a copy that it may write; what it changes there
/// takes effect outside only where that cannot run or open anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedFile {
    /// Where it lies outside, where it is not in the agent's folder there.
    #[serde(default)]
    pub outside_at: Option<String>,
    /// The variable that makes the agent look for it in its folder.
    #[serde(default)]
    pub moved_by: Option<String>,
    pub format: SavedFormat,
    /// Keys that are saved outside, too: names separated by `/`, with `*` for any one, and everything below them.
    #[serde(default)]
    pub outward: Vec<String>,
    /// Keys among these that are not.
    #[serde(default)]
    pub inward: Vec<String>,
    /// Keys that are not saved at all: by them nono itself is called.
    #[serde(default)]
    pub never: Vec<String>,
    /// Where the agent remembers what it was told about keys.
    #[serde(default)]
    pub keys: Option<RememberedKeys>,
}

/// Lists of keys in a saved file, each key by its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedKeys {
    /// Names separated by `/`.
    pub lists: Vec<String>,
    /// How many characters at the end of a key stand for it.
    pub last: usize,
}

/// How a saved file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SavedFormat {
    #[default]
    Json,
    Toml,
    Yaml,
}

/// What stands where a file or folder of an agent is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn<'a> {
    File(&'a str),
    Directory,
}

/// The environment lists. A pattern is a name, or a name with one `*` at either end or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentData {
    /// Passed unless a profile denies it.
    pub allow: Vec<String>,
    /// Never passed and never set.
    pub never: Vec<String>,
    /// Passed only when named in full (or when everything is passed).
    pub secret: Vec<String>,
}

/// Everything the embedded policy says.
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
    /// # Panics
    /// Never in a build that passed its tests: they parse the same text.
    pub fn embedded() -> &'static PolicyData {
        static DATA: OnceLock<PolicyData> = OnceLock::new();
        DATA.get_or_init(|| match PolicyData::parse(EMBEDDED) {
            Ok(data) => data,
            Err(error) => panic!("the embedded policy is broken: {error}"),
        })
    }

    /// The text of the embedded policy, comments included.
    pub fn embedded_text() -> &'static str {
        EMBEDDED
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

    /// What may stand at an absent name among the files of an agent.
    pub fn stand_in(&self, agent: &str, name: &OsStr) -> Option<StandIn<'_>> {
        let agent = self.agents.iter().find(|known| known.name == agent)?;
        let name = name.to_str()?;
        let file = agent.files.get(name).map(|text| StandIn::File(text));
        file.or_else(|| agent.directories.iter().any(|known| known == name).then_some(StandIn::Directory))
    }

    /// How an agent's file of this name is saved, if it saves anything there.
    pub fn saved_file(&self, agent: &str, name: &OsStr) -> Option<&SavedFile> {
        let agent = self.agents.iter().find(|known| known.name == agent)?;
        agent.saves.get(name.to_str()?)
    }

    /// Whether the group protects what runs later, and not what is secret.
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
                // Which of the two it is is said with the group's name alone.
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
        let value =
            jsonc_parser::parse_to_serde_value(EMBEDDED, &jsonc_parser::ParseOptions::default()).unwrap();
        let data: PolicyData = serde_json::from_value(value.unwrap()).unwrap();
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
