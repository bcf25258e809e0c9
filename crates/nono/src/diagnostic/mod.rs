//! Why a command may have failed, in words that a person or an agent can act on.
//!
//! [`diagnose`] is pure apart from looking whether a named path exists. What the supervisor refused itself is known
//! exactly and comes first. Then lines in which the command complained are held against the policy, and only what the
//! policy really closes is called a denial. [`DiagnosticFormatter`] turns the findings into lines or JSON.

mod exact;
mod format;
mod network;
mod paths;
mod probes;
mod sockets;
mod words;

use std::path::{Path, PathBuf};

use nono_policy::{AccessMode, HostFacts, NetworkPolicy, QueryResult, ResolvedPolicy, query_path_on};
use nono_supervisor::report::{Attempt, Because, Expansion};
use nono_supervisor::{About, Complaint, Outcome};
use nono_sys::wait::Ended;
use serde::Serialize;

use crate::network::NetworkReport;
use paths::Candidate;

pub use format::DiagnosticFormatter;
pub use network::HostDenied;
pub use probes::is_no_question;
pub use sockets::socket_meaning;
pub use words::{attempt_words, because_words, escape, quote_all, shown, words};

/// One thing the sandbox refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    pub attempt: Attempt,
    pub because: Because,
    /// The flags that open exactly this, where any do.
    pub flags: Vec<String>,
    /// Who was refused it; `None` where only the command's own words told of it.
    pub seen: Option<Seen>,
    /// What programs look for at every start and do without.
    pub probe: bool,
}

/// A refusal that the supervisor made itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// The first program that was refused it.
    #[serde(with = "nono_policy::path_serde")]
    pub program: PathBuf,
    pub pid: u32,
    pub count: u64,
}

/// A limit the command seems to have run into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Memory,
    Processes,
    FileSize,
}

/// What was found out about a failed command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// What is known exactly first.
    pub denials: Vec<Denial>,
    /// Kinds of refusals beyond those that are listed.
    pub unlisted: u64,
    /// Requests that nobody was asked about, because there were too many.
    pub too_many: u64,
    /// Grants made while it ran.
    pub expansions: Vec<Expansion>,
    /// Questions that were put to somebody.
    pub asked: u64,
    /// It complained about the network, which is closed.
    pub network: bool,
    /// What the filtering proxy refused; whoever heard its events puts them here.
    pub hosts: Vec<HostDenied>,
    /// Refusals of the proxy beyond those that are listed.
    pub hosts_unlisted: u64,
    pub limits: Vec<Limit>,
    /// Its error output ended in the middle of a line.
    pub unfinished_line: bool,
}

impl Findings {
    /// With what the filtering proxy refused.
    #[must_use]
    pub fn with_network(self, report: Option<&NetworkReport>) -> Findings {
        let (hosts, hosts_unlisted) =
            report.map(|report| (report.hosts.clone(), report.not_listed)).unwrap_or_default();
        Findings { hosts, hosts_unlisted, ..self }
    }
}

/// Hold what the command said against its policy.
pub fn diagnose(outcome: &Outcome, policy: &ResolvedPolicy) -> Findings {
    let mediation = &outcome.mediation;
    let mut findings = Findings {
        denials: exact::denials(&mediation.refused, policy),
        unlisted: mediation.refused_unlisted,
        too_many: exact::too_many(&mediation.refused),
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
    told.retain(|denial| !exact::lists(&findings.denials, denial));
    findings.network &=
        !findings.denials.iter().any(|denial| matches!(denial.attempt, Attempt::Network { .. }));
    findings.denials.extend(told);
    remove_repeated(&mut findings.limits);
    findings
}

/// Hold what a program said against the policy of the sandbox it is in: from inside, where nothing is known exactly.
pub fn diagnose_text(text: &str, policy: &ResolvedPolicy) -> Findings {
    let mut findings = Findings::default();
    let mut told = weigh(&nono_supervisor::complaints(text), policy, &mut findings);
    remove_repeated(&mut told);
    remove_repeated(&mut findings.limits);
    findings.denials = told;
    findings
}

/// What the policy closes of a path that a failed tool was given.
pub fn diagnose_path(path: &Path, access: AccessMode, policy: &ResolvedPolicy) -> Option<Denial> {
    let candidate = Candidate { path: path.to_owned(), certain: true };
    let attempt = if access.writes() { paths::Attempt::Write } else { paths::Attempt::Read };
    candidate_denial(&candidate, attempt, policy)
}

/// What complaints come to: the denials, and everything else in the findings.
fn weigh(complaints: &[Complaint], policy: &ResolvedPolicy, findings: &mut Findings) -> Vec<Denial> {
    let mut told = Vec::new();
    for complaint in complaints {
        match complaint.about {
            About::Network => findings.network |= policy.network != NetworkPolicy::Allowed,
            About::Access => told.extend(denials(complaint, policy)),
            About::Memory => findings.limits.extend(policy.limits.memory.map(|_| Limit::Memory)),
            About::Processes => findings.limits.extend(policy.limits.processes.map(|_| Limit::Processes)),
            About::FileSize => findings.limits.extend(policy.limits.file_size.map(|_| Limit::FileSize)),
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

/// The denial a candidate stands for. What is not there was missing, not refused, unless the line speaks of making it.
fn candidate_denial(
    candidate: &Candidate,
    attempt: paths::Attempt,
    policy: &ResolvedPolicy,
) -> Option<Denial> {
    use paths::Attempt;
    let path = normal(&policy.workdir.join(&candidate.path));
    let there = path.symlink_metadata().is_ok();
    match attempt {
        Attempt::Unlink if there => folder_denial(&path, policy),
        Attempt::Read if there => {
            denial(&path, AccessMode::Read, policy).or_else(|| denial(&path, AccessMode::Write, policy))
        }
        Attempt::Write if there => {
            denial(&path, AccessMode::Write, policy).or_else(|| denial(&path, AccessMode::Read, policy))
        }
        Attempt::Write if candidate.certain && path.parent().is_some_and(Path::is_dir) => {
            denial(&path, AccessMode::Write, policy)
        }
        Attempt::Read | Attempt::Write | Attempt::Unlink => None,
    }
}

/// The path with its folder resolved, as far as there is one.
fn normal(path: &Path) -> PathBuf {
    let resolved = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    resolved().unwrap_or_else(|| path.to_owned())
}

/// Removing and renaming need the right to change the folder: asked as if something new were made in it.
fn folder_denial(path: &Path, policy: &ResolvedPolicy) -> Option<Denial> {
    let beside = path.parent()?.join(".nono-asks-about-this-folder");
    let attempt = Attempt::Open { path: path.to_owned(), access: AccessMode::Write };
    Some(Denial { attempt, ..denial(&beside, AccessMode::Write, policy)? })
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
            attempt: Attempt::Open { path: path.to_owned(), access: operation },
            because: Because::Policy { reason },
            flags: suggestion.map(|suggestion| suggestion.flags).unwrap_or_default(),
            seen: None,
            probe: false,
        }),
    }
}
