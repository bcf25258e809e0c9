//! Log of changed modes, in the session's folder. A record with the old mode is written before each mode is changed;
//! the file is removed when all modes are restored. If it exists, a process was killed in between, and [`close_again`]
//! restores the modes it names, last first, because later entries lie behind earlier ones.
//!
//! One write for each record, with a checksum: a torn end is a mode that was not changed. Directories are named by
//! their parent, each once, so the log of a deep tree is no larger than its names. The log is not trusted beyond that:
//! only the session's own roots are entered, through no link, and only an entry that is exactly as the log says it was
//! left (inode, owner, mode) loses the permissions that were added, and nothing else.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rustix::io::Errno;

use super::{Opened, close, find, is_gone, lock};
use crate::bytes::{Malformed, Reader, Writer};
use crate::dirs::{DirId, Dirs, open_dir, place_of};
use crate::disk;
use crate::file;
use crate::hash::tagged;
use crate::node::Name;
use crate::paths;

#[cfg(test)]
mod tests;

const MARK: &[u8] = b"nono unlocked v1\0";

/// A mode that cannot be restored now.
#[derive(Debug)]
pub(crate) struct UnlockError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Log of one capture. The file is created with the first record.
#[derive(Debug)]
pub(crate) struct UnlockLog {
    path: PathBuf,
    state: Mutex<UnlockLogState>,
    alone: Mutex<()>,
}

#[derive(Debug, Default)]
struct UnlockLogState {
    file: Option<File>,
    /// Whether its end may be torn: nothing more is written after it.
    torn: bool,
    scans: u32,
    stays_open: Option<UnlockError>,
}

impl UnlockLog {
    pub(crate) fn new(path: PathBuf) -> UnlockLog {
        UnlockLog { path, state: Mutex::default(), alone: Mutex::default() }
    }

    pub(super) fn next_scan(&self) -> u32 {
        let mut state = lock(&self.state);
        state.scans += 1;
        state.scans
    }

    /// Lock for changing one file at a time.
    pub(super) fn alone(&self) -> MutexGuard<'_, ()> {
        lock(&self.alone)
    }

    /// Report a mode that cannot be restored. Only the first is reported; the log stays, and covers the others.
    pub(super) fn stays_open(&self, path: PathBuf, source: io::Error) {
        lock(&self.state).stays_open.get_or_insert(UnlockError { path, source });
    }

    /// Log that `name` in the directory `dir` (the root itself without a name) is changed next.
    pub(super) fn note(
        &self,
        root: &Path,
        scan: u32,
        dirs: &[(DirId, DirId, Box<[u8]>)],
        dir: DirId,
        name: &[u8],
        opened: Opened,
    ) -> io::Result<()> {
        let mut out = Writer::new();
        out.bytes(paths::bytes(root));
        out.number(u64::from(scan));
        out.list(dirs, |(id, above, name), out| {
            out.number(u64::from(*id));
            out.number(u64::from(*above));
            out.bytes(name);
        });
        out.number(u64::from(dir));
        out.bytes(name);
        out.number(opened.inode);
        for number in [opened.uid, opened.old, opened.new] {
            out.number(u64::from(number));
        }
        let body = out.finish();
        let mut frame = Writer::new();
        frame.bytes(&body);
        frame.raw(&tagged(MARK, &[&body]));
        self.append(&frame.finish())
    }

    fn append(&self, frame: &[u8]) -> io::Result<()> {
        let mut state = lock(&self.state);
        let UnlockLogState { file, torn, .. } = &mut *state;
        if *torn {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = if let Some(file) = file {
            file
        } else {
            disk::step()?;
            let new = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&self.path)?;
            file.insert(new)
        };
        disk::step()?;
        *torn = true;
        if file.write(frame)? != frame.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        *torn = false;
        Ok(())
    }

    /// Remove the log if all modes are restored; otherwise it stays for the next operation.
    pub(crate) fn finish(self) -> Result<(), UnlockError> {
        let state = std::mem::take(&mut *lock(&self.state));
        if let Some(error) = state.stays_open {
            return Err(error);
        }
        if state.file.is_none() {
            return Ok(());
        }
        file::remove(&self.path).map_err(|source| UnlockError { path: self.path.clone(), source })
    }
}

/// A decoded record.
struct UnlockRecord {
    root: PathBuf,
    scan: u32,
    dirs: Vec<(DirId, DirId, Name)>,
    dir: DirId,
    /// `None` for the root itself.
    name: Option<Name>,
    opened: Opened,
}

