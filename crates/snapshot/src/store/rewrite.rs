//! Copies objects from old packs into a new one, for settling and collecting.
//!
//! Every object is checked against its address on the way. A pack may be removed only if each of its wanted objects is
//! in the new pack, which is durable by then, or was read, undamaged, from a pack that stays.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::accounts::{Account, Class};
use super::error::{Damage, Result, StoreError, StoreProblem};
use super::files::{Fsyncs, Lock, failed, unique};
use super::handle::Store;
use super::index::ObjectLocation;
use super::key::ObjectKey;
use super::names::{LOCK, REWRITE_TEMP};
use super::pack::{OpenPack, Pack, PackBuilder, index_name, pack_name};
use super::pack_record::{Codec, Packer, is_content_of, unpack};
use super::temp::Temp;
use super::view::Packs;
use super::writer::OVERHEAD;
use crate::pool::{locked, on_two_threads};

/// Number of bytes that a thread takes on at once.
const SHARE: u64 = 1 << 20;

/// Progress and cancellation callbacks; called from the caller's thread only.
pub(super) struct RewriteWatch<'a> {
    pub(super) cancel: &'a dyn Fn() -> bool,
    pub(super) progress: &'a dyn Fn(u64),
}

#[derive(Debug, Default)]
pub(super) struct Rewritten {
    /// Whether the caller cancelled it: nothing was changed.
    pub(super) cancelled: bool,
    /// Whether the store's limit leaves no room for a new pack: nothing was changed.
    pub(super) no_room: bool,
    /// Old packs that are not needed any more.
    pub(super) replaced: Vec<Arc<Pack>>,
    pub(super) problems: Vec<StoreProblem>,
}

struct RewriteWork<'a> {
    store: &'a Store,
    inputs: &'a [Arc<Pack>],
    staying: &'a Packs,
    jobs: Vec<(usize, ObjectLocation)>,
    next: Mutex<usize>,
    out: Mutex<Option<PackBuilder>>,
    temp: &'a Temp,
    account: Option<&'a Account>,
    no_room: AtomicBool,
    stop: AtomicBool,
    done: AtomicU64,
    bad: Mutex<Vec<(ObjectKey, StoreProblem)>>,
}

#[derive(Clone, Copy)]
pub(super) struct RewriteOptions {
    /// Take the store's shared lock while publishing.
    pub(super) share_lock: bool,
    /// Rewrite even if the store's limit leaves no room.
    pub(super) whatever_room: bool,
}

/// Copy the wanted objects of `inputs` into a new pack and publish it. `all` are the packs of the store.
pub(super) fn rewrite(
    store: &Store,
    all: &Packs,
    inputs: &[Arc<Pack>],
    wanted: &dyn Fn(ObjectKey) -> bool,
    how: RewriteOptions,
    fsyncs: &Fsyncs,
    watch: &RewriteWatch<'_>,
) -> Result<Rewritten> {
    let mut account = if how.whatever_room { None } else { Account::for_maintenance(store)? };
    let temp = match &account {
        Some(account) => Temp::named(&store.tmp, format!("{REWRITE_TEMP}{}", account.id))?,
        None => Temp::make(&store.tmp, REWRITE_TEMP)?,
    };
    let staying = all.without(inputs);
    let work = RewriteWork {
        store,
        inputs,
        staying: &staying,
        jobs: jobs(inputs, wanted),
        next: Mutex::new(0),
        out: Mutex::new(None),
        temp: &temp,
        account: account.as_ref(),
        no_room: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        done: AtomicU64::new(0),
        bad: Mutex::default(),
    };
    work.run(watch)?;
    if work.stop.load(Ordering::SeqCst) {
        let no_room = work.no_room.load(Ordering::SeqCst);
        return Ok(Rewritten { cancelled: !no_room, no_room, ..Rewritten::default() });
    }
    let RewriteWork { out, bad, .. } = work;
    let bad = bad.into_inner().unwrap_or_else(PoisonError::into_inner);
    let built =
        out.into_inner().unwrap_or_else(PoisonError::into_inner).map(PackBuilder::finish).transpose()?;
    if let Some(built) = built {
        // Not while another process removes packs without an index, which this one is for a moment.
        let _shared = if how.share_lock { Lock::take(&store.root, LOCK, false, true)? } else { None };
        let publish = || built.publish(&temp.folder, &store.packs, store.boot, Some(fsyncs));
        match &mut account {
            Some(account) => account.commit(store, publish)?,
            None => publish()?,
        };
    }
    let lost: HashSet<ObjectKey> = bad.iter().map(|(key, _)| *key).collect();
    let whole = |pack: &&Arc<Pack>| !pack.partial && lost.iter().all(|key| pack.index.find(key).is_none());
    Ok(Rewritten {
        cancelled: false,
        no_room: false,
        replaced: inputs.iter().filter(whole).cloned().collect(),
        problems: bad.into_iter().map(|(_, problem)| problem).collect(),
    })
}

/// Each wanted object once, in the order of the packs, which is that of the captured tree.
fn jobs(inputs: &[Arc<Pack>], wanted: &dyn Fn(ObjectKey) -> bool) -> Vec<(usize, ObjectLocation)> {
    let mut jobs = Vec::new();
    let mut seen = HashSet::new();
    for (place, pack) in inputs.iter().enumerate() {
        let start = jobs.len();
        let entries = pack.index.entries().filter(|entry| wanted(entry.key));
        jobs.extend(
            entries.filter(|entry| inputs.len() == 1 || seen.insert(entry.key)).map(|entry| (place, entry)),
        );
        jobs[start..].sort_unstable_by_key(|(_, entry)| (entry.key.kind, entry.offset));
    }
    jobs
}

