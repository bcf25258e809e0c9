//! Capturing with little room: what is written, and what is not even read.

use std::io;
use std::path::{Path, PathBuf};

use super::{CaptureError, Request};
use crate::paths;
use crate::store::WriteOptions;

/// The disk is full, and what a restore displaces has to be stored first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortage<'a> {
    /// What the restore is about; everything without.
    pub(crate) only: Option<&'a [PathBuf]>,
    /// How many bytes there are for it.
    pub(crate) room: u64,
}

/// How an attempt writes to the store.
pub(super) fn write_options(request: &Request<'_>, compress: bool) -> Result<WriteOptions, CaptureError> {
    let budget = request.options.budget;
    let spare = budget.map_or(0, |budget| budget / 16);
    let mut options = WriteOptions { compress, budget, spare, ..WriteOptions::default() };
    if let Some(Shortage { room, .. }) = request.shortage {
        // Small files have no other way into the store; large ones can be moved.
        options.budget = Some(budget.map_or(room, |budget| budget.min(room)));
        (options.spare, options.spare_large) = (room / 4, room / 4 * 3);
        options.defer_on = Some(request.store.device()?);
    }
    Ok(options)
}

/// The chosen paths that are in a root, from there; one that is around it is all of it.
pub(super) fn chosen(root: &Path, only: &[PathBuf]) -> Vec<Vec<u8>> {
    let around = only.iter().filter(|path| root.starts_with(path)).map(|_| Vec::new());
    let inside = only.iter().filter_map(|path| path.strip_prefix(root).ok());
    around.chain(inside.map(|path| paths::bytes(path).to_vec())).collect()
}

/// What the system says, without its number.
pub(super) fn text_of(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
