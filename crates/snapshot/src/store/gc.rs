//! Collecting: what nothing refers to any more goes, and what dead processes left behind.
//!
//! The exclusive lock keeps all writers out from before the live set is computed until the end, so nothing that a writer
//! found to be there can vanish under it. Readers go on: what they need is live. Callers know files; which chunks these
//! need is found here.

use std::sync::Arc;

use super::error::{Problem, StoreError};
use super::files::Fsyncs;
use super::large::{Shape, parse_name};
use super::pack::Pack;
use super::rewrite::{How, Watch, remove_packs, rewrite};
use super::{Key, ObjectKind, Store};

/// Packs with less live bytes than this, in percent, are rewritten.
const WORTH: u64 = 70;
/// The same, when nothing that is not live may stay.
const ALL: u64 = 100;

/// What a collection did.
#[derive(Debug, Default)]
pub struct Collected {
    /// Packs that held nothing live.
    pub packs_dropped: u64,
    /// Packs whose live objects moved to a new one.
    pub packs_rewritten: u64,
    pub large_dropped: u64,
    /// Bytes on disk of what dead processes left.
    pub debris: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub fsyncs: u64,
    /// Damage that was found on the way; what is damaged stays where it is.
    pub problems: Vec<Problem>,
}

impl Store {
    /// Remove everything that is not live. Waits until no writer is there.
    pub fn gc(&self, live: &dyn Fn(Key) -> bool) -> Result<Collected, StoreError> {
        self.gc_with(true, |_| Ok(live))
    }

    /// The same, with the live set computed when no writer is there any more: whatever was published before that has
    /// been written down by then. Without `wait` it is busy when anybody writes, settles or verifies.
    pub fn gc_with<Live, E>(
        &self,
        wait: bool,
        mark: impl FnOnce(&Store) -> Result<Live, E>,
    ) -> Result<Collected, E>
    where
        Live: Fn(Key) -> bool,
        E: From<StoreError>,
    {
        self.collect(wait, WORTH, mark)
    }

    /// The same, and nothing that is not live stays behind in a pack that has something live.
    pub fn purge_with<Live, E>(&self, mark: impl FnOnce(&Store) -> Result<Live, E>) -> Result<Collected, E>
    where
        Live: Fn(Key) -> bool,
        E: From<StoreError>,
    {
        self.collect(true, ALL, mark)
    }

    fn collect<Live, E>(
        &self,
        wait: bool,
        worth: u64,
        mark: impl FnOnce(&Store) -> Result<Live, E>,
    ) -> Result<Collected, E>
    where
        Live: Fn(Key) -> bool,
        E: From<StoreError>,
    {
        let _one = self.maintain(wait)?;
        let _alone = self.exclude_writers(wait)?;
        let live = mark(self)?;
        Ok(self.sweep(&live, worth)?)
    }

    fn sweep(&self, live: &dyn Fn(Key) -> bool, worth: u64) -> Result<Collected, StoreError> {
        let fsyncs = Fsyncs::default();
        let mut collected = Collected { bytes_before: self.usage()?.total(), ..Collected::default() };
        collected.debris = self.remove_debris(true)?;
        let chunks = self.chunks_of(live)?;
        let needed = |key: Key| match key.kind {
            ObjectKind::Chunk => chunks.contains(&key),
            _ => live(key),
        };
        // First the lists, durably: one that is there must find its chunks, or its file would count as stored.
        self.sweep_large(live, &fsyncs, &mut collected)?;
        self.sweep_packs(&needed, worth, &fsyncs, &mut collected)?;
        self.view.refresh(self)?;
        collected.bytes_after = self.usage()?.total();
        collected.fsyncs = fsyncs.get();
        collected.problems.extend(chunks.problems);
        self.recount()?;
        Ok(collected)
    }

    fn sweep_packs(
        &self,
        live: &dyn Fn(Key) -> bool,
        worth: u64,
        fsyncs: &Fsyncs,
        collected: &mut Collected,
    ) -> Result<(), StoreError> {
        let view = self.view.refresh(self)?;
        let mut dead: Vec<Arc<Pack>> = Vec::new();
        let mut poor: Vec<Arc<Pack>> = Vec::new();
        for pack in &view.packs {
            let (alive, all) = live_bytes(pack, live);
            // An index that had to be made anew may lack what could not be read: that pack stays.
            if alive == 0 && !pack.partial {
                dead.push(Arc::clone(pack));
            } else if alive * 100 < all * worth {
                poor.push(Arc::clone(pack));
            }
        }
        remove_packs(self, &dead, fsyncs)?;
        collected.packs_dropped = dead.len() as u64;
        // Where room is short, those that need the least of it first: what goes makes room for the next.
        poor.sort_by_key(|pack| live_bytes(pack, live).0);
        for pack in poor {
            let view = self.view.refresh(self)?;
            let watch = Watch { cancel: &|| false, progress: &|_| {} };
            let how = |whatever_room| How { share_lock: false, whatever_room };
            // Only one at a time: the room for one more pack is all that this needs.
            let inputs = [pack];
            let mut new = rewrite(self, &view, &inputs, live, how(false), fsyncs, &watch)?;
            if new.no_room && worth == ALL {
                // What is to be forgotten goes, also where a limit is passed for a moment.
                new = rewrite(self, &view, &inputs, live, how(true), fsyncs, &watch)?;
            }
            remove_packs(self, &new.replaced, fsyncs)?;
            collected.packs_rewritten += new.replaced.len() as u64;
            collected.problems.extend(new.problems);
        }
        Ok(())
    }

    fn sweep_large(
        &self,
        live: &dyn Fn(Key) -> bool,
        fsyncs: &Fsyncs,
        collected: &mut Collected,
    ) -> Result<(), StoreError> {
        for name in self.large.names()? {
            let folder = self.large.open_folder(&name)?;
            let mut lists = false;
            for name in folder.names()? {
                let Some((hash, shape)) = parse_name(&name) else { continue };
                if !live(Key { kind: ObjectKind::Blob, hash }) {
                    folder.unlink(&name)?;
                    collected.large_dropped += u64::from(shape != Shape::Hashes);
                    lists |= shape == Shape::Chunks;
                }
            }
            if lists {
                folder.sync(fsyncs)?;
            }
        }
        Ok(())
    }
}

/// Live bytes, and all.
fn live_bytes(pack: &Pack, live: &dyn Fn(Key) -> bool) -> (u64, u64) {
    let mut bytes = (0, 0);
    for entry in pack.index.entries() {
        let size = u64::from(entry.stored) + super::record::HEAD as u64;
        bytes.1 += size;
        if live(entry.key) {
            bytes.0 += size;
        }
    }
    bytes
}