impl UnlockRecord {
    fn read(from: &mut Reader<'_>) -> Result<UnlockRecord, Malformed> {
        let body = from.bytes()?;
        if from.array()? != tagged(MARK, &[body]) {
            return Err(Malformed("the checksum"));
        }
        let mut from = Reader::new(body);
        let root = paths::from_bytes(from.bytes()?).to_owned();
        let scan = from.small("a scan")?;
        let dirs =
            from.list(|from| Ok((from.small("a directory")?, from.small("a directory")?, from.name()?)))?;
        let dir = from.small("a directory")?;
        let name = match from.bytes()? {
            b"" => None,
            name => Some(Name::new(name).ok_or(Malformed("a name"))?),
        };
        let opened = Opened {
            inode: from.number()?,
            uid: from.small("a user id")?,
            old: from.small("permission bits")?,
            new: from.small("permission bits")?,
        };
        from.end()?;
        let added = opened.new & !opened.old;
        let only_added = opened.old & !opened.new == 0 && opened.new <= 0o7777;
        if !only_added || added == 0 || added & !0o500 != 0 {
            return Err(Malformed("permission bits"));
        }
        Ok(UnlockRecord { root, scan, dirs, dir, name, opened })
    }
}

/// Restore the modes that the log at `path` names below `roots`; does nothing if there is no log.
pub(crate) fn close_again(path: &Path, roots: &[PathBuf]) -> Result<(), UnlockError> {
    let own = |source| UnlockError { path: path.to_owned(), source };
    let Some(bytes) = file::read_existing(path).map_err(own)? else { return Ok(()) };
    let mut from = Reader::new(&bytes);
    let mut notes = Vec::new();
    // An incomplete record was not acted on.
    while let Ok(note) = UnlockRecord::read(&mut from) {
        notes.push(note);
    }
    let mut places = Places::default();
    notes.retain(|note| roots.contains(&note.root) && places.learn(note));
    for note in notes.iter().rev() {
        match places.find(note) {
            Ok(fd) => {
                disk::step().and_then(|()| close(&fd, note.opened)).or_else(not_ours).map_err(own)?;
            }
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(own(error)),
        }
    }
    file::remove(path).map_err(own)
}

/// Ignore a mode that may not be set: the entry belongs to another user by now, or was made immutable.
fn not_ours(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::PermissionDenied { Ok(()) } else { Err(error) }
}

/// Directories that the log names.
#[derive(Default)]
struct Places {
    scans: HashMap<(PathBuf, u32), UnlockTree>,
    /// The directory opened last: most records are in that of the previous record.
    last: Option<((PathBuf, u32, DirId), OwnedFd)>,
}

struct UnlockTree {
    dirs: Dirs,
    /// Numbers by those in the log.
    ids: HashMap<DirId, DirId>,
}

impl Places {
    /// Add the directories of a record. False: it cannot be followed, or nothing is to be done there.
    fn learn(&mut self, note: &UnlockRecord) -> bool {
        if note.name.is_none() {
            return true;
        }
        let key = (note.root.clone(), note.scan);
        let tree = match self.scans.entry(key) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                // A closed root was closed last: everything in it is closed already.
                let Ok(root) = open_root(&note.root) else { return false };
                entry.insert(UnlockTree { dirs: Dirs::new(root), ids: HashMap::from([(0, 0)]) })
            }
        };
        for (id, above, name) in &note.dirs {
            let Some(above) = tree.ids.get(above).copied() else { return false };
            let known = tree.dirs.add(above, name.as_bytes());
            tree.ids.insert(*id, known);
        }
        tree.ids.contains_key(&note.dir)
    }

    fn find(&mut self, note: &UnlockRecord) -> io::Result<OwnedFd> {
        let Some(name) = &note.name else {
            let (parent, name) = place_of(&note.root)?;
            return find(parent.as_fd(), name.as_bytes());
        };
        let key = (note.root.clone(), note.scan, note.dir);
        if self.last.as_ref().is_none_or(|(last, _)| *last != key) {
            let tree = self.scans.get(&(note.root.clone(), note.scan));
            let id = tree.and_then(|tree| Some((tree, *tree.ids.get(&note.dir)?)));
            let (tree, id) = id.ok_or(Errno::STALE)?;
            self.last = Some((key, tree.dirs.reopen(id)?));
        }
        let (_, dir) = self.last.as_ref().ok_or(Errno::STALE)?;
        find(dir.as_fd(), name.as_bytes())
    }
}

fn open_root(root: &Path) -> io::Result<OwnedFd> {
    let (parent, name) = place_of(root)?;
    open_dir(parent.as_fd(), name.as_bytes())
}
