//! Calls that start programs or change directories, and where in their arguments the paths are.

use nono_sys::notify::Notification;

use super::call::PathStart;
use crate::recorded::PathObject;

/// Path in the memory of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathArgument {
    pub(super) start: PathStart,
    pub(super) path: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEffect {
    Start(PathArgument),
    Truncate(PathArgument),
    /// Creates a name; `over`: replaces an existing one.
    Make {
        at: PathArgument,
        stands: PathObject,
        over: bool,
    },
    Remove(PathArgument),
    Bind,
}

impl CallEffect {
    /// Parses a call; `None` if it is not such a call.
    pub(super) fn of(call: &Notification) -> Option<Vec<CallEffect>> {
        let a = call.args;
        let here = |index: usize| PathArgument { start: PathStart::WorkingDirectory, path: a[index] };
        let from = |index: usize| PathArgument { start: PathStart::of(a[index]), path: a[index + 1] };
        let make = |at, stands| vec![CallEffect::Make { at, stands, over: false }];
        let rename = |old, new| {
            // The kind of the moved object does not matter: the directories do.
            vec![CallEffect::Remove(old), CallEffect::Make { at: new, stands: PathObject::File, over: true }]
        };
        Some(match call.nr {
            libc::SYS_execve => vec![CallEffect::Start(here(0))],
            libc::SYS_execveat => vec![CallEffect::Start(from(0))],
            libc::SYS_truncate => vec![CallEffect::Truncate(here(0))],
            libc::SYS_mkdirat => make(from(0), PathObject::Directory),
            libc::SYS_mknodat => make(from(0), PathObject::Special),
            libc::SYS_symlinkat => make(from(1), PathObject::File),
            libc::SYS_linkat => make(from(2), PathObject::File),
            libc::SYS_renameat2 => rename(from(0), from(2)),
            libc::SYS_unlinkat => vec![CallEffect::Remove(from(0))],
            libc::SYS_bind => vec![CallEffect::Bind],
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => make(here(0), PathObject::Directory),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => make(here(0), PathObject::Special),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink | libc::SYS_link => make(here(1), PathObject::File),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => rename(here(0), here(1)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_renameat => rename(from(0), from(2)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir | libc::SYS_unlink => vec![CallEffect::Remove(here(0))],
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_the_arguments() {
        let of = |nr| CallEffect::of(&Notification { id: 1, tid: 1, nr, args: [3, 11, 4, 12, 0, 0] });
        let at = |fd, path| PathArgument { start: PathStart::Descriptor(fd), path };
        let renamed = vec![
            CallEffect::Remove(at(3, 11)),
            CallEffect::Make { at: at(4, 12), stands: PathObject::File, over: true },
        ];
        assert_eq!(of(libc::SYS_renameat2), Some(renamed));
        let linked = CallEffect::Make { at: at(4, 12), stands: PathObject::File, over: false };
        assert_eq!(of(libc::SYS_linkat), Some(vec![linked]));
        let started = CallEffect::Start(PathArgument { start: PathStart::WorkingDirectory, path: 3 });
        assert_eq!(of(libc::SYS_execve), Some(vec![started]));
        assert_eq!(of(libc::SYS_openat), None);
        assert_eq!(of(libc::SYS_connect), None);
    }
}
