//! Mediator: receives trapped calls, decides about them, and asks for approval.
//!
//! The kernel stops a thread of the command inside a call and notifies the `receiver`. What the rules of the start
//! allow goes back to the kernel at once, which carries it out and enforces those rules. Everything else goes to
//! another thread, which resolves it to an object, judges that object, and refuses it, opens it on the command's
//! behalf, or puts a request to the approver. One more thread puts the requests, one at a time, so that no other call
//! ever waits for a person.
//!
//! **Every error path denies.** This was checked line by line, and has to be again with every change:
//! - The only ways to answer a call are `respond_continue`, `respond_errno`, `respond_value` and `respond_fd`.
//! - `respond_continue` gives nothing: the kernel applies the Landlock rules, the mounts and the filter of the start. It
//!   is used for opens, `chdir`, renames and the calls that are trapped only to be recorded (see `call_recorder`); for
//!   the other families nothing behind it would hold (see `non_open_calls`).
//! - `respond_fd` is called in one place (`respond_opened`): after `judge`, with an object opened from its own pin, or
//!   with a file that was made for the command and has no name; `add_fd` in one (`socketpair`), with sockets that were
//!   just made and are connected to each other alone.
//! - A thread that panics aborts the process (the hook of the command line), or in a library that unwinds, drops its end
//!   of the `alive` socket, and the run loop kills the command. A call that is never answered never returns.
//! - The supervisor's death closes the listener: waiting calls fail with ENOSYS, and the tree is killed.

mod aliases;
mod allow_table;
mod answer_cache;
mod asking;
mod atomic_saves;
mod call;
mod call_effect;
mod call_recorder;
mod created_files;
mod decide_open;
mod decision_log;
mod delayed_answers;
pub(crate) mod emulate;
mod inotify;
mod job;
mod non_open_calls;
mod pin_path;
mod process;
mod question_queue;
mod receiver;
mod refusals;
mod shared;
mod socketpair;
mod temp_names;
mod workers;

use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Inbox, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nono_audit::AuditLog;
use nono_audit::event::Restore;
use nono_checkpoint::supervisor_request::RemoteAction;
use nono_policy::{AccessMode, ResolvedPolicy};
use nono_sys::launch::Pairs;
use serde_json::Value;

use crate::approval::{ApprovalBackend, Asker, Subject};
use crate::error::ServiceError;
use crate::proxy_server::TakesListener;
use crate::recorded::Recorded;
use crate::report::{MediationReport, RefusalReason};
use crate::request_service::{RequestFailure, RequestReply, RequestService, StillWanted};
use crate::terminal_lease::TerminalLeases;
use crate::urls::{Redact, Urls};
use allow_table::Table;
use call::{OpenRequest, PathStart};
use call_recorder::CallRecorder;
use emulate::RequestSocket;
use job::{Job, Open, OpenSource};
use receiver::Receiver;
use shared::MediatorShared;
pub(crate) use workers::Workers;

/// Snapshots of the session, where it has any.
pub trait Snapshots: Debug + Send + Sync {
    /// Stores the content of a path before it is written to for the first time.
    fn before_write(&self, path: &Path) -> Result<(), ServiceError>;

    /// Takes a snapshot now; returns its number.
    fn checkpoint(&self, reason: &str) -> Result<u64, ServiceError>;

    /// Restores `paths` (all, if empty).
    fn restore(&self, snapshot: u64, paths: &[PathBuf]) -> Result<Restored, ServiceError>;
}

