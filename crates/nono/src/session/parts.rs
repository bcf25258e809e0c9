//! Parts of a run beside the command itself: each is planned, begins before the command, and is finished after it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nono_agents::saved::SavedReport;
use nono_catalogue::rollback::ending::Ending;
use nono_catalogue::rollback::periodic_snapshots::Watching;
use nono_policy::ResolvedPolicy;
use nono_sandbox::Prepared;
use nono_supervisor::approval::ApprovalBackend;
use nono_supervisor::channel::Channels;
use nono_supervisor::mediate::Mediate;
use nono_supervisor::urls::{Redact, UrlOpener, Urls};
use nono_supervisor::{RunError, RunOutcome, TakesListener};
use nono_sys::process::Signals;

use super::agent_files::AgentFiles;
use super::asking;
use super::audit_log::{AuditPlan, AuditReport, LogStart, RunLog};
use super::capture_observer::Capturing;
use super::channels::Sockets;
use super::checkpoints::{CheckpointsReport, Planned, Protecting, Sweeper};
use super::created_dirs::CreatedDirs;
use super::egress::Connection;
use super::error::SessionError;
use super::folder::SessionFolder;
use super::learning::Watched;
use super::observer::RunObserver;
use super::rollback_options::begin;
use crate::control::SessionSocket;
use crate::network::{Network, NetworkReport};
use crate::rollback::RollbackReport;
use crate::rollback::tracking::TrackingPlan;

#[derive(Debug)]
pub(super) struct PlannedParts {
    /// Set when the run is audited.
    pub(super) audit: Option<AuditPlan>,
    /// Set when snapshots are taken.
    pub(super) tracking: Option<TrackingPlan>,
    /// Set when the network is filtered by host.
    pub(super) network: Option<Connection>,
    /// Set when checkpoints are taken.
    pub(super) checkpoints: Option<Planned>,
    pub(super) sweeper: Option<Sweeper>,
    pub(super) asking: PlannedAsking,
    /// Set when the run is supervised.
    pub(super) sockets: Option<Sockets>,
    /// Set when the run is recorded for `nono learn`.
    pub(super) watched: Option<Watched>,
    /// Stand-ins and copies of agents' files.
    pub(super) agent_files: AgentFiles,
}

/// Approvers of what the command may request while it runs.
#[derive(Debug)]
pub(super) struct PlannedAsking {
    /// Approver of access beyond the grants, where that may be requested.
    pub(super) opens: Option<Arc<dyn ApprovalBackend>>,
    /// Opener of web addresses, and the approver for them.
    pub(super) urls: Option<(Arc<dyn UrlOpener>, Arc<dyn ApprovalBackend>)>,
    /// Approver of restores requested from inside the sandbox.
    pub(super) restores: Arc<dyn ApprovalBackend>,
    /// nono's own folders and secret files; never granted.
    pub(super) own: Vec<PathBuf>,
}

/// Facts about the run that its parts record.
pub(super) struct RunFacts<'a> {
    pub(super) folder: &'a SessionFolder,
    pub(super) name: Option<&'a str>,
    /// The command with secrets redacted.
    pub(super) shown: &'a [String],
    pub(super) program: &'a Path,
    pub(super) policy: &'a Arc<ResolvedPolicy>,
}

impl PlannedParts {
    /// Open the log, take the baseline, start the filter of the network, take checkpoints.
    pub(super) fn begin(
        self,
        run: &RunFacts<'_>,
        signals: &Arc<Signals>,
        observer: &Arc<dyn RunObserver>,
    ) -> Result<RunningParts, SessionError> {
        let PlannedParts { audit, mut tracking, network, checkpoints, sweeper, asking, sockets, .. } = self;
        let log = audit.map(|plan| RunLog::begin(plan, &run.log_start(tracking.as_ref()))).transpose()?;
        let log = log.map(Arc::new);
        if let (Some(log), Some(plan)) = (&log, &mut tracking) {
            plan.recorder = log.clone();
        }
        let begun = tracking.map(|plan| begin(&plan, signals, observer)).transpose().and_then(|tracked| {
            let network = network.map(|network| network.open(run.policy, run.folder, log.as_ref()));
            Ok((tracked, network.transpose()?.map(Arc::new)))
        });
        let (tracked, network) = begun.inspect_err(|error| not_begun(log.as_deref(), error))?;
        let checkpoints =
            checkpoints.map(|plan| plan.begin(&run.folder.id, run.shown, run.policy, log.clone()));
        asking.begin(&run.folder.id, checkpoints.is_some());
        let (channels, listed) = sockets.map(|sockets| (sockets.channels, sockets.place)).unzip();
        let (watched, agent_files) = (self.watched, self.agent_files);
        let listed = listed.flatten();
        Ok(RunningParts {
            log,
            tracked,
            network,
            checkpoints,
            sweeper,
            asking,
            channels,
            listed,
            watched,
            agent_files,
        })
    }
}

