//! The review: what a session changed, and what of it goes back.
//!
//! Full screen where the terminal can show it, else a plain prompt; both work on a [`source::Source`]. Nothing is
//! restored before its plan was shown and confirmed, and leaving in any way keeps everything as it is.

mod app;
mod diff_pane;
mod draw;
mod keys;
mod marks;
mod plain;
mod popup;
mod screen;
mod source;
pub(crate) mod text;
mod tree;
mod view;
mod watch;
mod words;

#[cfg(test)]
mod tests;

use nono::rollback::{ChangeSet, Done, RollbackSession};
use nono::snapshot::SnapshotId;

use crate::failure::Failure;
use crate::message;
use app::App;
use source::Source;

/// How a review is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Full screen, where the terminal can do it.
    pub(crate) tui: bool,
}

/// At the end of a run: nothing where nothing changed, or nobody is there to look.
pub(crate) fn after_run(session: RollbackSession, set: ChangeSet, how: How) -> Result<(), Failure> {
    if set.items.is_empty() || !message::can_ask() {
        return Ok(());
    }
    show(Box::new(session), set, how).map(|_| ())
}

/// `nono rollback review ID`: 0, or 1 if something that was to be restored was not.
pub(crate) fn review(session: RollbackSession) -> Result<u8, Failure> {
    let id = session.entry().id.clone();
    let set = Source::changes(&session, &SnapshotId::Number(0))?;
    if set.items.is_empty() {
        message::line("nothing changed in this session");
        return Ok(0);
    }
    if !screen::is_capable() && !message::can_ask() {
        return Err(Failure::new("a review needs a terminal").hint(format!("nono rollback show {id}")));
    }
    show(Box::new(session), set, How { tui: true })
}

fn show(mut source: Box<dyn Source>, set: ChangeSet, how: How) -> Result<u8, Failure> {
    if !(how.tui && screen::is_capable()) {
        let done = plain::ask(source.as_mut(), &set)?;
        return Ok(end(done.as_slice()));
    }
    let id = source.id();
    let mut app = App::new(source, set);
    let shown = screen::show(&mut app);
    // What was done is said whatever became of the screen.
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
    for said in words::done(set, done) {
        message::line(&said.text);
    }
}

fn end(done: &[Done]) -> u8 {
    u8::from(!done.iter().all(Done::is_whole))
}
