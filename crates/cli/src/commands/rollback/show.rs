//! `nono rollback show`: what a session changed, as a list, as differences, as a patch, as JSON.

mod answer;
mod overview;

use std::io::{self, IsTerminal, Write};

use nono::rollback::restore::CONTEXT;
use nono::rollback::{Body, ChangeSet, FileDiff, Item, RollbackError, RollbackSession};
use nono::snapshot::SnapshotId;

use super::Place;
use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::message;
use crate::pager::{Pager, canvas};
use crate::paint::{self, Canvas, Span, Stat};

pub(super) fn show(args: &ShowArgs, place: &Place) -> Result<u8, Failure> {
    let mut session = place.open(&args.session)?;
    let (from, to) = range(args, &session)?;
    let mut set = session.changes(&from, &to)?;
    if !args.paths.is_empty() {
        let chosen = session.resolve_paths(&from, &args.paths, &place.cwd)?;
        set.items.retain(|item| {
            chosen.iter().any(|path| item.path.starts_with(path) || item.old_path().starts_with(path))
        });
    }
    if args.json {
        message::answer_json(&answer::json(&mut session, &set, args)?)?;
        return Ok(0);
    }
    let shown = Shown { session: &session, set: &set, canvas: canvas(), full: args.full };
    if args.diff && !args.side_by_side && !io::stdout().is_terminal() {
        return shown.patch();
    }
    let mut out = Pager::new();
    let written = match () {
        () if args.snapshots => overview::snapshots(&shown, &mut out),
        () if args.coverage => {
            let manifest = session.manager().load_whole(&from).map_err(RollbackError::from)?;
            overview::coverage(&manifest, args.full, &mut out)
        }
        () if args.side_by_side || args.diff => shown.differences(args.side_by_side, &mut out),
        () if args.stat => shown.stat(&mut out),
        () => overview::overview(&shown, &mut out),
    };
    until_read_enough(written)?;
    out.finish()?;
    Ok(0)
}

/// Whoever stops reading (`| head`, a pager that is left) has read enough.
fn until_read_enough(written: Result<(), Failed>) -> Result<(), Failure> {
    match written {
        Err(Failed::Io(error) | Failed::Rollback(RollbackError::Io { source: error, .. }))
            if error.kind() == io::ErrorKind::BrokenPipe =>
        {
            Ok(())
        }
        Err(Failed::Io(error)) => Err(error.into()),
        Err(Failed::Rollback(error)) => Err(error.into()),
        Ok(()) => Ok(()),
    }
}

/// From the baseline to the last snapshot, if nothing else is asked for.
fn range(args: &ShowArgs, session: &RollbackSession) -> Result<(SnapshotId, SnapshotId), RollbackError> {
    let known = session.snapshots()?;
    let find = |number: u32| {
        let id = SnapshotId::Number(number);
        let missing = || RollbackError::NoSnapshot { id: session.entry().id.clone(), snapshot: id.clone() };
        if known.iter().any(|info| info.id == id) { Ok(id.clone()) } else { Err(missing()) }
    };
    let to = args.to.map_or_else(|| session.last(), find)?;
    Ok((find(args.from.unwrap_or(0))?, to))
}

/// What is looked at, and on what.
struct Shown<'a> {
    session: &'a RollbackSession,
    set: &'a ChangeSet,
    canvas: Canvas,
    full: bool,
}

enum Failed {
    Io(io::Error),
    Rollback(RollbackError),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

impl From<RollbackError> for Failed {
    fn from(error: RollbackError) -> Failed {
        Failed::Rollback(error)
    }
}

impl Shown<'_> {
    /// For a program: the patch and nothing else on stdout. Whoever applies it must know what it does not carry.
    fn patch(&self) -> Result<u8, Failure> {
        let mut unsaid = Vec::new();
        until_read_enough(self.write_patch(&mut unsaid))?;
        if let [first, more @ ..] = &unsaid[..] {
            let first = paint::title(self.set, first);
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            message::line(&format!(
                "warning: a patch cannot carry all of this, it is a comment there: {first}{more}"
            ));
        }
        Ok(0)
    }

    fn write_patch<'a>(&'a self, unsaid: &mut Vec<&'a Item>) -> Result<(), Failed> {
        let mut items: Vec<&Item> = self.set.items.iter().collect();
        items.sort_by_key(|item| &item.path);
        let mut out = io::BufWriter::new(io::stdout().lock());
        for item in items {
            let mut patch = Vec::new();
            self.session.write_patch(self.set, &[item], &mut patch)?;
            out.write_all(&patch)?;
            if patch.starts_with(b"#") || patch.windows(2).any(|pair| pair == b"\n#") {
                unsaid.push(item);
            }
        }
        Ok(out.flush()?)
    }

    fn diff(&self, item: &Item) -> Result<FileDiff, RollbackError> {
        self.session.file_diff(item, if self.full { usize::MAX } else { CONTEXT })
    }

    fn line(&self, spans: &[Span], out: &mut dyn Write) -> Result<(), Failed> {
        Ok(out.write_all(self.canvas.line(spans).as_bytes())?)
    }

    fn differences(&self, side_by_side: bool, out: &mut dyn Write) -> Result<(), Failed> {
        for (at, item) in self.set.items.iter().enumerate() {
            if at > 0 {
                self.line(&[], out)?;
            }
            let diff = self.diff(item)?;
            for line in paint::header(self.set, item, &diff) {
                self.line(&line, out)?;
            }
            let Body::Text(hunks) = &diff.body else { continue };
            if side_by_side {
                paint::side_by_side(hunks, self.canvas.width).try_for_each(|line| self.line(&line, out))?;
            } else {
                paint::unified(hunks).try_for_each(|line| self.line(&line, out))?;
            }
        }
        Ok(())
    }

    fn stat(&self, out: &mut dyn Write) -> Result<(), Failed> {
        let stat = |item| Ok(Stat::new(self.set, item, &self.session.file_diff(item, 0)?));
        let stats = self.set.items.iter().map(stat).collect::<Result<Vec<_>, RollbackError>>()?;
        paint::stat(&stats, self.canvas.width).iter().try_for_each(|line| self.line(line, out))
    }
}