impl RewriteWork<'_> {
    /// Run on two threads, one of them the caller's.
    fn run(&self, watch: &RewriteWatch<'_>) -> Result<()> {
        // The other thread may finish a small batch before this one checks again.
        if (watch.cancel)() {
            self.stop.store(true, Ordering::SeqCst);
            return Ok(());
        }
        on_two_threads(watch, |watch| self.work(watch))
    }

    fn work(&self, watch: Option<&RewriteWatch<'_>>) -> Result<()> {
        let done = self.work_until_done(watch);
        if done.is_err() {
            self.stop.store(true, Ordering::SeqCst);
        }
        done
    }

    fn work_until_done(&self, watch: Option<&RewriteWatch<'_>>) -> Result<()> {
        let mut packer = Packer::new().map_err(failed("compress", self.store.dir()))?;
        let mut ready = Vec::new();
        loop {
            for (place, entry) in self.share() {
                if watch.is_some_and(|watch| (watch.cancel)()) {
                    self.stop.store(true, Ordering::SeqCst);
                }
                if self.stop.load(Ordering::SeqCst) {
                    return Ok(());
                }
                ready.extend(self.one(&self.inputs[*place], entry, &mut packer)?);
                self.done.fetch_add(u64::from(entry.raw), Ordering::Relaxed);
            }
            if ready.is_empty() && *locked(&self.next) == self.jobs.len() {
                return Ok(());
            }
            self.append(ready.drain(..))?;
            if let Some(watch) = watch {
                (watch.progress)(self.done.load(Ordering::Relaxed));
            }
        }
    }

    fn share(&self) -> &[(usize, ObjectLocation)] {
        let mut next = locked(&self.next);
        let (start, mut bytes) = (*next, 0);
        while *next < self.jobs.len() && bytes < SHARE {
            bytes += u64::from(self.jobs[*next].1.raw) + 512;
            *next += 1;
        }
        &self.jobs[start..*next]
    }

    fn append(&self, ready: impl Iterator<Item = (ObjectLocation, Vec<u8>)>) -> Result<()> {
        let mut out = locked(&self.out);
        for (entry, payload) in ready {
            if !self.has_room(payload.len() as u64 + OVERHEAD)? {
                return Ok(());
            }
            let pack = match &mut *out {
                Some(pack) => pack,
                none => none.insert(PackBuilder::create(&self.temp.folder, &unique())?),
            };
            pack.append(entry.key, entry.codec, entry.raw, &payload)?;
        }
        Ok(())
    }

    /// Reserve room for a record; false ends the work.
    fn has_room(&self, cost: u64) -> Result<bool> {
        let Some(account) = self.account else { return Ok(true) };
        match account.reserve(self.store, cost, Class::Other) {
            Err(StoreError::OverBudget { .. }) => {
                self.no_room.store(true, Ordering::SeqCst);
                self.stop.store(true, Ordering::SeqCst);
                Ok(false)
            }
            reserved => reserved.map(|()| true),
        }
    }

    /// Record for the new pack; `None` if a pack that stays has the object, or if it is damaged.
    fn one(
        &self,
        pack: &Arc<Pack>,
        entry: &ObjectLocation,
        packer: &mut Packer,
    ) -> Result<Option<(ObjectLocation, Vec<u8>)>> {
        if self.stays(entry) {
            return Ok(None);
        }
        let read = self.open(pack).and_then(|open| {
            let (head, payload) = open.record(entry)?;
            let unpacked = if head.codec == Codec::Zstd { unpack(head.raw, &payload) } else { None };
            let raw = if head.codec == Codec::Raw { Some(&payload) } else { unpacked.as_ref() };
            match raw {
                Some(raw) if is_content_of(&entry.key, raw) => Ok(payload),
                _ => Err(open.damaged(Some(entry.key), Damage::Content)),
            }
        });
        let payload = match read {
            Ok(payload) => payload,
            Err(error) => {
                let problem = StoreProblem::from_error(error, Some(entry.key))?;
                locked(&self.bad).push((entry.key, problem));
                return Ok(None);
            }
        };
        if entry.codec == Codec::Zstd {
            return Ok(Some((*entry, payload)));
        }
        let smaller = packer.pack(&payload).map_err(failed("compress", self.store.dir()))?;
        Ok(Some(match smaller {
            Some(smaller) => (ObjectLocation { codec: Codec::Zstd, ..*entry }, smaller),
            None => (*entry, payload),
        }))
    }

    fn open(&self, pack: &Arc<Pack>) -> Result<Arc<OpenPack>> {
        self.store.view.open(self.store, pack)
    }

    /// Whether a pack that stays has the object, undamaged.
    fn stays(&self, entry: &ObjectLocation) -> bool {
        self.staying.find(&entry.key).any(|(pack, entry)| {
            !pack.suspect && self.open(pack).and_then(|open| open.object(&entry)).is_ok()
        })
    }
}

/// Remove packs. First all indexes, durably: an index without its pack would look like a loss.
pub(super) fn remove_packs(store: &Store, packs: &[Arc<Pack>], fsyncs: &Fsyncs) -> Result<()> {
    if packs.is_empty() {
        return Ok(());
    }
    for pack in packs {
        store.packs.unlink(&index_name(&pack.id))?;
    }
    store.packs.sync(fsyncs)?;
    for pack in packs {
        pack.close();
        store.packs.unlink(&pack_name(&pack.id))?;
    }
    Ok(())
}
