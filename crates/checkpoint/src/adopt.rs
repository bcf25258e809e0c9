//! Import of checkpoints that another tool took, each once: `imported.json` keeps all names, also of removed ones.

use std::collections::BTreeSet;
use std::path::Path;

use nono_snapshot::file::Sync;
use nono_snapshot::node::Time;
use nono_snapshot::{Contents, ImportedPath};

use crate::error::Result;
use crate::folder::Folder;
use crate::history::CheckpointId;
use crate::json;
use crate::manager::CheckpointManager;
use crate::manager::open::{Bounds, Open};
use crate::origin::Origin;
use crate::project;

const FILE: &str = "imported.json";
/// Latest time that can be stored: the end of the year 9999.
const LATEST: i64 = 253_402_300_799;

/// Id of an imported checkpoint, and the paths that are not in it, with the reason.
pub type AdoptedCheckpoint = (CheckpointId, Vec<(Vec<u8>, String)>);

/// Project that checkpoints are imported into.
#[derive(Debug)]
pub struct Arrival {
    open: Open,
    known: BTreeSet<String>,
}

impl CheckpointManager {
    /// Locks the project of exactly this folder (absolute, resolved), which need not exist any more.
    pub fn begin_adopting(&self, workdir: &Path) -> Result<Arrival> {
        project::ensure_narrow(self.host(), workdir)?;
        let mut folder = Folder::create(self.host(), workdir)?;
        folder.touch()?;
        let open = self.open_folder(folder, Bounds::Settings)?;
        let known: Vec<String> = json::load_or_default(&open.folder.file(FILE))?;
        let mut known: BTreeSet<String> = known.into_iter().collect();
        // Imports by a process that was killed before it could write them to the list.
        known.extend(open.history.checkpoints.iter().filter_map(|line| line.imported_from.clone()));
        Ok(Arrival { open, known })
    }
}

impl Arrival {
    /// Whether it was imported before. `from` is the tool, and its own name for the checkpoint.
    pub fn is_known(&self, from: &str) -> bool {
        self.known.contains(from)
    }

    /// Imports one checkpoint. `seconds`: since 1970. The folder itself is not read.
    pub fn adopt(
        &mut self,
        from: &str,
        state: &[ImportedPath],
        contents: &mut dyn Contents,
        seconds: i64,
        reason: &str,
    ) -> Result<AdoptedCheckpoint> {
        let time = Time { seconds: seconds.clamp(0, LATEST), nanos: 0 };
        let adopted = self.open.manager.adopt(state, contents, time, from, None)?;
        let line = self.open.write_down(&adopted.manifest, reason, &Origin::default(), None)?;
        self.known.insert(from.to_owned());
        let known: Vec<&String> = self.known.iter().collect();
        json::save(&self.open.folder.file(FILE), &known, Sync::Whole)?;
        Ok((line.id, adopted.left_out))
    }
}
