//! Files of agents that are prepared for a session and cleaned up after it: missing state directories, stand-ins for
//! absent settings files, and private copies of the files that agents save to.

use std::ffi::OsString;
use std::path::PathBuf;

use nono_policy::ResolvedPolicy;
use nono_sandbox::ExecStrategy;

use super::created_dirs::CreatedDirs;
use super::error::SessionError;
use super::folder::SessionFolder;
use super::request::Host;
use super::stand_ins::{self, StandIns};
use crate::network::Networking;
use nono_agents::saved::{self, SavedReport};

#[derive(Debug)]
pub(super) struct AgentFiles {
    made: CreatedDirs,
    stand_ins: Option<StandIns>,
    session_dir: PathBuf,
}

impl AgentFiles {
    /// Create all of them. Returns the environment variables that point agents to their copies.
    pub(super) fn place(
        policy: &mut ResolvedPolicy,
        made: CreatedDirs,
        folder: &SessionFolder,
        host: &Host,
        strategy: ExecStrategy,
        network: &Networking,
    ) -> Result<(AgentFiles, Vec<(OsString, OsString)>), SessionError> {
        let stand_ins = stand_ins::place(policy, &host.context.state_dir, strategy)?;
        let files = AgentFiles { made, stand_ins, session_dir: folder.dir.clone() };
        // Only a supervisor carries the copies back after the run.
        let told = if strategy == ExecStrategy::Supervised {
            let keys = network.replaced_keys(&host.env, &host.context.state_dir);
            let keys = keys.map_err(SessionError::Saved)?;
            saved::place(policy, &folder.paths(), &host.context, &keys).map_err(SessionError::Saved)?
        } else {
            Vec::new()
        };
        Ok((files, told))
    }

    /// After the command's end: carry agents' saved settings back and remove the stand-ins. The caller drops the
    /// directories after the last snapshot: the baseline has them too, so they must not show up as a change.
    pub(super) fn finish(self) -> (Vec<SavedReport>, CreatedDirs) {
        let AgentFiles { made, stand_ins, session_dir } = self;
        let saved = saved::carry_out(&session_dir);
        drop(stand_ins);
        (saved, made)
    }

    /// Leave everything in place: this process is about to become the command, which goes on using them.
    pub(super) fn leave(self) {
        self.made.leave();
    }
}
