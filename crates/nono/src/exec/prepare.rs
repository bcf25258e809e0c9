//! Preparation of one command: compiled sandbox, private folder, and support of this machine.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nono_policy::resolved::{ClosedBy, ClosedHow, ClosedPath, NetworkPolicy, PathKind, ResolvedPolicy};
use nono_policy::{CapabilitySet, is_within};
use nono_sandbox::{
    Blueprint, ExecStrategy, Mediation, Namespaces, PlanError, Prepared, ProxyPlace, Refusal, Support,
    compile,
};
use nono_supervisor::mediate::Mediate;
use nono_supervisor::{CommandSpec, Options, RunError, RunOutcome, ServiceError, TakesListener};
use nono_sys::process::Signals;
use thiserror::Error;

use super::{ExecError, ExecHost, ExecRequest, Proxy, system};
use crate::session::check::{self, CheckError};
use crate::session::{SessionFolder, is_confined, mediate};

/// Reasons why the sandbox cannot be prepared. All but the last are outcomes: the kernel cannot enforce this set.
#[derive(Debug, Error)]
pub(super) enum GroundFailure {
    #[error("{} is nono's own state, which is never granted", .0.display())]
    OwnState(PathBuf),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Error(#[from] ExecError),
}

pub(super) struct PreparedCommand {
    prepared: Prepared,
    mediate: Mediate,
    /// Serves the proxy as long as the command runs.
    _served: Option<Arc<Served>>,
    /// Present where the command has its own mounts; removed when dropped.
    _folder: Option<SessionFolder>,
}

impl PreparedCommand {
    pub(super) fn new(
        caps: &CapabilitySet,
        request: &ExecRequest<'_>,
        host: &ExecHost,
        workdir: PathBuf,
    ) -> Result<PreparedCommand, GroundFailure> {
        let mut policy = caps.to_policy().map_err(ExecError::from)?;
        policy.workdir = workdir;
        let proxy = request.proxy.clone();
        if proxy.is_some() {
            policy.hosts.clear();
            policy.network =
                NetworkPolicy::Filtered { hosts: Vec::new(), connect: Vec::new(), listen: Vec::new() };
        } else if matches!(policy.network, NetworkPolicy::Filtered { .. }) {
            return Err(ExecError::NoProxy.into());
        }
        let failed = |source| ExecError::Folder { base: host.session_base.clone(), source };
        let (support, mut folder) = match support(host)? {
            support if matches!(support.namespaces, Namespaces::Available { .. }) => {
                (support, Some(SessionFolder::create(&host.session_base).map_err(failed)?))
            }
            support => (support, None),
        };
        if let Some(state) = host.state_dir.as_ref().and_then(|path| path.canonicalize().ok()) {
            close(&mut policy, &state)?;
        }
        if let Some(folder) = &mut folder {
            folder.close_usual_bases(&policy);
        }
        let paths = folder.as_ref().map(SessionFolder::paths).unwrap_or_default();
        let blueprint = compile(&policy, &support, ExecStrategy::Supervised, &paths)?;
        let wish = Mediation { accept_weaker: host.nested, ..Mediation::default() };
        let blueprint = placed(blueprint.mediate(wish, &support)?, proxy.as_deref());
        let prepared = Prepared::new(blueprint, paths)?;
        let served = proxy.map(|proxy| Arc::new(Served { proxy, guard: Mutex::new(None) }));
        let server = served.clone().map(|served| served as Arc<dyn TakesListener>);
        let mediate =
            Mediate { proxy: server, ..mediate(Arc::new(policy), &prepared, host.own(), None, None) };
        Ok(PreparedCommand { prepared, mediate, _served: served, _folder: folder })
    }

    pub(super) fn run(
        self,
        command: &CommandSpec,
        options: &Options,
        signals: &Signals,
    ) -> Result<RunOutcome, RunError> {
        nono_supervisor::run(&self.prepared, command, options, signals, self.mediate, None)
    }
}

/// Set the proxy's port in the blueprint, on the loopback address of the host or of the command's network.
fn placed(blueprint: Blueprint, proxy: Option<&dyn Proxy>) -> Blueprint {
    let Some(proxy) = proxy else { return blueprint };
    let port = proxy.port();
    let address = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port);
    match blueprint.proxy {
        Some(ProxyPlace::Own { .. }) => blueprint.proxy_on(port),
        Some(ProxyPlace::Host(_)) => blueprint.proxy_at(address),
        None => blueprint,
    }
}

/// Proxy service for the command; ends when dropped.
struct Served {
    proxy: Arc<dyn Proxy>,
    guard: Mutex<Option<Box<dyn Send>>>,
}

impl TakesListener for Served {
    fn take(&self, listener: OwnedFd) -> Result<(), ServiceError> {
        // A proxy that was shut down drops the socket: connections to it are refused, as they are on the host.
        let guard = self.proxy.serve_also(listener).ok();
        *self.guard.lock().unwrap_or_else(PoisonError::into_inner) = guard;
        Ok(())
    }
}

/// Deny nono's own state, even inside a grant. (Session folders are covered by the mounts.)
fn close(policy: &mut ResolvedPolicy, path: &Path) -> Result<(), GroundFailure> {
    if let Some(grant) = policy.grants.iter().find(|grant| is_within(&grant.resolved, path)) {
        return Err(GroundFailure::OwnState(grant.original.clone()));
    }
    if policy.grants.iter().any(|grant| is_within(path, &grant.resolved)) {
        let (path, kind) = (path.to_owned(), PathKind::Directory);
        policy.closed.push(ClosedPath::new(path, ClosedBy::Nono, kind, ClosedHow::Mask));
    }
    Ok(())
}

/// Support of this machine. It does not change while a process runs, unless the process is confined meanwhile.
struct MachineSupport {
    confined: bool,
    support: Support,
}

static KNOWN: Mutex<Option<MachineSupport>> = Mutex::new(None);

/// Support of this machine, confirmed by a canary once per process. Never waits for the lock: in a process that was
/// forked while another thread held it, it is never released.
fn support(host: &ExecHost) -> Result<Support, GroundFailure> {
    let confined = is_confined();
    if let Ok(known) = KNOWN.try_lock()
        && let Some(known) = known.as_ref().filter(|known| known.confined == confined)
    {
        return Ok(known.support.clone());
    }
    // A signal that interrupts one of these processes would look like a failure.
    let _quiet = Signals::aside().map_err(system("block signals"))?;
    let support = nono_sandbox::support();
    if let Err(reason) = &support.landlock {
        return Err(Refusal::NoLandlock { reason: reason.clone() }.into());
    }
    if !host.nested {
        let failed = |source| ExecError::Folder { base: host.session_base.clone(), source };
        let folder = SessionFolder::create(&host.session_base).map_err(failed)?;
        check::verdict(check::try_canary(&support, &folder)?)?;
    }
    if let Ok(mut known) = KNOWN.try_lock() {
        *known = Some(MachineSupport { confined, support: support.clone() });
    }
    Ok(support)
}

impl Proxy for nono_proxy::Handle {
    fn port(&self) -> u16 {
        nono_proxy::Handle::port(self)
    }

    fn serve_also(&self, listener: OwnedFd) -> io::Result<Box<dyn Send>> {
        nono_proxy::Handle::serve_also(self, listener).map(|guard| Box::new(guard) as Box<dyn Send>)
    }
}
