//! Content of nono's own files, and of its sections in others.

use super::super::agents::Agent;
use super::super::agents::adapter::{CommandFile, Template};
use super::super::slash_command::UNANSWERED;

/// Mark in every file that is wholly nono's.
pub(super) const MARK: &str = "nono:managed";

const DESCRIPTION: &str = "List, preview and restore nono's checkpoints of this project";
fn mark(agent: &str) -> String {
    format!("{MARK} {agent}: written by `nono hooks install {agent}`, removed by `nono hooks remove {agent}`")
}

/// File of the `/rollback` command, or of a skill for agents without user-defined commands, where the model runs it.
pub(super) fn command(agent: Agent, file: &CommandFile, nono: &str) -> String {
    let template = match file.template {
        // Registers the name only: the hook answers it, and the model cannot call it.
        Template::Claude => include_str!("templates/claude.md"),
        // What was typed is in a here-document, so that a shell takes it as text only.
        Template::Opencode => include_str!("templates/opencode.md"),
        // Passes on what was typed, for the hook to answer.
        Template::Markdown => include_str!("templates/markdown.md"),
        Template::Toml => include_str!("templates/command.toml"),
        Template::Skill => include_str!("templates/skill.md"),
    };
    let prompt = toml_edit::Value::from(format!("/rollback {{{{args}}}}\n\n{UNANSWERED}\n"));
    let text = template.replace("%MARK%", &mark(agent.name())).replace("%DESCRIPTION%", DESCRIPTION);
    let text = text.replace("%UNANSWERED%", UNANSWERED).replace("%PROMPT%", &prompt.to_string());
    text.replace("%NAME%", &file.name).replace("%NONO%", nono)
}

/// Instructions for the model.
pub(super) fn instructions(command: Option<&CommandFile>) -> String {
    let ask = match command.map(|command| command.template) {
        Some(Template::Skill) | None => ASK_SKILL,
        Some(_) => ASK_COMMAND,
    };
    include_str!("templates/instructions.md").trim_end().replace("%ASK%", ask)
}

const ASK_COMMAND: &str = "The user sees them with `/rollback`, and goes back with `/rollback N`.";
const ASK_SKILL: &str = "The user sees them with the skill `rollback` or `nono checkpoints`, and goes back with `nono checkpoints restore N`.";

/// OpenCode's plugin. `command`: argument list that runs nono, without a shell.
pub(super) fn plugin(agent: Agent, command: &[String]) -> String {
    let command = serde_json::Value::from(command.to_vec());
    let mark = mark(agent.name());
    format!("// {mark}\n\nconst COMMAND = {command}\n{}", include_str!("opencode_plugin.js"))
}
