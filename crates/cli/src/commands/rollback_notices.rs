//! Messages around a run with snapshots: the baseline before it, the changes after it, and the review.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use nono::audit::Author;
use nono::diagnostic::{escape, shown};
use nono::rollback::{Baseline, Catalogue, ChangeSet, RollbackReport};
use nono::session::{Host, RunObserver};
use nono::snapshot::{Cause, ChangeCounts, Coverage, Example};

use super::rollback::text::{self, Below, Length};
use super::upkeep;
use crate::args::CommonArgs;
use crate::message;
use crate::progress::Bar;
use crate::review;
use crate::units::{bytes, count, files, seconds};

/// Run observer that prints to the terminal.
pub(super) struct TerminalObserver {
    silent: bool,
    everything: bool,
    /// Whether a review follows.
    reviewed: bool,
    /// Progress of the baseline; none once it is taken.
    bar: Mutex<Option<Bar>>,
}

impl TerminalObserver {
    pub(super) fn new(common: &CommonArgs) -> TerminalObserver {
        let bar = Mutex::new(if common.silent { None } else { Bar::new("snapshot of files") });
        let everything = common.tracking.request().request.all;
        TerminalObserver { silent: common.silent, everything, reviewed: is_reviewed(common), bar }
    }
}

impl RunObserver for TerminalObserver {
    fn capturing(&self, files: u64) {
        // If another thread draws now, this update can be skipped.
        if let Ok(bar) = self.bar.try_lock()
            && let Some(bar) = &*bar
        {
            bar.draw(files, 0);
        }
    }

    fn wants_list(&self) -> bool {
        self.reviewed
    }

    fn baseline(&self, baseline: &Baseline<'_>) {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner).take();
        message::problems("warning", baseline.warnings);
        if self.silent {
            return;
        }
        for note in baseline.notes {
            message::line(&escape(note));
        }
        let coverage = baseline.coverage;
        let mut line = format!(
            "snapshot 0: {}, {} in {}",
            files(coverage.files),
            bytes(coverage.bytes),
            seconds(baseline.took)
        );
        if let Some(left_out) = not_covered(coverage) {
            let hint = if !self.everything
                && coverage.left_out.iter().any(|left_out| is_included_by_all(left_out.cause))
            {
                " — --rollback-all to include"
            } else {
                ""
            };
            line = format!("{line}; not covered: {left_out}{hint}");
        }
        message::line(&line);
        for note in &coverage.notes {
            message::line(&escape(&note.to_string()));
        }
    }
}

fn is_reviewed(common: &CommonArgs) -> bool {
    !common.silent && !common.tracking.no_rollback_prompt && message::can_ask()
}

/// Prints the result after the run, and starts the review if there is a terminal.
pub(super) fn conclude(report: RollbackReport, host: &Host, common: &CommonArgs) {
    message::problems("warning", &report.warnings);
    if !common.silent {
        let made = made_uncovered(&report.made_uncovered);
        for line in report.notes.iter().map(|note| escape(note)).chain(made) {
            message::line(&line);
        }
    }
    // Printed even with `--silent`.
    let nowhere = Below::new(&[]);
    for line in text::lost(&report.lost, &nowhere, Length::Done) {
        message::line(&format!("warning: {line}"));
    }
    match report.changes {
        Err(error) => {
            let why = escape(&error.to_string());
            message::line(&format!("error: cannot take the final snapshot: {why}"));
            message::line(&format!(
                "hint: the baseline exists: `nono rollback restore {}` restores everything",
                report.id
            ));
        }
        Ok(_) if common.silent => {}
        Ok(changed) if changed.counts == ChangeCounts::default() => {
            let what = if report.lost.is_empty() { "nothing changed" } else { "nothing else changed" };
            message::line(&format!("session {}: {what}", report.id));
        }
        Ok(changed) => {
            let counts = counts(&changed.counts);
            message::line(&format!("session {id}: {counts}; nono rollback show {id}", id = report.id));
            if let Some(changes) = changed.list.filter(|_| is_reviewed(common)) {
                review(&report.id, &report.dir, changes, host, !common.tracking.no_tui);
            }
        }
    }
}

/// Runs the review. A failure is reported, but does not change the exit code.
fn review(id: &str, dir: &Path, changes: ChangeSet, host: &Host, tui: bool) {
    let catalogue = Catalogue::new(&host.context.state_dir);
    let opened = Catalogue::ended(id, dir).and_then(|entry| {
        let author = author(&entry.metadata.command, host);
        catalogue.recording(author).open(entry)
    });
    let reviewed = match opened {
        Ok(session) => review::after_run(session, changes, tui),
        Err(error) => Err(error.into()),
    };
    if let Err(failure) = reviewed {
        failure.report();
    }
    // A restore has stored a safety snapshot.
    upkeep::after_command();
}

/// Author of restores right after a run, with the command from the session, since the command line may be hidden.
fn author(command: &[String], host: &Host) -> Author {
    let words = ["nono", "run", "--"].into_iter().chain(command.iter().map(String::as_str));
    Author { command: words.map(OsString::from).collect(), workdir: host.context.cwd.clone() }
}

/// Whether `--rollback-all` would include it.
fn is_included_by_all(cause: Cause) -> bool {
    matches!(cause, Cause::Ignored | Cause::Artifact | Cause::LargePack | Cause::TooLarge)
}

/// Line about files that the command created and no snapshot covers.
pub(crate) fn made_uncovered(made: &[Example]) -> Option<String> {
    let named = made.iter().take(3).map(|one| format!("{}: {}", shown(&one.path), escape(&one.reason)));
    let more = if made.len() > 3 { ", ..." } else { "" };
    let named = named.collect::<Vec<_>>().join(", ");
    (!made.is_empty())
        .then(|| format!("created but not covered, so a restore does not remove it: {named}{more}"))
}

/// Counts of changes: `+5 ~2 -1`, renames and permissions.
pub(crate) fn counts(counts: &ChangeCounts) -> String {
    let parts = [("+", counts.created), ("~", counts.modified), ("-", counts.deleted)];
    let mut words: Vec<String> = parts.iter().map(|(mark, count)| format!("{mark}{count}")).collect();
    let more = [("renamed", counts.renamed), ("with other permissions", counts.permissions_changed)];
    words
        .extend(more.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("({count} {what})")));
    words.join(" ")
}

/// Short description of what a snapshot does not cover.
pub(crate) fn not_covered(coverage: &Coverage) -> Option<String> {
    let directories = coverage.left_out.iter().map(|left_out| left_out.directories).sum();
    let entries: u64 = coverage.entries_left_out();
    let example = |example: &nono::snapshot::Example| {
        let name = example.path.file_name().map_or(&*example.path, Path::new);
        format!("{}: {}", shown(name), escape(&example.reason))
    };
    let examples: Vec<String> =
        coverage.left_out.iter().filter_map(|left_out| left_out.examples.first().map(example)).collect();
    let counted: Vec<String> =
        [count(directories, "directory", "directories"), count(entries - directories, "file", "files")]
            .into_iter()
            .flatten()
            .collect();
    let more = if entries > examples.len() as u64 { ", ..." } else { "" };
    (entries > 0).then(|| format!("{} ({}{more})", counted.join(", "), examples.join(", ")))
}
