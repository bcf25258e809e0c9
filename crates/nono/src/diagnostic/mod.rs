//! Why a command may have failed, in words that a person or an agent can act on.
//!
//! [`diagnose`] is pure apart from looking whether a named path exists: lines in which the command complained are held
//! against the policy, and only what the policy really closes is called a denial. [`DiagnosticFormatter`] turns the
//! findings into lines or JSON.

mod format;
mod paths;

use std::path::{Path, PathBuf};

use nono_policy::{
    AccessMode, DeniedReason, HostFacts, NetworkPolicy, QueryResult, ResolvedPolicy, query_path_on,
};
use nono_supervisor::{About, Complaint, Outcome};
use serde::Serialize;

pub use format::{DiagnosticFormatter, escape, quote_all, shown, words};

/// One thing the sandbox refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    pub path: PathBuf,
    pub operation: AccessMode,
    pub reason: DeniedReason,
    /// The flags that open exactly this, where any do.
    pub flags: Vec<String>,
}

/// What was found out about a failed command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    pub denials: Vec<Denial>,
    /// It complained about the network, which is closed.
    pub network: bool,
}

/// Hold what the command said against its policy.
pub fn diagnose(outcome: &Outcome, policy: &ResolvedPolicy) -> Findings {
    let mut findings = Findings::default();
    for complaint in &outcome.complaints {
        match complaint.about {
            About::Network => findings.network |= policy.network != NetworkPolicy::Allowed,
            About::Access => {
                for denial in denials(complaint, policy) {
                    if !findings.denials.contains(&denial) {
                        findings.denials.push(denial);
                    }
                }
            }
        }
    }
    findings
}

fn denials(complaint: &Complaint, policy: &ResolvedPolicy) -> Vec<Denial> {
    let first = paths::likely_operation(&complaint.line);
    let other = if first == AccessMode::Read { AccessMode::Write } else { AccessMode::Read };
    paths::candidates(&complaint.line)
        .into_iter()
        .filter_map(|path| {
            let path = policy.workdir.join(path);
            // What is not there was missing, not refused, unless the line speaks of making it.
            let there = path.symlink_metadata().is_ok();
            let makeable = first == AccessMode::Write && path.parent().is_some_and(Path::is_dir);
            let operations: &[AccessMode] = if there { &[first, other] } else { &[first] };
            (there || makeable).then(|| operations.iter().find_map(|op| denial(&path, *op, policy))).flatten()
        })
        .collect()
}

/// The denial of `operation` on `path`, if the policy is what closes it.
fn denial(path: &Path, operation: AccessMode, policy: &ResolvedPolicy) -> Option<Denial> {
    match query_path_on(policy, &HostFacts, &policy.workdir, path, operation) {
        QueryResult::Allowed { .. } => None,
        // The user may not do it outside the sandbox either: no flag would help.
        QueryResult::Denied { .. }
            if !nono_sys::process::can_access(path, operation.reads(), operation.writes()) =>
        {
            None
        }
        QueryResult::Denied { reason, suggestion, .. } => Some(Denial {
            path: path.to_owned(),
            operation,
            reason,
            flags: suggestion.map(|suggestion| suggestion.flags).unwrap_or_default(),
        }),
    }
}
