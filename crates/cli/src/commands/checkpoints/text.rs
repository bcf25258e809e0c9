//! Text output of checkpoints. Names, reasons and all other foreign text are escaped here.

use std::path::Path;

use nono::checkpoints::{Checkpoint, CheckpointId, Completed, Stats, StatusReport};
use nono::diagnostic::{escape, shown};

use super::restore::{COMPLETES, UNDO};
use crate::age::{ago, local};
use crate::commands::rollback::text::{self as words, Below, Length};
use crate::message;
use crate::review::text::columns;
use crate::units::{bytes, grouped, shortened, some};

/// Maximum number of characters of a reason.
const REASON: usize = 72;
/// Maximum number of characters of other foreign text.
const WORDS: usize = 200;

/// List of a project's checkpoints, newest first. `here`: the one it was restored to.
pub(crate) fn list(project: &Path, checkpoints: &[Checkpoint], here: Option<&CheckpointId>) -> String {
    let mut lines = vec![format!("Checkpoints for {}:", shown(project))];
    let all = checkpoints.iter().enumerate();
    lines.extend(all.map(|(at, one)| line(at + 1, one, here == Some(&one.id))));
    lines.join("\n")
}

/// [`list`], with hints below it.
pub(super) fn list_and_hints(
    project: &Path,
    checkpoints: &[Checkpoint],
    here: Option<&CheckpointId>,
) -> String {
    format!("{}\n\n{HINTS}", list(project, checkpoints, here))
}

const HINTS: &str = "go back to one:    nono checkpoints restore N\n\
see what changed:  nono checkpoints diff N\n\
only one file:     nono checkpoints restore N FILE";

fn line(number: usize, one: &Checkpoint, is_here: bool) -> String {
    let mut line = format!("{number:>3}. {}", summary(one));
    if is_here {
        line += "  <- you are here";
    }
    for part in one.stats.as_ref().and_then(stats).into_iter().chain(marks(one)) {
        line = line + "  " + &part;
    }
    // The user's prompt, where it is known.
    if let Some(prompt) = &one.origin.prompt {
        line = line + "\n       \u{201c}" + &cut(prompt, REASON) + "\u{201d}";
    }
    line
}

/// Summary of a checkpoint: `a1b2c3d4  2026-11-15 18:22:03 +01:00  before patch`.
pub(crate) fn summary(one: &Checkpoint) -> String {
    format!("{}  {}  {}", escape(one.id.short()), local(&one.time), cut(&one.reason, REASON))
}

/// Escapes text and cuts it to this many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    shortened(escape(text), most)
}

/// Counts as `(1 file, +1/-0)`; none where nothing changed.
pub(crate) fn stats(stats: &Stats) -> Option<String> {
    let Stats { files, insertions, deletions } = *stats;
    let files = crate::units::count(files, "file", "files")?;
    Some(format!("({files}, +{}/-{})", grouped(insertions), grouped(deletions)))
}

fn marks(one: &Checkpoint) -> Option<String> {
    let name = one.name.as_ref().map(|name| format!("[name: {}]", cut(name, REASON)));
    let marks = [
        one.pinned.then(|| "[pinned]".to_owned()),
        name,
        (one.left_out > 0).then(|| format!("[not covered: {}]", grouped(one.left_out))),
        one.imported_from.as_ref().map(|_| "[imported]".to_owned()),
    ];
    let marks: Vec<String> = marks.into_iter().flatten().collect();
    (!marks.is_empty()).then(|| marks.join(" "))
}

