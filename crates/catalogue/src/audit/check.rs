//! Verification of logs. The checks are in [`mod@nono_audit::verify`]; this module finds the logs.

use std::path::PathBuf;

use nono_audit::Digest;
use nono_audit::ledger::is_session_id;
use nono_audit::verify::{LedgerVerification, Options, Verification, verify, verify_ledger};

use super::catalogue::Catalogue;
use super::error::AuditError;

/// A log known by its folder alone: its record may be damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    pub id: String,
    pub dir: PathBuf,
    /// Whether the log is being written.
    pub running: bool,
}

impl Catalogue {
    /// [`Catalogue::find`], but accepts damaged sessions.
    pub fn locate(&self, text: &str) -> Result<Located, AuditError> {
        if is_session_id(text) && self.dir().join(text).symlink_metadata().is_ok() {
            return Ok(self.located(text));
        }
        match self.find(text) {
            Ok(entry) => Ok(self.located(&entry.id)),
            Err(AuditError::NotFound { text }) => {
                let mut fit = self.locate_all()?.0;
                fit.retain(|one| one.id.starts_with(&text) && !text.is_empty());
                match fit.len() {
                    1 => fit.pop().ok_or(AuditError::NotFound { text }),
                    _ => Err(self.why_missing(&text)?),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Explain from the ledger why a session is missing.
    fn why_missing(&self, text: &str) -> Result<AuditError, AuditError> {
        let mut why = AuditError::NotFound { text: text.to_owned() };
        for entry in self.ledger().entries()? {
            let entry = entry?;
            if entry.session_id == text {
                let id = entry.session_id;
                why = if entry.removed { AuditError::Removed { id } } else { AuditError::Gone { id } };
            }
        }
        Ok(why)
    }

    /// All logs by id, and entries of the folder that are not logs.
    pub fn locate_all(&self) -> Result<(Vec<Located>, Vec<AuditError>), AuditError> {
        let (mut found, mut strange) = (Vec::new(), Vec::new());
        for place in self.places()? {
            match place.file_name().and_then(|name| name.to_str()).filter(|name| is_session_id(name)) {
                Some(id) if place.is_dir() => found.push(self.located(id)),
                _ => strange.push(AuditError::NoSession { path: place, what: "not a name that nono uses" }),
            }
        }
        Ok((found, strange))
    }

    fn located(&self, id: &str) -> Located {
        Located { id: id.to_owned(), dir: self.dir().join(id), running: self.runs(id) }
    }

    pub fn verify(&self, log: &Located, options: &Options) -> Verification {
        verify(&log.dir, &self.ledger(), options)
    }

    pub fn verify_ledger(&self) -> LedgerVerification {
        verify_ledger(&self.dir())
    }

    /// Whether the ledger ends in this digest, or once did: a user who noted it down can tell that nothing before it
    /// was changed or removed.
    pub fn had_head(&self, head: &Digest) -> Result<bool, AuditError> {
        for entry in self.ledger().entries()? {
            if entry?.chain_hash == *head {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
