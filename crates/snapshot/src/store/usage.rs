//! How much room a store takes on disk, by what for.

use super::Store;
use super::error::StoreError;
use super::files::{Folder, allocated};

/// Bytes on disk (allocated blocks, as `du` counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub packs: u64,
    pub indexes: u64,
    /// Large objects. Data that they share with the user's files counts in full.
    pub large: u64,
    /// What writers are writing now, and what dead ones left.
    pub temporary: u64,
    /// Folders, locks and the format file.
    pub other: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.packs + self.indexes + self.large + self.temporary + self.other
    }
}

impl Store {
    pub fn usage(&self) -> Result<Usage, StoreError> {
        let mut usage = Usage::default();
        for folder in [&self.root, &self.packs, &self.large, &*self.tmp] {
            usage.other += allocated(&folder.own_stat()?);
        }
        each_file(&self.root, &mut |name, bytes| match name {
            "packs" | "large" | "tmp" => {}
            _ => usage.other += bytes,
        })?;
        each_file(&self.packs, &mut |name, bytes| match name.rsplit('.').next() {
            Some("idx") => usage.indexes += bytes,
            _ => usage.packs += bytes,
        })?;
        each_inner(&self.large, &mut |bytes| usage.large += bytes)?;
        each_inner(&self.tmp, &mut |bytes| usage.temporary += bytes)?;
        Ok(usage)
    }
}

fn each_file(folder: &Folder, each: &mut dyn FnMut(&str, u64)) -> Result<(), StoreError> {
    for name in folder.names()? {
        if let Some(stat) = folder.stat(&name)? {
            each(&name, allocated(&stat));
        }
    }
    Ok(())
}

/// The files one level down, and the folders they are in.
fn each_inner(folder: &Folder, each: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
    for name in folder.names()? {
        let Some(stat) = folder.stat(&name)? else { continue };
        each(allocated(&stat));
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::Directory {
            continue;
        }
        match folder.open_folder(&name) {
            // A writer that ended meanwhile.
            Err(error) if error.is_not_found() => {}
            inner => each_file(&inner?, &mut |_, bytes| each(bytes))?,
        }
    }
    Ok(())
}
