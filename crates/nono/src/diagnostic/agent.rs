//! Messages for an agent about the sandbox around it, after a tool failed because of it.
//!
//! A model that meets "permission denied" tries other ways, again and again. The message says that this is a sandbox,
//! that nothing the model does opens it, what is open, and what the user would have to start instead.

use std::path::{Path, PathBuf};

use nono_agents::hooks::run::SandboxAround;
use nono_checkpoint::trigger::ToolCall;
use nono_policy::error::grant_flag;
use nono_policy::text::{quote_all, shown};
use nono_policy::{AccessMode, CapabilitySource, GrantKind, NetworkPolicy, ResolvedPolicy, Typed};
use nono_supervisor::report::DeniedAttempt;
use nono_supervisor::request;

use super::format::is_base;
use super::{Denial, Findings, attempt_words, because_words, diagnose_path, diagnose_text};
use crate::session::network_word;

/// Sandbox around this process.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub policy: ResolvedPolicy,
    /// The user is asked at run time (`--ask`).
    pub asks: bool,
    /// Name of the agent's program.
    pub command: String,
    /// Command line that the user typed, if known.
    pub typed: Option<Typed>,
    /// Socket of the supervisor, which knows the user's refusals.
    pub socket: Option<PathBuf>,
}

impl SandboxAround for Sandbox {
    /// Message for the beginning of a conversation.
    fn introduction(&self) -> String {
        let mut lines = vec![
            "[nono] You run in the nono sandbox, which is enforced by the kernel and permanent for this session. What is \
    not listed here is denied: do not try to get around it, tell the user."
                .to_owned(),
        ];
        lines.extend(open(self));
        lines.join("\n")
    }

    /// Explanation of a tool's output and of the path it was given; None if the sandbox does not close what the tool
    /// complains about. A tool that did not fail may still have met something closed (`cat x; true`): then only certain
    /// findings count.
    fn explain(&self, call: &ToolCall, failed: Option<bool>, output: &str) -> Option<String> {
        let mut findings = diagnose_text(output, &self.policy);
        let succeeded = failed == Some(false);
        if succeeded {
            if !matches!(call, ToolCall::Shell { .. }) {
                return None;
            }
            findings = Findings { denials: findings.denials, ..Findings::default() };
        } else if findings.denials.is_empty() {
            findings.denials =
                given(call).filter_map(|(path, access)| diagnose_path(path, access, &self.policy)).collect();
        }
        let refused = !succeeded
            && refused_by_proxy(output)
            && matches!(self.policy.network, NetworkPolicy::Filtered { .. });
        let network = findings.network || refused;
        if findings.denials.is_empty() && !network && findings.limits.is_empty() {
            return None;
        }
        let mut lines = vec![HEADER.to_owned()];
        lines.extend(denied(&findings, network, self));
        lines.extend(open(self));
        lines.extend(remedy(&findings, network, self));
        Some(lines.join("\n"))
    }
}

const HEADER: &str = "[nono] This was denied by the nono sandbox, not by a mistake of yours. The sandbox is enforced by \
the kernel and permanent for this session: do not try alternatives, other paths, other tools, sudo or chmod; they are \
denied as well. Tell the user instead.";

/// Maximum number of lines of a list.
const LINES: usize = 20;

fn given(call: &ToolCall) -> impl Iterator<Item = (&Path, AccessMode)> {
    let (paths, access): (&[PathBuf], _) = match call {
        ToolCall::Files { paths, .. } => (paths, AccessMode::Write),
        ToolCall::Reads { path: Some(path), .. } => (std::slice::from_ref(path), AccessMode::Read),
        ToolCall::Reads { path: None, .. } | ToolCall::Shell { .. } | ToolCall::Other { .. } => {
            (&[], AccessMode::Read)
        }
    };
    paths.iter().map(move |path| (path.as_path(), access))
}

/// Whether the output contains a refusal of the filtering proxy, as programs print it.
fn refused_by_proxy(output: &str) -> bool {
    const WORDS: [&str; 6] = [
        "nono: ",
        "CONNECT tunnel failed, response 403",
        "Proxy CONNECT aborted",
        "response 403",
        "407 Proxy",
        "Tunnel connection failed: 403",
    ];
    WORDS.iter().any(|word| output.contains(word))
}

fn denied(findings: &Findings, network: bool, sandbox: &Sandbox) -> Vec<String> {
    let mut lines = vec!["Denied:".to_owned()];
    let sentence =
        |denial: &Denial| format!("  {}: {}", attempt_words(&denial.attempt), because_words(&denial.because));
    lines.extend(findings.denials.iter().take(LINES).map(sentence));
    if network {
        lines.push(format!("  the network, which is: {}", network_word(&sandbox.policy.network)));
    }
    if !findings.limits.is_empty() {
        lines.push("  a limit on memory, processes or the size of files was reached".to_owned());
    }
    lines
}

fn open(sandbox: &Sandbox) -> Vec<String> {
    let mut lines = vec!["Allowed:".to_owned()];
    let grants: Vec<_> = sandbox.policy.grants.iter().filter(|grant| !is_base(grant)).collect();
    lines.extend(
        grants.iter().take(LINES).map(|grant| format!("  {} {}", grant.access, shown(&grant.resolved))),
    );
    if grants.len() > LINES {
        lines.push(format!(
            "  and {} more: `nono why --self --path PATH` tells of each",
            grants.len() - LINES
        ));
    }
    lines.push("  what programs need to start, for reading".to_owned());
    lines.push(format!("  network: {}", network_word(&sandbox.policy.network)));
    lines
}

