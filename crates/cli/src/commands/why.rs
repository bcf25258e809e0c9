//! `nono why`: explains whether a path or host is open, by which rule, and what would open it.

use std::path::{Path, PathBuf};

use nono::diagnostic::{quote_all, shown, words};
use nono::session;
use nono::{
    AccessMode, CapabilitySource, DeniedReason, HostFacts, HostGrant, NetworkQuery, NetworkReason,
    PolicyData, QueryResult, ResolvedPolicy, SandboxState, TypedLink, query_network, query_path_on,
};
use serde_json::{Value, json};

use super::project_profile::{self, ProfileQuestion};
use super::{links, why_rules};
use crate::args::{Operation, WhyArgs, here};
use crate::failure::Failure;
use crate::host::{cap_file, host};
use crate::message;

pub(crate) fn why(args: &WhyArgs) -> Result<u8, Failure> {
    let (policy, unused, doubtful) =
        if args.inside { (own_policy()?, None, Vec::new()) } else { asked_policy(args)? };
    let WhyAnswer { allowed, mut text, mut json } = match (&args.path, &args.host) {
        (Some(path), _) => {
            let op = operation(args.op);
            let (mut told, result) = about_path(&policy, &here()?, path, op);
            if let Some(approver) = &args.approve {
                let host = host(args.policy.workdir.as_deref())?;
                let asked = why_rules::WhyQuestion { path, op, result: &result };
                if let Some((lines, approval)) = why_rules::explain(approver, &host, &policy, &asked)? {
                    told.text = format!("{}\n{lines}", told.text);
                    told.json["approval"] = approval;
                }
            }
            told
        }
        (None, Some(name)) => about_host(&policy, name, args.port),
        (None, None) => return Err(Failure::usage("why needs --path or --host")),
    };
    if let Some(file) = &unused {
        text = format!(
            "{text}\nnote: you have not agreed to what {} opens; run `nono profile trust` to review it",
            shown(file)
        );
        json["unused_project_profile"] = json!(file.to_string_lossy());
    }
    for typed in &doubtful {
        text = format!("{text}\nnote: asks before it is granted: {}", links::words(typed));
    }
    if !doubtful.is_empty() {
        json["asked_links"] =
            doubtful.iter().flat_map(|typed| &typed.way.escaping_links).map(|one| json!(one)).collect();
    }
    message::answer_either(args.json, || json, || text)?;
    Ok(u8::from(args.exit_code && !allowed))
}

/// Answer as text and as JSON.
pub(super) struct WhyAnswer {
    pub(super) allowed: bool,
    pub(super) text: String,
    pub(super) json: Value,
}

/// Whether a path is open, and the result of the query.
pub(super) fn about_path(
    policy: &ResolvedPolicy,
    here: &Path,
    path: &Path,
    op: AccessMode,
) -> (WhyAnswer, QueryResult) {
    let result = query_path_on(policy, &HostFacts, here, path, op);
    let (text, json) = (path_text(path, op, &result), path_json(path, op, &result));
    (WhyAnswer { allowed: result.is_allowed(), text, json }, result)
}

/// Whether a host is open.
pub(super) fn about_host(policy: &ResolvedPolicy, name: &str, port: Option<u16>) -> WhyAnswer {
    let result = query_network(policy, Some(name), port);
    let (text, json) = (host_text(name, port, &result), host_json(name, port, &result));
    WhyAnswer { allowed: result.allowed, text, json }
}

fn operation(op: Operation) -> AccessMode {
    match op {
        Operation::Read => AccessMode::Read,
        Operation::Write => AccessMode::Write,
        Operation::Readwrite => AccessMode::ReadWrite,
    }
}

/// Policy of the sandbox this process is in.
pub(super) fn own_policy() -> Result<ResolvedPolicy, Failure> {
    let file = cap_file().ok_or_else(|| {
        Failure::new("--self works only inside a nono sandbox (NONO_CAP_FILE names no file)")
            .hint("leave --self out to ask about a policy given by flags")
    })?;
    let text = std::fs::read_to_string(&file).map_err(|error| Failure::cannot("read", &file, &error))?;
    let state = SandboxState::from_json(&text)
        .map_err(|error| Failure::new(format!("{} does not describe a sandbox: {error}", shown(&file))))?;
    state.policy.ok_or_else(|| Failure::new(format!("{} does not describe a policy", shown(&file))))
}

/// Policy from the flags; the project's profile if the user has not agreed to it; and the links that a run would ask
/// about.
fn asked_policy(args: &WhyArgs) -> Result<(ResolvedPolicy, Option<PathBuf>, Vec<TypedLink>), Failure> {
    let host = host(args.policy.workdir.as_deref())?;
    let mut request = args.policy.request(&here()?)?;
    if !args.policy.no_project_profile {
        project_profile::apply(&mut request, &host, ProfileQuestion::No)?;
    }
    let unused = request.projects.iter().find(|project| !project.agreed).map(|project| project.file.clone());
    let profile = session::profile(&request, &host)?;
    let doubtful = links::suppose(&mut request, &profile, &host, args.policy.workdir.as_deref())?;
    let policy = session::resolve(&request, &profile, &host)?;
    Ok((policy, unused, doubtful))
}

