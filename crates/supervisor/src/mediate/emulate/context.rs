//! Trapped call and its context.
//!
//! Every check works on copies and pinned objects: bytes are read from the command's memory once, descriptors are taken
//! once, and paths are resolved once, in the command's own view of the file system. Later changes by the command have
//! no effect here. After each copy the call is checked to be still waiting: only then was the copy made from the thread
//! that the call belongs to.
//!
//! The calls are carried out by threads that dropped their capabilities: started by root, this process could otherwise
//! do for the command what the command cannot do itself.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use nono_policy::ResolvedPolicy;
use nono_sys::notify::{self, Notification, PATH_MAX};
use nono_sys::{other_process, socket_diag};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::renames::Copy;
use super::unix_sockets::GrantedSocket;
use crate::approval::Asker;
use crate::mediate::{pin_path, process};
use crate::report::{DeniedAttempt, RefusalReason};

/// Result returned to the waiting thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallResponse {
    Errno(i32),
    Value(i64),
}

impl From<Result<(), i32>> for CallResponse {
    fn from(result: Result<(), i32>) -> CallResponse {
        match result {
            Ok(()) => CallResponse::Value(0),
            Err(errno) => CallResponse::Errno(errno),
        }
    }
}

pub(crate) enum Handled {
    Now(CallResponse),
    /// The kernel carries the call out under the rules of the start.
    Continue,
    /// Denied: answered with EACCES and listed in the report.
    Refused(DeniedAttempt, RefusalReason),
    /// Allowed, but carrying it out may take long: not for the thread that receives calls.
    Later(Box<dyn FnOnce() -> CallResponse + Send>),
}

impl From<i32> for Handled {
    fn from(errno: i32) -> Handled {
        Handled::Now(CallResponse::Errno(errno))
    }
}

/// The session's own request socket, which the command may always connect to.
pub(crate) trait RequestSocket: Send + Sync + fmt::Debug {
    fn is_at(&self, device: u64, inode: u64) -> bool;

    fn connect(&self, asker: Asker, socket: BorrowedFd<'_>) -> io::Result<()>;
}

/// Sandbox that calls come from.
#[derive(Debug)]
pub(crate) struct CallContext {
    pub(crate) policy: Arc<ResolvedPolicy>,
    /// Root directory as the command sees it.
    root: OwnedFd,
    /// Pid of init: every process of the sandbox is below it.
    pub(crate) init: i32,
    /// Whether the command has a network namespace of its own.
    pub(crate) own_network: bool,
    pub(crate) granted: Vec<GrantedSocket>,
    pub(super) copies: Vec<Copy>,
    request_socket: Mutex<Option<Arc<dyn RequestSocket>>>,
    proxy: OnceLock<SocketAddrV4>,
    /// Socket lists of the command's network namespace, and of the supervisor's if that is another. A list has one
    /// reader at a time.
    pub(super) lists: Mutex<Lists>,
}

#[derive(Debug)]
pub(super) struct Lists {
    pub(super) command: OwnedFd,
    pub(super) ours: Option<OwnedFd>,
}

impl CallContext {
    /// Takes `root` and `socket_list` as init handed them over. Must be called before the command can change anything:
    /// the granted sockets are pinned here.
    pub(crate) fn new(
        policy: Arc<ResolvedPolicy>,
        init: i32,
        own_network: bool,
        root: OwnedFd,
        socket_list: OwnedFd,
    ) -> io::Result<CallContext> {
        let ours = own_network.then(socket_diag::open).transpose()?;
        let granted = policy.unix_sockets.iter().map(|socket| GrantedSocket::pin(&policy, socket)).collect();
        let lists = Mutex::new(Lists { command: socket_list, ours });
        let copies = Copy::all(&policy, |path| pin(&root, path, false));
        let (request_socket, proxy) = (Mutex::default(), OnceLock::new());
        Ok(CallContext { policy, root, init, own_network, granted, copies, request_socket, proxy, lists })
    }

    /// Sets the request socket: before the first call, and to `None` after the last.
    pub(crate) fn set_request_socket(&self, socket: Option<Arc<dyn RequestSocket>>) {
        *self.request_socket.lock().unwrap_or_else(PoisonError::into_inner) = socket;
    }

    pub(super) fn request_socket(&self) -> Option<Arc<dyn RequestSocket>> {
        self.request_socket.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the address of the proxy on the host's network; once, before the first call.
    pub(crate) fn set_proxy(&self, address: Option<SocketAddrV4>) {
        if let Some(address) = address {
            // A second address would open more than was granted: the first one stays.
            let _ = self.proxy.set(address);
        }
    }

    pub(super) fn proxy(&self) -> Option<SocketAddrV4> {
        self.proxy.get().copied()
    }

    /// Bytes that wait in unix sockets of the command's network namespace.
    pub(in crate::mediate) fn unix_memory(&self) -> io::Result<u64> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        socket_diag::waiting_memory(lists.command.as_fd())
    }

