//! `nono audit`: lists, shows, verifies, exports and removes audit logs. One file per command.

mod cleanup;
mod export;
mod keygen;
mod list;
mod proof;
mod show;
mod timeline;
mod verify;

use std::io::{self, Write};
use std::path::Path;

use nono::audit::event::Decision;
use nono::audit::{Catalogue, Filter, PublicKey};

use super::links;
use super::rollback::{SessionContext, resolved};
use crate::args::{AuditAnswer, AuditCommand, FilterArgs};
use crate::failure::Failure;
use crate::host::host;

pub(crate) fn audit(command: &AuditCommand) -> Result<u8, Failure> {
    let SessionContext { state_dir, cwd, .. } = super::rollback::place()?;
    let catalogue = Catalogue::new(&state_dir);
    match command {
        AuditCommand::List(args) => list::list(args, &catalogue, &cwd),
        AuditCommand::Show(args) => show::show(args, &catalogue, &cwd),
        AuditCommand::Verify(args) => verify::verify(args, &catalogue),
        AuditCommand::Export(args) => export::export(args, &catalogue),
        AuditCommand::Cleanup(args) => cleanup::cleanup(args, &catalogue),
        AuditCommand::Keygen(args) => keygen::keygen(args, &state_dir, &cwd),
        AuditCommand::Prove(args) => proof::prove(args, &catalogue),
        AuditCommand::CheckProof(args) => proof::check(args, &catalogue),
    }
}

fn filter(args: &FilterArgs, cwd: &Path, command: Option<String>) -> Filter {
    Filter {
        since: args.since,
        until: args.until,
        command,
        path: args.path.as_ref().map(|path| resolved(&cwd.join(path))),
        decision: args.decision.map(|answer| match answer {
            AuditAnswer::Allowed => Decision::Allowed,
            AuditAnswer::Denied => Decision::Denied,
        }),
        host: args.host.clone(),
    }
}

fn public_key(file: Option<&Path>) -> Result<Option<PublicKey>, Failure> {
    let key = file.map(PublicKey::load).transpose();
    Ok(key.map_err(nono::audit::AuditError::from)?)
}

/// Stdout, or a file that only its owner can read, since records are private.
fn output(file: Option<&Path>) -> Result<Box<dyn Write>, Failure> {
    let Some(file) = file else { return Ok(Box::new(io::BufWriter::new(io::stdout().lock()))) };
    let opened = links::create(file, host(None).ok().as_ref(), 0o600)?;
    Ok(Box::new(io::BufWriter::new(opened)))
}

/// Result of writing to [`output`]. A closed pipe is success: the reader has seen enough.
fn until_closed(written: io::Result<()>, file: Option<&Path>) -> Result<(), Failure> {
    match (written, file) {
        (Err(error), _) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        (Err(error), Some(file)) => Err(Failure::cannot("write", file, &error)),
        (Err(error), None) => Err(Failure::stdout(&error)),
        (Ok(()), _) => Ok(()),
    }
}
