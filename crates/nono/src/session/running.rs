//! The run itself: from a [`Session`] to a [`SessionReport`].

use std::sync::Arc;

use nono_snapshot::ChangedByOthers;
use nono_supervisor::mediate::Mediate;
use nono_supervisor::urls::{Redact, Urls};
use nono_supervisor::{RunError, RunOutcome, TakesListener};
use nono_sys::process::Signals;

use super::audit_log::{LogStart, RunLog};
use super::capture_observer::Capturing;
use super::checkpoints::CheckpointsReport;
use super::error::SessionError;
use super::exit_code::exit_code;
use super::observer::RunObserver;
use super::report::SessionReport;
use super::rollback_options::begin;
use super::{Session, asking, host_streams};
use crate::diagnostic::diagnose;
use crate::network::NetworkReport;

/// Run a supervised or monitored session to its end.
pub fn run(session: Session, observer: &Arc<dyn RunObserver>) -> Result<SessionReport, SessionError> {
    // Before any thread starts: from here on signals are read as data, also while a snapshot is taken.
    let signals = Arc::new(signals(session.guest.is_some())?);
    let Session {
        policy,
        mut command,
        options,
        folder,
        prepared,
        mut tracking,
        backend,
        own,
        sockets,
        watched,
        urls,
        book,
        connection,
        name,
        shown,
        agent_files,
        checkpoints,
        sweeper,
        approver,
        guest,
        ..
    } = session;
    let policy = Arc::new(policy);
    let start = LogStart {
        id: &folder.id,
        name: name.as_deref(),
        command: &shown,
        program: &command.program,
        policy: &policy,
        tracked: tracking.as_ref().map(|plan| plan.roots.as_slice()),
    };
    let trail = book.map(|book| RunLog::begin(book, &start)).transpose()?.map(Arc::new);
    if let (Some(trail), Some(plan)) = (&trail, &mut tracking) {
        plan.recorder = trail.clone();
    }
    let (channels, place) = sockets.map(|sockets| (sockets.channels, sockets.place)).unzip();
    let begun = tracking.map(|plan| begin(&plan, &signals, observer)).transpose().and_then(|tracked| {
        let network = connection.map(|connection| connection.open(&policy, &folder, trail.as_ref()));
        Ok((tracked, network.transpose()?.map(Arc::new)))
    });
    let (tracked, network) = begun.inspect_err(|error| not_begun(trail.as_deref(), error))?;
    if let Some(network) = &network {
        network.apply(&mut command.env);
    }
    let protecting = checkpoints.map(|planned| planned.begin(&folder.id, &shown, &policy, trail.clone()));
    let asked = protecting.iter().map(|_| &approver);
    for backend in backend.iter().chain(urls.iter().map(|(_, backend)| backend)).chain(asked) {
        backend.begin(&folder.id);
    }
    let live = tracked.as_ref().map(|(watching, _)| watching.live());
    let mediate = Mediate {
        record: watched.is_some(),
        log: trail.as_ref().map(|trail| trail.log()),
        redact: trail.as_deref().map(recorded),
        urls: urls.map(|(opener, backend)| Urls { opener, backend }),
        history: protecting.as_ref().map(|protecting| protecting.history(approver)),
        proxy: network.clone().map(|network| network as Arc<dyn TakesListener>),
        ..asking::mediate(policy.clone(), &prepared, own, backend, live)
    };
    let (captured, outcome) = host_streams::run(guest, &**observer, &options, |options| {
        nono_supervisor::run(&prepared, &command, options, &signals, mediate, channels)
    });
    // Nothing runs any more: the session need not be listed during the last snapshot, and the placeholders must not be
    // in it.
    drop(place);
    let (saved, _made) = agent_files.finish();
    // Before the log is closed: the last connections are recorded in it.
    let network = network.map(|network| network.finish());
    write_end(trail.as_deref(), network.as_ref(), &outcome);
    // Before the log is closed, which the last snapshot does.
    let checkpoints = protecting.map(|protecting| protecting.finish());
    sweeper.inspect(|sweeper| sweeper.sweep(trail.as_deref()));
    let rollback = tracked.map(|(watching, ending)| {
        let ended = outcome.as_ref().ok().map(|outcome| exit_code(outcome.ended));
        let last = Arc::new(Capturing::last(signals.clone(), observer.clone()));
        ending.with_others(others(checkpoints.as_ref())).finish(watching, ended, last, observer.wants_list())
    });
    let audit = trail.map(|trail| trail.report());
    let outcome = outcome?;
    let findings = diagnose(&outcome, &policy).with_network(network.as_ref());
    Ok(SessionReport {
        mediation: outcome.mediation,
        session_id: folder.id.clone(),
        // All other owners of the `Arc` are gone by now.
        policy: Arc::unwrap_or_clone(policy),
        ended: outcome.ended,
        limit: outcome.limit,
        memory_method: outcome.memory_method,
        stopped: outcome.stopped,
        cancelled: outcome.cancelled,
        captured,
        findings,
        rollback,
        learned: watched.zip(outcome.recorded).map(|(watched, recorded)| watched.learned(recorded)),
        audit,
        network,
        checkpoints,
        saved,
    })
}

fn others(checkpoints: Option<&CheckpointsReport>) -> Option<Vec<ChangedByOthers>> {
    checkpoints.and_then(|report| report.others.clone())
}

fn write_end(
    trail: Option<&RunLog>,
    network: Option<&NetworkReport>,
    outcome: &Result<RunOutcome, RunError>,
) {
    let Some(trail) = trail else { return };
    if let Some(network) = network {
        trail.network_ended(network);
    }
    trail.ended(outcome);
}

/// Signals as data for a process of our own. A host program keeps its handlers; only the threads of the run block
/// signals.
fn signals(guest: bool) -> Result<Signals, RunError> {
    if guest {
        let failed = |source| RunError::Supervise { what: "block signals", source };
        return Signals::aside().map_err(failed);
    }
    nono_supervisor::take_signals()
}

/// Record in the log that the command was not run, and close it.
fn not_begun(trail: Option<&RunLog>, error: &SessionError) {
    if let Some(trail) = trail {
        trail.warn(format!("the command was not run: {error}"));
        trail.report();
    }
}

/// Redaction of URLs for the log.
fn recorded(trail: &RunLog) -> Redact {
    let redactor = trail.redactor();
    Redact::new(move |url| redactor.url(url))
}

/// Replace this process by the command (direct mode). Returns only on failure; the caller must exit then.
pub fn replace(session: Session) -> SessionError {
    let Session { command, folder, prepared, agent_files, .. } = session;
    let dir = folder.dir.clone();
    folder.leave();
    agent_files.leave();
    let error = nono_supervisor::replace(&prepared, &command);
    // May fail, since this process is partly confined by now; the next run removes the folder.
    let _ = nono_sys::fs::remove_tree(&dir);
    error.into()
}
