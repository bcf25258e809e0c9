//! Capturing with little free space: which files are written, and which are not even read.

use std::io;
use std::path::{Path, PathBuf};

use super::CaptureRequest;
use crate::capture::error::Result;
use crate::paths;
use crate::store::WriteOptions;

/// Limits of a capture on a full disk, made before a restore replaces files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortage<'a> {
    /// Paths that the restore is about; `None` for everything.
    pub(crate) only: Option<&'a [PathBuf]>,
    /// Bytes that may be written.
    pub(crate) room: u64,
}

/// Write options of an attempt.
pub(super) fn write_options(request: &CaptureRequest<'_>, compress: bool) -> Result<WriteOptions> {
    let budget = request.options.budget;
    let spare = budget.map_or(0, |budget| budget / 16);
    let mut options = WriteOptions { compress, budget, spare, ..WriteOptions::default() };
    if let Some(Shortage { room, .. }) = request.shortage {
        // Small files can only be copied into the store; large ones can be moved.
        options.budget = Some(budget.map_or(room, |budget| budget.min(room)));
        (options.spare, options.spare_large) = (room / 4, room / 4 * 3);
        options.defer_on = Some(request.store.device()?);
    }
    Ok(options)
}

/// The selected paths inside a root, relative to it; the whole root if a selected path contains it.
pub(super) fn chosen(root: &Path, only: &[PathBuf]) -> Vec<Vec<u8>> {
    let around = only.iter().filter(|path| root.starts_with(path)).map(|_| Vec::new());
    let inside = only.iter().filter_map(|path| path.strip_prefix(root).ok());
    around.chain(inside.map(|path| paths::bytes(path).to_vec())).collect()
}

/// Text of a system error, without its number.
pub(super) fn text_of(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
