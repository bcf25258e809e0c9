//! Denials by the supervisor, with the flags that would open each.

use std::path::Path;

use nono_policy::{
    AccessMode, DeniedReason, HostFacts, NetworkPolicy, QueryResult, ResolvedPolicy, query_path_on,
};
use nono_supervisor::report::{DeniedAttempt, Port, RefusalReason, Refused};

use super::probes::is_probe;
use super::sockets::socket_meaning;
use super::{Denial, DenialDetails};

/// All denials but those made without asking; see [`too_many`].
pub(super) fn denials(refused: &[Refused], policy: &ResolvedPolicy) -> Vec<Denial> {
    let named = refused.iter().filter(|refused| refused.because != RefusalReason::TooMany);
    named.map(|refused| denial(refused, policy)).collect()
}

fn denial(refused: &Refused, policy: &ResolvedPolicy) -> Denial {
    let Refused { attempt, because, program, pid, count } = refused.clone();
    Denial {
        flags: if is_nonos(&because) { Vec::new() } else { flags(&attempt, policy) },
        probe: is_probe(&attempt),
        attempt,
        because,
        seen: Some(DenialDetails { program, pid, count }),
    }
}

/// Whether no flag opens it.
fn is_nonos(because: &RefusalReason) -> bool {
    matches!(
        because,
        RefusalReason::Policy { reason: DeniedReason::NonoState | DeniedReason::AgentSettings { .. } }
    )
}

pub(super) fn too_many(refused: &[Refused]) -> u64 {
    refused
        .iter()
        .filter(|refused| refused.because == RefusalReason::TooMany)
        .map(|refused| refused.count)
        .sum()
}

/// Flags that grant the access from the start.
fn flags(attempt: &DeniedAttempt, policy: &ResolvedPolicy) -> Vec<String> {
    match attempt {
        DeniedAttempt::Open { path, access } => path_flags(path, *access, policy),
        DeniedAttempt::Metadata { path, .. } => path_flags(path, AccessMode::Write, policy),
        DeniedAttempt::Socket { path } => socket_flags(path, policy),
        DeniedAttempt::Network { port, .. } => network_flags(*port, policy),
        DeniedAttempt::Other { .. } => Vec::new(),
    }
}

fn path_flags(path: &Path, access: AccessMode, policy: &ResolvedPolicy) -> Vec<String> {
    match query_path_on(policy, &HostFacts, &policy.workdir, path, access) {
        QueryResult::Denied { suggestion: Some(suggestion), .. } => suggestion.flags,
        QueryResult::Denied { .. } | QueryResult::Allowed { .. } => Vec::new(),
    }
}

/// Flags for a socket. A path socket can be granted by name, and is suggested unless it is a way out of the sandbox; an
/// abstract socket belongs to a network.
fn socket_flags(path: &Path, policy: &ResolvedPolicy) -> Vec<String> {
    if !path.is_absolute() || socket_meaning(path).is_some() {
        return Vec::new();
    }
    let name = path.to_string_lossy().into_owned();
    let open = ["--allow-unix-socket".to_owned(), name.clone()];
    match query_path_on(policy, &HostFacts, &policy.workdir, path, AccessMode::ReadWrite) {
        QueryResult::Denied { reason: DeniedReason::Protected { .. }, .. } => {
            ["--bypass-protection".to_owned(), name].into_iter().chain(open).collect()
        }
        QueryResult::Denied {
            reason:
                DeniedReason::NonoState | DeniedReason::AgentSettings { .. } | DeniedReason::DenyRule { .. },
            ..
        } => Vec::new(),
        QueryResult::Denied { .. } | QueryResult::Allowed { .. } => open.to_vec(),
    }
}

/// Flags for the network. Single ports are suggested only where the policy already opens some.
fn network_flags(port: Option<Port>, policy: &ResolvedPolicy) -> Vec<String> {
    match (&policy.network, port) {
        (NetworkPolicy::Allowed, _) => Vec::new(),
        (NetworkPolicy::Ports { .. } | NetworkPolicy::Filtered { .. }, Some(Port::Connect(port))) => {
            vec!["--allow-connect-port".to_owned(), port.to_string()]
        }
        (NetworkPolicy::Ports { .. } | NetworkPolicy::Filtered { .. }, Some(Port::Listen(port))) => {
            vec!["--listen-port".to_owned(), port.to_string()]
        }
        (NetworkPolicy::Ports { .. } | NetworkPolicy::Filtered { .. }, None | Some(Port::Direct(_)))
        | (NetworkPolicy::Blocked, _) => vec!["--allow-net".to_owned()],
    }
}

/// Whether a denial found in an error line is among the known ones.
pub(super) fn lists(known: &[Denial], told: &Denial) -> bool {
    let (_, Some(path), _) = told.attempt.parts() else { return false };
    let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    known.iter().any(|known| known.attempt.parts().1.is_some_and(|at| at == path || at == resolved))
}
