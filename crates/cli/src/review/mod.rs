//! Review of a session's changes, with a choice of what to restore.
//!
//! Full screen where the terminal can show it, else a plain prompt; both work on a [`source::ReviewSource`]. Nothing is
//! restored before its plan was shown and confirmed, and leaving in any way keeps everything as it is.

mod app;
mod diff_pane;
mod draw;
mod keys;
mod labels;
mod marks;
mod plain;
mod popup;
mod screen;
mod source;
pub(crate) mod text;
mod tree;
mod view;
mod watch;

#[cfg(test)]
mod tests;

use nono::rollback::{ChangeSet, Done, RollbackSession};
use nono::snapshot::SnapshotId;

use crate::failure::Failure;
use crate::message;
use app::App;
use source::ReviewSource;

/// Shows the review at the end of a run, if something changed and there is a terminal. `tui`: full screen, if the
/// terminal is capable of it.
pub(crate) fn after_run(session: RollbackSession, set: ChangeSet, tui: bool) -> Result<(), Failure> {
    if set.items.is_empty() || !message::can_ask() {
        return Ok(());
    }
    show(Box::new(session), set, tui).map(|_| ())
}

/// Runs `nono rollback review`: 0, or 1 if something was not restored.
pub(crate) fn review(session: RollbackSession) -> Result<u8, Failure> {
    let id = session.entry().id.clone();
    let set = ReviewSource::changes(&session, &SnapshotId::Number(0))?;
    if set.items.is_empty() {
        message::line("nothing changed in this session");
        return Ok(0);
    }
    if !screen::is_capable() && !message::can_ask() {
        return Err(Failure::new("a review needs a terminal").hint(format!("nono rollback show {id}")));
    }
    show(Box::new(session), set, true)
}

fn show(mut source: Box<dyn ReviewSource>, set: ChangeSet, tui: bool) -> Result<u8, Failure> {
    if !(tui && screen::is_capable()) {
        let done = plain::ask(source.as_mut(), &set)?;
        return Ok(end(done.as_slice()));
    }
    let id = source.id();
    let mut app = App::new(source, set);
    let shown = screen::show(&mut app);
    // Reported even if the screen failed.
    for done in &app.finished {
        report(&app.set, done);
    }
    if app.finished.is_empty() {
        message::line(&format!("everything kept; look again with: nono rollback review {id}"));
    }
    shown?;
    Ok(end(&app.finished))
}

fn report(set: &ChangeSet, done: &Done) {
    for said in labels::done(set, done) {
        message::line(&said.text);
    }
}

fn end(done: &[Done]) -> u8 {
    u8::from(!done.iter().all(Done::is_whole))
}
