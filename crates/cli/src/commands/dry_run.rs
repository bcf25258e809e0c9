//! `--dry-run`: prints the resolved policy, each grant with its source. Nothing is created or started.

use std::ffi::OsString;
use std::path::Path;

use nono::diagnostic::{closed_by, escape, shown};
use nono::session::{self, Host, SessionError};
use nono::{
    ClosedBy, ClosedHow, ClosedPath, ExecStrategy, Limits, PathKind, PolicyNote, ResolvedPolicy, RunRequest,
};

use super::links;
use crate::failure::Failure;
use crate::message;

pub(super) fn show(
    request: &RunRequest,
    (host, workdir): (&Host, Option<&Path>),
    command: &[OsString],
    strategy: ExecStrategy,
) -> Result<u8, Failure> {
    let mut request = request.clone();
    request.program = Some(session::find_program(command, host).map_err(SessionError::from)?);
    let profile = session::profile(&request, host)?;
    let doubtful = links::suppose(&mut request, &profile, host, workdir)?;
    let policy = session::resolve(&request, &profile, host)?;
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut lines = vec![
        format!("command: {}", nono::diagnostic::quote_all(&words)),
        format!("mode: {strategy}"),
        format!("profile: {}", profile.chain.join(" < ")),
    ];
    lines.extend(request.projects.iter().map(|project| {
        let used = if project.agreed { "used" } else { "only its restrictions are used" };
        format!("project's profile: {} ({used})", shown(&project.file))
    }));
    lines.extend([format!("working directory: {}", shown(&policy.workdir)), "grants:".to_owned()]);
    lines.extend(policy.grants.iter().map(|grant| {
        let kind = if grant.is_file { "file" } else { "dir" };
        let is_same = grant.original == grant.resolved;
        let spelled = if is_same { String::new() } else { format!(" (given as {})", shown(&grant.original)) };
        format!("  {} ({}) {kind} [{}]{spelled}", shown(&grant.resolved), grant.access, grant.source)
    }));
    lines.extend(doubtful.iter().map(|typed| format!("asks before it is granted: {}", links::words(typed))));
    lines.extend(closed(&policy).into_iter().chain(sockets(&policy)));
    lines.push(format!("network: {}", session::network_word(&policy.network)));
    lines.extend(policy.hosts.iter().map(|host| format!("  {} [{}]", host.rule, host.source)));
    lines.push(format!("environment: {}", environment(&policy)));
    lines.extend(limits(&policy.limits).map(|limits| format!("limits: {limits}")));
    lines.extend(policy.notes.iter().filter_map(note_words).map(|line| format!("note: {line}")));
    message::answer(&lines.join("\n"))
}

fn closed(policy: &ResolvedPolicy) -> Vec<String> {
    let inside = |closed: &&ClosedPath| {
        policy.grants.iter().any(|grant| nono::is_within(&closed.resolved, &grant.resolved))
    };
    // Few of the hundreds of protected names exist.
    let only_a_name =
        |closed: &&ClosedPath| closed.kind == PathKind::Absent && matches!(closed.by, ClosedBy::Protected(_));
    let (names, there): (Vec<_>, Vec<_>) = policy.closed.iter().filter(inside).partition(only_a_name);
    let mut lines: Vec<String> = there.into_iter().map(closed_line).collect();
    if !names.is_empty() {
        lines.push(format!("  and {} protected names that do not exist now", names.len()));
    }
    if !lines.is_empty() {
        lines.insert(0, "closed inside the grants:".to_owned());
    }
    lines
}

fn closed_line(closed: &ClosedPath) -> String {
    let by = match &closed.by {
        ClosedBy::Deny(source) => closed_by(source),
        ClosedBy::Protected(group) => format!("protected: {group}"),
        ClosedBy::Nono => "nono's own".to_owned(),
        ClosedBy::Agent(agent) => format!("settings of {agent}"),
    };
    let how = match closed.how {
        ClosedHow::Mask | ClosedHow::NotGranted if closed.keep_read => "read-only",
        ClosedHow::Mask => "masked",
        ClosedHow::Copy => "a copy",
        ClosedHow::NotGranted => "not granted",
    };
    let absent = if closed.kind == PathKind::Absent { ", does not exist now" } else { "" };
    format!("  {} [{by}] ({how}{absent})", shown(&closed.resolved))
}

fn sockets(policy: &ResolvedPolicy) -> Vec<String> {
    policy
        .unix_sockets
        .iter()
        .map(|socket| format!("unix socket: {} [{}]", shown(&socket.resolved), socket.source))
        .collect()
}

fn environment(policy: &ResolvedPolicy) -> String {
    let rules = &policy.environment;
    let mut words = if rules.all {
        vec!["all variables except those that inject code".to_owned()]
    } else {
        rules.allow.clone()
    };
    // Names only: a value may be a secret.
    words.extend(rules.set.iter().map(|(name, _)| format!("{}=…", escape(name))));
    let denied =
        if rules.deny.is_empty() { String::new() } else { format!("; not {}", rules.deny.join(" ")) };
    words.join(" ") + &denied
}

fn limits(limits: &Limits) -> Option<String> {
    let parts: Vec<String> = [
        limits.time.map(|time| format!("time {time:?}")),
        limits.memory.map(|bytes| format!("memory {bytes} bytes")),
        limits.processes.map(|count| format!("{count} processes")),
        limits.file_size.map(|bytes| format!("file size {bytes} bytes")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn note_words(note: &PolicyNote) -> Option<String> {
    match note {
        // Not worth a note: every machine lacks some of them.
        PolicyNote::Skipped { .. } => None,
        PolicyNote::Carved { path, because } => Some(format!(
            "new entries cannot be created directly in {}, because {} in it is closed",
            shown(path),
            shown(because)
        )),
        PolicyNote::HardLinks { path, links } => {
            Some(format!("{} has {links} hard links; only this name is closed", shown(path)))
        }
    }
}
