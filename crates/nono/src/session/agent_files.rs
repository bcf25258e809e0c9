//! What of agents' files is made for a session, and what becomes of it afterwards: directories of state that were missing,
//! something where a file that they act by is absent, copies of files that they save.

use std::ffi::OsString;
use std::path::PathBuf;

use nono_policy::ResolvedPolicy;
use nono_sandbox::ExecStrategy;

use super::made::Made;
use super::stand_ins::{self, StandIns};
use super::{Host, SessionError, SessionFolder};
use crate::network::Networking;
use crate::saved::{self, SavedReport};

#[derive(Debug)]
pub(super) struct AgentFiles {
    made: Made,
    stand_ins: Option<StandIns>,
    session_dir: PathBuf,
}

impl AgentFiles {
    /// Put them in place. Returns the variables that agents have to be told by, too.
    pub(super) fn place(
        policy: &mut ResolvedPolicy,
        made: Made,
        folder: &SessionFolder,
        host: &Host,
        strategy: ExecStrategy,
        network: &Networking,
    ) -> Result<(AgentFiles, Vec<(OsString, OsString)>), SessionError> {
        let stand_ins = stand_ins::place(policy, &host.context.state_dir, strategy)?;
        let files = AgentFiles { made, stand_ins, session_dir: folder.dir.clone() };
        // Without somebody outside nobody would look at the copies.
        let told = if strategy == ExecStrategy::Supervised {
            let keys = network.replaced_keys(&host.env, &host.context.state_dir);
            let keys = keys.map_err(SessionError::Saved)?;
            saved::place(policy, &folder.paths(), &host.context, &keys).map_err(SessionError::Saved)?
        } else {
            Vec::new()
        };
        Ok((files, told))
    }

    /// The command has ended: save what agents saved, and remove what only stood there. The directories that were made
    /// are the caller's to drop, after the last snapshot: the first has them too, so they are no change.
    pub(super) fn finish(self) -> (Vec<SavedReport>, Made) {
        let AgentFiles { made, stand_ins, session_dir } = self;
        let saved = saved::carry_out(&session_dir);
        drop(stand_ins);
        (saved, made)
    }

    /// This process is about to become the command, which goes on using them.
    pub(super) fn leave(self) {
        self.made.leave();
    }
}