/// Status of all projects.
pub(super) fn status(status: &StatusReport) -> String {
    let about = if status.exact { "" } else { "about " };
    let total = status.store_bytes.saturating_add(status.legacy_bytes);
    let mut lines = vec![
        format!("Checkpoint base: {}", shown(&status.base)),
        format!("Total size:      {about}{}", bytes(total)),
        format!("  store          {about}{}", bytes(status.store_bytes)),
        format!("  legacy         {}", bytes(status.legacy_bytes)),
        format!("Projects:        {}", grouped(status.projects.len() as u64)),
    ];
    if !status.projects.is_empty() {
        lines.push(String::new());
        lines.extend(table(status));
    }
    let projects = status.projects.iter().filter_map(|one| Some((&one.workdir, one.unprotected.as_ref()?)));
    let others = status.unprotected.iter().map(|one| (&one.dir, &one.why));
    let unprotected = projects
        .chain(others)
        .map(|(dir, why)| format!("NOT PROTECTED: {}: {}", shown(dir), cut(why, WORDS)));
    section(&mut lines, unprotected.collect());
    if !status.legacy.is_empty() {
        let mut legacy = vec![format!("Legacy archives ({}):", status.legacy.len())];
        let width = status.legacy.iter().map(|(name, _)| columns(&escape(name))).max().unwrap_or(0);
        legacy.extend(
            status.legacy.iter().map(|(name, size)| format!("  {:<width$}  {}", escape(name), bytes(*size))),
        );
        legacy.push("clear them with: nono checkpoints clear-legacy".to_owned());
        section(&mut lines, legacy);
    }
    if !status.enabled {
        let off = [
            "Checkpoints are off: none is taken automatically.",
            "turn them on with: nono hooks install AGENT (or `enabled = true` below [checkpoints] in config.toml)",
        ];
        section(&mut lines, off.map(str::to_owned).to_vec());
    }
    lines.join("\n")
}

fn section(lines: &mut Vec<String>, more: Vec<String>) {
    if !more.is_empty() {
        lines.push(String::new());
        lines.extend(more);
    }
}

fn table(status: &StatusReport) -> Vec<String> {
    let head = ["WORKDIR", "COMMITS", "LAST TOUCH", "STATE"].map(str::to_owned);
    let row = |one: &nono::checkpoints::ProjectStatus| {
        let state = match (one.orphan, one.unprotected.is_some()) {
            (true, _) => "orphan",
            (false, true) => "live, NOT PROTECTED",
            (false, false) => "live",
        };
        [shown(&one.workdir), grouped(one.checkpoints), ago(&one.last_touch), state.to_owned()]
    };
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(status.projects.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let line = |row: &[String; 4]| {
        let fill = |column: usize| " ".repeat(widths[column] - columns(&row[column]));
        let [dir, commits, touched, state] = row;
        format!("  {dir}{}  {}{commits}  {touched}{}  {state}", fill(0), fill(1), fill(2))
    };
    rows.iter().map(line).collect()
}

/// Removed checkpoints by project, one line each.
pub(super) fn removed<'a>(removed: impl Iterator<Item = (&'a Path, &'a [Checkpoint])>) -> Vec<String> {
    let mut lines = Vec::new();
    for (project, checkpoints) in removed {
        lines.push(format!("  {}: {}", shown(project), some(checkpoints.len(), "checkpoint")));
        lines.extend(checkpoints.iter().map(|one| format!("    {}", summary(one))));
    }
    lines
}

