//! Warning about an agent that has nono's hooks but called none, so that its changes belong to no turn.

use nono::hooks::agents::Agent;
use nono::hooks::install::{self, HookState};
use nono::session::{Host, SessionReport};
use nono::snapshot::ChangeCounts;

use super::hooks;

/// Warning at the end of such a run. A program that starts the agent (an SDK) may ignore the user's settings.
pub(super) fn line(report: &SessionReport, host: &Host) -> Option<String> {
    report.checkpoints.as_ref().filter(|checkpoints| !checkpoints.heard)?;
    let changed = report.rollback.as_ref()?.changes.as_ref().ok()?;
    if changed.counts == ChangeCounts::default() {
        return None;
    }
    let agent: Agent = report.policy.profiles.iter().find_map(|name| name.parse().ok())?;
    // No warning if the settings cannot be read.
    let status = install::status(&hooks::for_user(agent, host).ok()?).ok()?;
    (status.state == HookState::Installed).then(|| {
        format!(
            "warning: files changed, but {} called no hook: there is a checkpoint before the run, but none for its \
             turns; let it read your settings (Agent SDK: setting_sources=[\"user\"])",
            agent.title()
        )
    })
}
