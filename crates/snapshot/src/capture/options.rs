//! Options of a capture.

use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Read every file, whatever its stat says.
    pub paranoid: bool,
    /// Descend into other filesystems mounted below a root.
    pub cross_mounts: bool,
    /// Maximum number of bytes that the store may grow.
    pub budget: Option<u64>,
    pub gaps: Gaps,
    /// Larger files are captured only where the filesystem can share their data (reflink), else excluded by name.
    pub max_file: Option<u64>,
    /// Age below which a file changed since the session began is read at each capture. Without it such a file is read
    /// as long as the session exists, which suits sessions of hours, not of months. The rule is about stores through a
    /// shared mapping: a store into a page that is already dirty changes no time. The kernel writes dirty pages back
    /// within about half a minute, and the next store then faults and changes the time again. So a file whose ctime is
    /// some minutes old and that no process has mapped now has no such page. On tmpfs, which never writes back, the
    /// limit is ignored.
    pub young: Option<Duration>,
}

/// Whether a snapshot may lack contents that fit neither the budget nor the store's quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// Exclude them by name.
    #[default]
    Allow,
    /// Capture nothing: [`CaptureError::NoRoom`](super::CaptureError::NoRoom).
    Refuse,
}
