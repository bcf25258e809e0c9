//! An agent that has nono's hooks and never called one: what it did has no turns, and nobody would know.

use nono::hooks::agents::Agent;
use nono::hooks::install::{self, State};
use nono::session::{Host, SessionReport};
use nono::snapshot::ChangeCounts;

use super::hooks;

/// What is said at the end of such a run. A program that starts the agent by itself (an SDK) may leave its settings out.
pub(super) fn line(report: &SessionReport, host: &Host) -> Option<String> {
    report.checkpoints.as_ref().filter(|checkpoints| !checkpoints.heard)?;
    let changed = report.rollback.as_ref()?.changes.as_ref().ok()?;
    if changed.counts == ChangeCounts::default() {
        return None;
    }
    let agent: Agent = report.policy.profiles.iter().find_map(|name| name.parse().ok())?;
    // Where they cannot be looked at, nothing is known.
    let status = install::status(&hooks::for_user(agent, host).ok()?).ok()?;
    (status.state == State::Installed).then(|| {
        format!(
            "warning: files changed, and no hook of {} was called: there is a checkpoint before the run, and none of its \
             turns; let it read your settings (Agent SDK: setting_sources=[\"user\"])",
            agent.title()
        )
    })
}
