//! Emulation of `inotify_add_watch` on behalf of the command.
//!
//! Neither Landlock nor a mount keeps a command from watching: a watch on any path it can name reveals the names and
//! the activity in there. So the path is resolved to a pinned object, the object is judged as if it were opened for
//! reading, and the watch is put on that very object in the inotify instance taken from the command.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nono_policy::{AccessMode, DeniedReason, QueryResult, is_within, query_path};
use rustix::fs::inotify::{self, WatchFlags};
use rustix::io::Errno;

use super::allow_table::READ;
use super::answer_cache::Answered;
use super::emulate::{CallResponse, Handled, TrappedCall, is_nameless, name_of, through};
use super::shared::MediatorShared;
use crate::report::{DeniedAttempt, RefusalReason};

impl MediatorShared {
    pub(super) fn watch(&self, call: TrappedCall<'_>) -> Result<Handled, i32> {
        let instance = call.descriptor(call.int(0))?;
        let path = PathBuf::from(call.string(call.word(1))?);
        let wanted = WatchFlags::from_bits_retain(call.int(2).cast_unsigned());
        let pinned = self.pin_watched(call, &path, !wanted.contains(WatchFlags::DONT_FOLLOW))?;
        let name = name_of(&pinned)?;
        if let Some(reason) = self.objection(&pinned, &name)? {
            let attempt = DeniedAttempt::Open { path: name, access: AccessMode::Read };
            return Ok(Handled::Refused(attempt, RefusalReason::Policy { reason }));
        }
        // The path to the object is a link of the supervisor's own, which ends at a pinned link itself.
        let wanted = wanted.difference(WatchFlags::DONT_FOLLOW);
        let added = inotify::add_watch(instance.as_fd(), through(&pinned), wanted);
        let watch = added.map_err(Errno::raw_os_error)?;
        Ok(Handled::Now(CallResponse::Value(watch.into())))
    }

    /// Pins the object by its path, or by a descriptor of the caller's own.
    fn pin_watched(&self, call: TrappedCall<'_>, path: &Path, follow: bool) -> Result<OwnedFd, i32> {
        if path.as_os_str().is_empty() {
            return Err(libc::ENOENT);
        }
        let own = ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd"];
        let number = own.iter().find_map(|folder| path.strip_prefix(folder).ok()?.to_str()?.parse().ok());
        match number {
            Some(number) if follow => call.descriptor(number),
            _ => self.scene.pin(&call.absolute(libc::AT_FDCWD, path)?, follow),
        }
    }

    /// Reason it may not be watched, if there is one.
    fn objection(&self, pinned: &OwnedFd, name: &Path) -> Result<Option<DeniedReason>, i32> {
        // In /proc only the activity of others could be seen.
        if is_nameless(pinned, name)? {
            return Ok(Some(DeniedReason::NotGranted));
        }
        if self.private.iter().any(|private| is_within(name, private)) {
            return Ok(None);
        }
        let QueryResult::Denied { reason, .. } = query_path(&self.policy, name, true, AccessMode::Read)
        else {
            return Ok(None);
        };
        let answered = self.answers().look_up(name, READ);
        Ok((!matches!(answered, Some(Answered::Granted { .. }))).then_some(reason))
    }
}
