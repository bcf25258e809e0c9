//! Services that run beside the supervisor's event loop: the filtering proxy, the mediator, and the session's sockets.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use nono_sandbox::{Blueprint, ExecStrategy, ProxyPlace};
use nono_sys::launch::{HandedOver, LaunchError, Launched};

use crate::channel::{ChannelThreads, Channels, NoRequests};
use crate::error::{RunError, supervising};
use crate::mediate::emulate::RequestSocket;
use crate::mediate::{InitHandover, Mediate, Mediating, Mediator, Workers};
use crate::proxy_server::TakesListener;
use crate::request_service::RequestService;
use crate::terminal_lease::TerminalLeases;

/// Lets the command start and waits until it has. Meanwhile the threads that will answer its trapped calls are started,
/// except in a process that confines itself, whose threads must be confined too.
pub(crate) fn begin(
    launched: &Launched,
    blueprint: &Blueprint,
    mediate: &Mediate,
    failed: impl Fn(LaunchError) -> RunError + Copy,
) -> Result<Option<Workers>, RunError> {
    serve_proxy(launched, blueprint.proxy, mediate.proxy.as_deref(), failed)?;
    launched.begin().map_err(failed)?;
    let ahead = blueprint.mediated().any() && blueprint.strategy != ExecStrategy::Monitor;
    let workers = ahead.then(|| Workers::start(&mediate.workers()));
    let workers = workers.transpose().map_err(supervising("answer trapped calls"))?;
    launched.begun().map_err(failed)?;
    Ok(workers)
}

/// Hands the proxy its listener where the command has a network of its own: it must serve before the command starts. On
/// the host's network it serves already.
fn serve_proxy(
    launched: &Launched,
    proxy: Option<ProxyPlace>,
    server: Option<&dyn TakesListener>,
    failed: impl Fn(LaunchError) -> RunError,
) -> Result<(), RunError> {
    if !matches!(proxy, Some(ProxyPlace::Own { .. })) {
        return Ok(());
    }
    let listener = launched.serving().map_err(failed)?;
    let no_proxy = |source| RunError::Proxy { source };
    let server = server.ok_or_else(|| no_proxy("no proxy was given to serve it".into()))?;
    server.take(listener).map_err(no_proxy)
}

/// Services that run in threads of their own: the mediator and the session's sockets.
pub(crate) struct Services {
    pub(crate) mediating: Option<Mediating>,
    pub(crate) served: Option<ChannelThreads>,
    pub(crate) terminal: Option<OwnedFd>,
}

impl Services {
    /// Starts the services. `mediate` is set where calls are trapped, with the threads already started for it, if any.
    pub(crate) fn new(
        launched: &Launched,
        mediate: Option<(Mediate, Option<Workers>)>,
        proxy: Option<ProxyPlace>,
        leases: Option<TerminalLeases>,
        channels: Option<Channels>,
    ) -> Result<Services, RunError> {
        let init = launched.pid.unsigned_abs();
        let attend = |channels, request_service: Arc<dyn RequestService>| {
            ChannelThreads::open(channels, request_service, init)
                .map_err(supervising("serve the session's sockets"))
        };
        let Some((mediate, workers)) = mediate else {
            let served = channels.map(|channels| attend(channels, Arc::new(NoRequests))).transpose()?;
            return Ok(Services { mediating: None, served, terminal: None });
        };
        let HandedOver { listener, root, socket_list, pairs, terminal } =
            launched.hand_over().map_err(supervising("take over the trapped calls"))?;
        let handed = InitHandover { listener, root, socket_list, pairs, init: launched.pid };
        let failed = || supervising("answer trapped calls");
        let workers = workers.map_or_else(|| Workers::start(&mediate.workers()), Ok).map_err(failed())?;
        let mediator = Mediator::new(mediate, handed, leases).map_err(failed())?;
        mediator.open_proxy(proxy.and_then(ProxyPlace::address));
        let served = channels.map(|channels| attend(channels, mediator.request_service())).transpose()?;
        let connector = served.as_ref().map(|served| Arc::new(served.connector()) as Arc<dyn RequestSocket>);
        let mediating = mediator.start(connector, workers).map_err(failed())?;
        Ok(Services { mediating: Some(mediating), served, terminal })
    }
}
