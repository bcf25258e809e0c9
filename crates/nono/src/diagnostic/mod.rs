//! Explanation of a failed command, for a person or an agent to act on.
//!
//! [`diagnose`] is pure, except that it checks whether a named path exists. Denials by the supervisor are known exactly
//! and come first. Then error lines of the command are compared with the policy, and only what the policy really closes
//! is reported as a denial. [`DiagnosticFormatter`] turns the findings into lines or JSON.

pub mod agent;
mod denials;
mod format;
mod network;
mod paths;
mod probes;
mod sockets;
mod text;

use std::path::{Path, PathBuf};

use nono_policy::{
    AccessMode, HostFacts, NetworkPolicy, QueryResult, ResolvedPolicy, SOME_NAME, query_path_on,
};
use nono_supervisor::report::{DeniedAttempt, Expansion, RefusalReason};
use nono_supervisor::{Complaint, DenialKind, RunOutcome};
use nono_sys::wait::Ended;
use serde::Serialize;

pub use crate::network::HostDenied;
use crate::network::NetworkReport;
use paths::Candidate;

pub use nono_policy::text::{escape, quote_all, shown};

pub use format::DiagnosticFormatter;
pub use probes::is_no_question;
pub use sockets::socket_meaning;
pub use text::{attempt_words, because_words, closed_by, words};

/// One access that the sandbox denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    pub attempt: DeniedAttempt,
    pub because: RefusalReason,
    /// Flags that open exactly this, if any.
    pub flags: Vec<String>,
    /// The process that was denied; `None` if only an error line of the command told of it.
    pub seen: Option<DenialDetails>,
    /// Whether programs try this at every start and work without it.
    pub probe: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DenialDetails {
    /// The first program that was denied.
    #[serde(with = "nono_policy::path_serde")]
    pub program: PathBuf,
    pub pid: u32,
    pub count: u64,
}

/// A limit that the command probably ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Memory,
    Processes,
    FileSize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Denials; those known exactly come first.
    pub denials: Vec<Denial>,
    /// Number of denials beyond those listed.
    pub unlisted: u64,
    /// Requests denied without asking, because there were too many.
    pub too_many: u64,
    /// Grants made while the command ran.
    pub expansions: Vec<Expansion>,
    /// Number of questions asked.
    pub asked: u64,
    /// The command complained about the network, which is closed.
    pub network: bool,
    /// Hosts that the filtering proxy refused; see [`Findings::with_network`].
    pub hosts: Vec<HostDenied>,
    /// Refusals of the proxy beyond those listed.
    pub hosts_unlisted: u64,
    pub limits: Vec<Limit>,
    /// The command's stderr ended in the middle of a line.
    pub unfinished_line: bool,
}

impl Findings {
    /// Add what the filtering proxy refused.
    #[must_use]
    pub fn with_network(self, report: Option<&NetworkReport>) -> Findings {
        let (hosts, hosts_unlisted) =
            report.map(|report| (report.hosts.clone(), report.not_listed)).unwrap_or_default();
        Findings { hosts, hosts_unlisted, ..self }
    }
}

/// Explain a run by its mediation report and its error lines, compared with the policy.
pub fn diagnose(outcome: &RunOutcome, policy: &ResolvedPolicy) -> Findings {
    let mediation = &outcome.mediation;
    let mut findings = Findings {
        denials: denials::denials(&mediation.refused, policy),
        unlisted: mediation.refused_unlisted,
        too_many: denials::too_many(&mediation.refused),
        expansions: mediation.expansions.clone(),
        asked: mediation.asked,
        unfinished_line: outcome.unfinished_line,
        ..Findings::default()
    };
    let mut told = weigh(&outcome.complaints, policy, &mut findings);
    // A shell reports its child's death by SIGXFSZ as its own exit code.
    if outcome.ended == Ended::Code(128 + SIGXFSZ) {
        findings.limits.extend(policy.limits.file_size.map(|_| Limit::FileSize));
    }
    remove_repeated(&mut told);
    told.retain(|denial| !denials::lists(&findings.denials, denial));
    findings.network &=
        !findings.denials.iter().any(|denial| matches!(denial.attempt, DeniedAttempt::Network { .. }));
    findings.denials.extend(told);
    remove_repeated(&mut findings.limits);
    findings
}

/// Explain a program's error output from inside the sandbox, where no denial is known exactly.
pub fn diagnose_text(text: &str, policy: &ResolvedPolicy) -> Findings {
    let mut findings = Findings::default();
    let mut told = weigh(&nono_supervisor::complaints(text), policy, &mut findings);
    remove_repeated(&mut told);
    remove_repeated(&mut findings.limits);
    findings.denials = told;
    findings
}

