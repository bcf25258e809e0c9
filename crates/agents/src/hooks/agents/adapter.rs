//! Description of an agent's hooks, as data: `data/<name>.json`.

use std::collections::BTreeMap;

use once_cell::race::OnceBox;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Description of one agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hooks) struct Adapter {
    /// Name on the command line and in checkpoints.
    pub(in crate::hooks) name: String,
    /// Name that its makers use.
    pub(in crate::hooks) title: String,
    /// Program that is started.
    pub(in crate::hooks) program: String,
    /// Keys or command with which the user takes the conversation back to an earlier message.
    pub(in crate::hooks) rewind: Option<String>,
    /// Address of the documentation of its hooks.
    pub(in crate::hooks) documentation: String,
    /// Where its payloads are known from, for people who read the file: `recorded` from the agent, or `documentation`.
    #[serde(rename = "payloads")]
    _payloads: IgnoredAny,
    /// Kind of each event, by the agent's name for it.
    pub(super) events: BTreeMap<String, EventKind>,
    pub(super) fields: Fields,
    /// Beginnings of prompts that the agent sends itself to continue its turn. An empty one stands for an empty prompt.
    #[serde(default)]
    pub(super) goes_on: Vec<String>,
    /// Signs that a tool failed; any of them is enough. Without a sign, success and failure cannot be told apart.
    #[serde(default)]
    pub(super) failure: Vec<FailureSign>,
    /// Place of the files that a tool actually wrote.
    pub(super) written: Option<String>,
    pub(super) tools: Tools,
    pub(super) answer: AnswerFormat,
    pub(in crate::hooks) install: Install,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventKind {
    SessionStart,
    Prompt,
    BeforeTool,
    /// Success or failure is in the payload, or unknown.
    AfterTool,
    ToolSucceeded,
    ToolFailed,
    Stop,
    SessionEnd,
}

/// Places of values in a payload: keys joined by dots; the first one present counts.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Fields {
    pub(super) event: Option<String>,
    pub(super) session: Vec<String>,
    pub(super) turn: Vec<String>,
    pub(super) call: Vec<String>,
    pub(super) tool: Vec<String>,
    pub(super) input: Vec<String>,
    pub(super) cwd: Vec<String>,
    pub(super) output: Vec<String>,
    pub(super) prompt: Vec<String>,
}

/// Value whose presence, unless it equals the value of a success, shows a failure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailureSign {
    /// Place in the payload, or `$output`.
    pub(super) at: String,
    /// Rest of a line with this prefix.
    pub(super) line: Option<String>,
    pub(super) not: Value,
}

/// Tools by what they do, each with the keys of its input that name the target. A tool not listed may do anything.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tools {
    /// Tools that write a file; without a key, the whole project.
    pub(super) files: BTreeMap<String, Vec<String>>,
    /// Tools that apply a patch.
    pub(super) patches: BTreeMap<String, Vec<String>>,
    /// Tools that run a command line.
    pub(super) shells: BTreeMap<String, Vec<String>>,
    /// Tools that change no file.
    pub(super) reads: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerFormat {
    /// Answer without content.
    #[serde(default = "nothing")]
    pub(super) nothing: String,
    /// Text for the model.
    pub(super) context: Option<TextField>,
    /// Text for the user. Without this slot the model is asked to pass it on.
    pub(super) message: Option<TextField>,
    /// Text for the user, instead of the model's answer to a prompt.
    pub(super) instead: Option<TextField>,
    /// Before a tool: makes the agent ask its user or, if it cannot, refuses the call.
    pub(super) ask: Option<TextField>,
}

fn nothing() -> String {
    "{}".to_owned()
}

/// Place for a text in an answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextField {
    /// Events to which the slot is limited.
    pub(super) events: Option<Vec<String>>,
    /// Template with `$text` and `$event`. A plain string is the whole answer.
    pub(super) value: Value,
}

impl TextField {
    /// Whether the slot exists at this event.
    pub(super) fn is_at(&self, event: &str) -> bool {
        self.events.as_ref().is_none_or(|events| events.iter().any(|known| known == event))
    }
}

