//! Disk usage of a store, by purpose.

use std::fs::File;
use std::path::Path;

use rustix::fs::Stat;

use super::error::{Result, there};
use super::files::{Folder, allocated, failed, file_stat, is_file};
use super::handle::Store;
use super::key::{ObjectKey, ObjectKind};
use super::large::{LargeName, parse_name};
use super::names::KEEP;
use super::pack::{index_name, pack_name};

/// Bytes that a file takes besides its data.
const INODE: u64 = 4096;

/// Bytes on disk (allocated blocks, as `du` counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub packs: u64,
    pub indexes: u64,
    /// Large objects that are not chunks. Data that they share with other files does not count: it takes no space.
    pub large: u64,
    /// Files being written, and those left by dead writers.
    pub temporary: u64,
    /// Folders, locks, the format file; stat caches and the notes of sessions.
    pub other: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.packs + self.indexes + self.large + self.temporary + self.other
    }
}

impl Store {
    pub fn usage(&self) -> Result<Usage> {
        let mut usage = Usage::default();
        for folder in [&self.root, &self.packs, &self.large, &*self.tmp] {
            usage.other += allocated(&folder.own_stat()?);
        }
        each_file(&self.root, &mut |name, bytes| match name {
            "packs" | "large" | "tmp" => {}
            _ => usage.other += bytes,
        })?;
        for name in ["cache", "sessions"] {
            // Created by the snapshot manager, not by the store.
            if self.root.stat(name)?.is_some() {
                each_file(&self.root.open_folder(name)?, &mut |_, bytes| usage.other += bytes)?;
            }
        }
        each_file(&self.packs, &mut |name, bytes| match name.rsplit('.').next() {
            Some("idx") => usage.indexes += bytes,
            _ => usage.packs += bytes,
        })?;
        self.each_large(&mut |_, bytes| usage.large += bytes)?;
        each_inner(&self.tmp, &mut |bytes| usage.temporary += bytes)?;
        Ok(usage)
    }
}

impl Store {
    /// Bytes on disk that an object takes; 0 if it is not stored.
    pub(crate) fn stored_size(&self, key: ObjectKey) -> Result<u64> {
        if let Some((_, entry)) = self.view.now(self)?.find(&key).next() {
            return Ok(u64::from(entry.stored) + super::pack_record::HEAD as u64 + 52);
        }
        self.large_bytes(&key)
    }
}

/// Bytes on disk, by the side that needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Bytes that only one side needs, with its share of dead objects in the same packs, and everything that neither
    /// needs: temporary files, packs without live objects, folders.
    pub mine: u64,
    /// Bytes that the other side needs, whether or not the first does.
    pub others: u64,
    /// Part of `mine` that would remain without dead objects. An estimate.
    pub live: u64,
}

/// Bytes that an open file takes for itself, without data shared with a file that still has it.
pub(super) fn own_bytes(file: &File, path: &Path) -> Result<u64> {
    let all = allocated(&file_stat(file, path)?);
    let extents = nono_sys::extents::extents(file, false).map_err(failed("read", path))?;
    Ok(extents.map_or(all, |extents| {
        let own = extents.iter().filter(|extent| !extent.is_shared()).map(|extent| extent.len).sum::<u64>();
        all.min(own + INODE)
    }))
}

impl Store {
    /// Visit every file in `large/` with its size, and the folders, without a name.
    fn each_large(&self, each: &mut dyn FnMut(&str, u64)) -> Result<()> {
        for name in self.large.names()? {
            let folder = self.large.open_folder(&name)?;
            each("", allocated(&folder.own_stat()?));
            for name in folder.names()? {
                if let Some(stat) = folder.stat(&name)? {
                    each(&name, large_bytes(&folder, &name, &stat)?);
                }
            }
        }
        Ok(())
    }

    /// Divide the space between the objects selected by `others` and the rest, selected by `mine`.
    pub fn shares(
        &self,
        mine: &dyn Fn(ObjectKey) -> bool,
        others: &dyn Fn(ObjectKey) -> bool,
    ) -> Result<Shares> {
        let mut shares = Shares::default();
        let (mine_chunks, others_chunks) = (self.chunks_of(mine)?, self.chunks_of(others)?);
        let needed_by = |key: ObjectKey| match key.kind {
            ObjectKind::Chunk => (others_chunks.contains(&key), mine_chunks.contains(&key)),
            _ => (others(key), mine(key)),
        };
        let view = self.view.refresh(self)?;
        for pack in &view.packs {
            let on_disk = |name: String| -> Result<u64> {
                Ok(self.packs.stat(&name)?.map_or(0, |stat| allocated(&stat)))
            };
            let all = on_disk(pack_name(&pack.id))? + on_disk(index_name(&pack.id))?;
            let (mut only, mut needed) = (0, 0);
            for entry in pack.index.entries() {
                // The record, and the entry of the index.
                let size = u64::from(entry.stored) + super::pack_record::HEAD as u64 + 52;
                match needed_by(entry.key) {
                    (true, _) => needed += size,
                    (false, true) => only += size,
                    (false, false) => {}
                }
            }
            let part = u128::from(all) * u128::from(needed) / u128::from((only + needed).max(1));
            let part = u64::try_from(part).unwrap_or(all);
            shares.others += part;
            shares.live += only;
        }
        self.each_large(&mut |name, bytes| {
            let key = parse_name(name).map(|(hash, _)| ObjectKey { kind: ObjectKind::Blob, hash });
            match key {
                Some(key) if others(key) => shares.others += bytes,
                Some(key) if mine(key) => shares.live += bytes,
                _ => {}
            }
        })?;
        let usage = self.usage()?;
        shares.live += usage.other;
        shares.mine = usage.total().saturating_sub(shares.others);
        Ok(shares)
    }
}

/// Bytes of a file in `large/`: of a clone only the part that it does not share.
fn large_bytes(folder: &Folder, name: &str, stat: &Stat) -> Result<u64> {
    let is_plain = matches!(parse_name(name), Some((_, LargeName::Plain)));
    if !is_file(stat) || !is_plain || stat.st_mode & KEEP == 0 {
        return Ok(allocated(stat));
    }
    // Otherwise another process collected it.
    there(folder.open(name))?.map_or(Ok(0), |file| own_bytes(&file, &folder.path_of(name)))
}

fn each_file(folder: &Folder, each: &mut dyn FnMut(&str, u64)) -> Result<()> {
    for name in folder.names()? {
        if let Some(stat) = folder.stat(&name)? {
            each(&name, allocated(&stat));
        }
    }
    Ok(())
}

/// Visit the files one level down, and their folders.
fn each_inner(folder: &Folder, each: &mut dyn FnMut(u64)) -> Result<()> {
    for name in folder.names()? {
        let Some(stat) = folder.stat(&name)? else { continue };
        each(allocated(&stat));
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::Directory {
            continue;
        }
        // Otherwise its writer ended meanwhile.
        if let Some(inner) = there(folder.open_folder(&name))? {
            each_file(&inner, &mut |_, bytes| each(bytes))?;
        }
    }
    Ok(())
}
