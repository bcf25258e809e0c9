//! Scans one directory: list it, judge every name, carry over unchanged entries, and collect the files to read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::FileType;

use super::database::Databases;
use super::measure::{self, InDirectory};
use super::names::{Names, list};
use super::previous::OldEntries;
use super::unfinished::{Dirty, Draft, ScanDir, Unfinished, is_same_entry};
use super::{DirTask, Ignored, Listing, Result, Scan, ScanError, ScanTask, Worker};
use crate::bytes::Writer;
use crate::cache::{CachedBytes, CachedDir};
use crate::dirs::{Dir, DirId, open_dir};
use crate::exclusion::{DirRules, ExclusionVerdict, LargePacks, RuleFiles, is_git_pack, is_in_git};
use crate::hash::ContentHash;
use crate::node::{Name, Omitted, Reason, Stamp, Time, Xattr};
use crate::pool::Queue;
use crate::read::{self, OnlyClone, ReadOptions, is_settled, unreadable};
use crate::restore::is_temporary;
use crate::scan_record::{self, ANYWAY, Payload, RecordedEntry, TRUSTED};
use crate::stat::{FoundStat, PACKED, stat_at};
use crate::state::Observer;
use crate::units::{LOG_INDEX, repository_reason};

/// Size above which a git pack is not copied unless asked for.
const LARGE_PACK: u64 = 64 << 20;

const NOT_WANTED: &str = "not part of the restore; the disk is full";

/// A directory being scanned.
pub(super) struct Directory<'a, 'b> {
    scan: &'a Scan<'b>,
    id: DirId,
    path: Option<Arc<Vec<u8>>>,
    rules: Arc<DirRules>,
    old: Option<CachedDir<'a>>,
    same_rules: bool,
    /// Names here that are roots of their own, whatever exists there.
    others: Vec<&'a [u8]>,
    /// Names here that changed each time they were read.
    unstable: Vec<&'a [u8]>,
    databases: Databases,
    out: Vec<u8>,
    omitted: Vec<Omitted>,
    same: bool,
    has_links: bool,
    dirty: Vec<Dirty>,
    subdirs: Vec<Subdir>,
    entries: u64,
    bytes: u64,
    /// Time before anything in it was looked at.
    coarse: Time,
}

struct Subdir {
    id: DirId,
    name: Box<[u8]>,
    inode: u64,
    old: Option<DirId>,
    searching: Option<Reason>,
}

impl<'a, 'b> Directory<'a, 'b> {
    pub(super) fn scan(
        scan: &'a Scan<'b>,
        worker: &mut Worker<'_>,
        task: DirTask,
        queue: &Queue<ScanTask>,
        observer: &dyn Observer,
    ) -> Result<()> {
        let opened = open(scan, &task).and_then(|dir| {
            let fd = scan.dirs.fd(&dir)?;
            let names = list(fd.as_fd(), &mut worker.names)?;
            let xattrs = read::xattrs(fd.as_fd())?;
            drop(fd);
            Ok((dir, names, xattrs))
        });
        let (dir, names, xattrs) = match opened {
            Err(error) if task.id == 0 => return Err(ScanError::Root(error)),
            Err(error) => {
                worker.found.listings.push(failed(&task, unreadable(&error)));
                return Ok(());
            }
            Ok(opened) => opened,
        };
        let fd = scan.dirs.fd(&dir).map_err(ScanError::Root)?;
        let mut this = Directory::new(scan, &task, fd.as_fd(), &names);
        let mut old = OldEntries::new(this.old.as_ref());
        for name in names.iter() {
            let known = old.at(name, &mut this.same);
            this.entry(worker, fd.as_fd(), &names, name, known.as_ref());
        }
        old.finish(&mut this.same);
        drop(fd);
        worker.found.counts.directories += 1;
        scan.limits.add(this.entries, this.bytes)?;
        observer.progress(scan.limits.entries(), 0);
        this.finish(worker, task, dir, xattrs, queue)
    }

