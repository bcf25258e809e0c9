//! Tools inside a sandbox: requests to the supervisor, which has the checkpoints and asks the user before it restores
//! or opens anything. This process changes no file.

use std::path::{Path, PathBuf};

use nono::AccessMode;
use nono::checkpoints::supervisor_request::RemoteAction;
use nono::checkpoints::{Brief, Conflicts, Origin, json as shapes};
use nono::diagnostic::{escape, quote_all, shown};
use nono::request::{self, FileContent, FileRequestAnswer as Reply};
use serde_json::{Value, json};

use super::answer::ToolAnswer;
use super::responses;
use crate::commands::checkpoints::inside::{Outside, created, restored, strange};
use crate::failure::Failure;
use crate::host::request_socket;

/// Maximum number of bytes of a granted file in the answer.
const CONTENT: usize = 24 << 10;

/// Request socket of the supervisor around this process.
pub(super) fn socket() -> Result<PathBuf, Failure> {
    request_socket().ok_or_else(|| {
        Failure::new("this sandbox has no supervisor to ask")
            .hint("tell the user: `nono run` has a supervisor; `nono wrap` and --monitor have none")
    })
}

pub(super) fn list(outside: &Outside<'_>, limit: usize) -> Result<ToolAnswer, Failure> {
    let answer = outside.ask(RemoteAction::List { dir: outside.at(None) })?;
    let listed = shapes::listed(&answer).ok_or_else(strange)?;
    Ok(responses::list(&listed, limit))
}

pub(super) fn diff(outside: &Outside<'_>, target: &str, paths: &[PathBuf]) -> Result<ToolAnswer, Failure> {
    let (id, found, left_out) = compared(outside, target, paths)?;
    Ok(responses::diff(&id, &found, left_out))
}

pub(super) fn changes(outside: &Outside<'_>) -> Result<ToolAnswer, Failure> {
    let (id, found, left_out) = compared(outside, "1", &[])?;
    Ok(responses::changes(&format!("Changed since checkpoint {id}:"), found, left_out))
}

fn compared(outside: &Outside<'_>, target: &str, paths: &[PathBuf]) -> Result<(String, Brief, u64), Failure> {
    let answer = outside.ask(RemoteAction::Diff {
        dir: outside.at(None),
        target: target.to_owned(),
        paths: outside.paths(paths),
        brief: true,
    })?;
    let id = answer["checkpoint"].as_str().ok_or_else(strange)?.chars().take(8).collect();
    let found = serde_json::from_value(answer["brief"].clone()).map_err(|_| strange())?;
    Ok((id, found, answer["left_out"].as_u64().unwrap_or(0)))
}

pub(super) fn create(outside: &Outside<'_>, reason: String) -> Result<ToolAnswer, Failure> {
    let targets = vec![outside.at(None)];
    let answer =
        outside.ask(RemoteAction::Before { origin: Origin::default(), reason, command: None, targets })?;
    let result = answer["results"].get(0).ok_or_else(strange)?;
    Ok(ToolAnswer::new(created(result)?, responses::harmless(result.clone())))
}

pub(super) fn restore(
    outside: &Outside<'_>,
    target: String,
    paths: &[PathBuf],
) -> Result<ToolAnswer, Failure> {
    let answer = outside.ask(RemoteAction::Restore {
        dir: outside.at(None),
        target,
        paths: outside.paths(paths),
        conflicts: Conflicts::Keep,
    });
    let answer = answer.map_err(|failure| {
        Failure::refused(format!("nothing was restored: {}", failure.sentence()))
            .hint("only the person can agree to a restore; do not try another way")
    })?;
    let (line, whole) = restored(&answer)?;
    let mut value = responses::short(answer);
    value["restored"] = json!(true);
    let text = format!("{line}; outside of the sandbox `nono checkpoints undo` takes it back");
    let answer = ToolAnswer::new(text, responses::harmless(value));
    Ok(if whole { answer } else { answer.failed() })
}

pub(super) fn request(
    outside: &Outside<'_>,
    path: &Path,
    access: AccessMode,
    reason: &str,
) -> Result<ToolAnswer, Failure> {
    let path = outside.cwd.join(path);
    let about = |granted: bool| json!({"path": shown(&path), "access": access, "granted": granted, "already_open": false});
    match request::ask_for(outside.socket, &path, access, Some(reason), outside.wait)? {
        Reply::AlreadyOpen => {
            let mut value = about(true);
            value["already_open"] = json!(true);
            let text = format!("{access} {} is open in this sandbox already: use it", shown(&path));
            Ok(ToolAnswer::new(text, value))
        }
        Reply::Denied { by, reason } => {
            let by = by.map_or_else(String::new, |by| format!(" by {}", escape(&by)));
            let text = format!(
                "denied{by}: {access} {}: {}\nDo not try another way; tell the user what you would need it for.",
                shown(&path),
                escape(&reason)
            );
            let mut value = about(false);
            value["message"] = json!(text);
            Ok(ToolAnswer::new(text, value).failed())
        }
        Reply::Granted { fd, by } => {
            let said = format!("granted by {}: {access} {}", escape(&by), shown(&path));
            let mut value = about(true);
            let more = if access == AccessMode::Read {
                let content =
                    request::content(fd, CONTENT).map_err(|error| Failure::cannot("read", &path, &error))?;
                read(&path, content, &mut value)
            } else {
                written(&path, access)
            };
            Ok(ToolAnswer::new(format!("{said}\n{more}"), value))
        }
    }
}

/// Content of a file that was granted for reading.
fn read(path: &Path, content: FileContent, value: &mut Value) -> String {
    let lines = |text: &str| {
        let line = |line: &str| line.split('\t').map(escape).collect::<Vec<_>>().join("\t");
        text.split('\n').map(line).collect::<Vec<_>>().join("\n")
    };
    let again = |how: &str| {
        let command = quote_all(&["nono", "request", "--read", &path.to_string_lossy()].map(str::to_owned));
        format!("{how}: `{command}` in a shell writes all of it to stdout, once the person agreed")
    };
    match content {
        FileContent::Text { text, more } => {
            value["text"] = json!(lines(&text));
            value["more_bytes"] = json!(more);
            let cut = if more > 0 {
                again(&format!("\n... and {more} more bytes, which were cut here"))
            } else {
                String::new()
            };
            format!("\n{}{cut}", lines(&text))
        }
        FileContent::Binary { size, sha256 } => {
            value["size"] = json!(size);
            value["sha256"] = json!(sha256);
            again(&format!("binary, {size} bytes, sha256 {sha256}"))
        }
        FileContent::Directory => {
            "it is a directory; where the person answered for the whole session, what is in it can be \
                               opened now"
                .to_owned()
        }
        FileContent::Other => "it is not a regular file, so it cannot be shown here".to_owned(),
    }
}

/// Next step after a grant for writing: the protocol cannot pass a descriptor.
fn written(path: &Path, access: AccessMode) -> String {
    let flag = if access == AccessMode::Write { "--write" } else { "--allow" };
    let command = quote_all(&["nono", "request", flag, &path.to_string_lossy()].map(str::to_owned));
    format!(
        "where the person answered for the whole session, it can be opened now; else `{command} -- COMMAND` runs a command \
         with it as descriptor 3"
    )
}
