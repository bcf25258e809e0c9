//! The packs that this process knows. The list is refreshed when an object is not found, so that packs published by
//! other processes are seen; that costs one `fstat` if the folder did not change.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::error::{Result, StoreError};
use super::files::{Folder, is_unique_name};
use super::handle::Store;
use super::index::ObjectLocation;
use super::key::ObjectKey;
use super::pack::{OpenPack, Pack};
use crate::pool::locked;

/// Maximum number of packs kept open: descriptors are scarce.
const OPEN: usize = 64;

#[derive(Debug, Default)]
pub(super) struct View {
    known: RwLock<Option<Arc<Packs>>>,
    /// Only one thread lists at a time.
    listing: Mutex<()>,
}

/// Packs of one listing.
#[derive(Debug)]
pub(super) struct Packs {
    pub(super) packs: Vec<Arc<Pack>>,
    stamp: Stamp,
}

/// State of the folder. Two changes in one clock tick look the same, so a recent stamp proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    mtime: (i64, i64),
    settled: bool,
}

impl Stamp {
    fn of(packs: &Folder) -> Result<Stamp> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        let stat = packs.own_stat()?;
        let mtime = (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0));
        Ok(Stamp { mtime, settled: now.tv_sec - mtime.0 >= 2 })
    }
}

impl Packs {
    /// Locations of the object, in every pack that has it.
    pub(super) fn find<'a>(
        &'a self,
        key: &'a ObjectKey,
    ) -> impl Iterator<Item = (&'a Arc<Pack>, ObjectLocation)> + 'a {
        self.packs.iter().filter_map(|pack| Some((pack, pack.index.find(key)?)))
    }

    /// All packs but these.
    pub(super) fn without(&self, packs: &[Arc<Pack>]) -> Packs {
        let stays = |pack: &&Arc<Pack>| !packs.iter().any(|other| Arc::ptr_eq(pack, other));
        Packs { packs: self.packs.iter().filter(stays).cloned().collect(), stamp: self.stamp }
    }

    /// Whether a reliable pack has it.
    pub(super) fn holds(&self, key: &ObjectKey) -> bool {
        self.holder(key).is_some()
    }

    pub(super) fn holder(&self, key: &ObjectKey) -> Option<&Arc<Pack>> {
        self.packs.iter().find(|pack| !pack.suspect && pack.index.find(key).is_some())
    }
}

impl View {
    fn known(&self) -> Option<Arc<Packs>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Packs known so far; listed on first use.
    pub(super) fn now(&self, store: &Store) -> Result<Arc<Packs>> {
        match self.known() {
            Some(packs) => Ok(packs),
            None => self.refresh(store),
        }
    }

    /// List again, unless it is certain that nothing changed.
    pub(super) fn refresh_if_changed(&self, store: &Store) -> Result<Arc<Packs>> {
        match self.known() {
            Some(known) if known.stamp.settled && known.stamp == Stamp::of(&store.packs)? => Ok(known),
            _ => self.refresh(store),
        }
    }

    /// List again; returns the same value if nothing changed.
    pub(super) fn refresh(&self, store: &Store) -> Result<Arc<Packs>> {
        let _one = locked(&self.listing);
        let before = self.known();
        loop {
            let stamp = Stamp::of(&store.packs)?;
            let Some(packs) = list(store, before.as_deref())? else { continue };
            // A pack replaced while the names were read may be missing along with its successor.
            if Stamp::of(&store.packs)?.mtime != stamp.mtime {
                continue;
            }
            let same = before.filter(|known| known.stamp == stamp && same_packs(known, &packs));
            let now = same.unwrap_or_else(|| Arc::new(Packs { packs, stamp }));
            *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&now));
            return Ok(now);
        }
    }

    /// Open a pack, closing others if there are too many.
    pub(super) fn open(&self, store: &Store, pack: &Arc<Pack>) -> Result<Arc<OpenPack>> {
        if !pack.is_open()
            && let Some(known) = self.known()
            && known.packs.len() > OPEN
            && known.packs.iter().filter(|other| other.is_open()).count() >= OPEN
        {
            known.packs.iter().for_each(|other| other.close());
        }
        pack.open(&store.packs)
    }
}

fn same_packs(known: &Packs, packs: &[Arc<Pack>]) -> bool {
    known.packs.len() == packs.len() && known.packs.iter().zip(packs).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// List the packs; `None` if one vanished meanwhile.
fn list(store: &Store, before: Option<&Packs>) -> Result<Option<Vec<Arc<Pack>>>> {
    let mut packs = Vec::new();
    for id in ids(&store.packs, ".idx")? {
        let known = before.and_then(|before| before.packs.iter().find(|pack| pack.id == id));
        if let Some(known) = known {
            packs.push(Arc::clone(known));
            continue;
        }
        match Pack::load(&store.packs, &id, store.boot) {
            Ok(pack) => packs.push(Arc::new(pack)),
            Err(error) if error.is_not_found() => {
                // Gone: list again. An index without its pack is damage, which `verify` reports.
                if store.packs.stat(&super::pack::index_name(&id))?.is_none() {
                    return Ok(None);
                }
            }
            // An unreadable index or pack hides its objects; a lookup reports them as missing.
            Err(StoreError::Damaged { .. }) => {}
            Err(error) if error.is_foreign() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(packs))
}

/// Ids of the packs or indexes, sorted.
pub(super) fn ids(packs: &Folder, suffix: &str) -> Result<Vec<String>> {
    let names = packs.names()?;
    let ids = names.iter().filter_map(|name| name.strip_suffix(suffix)).filter(|id| is_unique_name(id));
    Ok(ids.map(str::to_owned).collect())
}

/// Packs without an index: the writer was killed before it wrote one.
pub(super) fn orphans(packs: &Folder) -> Result<Vec<String>> {
    // Packs first: an index that appears in between belongs to a pack that is not an orphan.
    let mut packed = ids(packs, ".pack")?;
    let indexed = ids(packs, ".idx")?;
    packed.retain(|id| indexed.binary_search(id).is_err());
    Ok(packed)
}

/// Id of the current boot; zeros if the system has none.
pub(super) fn boot_id() -> [u8; 16] {
    #[cfg(feature = "failpoints")]
    if crate::disk::failpoint::rebooted().is_some() {
        return [0xb0; 16];
    }
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut id = [0; 16];
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte =
            std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0);
    }
    id
}