    fn new(scan: &'a Scan<'b>, task: &DirTask, fd: BorrowedFd<'_>, names: &Names) -> Directory<'a, 'b> {
        let has = RuleFiles { gitignore: names.contains(b".gitignore"), git: names.contains(b".git") };
        let mut path = None;
        let rules = match &task.rules {
            None => scan.rules.root(fd),
            Some(above) => {
                if scan.rules.may_add(has) || !above.is_trivial() {
                    let here = path.insert(path_of(scan, task));
                    above.enter(scan.rules, here, fd, has, task.searching.is_some())
                } else {
                    above.clone()
                }
            }
        };
        if !rules.is_trivial() && path.is_none() {
            path = Some(path_of(scan, task));
        }
        let mut named = |paths: &'a [Vec<u8>]| {
            if paths.is_empty() {
                return Vec::new();
            }
            names_in(path.get_or_insert_with(|| path_of(scan, task)), paths)
        };
        let (others, unstable) = (named(scan.inner), named(scan.unstable));
        let old = task.old.and_then(|id| scan.cache?.dir(id));
        let same_rules = old.is_some_and(|old| *old.rules == rules.digest());
        Directory {
            scan,
            id: task.id,
            path: path.filter(|_| !rules.is_trivial()),
            rules,
            old,
            same_rules,
            others,
            unstable,
            databases: Databases::find(fd, names),
            out: Vec::with_capacity(old.map_or(0, |old| old.entries.len() + 64)),
            omitted: Vec::new(),
            same: old.is_some(),
            has_links: false,
            dirty: Vec::new(),
            subdirs: Vec::new(),
            entries: 0,
            bytes: 0,
            coarse: read::now(),
        }
    }

    fn entry(
        &mut self,
        worker: &mut Worker<'_>,
        fd: BorrowedFd<'_>,
        names: &Names,
        name: &[u8],
        known: Option<&RecordedEntry<'_>>,
    ) {
        let found = match stat_at(fd, name) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.same = false;
                return;
            }
            Err(error) => return self.leave(fd, name, None, unreadable(&error)),
        };
        let is_dir = found.stat.is_dir();
        if let Some(reason) = self.set_apart(name, &found) {
            return self.leave(fd, name, Some(&found), reason);
        }
        let packed = found.stat.pack();
        let known = known.filter(|known| known.stat().kind() == found.stat.kind());
        let (flags, searching) = match self.judge(fd, names, name, is_dir, known) {
            ExclusionVerdict::Take => (0, None),
            ExclusionVerdict::TakeAnyway => (ANYWAY, None),
            ExclusionVerdict::Search(reason) => (ANYWAY, Some(reason)),
            ExclusionVerdict::Leave(reason) => {
                if matches!(reason, Reason::Ignored { .. }) {
                    worker.found.ignored.push(Ignored { dir: self.id, name: name.into(), is_dir });
                }
                return self.leave(fd, name, Some(&found), reason);
            }
        };
        if is_dir {
            return self.subdir(name, &found, known, flags, searching);
        }
        self.entries += 1;
        self.has_links |= found.stat.nlink > 1;
        worker.found.links.count(&found.stat);
        let before = known.and_then(|known| match known.payload {
            Payload::File(hash) => Some(hash),
            _ => None,
        });
        let known = known.filter(|known| *known.packed == packed);
        let trusted = known.filter(|known| self.is_trusted(known, &found));
        if found.stat.is_file() && trusted.is_none() && !self.is_wanted(name) {
            self.entries -= 1;
            return self.leave(fd, name, Some(&found), Reason::NotHeld(NOT_WANTED.to_owned()));
        }
        if found.stat.is_file() {
            self.bytes += found.stat.size;
            // Another thread may subtract some of these again: only the sums over all threads are valid.
            worker.found.counts.files = worker.found.counts.files.wrapping_add(1);
            worker.found.counts.bytes = worker.found.counts.bytes.wrapping_add(found.stat.size);
            match trusted.filter(|_| self.databases.of(name).is_none()) {
                Some(known) => self.carry_over(known, flags),
                None => self.read_later(name, &found, flags, (known, trusted.is_some()), before),
            }
        } else {
            worker.found.counts.others += 1;
            match trusted {
                Some(known) => self.carry_over(known, flags),
                None => self.other(fd, name, &found, flags, known),
            }
        }
    }

    /// Reason to exclude a name, whatever the rules say.
    fn set_apart(&self, name: &[u8], found: &FoundStat) -> Option<Reason> {
        let is_dir = found.stat.is_dir();
        if self.scan.own.contains(&(found.dev, found.stat.ino)) {
            return Some(Reason::OwnState);
        }
        if self.others.contains(&name) {
            return Some(Reason::OtherRoot);
        }
        if self.unstable.contains(&name) {
            return Some(repository_reason());
        }
        if found.mount != self.scan.mount && !self.scan.cross_mounts {
            return Some(Reason::OtherFilesystem);
        }
        // A directory with such a name was not made by a restore.
        (!is_dir && is_temporary(name)).then_some(Reason::RestoreTemp)
    }

    /// Whether a file is to be read at all: on a full disk only those that a restore may displace.
    fn is_wanted(&self, name: &[u8]) -> bool {
        let Some(only) = self.scan.only else { return true };
        let dir = self.scan.dirs.path(self.id);
        let path = if dir.is_empty() { name.to_vec() } else { [&dir[..], name].join(&b'/') };
        let below = |chosen: &Vec<u8>| {
            let rest = path.strip_prefix(&chosen[..]);
            chosen.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        only.iter().any(below)
    }

    /// Whether the cached content is still valid.
    fn is_trusted(&self, known: &RecordedEntry<'_>, found: &FoundStat) -> bool {
        known.flags & TRUSTED != 0
            && (!found.stat.is_file()
                || found.stat.ctime < self.scan.session_start && !self.scan.mapped.contains(found))
    }

    /// Judge a name. A name captured under the same rules is captured again without judging.
    fn judge(
        &self,
        fd: BorrowedFd<'_>,
        names: &Names,
        name: &[u8],
        is_dir: bool,
        known: Option<&RecordedEntry<'_>>,
    ) -> ExclusionVerdict {
        let Some(dir) = &self.path else { return ExclusionVerdict::Take };
        if !is_dir && self.same_rules && known.is_some_and(|known| known.flags & ANYWAY == 0) {
            return ExclusionVerdict::Take;
        }
        let path = if dir.is_empty() { name.to_vec() } else { [&dir[..], name].join(&b'/') };
        self.rules.judge(&path, name, is_dir, &InDirectory { fd, names })
    }

    /// Exclude an entry. `found`: its stat, if known.
    fn leave(&mut self, fd: BorrowedFd<'_>, name: &[u8], found: Option<&FoundStat>, reason: Reason) {
        if let Some(database) = self.databases.of(name).filter(|_| !name.ends_with(LOG_INDEX)) {
            database.leave_out(&reason);
        }
        // The kernel never returns an invalid name.
        if let Some(name) = Name::new(name) {
            let is_dir = found.is_some_and(|found| found.stat.is_dir());
            let mut stamp = found.and_then(|found| found.stat.stamp(&reason));
            if matches!(reason, Reason::Artifact(_)) && measure::is_empty(fd, name.as_bytes()) {
                stamp = Some(Stamp::EMPTY);
            }
            let measured = matches!(reason, Reason::LargeFolder { .. } | Reason::LargeRepository { .. });
            if let Some(stamp) = stamp.as_mut().filter(|_| measured) {
                measure::stamp(fd, name.as_bytes(), stamp);
            }
            self.omitted.push(Omitted { name, is_dir, reason, stamp });
        }
    }

    fn carry_over(&mut self, known: &RecordedEntry<'_>, flags: u8) {
        self.same &= known.flags & ANYWAY == flags & ANYWAY;
        if known.flags & ANYWAY == flags & ANYWAY {
            self.out.extend_from_slice(known.raw);
        } else {
            let flags = known.flags & !ANYWAY | flags & ANYWAY;
            self.put(known.name, flags, known.packed, &known.payload, &known.xattrs);
        }
    }

    fn put(&mut self, name: &[u8], flags: u8, packed: &[u8; PACKED], payload: &Payload, xattrs: &[Xattr]) {
        let mut out = Writer::onto(std::mem::take(&mut self.out));
        scan_record::put(&mut out, name, flags, packed, payload, xattrs);
        self.out = out.finish();
    }

    fn subdir(
        &mut self,
        name: &[u8],
        found: &FoundStat,
        known: Option<&RecordedEntry<'_>>,
        flags: u8,
        searching: Option<Reason>,
    ) {
        let id = self.scan.dirs.add(self.id, name);
        let packed = found.stat.pack();
        // Its attributes are not in this record: they are known only while its ctime shows every change.
        let unchanged = |known: &RecordedEntry<'_>| {
            *known.packed == packed && known.flags & TRUSTED != 0 && known.flags | TRUSTED == flags | TRUSTED
        };
        self.same &= known.is_some_and(unchanged);
        let trusted = if is_settled(found.stat.ctime, self.coarse) { TRUSTED } else { 0 };
        self.put(name, flags | trusted, &packed, &Payload::Dir(id), &[]);
        let old = match known.map(|known| &known.payload) {
            Some(Payload::Dir(old)) => Some(*old),
            _ => None,
        };
        self.subdirs.push(Subdir { id, name: name.into(), inode: found.stat.ino, old, searching });
    }

    fn read_later(
        &mut self,
        name: &[u8],
        found: &FoundStat,
        flags: u8,
        (known, trusted): (Option<&RecordedEntry<'_>>, bool),
        before: Option<ContentHash>,
    ) {
        let number = self.dirty.len();
        let database = self.databases.of(name);
        let of_database = database.map(|database| database.add(number)).is_some();
        let mapped = self.scan.mapped.contains(found);
        let leave_packs = self.scan.rules.config().large_git_packs == LargePacks::LeaveOut;
        let path = || {
            let dir = self.path.clone().unwrap_or_else(|| Arc::new(self.scan.dirs.path(self.id)));
            [&dir[..], name].join(&b'/')
        };
        let large_pack = leave_packs && found.stat.size > LARGE_PACK && is_git_pack(&path());
        // A repository is captured as a whole: without one of its packs the others are worth nothing.
        let over = self.scan.max_file.filter(|limit| found.stat.size > *limit && !is_in_git(&path()));
        let over = over.map(OnlyClone::Over);
        let only_clone = if large_pack { Some(OnlyClone::LargePack) } else { over };
        self.dirty.push(Dirty {
            name: name.into(),
            found: *found,
            flags,
            how: ReadOptions { mapped, only_clone, before },
            at: self.out.len(),
            old: known.map(|known| known.raw.into()),
            of_database,
            trusted,
        });
    }

    /// Record a link, FIFO, socket or device, without opening it.
    fn other(
        &mut self,
        fd: BorrowedFd<'_>,
        name: &[u8],
        found: &FoundStat,
        flags: u8,
        known: Option<&RecordedEntry<'_>>,
    ) {
        let coarse = read::now();
        let payload = match found.stat.kind() {
            FileType::Symlink => read::link(fd, name).map(Payload::Link),
            FileType::CharacterDevice | FileType::BlockDevice => Ok(Payload::Device(found.rdev)),
            _ => Ok(Payload::Nothing),
        };
        let all = payload.and_then(|payload| Ok((payload, read::xattrs_at(fd, name)?)));
        let (payload, xattrs) = match all {
            Ok(all) => all,
            Err(errno) => return self.leave(fd, name, Some(found), unreadable(&errno.into())),
        };
        let trusted = if is_settled(found.stat.ctime, coarse) { TRUSTED } else { 0 };
        let start = self.out.len();
        self.put(name, flags | trusted, &found.stat.pack(), &payload, &xattrs);
        self.same &= known.is_some_and(|known| is_same_entry(known.raw, &self.out[start..], name));
    }

    /// Read changed files, here or in tasks of their own, and queue the subdirectories.
    fn finish(
        self,
        worker: &mut Worker<'_>,
        task: DirTask,
        dir: Dir,
        xattrs: Vec<Xattr>,
        queue: &Queue<ScanTask>,
    ) -> Result<()> {
        let old_omitted = self.old.map(|old| old.omitted.to_vec());
        let listing = Listing {
            id: self.id,
            rules: self.rules.digest(),
            entries: CachedBytes::Own(self.out),
            omitted: Vec::new(),
            xattrs,
            old: task.old,
            same: self.same,
            has_links: self.has_links,
            left_out: task.searching,
        };
        let draft = Draft { listing, omitted: self.omitted, old_omitted };
        let mut results = Vec::new();
        for database in self.databases.into_iter() {
            let fd = self.scan.dirs.fd(&dir).map_err(ScanError::Root)?;
            let place = ScanDir { scan: self.scan, dir: &dir, fd: fd.as_fd() };
            let taken = database.take(place, &self.dirty, worker)?;
            for (at, taken) in &taken {
                self.dirty[*at].count(taken, worker);
            }
            results.extend(taken);
        }
        let dir = Arc::new(dir);
        let unfinished = Arc::new(Unfinished::new(dir.clone(), draft, self.dirty, results));
        let (rules, above) = (self.rules, self.path);
        queue.push_all(self.subdirs.into_iter().map(|subdir| {
            ScanTask::Dir(DirTask {
                id: subdir.id,
                place: Some((dir.clone(), subdir.name)),
                above: above.clone(),
                inode: subdir.inode,
                old: subdir.old,
                rules: Some(rules.clone()),
                searching: subdir.searching,
            })
        }));
        drop(dir);
        let mut parts = unfinished.parts();
        let first = parts.next().unwrap_or_default();
        queue.push_all(parts.map(|part| ScanTask::Files(unfinished.clone(), part)));
        unfinished.read(self.scan, worker, first)
    }
}

