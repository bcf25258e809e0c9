//! Accounts of the quota: how many bytes a store and the folders beside it take on disk, and how many more each writer may add.
//!
//! `ledger/books` holds the committed bytes and the reservations of live writers. A writer reserves in steps while it
//! writes, and commits what it used in the transaction that makes its packs visible. So `committed + reserved <= limit`
//! holds at every moment, temporary files included. Each writer holds an flock on a file of its own; when it dies, the
//! next one drops its reservation and counts what is on disk. The books are a cache: where they are missing, damaged or
//! in doubt, the disk is counted again, and no writer is refused before that.
//!
//! A part of the limit ([`spare`]) is kept from contents, for their nodes and records and for rewriting a pack.

mod account;
mod books;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub(super) use self::account::Account;
use self::books::{Books, Reserved};
use super::error::{Result, StoreError, there};
use super::files::{Folder, Lock, allocated};
use super::handle::Store;
use super::names::{REWRITE_TEMP, WRITER_TEMP};
pub(super) use super::quota::{Owner, Quota};

const FOLDER: &str = "ledger";
const BOOKS: &str = "books";
const LOCK: &str = "lock";
/// Name prefix of a writer's lock file.
const WRITER: &str = "w-";
/// Bounds of the step in which room is reserved, and its share of the room that is left.
const SMALLEST_STEP: u64 = 4 << 10;
const LARGEST_STEP: u64 = 4 << 20;
const STEP_SHARE: u64 = 256;
/// Space for a snapshot besides its objects: manifest, record, folders.
const BESIDE: u64 = 64 << 10;
/// Largest part that is kept from contents.
const MOST_SPARE: u64 = 64 << 20;

impl Quota {
    fn limit(total: u64, class: Class) -> u64 {
        match (total, class) {
            (0, _) => u64::MAX,
            (total, Class::Content) => total - spare(total),
            (total, Class::Other) => total,
        }
    }
}

/// The part of a limit that is kept from contents.
pub(super) fn spare(limit: u64) -> u64 {
    (limit / 16).min(MOST_SPARE)
}

/// Purpose of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Content,
    /// Nodes, rules, indexes, caches, packs that are rewritten.
    Other,
}

/// Balance known to the accounts without counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    pub committed: u64,
    /// Bytes reserved by live writers, and by dead ones not yet noticed.
    pub reserved: u64,
    /// Part of `committed` that only checkpoints need: exact after a count, never too small otherwise.
    pub checkpoints: u64,
    pub checkpoints_exact: bool,
    /// Bytes ever written for checkpoints: shows a count what was added meanwhile.
    pub checkpoints_written: u64,
}

/// The folder of the accounts.
#[derive(Debug)]
struct Accounts {
    folder: Folder,
}

/// The books, locked by one process at a time.
struct Open<'a> {
    accounts: &'a Accounts,
    store: &'a Store,
    books: Books,
    _lock: Lock,
}

impl Accounts {
    fn of(store: &Store) -> Result<Accounts> {
        Ok(Accounts { folder: store.root.make_folder(FOLDER)? })
    }

    /// Lock the books. Missing or damaged ones are rebuilt from the disk.
    fn open<'a>(&'a self, store: &'a Store, quota: Option<&Quota>) -> Result<Open<'a>> {
        let lock = Lock::take(&self.folder, LOCK, true, true)?
            .ok_or_else(|| StoreError::Busy { path: self.folder.path_of(LOCK) })?;
        let known = Books::read(&self.folder, BOOKS)?;
        let fresh = known.is_none();
        let mut open = Open { accounts: self, store, books: known.unwrap_or_default(), _lock: lock };
        if let Some(quota) = quota {
            open.books.beside.clone_from(&quota.beside);
            if quota.total > 0 {
                open.books.total_limit = quota.total;
            }
        }
        if fresh {
            open.books.writers = self.live_writers(store)?;
            open.recount()?;
            open.books.checkpoints = open.books.committed;
        }
        Ok(open)
    }

    /// Writers that hold their lock, with the bytes they have written so far: for books that were lost. Each enters the
    /// rest of its reservation when it asks for more.
    fn live_writers(&self, store: &Store) -> Result<Vec<Reserved>> {
        let mut live = Vec::new();
        for name in self.folder.names()?.into_iter().filter(|name| name.starts_with(WRITER)) {
            if self.is_alive(&name)? {
                let id = name.trim_start_matches(WRITER).to_owned();
                let bytes = temporary(store, &id)?;
                live.push(Reserved { id, owner: Owner::Session, bytes });
            } else {
                self.folder.unlink(&name)?;
            }
        }
        Ok(live)
    }

    /// Count what is on disk, then change the books.
    fn counted(&self, store: &Store, change: impl FnOnce(&mut Books)) -> Result<Balance> {
        let mut open = self.open(store, store.quota.as_ref())?;
        open.drop_dead()?;
        open.recount()?;
        change(&mut open.books);
        open.save()?;
        Ok(open.books.balance())
    }

    fn is_alive(&self, name: &str) -> Result<bool> {
        if self.folder.stat(name)?.is_none() {
            return Ok(false);
        }
        Ok(Lock::take(&self.folder, name, true, false)?.is_none())
    }
}

