//! Owners, modes, times and extended attributes, changed on behalf of the command where no mount keeps it from changing
//! them outside its write grants.
//!
//! The object is pinned first, judged by its name, and changed through the pin with exactly the arguments of the call.
//! Through a descriptor opened for writing everything may be changed: its opening was judged already.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nono_policy::{AccessMode, DeniedReason, QueryResult, query_path};
use nono_sys::other_process;
use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::context::{CallContext, Handled, TrappedCall, is_nameless, name_of, through};
use crate::report::{DeniedAttempt, RefusalReason};

#[derive(Debug)]
enum MetadataTarget {
    Path {
        folder: i32,
        path: PathBuf,
        follow: bool,
    },
    Descriptor(i32),
    /// Descriptor that need not be open for reading or writing; with `AT_EMPTY_PATH`.
    Named(i32),
}

#[derive(Debug)]
enum MetadataChange {
    Mode(u32),
    Owner(u32, u32),
    Times(Timestamps),
    SetAttribute { name: Vec<u8>, value: Vec<u8>, flags: u32 },
    RemoveAttribute { name: Vec<u8> },
}

/// Pinned object, and how it may be reached.
enum Pinned {
    /// Reached by its open descriptor: `f…` calls.
    Open(OwnedFd),
    /// Reached by an `O_PATH` descriptor.
    Named(OwnedFd),
}

pub(crate) fn change(scene: &CallContext, call: TrappedCall<'_>) -> Result<Handled, i32> {
    let (target, change) = understand(call)?;
    let pinned = pin(scene, call, &target)?;
    if let Some((path, reason)) = objection(scene, &pinned)? {
        let attempt = DeniedAttempt::Metadata { path, call: words(&change).to_owned() };
        return Ok(Handled::Refused(attempt, RefusalReason::Policy { reason }));
    }
    let done = match &pinned {
        Pinned::Open(fd) => change_open(fd, &change),
        Pinned::Named(fd) => change_named(fd, &change),
    };
    Ok(Handled::Now(done.map_err(Errno::raw_os_error).into()))
}

fn words(change: &MetadataChange) -> &'static str {
    match change {
        MetadataChange::Mode(_) => "chmod",
        MetadataChange::Owner(..) => "chown",
        MetadataChange::Times(_) => "utimes",
        MetadataChange::SetAttribute { .. } => "setxattr",
        MetadataChange::RemoveAttribute { .. } => "removexattr",
    }
}

/// Reason it may not be changed, if there is one.
fn objection(scene: &CallContext, pinned: &Pinned) -> Result<Option<(PathBuf, DeniedReason)>, i32> {
    let fd = match pinned {
        Pinned::Open(fd) if opened_for_writing(fd)? => return Ok(None),
        Pinned::Open(fd) | Pinned::Named(fd) => fd,
    };
    let path = name_of(fd)?;
    // What is in /proc is another object here than there.
    if is_nameless(fd, &path)? {
        return Ok(Some((path, DeniedReason::NotGranted)));
    }
    Ok(match query_path(&scene.policy, &path, true, AccessMode::Write) {
        QueryResult::Allowed { .. } => None,
        QueryResult::Denied { reason, .. } => Some((path, reason)),
    })
}

fn opened_for_writing(fd: &OwnedFd) -> Result<bool, i32> {
    let flags = other_process::status_flags(fd.as_fd())?;
    Ok(flags & libc::O_PATH == 0 && flags & libc::O_ACCMODE != libc::O_RDONLY)
}

fn pin(scene: &CallContext, call: TrappedCall<'_>, target: &MetadataTarget) -> Result<Pinned, i32> {
    match target {
        MetadataTarget::Path { folder, path, follow } => {
            let path = call.absolute(*folder, path)?;
            scene.pin(&path, *follow).map(Pinned::Named)
        }
        MetadataTarget::Descriptor(number) => call.descriptor(*number).map(Pinned::Open),
        MetadataTarget::Named(libc::AT_FDCWD) => {
            scene.pin(&call.absolute(libc::AT_FDCWD, Path::new("."))?, true).map(Pinned::Named)
        }
        MetadataTarget::Named(number) => call.descriptor(*number).map(Pinned::Named),
    }
}

