//! A writer's account: its reservation, what it used, and the lock that shows that it is alive.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::books::{Books, Reserved};
use super::{
    Accounts, BESIDE, BOOKS, Class, FOLDER, LARGEST_STEP, LOCK, Owner, Quota, SMALLEST_STEP, STEP_SHARE,
    lock_name,
};
use crate::pool::locked;
use crate::store::Store;
use crate::store::error::{Result, StoreError};
use crate::store::files::{Lock, unique};

/// Reserved and used room for one class of a writer's objects.
#[derive(Debug, Default)]
struct Pool {
    granted: AtomicU64,
    used: AtomicU64,
}

impl Pool {
    fn take(&self, cost: u64) -> bool {
        let granted = self.granted.load(Ordering::SeqCst);
        let add = |used: u64| used.checked_add(cost).filter(|sum| *sum <= granted);
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add).is_ok()
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }
}

/// A writer's account. Dropped without a commit, it releases everything.
#[derive(Debug)]
pub(in crate::store) struct Account {
    accounts: Accounts,
    quota: Quota,
    pub(in crate::store) id: String,
    contents: Pool,
    others: Pool,
    extending: Mutex<()>,
    settled: bool,
    /// Lock that shows that this writer is alive.
    alive: Option<Lock>,
}

impl Account {
    /// Open an account, dropping the reservations of dead writers.
    pub(in crate::store) fn open(store: &Store, quota: &Quota) -> Result<Account> {
        let accounts = Accounts::of(store)?;
        let id = unique();
        let mut open = accounts.open(store, Some(quota))?;
        open.drop_dead()?;
        let name = lock_name(&id);
        let alive = Lock::take(&accounts.folder, &name, true, false)?
            .ok_or_else(|| StoreError::Busy { path: accounts.folder.path_of(&name) })?;
        open.books.writers.push(Reserved { id: id.clone(), owner: quota.owner, bytes: 0 });
        open.save()?;
        drop(open);
        Ok(Account {
            accounts,
            quota: quota.clone(),
            id,
            contents: Pool::default(),
            others: Pool::default(),
            extending: Mutex::new(()),
            settled: false,
            alive: Some(alive),
        })
    }

    /// Account for rewriting packs; `None` if the store has no limit.
    pub(in crate::store) fn for_maintenance(store: &Store) -> Result<Option<Account>> {
        if store.root.stat(FOLDER)?.is_none() {
            return Ok(None);
        }
        let books = Books::read(&Accounts::of(store)?.folder, BOOKS)?;
        let limited = books.filter(|books| books.total_limit > 0);
        let Some(books) = limited else { return Ok(None) };
        let quota = Quota {
            owner: Owner::Maintenance,
            total: books.total_limit,
            checkpoints: 0,
            beside: books.beside,
        };
        Account::open(store, &quota).map(Some)
    }

    fn granted(&self) -> u64 {
        self.contents.granted.load(Ordering::SeqCst) + self.others.granted.load(Ordering::SeqCst)
    }

    fn pool(&self, class: Class) -> &Pool {
        match class {
            Class::Content => &self.contents,
            Class::Other => &self.others,
        }
    }

    /// Reserve room; if it does not fit, nothing changes.
    pub(in crate::store) fn reserve(&self, store: &Store, cost: u64, class: Class) -> Result<()> {
        let pool = self.pool(class);
        loop {
            if pool.take(cost) {
                return Ok(());
            }
            let _one = locked(&self.extending);
            let missing = (pool.used() + cost).saturating_sub(pool.granted.load(Ordering::SeqCst));
            if missing > 0 {
                self.extend(store, missing, cost, class)?;
            }
        }
    }

    /// Room for contents: the unused reservation, and what is left for all.
    pub(in crate::store) fn room(&self, store: &Store) -> Result<u64> {
        let held = self.contents.granted.load(Ordering::SeqCst).saturating_sub(self.contents.used());
        let mut open = self.accounts.open(store, Some(&self.quota))?;
        let room = open.room_for(&self.quota, Class::Content, SMALLEST_STEP)?;
        open.save()?;
        Ok(held.saturating_add(room))
    }

    fn extend(&self, store: &Store, missing: u64, cost: u64, class: Class) -> Result<()> {
        let mut open = self.accounts.open(store, Some(&self.quota))?;
        let room = open.room_for(&self.quota, class, missing)?;
        if room < missing {
            open.save()?;
            let left = (cost - missing.min(cost)) + room;
            return Err(StoreError::OverBudget { needed: cost, left, dir: store.dir().to_owned() });
        }
        let step = (room / STEP_SHARE).clamp(SMALLEST_STEP, LARGEST_STEP);
        let grant = missing.max(step).min(room);
        let held = self.granted() + grant;
        open.books.set_reserved(&self.id, self.quota.owner, held);
        open.save()?;
        self.pool(class).granted.fetch_add(grant, Ordering::SeqCst);
        Ok(())
    }

    pub(in crate::store) fn give_back(&self, cost: u64, class: Class) {
        self.pool(class).used.fetch_sub(cost, Ordering::SeqCst);
    }

    /// Make the written packs visible, and commit their size, in one transaction.
    pub(in crate::store) fn commit<T>(
        &mut self,
        store: &Store,
        publish: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut open = self.accounts.open(store, Some(&self.quota))?;
        let published = publish();
        let used = self.contents.used() + self.others.used();
        let used = if used == 0 { 0 } else { used + BESIDE };
        open.books.writers.retain(|writer| writer.id != self.id);
        open.books.commit(self.quota.owner, used);
        if published.is_err() {
            // Some of it may be visible.
            open.recount()?;
        }
        open.save()?;
        self.settled = true;
        self.release();
        published
    }

    fn release(&mut self) {
        // Without an entry in the books, the file is only debris.
        let _ = self.accounts.folder.unlink(&lock_name(&self.id));
        self.alive = None;
    }

    fn cancel(&self, store_books: &Accounts) -> Result<()> {
        let _lock = Lock::take(&store_books.folder, LOCK, true, true)?;
        // The next writer recounts damaged books.
        let Some(mut books) = Books::read(&store_books.folder, BOOKS)? else { return Ok(()) };
        books.writers.retain(|writer| writer.id != self.id);
        books.write(&store_books.folder, BOOKS)
    }
}

#[cfg(test)]
impl Account {
    /// Release the lock and do nothing else, as a killed process does.
    pub(in crate::store) fn die(mut self) {
        self.settled = true;
        self.alive = None;
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        // If that fails, the reservation is dropped with the lock.
        let _ = self.cancel(&self.accounts);
        self.release();
    }
}