    /// Pins the object at `path` in the command's view without opening it. Links are followed (the last one only if
    /// `follow`), except magic links such as `/proc/…/fd`: here they would be the supervisor's.
    pub(in crate::mediate) fn pin(&self, path: &Path, follow: bool) -> Result<OwnedFd, i32> {
        pin(&self.root, path, follow)
    }
}

fn pin(root: &OwnedFd, path: &Path, follow: bool) -> Result<OwnedFd, i32> {
    let last = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::PATH | OFlags::CLOEXEC | last;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    pin_path::open_how(root, path.as_os_str(), flags, Mode::empty(), resolve).map_err(|error| match error {
        Errno::AGAIN => libc::EACCES,
        error => error.raw_os_error(),
    })
}

#[derive(Clone, Copy)]
pub(crate) struct TrappedCall<'a> {
    pub(crate) notification: &'a Notification,
    pub(crate) waits: &'a dyn Fn() -> bool,
}

/// Result for a call that does not wait any more.
const GONE: i32 = libc::EINTR;

impl TrappedCall<'_> {
    pub(super) fn tid(&self) -> u32 {
        self.notification.tid
    }

    /// Argument that the kernel takes as an `int`.
    #[allow(clippy::cast_possible_truncation, reason = "the kernel looks at the low half only")]
    pub(in crate::mediate) fn int(&self, index: usize) -> i32 {
        (self.notification.args[index] as u32).cast_signed()
    }

    pub(in crate::mediate) fn word(&self, index: usize) -> u64 {
        self.notification.args[index]
    }

    fn checked<T>(&self, result: Result<T, i32>) -> Result<T, i32> {
        if (self.waits)() { result } else { Err(GONE) }
    }

    pub(super) fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, i32> {
        let mut buffer = vec![0; length];
        self.checked(notify::read_exactly(self.tid(), address, &mut buffer))?;
        Ok(buffer)
    }

    /// Reads a string at `address`, as long as a path may be.
    pub(in crate::mediate) fn string(&self, address: u64) -> Result<OsString, i32> {
        let mut buffer = [0; PATH_MAX];
        let length = self.checked(notify::read_path(self.tid(), address, &mut buffer))?;
        Ok(OsString::from_vec(buffer[..length].to_vec()))
    }

    /// Descriptor of the calling thread, duplicated: the same open file.
    pub(in crate::mediate) fn descriptor(&self, number: i32) -> Result<OwnedFd, i32> {
        self.checked(other_process::take_descriptor(self.tid(), number))
    }

    /// Absolute form of `path`, relative to the directory `folder` or the working directory.
    pub(in crate::mediate) fn absolute(&self, folder: i32, path: &Path) -> Result<PathBuf, i32> {
        if path.is_absolute() {
            return Ok(path.to_path_buf());
        }
        let base = if folder == libc::AT_FDCWD {
            self.checked(other_process::working_directory(self.tid()).map_err(|error| errno_of(&error)))?
        } else {
            name_of(&self.descriptor(folder)?)?
        };
        let whole = base.join(path);
        if whole.as_os_str().as_bytes().len() < PATH_MAX { Ok(whole) } else { Err(libc::ENAMETOOLONG) }
    }

    /// Process that asks, as far as it is known.
    pub(super) fn asker(&self) -> Asker {
        process::asker(self.tid())
    }
}

/// Current path of the object behind one of the supervisor's descriptors.
pub(in crate::mediate) fn name_of(fd: &OwnedFd) -> Result<PathBuf, i32> {
    pin_path::path_of(fd.as_fd()).map_err(|error| errno_of(&error))
}

/// Whether the object at `path` cannot be judged by that name: it has none any more, or is in `/proc`.
pub(in crate::mediate) fn is_nameless(fd: &OwnedFd, path: &Path) -> Result<bool, i32> {
    let links = rustix::fs::fstat(fd).map_err(Errno::raw_os_error)?.st_nlink;
    let on_proc = pin_path::on_proc(fd.as_fd()).map_err(|error| errno_of(&error))?;
    Ok(links == 0 || !path.is_absolute() || on_proc)
}

/// Path that leads to exactly this object.
pub(in crate::mediate) fn through(fd: &OwnedFd) -> PathBuf {
    pin_path::own_link(fd.as_fd())
}

/// Errno of an error; EACCES if it has none.
pub(in crate::mediate) fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EACCES)
}
