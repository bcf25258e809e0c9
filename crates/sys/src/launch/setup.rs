//! Namespace setup in the child: ids, mounts, loopback, late rules. Raw calls only.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, RawFd};

use super::step::{Failure, Step};
use super::{LaunchPlan, SetupOp};
use crate::raw::{Errno, check_int, last_errno, open_exact, open_exact_or_link, sys};

const AT_RECURSIVE: i32 = 0x8000;
const OPEN_TREE_CLONE: i32 = 1;
const OPEN_TREE_CLOEXEC: i32 = libc::O_CLOEXEC;
const MOVE_MOUNT_F_EMPTY_PATH: i32 = 4;
const MOVE_MOUNT_T_EMPTY_PATH: i32 = 0x40;
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;

#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Performs every operation in order.
pub(super) fn run(plan: &mut LaunchPlan) -> Result<(), Failure> {
    let ruleset = plan.confine.ruleset.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    for (index, op) in plan.setup.iter().enumerate() {
        perform(op, &mut plan.slots, ruleset).map_err(|(step, errno)| (step, index, errno))?;
    }
    Ok(())
}

fn perform(op: &SetupOp, slots: &mut [RawFd], ruleset: RawFd) -> Result<(), (Step, Errno)> {
    let (step, done) = match op {
        SetupOp::MapIds { uid_map, gid_map } => (Step::MapIds, map_ids(uid_map, gid_map)),
        SetupOp::MakePrivate => {
            (Step::MakePrivate, mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE, c""))
        }
        SetupOp::CloneTree { path, slot } => {
            (Step::CloneTree, clone_tree(path).map(|tree| slots[*slot] = tree))
        }
        SetupOp::ReadOnly { path } => {
            (Step::ReadOnly, set_attributes(libc::AT_FDCWD, path, AT_RECURSIVE, READ_ONLY))
        }
        SetupOp::PlaceTree { slot, target } => (Step::PlaceTree, place(slots[*slot], target)),
        SetupOp::Mask { source, target, if_there } => match mask(source, target) {
            Err(libc::ENOENT | libc::EACCES | libc::ENOTDIR) if *if_there => return Ok(()),
            result => (Step::Mask, result),
        },
        SetupOp::Hold { path } => (Step::Mask, hold(path)),
        SetupOp::Copy { source, target } => (Step::Mask, copy(source, target)),
        SetupOp::Pin { path } => (Step::Mask, clone_tree(path).and_then(|tree| place(tree, path))),
        SetupOp::Mount { kind, target, flags, data } => (Step::Mount, mount(kind, target, *flags, data)),
        SetupOp::LoopbackUp => (Step::Loopback, loopback_up()),
        SetupOp::AllowPath { path, access } => (Step::LateRule, allow_path(ruleset, path, *access)),
    };
    done.map_err(|errno| (step, errno))
}

fn map_ids(uid_map: &CStr, gid_map: &CStr) -> Result<(), Errno> {
    write_file(c"/proc/self/setgroups", c"deny")?;
    write_file(c"/proc/self/uid_map", uid_map)?;
    write_file(c"/proc/self/gid_map", gid_map)
}

fn write_file(path: &CStr, text: &CStr) -> Result<(), Errno> {
    // SAFETY: both strings are NUL-terminated and live across the calls.
    unsafe {
        let fd = check_int(libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let bytes = text.to_bytes();
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        let errno = last_errno();
        libc::close(fd);
        if written == bytes.len() as isize { Ok(()) } else { Err(errno) }
    }
}

fn mount(kind: &CStr, target: &CStr, flags: libc::c_ulong, data: &CStr) -> Result<(), Errno> {
    // SAFETY: all strings are NUL-terminated and live across the call.
    check_int(unsafe {
        libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast())
    })
    .map(drop)
}

fn clone_tree(path: &CStr) -> Result<RawFd, Errno> {
    clone_at(open_exact(path)?)
}

/// Detached copy of the mounts at `place`, which is closed.
fn clone_at(place: RawFd) -> Result<RawFd, Errno> {
    let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | libc::AT_EMPTY_PATH;
    // SAFETY: the empty path is NUL-terminated; place is ours.
    unsafe {
        let fd = sys!(libc::SYS_open_tree, place, c"".as_ptr(), flags);
        libc::close(place);
        Ok(fd? as RawFd)
    }
}

