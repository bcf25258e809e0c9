//! A database of SQLite's in a directory: it and its log or journal count only as they were together at one moment.
//!
//! All of them are looked at, read, and looked at again: when nothing changed, nor came or went, then between the two
//! looks there was a moment at which each had the bytes that were read. A file that changed so recently that another
//! change might not show in its times is read twice, to the same bytes. No lock of SQLite's is taken, which would make
//! the statements of a running command fail; a database that is written without pause is left out, with all its files.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::names::Names;
use super::unfinished::{Dirty, Taken};
use super::{Scan, ScanError, Worker};
use crate::dirs::Dir;
use crate::node::Reason;
use crate::read::{is_settled, now};
use crate::stat::{Found, PACKED, stat_at};
use crate::units::{LOG_INDEX, SQLITE, SUFFIXES, database_of, database_reason, names_of};

/// How often the files are read before they are left out, and the pause between, which grows.
pub(super) const ATTEMPTS: u32 = 16;
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// A database that is being taken.
#[derive(Debug)]
pub(super) struct Database {
    name: Vec<u8>,
    /// Its files that are to be read, by their numbers in the list of those.
    members: Vec<usize>,
    /// One of its files is left out, for this reason, and so all are.
    left_out: Option<Reason>,
}

/// The databases of a directory.
#[derive(Debug, Default)]
pub(super) struct Databases(Vec<Database>);

impl Databases {
    /// Those that have a log or journal: the others are single files.
    pub(super) fn find(dir: BorrowedFd<'_>, names: &Names) -> Databases {
        let mut all: Vec<Database> = Vec::new();
        for name in names.iter().filter_map(database_of).filter(|name| names.contains(name)) {
            if !all.iter().any(|database| database.name == name) && is_database(dir, name) {
                all.push(Database { name: name.to_vec(), members: Vec::new(), left_out: None });
            }
        }
        Databases(all)
    }

    /// The database that a name belongs to.
    pub(super) fn of(&mut self, name: &[u8]) -> Option<&mut Database> {
        if self.0.is_empty() {
            return None;
        }
        let base = database_of(name);
        self.0.iter_mut().find(|database| database.name == name || base == Some(&database.name))
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Database> {
        self.0.into_iter()
    }
}

/// An empty one gets its header when its journal is done with.
pub(super) fn is_database(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    let Ok(found) = stat_at(dir, name) else { return false };
    if !found.stat.is_file() || found.stat.size == 0 {
        return found.stat.is_file();
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    // One that cannot be read is taken for one: then it is left out with its log.
    let Ok(file) = rustix::fs::openat(dir, name, flags, Mode::empty()) else { return true };
    let mut head = [0; 16];
    rustix::io::pread(&file, &mut head, 0).is_ok_and(|read| head[..read] == SQLITE[..])
}

/// Whether a database that was read as a single file has a log or journal by now.
pub(super) fn has_company(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    SUFFIXES.iter().any(|suffix| stat_at(dir, &[name, suffix].concat()).is_ok())
}

/// What is known about each of a database's files: nothing where there is none.
type Look = Vec<Option<[u8; PACKED]>>;

impl Database {
    pub(super) fn add(&mut self, member: usize) {
        self.members.push(member);
    }

    pub(super) fn leave_out(&mut self, reason: &Reason) {
        self.left_out.get_or_insert_with(|| reason.clone());
    }

    /// Take all its files, or none.
    pub(super) fn take(
        self,
        scan: &Scan<'_>,
        dir: &Dir,
        fd: BorrowedFd<'_>,
        dirty: &[Dirty],
        worker: &mut Worker<'_>,
    ) -> Result<Vec<(usize, Taken)>, ScanError> {
        let mut why = self.left_out.clone();
        for attempt in 0..ATTEMPTS {
            if why.is_some() {
                break;
            }
            if attempt > 0 {
                std::thread::sleep(PAUSE * attempt);
            }
            match self.attempt(scan, dir, fd, dirty, worker)? {
                Attempt::Taken(taken) => return Ok(taken),
                Attempt::LeftOut(reason) => why = Some(reason),
                Attempt::Changed => {}
            }
        }
        let reason = database_reason(&self.name, &why.unwrap_or(Reason::Unstable));
        Ok(self.members.iter().map(|at| (*at, Taken::LeftOut(reason.clone()))).collect())
    }

    fn attempt(
        &self,
        scan: &Scan<'_>,
        dir: &Dir,
        fd: BorrowedFd<'_>,
        dirty: &[Dirty],
        worker: &mut Worker<'_>,
    ) -> Result<Attempt, ScanError> {
        let (before, settled) = self.look(fd);
        let unlisted = |(name, look): (Vec<u8>, &Option<_>)| {
            look.is_some() && !self.members.iter().any(|at| *dirty[*at].name == *name)
        };
        // One that came since the directory was listed is in no list; it may go again.
        if names_of(&self.name).zip(&before).any(unlisted) {
            return Ok(Attempt::Changed);
        }
        let mut taken = Vec::with_capacity(self.members.len());
        for at in &self.members {
            let mut one = dirty[*at].take_now(scan, dir, fd, worker)?;
            if !settled && !dirty[*at].name.ends_with(LOG_INDEX) {
                let again = dirty[*at].take_now(scan, dir, fd, worker)?;
                if !again.is_same(&one, &dirty[*at].name) {
                    return Ok(Attempt::Changed);
                }
                one = again;
            }
            match one {
                // Without it the others are all that SQLite needs.
                one if dirty[*at].name.ends_with(LOG_INDEX) => taken.push((*at, one)),
                Taken::LeftOut(Reason::Unstable) => return Ok(Attempt::Changed),
                Taken::LeftOut(reason) => return Ok(Attempt::LeftOut(reason)),
                one => taken.push((*at, one)),
            }
        }
        if self.look(fd).0 == before { Ok(Attempt::Taken(taken)) } else { Ok(Attempt::Changed) }
    }

    /// Look at all its files but the index of the log, which counts for nothing. And whether the last change of each is
    /// so long ago that the next one will show.
    fn look(&self, dir: BorrowedFd<'_>) -> (Look, bool) {
        let coarse = now();
        let mut settled = true;
        let mut one = |found: Found| {
            settled &= is_settled(found.stat.ctime, coarse);
            found.stat.pack()
        };
        let names = names_of(&self.name).filter(|name| !name.ends_with(LOG_INDEX));
        let look = names.map(|name| stat_at(dir, &name).ok().map(&mut one)).collect();
        (look, settled)
    }
}

enum Attempt {
    Taken(Vec<(usize, Taken)>),
    /// Not now, and not at the next attempt either.
    LeftOut(Reason),
    Changed,
}
