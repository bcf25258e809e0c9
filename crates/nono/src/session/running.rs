//! The run itself: from a [`Session`] to a [`SessionReport`].

use std::sync::Arc;

use nono_supervisor::RunError;
use nono_sys::process::Signals;

use super::error::SessionError;
use super::observer::RunObserver;
use super::parts::RunFacts;
use super::report::SessionReport;
use super::{Session, host_streams};
use crate::diagnostic::diagnose;

/// Run a supervised or monitored session to its end.
pub fn run(session: Session, observer: &Arc<dyn RunObserver>) -> Result<SessionReport, SessionError> {
    // Before any thread starts: from here on signals are read as data, also while a snapshot is taken.
    let signals = Arc::new(signals(session.guest.is_some())?);
    let Session { policy, mut command, options, folder, prepared, name, shown, parts, guest, .. } = session;
    let policy = Arc::new(policy);
    let (name, program) = (name.as_deref(), command.program.as_path());
    let facts = RunFacts { folder: &folder, name, shown: &shown, program, policy: &policy };
    let mut running = parts.begin(&facts, &signals, observer)?;
    running.apply(&mut command.env);
    let mediate = running.mediate(policy.clone(), &prepared);
    let channels = running.channels();
    let (captured, outcome) = host_streams::run(guest, &**observer, &options, |options| {
        nono_supervisor::run(&prepared, &command, options, &signals, mediate, channels)
    });
    let finished = running.finish(&outcome, &signals, observer);
    let outcome = outcome?;
    let findings = diagnose(&outcome, &policy).with_network(finished.network.as_ref());
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
        rollback: finished.rollback,
        learned: finished.watched.zip(outcome.recorded).map(|(watched, recorded)| watched.learned(recorded)),
        audit: finished.audit,
        network: finished.network,
        checkpoints: finished.checkpoints,
        saved: finished.saved,
    })
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

/// Replace this process by the command (direct mode). Returns only on failure; the caller must exit then.
pub fn replace(session: Session) -> SessionError {
    let Session { command, folder, prepared, parts, .. } = session;
    let dir = folder.dir.clone();
    folder.leave();
    parts.agent_files.leave();
    let error = nono_supervisor::replace(&prepared, &command);
    // May fail, since this process is partly confined by now; the next run removes the folder.
    let _ = nono_sys::fs::remove_tree(&dir);
    error.into()
}