fn change_open(fd: &OwnedFd, change: &MetadataChange) -> Result<(), Errno> {
    match change {
        MetadataChange::Mode(mode) => rustix::fs::fchmod(fd, Mode::from_raw_mode(*mode)),
        MetadataChange::Owner(uid, gid) => rustix::fs::fchown(fd, user(*uid), group(*gid)),
        MetadataChange::Times(times) => rustix::fs::futimens(fd, times),
        MetadataChange::SetAttribute { name, value, flags } => {
            rustix::fs::fsetxattr(fd, name.as_slice(), value, XattrFlags::from_bits_retain(*flags))
        }
        MetadataChange::RemoveAttribute { name } => rustix::fs::fremovexattr(fd, name.as_slice()),
    }
}

/// Changes a pinned object; for a link, the link itself: the path through the descriptor ends at it, and the empty path
/// is it.
fn change_named(fd: &OwnedFd, change: &MetadataChange) -> Result<(), Errno> {
    match change {
        MetadataChange::Mode(mode) => rustix::fs::chmod(through(fd), Mode::from_raw_mode(*mode)),
        MetadataChange::Owner(uid, gid) => {
            rustix::fs::chownat(fd, c"", user(*uid), group(*gid), AtFlags::EMPTY_PATH)
        }
        MetadataChange::Times(times) => rustix::fs::utimensat(fd, c"", times, AtFlags::EMPTY_PATH),
        MetadataChange::SetAttribute { name, value, flags } => {
            rustix::fs::setxattr(through(fd), name.as_slice(), value, XattrFlags::from_bits_retain(*flags))
        }
        MetadataChange::RemoveAttribute { name } => rustix::fs::removexattr(through(fd), name.as_slice()),
    }
}

/// User to set; all ones leaves it unchanged.
fn user(id: u32) -> Option<Uid> {
    (id != u32::MAX).then(|| Uid::from_raw(id))
}

fn group(id: u32) -> Option<Gid> {
    (id != u32::MAX).then(|| Gid::from_raw(id))
}

/// Parses and copies the call's arguments.
fn understand(call: TrappedCall<'_>) -> Result<(MetadataTarget, MetadataChange), i32> {
    let here = libc::AT_FDCWD;
    let mode = |index| MetadataChange::Mode(call.int(index).cast_unsigned());
    let owner =
        |index| MetadataChange::Owner(call.int(index).cast_unsigned(), call.int(index + 1).cast_unsigned());
    let number = call.notification.nr;
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_chmod => return Ok((path(call, here, 0, true)?, mode(1))),
        libc::SYS_chown => return Ok((path(call, here, 0, true)?, owner(1))),
        libc::SYS_lchown => return Ok((path(call, here, 0, false)?, owner(1))),
        libc::SYS_utime => return Ok((path(call, here, 0, true)?, MetadataChange::Times(seconds(call, 1)?))),
        libc::SYS_utimes => return Ok((path(call, here, 0, true)?, MetadataChange::Times(micros(call, 1)?))),
        libc::SYS_futimesat if call.word(1) == 0 && call.int(0) != here => {
            return Ok((MetadataTarget::Descriptor(call.int(0)), MetadataChange::Times(micros(call, 2)?)));
        }
        libc::SYS_futimesat => {
            return Ok((path(call, call.int(0), 1, true)?, MetadataChange::Times(micros(call, 2)?)));
        }
        _ => {}
    }
    match number {
        libc::SYS_fchmod => Ok((MetadataTarget::Descriptor(call.int(0)), mode(1))),
        libc::SYS_fchmodat => Ok((path(call, call.int(0), 1, true)?, mode(2))),
        libc::SYS_fchown => Ok((MetadataTarget::Descriptor(call.int(0)), owner(1))),
        libc::SYS_fchownat => Ok((flagged(call, call.int(4))?, owner(2))),
        libc::SYS_utimensat => {
            let times = MetadataChange::Times(nanos(call, 2)?);
            let flags = call.int(3);
            if call.word(1) != 0 || call.int(0) == here {
                Ok((flagged(call, flags)?, times))
            } else if flags == 0 {
                Ok((MetadataTarget::Descriptor(call.int(0)), times))
            } else {
                Err(libc::EINVAL)
            }
        }
        libc::SYS_setxattr => Ok((path(call, here, 0, true)?, attribute(call)?)),
        libc::SYS_lsetxattr => Ok((path(call, here, 0, false)?, attribute(call)?)),
        libc::SYS_fsetxattr => Ok((MetadataTarget::Descriptor(call.int(0)), attribute(call)?)),
        libc::SYS_removexattr => Ok((path(call, here, 0, true)?, removed(call)?)),
        libc::SYS_lremovexattr => Ok((path(call, here, 0, false)?, removed(call)?)),
        libc::SYS_fremovexattr => Ok((MetadataTarget::Descriptor(call.int(0)), removed(call)?)),
        _ => Err(libc::ENOSYS),
    }
}