fn path_text(path: &Path, op: AccessMode, result: &QueryResult) -> String {
    let mut lines = Vec::new();
    match result {
        QueryResult::Allowed { granted_path, access, source } => {
            lines.push(format!("ALLOWED: {op} {}", shown(path)));
            lines.push(format!("granted by: {} ({access}) [{source}]", shown(granted_path)));
        }
        QueryResult::Denied { reason, closest, suggestion } => {
            lines.push(format!("DENIED: {op} {}", shown(path)));
            lines.push(format!("reason: {}", words(reason)));
            lines.extend(rule_source(reason).map(|source| format!("rule: {source}")));
            lines.extend(closest.as_ref().map(|grant| {
                format!("closest grant: {} ({}) [{}]", shown(&grant.resolved), grant.access, grant.source)
            }));
            lines.push(match (suggestion, reason) {
                (Some(suggestion), _) => format!("to open it: {}", quote_all(&suggestion.flags)),
                _ if is_missing(path) => "note: it does not exist".to_owned(),
                // Not closed by name.
                (None, DeniedReason::NotGranted | DeniedReason::InsufficientAccess { .. }) => {
                    "to open it: grant only the parts that are needed; no flag opens all of it".to_owned()
                }
                (None, DeniedReason::DenyRule { source: CapabilitySource::User }) => {
                    "to open it: leave --deny out".to_owned()
                }
                (None, _) => "to open it: no flag opens this".to_owned(),
            });
        }
    }
    lines.join("\n")
}

fn is_missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn rule_source(reason: &DeniedReason) -> Option<String> {
    match reason {
        DeniedReason::Protected { group } => Some(match PolicyData::embedded().group(group) {
            Some(known) => format!("protected group {group}: {}", known.description),
            None => format!("protected group {group}"),
        }),
        DeniedReason::DenyRule { source } => Some(format!("deny [{source}]")),
        DeniedReason::NonoState => Some("built in".to_owned()),
        DeniedReason::AgentSettings { agent } => Some(format!("settings of {agent}, built in")),
        DeniedReason::NotGranted
        | DeniedReason::InsufficientAccess { .. }
        | DeniedReason::CarvedDirectory { .. } => None,
    }
}

fn path_json(path: &Path, op: AccessMode, result: &QueryResult) -> Value {
    let mut value = json!(result);
    value["path"] = json!(path.to_string_lossy());
    value["operation"] = json!(op);
    value
}

fn host_text(host: &str, port: Option<u16>, result: &NetworkQuery) -> String {
    // An IPv6 address has colons of its own.
    let bare = host.contains(':') && !host.starts_with('[');
    let place = match port {
        Some(port) if bare => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let verdict = if result.allowed { "ALLOWED" } else { "DENIED" };
    let mut lines = vec![
        format!("{verdict}: connect to {}", nono::diagnostic::escape(&place)),
        format!("reason: {}", host_reason(result)),
    ];
    let rule = |grant: &HostGrant| format!("{} [{}]", grant.rule, grant.source);
    lines.extend(result.rule.as_ref().map(|grant| format!("rule: {}", rule(grant))));
    lines.extend(result.closest.as_ref().map(|grant| format!("closest rule: {}", rule(grant))));
    if !result.still_refused.is_empty() {
        let classes: Vec<_> = result.still_refused.iter().map(|class| class.word()).collect();
        lines.push(format!(
            "note: still refused if the name resolves to one of these addresses: {}",
            classes.join(", ")
        ));
    }
    match &result.suggestion {
        Some(suggestion) => lines.push(format!("to open it: {}", quote_all(&suggestion.flags))),
        None if result.reason == NetworkReason::AddressDenied => {
            lines.push("to open it: --allow-domain with the address itself, not with a name".to_owned());
        }
        None => {}
    }
    lines.join("\n")
}

fn host_reason(result: &NetworkQuery) -> String {
    match result.reason {
        NetworkReason::NetworkAllowed => "the network is open".to_owned(),
        NetworkReason::NetworkBlocked => "the network is blocked".to_owned(),
        NetworkReason::PortAllowed => "the port is open".to_owned(),
        NetworkReason::PortNotAllowed => "only single ports are open, and this is not one of them".to_owned(),
        NetworkReason::HostAllowed => "the host is open, through the proxy".to_owned(),
        NetworkReason::HostNotAllowed => "only some hosts are open, and this is not one of them".to_owned(),
        NetworkReason::HostPortNotAllowed => "the host is open, but not on this port".to_owned(),
        NetworkReason::AddressDenied => {
            let class = result.class.map_or("closed", nono::AddressClass::word);
            format!("it resolves to a {class} address, which needs a rule of its own")
        }
        NetworkReason::NotAHost => "this is neither a host name nor an address".to_owned(),
    }
}

fn host_json(host: &str, port: Option<u16>, result: &NetworkQuery) -> Value {
    let status = if result.allowed { "allowed" } else { "denied" };
    json!({
        "status": status,
        "host": host,
        "port": port,
        "reason": result.reason,
        "rule": result.rule,
        "closest": result.closest,
        "class": result.class,
        "still_refused": result.still_refused,
        "suggestion": result.suggestion,
    })
}
