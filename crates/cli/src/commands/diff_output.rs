//! Differences between two snapshots on stdout: coloured, counted, or as a patch. For sessions and checkpoints.

use std::io::{self, Write};

use nono::rollback::restore::CONTEXT;
use nono::rollback::{Body, ChangeSet, FileDiff, Item, RollbackError, patch};
use nono::snapshot::SnapshotManager;

use crate::failure::Failure;
use crate::message;
use crate::paint::{self, Canvas, Span, Stat};
use crate::units::few;

/// Treats a closed pipe (`| head`, a pager that was quit) as success.
pub(super) fn until_read_enough(written: Result<(), DiffFailure>) -> Result<(), Failure> {
    match written {
        Err(DiffFailure::Io(error) | DiffFailure::Rollback(RollbackError::Io { source: error, .. }))
            if error.kind() == io::ErrorKind::BrokenPipe =>
        {
            Ok(())
        }
        Err(DiffFailure::Io(error)) => Err(Failure::stdout(&error)),
        Err(DiffFailure::Rollback(error)) => Err(error.into()),
        Ok(()) => Ok(()),
    }
}

/// Changes to show, and how.
pub(super) struct Page<'a> {
    pub(super) manager: &'a SnapshotManager,
    pub(super) set: &'a ChangeSet,
    pub(super) canvas: Canvas,
    /// Show whole files and whole lists.
    pub(super) full: bool,
}

pub(super) enum DiffFailure {
    Io(io::Error),
    Rollback(RollbackError),
}

impl From<io::Error> for DiffFailure {
    fn from(error: io::Error) -> DiffFailure {
        DiffFailure::Io(error)
    }
}

impl From<RollbackError> for DiffFailure {
    fn from(error: RollbackError) -> DiffFailure {
        DiffFailure::Rollback(error)
    }
}

impl Page<'_> {
    /// Prints the patch alone to stdout, and warns about changes that a patch cannot express.
    pub(super) fn patch(&self) -> Result<u8, Failure> {
        let mut unsaid = Vec::new();
        until_read_enough(self.write_patch(&mut unsaid))?;
        if !unsaid.is_empty() {
            let titles: Vec<String> = unsaid.into_iter().map(|item| paint::title(self.set, item)).collect();
            message::line(&format!(
                "warning: a patch cannot express all changes, they are comments in it: {}",
                few(&titles, 1)
            ));
        }
        Ok(0)
    }

    fn write_patch<'a>(&'a self, unsaid: &mut Vec<&'a Item>) -> Result<(), DiffFailure> {
        let mut items: Vec<&Item> = self.set.items.iter().collect();
        items.sort_by_key(|item| &item.path);
        let mut out = io::BufWriter::new(io::stdout().lock());
        for item in items {
            let mut text = Vec::new();
            patch::write_patch(self.manager, self.set, &[item], &mut text)?;
            out.write_all(&text)?;
            if text.starts_with(b"#") || text.windows(2).any(|pair| pair == b"\n#") {
                unsaid.push(item);
            }
        }
        Ok(out.flush()?)
    }

    fn diff(&self, item: &Item) -> Result<FileDiff, RollbackError> {
        patch::file_diff(self.manager, item, if self.full { usize::MAX } else { CONTEXT })
    }

    pub(super) fn line(&self, spans: &[Span], out: &mut dyn Write) -> Result<(), DiffFailure> {
        Ok(out.write_all(self.canvas.line(spans).as_bytes())?)
    }

    pub(super) fn differences(&self, side_by_side: bool, out: &mut dyn Write) -> Result<(), DiffFailure> {
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

    pub(super) fn stat(&self, out: &mut dyn Write) -> Result<(), DiffFailure> {
        let stat = |item| Ok(Stat::new(self.set, item, &patch::file_diff(self.manager, item, 0)?));
        let stats = self.set.items.iter().map(stat).collect::<Result<Vec<_>, RollbackError>>()?;
        paint::stat(&stats, self.canvas.width).iter().try_for_each(|line| self.line(line, out))
    }
}
