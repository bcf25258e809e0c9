//! What is known of an agent's hooks, as data: `data/<name>.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

/// One agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hooks) struct Adapter {
    /// As it is typed, and as it is written into checkpoints.
    pub(in crate::hooks) name: String,
    /// As its makers call it.
    pub(in crate::hooks) title: String,
    /// The program that is started.
    pub(in crate::hooks) program: String,
    /// What a person types or presses in it to take the conversation back to an earlier message.
    pub(in crate::hooks) rewind: Option<String>,
    /// Where its hooks are described.
    pub(in crate::hooks) documentation: String,
    pub(in crate::hooks) payloads: Evidence,
    /// Its names of events.
    pub(super) events: BTreeMap<String, Kind>,
    pub(super) fields: Fields,
    /// How a prompt begins that nobody typed: the agent goes on in its turn. An empty one: a prompt without a word.
    #[serde(default)]
    pub(super) goes_on: Vec<String>,
    /// What tells that a tool failed; any of them does. Without one nothing tells.
    #[serde(default)]
    pub(super) failure: Vec<Sign>,
    /// Where the files stand that a tool really wrote.
    pub(super) written: Option<String>,
    pub(super) tools: Tools,
    pub(super) answer: Answer,
    pub(in crate::hooks) install: Install,
}

/// How its payloads are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::hooks) enum Evidence {
    /// The real agent sent them.
    Recorded,
    /// Its makers describe them.
    Documentation,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    SessionStart,
    Prompt,
    BeforeTool,
    /// Whether it failed is in the payload, or not known.
    AfterTool,
    ToolSucceeded,
    ToolFailed,
    Stop,
    SessionEnd,
}

/// Where things stand in a payload: keys joined by dots, the first that is there counts.
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

/// Something that is there, and is not what it is after a success.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sign {
    /// A place in the payload, or `$output`.
    pub(super) at: String,
    /// The rest of a line that begins like this.
    pub(super) line: Option<String>,
    pub(super) not: Value,
}

/// Tools by what they do, each with the keys of its input that say where. One that is not named may do anything.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tools {
    /// Writes a file; without a key, whatever is there.
    pub(super) files: BTreeMap<String, Vec<String>>,
    /// Applies a patch.
    pub(super) patches: BTreeMap<String, Vec<String>>,
    /// Runs a line.
    pub(super) shells: BTreeMap<String, Vec<String>>,
    /// Changes no file.
    pub(super) reads: BTreeMap<String, Vec<String>>,
}

/// How it is answered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// Where there is nothing to say.
    #[serde(default = "nothing")]
    pub(super) nothing: String,
    /// For the model.
    pub(super) context: Option<Slot>,
    /// For the person. Without one the model is asked to tell.
    pub(super) message: Option<Slot>,
    /// For the person, instead of the model's answer to a prompt.
    pub(super) instead: Option<Slot>,
    /// Before a tool: lets the agent ask its person, or where it cannot, refuses the call.
    pub(super) ask: Option<Slot>,
}

fn nothing() -> String {
    "{}".to_owned()
}

/// A place for a text in an answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slot {
    /// Only at these events.
    pub(super) events: Option<Vec<String>>,
    /// With `$text` and `$event` in it. A text alone is the whole answer.
    pub(super) value: Value,
}

impl Slot {
    /// Whether it is there at this event.
    pub(super) fn is_at(&self, event: &str) -> bool {
        self.events.as_ref().is_none_or(|events| events.iter().any(|known| known == event))
    }
}

/// Where its hooks are put.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hooks) struct Install {
    /// Its folder in the home folder.
    pub(in crate::hooks) user: Option<String>,
    /// Variables that move it elsewhere, the first that is set counts; with what is appended.
    #[serde(default)]
    pub(in crate::hooks) moved_by: BTreeMap<String, String>,
    /// Its folder in a project.
    pub(in crate::hooks) project: Option<String>,
    pub(in crate::hooks) hooks: Option<HooksFile>,
    /// Settings that keep hooks from running.
    #[serde(default)]
    pub(in crate::hooks) off: Vec<Off>,
    /// `/rollback`, or a skill.
    pub(in crate::hooks) command: Option<CommandFile>,
    /// The file that the model reads at the beginning.
    pub(in crate::hooks) instructions: Option<String>,
    /// A file that makes the folder what the agent looks for.
    pub(in crate::hooks) manifest: Option<Manifest>,
    #[serde(default)]
    pub(in crate::hooks) notes: Vec<String>,
    /// What a person has to do where nono cannot.
    pub(in crate::hooks) by_hand: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hooks) struct HooksFile {
    pub(in crate::hooks) file: String,
    pub(in crate::hooks) format: Format,
    /// The agent reads no comments.
    #[serde(default)]
    pub(in crate::hooks) strict: bool,
    #[serde(default)]
    pub(in crate::hooks) milliseconds: bool,
    /// Members that the file has beside `hooks`.
    #[serde(default)]
    pub(in crate::hooks) top: serde_json::Map<String, Value>,
    /// One hook, with `$command` and `$timeout` in it.
    #[serde(default)]
    pub(in crate::hooks) entry: Value,
    #[serde(default)]
    pub(in crate::hooks) events: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::hooks) enum Format {
    /// `{"hooks": {EVENT: [{"hooks": [HOOK]}]}}`
    Groups,
    /// `{"hooks": {EVENT: [HOOK]}}`
    Entries,
    Yaml,
    /// A program of nono's own that the agent loads.
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
    /// Of a skill.
    #[serde(default)]
    pub(in crate::hooks) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::hooks) enum Template {
    Claude,
    Opencode,
    /// With `!{command}` and `{{args}}` in it.
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

/// All agents, those that were recorded first.
pub(super) static ADAPTERS: LazyLock<Vec<Adapter>> = LazyLock::new(|| {
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
    // A test reads every one of them; a file that is wrong is an agent that is not known.
    files.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
});

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
            assert!(ADAPTERS.iter().any(|known| known.name == adapter.name), "{path:?} is not in the list");
            assert!(adapter.documentation.starts_with("https://"));
            let install = &adapter.install;
            assert_ne!(install.hooks.is_some(), install.by_hand.is_some(), "{path:?}");
            for event in install.hooks.iter().flat_map(|hooks| &hooks.events) {
                assert!(adapter.events.contains_key(event), "{path:?}: {event}");
            }
            let kinds: Vec<Kind> = adapter.events.values().copied().collect();
            assert!(kinds.contains(&Kind::BeforeTool) && kinds.contains(&Kind::Prompt), "{path:?}");
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
