//! Access to the audit logs of sessions: find, filter, verify, export, remove.
//!
//! The log itself, its format and its proofs are in [`nono_audit`]; this module knows where logs are and which one is
//! meant. Nothing here changes a log. [`Catalogue::cleanup`] removes whole sessions, and records that in the ledger.

mod catalogue;
mod check;
mod cleanup;
mod error;
mod filter;
pub mod interrupted;
mod moment;
mod restores;
mod settings;

use std::path::{Path, PathBuf};

pub use nono_audit::event;
pub use nono_audit::export::{self, Exporter, Facts, RecordFormat};
pub use nono_audit::ledger::{Ledger, LedgerEntry, is_session_id};
pub use nono_audit::log::{self, AuditLog};
pub use nono_audit::proof::{EventProof, Proof, ProofError};
pub use nono_audit::reader::{ReadError, Reader};
pub use nono_audit::record_format::{self, VerifiedRecord};
pub use nono_audit::redact::{Changes, RedactionKey, Redactor, Table};
pub use nono_audit::session::{Answers, EventCounts, NetworkEntry, ProtectedFields, SessionRecord};
pub use nono_audit::sign::{PublicKey, SigningKey};
pub use nono_audit::verify::{
    LedgerVerification, LogCondition as VerifiedState, Options as VerifyOptions, Verification,
};
pub use nono_audit::{AuditEvent, Digest};

pub use catalogue::{AuditEntry, AuditState, Catalogue};
pub use check::Located;
pub use cleanup::{Cleaned, Retention};
pub use error::AuditError;
pub use filter::Filter;
pub use moment::moment;
pub use restores::{Author, RECORDED_AS, RecordError};
pub use restores::{RestoreOwner, RestoreSubject, recorded};
pub use settings::AuditSettings;

/// Audit folder below nono's state folder.
pub fn dir(state_dir: &Path) -> PathBuf {
    state_dir.join("audit")
}

/// File with the key of redacted values, below the audit folder.
const REDACTION_KEY: &str = "redaction.key";

/// Redactor for what is recorded, configured by the user's `config.toml`. Creates the audit folder and the key if they
/// are missing.
pub fn redactor(state_dir: &Path) -> Result<Redactor, AuditError> {
    Ok(redactor_and_notice(state_dir)?.0)
}

/// [`redactor`], with a message if a damaged key was replaced.
pub fn redactor_and_notice(state_dir: &Path) -> Result<(Redactor, Option<String>), AuditError> {
    let settings = AuditSettings::load(&state_dir.join("config.toml"))?;
    let dir = dir(state_dir);
    nono_policy::state_dir::ensure(&dir)?;
    let path = dir.join(REDACTION_KEY);
    let (key, aside) = RedactionKey::load_or_replace(&path)?;
    let notice = aside.map(|aside| {
        let (path, aside) = (path.display(), aside.display());
        format!(
            "{path} was damaged and has been replaced; marks of secrets in older logs cannot be compared with new \
             ones (the damaged key is in {aside})"
        )
    });
    Ok((Redactor::new(Table::with(&settings.redaction), &key), notice))
}

/// Redactor for runs that record nothing: creates no files, and uses a key that is not stored.
pub fn passing_redactor(state_dir: &Path) -> Result<Redactor, AuditError> {
    // Errors in the settings matter only where something is recorded.
    let settings = AuditSettings::load(&state_dir.join("config.toml")).unwrap_or_default();
    let key = RedactionKey::passing().map_err(AuditError::io(Path::new("/dev/urandom")))?;
    Ok(Redactor::new(Table::with(&settings.redaction), &key))
}
