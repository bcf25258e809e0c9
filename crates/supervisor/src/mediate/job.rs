//! One thing to decide about, and whoever waits for it.

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

/// Work for a clerk.
#[derive(Debug)]
pub(super) enum Job {
    Open(Open),
    /// Another mediated call.
    Call(Notification),
    /// The clerk that takes it goes home.
    End,
}

impl Job {
    /// Where there is a recorder: whether the kernel judges it in any case.
    pub(super) fn is_only_recorded(&self) -> bool {
        match self {
            Job::Open(open) => matches!(open.source, Source::Call { .. }),
            Job::Call(call) => Change::of(call).is_some(),
            Job::End => false,
        }
    }
}

/// Something is to be opened.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) source: Source,
    pub(super) start: Start,
    pub(super) path: Vec<u8>,
    pub(super) how: How,
    /// What the table may remember this path by, if the answer turns out to be its own.
    pub(super) remember: Option<u64>,
    /// Not to be opened but to be replaced: by what the command made at this path.
    pub(super) replaces: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) enum Source {
    /// A thread that stands in an opening call.
    Call { id: u64, tid: u32 },
    /// A request in words.
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

    /// Whether somebody still waits for it.
    pub(super) fn is_wanted(&self, listener: &Listener) -> bool {
        match &self.source {
            Source::Call { id, .. } => listener.is_valid(*id),
            Source::Request { gone, .. } => !gone.load(Ordering::Relaxed),
        }
    }
}

/// An open that waits for somebody's answer, with the object it is about.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) open: Open,
    pub(super) target: Target,
    pub(super) path: PathBuf,
    pub(super) rights: u8,
    /// The name under which the command wants to write what is to replace the target.
    pub(super) through: Option<Box<Target>>,
}
