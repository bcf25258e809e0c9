//! `nono checkpoints diff`: shows what changed since a checkpoint. On a terminal the counts per file, then the
//! differences; elsewhere a patch.

use std::io::{self, IsTerminal, Write};

use nono::checkpoints::{self, Compared, json as shapes};
use nono::rollback::ChangeSet;

use super::CheckpointContext;
use super::names::target;
use crate::args::DiffArgs;
use crate::commands::diff_output::{DiffFailure, Page, until_read_enough};
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::pager::{Pager, canvas};
use crate::progress::watched;

pub(super) fn diff(args: &DiffArgs, place: &mut CheckpointContext) -> Result<u8, Failure> {
    let dir = place.dir(&args.checkpoint.project);
    let target = target(&args.checkpoint);
    let compared =
        watched(&mut place.manager, "looking at the tree", |manager| manager.compare(&dir, &target))?;
    if let Some(signal) = compared.signal {
        return Err(Failure::interrupted(signal));
    }
    let mut compared = compared.value;
    let chosen = checkpoints::chosen(&compared, &args.paths, &place.cwd, args.glob)?;
    let differs = if args.look.json {
        let checkpoint = place.manager.find(&dir, &target)?;
        let differences = checkpoints::differences(&mut compared, &chosen)?;
        message::answer_json(&shapes::diff(&checkpoint, &differences))?;
        !differences.all.is_empty()
    } else {
        let set = checkpoints::changes_of(&mut compared, &chosen);
        show(args, &compared, &set)?;
        !set.items.is_empty()
    };
    compared.close()?;
    Ok(if args.look.exit_code && differs { NOT_DONE } else { 0 })
}

fn show(args: &DiffArgs, compared: &Compared, set: &ChangeSet) -> Result<(), Failure> {
    let page = Page { manager: &compared.manager, set, canvas: canvas(), full: args.look.full };
    let painted = args.look.stat || args.look.side_by_side || args.for_reading || io::stdout().is_terminal();
    if set.items.is_empty() {
        message::line("nothing changed since this checkpoint");
        return Ok(());
    }
    if !painted {
        return page.patch().map(drop);
    }
    let mut out = Pager::new();
    until_read_enough(paint(args, &page, &mut out))?;
    out.finish()
}

fn paint(args: &DiffArgs, page: &Page<'_>, out: &mut dyn Write) -> Result<(), DiffFailure> {
    page.stat(out)?;
    if args.look.stat {
        return Ok(());
    }
    page.line(&[], out)?;
    page.differences(args.look.side_by_side, out)
}
