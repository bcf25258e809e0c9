//! Imitation of a sandbox for tests of the handlers: calls come from this very thread, and the sandbox's processes are
//! those below a child of this one.

use std::fs::File;
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use nono_policy::{AccessMode, CapabilitySet, ResolvedPolicy};
use nono_sys::notify::Notification;
use nono_sys::socket_diag;

use super::context::{CallContext, CallResponse, Handled, TrappedCall};
use crate::report::{DeniedAttempt, RefusalReason};

/// Directory with a write grant on `own`, a read grant on `read`, and `outside` with neither.
pub(super) struct HandlerTest {
    pub(super) dir: PathBuf,
    pub(super) policy: ResolvedPolicy,
    init: Option<Child>,
    _temp: tempfile::TempDir,
}

impl HandlerTest {
    pub(super) fn new() -> HandlerTest {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        for name in ["own", "read", "outside"] {
            std::fs::create_dir(dir.join(name)).unwrap();
        }
        let caps = CapabilitySet::builder()
            .allow_path(dir.join("own"), AccessMode::ReadWrite)
            .and_then(|set| set.allow_path(dir.join("read"), AccessMode::Read))
            .and_then(nono_policy::CapabilitySetBuilder::build)
            .unwrap();
        HandlerTest { policy: caps.to_policy().unwrap(), dir, init: None, _temp: temp }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Starts a process of the sandbox that has this open.
    pub(super) fn hold(&mut self, fd: impl Into<OwnedFd>) {
        let mut init = Command::new("sh");
        init.args(["-c", "exec 3<&0; sleep 1000 & echo; wait"]);
        init.stdin(Stdio::from(fd.into())).stdout(Stdio::piped());
        let mut init = init.spawn().unwrap();
        // The line is written once a process exists below it.
        std::io::Read::read_exact(init.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        self.end();
        self.init = Some(init);
    }

    fn end(&mut self) {
        if let Some(mut init) = self.init.take() {
            for pid in nono_sys::other_process::below(init.id().cast_signed()) {
                nono_sys::process::kill(pid, libc::SIGKILL).ok();
            }
            init.kill().ok();
            init.wait().ok();
        }
    }

    pub(super) fn scene(&self) -> Arc<CallContext> {
        self.scene_in(false)
    }

    pub(super) fn scene_in(&self, own_network: bool) -> Arc<CallContext> {
        let root = OwnedFd::from(File::open("/").unwrap());
        let init = self.init.as_ref().map_or(i32::MAX, |init| init.id().cast_signed());
        let (policy, list) = (Arc::new(self.policy.clone()), socket_diag::open().unwrap());
        Arc::new(CallContext::new(policy, init, own_network, root, list).unwrap())
    }
}

impl Drop for HandlerTest {
    fn drop(&mut self) {
        self.end();
    }
}

fn own_tid() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Makes a call of this thread with these arguments; it waits as long as `waits` says so.
pub(super) fn call_while(
    nr: i64,
    args: &[u64],
    waits: bool,
    handler: impl Fn(TrappedCall<'_>) -> Result<Handled, i32>,
) -> CallOutcome {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    let notification = Notification { id: 1, tid: own_tid(), nr, args: all };
    let handled = handler(TrappedCall { notification: &notification, waits: &|| waits });
    CallOutcome::of(handled.unwrap_or_else(Handled::from))
}

pub(super) fn call(
    nr: i64,
    args: &[u64],
    handler: impl Fn(TrappedCall<'_>) -> Result<Handled, i32>,
) -> CallOutcome {
    call_while(nr, args, true, handler)
}

/// Result of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    Value(i64),
    Errno(i32),
    Refused(DeniedAttempt),
}

impl CallOutcome {
    fn of(handled: Handled) -> CallOutcome {
        match handled {
            Handled::Refused(attempt, RefusalReason::Policy { .. }) => CallOutcome::Refused(attempt),
            Handled::Refused(_, because) => panic!("{because:?}"),
            Handled::Now(response) => response.into(),
            Handled::Later(work) => work().into(),
            Handled::Continue => panic!("the kernel was to go on"),
        }
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(self, CallOutcome::Refused(_))
    }
}

impl From<CallResponse> for CallOutcome {
    fn from(response: CallResponse) -> CallOutcome {
        match response {
            CallResponse::Value(value) => CallOutcome::Value(value),
            CallResponse::Errno(errno) => CallOutcome::Errno(errno),
        }
    }
}

/// Number as an argument.
pub(super) fn word(fd: RawFd) -> u64 {
    u64::from(fd.cast_unsigned())
}

/// Address of a value in this process's memory.
pub(super) fn address<T>(of: &[T]) -> u64 {
    of.as_ptr().addr() as u64
}

pub(super) fn c_path(path: &Path) -> Vec<u8> {
    [path.as_os_str().as_encoded_bytes(), b"\0"].concat()
}
