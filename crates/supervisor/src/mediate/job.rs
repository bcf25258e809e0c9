//! Unit of work for the mediator's threads, and the caller that waits for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use nono_sys::notify::{Listener, Notification};

use super::call::{OpenRequest, PathStart};
use super::call_effect::CallEffect;
use super::pin_path::OpenTarget;
use super::process;
use crate::approval::Asker;
use crate::request_service::RequestReply;

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
            Job::Open(open) => matches!(open.source, OpenSource::Call { .. }),
            Job::Call(call) => CallEffect::of(call).is_some(),
            Job::End => false,
        }
    }
}

/// Request to open something.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) source: OpenSource,
    pub(super) start: PathStart,
    pub(super) path: Vec<u8>,
    pub(super) how: OpenRequest,
    /// Key under which the table may remember this path, if the policy turns out to allow it.
    pub(super) remember: Option<u64>,
    /// Set for a replacement instead of an open: path of the created file that replaces the target.
    pub(super) replaces: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) enum OpenSource {
    /// Thread that waits in an opening call.
    Call {
        id: u64,
        tid: u32,
    },
    Request {
        asker: Asker,
        reason: Option<String>,
        reply: SyncSender<RequestReply>,
        gone: Arc<AtomicBool>,
    },
}

impl Open {
    pub(super) fn tid(&self) -> u32 {
        match &self.source {
            OpenSource::Call { tid, .. } => *tid,
            OpenSource::Request { asker, .. } => asker.pid,
        }
    }

    pub(super) fn asker(&self) -> Asker {
        Asker { program: self.program(), pid: self.pid() }
    }

    pub(super) fn program(&self) -> PathBuf {
        match &self.source {
            OpenSource::Call { tid, .. } => process::program(*tid),
            OpenSource::Request { asker, .. } => asker.program.clone(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        match &self.source {
            OpenSource::Call { tid, .. } => process::pid(*tid),
            OpenSource::Request { asker, .. } => asker.pid,
        }
    }

    pub(super) fn reason(&self) -> Option<String> {
        match &self.source {
            OpenSource::Call { .. } => None,
            OpenSource::Request { reason, .. } => reason.clone(),
        }
    }

    /// Whether the caller still waits for it.
    pub(super) fn is_wanted(&self, listener: &Listener) -> bool {
        match &self.source {
            OpenSource::Call { id, .. } => listener.is_valid(*id),
            OpenSource::Request { gone, .. } => !gone.load(Ordering::Relaxed),
        }
    }
}

/// Open that waits for an approval, with its object.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) open: Open,
    pub(super) target: OpenTarget,
    pub(super) path: PathBuf,
    pub(super) rights: u8,
    /// Name under which the command writes the file that will replace the target.
    pub(super) through: Option<Box<OpenTarget>>,
}