/// Location of its hooks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hooks) struct Install {
    /// Settings folder in the home folder.
    pub(in crate::hooks) user: Option<String>,
    /// Variables that move the folder, with what is appended; the first one set counts.
    #[serde(default)]
    pub(in crate::hooks) moved_by: BTreeMap<String, String>,
    /// Settings folder in a project.
    pub(in crate::hooks) project: Option<String>,
    pub(in crate::hooks) hooks: Option<HooksFile>,
    /// Settings that disable hooks.
    #[serde(default)]
    pub(in crate::hooks) off: Vec<Off>,
    /// File of the `/rollback` command, or of a skill.
    pub(in crate::hooks) command: Option<CommandFile>,
    /// Instruction file that the model reads at the start.
    pub(in crate::hooks) instructions: Option<String>,
    /// File that marks the folder as what the agent looks for.
    pub(in crate::hooks) manifest: Option<Manifest>,
    #[serde(default)]
    pub(in crate::hooks) notes: Vec<String>,
    /// Instructions for the user where nono cannot install hooks.
    pub(in crate::hooks) by_hand: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hooks) struct HooksFile {
    pub(in crate::hooks) file: String,
    pub(in crate::hooks) format: HookFormat,
    /// Whether the agent refuses comments.
    #[serde(default)]
    pub(in crate::hooks) strict: bool,
    #[serde(default)]
    pub(in crate::hooks) milliseconds: bool,
    /// Members of the file besides `hooks`.
    #[serde(default)]
    pub(in crate::hooks) top: serde_json::Map<String, Value>,
    /// Template of one hook, with `$command` and `$timeout`.
    #[serde(default)]
    pub(in crate::hooks) entry: Value,
    #[serde(default)]
    pub(in crate::hooks) events: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::hooks) enum HookFormat {
    /// `{"hooks": {EVENT: [{"hooks": [HOOK]}]}}`
    Groups,
    /// `{"hooks": {EVENT: [HOOK]}}`
    Entries,
    Yaml,
    /// Program of nono's own that the agent loads.
    Plugin,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hooks) struct Off {
    pub(in crate::hooks) file: String,
    /// Keys joined by dots.
    pub(in crate::hooks) key: String,
    pub(in crate::hooks) value: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hooks) struct CommandFile {
    pub(in crate::hooks) file: String,
    pub(in crate::hooks) template: Template,
    /// Name of a skill.
    #[serde(default)]
    pub(in crate::hooks) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::hooks) enum Template {
    Claude,
    Opencode,
    /// Template with `!{command}` and `{{args}}`.
    Markdown,
    Toml,
    Skill,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hooks) struct Manifest {
    pub(in crate::hooks) file: String,
    pub(in crate::hooks) value: Value,
}

/// All agents, those with recorded payloads first.
pub(super) fn adapters() -> &'static [Adapter] {
    static ADAPTERS: OnceBox<Vec<Adapter>> = OnceBox::new();
    ADAPTERS.get_or_init(|| Box::new(read_adapters()))
}

fn read_adapters() -> Vec<Adapter> {
    let files = [
        include_str!("data/claude-code.json"),
        include_str!("data/codex.json"),
        include_str!("data/gemini.json"),
        include_str!("data/opencode.json"),
        include_str!("data/hermes.json"),
        include_str!("data/qwen.json"),
        include_str!("data/cursor.json"),
        include_str!("data/copilot.json"),
        include_str!("data/goose.json"),
        include_str!("data/kiro.json"),
        include_str!("data/cline.json"),
    ];
    // A test reads every file; an invalid file is an unknown agent.
    files.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_right() {
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/hooks/agents/data")).unwrap()
        {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let adapter: Adapter =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            assert_eq!(path.file_stem().unwrap().to_str(), Some(adapter.name.as_str()));
            assert!(adapters().iter().any(|known| known.name == adapter.name), "{path:?} is not in the list");
            assert!(adapter.documentation.starts_with("https://"));
            let install = &adapter.install;
            assert_ne!(install.hooks.is_some(), install.by_hand.is_some(), "{path:?}");
            for event in install.hooks.iter().flat_map(|hooks| &hooks.events) {
                assert!(adapter.events.contains_key(event), "{path:?}: {event}");
            }
            let kinds: Vec<EventKind> = adapter.events.values().copied().collect();
            assert!(kinds.contains(&EventKind::BeforeTool) && kinds.contains(&EventKind::Prompt), "{path:?}");
            for tool in adapter.tools.reads.keys() {
                let tools = &adapter.tools;
                assert!(
                    !tools.files.contains_key(tool) && !tools.shells.contains_key(tool),
                    "{path:?}: {tool}"
                );
            }
        }
    }
}
