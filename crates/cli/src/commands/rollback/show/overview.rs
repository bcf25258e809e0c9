//! Overview of a session: what ran, what changed, what to do next. Also its snapshots and their coverage.

use std::io::Write;

use nono::diagnostic::{escape, quote_all, shown};
use nono::rollback::json::status;
use nono::rollback::{Item, ItemKind, SessionEntry, SnapshotInfo, Status};
use nono::snapshot::{Manifest, SnapshotId};

use super::Shown;
use crate::age::{ago, local};
use crate::commands::diff_output::DiffFailure;
use crate::commands::rollback_notices::{counts, not_covered};
use crate::paint::{Span, Style, mark, title};
use crate::review::text::columns;
use crate::units::{bytes, files, grouped, some};

/// Maximum number of lines of a list without `--full`.
const SOME: usize = 200;
/// Maximum width of the name column; longer names do not shift the other rows.
const NAME: usize = 60;

pub(super) fn overview(view: &Shown<'_>, out: &mut dyn Write) -> Result<(), DiffFailure> {
    head(view, out)?;
    view.page.line(&[], out)?;
    let set = view.page.set;
    if set.items.is_empty() {
        view.page.line(&[Span::plain(nothing(view))], out)?;
    } else {
        let title = format!("{}: {}", some(set.items.len(), "change"), counts(&set.counts()));
        view.page.line(&[Span::new(title, Style::Title)], out)?;
        changes(view, out)?;
    }
    for one in view.session.losses(&set.from, &set.to)? {
        view.page.line(&[Span::new(escape(&one.to_string()), Style::Warning)], out)?;
    }
    view.page.line(&[], out)?;
    if let Some(left_out) = not_covered(&view.session.coverage(&set.from)?) {
        view.page.line(&[Span::plain(format!("not covered: {left_out}; --coverage lists all"))], out)?;
    }
    let id = escape(&view.session.entry().id);
    if set.items.is_empty() {
        return Ok(());
    }
    for hint in [
        format!("see the differences: nono rollback show {id} --diff"),
        format!("put everything back: nono rollback restore {id}"),
    ] {
        view.page.line(&[Span::new(hint, Style::Faint)], out)?;
    }
    Ok(())
}