/// Mount attributes to set and to clear.
type Attributes = (u64, u64);
const READ_ONLY: Attributes = (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0);
const WRITABLE: Attributes = (MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY);

fn set_attributes(fd: RawFd, path: &CStr, flags: i32, (set, clear): Attributes) -> Result<(), Errno> {
    let attr = MountAttr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    // SAFETY: path is NUL-terminated and attr lives across the call.
    unsafe {
        sys!(libc::SYS_mount_setattr, fd, path.as_ptr(), flags, &raw const attr, size_of::<MountAttr>())
    }
    .map(drop)
}

/// Mounts a detached tree on exactly this path, and closes it.
fn place(tree: RawFd, target: &CStr) -> Result<(), Errno> {
    place_at(tree, open_exact(target)?)
}

/// The same; `target` is closed.
fn place_at(tree: RawFd, target: RawFd) -> Result<(), Errno> {
    let flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: the empty paths are NUL-terminated; both descriptors are ours.
    unsafe {
        let placed = sys!(libc::SYS_move_mount, tree, c"".as_ptr(), target, c"".as_ptr(), flags);
        libc::close(target);
        placed?;
        libc::close(tree);
    }
    Ok(())
}

/// Mounts a read-only copy of `source` over `target`.
pub(super) fn mask(source: &CStr, target: &CStr) -> Result<(), Errno> {
    cover(clone_tree(source)?, READ_ONLY, || open_exact(target))
}

/// Mounts `source` over `target`, writable, wherever it is itself.
pub(super) fn copy(source: &CStr, target: &CStr) -> Result<(), Errno> {
    cover(clone_tree(source)?, WRITABLE, || open_exact(target))
}

/// Mounts a read-only copy of the object at `path` over it, also of a link, so that it is neither changed nor replaced.
pub(super) fn hold(path: &CStr) -> Result<(), Errno> {
    let tree = clone_at(open_exact_or_link(path)?)?;
    cover(tree, READ_ONLY, || open_exact_or_link(path))
}

/// Whether the object at `path` is held.
pub(super) fn is_held(path: &CStr) -> Result<bool, Errno> {
    let place = open_exact_or_link(path)?;
    // SAFETY: place is ours, and the buffer lives across the call.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        let told = check_int(libc::fstatvfs(place, &raw mut about));
        libc::close(place);
        told?;
        Ok(about.f_flag & libc::ST_RDONLY != 0)
    }
}

fn cover(
    tree: RawFd,
    attributes: Attributes,
    target: impl Fn() -> Result<RawFd, Errno>,
) -> Result<(), Errno> {
    let placed = set_attributes(tree, c"", libc::AT_EMPTY_PATH | AT_RECURSIVE, attributes)
        .and_then(|()| target())
        .and_then(|target| place_at(tree, target));
    if placed.is_err() {
        // SAFETY: tree is ours; place closes it only on success.
        unsafe { libc::close(tree) };
    }
    placed
}

fn loopback_up() -> Result<(), Errno> {
    // SAFETY: ifreq is plain data, zeroed, and valid across the ioctl.
    unsafe {
        let fd = check_int(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let result = check_int(libc::ioctl(fd, libc::SIOCSIFFLAGS, &raw const request));
        libc::close(fd);
        result.map(|_| ())
    }
}

/// Number of connections that may wait to be accepted.
const BACKLOG: libc::c_int = 1024;

/// TCP socket that listens on this network's 127.0.0.1; without `SO_REUSEPORT` no other process can have its port.
pub(super) fn listen_on_loopback(port: u16) -> Result<RawFd, Errno> {
    let flags = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: the address is plain data, zeroed and filled, and valid across the calls.
    unsafe {
        let fd = check_int(libc::socket(libc::AF_INET, flags, 0))?;
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        let result = check_int(libc::bind(fd, (&raw const address).cast(), size))
            .and_then(|_| check_int(libc::listen(fd, BACKLOG)));
        if let Err(errno) = result {
            libc::close(fd);
            return Err(errno);
        }
        Ok(fd)
    }
}

fn allow_path(ruleset: RawFd, path: &CStr, access: u64) -> Result<(), Errno> {
    // SAFETY: path is NUL-terminated.
    let fd = check_int(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) })?;
    let result = crate::landlock::add_path_rule(ruleset, fd, access);
    // SAFETY: fd is ours.
    unsafe { libc::close(fd) };
    result
}
