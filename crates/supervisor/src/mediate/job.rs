//! Unit of work for the mediator's threads, and the caller that waits for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use nono_sys::notify::{Listener, Notification};

use super::call::{How, Start};
use super::changes::Change;
use super::process;
use super::resolve::Target;
use crate::approval::Asker;
use crate::report::Reply;

/// Work for a mediator thread.
#[derive(Debug)]
pub(super) enum Job {
    Open(Open),
    /// Another mediated call.
    Call(Notification),
    /// The thread that takes it ends.
    End,
}

impl Job {
    /// Whether the kernel judges it in any case, where there is a recorder.
    pub(super) fn is_only_recorded(&self) -> bool {
        match self {
            Job::Open(open) => matches!(open.source, Source::Call { .. }),
            Job::Call(call) => Change::of(call).is_some(),
            Job::End => false,
        }
    }
}

/// Request to open something.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) source: Source,
    pub(super) start: Start,
    pub(super) path: Vec<u8>,
    pub(super) how: How,
    /// Key under which the table may remember this path, if the policy turns out to allow it.
    pub(super) remember: Option<u64>,
    /// Set for a replacement instead of an open: path of the draft that replaces the target.
    pub(super) replaces: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) enum Source {
    /// Thread that waits in an opening call.
    Call { id: u64, tid: u32 },
    /// Request on the request socket.
    Request { asker: Asker, reason: Option<String>, reply: SyncSender<Reply>, gone: Arc<AtomicBool> },
}

impl Open {
    pub(super) fn tid(&self) -> u32 {
        match &self.source {
            Source::Call { tid, .. } => *tid,
            Source::Request { asker, .. } => asker.pid,
        }
    }

    pub(super) fn asker(&self) -> Asker {
        Asker { program: self.program(), pid: self.pid() }
    }

    pub(super) fn program(&self) -> PathBuf {
        match &self.source {
            Source::Call { tid, .. } => process::program(*tid),
            Source::Request { asker, .. } => asker.program.clone(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        match &self.source {
            Source::Call { tid, .. } => process::pid(*tid),
            Source::Request { asker, .. } => asker.pid,
        }
    }

    pub(super) fn reason(&self) -> Option<String> {
        match &self.source {
            Source::Call { .. } => None,
            Source::Request { reason, .. } => reason.clone(),
        }
    }

    /// Whether the caller still waits for it.
    pub(super) fn is_wanted(&self, listener: &Listener) -> bool {
        match &self.source {
            Source::Call { id, .. } => listener.is_valid(*id),
            Source::Request { gone, .. } => !gone.load(Ordering::Relaxed),
        }
    }
}

/// Open that waits for an approval, with its object.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) open: Open,
    pub(super) target: Target,
    pub(super) path: PathBuf,
    pub(super) rights: u8,
    /// Name under which the command writes the draft that will replace the target.
    pub(super) through: Option<Box<Target>>,
}
