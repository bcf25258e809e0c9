//! Checkpoints that another tool took become checkpoints of a project, each once: `imported.json` keeps the names of all
//! that came, also of those that went again.

use std::collections::BTreeSet;
use std::path::Path;

use nono_snapshot::file::Sync;
use nono_snapshot::node::Time;
use nono_snapshot::{Contents, Foreign};

use crate::error::CheckpointError;
use crate::folder::Folder;
use crate::history::CheckpointId;
use crate::json;
use crate::manager::CheckpointManager;
use crate::manager::open::{Bounds, Open};
use crate::origin::Origin;
use crate::project;

const FILE: &str = "imported.json";
/// The last moment that can be written down: the end of the year 9999.
const LATEST: i64 = 253_402_300_799;

/// What a foreign checkpoint became, and the paths that are not in it, with the reason.
pub type Taken = (CheckpointId, Vec<(Vec<u8>, String)>);

/// A project that foreign checkpoints come to.
#[derive(Debug)]
pub struct Arrival {
    open: Open,
    known: BTreeSet<String>,
}

impl CheckpointManager {
    /// Hold the project of exactly this folder (absolute, resolved), which need not be there any more.
    pub fn begin_adopting(&self, workdir: &Path) -> Result<Arrival, CheckpointError> {
        project::ensure_narrow(self.host(), workdir)?;
        let mut folder = Folder::create(self.host(), workdir)?;
        folder.touch()?;
        let open = self.open_folder(folder, Bounds::Settings)?;
        let known: Vec<String> = json::load_or_default(&open.folder.file(FILE))?;
        let mut known: BTreeSet<String> = known.into_iter().collect();
        // One that was killed before it could write that down.
        known.extend(open.history.checkpoints.iter().filter_map(|line| line.imported_from.clone()));
        Ok(Arrival { open, known })
    }
}

impl Arrival {
    /// Whether it came before. `from` is the tool, and its own name for the checkpoint.
    pub fn is_known(&self, from: &str) -> bool {
        self.known.contains(from)
    }

    /// Take one over. `seconds`: since 1970. The folder itself is not looked at.
    pub fn adopt(
        &mut self,
        from: &str,
        state: &[Foreign],
        contents: &mut dyn Contents,
        seconds: i64,
        reason: &str,
    ) -> Result<Taken, CheckpointError> {
        let time = Time { seconds: seconds.clamp(0, LATEST), nanos: 0 };
        let adopted = self.open.manager.adopt(state, contents, time, from, None)?;
        let line = self.open.write_down(&adopted.manifest, reason, &Origin::default(), None)?;
        self.known.insert(from.to_owned());
        let known: Vec<&String> = self.known.iter().collect();
        json::save(&self.open.folder.file(FILE), &known, Sync::Whole)?;
        Ok((line.id, adopted.left_out))
    }
}
