//! SQLite databases in a directory: a database and its log or journal are captured only as they were together at one
//! moment.
//!
//! All files are stat'ed, read, and stat'ed again: if nothing changed, appeared or disappeared, there was a moment
//! between the two looks at which each had the bytes that were read. A file that changed so recently that another
//! change might not show in its times is read twice, and must give the same bytes. No SQLite lock is taken, since that
//! would make statements of a running command fail; a database that is written without pause is excluded with all its
//! files.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::names::Names;
use super::unfinished::{Dirty, DirtyFile, DirtyRead, ScanDir};
use super::{Result, Worker};
use crate::node::Reason;
use crate::read::{is_settled, now};
use crate::stat::{FoundStat, PACKED, stat_at};
use crate::units::{LOG_INDEX, SQLITE, SUFFIXES, database_of, database_reason, names_of};

/// Number of times that the files are read before they are excluded; the pause between grows.
pub(super) const ATTEMPTS: u32 = 16;
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// A database being captured.
#[derive(Debug)]
pub(super) struct Database {
    name: Vec<u8>,
    /// Its files to be read, as indexes into the list of those.
    members: Vec<usize>,
    /// Reason for which one of its files is excluded, and so all are.
    left_out: Option<Reason>,
}

/// Databases of a directory.
#[derive(Debug, Default)]
pub(super) struct Databases(Vec<Database>);

impl Databases {
    /// Find databases that have a log or journal: the others are single files.
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

/// Whether a file is a database. An empty one is: it gets its header when its journal is applied.
pub(super) fn is_database(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    let Ok(found) = stat_at(dir, name) else { return false };
    if !found.stat.is_file() || found.stat.size == 0 {
        return found.stat.is_file();
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    // An unreadable file is assumed to be one, so that it is excluded with its log.
    let Ok(file) = rustix::fs::openat(dir, name, flags, Mode::empty()) else { return true };
    let mut head = [0; 16];
    rustix::io::pread(&file, &mut head, 0).is_ok_and(|read| head[..read] == SQLITE[..])
}

/// Whether a database that was read as a single file has a log or journal by now.
pub(super) fn has_company(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    SUFFIXES.iter().any(|suffix| stat_at(dir, &[name, suffix].concat()).is_ok())
}

/// Stats of a database's files; `None` for a file that does not exist.
type Look = Vec<Option<[u8; PACKED]>>;

impl Database {
    pub(super) fn add(&mut self, member: usize) {
        self.members.push(member);
    }

    pub(super) fn leave_out(&mut self, reason: &Reason) {
        self.left_out.get_or_insert_with(|| reason.clone());
    }

    /// Capture all its files, or none.
    pub(super) fn take(
        self,
        at: ScanDir<'_>,
        dirty: &[Dirty],
        worker: &mut Worker<'_>,
    ) -> Result<Vec<DirtyRead>> {
        let mut why = self.left_out.clone();
        for attempt in 0..ATTEMPTS {
            if why.is_some() {
                break;
            }
            if attempt > 0 {
                std::thread::sleep(PAUSE * attempt);
            }
            match self.attempt(at, dirty, worker)? {
                DatabaseAttempt::Taken(taken) => return Ok(taken),
                DatabaseAttempt::LeftOut(reason) => why = Some(reason),
                DatabaseAttempt::Changed => {}
            }
        }
        let reason = database_reason(&self.name, &why.unwrap_or(Reason::Unstable));
        Ok(self.members.iter().map(|at| (*at, DirtyFile::LeftOut(reason.clone()))).collect())
    }

    fn attempt(
        &self,
        place: ScanDir<'_>,
        dirty: &[Dirty],
        worker: &mut Worker<'_>,
    ) -> Result<DatabaseAttempt> {
        let (before, settled) = self.look(place.fd);
        let unlisted = |(name, look): (Vec<u8>, &Option<_>)| {
            look.is_some() && !self.members.iter().any(|at| *dirty[*at].name == *name)
        };
        // A file that appeared since the directory was listed is in no list; it may disappear again.
        if names_of(&self.name).zip(&before).any(unlisted) {
            return Ok(DatabaseAttempt::Changed);
        }
        let mut taken = Vec::with_capacity(self.members.len());
        for at in &self.members {
            let mut one = dirty[*at].take_now(place, worker)?;
            if !settled && !dirty[*at].name.ends_with(LOG_INDEX) {
                let again = dirty[*at].take_now(place, worker)?;
                if !again.is_same(&one, &dirty[*at].name) {
                    return Ok(DatabaseAttempt::Changed);
                }
                one = again;
            }
            match one {
                // SQLite does not need the log's index.
                one if dirty[*at].name.ends_with(LOG_INDEX) => taken.push((*at, one)),
                DirtyFile::LeftOut(Reason::Unstable) => return Ok(DatabaseAttempt::Changed),
                DirtyFile::LeftOut(reason) => return Ok(DatabaseAttempt::LeftOut(reason)),
                one => taken.push((*at, one)),
            }
        }
        let same = self.look(place.fd).0 == before;
        Ok(if same { DatabaseAttempt::Taken(taken) } else { DatabaseAttempt::Changed })
    }

    /// Stat all its files but the log's index; also returns whether the next change of each will show in its times.
    fn look(&self, dir: BorrowedFd<'_>) -> (Look, bool) {
        let coarse = now();
        let mut settled = true;
        let mut one = |found: FoundStat| {
            settled &= is_settled(found.stat.ctime, coarse);
            found.stat.pack()
        };
        let names = names_of(&self.name).filter(|name| !name.ends_with(LOG_INDEX));
        let look = names.map(|name| stat_at(dir, &name).ok().map(&mut one)).collect();
        (look, settled)
    }
}

enum DatabaseAttempt {
    Taken(Vec<DirtyRead>),
    /// Excluded, and retrying does not help.
    LeftOut(Reason),
    Changed,
}
