//! Access modes of a grant, and the source that asked for it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Access that a grant gives on a path.
///
/// `Read` includes listing and executing; `Write` includes creating, removing and renaming, but not reading back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccessMode {
    #[serde(rename = "read")]
    Read,
    #[serde(rename = "write")]
    Write,
    #[serde(rename = "read+write")]
    ReadWrite,
}

impl AccessMode {
    pub fn reads(self) -> bool {
        self != AccessMode::Write
    }

    pub fn writes(self) -> bool {
        self != AccessMode::Read
    }

    /// Whether everything `wanted` asks for is part of `self`.
    pub fn covers(self, wanted: AccessMode) -> bool {
        (self.reads() || !wanted.reads()) && (self.writes() || !wanted.writes())
    }

    /// The union of two modes: Landlock adds up what the rules along a path give.
    #[must_use]
    pub fn union(self, other: AccessMode) -> AccessMode {
        if self == other { self } else { AccessMode::ReadWrite }
    }
}

impl fmt::Display for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessMode::Read => "read",
            AccessMode::Write => "write",
            AccessMode::ReadWrite => "read+write",
        })
    }
}

/// Source of a grant, named by `why` and `--dry-run`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CapabilitySource {
    /// A flag, an environment list or a call of the library.
    User,
    /// A group of the embedded policy.
    Group(String),
    /// The profile of that name.
    Profile(String),
    /// A credential that the filtering proxy inserts for the command, by name.
    Credential(String),
    /// nono itself: the command's own file, the session folder.
    System,
}

impl CapabilitySource {
    /// The source as the subject of a sentence: "granted by you".
    pub fn subject(&self) -> String {
        match self {
            CapabilitySource::User => "you".to_owned(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for CapabilitySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapabilitySource::User => f.write_str("user"),
            CapabilitySource::Group(name) => write!(f, "group:{name}"),
            CapabilitySource::Profile(name) => write!(f, "profile:{name}"),
            CapabilitySource::Credential(name) => write!(f, "credential:{name}"),
            CapabilitySource::System => f.write_str("system"),
        }
    }
}
