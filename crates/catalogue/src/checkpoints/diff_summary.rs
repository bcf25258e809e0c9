//! Summary of changes for an answer that a model reads: bounded, each file limited to its share, binary content given
//! by size and digest, cuts marked. Everything in it is safe for a terminal.

use std::fmt::Write as _;

use nono_snapshot::{ChangeCounts, SnapshotManager};
use serde::{Deserialize, Serialize};

use crate::rollback::patch::{self, Blob, Hunk};
use crate::rollback::restore::CONTEXT;
use crate::rollback::{Body, ChangeSet, Item, ItemKind, RollbackError};
use nono_policy::text::{escape, shown};

/// Maximum number of files listed. With the two limits below, an answer fits into one message of the request channel.
const FILES: usize = 50;
/// Maximum number of bytes of all names.
const NAMES: usize = 6 << 10;
/// Maximum number of bytes of all lines.
const LINES: usize = 16 << 10;
/// Maximum share of one file, if there are several.
const SHARE: usize = 6 << 10;
/// Maximum number of characters of one line.
const WIDTH: usize = 400;

/// Bounded summary of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brief {
    pub counts: ChangeCounts,
    /// Files that run later first.
    pub files: Vec<BriefFile>,
    /// Number of files not listed.
    pub more_files: usize,
}

/// One changed file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BriefFile {
    /// Path relative to the root.
    pub path: String,
    /// `created`, `modified`, `deleted`, `permissions changed`, `renamed from NAME`.
    pub change: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
    /// Reason why the file runs later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executes_later: Option<String>,
    /// Description, if there are no lines to show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Hunks of a unified diff.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patch: String,
    /// Number of lines of the diff left out.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cut_lines: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in like this")]
fn is_none(number: &usize) -> bool {
    *number == 0
}

/// Summarise a set of changes between two snapshots of `manager`.
pub fn brief(manager: &SnapshotManager, set: &ChangeSet) -> Result<Brief, RollbackError> {
    let share = if set.items.len() == 1 { LINES } else { SHARE };
    let mut answer = Brief { counts: set.counts(), ..Brief::default() };
    let (mut names, mut lines) = (NAMES, LINES);
    for item in &set.items {
        let path = shown(&set.shown(&item.path));
        let change = change(set, item);
        let length = path.len() + change.len();
        if answer.files.len() == FILES || length > names {
            break;
        }
        names -= length;
        let file = one(manager, item, share.min(lines))?;
        lines -= file.patch.len();
        answer.files.push(BriefFile { path, change, ..file });
    }
    answer.more_files = set.items.len() - answer.files.len();
    Ok(answer)
}

fn change(set: &ChangeSet, item: &Item) -> String {
    match &item.kind {
        ItemKind::Created => "created".to_owned(),
        ItemKind::Modified => "modified".to_owned(),
        ItemKind::Deleted => "deleted".to_owned(),
        ItemKind::PermissionsChanged => "permissions changed".to_owned(),
        ItemKind::Renamed { from } => format!("renamed from {}", shown(&set.shown(from))),
    }
}

fn one(manager: &SnapshotManager, item: &Item, room: usize) -> Result<BriefFile, RollbackError> {
    let later = item.executes_later.map(|later| escape(&format!("{}: {}", later.what, later.why)));
    let mut file = BriefFile { executes_later: later, ..BriefFile::default() };
    let diff = patch::file_diff(manager, item, CONTEXT)?;
    if let (Some(old), Some(new)) = (diff.old_mode, diff.new_mode) {
        file.facts.push(format!("mode {old:04o} -> {new:04o}"));
    }
    match diff.body {
        Body::Text(hunks) => fill(&mut file, &hunks, room),
        Body::Binary { old, new } => file.facts.extend(blobs("binary", old, new)),
        Body::Large { old, new } => {
            let what = if patch::is_binary(manager, item)? { "binary" } else { "too large to compare" };
            file.facts.extend(blobs(what, old, new));
        }
        Body::Symlink { old, new } => {
            let side = |word, target: Option<Vec<u8>>| {
                target.map(|target| format!("link, {word}: {}", cut(&String::from_utf8_lossy(&target))))
            };
            file.facts.extend([side("before", old), side("now", new)].into_iter().flatten());
        }
        Body::Other(text) => file.facts.push(cut(&text)),
    }
    Ok(file)
}

fn blobs(what: &str, old: Option<Blob>, new: Option<Blob>) -> impl Iterator<Item = String> {
    let side = |word: &str, blob: Option<Blob>| {
        blob.map(|blob| format!("{what}, {word}: {} bytes, sha256 {}", blob.size, blob.hash))
    };
    [side("before", old), side("now", new)].into_iter().flatten()
}

/// Add as many lines as fit.
fn fill(file: &mut BriefFile, hunks: &[Hunk], room: usize) {
    let (added, removed) = patch::line_counts(hunks);
    (file.added, file.removed) = (Some(added), Some(removed));
    for hunk in hunks {
        let lines = hunk.lines.iter().map(|line| {
            let text: Vec<u8> = line.segments.iter().flat_map(|segment| &segment.text).copied().collect();
            format!("{}{}", line.kind.sign(), cut(&String::from_utf8_lossy(&text)))
        });
        for line in std::iter::once(hunk.header()).chain(lines) {
            if file.cut_lines > 0 || file.patch.len() + line.len() + 1 > room {
                file.cut_lines += 1;
            } else {
                file.patch += &line;
                file.patch.push('\n');
            }
        }
    }
}