/// Report of an interrupted restore that this command completed, or that was interrupted again.
pub(crate) fn completed(completed: &Completed) -> Vec<String> {
    let Completed { project, checkpoint, done } = completed;
    let to =
        checkpoint.as_ref().map(|id| format!(" to checkpoint {}", escape(id.short()))).unwrap_or_default();
    let roots = std::slice::from_ref(project);
    let project = shown(project);
    let mut lines = vec![if done.interrupted {
        format!("the interrupted restore of {project}{to} was interrupted again:")
    } else {
        format!("completed an interrupted restore of {project}{to}:")
    }];
    lines.extend(words::done(done, &Below::new(roots), Length::Done));
    lines.extend(done.interrupted.then(|| COMPLETES.to_owned()));
    lines.extend(done.unrecorded.as_deref().map(message::unrecorded));
    lines.extend(done.undo.as_ref().map(|_| format!("undo this with: {UNDO}")));
    lines
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use nono::checkpoints::ProjectStatus;
    use serde_json::json;

    use super::*;

    fn checkpoint(more: &serde_json::Value) -> Checkpoint {
        let mut value = json!({
            "id": "a1b2c3d4e5f6",
            "snapshot": 0,
            "time": "2026-11-15T18:22:03Z",
            "reason": "before patch",
            "files": 1,
            "left_out": 0,
        });
        for (key, more) in more.as_object().unwrap() {
            value[key] = more.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_list_is_numbered_from_the_newest() {
        let stats = |files, insertions, deletions| json!({"files": files, "insertions": insertions, "deletions": deletions});
        let all = [
            checkpoint(&json!({"stats": stats(1, 1, 0)})),
            checkpoint(&json!({"stats": stats(0, 0, 0), "pinned": true, "name": "works"})),
            checkpoint(&json!({"stats": stats(1200, 30, 4000), "left_out": 3, "imported_from": "hermes"})),
        ];
        assert_eq!(
            list(Path::new("/a/b"), &all, None),
            "Checkpoints for /a/b:\n  \
               1. a1b2c3d4  2026-11-15 18:22:03 +00:00  before patch  (1 file, +1/-0)\n  \
               2. a1b2c3d4  2026-11-15 18:22:03 +00:00  before patch  [pinned] [name: works]\n  \
               3. a1b2c3d4  2026-11-15 18:22:03 +00:00  before patch  (1,200 files, +30/-4,000)  [not covered: 3] [imported]"
        );
        assert!(line(12, &all[0], false).starts_with(" 12. a1b2c3d4  "));
        assert!(line(1, &all[0], true).ends_with("before patch  <- you are here  (1 file, +1/-0)"));
    }

    #[test]
    fn text_from_outside_is_escaped() {
        let one = checkpoint(
            &json!({"reason": format!("rm\u{1b}[2J\n1. {}", "x".repeat(200)), "name": "a\u{202e}b"}),
        );
        let line = line(1, &one, false);
        assert!(!line.contains(['\u{1b}', '\n', '\u{202e}']), "{line}");
        assert!(
            line.contains("rm\\u{1b}[2J\\u{a}1. xxx") && line.contains("xxx...  [name: a\\u{202e}b]"),
            "{line}"
        );
    }

    #[test]
    fn the_status_says_what_is_missing() {
        let project = |workdir: &str, checkpoints, orphan, unprotected: Option<&str>| ProjectStatus {
            hash: "0".to_owned(),
            workdir: PathBuf::from(workdir),
            checkpoints,
            last_touch: "2001-02-03T04:05:06Z".to_owned(),
            orphan,
            unprotected: unprotected.map(str::to_owned),
        };
        let all = StatusReport {
            enabled: false,
            exact: true,
            base: PathBuf::from("/home/me/.nono"),
            store_bytes: 138_100_000,
            legacy_bytes: 4_200_000,
            projects: vec![
                project("/home/me/a", 12, false, None),
                project("/b\n", 1, true, None),
                project("/c", 0, false, Some("no space left\u{1b}")),
            ],
            legacy: vec![("legacy-20260506-050616".to_owned(), 4_200_000)],
            ..StatusReport::default()
        };
        assert_eq!(
            status(&all),
            "Checkpoint base: /home/me/.nono\n\
             Total size:      142.3 MB\n  \
               store          138.1 MB\n  \
               legacy         4.2 MB\n\
             Projects:        3\n\
             \n  \
               WORKDIR     COMMITS  LAST TOUCH  STATE\n  \
               /home/me/a       12  2001-02-03  live\n  \
               /b\\u{a}           1  2001-02-03  orphan\n  \
               /c                0  2001-02-03  live, NOT PROTECTED\n\
             \n\
             NOT PROTECTED: /c: no space left\\u{1b}\n\
             \n\
             Legacy archives (1):\n  \
               legacy-20260506-050616  4.2 MB\n\
             clear them with: nono checkpoints clear-legacy\n\
             \n\
             Checkpoints are off: none is taken automatically.\n\
             turn them on with: nono hooks install AGENT (or `enabled = true` below [checkpoints] in config.toml)"
        );
        let on = StatusReport { enabled: true, base: PathBuf::from("/s"), ..StatusReport::default() };
        assert!(status(&on).ends_with("Projects:        0"));
    }
}