impl RunFacts<'_> {
    fn log_start<'a>(&'a self, tracking: Option<&'a TrackingPlan>) -> LogStart<'a> {
        LogStart {
            id: &self.folder.id,
            name: self.name,
            command: self.shown,
            program: self.program,
            policy: self.policy,
            tracked: tracking.map(|plan| plan.roots.as_slice()),
        }
    }
}

impl PlannedAsking {
    /// Tell each approver which session will ask. `restores`: whether restores can be requested.
    fn begin(&self, session: &str, restores: bool) {
        let of_urls = self.urls.iter().map(|(_, backend)| backend);
        let of_restores = restores.then_some(&self.restores);
        for backend in self.opens.iter().chain(of_urls).chain(of_restores) {
            backend.begin(session);
        }
    }
}

/// Record in the log that the command was not run, and close it.
fn not_begun(log: Option<&RunLog>, error: &SessionError) {
    if let Some(log) = log {
        log.warn(format!("the command was not run: {error}"));
        log.report();
    }
}

/// The parts while the command runs.
pub(super) struct RunningParts {
    log: Option<Arc<RunLog>>,
    tracked: Option<(Watching, Ending)>,
    network: Option<Arc<Network>>,
    checkpoints: Option<Arc<Protecting>>,
    sweeper: Option<Sweeper>,
    asking: PlannedAsking,
    channels: Option<Channels>,
    /// The session's entry for `nono ps`.
    listed: Option<SessionSocket>,
    watched: Option<Watched>,
    agent_files: AgentFiles,
}

impl RunningParts {
    /// Point the command to the filter of its network.
    pub(super) fn apply(&self, env: &mut Vec<(OsString, OsString)>) {
        if let Some(network) = &self.network {
            network.apply(env);
        }
    }

    /// The sockets that the supervisor serves. Once.
    pub(super) fn channels(&mut self) -> Option<Channels> {
        self.channels.take()
    }

    /// The supervisor's mediation settings for this run. Once.
    pub(super) fn mediate(&mut self, policy: Arc<ResolvedPolicy>, prepared: &Prepared) -> Mediate {
        let live = self.tracked.as_ref().map(|(watching, _)| watching.live());
        let PlannedAsking { opens, urls, restores, own } = &mut self.asking;
        let own = std::mem::take(own);
        let redactor = self.log.as_ref().map(|log| log.redactor.clone());
        Mediate {
            record: self.watched.is_some(),
            log: self.log.as_ref().map(|log| log.log.clone()),
            redact: redactor.map(|redactor| Redact::new(move |url| redactor.url(url))),
            urls: urls.take().map(|(opener, backend)| Urls { opener, backend }),
            history: self.checkpoints.as_ref().map(|protecting| protecting.history(restores.clone())),
            proxy: self.network.clone().map(|network| network as Arc<dyn TakesListener>),
            ..asking::mediate(policy, prepared, own, opens.take(), live)
        }
    }

    /// Finish each part, in the order in which one needs another: the log is open until all have written to it.
    pub(super) fn finish(
        self,
        outcome: &Result<RunOutcome, RunError>,
        signals: &Arc<Signals>,
        observer: &Arc<dyn RunObserver>,
    ) -> FinishedParts {
        // Nothing runs any more: the session need not be listed during the last snapshot, and the stand-ins must
        // not be in it.
        drop(self.listed);
        let (saved, made) = self.agent_files.finish();
        let network = self.network.map(|network| network.finish());
        write_end(self.log.as_deref(), network.as_ref(), outcome);
        let checkpoints = self.checkpoints.map(|protecting| protecting.finish());
        self.sweeper.inspect(|sweeper| sweeper.sweep(self.log.as_deref()));
        let rollback = self.tracked.map(|(watching, ending)| {
            let ended = outcome.as_ref().ok().map(|outcome| outcome.ended.exit_code());
            let last = Arc::new(Capturing::last(signals.clone(), observer.clone()));
            let others = checkpoints.as_ref().and_then(|report| report.others.clone());
            ending.with_others(others).finish(watching, ended, last, observer.wants_list())
        });
        let audit = self.log.map(|log| log.report());
        FinishedParts { rollback, network, checkpoints, audit, saved, watched: self.watched, _made: made }
    }
}

pub(super) struct FinishedParts {
    pub(super) rollback: Option<RollbackReport>,
    pub(super) network: Option<NetworkReport>,
    pub(super) checkpoints: Option<CheckpointsReport>,
    pub(super) audit: Option<AuditReport>,
    pub(super) saved: Vec<SavedReport>,
    pub(super) watched: Option<Watched>,
    /// Directories made for the command, which are removed with this value if they stayed empty.
    _made: CreatedDirs,
}

fn write_end(log: Option<&RunLog>, network: Option<&NetworkReport>, outcome: &Result<RunOutcome, RunError>) {
    let Some(log) = log else { return };
    // Events that the network filter could not report.
    if let Some(lost) = network.and_then(NetworkReport::missing) {
        log.warn(lost);
    }
    log.ended(outcome);
}
