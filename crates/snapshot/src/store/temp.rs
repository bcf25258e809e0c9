//! Temporary files of writers, and those left by dead ones.

use std::sync::Arc;

use super::error::Result;
use super::files::{self, Folder};
use super::format::FORMAT;
use super::handle::Store;
use super::names::{ID, REFUSED, REWRITE_TEMP, WRITER_TEMP};
use super::pack::pack_name;
use super::view::orphans;

impl Store {
    /// Remove what dead writers left, or with `maintaining` dead settling. The caller holds the exclusive lock.
    pub(super) fn remove_debris(&self, maintaining: bool) -> Result<u64> {
        let mut removed = 0;
        for name in self.tmp.names()? {
            if name.starts_with(WRITER_TEMP) || (maintaining && name.starts_with(REWRITE_TEMP)) {
                removed += remove_temp(&self.tmp, &name)?;
            }
        }
        let is_temp_of = |name: &str, file| name.strip_prefix(file).is_some_and(|rest| rest.starts_with('.'));
        let is_temp = |name: &&String| [FORMAT, ID, REFUSED].iter().any(|file| is_temp_of(name, file));
        for name in self.root.names()?.iter().filter(is_temp) {
            self.root.unlink(name)?;
        }
        for id in orphans(&self.packs)? {
            let name = pack_name(&id);
            removed += self.packs.stat(&name)?.map_or(0, |stat| files::allocated(&stat));
            self.packs.unlink(&name)?;
        }
        if removed > 0 {
            // A count that included it would go on refusing objects for which there is room.
            self.recount()?;
        }
        Ok(removed)
    }
}

fn remove_temp(tmp: &Folder, name: &str) -> Result<u64> {
    let folder = tmp.open_folder(name)?;
    let mut removed = 0;
    for file in folder.names()? {
        removed += folder.stat(&file)?.map_or(0, |stat| files::allocated(&stat));
        folder.unlink(&file)?;
    }
    tmp.remove_folder(name)?;
    Ok(removed)
}

/// A folder for temporary files, removed with the value.
#[derive(Debug)]
pub(super) struct Temp {
    parent: Arc<Folder>,
    pub(super) name: String,
    pub(super) folder: Folder,
}

impl Temp {
    pub(super) fn make(parent: &Arc<Folder>, prefix: &str) -> Result<Temp> {
        Temp::named(parent, format!("{prefix}{}", files::unique()))
    }

    pub(super) fn named(parent: &Arc<Folder>, name: String) -> Result<Temp> {
        let folder = parent.make_folder(&name)?;
        Ok(Temp { parent: Arc::clone(parent), name, folder })
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        // If it cannot be removed now, it is debris: counted by `usage` and `verify`, removed by the next writer.
        let _ = remove_temp(&self.parent, &self.name);
    }
}
