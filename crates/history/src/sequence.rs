//! Order of sessions and restores of one state folder: a counter in a file, independent of wrong clocks and of several
//! restores in one second.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Take the next number from the counter at `path`; None if its folder is missing. `highest` finds the last number
/// used, if the file lost it in a power failure; if it finds none, no number is given.
pub fn next(path: &Path, highest: impl FnOnce() -> Option<u64>) -> io::Result<Option<u64>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let opened = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    file.lock()?;
    let taken = count_up(&mut file, highest);
    // Closing is not enough: a child between fork and exec still has the descriptor.
    file.unlock()?;
    taken
}

fn count_up(file: &mut File, highest: impl FnOnce() -> Option<u64>) -> io::Result<Option<u64>> {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    let last = match read {
        Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
        _ => text.strip_suffix('\n').and_then(|number| number.parse::<u64>().ok()),
    };
    let Some(next) = last.or_else(highest).map(|last| last.saturating_add(1)) else { return Ok(None) };
    let text = format!("{next:020}\n");
    file.write_all_at(text.as_bytes(), 0).and_then(|()| file.set_len(text.len() as u64))?;
    Ok(Some(next))
}