fn path(call: TrappedCall<'_>, folder: i32, index: usize, follow: bool) -> Result<MetadataTarget, i32> {
    let path = PathBuf::from(call.string(call.word(index))?);
    if path.as_os_str().is_empty() {
        Err(libc::ENOENT)
    } else {
        Ok(MetadataTarget::Path { folder, path, follow })
    }
}

/// Target of a call with a directory, a path and flags.
fn flagged(call: TrappedCall<'_>, flags: i32) -> Result<MetadataTarget, i32> {
    if flags & !(libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH) != 0 {
        return Err(libc::EINVAL);
    }
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    match path(call, call.int(0), 1, follow) {
        Err(libc::ENOENT) if flags & libc::AT_EMPTY_PATH != 0 => Ok(MetadataTarget::Named(call.int(0))),
        target => target,
    }
}

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };

/// Numbers at the address in an argument; a null address means now.
fn numbers<const N: usize>(call: TrappedCall<'_>, index: usize) -> Result<Option<[i64; N]>, i32> {
    if call.word(index) == 0 {
        return Ok(None);
    }
    let bytes = call.bytes(call.word(index), N * size_of::<i64>())?;
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(size_of::<i64>())) {
        *number = bytes.try_into().map(i64::from_ne_bytes).map_err(|_| libc::EFAULT)?;
    }
    Ok(Some(numbers))
}

fn nanos(call: TrappedCall<'_>, index: usize) -> Result<Timestamps, i32> {
    Ok(match numbers(call, index)? {
        None => Timestamps { last_access: NOW, last_modification: NOW },
        Some([access, access_ns, change, change_ns]) => Timestamps {
            last_access: Timespec { tv_sec: access, tv_nsec: access_ns },
            last_modification: Timespec { tv_sec: change, tv_nsec: change_ns },
        },
    })
}

#[cfg(target_arch = "x86_64")]
fn micros(call: TrappedCall<'_>, index: usize) -> Result<Timestamps, i32> {
    let Some([access, access_us, change, change_us]) = numbers(call, index)? else {
        return nanos(call, index);
    };
    let time = |seconds, micros: i64| {
        let valid = (0..1_000_000).contains(&micros);
        valid.then_some(Timespec { tv_sec: seconds, tv_nsec: micros * 1000 }).ok_or(libc::EINVAL)
    };
    Ok(Timestamps { last_access: time(access, access_us)?, last_modification: time(change, change_us)? })
}

#[cfg(target_arch = "x86_64")]
fn seconds(call: TrappedCall<'_>, index: usize) -> Result<Timestamps, i32> {
    let Some([access, change]) = numbers(call, index)? else { return nanos(call, index) };
    let time = |seconds| Timespec { tv_sec: seconds, tv_nsec: 0 };
    Ok(Timestamps { last_access: time(access), last_modification: time(change) })
}

/// Bounds set by the kernel.
const NAME_MAX: usize = 255;
const VALUE_MAX: u64 = 65536;

fn attribute_name(call: TrappedCall<'_>) -> Result<Vec<u8>, i32> {
    match call.string(call.word(1)) {
        Ok(name) if (1..=NAME_MAX).contains(&name.len()) => Ok(name.into_encoded_bytes()),
        Ok(_) | Err(libc::ENAMETOOLONG) => Err(libc::ERANGE),
        Err(errno) => Err(errno),
    }
}

fn attribute(call: TrappedCall<'_>) -> Result<MetadataChange, i32> {
    let name = attribute_name(call)?;
    let size = usize::try_from(call.word(3)).ok().filter(|_| call.word(3) <= VALUE_MAX).ok_or(libc::E2BIG)?;
    let value = if size == 0 { Vec::new() } else { call.bytes(call.word(2), size)? };
    Ok(MetadataChange::SetAttribute { name, value, flags: call.int(4).cast_unsigned() })
}

fn removed(call: TrappedCall<'_>) -> Result<MetadataChange, i32> {
    Ok(MetadataChange::RemoveAttribute { name: attribute_name(call)? })
}

#[cfg(test)]
mod tests;
