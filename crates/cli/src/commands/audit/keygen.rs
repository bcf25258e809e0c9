//! `nono audit keygen`: makes a key to sign seals with.

use std::path::Path;

use nono::audit::{AuditError, SigningKey};
use nono::diagnostic::shown;

use super::super::links;
use crate::args::KeygenArgs;
use crate::failure::Failure;
use crate::host::host;
use crate::message;

const FILE: &str = "signing.key";

pub(super) fn keygen(args: &KeygenArgs, state_dir: &Path, cwd: &Path) -> Result<u8, Failure> {
    let file = if let Some(file) = &args.output {
        links::place(&cwd.join(file), host(None).ok().as_ref())?
    } else {
        let dir = nono::audit::dir(state_dir);
        nono::state_dir::ensure(state_dir)?;
        nono::state_dir::ensure(&dir)?;
        dir.join(FILE)
    };
    if file.symlink_metadata().is_ok() {
        return Err(Failure::refused(format!("{} already exists", shown(&file)))
            .hint("overwriting it would destroy that key; choose another file with -o"));
    }
    let key = SigningKey::generate().map_err(AuditError::from)?;
    key.save(&file).map_err(AuditError::from)?;
    message::line(&format!("the private key is in {}: use it with --audit-sign-key", shown(&file)));
    message::answer(&key.public().to_string())
}
