//! What a snapshot holds and does not hold, as numbers and examples. The full answer is in the nodes, which list every
//! excluded name with its reason.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::node::{Omitted, Reason};
use crate::paths;

/// Maximum number of examples kept per cause.
const EXAMPLES: usize = 5;

/// Coverage of one snapshot.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "note")]
pub enum CoverageNote {
    /// The ignore rules would have left almost nothing, so they were set aside.
    IgnoreRulesSetAside {
        #[serde(with = "paths")]
        root: PathBuf,
        /// Number of regular files that the rules would have left; `None` if decided by an earlier snapshot.
        would_leave: Option<u64>,
    },
    /// Problem with the ignore rules of a root, for example an ignore file that cannot be read.
    Rules {
        #[serde(with = "paths")]
        root: PathBuf,
        text: String,
    },
    /// Files with hard links outside the roots: a restore gives the names inside a file of their own.
    LinkedOutside { files: u64 },
    /// The stat of files on this filesystem is not trusted: every file is read each time.
    UnknownFilesystem {
        #[serde(with = "paths")]
        root: PathBuf,
    },
    /// The stat cache could not be written: the next snapshot reads every file.
    CacheNotSaved {
        #[serde(with = "paths")]
        root: PathBuf,
        reason: String,
    },
    /// A file that grew while it was read: its content at one moment is captured.
    Growing {
        #[serde(with = "paths")]
        path: PathBuf,
        size: u64,
    },
    /// The snapshot was imported from another tool, which may not have kept everything.
    Foreign { from: String },
    /// A root that could not be captured at all.
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Ignored { rule, file } => write!(f, "ignored by `{rule}` in {file}"),
            Reason::Pattern(pattern) => write!(f, "excluded by the pattern `{pattern}`"),
            Reason::Glob(glob) => write!(f, "excluded by the glob `{glob}`"),
            Reason::Artifact(what) => f.write_str(what),
            Reason::Unreadable(errno) => write!(f, "cannot be read: {errno}"),
            Reason::Unstable => f.write_str("changed each time it was read"),
            Reason::OverBudget { size } => write!(f, "does not fit the disk budget ({size} bytes)"),
            Reason::LargePack { size } => write!(f, "a large git pack ({size} bytes), not copied"),
            Reason::TooLarge { size, limit } => {
                write!(f, "larger than {limit} bytes ({size} bytes), not copied")
            }
            Reason::LargeFolder { limit } => write!(f, "an ignored folder of more than {limit} bytes"),
            Reason::LargeRepository { limit } => write!(f, "a git repository of more than {limit} bytes"),
            Reason::OtherFilesystem => f.write_str("another filesystem is mounted there"),
            Reason::OwnState => f.write_str("nono's own state"),
            Reason::OtherRoot => f.write_str("tracked as a root of its own"),
            Reason::Forgotten => f.write_str("forgotten: its contents were removed"),
            Reason::NotHeld(why) | Reason::Unit(why) => f.write_str(why),
            Reason::RestoreTemp => f.write_str("a temporary file of an interrupted restore"),
        }
    }
}

impl fmt::Display for CoverageNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoverageNote::IgnoreRulesSetAside { root, would_leave } => {
                let few =
                    would_leave.map_or("almost nothing".to_owned(), |files| format!("only {files} files"));
                let root = root.display();
                write!(
                    f,
                    "the ignore rules in {root} would leave {few}, so they are set aside: everything is captured"
                )
            }
            CoverageNote::Rules { root, text } => write!(f, "{}: {text}", root.display()),
            CoverageNote::LinkedOutside { files } => {
                let have = if *files == 1 { "file has" } else { "files have" };
                write!(f, "{files} {have} hard links outside the tracked paths")
            }
            CoverageNote::UnknownFilesystem { root } => {
                write!(
                    f,
                    "{} is on a filesystem whose file times are not trusted: every file is read",
                    root.display()
                )
            }
            CoverageNote::CacheNotSaved { root, reason } => {
                let root = root.display();
                write!(
                    f,
                    "cannot write the stat cache of {root} ({reason}): the next snapshot reads every file"
                )
            }
            CoverageNote::Growing { path, size } => {
                write!(f, "{} grew while it was read: its first {size} bytes are captured", path.display())
            }
            CoverageNote::Foreign { from } => {
                write!(f, "imported from {from}, which may not have kept everything")
            }
            CoverageNote::RootFailed { root, reason } => {
                write!(f, "{} is not covered: {reason}", root.display())
            }
        }
    }
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
                let path = dir.join(paths::from_bytes(one.name.as_bytes()));
                left_out.examples.push(Example { path, reason: one.reason.to_string() });
            }
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
        self.files += other.files;
        self.bytes += other.bytes;
        self.directories += other.directories;
        self.others += other.others;
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
