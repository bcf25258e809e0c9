//! Findings as lines for a person, or as JSON for a program.

use nono_policy::{CapabilitySource, FsCapability, NetworkPolicy, ResolvedPolicy};
use nono_supervisor::report::{DeniedAttempt, Expansion, RefusalReason};
use serde_json::{Value, json};

use super::sockets::socket_meaning;
use nono_policy::text::{quote_all, shown};

use super::text::{attempt_words, because_words};
use super::{Denial, Findings, HostDenied, Limit, network};
use crate::session::network_word;

/// Renderer of a failed command's findings. Lines have no prefix; the caller adds it.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosticFormatter<'a> {
    pub exit_code: i32,
    pub policy: &'a ResolvedPolicy,
    pub findings: &'a Findings,
    /// List probes that programs make at every start, too.
    pub verbose: bool,
}

impl DiagnosticFormatter<'_> {
    /// The whole footer for a refusal, or if the policy was asked for. Otherwise one line: most commands that fail do so
    /// for reasons of their own, and a refusal that nobody saw cannot be ruled out.
    pub fn lines(&self) -> Vec<String> {
        let code = self.exit_code;
        let first = match (self.has_refusals(), self.verbose) {
            (true, _) => {
                format!("The command exited with code {code}. This may be due to sandbox restrictions.")
            }
            (false, true) => format!("The command exited with code {code}; no refusal was seen."),
            (false, false) => return vec![format!("exit {code}; no refusal was seen (-v shows the policy)")],
        };
        let mut lines = vec![first];
        lines.extend(self.denied());
        lines.push("Sandbox policy:".to_owned());
        lines.extend(self.grants());
        lines.push(format!("  network: {}", network_word(&self.policy.network)));
        lines.push("To open more, run it again with:".to_owned());
        lines.extend(self.general().map(|(flag, word)| format!("  {flag:<16} {word}")));
        lines
    }

    /// Whether something was refused that a program does not try at every start, or a limit was reached.
    fn has_refusals(&self) -> bool {
        let Findings { denials, unlisted, too_many, network, hosts, hosts_unlisted, limits, .. } =
            self.findings;
        let counts = [*unlisted, *too_many, *hosts_unlisted];
        *network
            || !hosts.is_empty()
            || !limits.is_empty()
            || counts.iter().any(|count| *count > 0)
            || denials.iter().any(|denial| !denial.probe)
    }

    fn denied(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for limit in &self.findings.limits {
            lines.push(format!("It seems to have run into {}.", self.limit_words(*limit)));
        }
        let Findings { denials, unlisted, too_many, network, hosts, hosts_unlisted, .. } = self.findings;
        // The general network line is redundant if refused hosts are listed.
        let network = *network && hosts.is_empty();
        if denials.is_empty() && hosts.is_empty() && !network && *unlisted == 0 && *too_many == 0 {
            return lines;
        }
        lines.push("Denied:".to_owned());
        let (probes, named): (Vec<_>, Vec<_>) =
            denials.iter().partition(|denial| denial.probe && !self.verbose);
        for denial in named.into_iter().filter(|denial| network::direct(denial).is_none()) {
            lines.push(format!("  {}", sentence(denial)));
            if !denial.flags.is_empty() {
                lines.push(format!("    open it with: {}", quote_all(&denial.flags)));
            }
            lines.extend(
                meaning(denial).map(|meaning| format!("    no flag is proposed, since it is {meaning}")),
            );
        }
        lines.extend(hosts.iter().flat_map(HostDenied::lines));
        lines.extend(network::past_the_proxy(denials));
        if network {
            lines.extend(self.closed_network());
        }
        let more = [
            (*too_many, "more denied without asking: too many at once"),
            (*unlisted, "more that are not listed"),
            (*hosts_unlisted, "more requests to other hosts"),
            (probes.len() as u64, "probes that programs make at every start (-v lists them)"),
        ];
        lines.extend(more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("  and {n} {what}")));
        lines
    }

    /// Lines for a complaint about the network whose cause was not observed.
    fn closed_network(&self) -> [String; 2] {
        let word = network_word(&self.policy.network);
        let flag = if self.is_filtered() { "--allow-domain <host>" } else { "--allow-net" };
        [format!("  network: it is {word}"), format!("    open it with: {flag}")]
    }

    fn is_filtered(&self) -> bool {
        matches!(self.policy.network, NetworkPolicy::Filtered { .. })
    }

    fn limit_words(&self, limit: Limit) -> String {
        let limits = &self.policy.limits;
        match limit {
            Limit::Memory => format!("--max-memory ({} MiB)", limits.memory.unwrap_or(0) >> 20),
            Limit::Processes => format!("--max-procs ({})", limits.processes.unwrap_or(0)),
            Limit::FileSize => format!("--max-file-size ({} bytes)", limits.file_size.unwrap_or(0)),
        }
    }

    /// Grants by the user or a profile one by one; those that every program needs to start, as a count.
    fn grants(&self) -> Vec<String> {
        let (base, chosen): (Vec<&FsCapability>, Vec<&FsCapability>) =
            self.policy.grants.iter().partition(|grant| is_base(grant));
        let mut lines: Vec<String> =
            chosen.iter().map(|grant| format!("  {} ({})", shown(&grant.resolved), grant.access)).collect();
        if lines.is_empty() {
            lines.push("  no path was granted".to_owned());
        }
        if !base.is_empty() {
            lines.push(format!(
                "  and {} system paths that programs need to start (--dry-run lists them)",
                base.len()
            ));
        }
        if chosen.iter().any(|grant| grant.is_file) {
            lines.push(
                "  A granted file is the one that existed at the start: a file that replaces it is not granted."
                    .to_owned(),
            );
        }
        lines
    }

    /// General flags; those for the network only where it is closed.
    fn general(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let (open, filtered) = (self.policy.network == NetworkPolicy::Allowed, self.is_filtered());
        GENERAL.iter().filter(move |(flag, _)| match *flag {
            "--allow-net" => !open,
            "--allow-domain" => filtered,
            _ => true,
        })
    }

    pub fn json(&self) -> Value {
        let grant = |grant: &FsCapability| {
            json!({
                "path": grant.resolved.to_string_lossy(),
                "access": grant.access,
                "is_file": grant.is_file,
                "source": grant.source.to_string(),
            })
        };
        json!({
            "exit_code": self.exit_code,
            "may_be_due_to_sandbox": self.has_refusals(),
            "denials": self.findings.denials.iter().map(denial_json).collect::<Vec<_>>(),
            "denials_unlisted": self.findings.unlisted,
            "denied_unasked": self.findings.too_many,
            "network_denied": self.findings.network,
            "hosts_denied": self.findings.hosts.iter().map(host_json).collect::<Vec<_>>(),
            "hosts_denied_unlisted": self.findings.hosts_unlisted,
            "limits": self.findings.limits,
            "expansions": self.findings.expansions.iter().map(expansion_json).collect::<Vec<_>>(),
            "asked": self.findings.asked,
            "policy": {
                "grants": self.policy.grants.iter().map(grant).collect::<Vec<_>>(),
                "network": network_word(&self.policy.network),
            },
            "flags": self.general().map(|(flag, word)| json!({"flag": flag, "meaning": word})).collect::<Vec<_>>(),
        })
    }
}

