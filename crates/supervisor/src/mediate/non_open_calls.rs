//! Mediated calls that open nothing. Renames, removals and, where mounts enforce them, modes are left to the kernel,
//! unless they concern what the command made after an approval; the others never are, because the kernel's rules do not
//! cover them.

use std::sync::Arc;

use nono_sandbox::{MODES, REMOVALS};
use nono_sys::notify::Notification;

use super::emulate::{self, CallResponse, Handled, TrappedCall};
use super::process;
use super::shared::MediatorShared;
use crate::report::{DeniedAttempt, RefusalReason};

impl MediatorShared {
    pub(super) fn other(self: &Arc<MediatorShared>, call: &Notification) {
        if call.nr == libc::SYS_seccomp {
            return self.no_second_listener(call);
        }
        if call.nr == libc::SYS_socketpair {
            return self.pair(call);
        }
        if self.record_call(call) {
            return self.listener.respond_continue(call.id);
        }
        if self.handle_created_file(call) {
            return;
        }
        // Removals are judged by Landlock, modes by a read-only mount, where there is one.
        if REMOVALS.contains(&call.nr) || MODES.contains(&call.nr) && !self.judges_metadata {
            return self.listener.respond_continue(call.id);
        }
        let waits = || self.listener.is_valid(call.id);
        let trapped = TrappedCall { notification: call, waits: &waits };
        let handled = match call.nr {
            libc::SYS_inotify_add_watch => self.watch(trapped),
            _ => emulate::handle(&self.scene, trapped),
        };
        match handled.unwrap_or_else(Handled::from) {
            Handled::Now(response) => self.respond(call.id, response),
            Handled::Continue => self.listener.respond_continue(call.id),
            Handled::Refused(attempt, because) => {
                let program = process::program(call.tid);
                self.note_refusal(attempt, &because, &program, || process::pid(call.tid));
                self.penalty.refuse(&self.listener, call.id, libc::EACCES);
            }
            Handled::Later(work) => {
                let (shared, id) = (self.clone(), call.id);
                if !self.crew.take_on(move || shared.respond(id, work())) {
                    self.listener.respond_errno(call.id, libc::EAGAIN);
                }
            }
        }
    }

    pub(super) fn respond(&self, id: u64, response: CallResponse) {
        match response {
            CallResponse::Errno(errno) => self.listener.respond_errno(id, errno),
            CallResponse::Value(value) => self.listener.respond_value(id, value),
        }
    }

    fn no_second_listener(&self, call: &Notification) {
        let what = "install a seccomp listener".to_owned();
        let why = "the kernel allows only one, and nono uses it".to_owned();
        let (attempt, because) = (DeniedAttempt::Other { what }, RefusalReason::Failed { why });
        let program = process::program(call.tid);
        self.note_refusal(attempt, &because, &program, || process::pid(call.tid));
        self.listener.respond_errno(call.id, libc::EBUSY);
    }
}