fn lock_name(id: &str) -> String {
    format!("{WRITER}{id}")
}

impl Open<'_> {
    /// Count what is on disk, without the temporary files of live writers: those are reserved.
    fn recount(&mut self) -> Result<()> {
        let usage = self.store.usage()?;
        let mut committed = usage.total();
        for writer in &self.books.writers {
            committed = committed.saturating_sub(temporary(self.store, &writer.id)?);
        }
        for name in &self.books.beside {
            committed = committed.saturating_add(disk_bytes(self.store.dir(), name)?);
        }
        self.books.committed = committed;
        self.books.checkpoints = self.books.checkpoints.min(committed);
        self.books.exact = true;
        Ok(())
    }

    /// Drop the reservations of dead writers; what they left on disk is counted.
    fn drop_dead(&mut self) -> Result<()> {
        let mut dead = Vec::new();
        for writer in &self.books.writers {
            if !self.accounts.is_alive(&lock_name(&writer.id))? {
                dead.push(writer.id.clone());
            }
        }
        if dead.is_empty() {
            return Ok(());
        }
        for id in &dead {
            self.accounts.folder.unlink(&lock_name(id))?;
        }
        self.books.writers.retain(|writer| !dead.contains(&writer.id));
        self.recount()
    }

    fn room(&self, quota: &Quota, class: Class) -> u64 {
        let books = &self.books;
        let total = if quota.total == 0 { books.total_limit } else { quota.total };
        let all = Quota::limit(total, class);
        let all = all.saturating_sub(books.committed).saturating_sub(books.reserved(None));
        if quota.owner != Owner::Checkpoint {
            return all;
        }
        let own = Quota::limit(quota.checkpoints, class);
        let reserved = books.reserved(Some(Owner::Checkpoint));
        all.min(own.saturating_sub(books.checkpoints).saturating_sub(reserved))
    }

    /// Room left, counted again if it seems too small and the books may be wrong.
    fn room_for(&mut self, quota: &Quota, class: Class, needed: u64) -> Result<u64> {
        let room = self.room(quota, class);
        if room >= needed {
            return Ok(room);
        }
        self.drop_dead()?;
        if !self.books.exact {
            self.recount()?;
        }
        Ok(self.room(quota, class))
    }

    fn save(&mut self) -> Result<()> {
        self.books.write(&self.accounts.folder, BOOKS)
    }
}

impl Store {
    /// Limit this store's writers to `quota`.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Store {
        self.quota = Some(quota);
        self
    }

    /// Count bytes that were added without a writer: a file moved into the store.
    pub(super) fn charge(&self, bytes: u64) -> Result<()> {
        let Some(quota) = &self.quota else { return Ok(()) };
        let accounts = Accounts::of(self)?;
        let mut open = accounts.open(self, Some(quota))?;
        open.books.commit(quota.owner, bytes);
        open.save()
    }

    /// Current balance; `None` if there are no accounts.
    pub fn balance(&self) -> Result<Option<Balance>> {
        if self.root.stat(FOLDER)?.is_none() {
            return Ok(None);
        }
        let books = Books::read(&Accounts::of(self)?.folder, BOOKS)?;
        Ok(books.map(|books| books.balance()))
    }

    /// Count what is on disk, for callers that removed or rewrote files. `None` if there are no accounts.
    pub fn recount(&self) -> Result<Option<Balance>> {
        if self.quota.is_none() && self.root.stat(FOLDER)?.is_none() {
            return Ok(None);
        }
        let accounts = Accounts::of(self)?;
        accounts.counted(self, |_| {}).map(Some)
    }

    /// Enter the bytes that only checkpoints need, as counted when they had written `written` bytes in all.
    pub fn set_checkpoints(&self, bytes: u64, written: u64) -> Result<Balance> {
        Accounts::of(self)?.counted(self, |books| books.set_checkpoints(bytes, written))
    }

    /// Room that a writer of the store's quota has for contents now.
    pub fn room(&self) -> Result<u64> {
        let Some(quota) = &self.quota else { return Ok(u64::MAX) };
        let accounts = Accounts::of(self)?;
        let mut open = accounts.open(self, Some(quota))?;
        let room = open.room_for(quota, Class::Content, u64::MAX)?;
        open.save()?;
        Ok(room)
    }
}

/// Bytes on disk of a writer's temporary files.
fn temporary(store: &Store, id: &str) -> Result<u64> {
    let mut bytes = 0;
    for prefix in [WRITER_TEMP, REWRITE_TEMP] {
        let Some(folder) = there(store.tmp.open_folder(&format!("{prefix}{id}")))? else { continue };
        bytes += allocated(&folder.own_stat()?);
        for file in folder.names()? {
            bytes += folder.stat(&file)?.map_or(0, |stat| allocated(&stat));
        }
    }
    Ok(bytes)
}

fn disk_bytes(store: &Path, name: &str) -> Result<u64> {
    let path: PathBuf = store.parent().unwrap_or(store).join(name);
    nono_sys::fs::disk_bytes(&path).map_err(|(path, source)| StoreError::Io { doing: "read", path, source })
}
