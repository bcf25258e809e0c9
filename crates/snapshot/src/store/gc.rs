//! Garbage collection: removes unreferenced objects, and what dead processes left behind.
//!
//! The exclusive lock keeps writers out from before the live set is computed until the end, so an object that one found
//! cannot vanish. Readers continue: what they need is live. The chunks of live files are found here.

use std::sync::Arc;

use super::error::{Result, StoreError, StoreProblem};
use super::files::Fsyncs;
use super::handle::Store;
use super::key::{ObjectKey, ObjectKind};
use super::large::{LargeName, parse_name};
use super::pack::Pack;
use super::rewrite::{RewriteOptions, RewriteWatch, remove_packs, rewrite};

/// Percentage of live bytes below which a pack is rewritten.
const WORTH: u64 = 70;
/// The same when no dead byte may stay.
const ALL: u64 = 100;

/// Result of a collection.
#[derive(Debug, Default)]
pub struct Collected {
    /// Packs without live objects.
    pub packs_dropped: u64,
    /// Packs whose live objects moved to a new one.
    pub packs_rewritten: u64,
    pub large_dropped: u64,
    /// Bytes on disk left by dead processes.
    pub debris: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub fsyncs: u64,
    /// Damage found on the way; damaged objects stay where they are.
    pub problems: Vec<StoreProblem>,
}

impl Store {
    /// Remove everything that is not live. Waits until there is no writer.
    pub fn gc(&self, live: &dyn Fn(ObjectKey) -> bool) -> Result<Collected> {
        self.gc_with(true, |_| Ok(live))
    }

    /// The same, with the live set computed once there is no writer: everything published before is recorded by then.
    /// Without `wait` it fails as busy while another process writes, settles or verifies.
    pub fn gc_with<E: From<StoreError>, Live: Fn(ObjectKey) -> bool>(
        &self,
        wait: bool,
        mark: impl FnOnce(&Store) -> Result<Live, E>,
    ) -> Result<Collected, E> {
        self.collect(wait, WORTH, mark)
    }

    /// The same, leaving no dead object in any pack.
    pub fn gc_compact_with<E: From<StoreError>, Live: Fn(ObjectKey) -> bool>(
        &self,
        mark: impl FnOnce(&Store) -> Result<Live, E>,
    ) -> Result<Collected, E> {
        self.collect(true, ALL, mark)
    }

    fn collect<E: From<StoreError>, Live: Fn(ObjectKey) -> bool>(
        &self,
        wait: bool,
        worth: u64,
        mark: impl FnOnce(&Store) -> Result<Live, E>,
    ) -> Result<Collected, E> {
        let _one = self.maintain(wait)?;
        let _alone = self.exclude_writers(wait)?;
        let live = mark(self)?;
        Ok(self.sweep(&live, worth)?)
    }

    fn sweep(&self, live: &dyn Fn(ObjectKey) -> bool, worth: u64) -> Result<Collected> {
        let fsyncs = Fsyncs::default();
        let mut collected = Collected { bytes_before: self.usage()?.total(), ..Collected::default() };
        collected.debris = self.remove_debris(true)?;
        let chunks = self.chunks_of(live)?;
        let needed = |key: ObjectKey| match key.kind {
            ObjectKind::Chunk => chunks.contains(&key),
            _ => live(key),
        };
        // First the lists, durably: a list that exists must find its chunks, or its file would count as stored.
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
        live: &dyn Fn(ObjectKey) -> bool,
        worth: u64,
        fsyncs: &Fsyncs,
        collected: &mut Collected,
    ) -> Result<()> {
        let view = self.view.refresh(self)?;
        let mut dead: Vec<Arc<Pack>> = Vec::new();
        let mut poor: Vec<Arc<Pack>> = Vec::new();
        for pack in &view.packs {
            let (alive, all) = live_bytes(pack, live);
            // A rebuilt index may lack records that could not be read: that pack stays.
            if alive == 0 && !pack.partial {
                dead.push(Arc::clone(pack));
            } else if alive * 100 < all * worth {
                poor.push(Arc::clone(pack));
            }
        }
        remove_packs(self, &dead, fsyncs)?;
        collected.packs_dropped = dead.len() as u64;
        // If space is short, packs that need the least first: removing old ones frees space for the next.
        poor.sort_by_key(|pack| live_bytes(pack, live).0);
        for pack in poor {
            let view = self.view.refresh(self)?;
            let watch = RewriteWatch { cancel: &|| false, progress: &|_| {} };
            let how = |whatever_room| RewriteOptions { share_lock: false, whatever_room };
            // One at a time: space for one more pack is enough.
            let inputs = [pack];
            let mut new = rewrite(self, &view, &inputs, live, how(false), fsyncs, &watch)?;
            if new.no_room && worth == ALL {
                // A purge is done even if it exceeds a limit for a moment.
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
        live: &dyn Fn(ObjectKey) -> bool,
        fsyncs: &Fsyncs,
        collected: &mut Collected,
    ) -> Result<()> {
        for name in self.large.names()? {
            let folder = self.large.open_folder(&name)?;
            let mut lists = false;
            for name in folder.names()? {
                let Some((hash, shape)) = parse_name(&name) else { continue };
                if !live(ObjectKey { kind: ObjectKind::Blob, hash }) {
                    folder.unlink(&name)?;
                    collected.large_dropped += u64::from(shape != LargeName::Hashes);
                    lists |= shape == LargeName::Chunks;
                }
            }
            if lists {
                folder.sync(fsyncs)?;
            }
        }
        Ok(())
    }
}

/// Live bytes, and all bytes.
fn live_bytes(pack: &Pack, live: &dyn Fn(ObjectKey) -> bool) -> (u64, u64) {
    let mut bytes = (0, 0);
    for entry in pack.index.entries() {
        let size = u64::from(entry.stored) + super::pack_record::HEAD as u64;
        bytes.1 += size;
        if live(entry.key) {
            bytes.0 += size;
        }
    }
    bytes
}
