//! What a snapshot holds and does not hold: numbers and examples. The nodes list every excluded name with its reason.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::node::{Kind, Omitted, Reason};
use crate::paths;

/// Maximum number of examples kept per cause.
const EXAMPLES: usize = 5;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Number of regular files in the snapshot; `bytes` is their total size.
    pub files: u64,
    pub bytes: u64,
    pub directories: u64,
    /// Number of links, FIFOs, sockets and devices.
    pub others: u64,
    /// Excluded entries by cause. An excluded directory counts as one entry.
    pub left_out: Vec<LeftOut>,
    /// Notes for the user.
    pub notes: Vec<CoverageNote>,
}

/// Entries excluded for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub cause: Cause,
    pub entries: u64,
    pub directories: u64,
    pub examples: Vec<Example>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    #[serde(with = "paths")]
    pub path: PathBuf,
    pub reason: String,
}

/// Kinds of [`Reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Ignored,
    Pattern,
    Glob,
    Artifact,
    Unreadable,
    Unstable,
    OverBudget,
    LargePack,
    TooLarge,
    OtherFilesystem,
    OwnState,
    OtherRoot,
    Forgotten,
    NotHeld,
    RestoreTemp,
}

/// Note about a whole snapshot or root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "note")]
pub enum CoverageNote {
    #[error("the ignore rules in {} would leave {}, so they are set aside: everything is captured", root.display(), few(*would_leave))]
    IgnoreRulesSetAside {
        #[serde(with = "paths")]
        root: PathBuf,
        /// Number of regular files that the rules would have left; `None` if decided by an earlier snapshot.
        would_leave: Option<u64>,
    },
    /// Problem with the ignore rules of a root, for example an ignore file that cannot be read.
    #[error("{}: {text}", root.display())]
    Rules {
        #[serde(with = "paths")]
        root: PathBuf,
        text: String,
    },
    /// A restore gives the names inside the roots a file of their own.
    #[error("{files} {} hard links outside the tracked paths", if *files == 1 { "file has" } else { "files have" })]
    LinkedOutside { files: u64 },
    #[error("{} is on a filesystem whose file times are not trusted: every file is read", root.display())]
    UnknownFilesystem {
        #[serde(with = "paths")]
        root: PathBuf,
    },
    #[error("cannot write the stat cache of {} ({reason}): the next snapshot reads every file", root.display())]
    CacheNotSaved {
        #[serde(with = "paths")]
        root: PathBuf,
        reason: String,
    },
    #[error("{} grew while it was read: its first {size} bytes are captured", path.display())]
    Growing {
        #[serde(with = "paths")]
        path: PathBuf,
        size: u64,
    },
    #[error("imported from {from}, which may not have kept everything")]
    Foreign { from: String },
    #[error("{} is not covered: {reason}", root.display())]
    RootFailed {
        #[serde(with = "paths")]
        root: PathBuf,
        reason: String,
    },
}

impl Reason {
    /// Size of a file that did not fit the budget.
    pub(crate) fn over_budget(&self) -> Option<u64> {
        match self {
            Reason::OverBudget { size } => Some(*size),
            _ => None,
        }
    }

    pub fn cause(&self) -> Cause {
        match self {
            Reason::Ignored { .. } => Cause::Ignored,
            Reason::Pattern(_) => Cause::Pattern,
            Reason::Glob(_) => Cause::Glob,
            Reason::Artifact(_) => Cause::Artifact,
            Reason::Unreadable(_) => Cause::Unreadable,
            Reason::Unstable | Reason::Unit(_) => Cause::Unstable,
            Reason::OverBudget { .. } => Cause::OverBudget,
            Reason::LargePack { .. } => Cause::LargePack,
            Reason::TooLarge { .. } | Reason::LargeFolder { .. } | Reason::LargeRepository { .. } => {
                Cause::TooLarge
            }
            Reason::OtherFilesystem => Cause::OtherFilesystem,
            Reason::OwnState => Cause::OwnState,
            Reason::OtherRoot => Cause::OtherRoot,
            Reason::Forgotten => Cause::Forgotten,
            Reason::NotHeld(_) => Cause::NotHeld,
            Reason::RestoreTemp => Cause::RestoreTemp,
        }
    }
}

fn few(would_leave: Option<u64>) -> String {
    would_leave.map_or("almost nothing".to_owned(), |files| format!("only {files} files"))
}

impl Coverage {
    /// Count the excluded entries of one directory; `dir` is its absolute path.
    pub(crate) fn leave_out(&mut self, dir: &std::path::Path, omitted: &[Omitted]) {
        // A root inside another one is captured as a root of its own.
        for one in omitted.iter().filter(|one| one.reason != Reason::OtherRoot) {
            let cause = one.reason.cause();
            let at = self.left_out.iter().position(|left_out| left_out.cause == cause).unwrap_or_else(|| {
                self.left_out.push(LeftOut { cause, entries: 0, directories: 0, examples: Vec::new() });
                self.left_out.len() - 1
            });
            let Some(left_out) = self.left_out.get_mut(at) else { continue };
            left_out.entries += 1;
            left_out.directories += u64::from(one.is_dir);
            if left_out.examples.len() < EXAMPLES {
                let path = dir.join(&one.name);
                left_out.examples.push(Example { path, reason: one.reason.to_string() });
            }
        }
    }

    /// Count a captured entry.
    pub(crate) fn count(&mut self, kind: &Kind) {
        match kind {
            Kind::File { size, .. } => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(*size);
            }
            Kind::Dir { .. } => self.directories += 1,
            _ => self.others += 1,
        }
    }

    pub(crate) fn add(&mut self, counts: &crate::scan::ScanCounts) {
        self.files += counts.files;
        self.bytes += counts.bytes;
        self.directories += counts.directories;
        self.others += counts.others;
    }

    /// Add the coverage of other roots.
    pub(crate) fn join(&mut self, other: Coverage) {
        let Coverage { files, bytes, directories, others, .. } = other;
        self.add(&crate::scan::ScanCounts { files, bytes, directories, others, ..Default::default() });
        for mut more in other.left_out {
            match self.left_out.iter_mut().find(|left_out| left_out.cause == more.cause) {
                None => self.left_out.push(more),
                Some(left_out) => {
                    left_out.entries += more.entries;
                    left_out.directories += more.directories;
                    left_out.examples.append(&mut more.examples);
                    left_out.examples.truncate(EXAMPLES);
                }
            }
        }
        for note in other.notes {
            let linked = self.notes.iter_mut().find_map(|known| match known {
                CoverageNote::LinkedOutside { files } => Some(files),
                _ => None,
            });
            match (linked, note) {
                (Some(files), CoverageNote::LinkedOutside { files: more }) => *files += more,
                (_, note) => self.notes.push(note),
            }
        }
    }

    /// Number of excluded entries, for all causes.
    pub fn entries_left_out(&self) -> u64 {
        self.left_out.iter().map(|left_out| left_out.entries).sum()
    }
}

/// Whether a path is in a snapshot, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// In the snapshot.
    Captured,
    /// Excluded, by itself or with the directory `because_of`.
    LeftOut { because_of: PathBuf, reason: Reason },
    /// Did not exist when the snapshot was taken.
    NotThere,
    /// Not below any tracked path.
    Outside,
}