/// Checkpoints of projects, for requests from inside the sandbox, which are untrusted.
pub trait CheckpointService: Debug + Send + Sync {
    /// Carries an action out and returns its answer. Nothing is restored before `agree` allowed it; `agree` gets what
    /// the restore would do, and may take as long as a person needs.
    fn carry_out(&self, action: RemoteAction, agree: &RestoreConsent<'_>) -> Result<Value, RequestFailure>;
}

/// Asks whether the user agrees to a restore.
pub type RestoreConsent<'a> = dyn Fn(Subject) -> Result<(), RequestFailure> + 'a;

/// Checkpoints of a run, and the approver of their restores.
#[derive(Clone, Debug)]
pub struct CheckpointAccess {
    pub histories: Arc<dyn CheckpointService>,
    pub backend: Arc<dyn ApprovalBackend>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Session whose files were restored.
    pub session: String,
    pub changed: u64,
    pub kept: u64,
    pub failed: u64,
    /// Summary, as a sentence.
    pub outcome: String,
}

#[derive(Debug)]
pub struct Mediate {
    pub policy: Arc<ResolvedPolicy>,
    /// File systems private to the command.
    pub private: Vec<PathBuf>,
    /// Directories of nono's own that the policy does not know.
    pub own: Vec<PathBuf>,
    /// Whether the command has a network of its own.
    pub own_network: bool,
    /// Whether the supervisor judges changes of owners, modes, times and attributes, because no mount enforces them.
    pub judges_metadata: bool,
    pub backend: Option<Arc<dyn ApprovalBackend>>,
    pub snapshots: Option<Arc<dyn Snapshots>>,
    /// Whether to record what the command does; opens are then neither asked about nor granted.
    pub record: bool,
    /// Log for decisions and denials.
    pub log: Option<Arc<AuditLog>>,
    /// Redaction of addresses there; without this they are not named.
    pub redact: Option<Redact>,
    /// Opener of addresses outside, if they may be opened.
    pub urls: Option<Urls>,
    /// Checkpoints, if the command may ask for them.
    pub history: Option<CheckpointAccess>,
    /// Server of the filtering proxy, where the command has a network of its own that is filtered.
    pub proxy: Option<Arc<dyn TakesListener>>,
}

/// Descriptors that init handed over.
pub(crate) struct InitHandover {
    pub(crate) listener: OwnedFd,
    pub(crate) root: OwnedFd,
    pub(crate) socket_list: OwnedFd,
    pub(crate) pairs: Pairs,
    /// Pid of init in the supervisor's pid namespace.
    pub(crate) init: i32,
}

/// Maximum number of queued jobs. A thread of the command has at most one.
const MOST_JOBS: usize = 1024;
const CLERKS: usize = 3;

/// Names of the threads.
const CLERK: &str = "nono-clerk";
const ASK: &str = "nono-ask";
const PENALTY: &str = "nono-penalty";
const RECEIVE: &str = "nono-receive";

/// Number of threads for jobs. One is enough where nothing is asked; every further thread costs startup time.
fn clerks(asks: bool) -> usize {
    if asks { CLERKS } else { 1 }
}

impl Mediate {
    /// Names of the threads that will answer.
    pub(crate) fn workers(&self) -> Vec<&'static str> {
        let asks = self.backend.is_some() || self.record;
        let mut names = vec![CLERK; clerks(asks)];
        names.extend(asks.then_some(ASK));
        names.extend([PENALTY, RECEIVE]);
        names
    }
}

/// Mediator before its threads start, which happens once the request socket is served.
pub(crate) struct Mediator {
    shared: Arc<MediatorShared>,
    table: Table,
    jobs: SyncSender<Job>,
    inbox: Inbox<Job>,
}

/// Running mediator: its threads, while the command runs.
pub(crate) struct Mediating {
    shared: Arc<MediatorShared>,
    jobs: SyncSender<Job>,
    threads: Vec<JoinHandle<()>>,
    clerks: usize,
    /// Closed on the other side when the receiver has ended.
    alive: UnixStream,
}

impl Mediator {
    pub(crate) fn new(
        mediate: Mediate,
        handed: InitHandover,
        leases: Option<TerminalLeases>,
    ) -> io::Result<Mediator> {
        let mut table = Table::new(&mediate.policy);
        table.allow(&mediate.private);
        let shared = Arc::new(MediatorShared::new(mediate, handed, leases)?);
        let (jobs, inbox) = sync_channel(MOST_JOBS);
        Ok(Mediator { shared, table, jobs, inbox })
    }

    /// Sets the address of the filtering proxy. Must be called before the first call.
    pub(crate) fn open_proxy(&self, address: Option<SocketAddrV4>) {
        self.shared.scene.set_proxy(address);
    }

    /// Handler of requests on the sockets, and of status reports.
    pub(crate) fn request_service(&self) -> Arc<dyn RequestService> {
        Arc::new(MediatorRequests { shared: self.shared.clone(), jobs: self.jobs.clone() })
    }

    /// Begins to answer, with the threads that [`Mediate::workers`] names. `socket` is that of the requests.
    pub(crate) fn start(
        self,
        socket: Option<Arc<dyn RequestSocket>>,
        mut workers: Workers,
    ) -> io::Result<Mediating> {
        let Mediator { shared, table, jobs, inbox } = self;
        shared.scene.set_request_socket(socket);
        let inbox = Arc::new(Mutex::new(inbox));
        let (alive, receiving) = UnixStream::pair()?;
        let asks = shared.backend.is_some() || shared.recorder.is_some();
        let clerks = clerks(asks);
        for _ in 0..clerks {
            let (shared, inbox) = (shared.clone(), inbox.clone());
            workers.give(CLERK, move || clerk_turns(&shared, &inbox))?;
        }
        if asks {
            let asker = shared.clone();
            workers.give(ASK, move || asker.ask_in_turn())?;
        }
        let penal = shared.clone();
        workers.give(PENALTY, move || penal.penalty.serve(&penal.listener))?;
        let receiver = Receiver::new(shared.clone(), table, jobs.clone());
        workers.give(RECEIVE, move || {
            if receiver.serve() {
                // Marks a regular end: without it the remaining processes are killed.
                let _ = (&receiving).write_all(b".");
            }
        })?;
        let threads = workers.wait()?;
        Ok(Mediating { shared, jobs, threads, clerks, alive })
    }
}

