//! `ps`, `inspect`, `stop`: running sessions.

use std::path::PathBuf;

use nono::control;
use nono::diagnostic::{attempt_words, escape, quote_all, shown};
use nono::{Refused, SessionInfo, SessionStatus};

use crate::age::{ago, local};
use crate::args::{InspectArgs, JsonArg, StopArgs};
use crate::failure::Failure;
use crate::host::host;
use crate::message;
use crate::units::{shortened, table};

pub(crate) fn ps(args: &JsonArg) -> Result<u8, Failure> {
    let (sessions, problems) = control::list(&state_dir()?)?;
    for problem in &problems {
        message::line(&format!("warning: {problem}"));
    }
    if args.json {
        let infos: Vec<&SessionInfo> = sessions.iter().map(|session| &session.info).collect();
        message::answer_json(&infos)
    } else if sessions.is_empty() {
        message::answer("no session is running")
    } else {
        let mut rows = vec![TITLES.map(str::to_owned)];
        rows.extend(sessions.iter().map(|session| row(&session.info)));
        message::answer(&table(&rows).join("\n"))
    }
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<u8, Failure> {
    let status = control::find(&state_dir()?, &args.session)?.inspect()?;
    message::answer_either(args.json, || &status, || details(&status).join("\n"))
}

pub(crate) fn stop(args: &StopArgs) -> Result<u8, Failure> {
    let session = control::find(&state_dir()?, &args.session)?;
    let (id, command) = (escape(&session.info.id), quote_all(&session.info.command));
    if args.dry_run {
        return message::answer(&format!("would stop {id}: {command}"));
    }
    session.stop()?;
    message::answer(&format!("stopping {id}: {command}"))
}

/// Creates nothing: without a state folder no session runs.
fn state_dir() -> Result<PathBuf, Failure> {
    let host = host(None)?;
    if host.nested {
        return Err(Failure::new("nono inside a sandbox cannot list or stop sessions")
            .hint("`nono why --self` explains this sandbox, `nono request` asks for more"));
    }
    let state_dir = host.context.state_dir;
    if state_dir.symlink_metadata().is_ok() {
        nono::state_dir::ensure(&state_dir)?;
    }
    Ok(state_dir)
}

const TITLES: [&str; 5] = ["ID", "STARTED", "PID", "NAME", "COMMAND"];

/// Maximum number of characters of a command.
const COMMAND: usize = 60;

fn row(info: &SessionInfo) -> [String; 5] {
    let command = shortened(quote_all(&info.command), COMMAND);
    let name = info.name.as_deref().map_or_else(|| "-".to_owned(), escape);
    [escape(&info.id), ago(&info.started), info.pid.to_string(), name, command]
}

fn details(status: &SessionStatus) -> Vec<String> {
    let SessionStatus { session: info, mediation, .. } = status;
    let none = || "none".to_owned();
    let refused = mediation.refused.iter().map(|one| one.count).sum::<u64>() + mediation.refused_unlisted;
    let mut lines = vec![
        format!("session:    {}", escape(&info.id)),
        format!("name:       {}", info.name.as_deref().map_or_else(none, escape)),
        format!("pid:        {}", info.pid),
        format!("started:    {} ({})", ago(&info.started), local(&info.started)),
        format!("command:    {}", quote_all(&info.command)),
        format!("directory:  {}", shown(&info.workdir)),
        format!("grants:     {} from the start, {} since", info.grants, status.expansions),
        format!("questions:  {} asked, {} waiting", mediation.asked, status.questions_waiting),
        format!("rollback:   {}", info.rollback.as_deref().map_or_else(none, escape)),
        format!("refused:    {}", refused),
    ];
    lines.extend(mediation.expansions.iter().map(|grant| {
        format!("  granted   {} {} (by {})", grant.access, shown(&grant.path), escape(&grant.by))
    }));
    lines.extend(mediation.refused.iter().map(|refused| format!("  refused   {}", refusal(refused))));
    lines
}

fn refusal(refused: &Refused) -> String {
    let times = if refused.count == 1 { String::new() } else { format!(", {} times", refused.count) };
    format!("{} ({}, pid {}{times})", attempt_words(&refused.attempt), shown(&refused.program), refused.pid)
}
