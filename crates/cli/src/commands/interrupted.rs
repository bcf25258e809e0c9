//! Sessions whose supervisor was killed: the next command in the same directory ends them and reports what they did.

use nono::control::{Killed, end_killed};
use nono::diagnostic::{escape, quote_all, shown};
use nono::rollback::{Catalogue, ChangeSet, RollbackReport, SessionEntry};
use nono::snapshot::ChangeCounts;

use super::rollback::text::{self, Below, Length};
use super::rollback_notices::counts;
use super::upkeep;
use crate::age::ago;
use crate::failure::Failure;
use crate::host::{host, request_socket};
use crate::message;
use crate::progress::observed;
use crate::units::few;

/// Maximum number of autorun files listed.
const NAMED: usize = 5;

/// Ends the sessions in the current directory whose supervisor was killed. A failure is reported and does not prevent
/// the command; Ctrl-C does.
pub(super) fn end_here() -> Result<(), Failure> {
    // Inside a sandbox the supervisor is alive, and its state cannot be read.
    if request_socket().is_some() {
        return Ok(());
    }
    // A missing home is reported by the command itself.
    let Some(host) = host(None).ok().filter(|host| !host.nested) else { return Ok(()) };
    let catalogue = Catalogue::new(&host.context.state_dir);
    let cwd = host.context.cwd.canonicalize().unwrap_or(host.context.cwd);
    for Killed { info, closed } in end_killed(&host.context.state_dir, &cwd) {
        let (id, command, time) = (escape(&info.id), escape(&quote_all(&info.command)), ago(&info.started));
        message::line(&format!("session {id} ({command}, {time}) was killed together with nono"));
        match closed {
            Ok(true) => message::line("its audit log was closed and marked as interrupted"),
            Ok(false) => {}
            Err(why) => {
                message::line(&format!("warning: cannot close its audit log: {}", escape(&why.to_string())));
            }
        }
    }
    // Unreadable sessions are reported by the commands that list them.
    for entry in catalogue.killed(&[cwd]).unwrap_or_default() {
        end(&catalogue, entry)?;
    }
    Ok(())
}

fn end(catalogue: &Catalogue, entry: SessionEntry) -> Result<(), Failure> {
    let id = escape(&entry.id);
    let command = escape(&quote_all(&entry.metadata.command));
    let started = ago(&entry.metadata.started);
    let ended = observed("last snapshot of files", |observer| catalogue.end_killed(entry, observer, true))?;
    if let Ok(None) = ended {
        return Ok(());
    }
    message::line(&format!("session {id} ({command}, {started}) ended without a review: nono was killed"));
    match ended {
        Err(error) => drop(Failure::from(error).report()),
        Ok(report) => {
            for line in report.into_iter().flat_map(told) {
                message::line(&line);
            }
        }
    }
    upkeep::after_command();
    Ok(())
}

/// Lines about an ended session: as after a run, with the autorun files.
fn told(report: RollbackReport) -> Vec<String> {
    let id = escape(&report.id);
    let mut lines: Vec<String> =
        report.warnings.iter().map(|warning| format!("warning: {}", escape(warning))).collect();
    let lost = text::lost(&report.lost, &Below::new(&[]), Length::Done);
    lines.extend(lost.into_iter().map(|line| format!("warning: {line}")));
    match report.changes {
        Err(error) => {
            lines.push(format!("error: cannot take its last snapshot: {}", escape(&error.to_string())));
            lines.push(format!(
                "hint: its first snapshot exists: `nono rollback restore {id}` restores everything"
            ));
        }
        Ok(changed) if changed.counts == ChangeCounts::default() => {
            lines.push("nothing changed since it began".to_owned());
        }
        Ok(changed) => {
            lines.push(format!(
                "changes since it began, your own later ones included: {}; see them with: nono rollback review {id}",
                counts(&changed.counts)
            ));
            lines.extend(changed.list.as_ref().and_then(later));
        }
    }
    lines
}

/// Line about changed autorun files.
fn later(set: &ChangeSet) -> Option<String> {
    let paths: Vec<String> = set
        .items
        .iter()
        .filter(|item| item.executes_later.is_some())
        .map(|item| shown(&set.shown(&item.path)))
        .collect();
    (!paths.is_empty()).then(|| format!("will execute later: {}", few(&paths, NAMED)))
}
