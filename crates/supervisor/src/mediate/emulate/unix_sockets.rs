//! Unix sockets a command may connect to: those it was granted, and those of its own sandbox.
//!
//! Whether a socket belongs to the sandbox is read from the kernel's lists of listening sockets. In a network namespace
//! of the command's own, being on that list is the proof. In the host's, one of the sandbox's processes must have the
//! socket open as well. A list cuts inode numbers to 32 bits, and some file systems count several trees from one; so a
//! file that could also be a socket of another process is not accepted as the sandbox's.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use nono_policy::{AccessMode, FsCapability, ResolvedPolicy, query_path};
use nono_sys::socket_diag::{self, BoundFile, Listening};
use nono_sys::{fs, other_process};

use super::context::CallContext;
use crate::mediate::pin_path::Identity;

/// Identity of a pinned object, and whether it is a socket.
pub(super) fn identify(pinned: &OwnedFd) -> Result<(Identity, bool), i32> {
    let stat = rustix::fs::fstat(pinned).map_err(rustix::io::Errno::raw_os_error)?;
    let is_socket = rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Socket;
    Ok((Identity::of_stat(&stat), is_socket))
}

#[derive(Debug)]
pub(crate) struct GrantedSocket {
    path: PathBuf,
    /// Object at the path at the start, kept open so that its inode is not reused.
    at_start: Option<(OwnedFd, Identity)>,
    /// Whether the command cannot replace it, so that a later object at the path is granted as well: a service that was
    /// restarted.
    is_out_of_reach: bool,
}

impl GrantedSocket {
    pub(super) fn pin(policy: &ResolvedPolicy, socket: &FsCapability) -> GrantedSocket {
        let path = socket.resolved.clone();
        let pinned = fs::open_path(&path).ok();
        let at_start = pinned.and_then(|fd| identify(&fd).ok().map(|(node, _)| (fd, node)));
        let folder = path.parent().unwrap_or(Path::new("/"));
        let is_out_of_reach = !query_path(policy, folder, true, AccessMode::Write).is_allowed();
        GrantedSocket { path, at_start, is_out_of_reach }
    }

    fn is(&self, node: Identity) -> bool {
        let stands_there = || {
            let now = std::fs::symlink_metadata(&self.path);
            now.is_ok_and(|meta| Identity::of(&meta) == node)
        };
        self.at_start.as_ref().is_some_and(|(_, start)| *start == node)
            || (self.is_out_of_reach && stands_there())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SocketOwner {
    Granted,
    /// The sandbox's own; the inode distinguishes it from others of the same name.
    Own(u32),
    Others,
    /// No listening socket is known.
    Unowned,
}

impl CallContext {
    pub(super) fn whose_file(
        &self,
        tid: u32,
        pinned: &OwnedFd,
        node: Identity,
    ) -> std::io::Result<SocketOwner> {
        if self.granted.iter().any(|granted| granted.is(node)) {
            return Ok(SocketOwner::Granted);
        }
        let identity = other_process::identity(pinned.as_fd())?;
        let Some(device) = other_process::device_of_mount(tid, identity.mount)? else {
            return Ok(SocketOwner::Others);
        };
        let file = BoundFile::new(device, identity.inode);
        self.whose(|socket| socket.file == Some(file))
    }

    /// Owner of an abstract name (`name` with its leading NUL). Names belong to a network namespace: where the command
    /// has its own, all are its own.
    pub(super) fn whose_name(&self, name: &[u8]) -> std::io::Result<SocketOwner> {
        self.whose(|socket| socket.name == name)
    }

    fn whose(&self, is_it: impl Fn(&Listening) -> bool) -> std::io::Result<SocketOwner> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<Listening> =
            socket_diag::listening(lists.command.as_fd())?.into_iter().filter(&is_it).collect();
        let with_us = match &lists.ours {
            Some(ours) => socket_diag::listening(ours.as_fd())?.iter().any(&is_it),
            None => false,
        };
        drop(lists);
        let held = |found: &[Listening]| {
            let processes = other_process::below(self.init);
            found.iter().all(|socket| other_process::holds_socket(&processes, socket.socket))
        };
        Ok(match found.as_slice() {
            [] if with_us => SocketOwner::Others,
            [] => SocketOwner::Unowned,
            [first, ..] if !with_us && (self.own_network || held(&found)) => SocketOwner::Own(first.socket),
            _ => SocketOwner::Others,
        })
    }
}
