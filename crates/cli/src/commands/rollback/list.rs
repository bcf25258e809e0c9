//! `nono rollback list`: lists sessions by project, newest first.

use std::path::{Path, PathBuf};

use nono::diagnostic::{escape, quote_all, shown};
use nono::rollback::{RollbackError, SessionEntry, Status, json};

use super::SessionContext;
use crate::age::ago;
use crate::args::ListArgs;
use crate::commands::rollback_notices::counts;
use crate::failure::Failure;
use crate::message;
use crate::units::{grouped, shortened, some, table};

/// Maximum number of characters of a command.
const COMMAND: usize = 48;

pub(super) fn list(args: &ListArgs, place: &SessionContext) -> Result<u8, Failure> {
    let (mut entries, problems) = place.catalogue.list()?;
    if let Some(path) = &args.path {
        let path = resolved(&place.cwd.join(path));
        entries.retain(|entry| contains(entry, &path));
    }
    if let Some(recent) = args.recent {
        entries.truncate(recent as usize);
    }
    if args.json {
        let mut values = entries.iter().map(json::session).collect::<Result<Vec<_>, _>>()?;
        values.extend(problems.iter().filter(|_| args.all).map(json::problem));
        message::answer_json(&values)?;
    } else {
        message::answer(&text(&entries, args))?;
    }
    if !args.json || !args.all {
        say(&problems, args.all, &place.catalogue.sessions_dir());
    }
    Ok(0)
}

/// Warns about entries of the sessions' folder that cannot be read.
fn say(problems: &[RollbackError], all: bool, dir: &Path) {
    if all {
        message::problems("warning", problems);
    } else if !problems.is_empty() {
        let dir = shown(dir);
        let what = match problems.len() {
            1 => format!("1 entry of {dir} is not a readable session"),
            many => format!("{} entries of {dir} are not readable sessions", grouped(many as u64)),
        };
        message::line(&format!("warning: {what}; `nono rollback list --all` says why"));
    }
}

/// Path with links resolved as far as it exists.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(real), Ok(below)) = (above.canonicalize(), path.strip_prefix(above)) {
            return if below == Path::new("") { real } else { real.join(below) };
        }
    }
    path.to_owned()
}

fn contains(entry: &SessionEntry, path: &Path) -> bool {
    let tracked = entry.metadata.tracked_paths.iter();
    tracked.chain([&entry.project]).any(|root| path.starts_with(root))
}

fn text(entries: &[SessionEntry], args: &ListArgs) -> String {
    if entries.is_empty() {
        return match &args.path {
            Some(path) => format!("no sessions of {}", shown(path)),
            None => "no sessions; `nono run --rollback -- command` makes one".to_owned(),
        };
    }
    let mut lines = Vec::new();
    for (project, sessions) in projects(entries) {
        lines.push(format!("{} ({})", shown(project), some(sessions.len(), "session")));
        let rows: Vec<[String; 4]> = sessions.into_iter().map(row).collect();
        lines.extend(table(&rows).iter().map(|line| format!("  {line}")));
    }
    lines.join("\n")
}

/// Sessions by project, in the order of their newest session.
fn projects(entries: &[SessionEntry]) -> Vec<(&Path, Vec<&SessionEntry>)> {
    let mut projects: Vec<(&Path, Vec<&SessionEntry>)> = Vec::new();
    for entry in entries {
        match projects.iter_mut().find(|(project, _)| *project == entry.project) {
            Some((_, sessions)) => sessions.push(entry),
            None => projects.push((&entry.project, vec![entry])),
        }
    }
    projects
}

fn row(entry: &SessionEntry) -> [String; 4] {
    let metadata = &entry.metadata;
    let command = shortened(quote_all(&metadata.command), COMMAND);
    let mut end: Vec<String> = metadata.changes.iter().map(counts).collect();
    let marks = [
        (entry.status == Status::Live, "[running]".to_owned()),
        (entry.status == Status::Interrupted, "[interrupted]".to_owned()),
        (entry.lacks_final(), "[no final snapshot]".to_owned()),
        (entry.pinned, "[pinned]".to_owned()),
        (entry.foreign, "[foreign]".to_owned()),
    ];
    end.extend(marks.into_iter().filter_map(|(is, mark)| is.then_some(mark)));
    end.extend(metadata.name.iter().map(|name| format!("[name: {}]", escape(name))));
    let left_out = metadata.coverage.as_ref().map_or(0, nono::snapshot::Coverage::entries_left_out);
    end.extend((left_out > 0).then(|| format!("[not covered: {}]", grouped(left_out))));
    let end = match end.split_first() {
        Some((first, marks)) if !first.starts_with('[') && !marks.is_empty() => {
            format!("{first}  {}", marks.join(" "))
        }
        _ => end.join(" "),
    };
    [escape(&entry.id), ago(&metadata.started), command, end]
}
