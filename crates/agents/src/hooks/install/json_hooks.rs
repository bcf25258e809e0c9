//! Hooks in a JSON file of the shape that Claude Code introduced: `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"type":
//! "command", "command": …}]}]}}`, or without the groups.

use jsonc_parser::ast::Value as JsonNode;
use jsonc_parser::common::Ranged;
use serde_json::{Value, json};

use super::super::agents::Agent;
use super::super::agents::adapter::{HookFormat, HooksFile};
use super::jsonc::{self, HookFileProblem, Layout, elements, get};

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

/// Check that the agent can read the file: otherwise no hook in it works.
fn check(text: &str, agent: Agent) -> Result<(), HookFileProblem> {
    if shape(agent).is_some_and(|file| file.strict) {
        return jsonc::check_strict(text);
    }
    // The agent strips comments; the rest is JSON.
    jsonc::check_commented(split_mark(text).1)
}

/// Byte order mark and the text after it.
fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
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

/// Parse the text after the mark, and check the shape of its hooks.
fn read(text: &str) -> Result<JsonNode<'_>, HookFileProblem> {
    let problem = |node: &JsonNode<'_>, what| Err(HookFileProblem::new(text, node.start(), what));
    let root = jsonc::parse(text)?;
    if root.as_object().is_none() {
        return problem(&root, "an object is expected");
    }
    let Some(hooks) = get(&root, "hooks") else { return Ok(root) };
    let Some(events) = hooks.as_object() else { return problem(hooks, "`hooks` should be an object") };
    for member in &events.properties {
        // Other settings may be in there, too; only the lists that nono extends are checked.
        for group in elements(&member.value) {
            if get(group, "hooks").is_some_and(|inner| inner.as_array().is_none()) {
                return problem(group, "`hooks` of a group should be a list");
            }
        }
    }
    Ok(root)
}

fn found(root: &JsonNode<'_>, agent: Agent) -> Vec<HookPosition> {
    let Some(events) = get(root, "hooks").and_then(JsonNode::as_object) else { return Vec::new() };
    let Some(file) = shape(agent) else { return Vec::new() };
    let key = command_key(file);
    let mut found = Vec::new();
    for member in &events.properties {
        let event = member.name.as_str();
        let signature = signature(agent, event);
        for (group, node) in elements(&member.value).iter().enumerate() {
            let entries = match file.format {
                HookFormat::Groups => get(node, "hooks").map(elements).unwrap_or_default(),
                _ => std::slice::from_ref(node),
            };
            for (entry, hook) in entries.iter().enumerate() {
                let command = get(hook, key).and_then(JsonNode::as_string_lit);
                if let Some(command) = command.filter(|command| command.value.ends_with(&signature)) {
                    let (event, command) = (event.to_owned(), command.value.to_string());
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
    let root = read(split_mark(text).1)?;
    Ok(found(&root, agent).into_iter().map(|found| (found.event, found.command)).collect())
}

/// Boolean setting at a path in a file.
pub(super) fn flag(text: &str, path: &[&str]) -> Option<bool> {
    let root = jsonc::parse(split_mark(text).1).ok()?;
    let node = path.iter().try_fold(&root, |node, key| get(node, key))?;
    node.as_boolean_lit().map(|flag| flag.value)
}

pub(super) fn install(text: &str, hooks: &[Hook], agent: Agent) -> Result<String, HookFileProblem> {
    check(text, agent)?;
    let (mark, text) = split_mark(text);
    let mut text = text.to_owned();
    // Hooks that an earlier version added to an event that is not used any more.
    while let Some(old) = first(&text, agent, |found| !hooks.iter().any(|hook| hook.event == found.event))? {
        text = without(&text, &old)?;
    }
    let Some(file) = shape(agent) else { return Ok(format!("{mark}{text}")) };
    for (key, value) in &file.top {
        let root = read(&text)?;
        if get(&root, key).is_none() {
            text = jsonc::push(&text, &root, Some(key), value, &Layout::of(&text, &root));
        }
    }
    for hook in hooks {
        text = with(text, hook, agent, &hook.element(file))?;
    }
    Ok(format!("{mark}{text}"))
}

/// Remove nono's hooks, even from a file that the agent does not read, if its structure is clear.
pub(super) fn remove(text: &str, agent: Agent) -> Result<String, HookFileProblem> {
    let (mark, text) = split_mark(text);
    let mut text = text.to_owned();
    while let Some(ours) = first(&text, agent, |_| true)? {
        text = without(&text, &ours)?;
    }
    Ok(format!("{mark}{text}"))
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
        let Some(hooks) = get(&root, "hooks") else {
            return Ok(jsonc::push(&text, &root, Some("hooks"), &json!({hook.event: [wanted]}), &layout));
        };
        let Some(groups) = get(hooks, hook.event) else {
            return Ok(jsonc::push(&text, hooks, Some(hook.event), &json!([wanted]), &layout));
        };
        if groups.as_array().is_none() {
            let what = "the hooks of an event should be a list";
            return Err(HookFileProblem::new(&text, groups.start(), what));
        }
        let mut ours = found(&root, agent).into_iter().filter(|found| found.event == hook.event);
        match (ours.next(), ours.next()) {
            (None, _) => return Ok(jsonc::push(&text, groups, None, wanted, &layout)),
            (Some(only), None) if only.is_alone => {
                let node = &elements(groups)[only.group];
                if Value::from(node.clone()) == *wanted {
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
    let hooks = get(&root, "hooks");
    let Some((hooks, groups)) = hooks.and_then(|hooks| Some((hooks, get(hooks, &ours.event)?))) else {
        return Ok(text.to_owned());
    };
    let removed = if !ours.is_alone {
        get(&elements(groups)[ours.group], "hooks").map(|entries| (entries, ours.entry))
    } else if elements(groups).len() > 1 {
        Some((groups, ours.group))
    } else {
        let is_last = hooks.as_object().is_some_and(|events| events.properties.len() == 1);
        let (container, key) = if is_last { (&root, "hooks") } else { (hooks, ours.event.as_str()) };
        let members = container.as_object().map(|object| &object.properties);
        let index = members.and_then(|members| members.iter().position(|one| one.name.as_str() == key));
        index.map(|index| (container, index))
    };
    Ok(removed.map_or_else(|| text.to_owned(), |(container, index)| jsonc::remove(text, container, index)))
}