/// Open the directory of a task; a different one in its place is an error.
fn open(scan: &Scan<'_>, task: &DirTask) -> io::Result<Dir> {
    let dirs = scan.dirs;
    let Some((parent, name)) = &task.place else { return dirs.root() };
    let parent = dirs.fd(parent)?;
    if let Some(unlock) = scan.unlock {
        // A failure here shows when the directory is opened.
        let _ = unlock.add(task.id, parent.as_fd(), name);
    }
    let fd: OwnedFd = open_dir(parent.as_fd(), name)?;
    let dir = dirs.keep(task.id, fd)?;
    if dir.inode.ino == task.inode { Ok(dir) } else { Err(rustix::io::Errno::STALE.into()) }
}

fn failed(task: &DirTask, reason: Reason) -> Listing {
    Listing {
        id: task.id,
        rules: [0; 32],
        entries: CachedBytes::Own(Vec::new()),
        omitted: Vec::new(),
        xattrs: Vec::new(),
        old: task.old,
        same: false,
        has_links: false,
        left_out: Some(reason),
    }
}

/// Path of a task's directory, relative to the root.
fn path_of(scan: &Scan<'_>, task: &DirTask) -> Arc<Vec<u8>> {
    Arc::new(match (&task.above, &task.place) {
        (Some(above), Some((_, name))) if above.is_empty() => name.to_vec(),
        (Some(above), Some((_, name))) => [&above[..], &name[..]].join(&b'/'),
        _ => scan.dirs.path(task.id),
    })
}

/// Last components of those paths whose parent is the directory `dir`.
fn names_in<'a>(dir: &[u8], paths: &'a [Vec<u8>]) -> Vec<&'a [u8]> {
    let name = |path: &'a Vec<u8>| {
        let rest = if dir.is_empty() { path } else { path.strip_prefix(dir)?.strip_prefix(b"/")? };
        (!rest.contains(&b'/')).then_some(rest)
    };
    paths.iter().filter_map(name).collect()
}
