//! Summary of approvals after a run.

use nono::diagnostic::shown;
use nono::session::SessionReport;
use nono::{Ended, Findings};

/// Maximum number of grants listed without `-v`.
const NAMED: usize = 3;

/// One line for grants; one for requests denied without asking, where no footer mentions them.
pub(super) fn lines(report: &SessionReport, verbose: bool) -> Vec<String> {
    let Findings { expansions, too_many, .. } = &report.findings;
    let mut lines = Vec::new();
    if !expansions.is_empty() {
        let named = if verbose { expansions.len() } else { NAMED };
        let named = expansions.iter().take(named);
        let grants: Vec<String> =
            named.map(|grant| format!("{} {}", grant.access, shown(&grant.path))).collect();
        let more = match expansions.len() - grants.len() {
            0 => String::new(),
            more => format!(" ({more} more with -v)"),
        };
        lines.push(format!("granted while it ran: {}{more}", grants.join(", ")));
    }
    if *too_many > 0 && report.ended == Ended::Code(0) {
        let requests = if *too_many == 1 { "request" } else { "requests" };
        lines.push(format!("denied without asking, too many at once: {too_many} {requests}"));
    }
    lines
}
