//! What sessions left in the audit log: found, looked through, checked, given to other programs, removed.
//!
//! The log itself, its format and its proofs are [`nono_audit`]; here is where logs lie and which one is meant. Nothing
//! here changes a log. [`Catalogue::cleanup`] removes whole sessions, and the ledger says that it did.

mod catalogue;
mod check;
mod cleanup;
mod error;
mod filter;
pub(crate) mod killed;
mod moment;
mod restores;
mod settings;

use std::path::{Path, PathBuf};

pub use nono_audit::event;
pub use nono_audit::export::{self, Exporter, Facts, Format};
pub use nono_audit::ledger::Ledger;
pub use nono_audit::log::{self, Log};
pub use nono_audit::proof::{EventProof, Proof, ProofError};
pub use nono_audit::reader::{ReadError, Reader};
pub use nono_audit::record::{self, Record};
pub use nono_audit::redact::{Changes, Key, Redactor, Table};
pub use nono_audit::session::{Answers, Counts, NetworkEntry, SessionRecord};
pub use nono_audit::sign::{PublicKey, SigningKey};
pub use nono_audit::verify::{
    LedgerVerification, Options as VerifyOptions, State as VerifiedState, Verification,
};
pub use nono_audit::{Digest, Event};

pub use catalogue::{AuditEntry, Catalogue, State};
pub use check::Located;
pub use cleanup::{Cleaned, Retention};
pub use error::AuditError;
pub use filter::Filter;
pub use moment::moment;
pub(crate) use restores::RestoreLog;
pub use restores::{Author, RecordError};
pub use settings::Settings;

/// Below nono's state folder.
pub fn dir(state_dir: &Path) -> PathBuf {
    state_dir.join("audit")
}

/// The key of redacted values, below the audit folder.
const REDACTION_KEY: &str = "redaction.key";

/// Takes secrets out of what is to be recorded, as the person's `config.toml` has it. Makes the audit folder and the key
/// where they are missing.
pub fn redactor(state_dir: &Path) -> Result<Redactor, AuditError> {
    Ok(redactor_and_notice(state_dir)?.0)
}

/// The same, and what is to be said where a damaged key was replaced.
pub(crate) fn redactor_and_notice(state_dir: &Path) -> Result<(Redactor, Option<String>), AuditError> {
    let settings = Settings::load(&state_dir.join("config.toml"))?;
    let dir = dir(state_dir);
    crate::state_dir::ensure(&dir)?;
    let path = dir.join(REDACTION_KEY);
    let (key, aside) = Key::load_or_replace(&path)?;
    let notice = aside.map(|aside| {
        let (path, aside) = (path.display(), aside.display());
        format!(
            "{path} was damaged and has been replaced; marks of secrets in older logs cannot be compared with new \
             ones (the damaged key is in {aside})"
        )
    });
    Ok((Redactor::new(Table::with(&settings.redaction), &key), notice))
}

/// The same where nothing is recorded: nothing is made, and the digests are under a key that nobody keeps.
pub fn passing_redactor(state_dir: &Path) -> Result<Redactor, AuditError> {
    // What is wrong with the settings concerns those who record.
    let settings = Settings::load(&state_dir.join("config.toml")).unwrap_or_default();
    let key = Key::passing().map_err(AuditError::io(Path::new("/dev/urandom")))?;
    Ok(Redactor::new(Table::with(&settings.redaction), &key))
}