/// Remedies: a request if the user can be asked, else another run.
fn remedy(findings: &Findings, network: bool, sandbox: &Sandbox) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    let mut closed_for_good = false;
    for denial in findings.denials.iter().take(LINES) {
        closed_for_good |= denial.flags.is_empty();
        let new =
            !denial.flags.is_empty() && !flags.windows(denial.flags.len()).any(|part| part == denial.flags);
        if new {
            flags.extend(denial.flags.iter().cloned());
        }
    }
    if network {
        match sandbox.policy.network {
            NetworkPolicy::Filtered { .. } => flags.extend(["--allow-domain", "HOST"].map(str::to_owned)),
            _ => flags.push("--allow-net".to_owned()),
        }
    }
    let mut lines = Vec::new();
    if sandbox.asks {
        lines.extend(requests(findings, sandbox));
    }
    if !flags.is_empty() {
        lines.push("To open it the user must end this session and start:".to_owned());
        lines.push(format!("  {}", command_line(sandbox, &flags)));
    }
    if closed_for_good {
        lines.push("For some of it there is no flag that opens it alone.".to_owned());
    }
    lines
}

/// Remedies under `--ask`.
fn requests(findings: &Findings, sandbox: &Sandbox) -> Vec<String> {
    let opens = findings.denials.iter().filter_map(|denial| match &denial.attempt {
        DeniedAttempt::Open { path, access } => Some((path.as_path(), *access)),
        _ => None,
    });
    let (refused, wanted): (Vec<_>, Vec<_>) =
        opens.take(LINES).partition(|(path, access)| is_refused(sandbox, path, *access));
    let mut lines = Vec::new();
    if !refused.is_empty() {
        lines.push("The user was asked for it in this session and said no. Do not ask again:".to_owned());
        lines.extend(refused.into_iter().map(|(path, access)| format!("  {access} {}", shown(path))));
    }
    if !wanted.is_empty() {
        lines.push("The user can be asked for it in this session, once, with:".to_owned());
    }
    lines.extend(wanted.into_iter().map(|(path, access)| {
        let flag = if access == AccessMode::Read { "--read" } else { "--write" };
        let words = ["nono", "request", flag, &path.to_string_lossy(), "--reason", "WHY"].map(str::to_owned);
        format!("  {}", quote_all(&words))
    }));
    lines
}

/// Whether the user refused. If that is unknown, asking is allowed.
fn is_refused(sandbox: &Sandbox, path: &Path, access: AccessMode) -> bool {
    let by = sandbox.socket.as_deref().map(|socket| request::refused_by(socket, path, access));
    matches!(by, Some(Ok(Some(_))))
}

/// Command line that the user typed, with more flags.
fn typed_again(typed: &Typed, more: &[String]) -> String {
    let mut words = vec!["nono".to_owned()];
    words.extend(typed.flags.iter().chain(more).cloned());
    // The shell is not named there.
    if typed.flags.first().is_none_or(|command| command != "shell") {
        words.push("--".to_owned());
        words.extend(typed.command.iter().cloned());
    }
    quote_all(&words)
}

fn command_line(sandbox: &Sandbox, more: &[String]) -> String {
    if let Some(typed) = &sandbox.typed {
        return typed_again(typed, more);
    }
    let policy = &sandbox.policy;
    let mut words = ["nono", "run"].map(str::to_owned).to_vec();
    // The default profile needs no flag.
    if let Some(profile) = policy.profiles.last().filter(|profile| *profile != "default") {
        words.extend(["--profile".to_owned(), profile.clone()]);
    }
    for grant in policy.grants.iter().filter(|grant| grant.source == CapabilitySource::User) {
        let kind = if grant.is_file { GrantKind::File } else { GrantKind::Directory };
        words.extend([
            grant_flag(grant.access, kind).to_owned(),
            grant.resolved.to_string_lossy().into_owned(),
        ]);
    }
    let hosts = policy.hosts.iter().filter(|host| host.source == CapabilitySource::User);
    words.extend(hosts.flat_map(|host| ["--allow-domain".to_owned(), host.rule.to_string()]));
    if sandbox.asks {
        words.push("--ask".to_owned());
    }
    words.extend(more.iter().cloned());
    words.extend(["--".to_owned(), sandbox.command.clone()]);
    quote_all(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_was_typed_with_one_flag_more() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let typed = Typed {
            flags: words(&["run", "-p", "claude-code", "--allow", "/a b"]),
            command: words(&["claude", "-c", "it's"]),
        };
        let more = words(&["--read-file", "/x"]);
        let line = "nono run -p claude-code --allow '/a b' --read-file /x -- claude -c 'it'\\''s'";
        assert_eq!(typed_again(&typed, &more), line);
        let shell = Typed { flags: words(&["shell", "--rollback"]), command: words(&["/bin/bash"]) };
        assert_eq!(typed_again(&shell, &more), "nono shell --rollback --read-file /x");
    }
}
