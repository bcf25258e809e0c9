//! Hooks in a JSON file of the shape that Claude Code introduced: `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"type":
//! "command", "command": …}]}]}}`, or without the groups.

use std::path::Path;

use serde_json::{Value, json};

use super::super::agents::Agent;
use super::super::agents::adapter::{HookFormat, HooksFile};
use super::InstallError;
use super::jsonc::{self, Commas, JsonKind, JsonNode, Layout, Wrong};

/// One hook to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hook {
    pub(super) event: &'static str,
    pub(super) command: String,
    /// Timeout in the agent's unit.
    pub(super) timeout: u64,
}

impl Hook {
    /// JSON of the hook in the list of its event.
    fn element(&self, file: &HooksFile) -> Value {
        let entry = file.entry.as_object().into_iter().flatten();
        let fill = |(key, value): (&String, &Value)| {
            let value = match value.as_str() {
                Some("$command") => json!(self.command),
                Some("$timeout") => json!(self.timeout),
                _ => value.clone(),
            };
            (key.clone(), value)
        };
        let hook: Value = entry.map(fill).collect();
        if file.format == HookFormat::Groups { json!({"hooks": [hook]}) } else { hook }
    }
}

/// Description of an agent's hooks file; agents without one never get here.
fn shape(agent: Agent) -> Option<&'static HooksFile> {
    agent.adapter().install.hooks.as_ref()
}

/// Key of an entry that holds the command.
fn command_key(file: &HooksFile) -> &str {
    let members = file.entry.as_object().into_iter().flatten();
    members.into_iter().find(|(_, value)| **value == "$command").map_or("command", |(key, _)| key.as_str())
}

/// Suffix of every command of nono's; what is before it may change.
pub(super) fn signature(agent: Agent, event: &str) -> String {
    signature_of(agent.name(), event)
}

pub(super) fn signature_of(agent: &str, event: &str) -> String {
    format!(" hook {agent} {event}")
}

/// Error in a file, with its position.
#[derive(Debug)]
pub(super) struct HookFileProblem {
    line: usize,
    column: usize,
    what: String,
}

impl HookFileProblem {
    pub(super) fn at(self, path: &Path) -> InstallError {
        let HookFileProblem { line, column, what } = self;
        InstallError::Malformed { path: path.to_owned(), line, column, what }
    }

    fn shape(text: &str, node: &JsonNode, what: &'static str) -> HookFileProblem {
        let (line, column) = jsonc::position(text, node.span.start);
        HookFileProblem { line, column, what: what.to_owned() }
    }

    /// Error of a parser that counts bytes and puts the position into its message.
    fn strict(text: &str, error: &serde_json::Error) -> HookFileProblem {
        let before: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let (line, column) = jsonc::position(text, before + error.column().saturating_sub(1));
        let said = error.to_string();
        let what = said.split(" at line ").next().unwrap_or_default();
        HookFileProblem { line, column, what: format!("the agent does not read this as JSON: {what}") }
    }
}

impl From<Wrong> for HookFileProblem {
    fn from(Wrong { line, column, what }: Wrong) -> HookFileProblem {
        HookFileProblem { line, column, what: what.to_owned() }
    }
}

/// Check that the agent can read the file: otherwise no hook in it works.
fn check(text: &str, agent: Agent) -> Result<(), HookFileProblem> {
    if shape(agent).is_some_and(|file| file.strict) {
        let read = serde_json::from_str::<serde::de::IgnoredAny>(text);
        return read.map(|_| ()).map_err(|error| HookFileProblem::strict(text, &error));
    }
    // The agent strips comments; the rest is JSON.
    Ok(jsonc::parse_with(text, Commas::Between).map(|_| ())?)
}

/// A hook of nono's in a file: its event, and the indexes of its group and entry.
struct HookPosition {
    event: String,
    group: usize,
    entry: usize,
    command: String,
    /// Whether its group has no other entry.
    is_alone: bool,
}

/// Parse the file, and check the shape of its hooks.
fn read(text: &str) -> Result<JsonNode, HookFileProblem> {
    let root = jsonc::parse(text)?;
    if !matches!(root.kind, JsonKind::Object(_)) {
        return Err(HookFileProblem::shape(text, &root, "an object is expected"));
    }
    let Some(hooks) = root.get("hooks") else { return Ok(root) };
    let JsonKind::Object(events) = &hooks.kind else {
        return Err(HookFileProblem::shape(text, hooks, "`hooks` should be an object"));
    };
    for (_, member) in events {
        // Other settings may be in there, too; only the lists that nono extends are checked.
        for group in member.value.elements() {
            if group.get("hooks").is_some_and(|inner| !matches!(inner.kind, JsonKind::Array(_))) {
                return Err(HookFileProblem::shape(text, group, "`hooks` of a group should be a list"));
            }
        }
    }
    Ok(root)
}

fn found(root: &JsonNode, agent: Agent) -> Vec<HookPosition> {
    let Some(JsonKind::Object(events)) = root.get("hooks").map(|hooks| &hooks.kind) else {
        return Vec::new();
    };
    let Some(file) = shape(agent) else { return Vec::new() };
    let key = command_key(file);
    let mut found = Vec::new();
    for (event, member) in events {
        let signature = signature(agent, event);
        for (group, node) in member.value.elements().iter().enumerate() {
            let entries = match file.format {
                HookFormat::Groups => node.get("hooks").map(JsonNode::elements).unwrap_or_default(),
                _ => std::slice::from_ref(node),
            };
            for (entry, hook) in entries.iter().enumerate() {
                let command = hook.get(key).and_then(JsonNode::text).unwrap_or_default();
                if command.ends_with(&signature) {
                    let (event, command) = (event.clone(), command.to_owned());
                    found.push(HookPosition { event, group, entry, command, is_alone: entries.len() == 1 });
                }
            }
        }
    }
    found
}

