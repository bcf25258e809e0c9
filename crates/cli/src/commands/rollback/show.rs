//! `nono rollback show`: shows what a session changed, as a list, as differences, as a patch or as JSON.

mod answer;
mod overview;

use std::io::{self, IsTerminal};

use nono::rollback::{RollbackError, RollbackSession};

use super::SessionContext;
use super::session_choice::{SessionChoice, choose};
use crate::args::{LookArgs, ShowArgs};
use crate::commands::diff_output::{Page, until_read_enough};
use crate::failure::Failure;
use crate::message;
use crate::pager::{Pager, canvas};

pub(super) fn show(args: &ShowArgs, place: &SessionContext) -> Result<u8, Failure> {
    present(choose(&args.choice, place)?, &args.look, place)?;
    Ok(0)
}

/// Prints what the flags select; returns whether anything differs.
pub(crate) fn present(
    choice: SessionChoice,
    args: &LookArgs,
    place: &SessionContext,
) -> Result<bool, Failure> {
    let SessionChoice { mut session, paths } = choice;
    let (from, to) = session.range(args.from.unwrap_or(0), args.to)?;
    let mut set = session.changes(&from, &to)?;
    if !paths.is_empty() {
        let chosen = session.resolve_paths(&from, &paths, &place.cwd)?;
        set = set.within(&chosen);
    }
    let differs = !set.items.is_empty();
    if args.json {
        message::answer_json(&answer::json(&mut session, &set, args)?)?;
        return Ok(differs);
    }
    let page = Page { manager: session.engine(), set: &set, canvas: canvas(), full: args.full };
    let shown = Shown { session: &session, page };
    if args.diff && !args.side_by_side && !io::stdout().is_terminal() {
        shown.page.patch()?;
        return Ok(differs);
    }
    let mut out = Pager::new();
    let written = match () {
        () if args.snapshots => overview::snapshots(&shown, &mut out),
        () if args.coverage => {
            let manifest = session.engine().load_whole(&from).map_err(RollbackError::from)?;
            overview::coverage(&manifest, args.full, &mut out)
        }
        () if args.side_by_side || args.diff => shown.page.differences(args.side_by_side, &mut out),
        () if args.stat => shown.page.stat(&mut out),
        () => overview::overview(&shown, &mut out),
    };
    until_read_enough(written)?;
    out.finish()?;
    Ok(differs)
}

/// Session to show, and how.
struct Shown<'a> {
    session: &'a RollbackSession,
    page: Page<'a>,
}
