//! Tools and their arguments, parsed and checked before anything is done.

use std::path::PathBuf;

use nono::AccessMode;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Maximum length of a checkpoint's number, id or name.
pub(super) const TARGET: usize = 100;
/// Maximum length of a path in bytes.
pub(super) const PATH: usize = 4096;
/// Maximum number of paths in a call.
pub(super) const PATHS: usize = 100;
/// Maximum length of a reason.
pub(super) const REASON: usize = 500;
/// Maximum length of a host's or a profile's name.
pub(super) const NAME: usize = 255;
/// Maximum number of checkpoints in a list.
pub(super) const LISTED: u64 = 100;
pub(super) const LISTED_BY_DEFAULT: u64 = 20;

/// Valid call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    List { limit: usize },
    Diff { checkpoint: String, paths: Vec<PathBuf> },
    Create { reason: String },
    Restore { checkpoint: String, paths: Vec<PathBuf> },
    Changes,
    WhyPath { path: PathBuf, operation: AccessMode, profile: Option<String> },
    WhyHost { host: String, port: Option<u16>, profile: Option<String> },
    Request { path: PathBuf, access: AccessMode, reason: String },
}

pub(super) const NAMES: [&str; 7] = [
    "list_checkpoints",
    "diff_checkpoint",
    "create_checkpoint",
    "restore_checkpoint",
    "changes",
    "why",
    "request_access",
];

impl Tool {
    /// Parses a call of one of the [`NAMES`]; `None` for any other name.
    pub(super) fn read(name: &str, arguments: Map<String, Value>) -> Option<Result<Tool, Failure>> {
        let mut given = Arguments(arguments);
        let tool = match name {
            "list_checkpoints" => list(&mut given),
            "diff_checkpoint" => {
                target(&mut given).map(|(checkpoint, paths)| Tool::Diff { checkpoint, paths })
            }
            "create_checkpoint" => create(&mut given),
            "restore_checkpoint" => {
                target(&mut given).map(|(checkpoint, paths)| Tool::Restore { checkpoint, paths })
            }
            "changes" => Ok(Tool::Changes),
            "why" => why(&mut given),
            "request_access" => request(&mut given),
            _ => return None,
        };
        Some(tool.and_then(|tool| given.end().map(|()| tool)))
    }

    /// Whether the user is asked, which has no time limit.
    pub(super) fn asks(&self) -> bool {
        matches!(self, Tool::Restore { .. } | Tool::Request { .. })
    }
}

fn list(given: &mut Arguments) -> Result<Tool, Failure> {
    let limit = given.number("limit", 1, LISTED)?.unwrap_or(LISTED_BY_DEFAULT);
    Ok(Tool::List { limit: usize::try_from(limit).unwrap_or(usize::MAX) })
}

fn create(given: &mut Arguments) -> Result<Tool, Failure> {
    let reason = given.text("reason", REASON)?;
    Ok(Tool::Create { reason: reason.unwrap_or_else(|| "asked for by an agent".to_owned()) })
}

fn target(given: &mut Arguments) -> Result<(String, Vec<PathBuf>), Failure> {
    // Models pass the number in the list as a JSON number.
    if let Some(Value::Number(number)) = given.0.get("checkpoint") {
        let text = number.to_string();
        given.0.insert("checkpoint".to_owned(), Value::String(text));
    }
    let checkpoint = given.needed("checkpoint", TARGET)?;
    Ok((checkpoint, given.paths("paths")?))
}

fn why(given: &mut Arguments) -> Result<Tool, Failure> {
    let (path, host) = (given.text("path", PATH)?, given.text("host", NAME)?);
    let operation = given.access("operation")?;
    let port = given.number("port", 1, u64::from(u16::MAX))?.and_then(|port| u16::try_from(port).ok());
    let profile = given.text("profile", NAME)?;
    match (path, host) {
        (Some(path), None) if port.is_none() => {
            let operation = operation.unwrap_or(AccessMode::Read);
            Ok(Tool::WhyPath { path: path.into(), operation, profile })
        }
        (None, Some(host)) if operation.is_none() => Ok(Tool::WhyHost { host, port, profile }),
        _ => Err(wrong("give either a path (with an operation) or a host (with a port)")),
    }
}

fn request(given: &mut Arguments) -> Result<Tool, Failure> {
    let path = given.needed("path", PATH)?.into();
    let access = given.access("access")?.unwrap_or(AccessMode::Read);
    Ok(Tool::Request { path, access, reason: given.needed("reason", REASON)? })
}

/// Arguments of a call that were not parsed yet.
struct Arguments(Map<String, Value>);

fn wrong(what: impl Into<String>) -> Failure {
    Failure::usage(what).hint("nothing was done; tools/list has the arguments of each tool")
}