/// One denial as a sentence: what, by which program, how often, why.
fn sentence(denial: &Denial) -> String {
    let who = match &denial.seen {
        None => String::new(),
        Some(seen) => {
            let name = seen.program.file_name().map_or(seen.program.as_path(), std::path::Path::new);
            let times = if seen.count > 1 { format!(" ({} times)", seen.count) } else { String::new() };
            format!(" by {}{times}", shown(name))
        }
    };
    format!("{}{who}: {}", attempt_words(&denial.attempt), because_words(&denial.because))
}

/// Description of a socket for which no flag is suggested.
fn meaning(denial: &Denial) -> Option<&'static str> {
    match &denial.attempt {
        DeniedAttempt::Socket { path } if denial.flags.is_empty() && path.is_absolute() => {
            socket_meaning(path)
        }
        _ => None,
    }
}

/// A denial as JSON. `path` and `reason` are null where they do not apply; `program`, `pid` and `count` are set for
/// denials by the supervisor.
fn denial_json(denial: &Denial) -> Value {
    let (kind, path, operation) = denial.attempt.parts();
    let reason = match &denial.because {
        RefusalReason::Policy { reason } => Some(reason),
        _ => None,
    };
    let seen = denial.seen.as_ref();
    json!({
        "kind": kind,
        "path": path.map(|path| path.to_string_lossy()),
        "operation": operation,
        "because": denial.because,
        "reason": reason,
        "flags": denial.flags,
        "means": meaning(denial),
        "exact": seen.is_some(),
        "program": seen.map(|seen| seen.program.to_string_lossy()),
        "pid": seen.map(|seen| seen.pid),
        "count": seen.map(|seen| seen.count),
        "probe": denial.probe,
    })
}

fn host_json(denied: &HostDenied) -> Value {
    let mut value = json!(denied);
    value["flags"] = json!(denied.flags());
    value
}

fn expansion_json(grant: &Expansion) -> Value {
    json!({
        "path": grant.path.to_string_lossy(),
        "access": grant.access,
        "is_dir": grant.is_dir,
        "scope": grant.scope,
        "by": grant.by,
    })
}

const GENERAL: &[(&str, &str)] = &[
    ("--allow <path>", "read and write a folder and everything in it"),
    ("--read <path>", "read it only"),
    ("--write <path>", "write it only"),
    ("--allow-domain", "reach one more host through the proxy"),
    ("--allow-net", "use the network"),
];

/// Whether the grant comes from nono or a group, not from the user or a profile.
pub(super) fn is_base(grant: &FsCapability) -> bool {
    matches!(grant.source, CapabilitySource::Group(_) | CapabilitySource::System)
}