impl Mediating {
    /// Descriptor that becomes readable when trapped calls are not answered any more.
    pub(crate) fn ended(&self) -> BorrowedFd<'_> {
        self.alive.as_fd()
    }

    /// Whether that is because no process is left that could make one.
    pub(crate) fn ended_well(&self) -> bool {
        (&self.alive).read(&mut [0]).is_ok_and(|read| read == 1)
    }

    /// Bytes that wait in the command's unix sockets; an error counts as zero.
    pub(crate) fn unix_memory(&self) -> u64 {
        self.shared.scene.unix_memory().unwrap_or(0)
    }

    /// Ends the threads once the command's processes are gone, and returns the report.
    pub(crate) fn finish(self) -> (MediationReport, Option<Recorded>) {
        for waiter in self.shared.questions.end() {
            self.shared
                .refuse_waiter(waiter, RefusalReason::NoAnswer { why: "the command ended".to_owned() });
        }
        self.shared.penalty.end();
        self.shared.scene.set_request_socket(None);
        for _ in 0..self.clerks {
            // The thread may have ended already.
            let _ = self.jobs.send(Job::End);
        }
        self.shared.note_created_left();
        let report = self.shared.report();
        for thread in self.threads {
            // A thread that panicked has no result; the loop has ended the command by then.
            let _ = thread.join();
        }
        (report, self.shared.recorder.as_ref().map(CallRecorder::recorded))
    }
}

fn clerk_turns(shared: &Arc<MediatorShared>, inbox: &Mutex<Inbox<Job>>) {
    loop {
        let job = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(Job::Open(open)) => shared.open(open),
            Ok(Job::Call(call)) => shared.other(&call),
            Ok(Job::End) | Err(_) => return,
        }
    }
}

/// Handler of requests on the sockets.
struct MediatorRequests {
    shared: Arc<MediatorShared>,
    jobs: SyncSender<Job>,
}

/// Interval at which the client is checked to be still waiting.
const LOOK: Duration = Duration::from_millis(100);

impl RequestService for MediatorRequests {
    fn capability(
        &self,
        asker: &Asker,
        path: PathBuf,
        access: AccessMode,
        reason: Option<String>,
        wanted: &StillWanted<'_>,
    ) -> RequestReply {
        use std::os::unix::ffi::OsStringExt;
        let flags = match access {
            AccessMode::Read => libc::O_RDONLY,
            AccessMode::Write => libc::O_WRONLY | libc::O_CREAT,
            AccessMode::ReadWrite => libc::O_RDWR | libc::O_CREAT,
        };
        let (reply, answer) = sync_channel(1);
        let gone = Arc::new(AtomicBool::new(false));
        let open = Open {
            source: OpenSource::Request { asker: asker.clone(), reason, reply, gone: gone.clone() },
            start: PathStart::WorkingDirectory,
            path: path.into_os_string().into_vec(),
            how: OpenRequest { flags, mode: 0o666, resolve: 0 },
            remember: None,
            replaces: None,
        };
        if self.jobs.try_send(Job::Open(open)).is_err() {
            return RequestReply::Denied { because: RefusalReason::TooMany };
        }
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Timeout) if wanted() => {}
                Err(_) => {
                    gone.store(true, Ordering::Relaxed);
                    return RequestReply::Denied {
                        because: RefusalReason::NoAnswer { why: "the request was withdrawn".to_owned() },
                    };
                }
            }
        }
    }

    fn checkpoint(&self, _asker: &Asker, reason: &str) -> Result<u64, RequestFailure> {
        Ok(self.shared.snapshots.as_ref().ok_or(RequestFailure::NoSnapshots)?.checkpoint(reason)?)
    }

    fn restore(
        &self,
        asker: &Asker,
        snapshot: u64,
        paths: Vec<PathBuf>,
        wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        let snapshots = self.shared.snapshots.as_ref().ok_or(RequestFailure::NoSnapshots)?;
        self.shared.agree_to_restore(asker, snapshot, &paths, wanted)?;
        let restored = snapshots.restore(snapshot, &paths)?;
        let outcome = restored.outcome.clone();
        self.shared.journal.restored(Restore {
            time_ms: nono_sys::time::now_ms(),
            session_id: restored.session,
            snapshot: snapshot.to_string(),
            paths,
            restored: restored.changed,
            kept: restored.kept,
            failed: restored.failed,
            outcome: restored.outcome,
        });
        Ok(outcome)
    }

    fn history(
        &self,
        asker: &Asker,
        action: RemoteAction,
        wanted: &StillWanted<'_>,
    ) -> Result<Value, RequestFailure> {
        let history = self.shared.history.as_ref().ok_or(RequestFailure::NoHistories)?;
        let agree = |subject| self.shared.agree_to_checkpoint(history, asker, subject, wanted);
        history.histories.carry_out(action, &agree)
    }

    fn open_url(&self, asker: &Asker, url: &str, wanted: &StillWanted<'_>) -> Result<String, RequestFailure> {
        self.shared.open_url(asker, url, wanted)
    }

    fn refusal(&self, path: &Path, access: AccessMode) -> Option<String> {
        self.shared.answers().refused_by(path, access)
    }

    fn report(&self) -> MediationReport {
        self.shared.report()
    }

    fn waiting(&self) -> u64 {
        self.shared.questions.waiting()
    }
}
