//! Flags of `run`, `shell` and `wrap` about the audit log.

use std::path::PathBuf;

use clap::Args;
use nono::session::Auditing;

use super::first_given;

#[derive(Debug, Args)]
pub(crate) struct AuditingArgs {
    /// Keep no audit log of this run
    #[arg(long, conflicts_with_all = ["audit_integrity", "audit_sign_key"], help_heading = "Audit")]
    pub(crate) no_audit: bool,
    /// Seal the log at the end and enter it in the ledger (the default with --rollback)
    #[arg(long, help_heading = "Audit")]
    pub(crate) audit_integrity: bool,
    /// Sign the seal with this key (see `nono audit keygen`)
    #[arg(long, value_name = "FILE", help_heading = "Audit")]
    pub(crate) audit_sign_key: Option<PathBuf>,
}

impl AuditingArgs {
    pub(crate) fn request(&self) -> Auditing {
        Auditing {
            wanted: !self.no_audit,
            integrity: self.audit_integrity.then_some(true),
            sign_key: self.audit_sign_key.clone(),
        }
    }

    /// Name of the first of these flags that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        first_given([
            ("--no-audit", self.no_audit),
            ("--audit-integrity", self.audit_integrity),
            ("--audit-sign-key", self.audit_sign_key.is_some()),
        ])
    }
}