/// Escape a line, keep its tabs, and cut it to the maximum width.
fn cut(line: &str) -> String {
    let long = line.chars().nth(WIDTH).is_some();
    let kept: String = line.chars().take(WIDTH).collect();
    let mut text = kept.split('\t').map(escape).collect::<Vec<_>>().join("\t");
    if long {
        text += " (cut)";
    }
    text
}

impl Brief {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.more_files == 0
    }

    #[must_use]
    pub fn without_lines(mut self) -> Brief {
        for file in &mut self.files {
            file.patch.clear();
            file.cut_lines = 0;
        }
        self
    }

    /// One line for each file, then their hunks. `more`: how to see what was cut.
    pub fn text(&self, more: &str) -> String {
        let mut text = String::new();
        for file in &self.files {
            text += &file.line();
            text.push('\n');
        }
        if self.more_files > 0 {
            let _ = writeln!(text, "... and {} more files: {more}", self.more_files);
        }
        for file in self.files.iter().filter(|file| !file.patch.is_empty() || file.cut_lines > 0) {
            let _ = write!(text, "\n{}\n{}", file.path, file.patch);
            if file.cut_lines > 0 {
                let _ = writeln!(text, "... and {} more lines of {}: {more}", file.cut_lines, file.path);
            }
        }
        text.trim_end().to_owned()
    }
}

impl BriefFile {
    fn line(&self) -> String {
        let mut line = format!("{} ({}", self.path, self.change);
        if let (Some(added), Some(removed)) = (self.added, self.removed) {
            let _ = write!(line, ", +{added} -{removed}");
        }
        line.push(')');
        for fact in &self.facts {
            let _ = write!(line, "; {fact}");
        }
        if let Some(later) = &self.executes_later {
            let _ = write!(line, "; will execute later ({later})");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use nono_checkpoint::{CheckpointManager, CheckpointTarget, Config, Ensured, Host, Origin};

    use super::*;

    /// Summary of what `change` does to a project.
    fn after(prepare: impl Fn(&Path), change: impl Fn(&Path)) -> Brief {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("Makefile"), "all:\n").unwrap();
        prepare(&project);
        let host = Host { state_dir: dir.path().join("state"), home: dir.path().to_owned() };
        let mut manager = CheckpointManager::new(host, Config::default());
        let taken = manager.create(&project, "test", &Origin::default());
        assert!(matches!(taken, Ensured::Taken { .. }), "{taken:?}");
        change(&project);
        let mut compared = manager.compare(&project, &CheckpointTarget::Text("1".to_owned())).unwrap();
        let set = crate::checkpoints::changes(&mut compared);
        let found = brief(&compared.manager, &set).unwrap();
        compared.close().unwrap();
        // As sent through the channel.
        let text = serde_json::to_string(&found).unwrap();
        assert!(text.len() < nono_supervisor::channel::MAX_JSON - (2 << 10), "{} bytes", text.len());
        assert_eq!(serde_json::from_str::<Brief>(&text).unwrap(), found);
        found
    }

    #[test]
    fn lines_and_what_is_no_text() {
        let noise: Vec<u8> =
            (0..4_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let found = after(
            |project| fs::write(project.join("a"), "one\n\ttwo\n").unwrap(),
            |project| {
                fs::write(project.join("a"), "one\n\tthree\n").unwrap();
                fs::write(project.join("x.bin"), &noise).unwrap();
            },
        );
        let text = found.text("ask");
        assert!(text.contains("a (modified, +1 -1)"), "{text}");
        assert!(text.contains("x.bin (created); binary, now: 4000000 bytes, sha256 "), "{text}");
        assert!(text.contains("-\ttwo\n+\tthree"), "{text}");
        assert!(text.len() < 400, "{text}");
        assert!(!found.clone().without_lines().text("ask").contains("three"));
        assert!(!found.is_empty() && Brief::default().is_empty());
    }

    #[test]
    fn what_is_too_much_is_cut_and_said() {
        let many = |project: &Path, line: &str| {
            for n in 0..80 {
                fs::write(project.join(format!("f{n:02}")), format!("{line}{n}\n").repeat(1000)).unwrap();
            }
        };
        let found = after(|project| many(project, "old"), |project| many(project, "\"\\new"));
        assert_eq!((found.files.len(), found.more_files), (FILES, 80 - FILES));
        let text = found.text("ask for one");
        assert!(text.len() < 30 << 10, "{}", text.len());
        assert!(text.contains("... and 30 more files: ask for one"), "{text}");
        assert!(text.contains("more lines of f00: ask for one"), "{text}");
        assert!(text.contains("more lines of f49: ask for one"), "{text}");
        assert_eq!(found.counts.modified, 80);
    }

    #[test]
    fn names_and_lines_are_harmless() {
        let long = format!("{}\u{1b}]0;x\u{7}", "x".repeat(5000));
        let found = after(
            |_| {},
            |project| {
                fs::write(project.join("a\u{1b}[2J\nb\u{202e}"), &long).unwrap();
                std::os::unix::fs::symlink("\u{1b}[31m", project.join("link")).unwrap();
            },
        );
        let text = found.text("ask");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{text}");
        assert!(text.contains("a\\u{1b}[2J\\u{a}b\\u{202e} (created, +1 -0)"), "{text}");
        assert!(text.contains("xxx (cut)") && text.contains("link, now: \\u{1b}[31m"), "{text}");
    }

    #[test]
    fn many_long_names_are_counted() {
        let found = after(
            |_| {},
            |project| {
                for n in 0..60 {
                    fs::write(project.join(format!("{n:02}{}", "\"\\".repeat(120))), [0, 1, 2]).unwrap();
                }
            },
        );
        assert!(found.more_files > 30 && found.files.len() + found.more_files == 60, "{}", found.more_files);
    }
}
