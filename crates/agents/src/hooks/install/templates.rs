//! Content of nono's own files, and of its sections in others.

use super::super::agents::Agent;
use super::super::agents::adapter::{CommandFile, Template};
use super::super::slash_command::UNANSWERED;

/// Mark in every file that is wholly nono's.
pub(super) const MARK: &str = "nono:managed";

const DESCRIPTION: &str = "List, preview and restore nono's checkpoints of this project";
const HINT: &str = "[N [FILE] | diff N [FILE] | undo]";
/// Delimiter of a here-document around what was typed, so that a shell takes it as text only.
const END: &str = "NONO_ROLLBACK_ARGUMENTS";
const THEN: &str = "Show that output to the user as it is, in a code block, and stop there: run nothing. If files were \
restored, what you knew of them is out of date: read them again before you change them.";

fn mark(agent: &str) -> String {
    format!("{MARK} {agent}: written by `nono hooks install {agent}`, removed by `nono hooks remove {agent}`")
}

/// File of the `/rollback` command.
pub(super) fn command(agent: Agent, file: &CommandFile, nono: &str) -> String {
    match file.template {
        Template::Claude => claude_command(),
        Template::Opencode => opencode_command(nono),
        Template::Markdown => markdown_command(agent.name()),
        Template::Toml => toml_command(agent.name()),
        Template::Skill => skill(agent.name(), &file.name, nono),
    }
}

/// `/rollback` of Claude Code: registers the name only. The hook answers it; the model cannot call it.
fn claude_command() -> String {
    format!(
        "---\ndescription: {DESCRIPTION}\nargument-hint: \"{HINT}\"\ndisable-model-invocation: true\n---\n<!-- {} -->\n\
/rollback $ARGUMENTS\n\n{UNANSWERED}\n",
        mark("claude-code")
    )
}

/// `/rollback` of OpenCode.
fn opencode_command(nono: &str) -> String {
    format!(
        "---\ndescription: {DESCRIPTION}\n---\n<!-- {mark} -->\nThe user typed /rollback. This is what it printed:\n\n\
!`{nono} hooks slash <<'{END}'\n$ARGUMENTS\n{END}`\n\n{THEN}\n",
        mark = mark("opencode")
    )
}

/// `/rollback` of Qwen Code: passes on what was typed, for the hook to answer.
fn markdown_command(agent: &str) -> String {
    let mark = mark(agent);
    format!("---\ndescription: {DESCRIPTION}\n---\n<!-- {mark} -->\n/rollback {{{{args}}}}\n\n{UNANSWERED}\n")
}

/// `/rollback` of Gemini CLI, likewise.
fn toml_command(agent: &str) -> String {
    let prompt = toml_text(&format!("/rollback {{{{args}}}}\n\n{UNANSWERED}\n"));
    format!("# {}\ndescription = \"{DESCRIPTION}\"\nprompt = {prompt}\n", mark(agent))
}

fn toml_text(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

/// Skill for agents without user-defined commands: the model runs the command.
fn skill(agent: &str, name: &str, nono: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {DESCRIPTION}. Only for when the user asks for it by name.\n---\n<!-- {mark} -->\n\
Only the user decides about this. Do exactly what was asked for, and nothing else:\n\n\
| the user asks for | run |\n|---|---|\n\
| nothing more | `{nono} checkpoints list` |\n\
| `diff N` | `{nono} checkpoints diff N` |\n\
| `N` | `{nono} checkpoints restore --yes N` |\n\
| `N FILE` | `{nono} checkpoints restore --yes N -- FILE` |\n\
| `undo` | `{nono} checkpoints undo --yes` |\n\n\
Show the output as it is. After a restore, what you knew of the files is out of date: read them again before you change \
them.\n",
        mark = mark(agent)
    )
}

/// Instructions for the model.
pub(super) fn instructions(command: Option<&CommandFile>) -> String {
    let ask = match command.map(|command| command.template) {
        Some(Template::Skill) | None => ASK_SKILL,
        Some(_) => ASK_COMMAND,
    };
    format!(
        "## Checkpoints and sandbox (nono)\n\n\
- nono keeps a checkpoint of the project from before you change files, once for each turn. Do not make backup copies of \
your own for that, and leave `~/.nono` alone.\n\
- {ask} If you broke something, say so and offer it; do not restore on your own.\n\
- When a message says that files were put back, your edits to them are gone: read them again.\n\
- A message of the nono sandbox that something is denied holds for the whole session. Do not look for another way: tell \
the user which path or host you need, and the command that the message names."
    )
}

const ASK_COMMAND: &str = "The user sees them with `/rollback`, and goes back with `/rollback N`.";
const ASK_SKILL: &str = "The user sees them with the skill `rollback` or `nono checkpoints`, and goes back with `nono checkpoints restore N`.";

/// OpenCode's plugin. `command`: argument list that runs nono, without a shell.
pub(super) fn plugin(agent: Agent, command: &[String]) -> String {
    let command = serde_json::Value::from(command.to_vec());
    let mark = mark(agent.name());
    format!("// {mark}\n\nconst COMMAND = {command}\n{}", include_str!("opencode_plugin.js"))
}