/// The denial of a path that a failed tool was given, if the policy closes it.
pub fn diagnose_path(path: &Path, access: AccessMode, policy: &ResolvedPolicy) -> Option<Denial> {
    let candidate = Candidate { path: path.to_owned(), certain: true };
    let attempt =
        if access.writes() { paths::MentionedAttempt::Write } else { paths::MentionedAttempt::Read };
    candidate_denial(&candidate, attempt, policy)
}

/// Evaluate error lines: returns the denials, and adds everything else to the findings.
fn weigh(complaints: &[Complaint], policy: &ResolvedPolicy, findings: &mut Findings) -> Vec<Denial> {
    let mut told = Vec::new();
    for complaint in complaints {
        match complaint.about {
            DenialKind::Network => findings.network |= policy.network != NetworkPolicy::Allowed,
            DenialKind::Access => told.extend(denials(complaint, policy)),
            DenialKind::Memory => findings.limits.extend(policy.limits.memory.map(|_| Limit::Memory)),
            DenialKind::Processes => {
                findings.limits.extend(policy.limits.processes.map(|_| Limit::Processes));
            }
            DenialKind::FileSize => findings.limits.extend(policy.limits.file_size.map(|_| Limit::FileSize)),
        }
    }
    told
}

const SIGXFSZ: i32 = 25;

fn remove_repeated<T: PartialEq>(list: &mut Vec<T>) {
    let mut index = 0;
    while index < list.len() {
        if list[..index].contains(&list[index]) {
            list.remove(index);
        } else {
            index += 1;
        }
    }
}

fn denials(complaint: &Complaint, policy: &ResolvedPolicy) -> Vec<Denial> {
    let attempt = paths::attempt(&complaint.line);
    let found = paths::candidates(&complaint.line);
    found.iter().filter_map(|candidate| candidate_denial(candidate, attempt, policy)).collect()
}

/// The denial for a candidate path. A path that does not exist was missing, not denied, unless the line is about
/// creating it.
fn candidate_denial(
    candidate: &Candidate,
    attempt: paths::MentionedAttempt,
    policy: &ResolvedPolicy,
) -> Option<Denial> {
    use paths::MentionedAttempt;
    let path = normal(&policy.workdir.join(&candidate.path));
    let there = path.symlink_metadata().is_ok();
    match attempt {
        MentionedAttempt::Unlink if there => folder_denial(&path, policy),
        MentionedAttempt::Read if there => {
            denial(&path, AccessMode::Read, policy).or_else(|| denial(&path, AccessMode::Write, policy))
        }
        MentionedAttempt::Write if there => {
            denial(&path, AccessMode::Write, policy).or_else(|| denial(&path, AccessMode::Read, policy))
        }
        MentionedAttempt::Write if candidate.certain && path.parent().is_some_and(Path::is_dir) => {
            denial(&path, AccessMode::Write, policy)
        }
        MentionedAttempt::Read | MentionedAttempt::Write | MentionedAttempt::Unlink => None,
    }
}

/// The path with its parent folder resolved, if that exists.
fn normal(path: &Path) -> PathBuf {
    let resolved = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    resolved().unwrap_or_else(|| path.to_owned())
}

/// The denial of removing or renaming, which needs write access to the folder: queried as if a new name were created in
/// it.
fn folder_denial(path: &Path, policy: &ResolvedPolicy) -> Option<Denial> {
    let beside = path.parent()?.join(SOME_NAME);
    let attempt = DeniedAttempt::Open { path: path.to_owned(), access: AccessMode::Write };
    Some(Denial { attempt, ..denial(&beside, AccessMode::Write, policy)? })
}

/// The denial of `operation` on `path`, if it is the policy that closes it.
fn denial(path: &Path, operation: AccessMode, policy: &ResolvedPolicy) -> Option<Denial> {
    match query_path_on(policy, &HostFacts, &policy.workdir, path, operation) {
        QueryResult::Allowed { .. } => None,
        // The user lacks the permission outside the sandbox, too: no flag would help.
        QueryResult::Denied { .. }
            if !nono_sys::process::can_access(path, operation.reads(), operation.writes()) =>
        {
            None
        }
        QueryResult::Denied { reason, suggestion, .. } => Some(Denial {
            attempt: DeniedAttempt::Open { path: path.to_owned(), access: operation },
            because: RefusalReason::Policy { reason },
            flags: suggestion.map(|suggestion| suggestion.flags).unwrap_or_default(),
            seen: None,
            probe: false,
        }),
    }
}