fn nothing(view: &Shown<'_>) -> &'static str {
    let only_baseline = view.page.set.from == view.page.set.to;
    match view.session.entry().status {
        Status::Interrupted if only_baseline => {
            "the session was interrupted before a second snapshot: its changes are unknown"
        }
        Status::Live if only_baseline => "no snapshot since the baseline yet",
        _ if only_baseline && view.session.entry().lacks_final() => "its changes are unknown",
        _ => "nothing changed",
    }
}

fn head(view: &Shown<'_>, out: &mut dyn Write) -> Result<(), DiffFailure> {
    let entry = view.session.entry();
    let title = Span::new(format!("session {}", escape(&entry.id)), Style::Title);
    let alarm = if entry.status == Status::Finished { Style::Plain } else { Style::Warning };
    let mut state = format!("  {}", status(entry.status));
    for (is, word) in [(entry.pinned, ", pinned"), (entry.foreign, ", foreign")] {
        state += if is { word } else { "" };
    }
    view.page.line(&[title, Span::new(state, alarm)], out)?;
    if entry.lacks_final() {
        let lacks = "  the final snapshot failed; the baseline can be restored";
        view.page.line(&[Span::new(lacks, Style::Warning)], out)?;
    }
    for (key, value) in facts(entry) {
        view.page.line(&[Span::new(format!("  {key:<8}"), Style::Faint), Span::plain(value)], out)?;
    }
    let (from, to) = (&view.page.set.from, &view.page.set.to);
    let last = view.session.last()?;
    if *from != SnapshotId::Number(0) || *to != last {
        let value = format!("from snapshot {from} to {to}");
        view.page.line(&[Span::new("  compared", Style::Faint), Span::plain(format!(" {value}"))], out)?;
    }
    Ok(())
}

fn facts(entry: &SessionEntry) -> Vec<(&'static str, String)> {
    let metadata = &entry.metadata;
    let mut facts = Vec::new();
    facts.extend(metadata.name.as_ref().map(|name| ("name", escape(name))));
    facts.push(("command", quote_all(&metadata.command)));
    facts.push(("started", format!("{} ({})", local(&metadata.started), ago(&metadata.started))));
    facts.extend(metadata.ended.as_ref().map(|ended| ("ended", local(ended))));
    facts.extend(metadata.exit_code.map(|code| ("exit", code.to_string())));
    facts.extend(metadata.tracked_paths.iter().map(|root| ("tracked", shown(root))));
    facts
}

fn changes(view: &Shown<'_>, out: &mut dyn Write) -> Result<(), DiffFailure> {
    let later = view.page.set.items.iter().take_while(|item| item.executes_later.is_some()).count();
    let (first, rest) = view.page.set.items.split_at(later);
    let titles: Vec<String> = view.page.set.items.iter().map(|item| title(view.page.set, item)).collect();
    let width = titles.iter().map(|title| columns(title)).filter(|width| *width <= NAME).max().unwrap_or(0);
    if !first.is_empty() {
        view.page.line(&[Span::new("will execute later:", Style::Warning)], out)?;
    }
    for (item, title) in first.iter().zip(&titles) {
        line(view, item, title, width, out)?;
        if let Some(why) = item.executes_later {
            view.page.line(&[Span::new(format!("      {}: {}", why.what, why.why), Style::Warning)], out)?;
        }
    }
    if !first.is_empty() && !rest.is_empty() {
        view.page.line(&[Span::plain("everything else:")], out)?;
    }
    let limit = if view.page.full { rest.len() } else { SOME };
    for (item, title) in rest.iter().zip(&titles[later..]).take(limit) {
        line(view, item, title, width, out)?;
    }
    if rest.len() > limit {
        let more = grouped((rest.len() - limit) as u64);
        view.page
            .line(&[Span::new(format!("  ... and {more} more (--full lists all)"), Style::Faint)], out)?;
    }
    Ok(())
}

fn line(
    view: &Shown<'_>,
    item: &Item,
    title: &str,
    width: usize,
    out: &mut dyn Write,
) -> Result<(), DiffFailure> {
    let style = match item.kind {
        ItemKind::Created => Style::Added,
        ItemKind::Deleted => Style::Removed,
        _ => Style::Plain,
    };
    let filled = " ".repeat(width.saturating_sub(columns(title)));
    let spans = [
        Span::new(format!("  {} {title}", mark(&item.kind)), style),
        Span::new(format!("{filled}  {}", detail(item)), Style::Faint),
    ];
    view.page.line(&spans, out)
}

/// Changes of size, kind and permissions.
fn detail(item: &Item) -> String {
    let mut parts: Vec<String> = item.history.iter().flatten().map(|line| escape(line)).collect();
    if item.size_delta != 0 {
        let sign = if item.size_delta < 0 { '-' } else { '+' };
        parts.push(format!("{sign}{}", bytes(item.size_delta.unsigned_abs())));
    }
    if let (Some(old), Some(new)) = (&item.old, &item.new) {
        if old.kind != new.kind {
            parts.push("different file type".to_owned());
        } else if old.mode != new.mode {
            parts.push(format!("{:04o} -> {:04o}", old.mode, new.mode));
        }
    }
    parts.join(", ")
}

/// Lists the snapshots, one per line.
pub(super) fn snapshots(view: &Shown<'_>, out: &mut dyn Write) -> Result<(), DiffFailure> {
    let known = view.session.snapshots()?;
    let width = known.iter().map(|info| info.id.to_string().len()).max().unwrap_or(0);
    let what = |info: &SnapshotInfo| match (&info.id, info.thinned) {
        (_, true) => "removed to make room",
        (SnapshotId::Number(0), _) => "baseline",
        (SnapshotId::Number(_), _) => "",
        (SnapshotId::Safety(_), _) => "before a restore",
    };
    for info in &known {
        let id = escape(&info.id.to_string());
        let when = format!("{} ({})", local(&info.timestamp), ago(&info.timestamp));
        view.page.line(&[Span::plain(format!("{id:>width$}  {when}  {}", what(info)))], out)?;
    }
    Ok(())
}

/// Lists what the snapshot does not cover, with the reasons.
pub(super) fn coverage(manifest: &Manifest, full: bool, out: &mut dyn Write) -> Result<(), DiffFailure> {
    let coverage = &manifest.coverage;
    let files = files(coverage.files);
    writeln!(out, "snapshot {}: {files}, {}", escape(&manifest.id.to_string()), bytes(coverage.bytes))?;
    for note in &coverage.notes {
        writeln!(out, "{}", escape(&note.to_string()))?;
    }
    let left_out = manifest.left_out().map_err(nono::snapshot::SnapshotError::from);
    let left_out = left_out.map_err(nono::rollback::RollbackError::from)?;
    if left_out.is_empty() {
        writeln!(out, "everything is covered")?;
        return Ok(());
    }
    writeln!(out, "not covered: {}", some(left_out.len(), "path"))?;
    let limit = if full { left_out.len() } else { SOME };
    for (path, reason) in left_out.iter().take(limit) {
        writeln!(out, "  {}: {}", shown(path), escape(&reason.to_string()))?;
    }
    if left_out.len() > limit {
        writeln!(out, "  ... and {} more (--full lists all)", grouped((left_out.len() - limit) as u64))?;
    }
    Ok(())
}