/// Commands of nono's in a file, with their events.
pub(super) fn commands(text: &str, agent: Agent) -> Result<Vec<(String, String)>, HookFileProblem> {
    check(text, agent)?;
    let root = read(text)?;
    Ok(found(&root, agent).into_iter().map(|found| (found.event, found.command)).collect())
}

/// Boolean setting at a path in a file.
pub(super) fn flag(text: &str, path: &[&str]) -> Option<bool> {
    let root = jsonc::parse(text).ok()?;
    let node = path.iter().try_fold(&root, |node, key| node.get(key))?;
    text[node.span.clone()].parse().ok()
}

pub(super) fn install(text: &str, hooks: &[Hook], agent: Agent) -> Result<String, HookFileProblem> {
    check(text, agent)?;
    let mut text = text.to_owned();
    // Hooks that an earlier version added to an event that is not used any more.
    while let Some(old) = first(&text, agent, |found| !hooks.iter().any(|hook| hook.event == found.event))? {
        text = without(&text, &old)?;
    }
    let Some(file) = shape(agent) else { return Ok(text) };
    for (key, value) in &file.top {
        let root = read(&text)?;
        if root.get(key).is_none() {
            text = jsonc::push(&text, &root, Some(key), value, &Layout::of(&text, &root));
        }
    }
    for hook in hooks {
        text = with(text, hook, agent, &hook.element(file))?;
    }
    Ok(text)
}

/// Remove nono's hooks, even from a file that the agent does not read, if its structure is clear.
pub(super) fn remove(text: &str, agent: Agent) -> Result<String, HookFileProblem> {
    let mut text = text.to_owned();
    while let Some(ours) = first(&text, agent, |_| true)? {
        text = without(&text, &ours)?;
    }
    Ok(text)
}

fn first(
    text: &str,
    agent: Agent,
    is_meant: impl Fn(&HookPosition) -> bool,
) -> Result<Option<HookPosition>, HookFileProblem> {
    Ok(found(&read(text)?, agent).into_iter().find(is_meant))
}

/// Text with this hook exactly once, in the wanted form.
fn with(mut text: String, hook: &Hook, agent: Agent, wanted: &Value) -> Result<String, HookFileProblem> {
    loop {
        let root = read(&text)?;
        let layout = Layout::of(&text, &root);
        let Some(hooks) = root.get("hooks") else {
            return Ok(jsonc::push(&text, &root, Some("hooks"), &json!({hook.event: [wanted]}), &layout));
        };
        let Some(groups) = hooks.get(hook.event) else {
            return Ok(jsonc::push(&text, hooks, Some(hook.event), &json!([wanted]), &layout));
        };
        if !matches!(groups.kind, JsonKind::Array(_)) {
            return Err(HookFileProblem::shape(&text, groups, "the hooks of an event should be a list"));
        }
        let mut ours = found(&root, agent).into_iter().filter(|found| found.event == hook.event);
        match (ours.next(), ours.next()) {
            (None, _) => return Ok(jsonc::push(&text, groups, None, wanted, &layout)),
            (Some(only), None) if only.is_alone => {
                let node = &groups.elements()[only.group];
                if value(&text, node) == *wanted {
                    return Ok(text);
                }
                return Ok(jsonc::replace(&text, node, wanted, &layout));
            }
            // More than one, or one among others in a group: remove it, and add a group of its own.
            (Some(extra), _) => text = without(&text, &extra)?,
        }
    }
}

/// Text without this hook, and without the containers it leaves empty.
fn without(text: &str, ours: &HookPosition) -> Result<String, HookFileProblem> {
    let root = read(text)?;
    let Some((hooks, groups)) = root.get("hooks").and_then(|hooks| Some((hooks, hooks.get(&ours.event)?)))
    else {
        return Ok(text.to_owned());
    };
    if !ours.is_alone {
        let entries = groups.elements()[ours.group].get("hooks");
        return Ok(
            entries.map_or_else(|| text.to_owned(), |entries| jsonc::remove(text, entries, ours.entry))
        );
    }
    if groups.elements().len() > 1 {
        return Ok(jsonc::remove(text, groups, ours.group));
    }
    let index = |node: &JsonNode, key: &str| match &node.kind {
        JsonKind::Object(members) => members.iter().position(|(name, _)| name == key),
        _ => None,
    };
    let is_last = matches!(&hooks.kind, JsonKind::Object(events) if events.len() == 1);
    let (container, key) = if is_last { (&root, "hooks") } else { (hooks, ours.event.as_str()) };
    Ok(index(container, key).map_or_else(|| text.to_owned(), |at| jsonc::remove(text, container, at)))
}

/// Node as a value, without comments.
fn value(text: &str, node: &JsonNode) -> Value {
    match &node.kind {
        JsonKind::Object(members) => {
            members.iter().map(|(key, member)| (key.clone(), value(text, &member.value))).collect()
        }
        JsonKind::Array(elements) => elements.iter().map(|node| value(text, node)).collect(),
        JsonKind::Text(text) => json!(text),
        JsonKind::Other => serde_json::from_str(&text[node.span.clone()]).unwrap_or_default(),
    }
}
