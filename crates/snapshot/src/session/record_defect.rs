//! Defects of a session's record.

/// Reason why a record is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordDefect {
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    #[error("its format {0} is unknown")]
    Format(u32),
    #[error("it names a file that is not a manifest")]
    File,
    #[error("it names a late root that is not one of its roots")]
    LateRoot,
    #[error("its checksum is wrong")]
    Checksum,
}
