//! Extraction of values from a payload: bounded, and tolerant of missing parts.

use std::path::{Path, PathBuf};

use nono_checkpoint::trigger::{ToolCall, patch};
use nono_sys::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::OUTPUT;

/// Maximum length of an id or a tool name, in bytes; longer ones are cut, because they go into records and lists.
const ID: usize = 200;
/// Maximum length of a path; no system has longer ones.
const PATH: usize = 4096;
/// Maximum number of paths of one call.
const PATHS: usize = 1000;
/// Keys that name the starting directory of a shell command.
const DIRECTORIES: [&str; 4] = ["workdir", "dir_path", "directory", "cwd"];

/// Cut to at most `limit` bytes, at a character boundary.
fn cut(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// Value at a place: keys and indexes joined by dots. A string on the way is parsed as JSON.
pub(super) fn at(payload: &Value, place: &str) -> Option<Value> {
    let Some((key, rest)) = place.split_once('.') else { return member(payload, place) };
    match payload {
        // By reference, not by copy: a call may be many megabytes long.
        Value::Object(members) => at(members.get(key)?, rest),
        Value::Array(list) => at(list.get(key.parse::<usize>().ok()?)?, rest),
        _ => at(&member(payload, key)?, rest),
    }
}

fn member(value: &Value, key: &str) -> Option<Value> {
    match value {
        Value::Object(members) => members.get(key).cloned(),
        Value::Array(list) => list.get(key.parse::<usize>().ok()?).cloned(),
        Value::String(text) => serde_json::from_str::<Value>(text).ok()?.get(key).cloned(),
        _ => None,
    }
}

/// Value at the first of several places that has one.
pub(super) fn first(payload: &Value, places: &[String]) -> Option<Value> {
    places.iter().filter_map(|place| at(payload, place)).find(|value| !value.is_null())
}

/// Short text that identifies something.
pub(super) fn id(payload: &Value, places: &[String]) -> Option<String> {
    let found = places.iter().filter_map(|place| at(payload, place));
    let mut texts = found.filter_map(|value| value.as_str().map(|text| cut(text, ID).to_owned()));
    texts.find(|text| !text.is_empty())
}

/// Input of a tool; a string is parsed as JSON.
pub(super) fn input(payload: &Value, places: &[String]) -> Value {
    match first(payload, places) {
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        Some(value) => value,
        None => Value::Null,
    }
}

/// Beginning of the user's prompt.
pub(super) fn prompt(payload: &Value, places: &[String]) -> String {
    const PROMPT: usize = 4096;
    let said = first(payload, places);
    said.as_ref().and_then(Value::as_str).map(|text| cut(text, PROMPT).to_owned()).unwrap_or_default()
}

/// End of a text, limited to the examined length.
pub(super) fn tail(text: &str) -> String {
    let from = text.len().saturating_sub(OUTPUT);
    let from = (from..=text.len()).find(|from| text.is_char_boundary(*from)).unwrap_or(from);
    text[from..].to_owned()
}

/// Text as a path, if it can be one.
fn path(text: &str) -> Option<PathBuf> {
    let fits = !text.is_empty() && text.len() <= PATH && !text.contains('\0');
    fits.then(|| PathBuf::from(text))
}

/// Directory of a call: the agent's, unless a shell command names another one.
pub(super) fn place(payload: &Value, places: &[String], input: &Value, is_shell: bool) -> Option<PathBuf> {
    let found = places.iter().filter_map(|place| path(at(payload, place)?.as_str()?));
    let cwd = found.into_iter().find(|dir| dir.is_absolute());
    let moved = if is_shell { shell_dir(input, cwd.as_deref()) } else { None };
    moved.or(cwd)
}

/// Starting directory that the input of a shell command names, if any.
fn shell_dir(input: &Value, cwd: Option<&Path>) -> Option<PathBuf> {
    let named = DIRECTORIES.iter().find_map(|key| path(input.get(key)?.as_str()?))?;
    match cwd {
        Some(cwd) => Some(cwd.join(named)),
        None => named.is_absolute().then_some(named),
    }
}

/// Path under one of these keys.
pub(super) fn path_at(input: &Value, keys: &[String]) -> Option<PathBuf> {
    keys.iter().find_map(|key| path(input.get(key)?.as_str()?))
}

/// Call that writes these paths. Without any it is the whole project: when in doubt, too much.
pub(super) fn files(tool: &str, paths: impl IntoIterator<Item = PathBuf>) -> ToolCall {
    let mut paths: Vec<PathBuf> = paths.into_iter().take(PATHS).collect();
    if paths.is_empty() {
        paths.push(PathBuf::from("."));
    }
    ToolCall::Files { tool: tool.to_owned(), paths }
}

/// Call that applies the patch under one of these keys.
pub(super) fn patched(tool: &str, input: &Value, keys: &[String]) -> ToolCall {
    let text = keys.iter().find_map(|key| input.get(key)?.as_str());
    let paths = text.map(patch::paths).unwrap_or_default();
    files(tool, paths.iter().filter_map(|text| path(text)))
}

pub(super) fn other(tool: &str) -> ToolCall {
    ToolCall::Other { tool: tool.to_owned() }
}

/// Shell command line under one of these keys; may be a list of arguments.
pub(super) fn command(input: &Value, keys: &[String]) -> Option<String> {
    keys.iter().find_map(|key| line(input.get(key)?))
}

fn line(value: &Value) -> Option<String> {
    let argv = match value {
        Value::String(line) => return Some(line.clone()),
        Value::Array(argv) => argv.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?,
        _ => return None,
    };
    match argv.as_slice() {
        [] => None,
        [shell, flag, line, ..] if is_shell(shell) && matches!(*flag, "-c" | "-lc" | "-ic" | "-lic") => {
            Some((*line).to_owned())
        }
        words => Some(words.iter().map(|word| super::super::quote(word)).collect::<Vec<_>>().join(" ")),
    }
}

fn is_shell(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    matches!(name, Some("sh" | "bash" | "zsh" | "dash" | "ksh"))
}

/// Id for a call of an agent that gives its calls none: the same before and after the call.
pub(super) fn derived_id(tool: &str, input: &Value) -> String {
    let digest = Sha256::digest(input.to_string().as_bytes());
    format!("{tool}-{}", hex::encode(&digest[..6]))
}

/// Output of a tool, from the keys that agents use.
pub(super) fn output(value: &Value) -> String {
    const KEYS: [&str; 6] = ["stdout", "stderr", "output", "llmContent", "error", "message"];
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => Some(output(&inner)).filter(|said| !said.is_empty()),
            _ => None,
        }
        .unwrap_or_else(|| tail(text)),
        Value::Object(_) => {
            let parts = KEYS.iter().filter_map(|key| match value.get(key)? {
                Value::String(text) => Some(text.clone()),
                nested @ Value::Object(_) => Some(output(nested)),
                _ => None,
            });
            let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
            tail(&parts.join("\n"))
        }
        _ => String::new(),
    }
}
