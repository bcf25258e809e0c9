//! Landlock's three system calls.
//!
//! Written here instead of taken from a crate because the ruleset crosses a fork: it is made before, completed in the
//! child for file systems that exist only in its mount namespace (a fresh `/proc`), and enforced there by a raw call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::raw::{Errno, io_error, sys};

/// Rights on files, `LANDLOCK_ACCESS_FS_*`.
pub mod fs {
    pub const EXECUTE: u64 = 1 << 0;
    pub const WRITE_FILE: u64 = 1 << 1;
    pub const READ_FILE: u64 = 1 << 2;
    pub const READ_DIR: u64 = 1 << 3;
    pub const REMOVE_DIR: u64 = 1 << 4;
    pub const REMOVE_FILE: u64 = 1 << 5;
    pub const MAKE_CHAR: u64 = 1 << 6;
    pub const MAKE_DIR: u64 = 1 << 7;
    pub const MAKE_REG: u64 = 1 << 8;
    pub const MAKE_SOCK: u64 = 1 << 9;
    pub const MAKE_FIFO: u64 = 1 << 10;
    pub const MAKE_BLOCK: u64 = 1 << 11;
    pub const MAKE_SYM: u64 = 1 << 12;
    /// Since ABI 2.
    pub const REFER: u64 = 1 << 13;
    /// Since ABI 3.
    pub const TRUNCATE: u64 = 1 << 14;
    /// Since ABI 5.
    pub const IOCTL_DEV: u64 = 1 << 15;
    /// All rights that ABI 5 to 7 can handle.
    pub const ALL: u64 = (1 << 16) - 1;
    /// Rights that make sense on something that is not a directory.
    pub const ON_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
}

/// Rights on the network, `LANDLOCK_ACCESS_NET_*` (ABI 4).
pub mod net {
    pub const BIND_TCP: u64 = 1 << 0;
    pub const CONNECT_TCP: u64 = 1 << 1;
}

/// Scopes, `LANDLOCK_SCOPE_*` (ABI 6).
pub mod scope {
    pub const ABSTRACT_UNIX_SOCKET: u64 = 1 << 0;
    pub const SIGNAL: u64 = 1 << 1;
}

/// Flag that restricts all threads of the process at once (ABI 8).
const RESTRICT_SELF_TSYNC: u32 = 1 << 3;
const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;
const RULE_NET_PORT: u32 = 2;

#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

#[repr(C)]
struct NetPortAttr {
    allowed_access: u64,
    port: u64,
}

/// Landlock ABI of the kernel, or why there is none (`ENOSYS`: not built in; `EOPNOTSUPP`: switched off at boot).
pub fn abi() -> io::Result<u32> {
    // SAFETY: with the VERSION flag the kernel reads no memory.
    let version = unsafe { sys!(libc::SYS_landlock_create_ruleset, 0, 0, CREATE_RULESET_VERSION) };
    version.map(|v| u32::try_from(v).unwrap_or(0)).map_err(io_error)
}

/// Ruleset that is being filled; handled rights are denied unless a rule gives them.
#[derive(Debug)]
pub struct Ruleset(OwnedFd);

impl Ruleset {
    pub fn new(handled_fs: u64, handled_net: u64, scoped: u64) -> io::Result<Ruleset> {
        let attr = RulesetAttr { handled_access_fs: handled_fs, handled_access_net: handled_net, scoped };
        // SAFETY: attr lives across the call and its size is passed along.
        let fd =
            unsafe { sys!(libc::SYS_landlock_create_ruleset, &raw const attr, size_of::<RulesetAttr>(), 0) }
                .map_err(io_error)?;
        // SAFETY: the kernel just returned this descriptor; it has no other owner.
        Ok(Ruleset(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    /// Allows `access` on the object of `target` (an `O_PATH` descriptor), and below it.
    pub fn allow_beneath(&self, target: BorrowedFd<'_>, access: u64) -> io::Result<()> {
        add_path_rule(self.0.as_raw_fd(), target.as_raw_fd(), access).map_err(io_error)
    }

    pub fn allow_port(&self, port: u16, access: u64) -> io::Result<()> {
        let attr = NetPortAttr { allowed_access: access, port: u64::from(port) };
        // SAFETY: attr lives across the call.
        unsafe { sys!(libc::SYS_landlock_add_rule, self.0.as_raw_fd(), RULE_NET_PORT, &raw const attr, 0) }
            .map(drop)
            .map_err(io_error)
    }

    /// Another handle on the same ruleset.
    pub fn try_clone(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// Enforces the ruleset on the calling thread, irreversibly; with `all_threads` on the whole process (ABI 8).
    pub fn restrict_self(&self, all_threads: bool) -> io::Result<()> {
        let flags = if all_threads { RESTRICT_SELF_TSYNC } else { 0 };
        restrict(self.0.as_raw_fd(), flags).map_err(io_error)
    }
}

impl AsRawFd for Ruleset {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Raw form for the child.
pub(crate) fn add_path_rule(ruleset: RawFd, target: RawFd, access: u64) -> Result<(), Errno> {
    let attr = PathBeneathAttr { allowed_access: access, parent_fd: target };
    // SAFETY: attr lives across the call.
    unsafe { sys!(libc::SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &raw const attr, 0) }.map(drop)
}

/// Raw form for the child.
pub(crate) fn restrict(ruleset: RawFd, flags: u32) -> Result<(), Errno> {
    // SAFETY: no memory is passed.
    unsafe { sys!(libc::SYS_landlock_restrict_self, ruleset, flags) }.map(drop)
}