impl Arguments {
    /// Removes an argument; `null` counts as absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.shift_remove(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str, most: usize) -> Result<Option<String>, Failure> {
        self.take(name).map(|value| checked(name, value, most)).transpose()
    }

    fn needed(&mut self, name: &str, most: usize) -> Result<String, Failure> {
        self.text(name, most)?.ok_or_else(|| wrong(format!("{name} is missing")))
    }

    fn number(&mut self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Failure> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_u64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(wrong(format!("{name} is a whole number from {least} to {most}"))),
        }
    }

    fn access(&mut self, name: &str) -> Result<Option<AccessMode>, Failure> {
        match self.text(name, NAME)?.as_deref() {
            None => Ok(None),
            Some("read") => Ok(Some(AccessMode::Read)),
            Some("write") => Ok(Some(AccessMode::Write)),
            Some("readwrite") => Ok(Some(AccessMode::ReadWrite)),
            Some(_) => Err(wrong(format!("{name} is read, write or readwrite"))),
        }
    }

    fn paths(&mut self, name: &str) -> Result<Vec<PathBuf>, Failure> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(all)) if all.len() <= PATHS => {
                all.into_iter().map(|one| checked(name, one, PATH).map(PathBuf::from)).collect()
            }
            Some(_) => Err(wrong(format!("{name} is a list of at most {PATHS} paths"))),
        }
    }

    fn end(self) -> Result<(), Failure> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => {
                let name: String = name.chars().take(64).collect();
                Err(wrong(format!("there is no argument {}", nono::diagnostic::escape(&name))))
            }
        }
    }
}

/// Checks a string. An empty one is an error: as a path it would mean everything.
fn checked(name: &str, value: Value, most: usize) -> Result<String, Failure> {
    match value {
        Value::String(text) if !text.is_empty() && text.len() <= most && !text.contains('\0') => Ok(text),
        _ => Err(wrong(format!("{name} is a text of 1 to {most} bytes, without a NUL"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(name: &str, arguments: &Value) -> Result<Tool, String> {
        let arguments = arguments.as_object().unwrap().clone();
        Tool::read(name, arguments).unwrap().map_err(|failure| failure.sentence().to_owned())
    }

    #[test]
    fn every_form() {
        assert_eq!(read("list_checkpoints", &json!({})), Ok(Tool::List { limit: 20 }));
        assert_eq!(read("list_checkpoints", &json!({"limit": 3})), Ok(Tool::List { limit: 3 }));
        let one = Tool::Diff { checkpoint: "2".to_owned(), paths: vec!["a".into()] };
        assert_eq!(read("diff_checkpoint", &json!({"checkpoint": 2, "paths": ["a"]})), Ok(one));
        let all = Tool::Restore { checkpoint: "ab12".to_owned(), paths: Vec::new() };
        assert_eq!(read("restore_checkpoint", &json!({"checkpoint": "ab12", "paths": null})), Ok(all));
        let host = Tool::WhyHost { host: "a.org".to_owned(), port: Some(443), profile: None };
        assert_eq!(read("why", &json!({"host": "a.org", "port": 443})), Ok(host));
        let wanted = Tool::Request { path: "/a".into(), access: AccessMode::Read, reason: "why".to_owned() };
        assert_eq!(read("request_access", &json!({"path": "/a", "reason": "why"})), Ok(wanted));
        for name in NAMES {
            assert!(Tool::read(name, Map::new()).is_some(), "{name}");
        }
        assert!(Tool::read("rm", Map::new()).is_none());
    }

    #[test]
    fn what_is_no_call() {
        let long = "x".repeat(1 << 20);
        for (name, arguments, words) in [
            ("list_checkpoints", json!({"limit": 0}), "limit is a whole number from 1 to 100"),
            ("list_checkpoints", json!({"limit": "x"}), "limit is a whole number from 1 to 100"),
            ("list_checkpoints", json!({"a\u{1b}": 1}), "there is no argument a\\u{1b}"),
            ("diff_checkpoint", json!({}), "checkpoint is missing"),
            (
                "diff_checkpoint",
                json!({"checkpoint": long}),
                "checkpoint is a text of 1 to 100 bytes, without a NUL",
            ),
            (
                "diff_checkpoint",
                json!({"checkpoint": []}),
                "checkpoint is a text of 1 to 100 bytes, without a NUL",
            ),
            (
                "restore_checkpoint",
                json!({"checkpoint": "1", "paths": [""]}),
                "paths is a text of 1 to 4096 bytes, without a NUL",
            ),
            (
                "restore_checkpoint",
                json!({"checkpoint": "1", "paths": "a"}),
                "paths is a list of at most 100 paths",
            ),
            ("restore_checkpoint", json!({"checkpoint": "1", "force": true}), "there is no argument force"),
            ("why", json!({}), "give either a path (with an operation) or a host (with a port)"),
            (
                "why",
                json!({"path": "a", "host": "b"}),
                "give either a path (with an operation) or a host (with a port)",
            ),
            ("why", json!({"path": "a", "operation": "run"}), "operation is read, write or readwrite"),
            ("why", json!({"host": "a", "port": 65536}), "port is a whole number from 1 to 65535"),
            ("request_access", json!({"path": "/a"}), "reason is missing"),
            (
                "request_access",
                json!({"path": "/a\0", "reason": "x"}),
                "path is a text of 1 to 4096 bytes, without a NUL",
            ),
        ] {
            assert_eq!(read(name, &arguments), Err(words.to_owned()), "{name}");
        }
    }
}
