//! Which files an agent has, and what belongs into each.

use std::path::{Path, PathBuf};

use super::super::agents::Agent;
use super::super::quote;
use super::json_hooks::{self, Hook};
use super::{InstallError, Places, Purpose, Request, Scope, read, templates};

/// A file, and nono's part in it.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) purpose: Purpose,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Json(Vec<Hook>),
    Yaml(Vec<Hook>),
    /// Between two marks.
    Section(String),
    /// The whole file.
    Own(String),
}

/// The events nono listens to, and whether each is about a tool.
const CLAUDE: [(&str, bool); 6] = [
    ("SessionStart", false),
    ("UserPromptSubmit", false),
    ("PreToolUse", true),
    ("PostToolUse", true),
    ("PostToolUseFailure", true),
    ("Stop", false),
];
const CODEX: [(&str, bool); 5] = [
    ("SessionStart", false),
    ("UserPromptSubmit", false),
    ("PreToolUse", true),
    ("PostToolUse", true),
    ("Stop", false),
];
const GEMINI: [(&str, bool); 5] = [
    ("SessionStart", false),
    ("BeforeAgent", false),
    ("BeforeTool", true),
    ("AfterTool", true),
    ("AfterAgent", false),
];
const HERMES: [(&str, bool); 5] = [
    ("on_session_start", false),
    ("pre_llm_call", false),
    ("pre_tool_call", true),
    ("post_tool_call", true),
    ("on_session_end", false),
];
const OPENCODE_TOOLS: [&str; 6] = ["write", "edit", "multiedit", "patch", "apply_patch", "bash"];

/// A first checkpoint of a large project takes its time; later ones are done in milliseconds.
const TIMEOUT_SECONDS: u64 = 60;

pub(super) fn events(agent: Agent) -> &'static [(&'static str, bool)] {
    match agent {
        Agent::ClaudeCode => &CLAUDE,
        Agent::Codex => &CODEX,
        Agent::Gemini => &GEMINI,
        Agent::Hermes => &HERMES,
        Agent::Opencode => &[],
    }
}

fn matcher(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => "Write|Edit|MultiEdit|NotebookEdit|Bash|Monitor",
        Agent::Codex => "^(Bash|apply_patch)$",
        Agent::Gemini => "^(write_file|replace|run_shell_command)$",
        Agent::Hermes => "write_file|patch|terminal|execute_code",
        Agent::Opencode => "",
    }
}

fn hooks(request: &Request, nono: &str) -> Vec<Hook> {
    let agent = request.agent;
    let hook = |&(event, of_tool): &(&'static str, bool)| Hook {
        event,
        matcher: (of_tool && !request.always).then(|| matcher(agent)),
        command: format!("{nono}{}", json_hooks::signature(agent, event)),
        timeout: if agent == Agent::Gemini { TIMEOUT_SECONDS * 1000 } else { TIMEOUT_SECONDS },
    };
    events(agent).iter().map(hook).collect()
}

/// How nono is called: words. `env` sets the variable where no shell reads the line, too.
fn command(request: &Request) -> Result<Vec<String>, InstallError> {
    let utf8 = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| InstallError::Name { path: path.to_owned() })
    };
    let mut words = Vec::new();
    if let Some(home) = &request.nono_home {
        words.extend(["env".to_owned(), format!("NONO_HOME={}", utf8(home)?)]);
    }
    words.push(utf8(&request.binary)?);
    Ok(words)
}

/// The folder of an agent's settings, and the one where its instructions are.
pub(super) fn folders(agent: Agent, scope: &Scope, places: &Places) -> (PathBuf, PathBuf) {
    let home = &places.home;
    let or = |moved: &Option<PathBuf>, name: &str| moved.clone().unwrap_or_else(|| home.join(name));
    match scope {
        Scope::User => {
            let folder = match agent {
                Agent::ClaudeCode => or(&places.claude, ".claude"),
                Agent::Codex => or(&places.codex, ".codex"),
                Agent::Gemini => places.gemini.as_ref().unwrap_or(home).join(".gemini"),
                Agent::Opencode => {
                    let config = or(&places.xdg_config, ".config").join("opencode");
                    places.opencode.clone().unwrap_or(config)
                }
                Agent::Hermes => or(&places.hermes, ".hermes"),
            };
            (folder.clone(), folder)
        }
        Scope::Project(project) => {
            let name = match agent {
                Agent::ClaudeCode => ".claude",
                Agent::Codex => ".codex",
                Agent::Gemini => ".gemini",
                Agent::Opencode => ".opencode",
                Agent::Hermes => ".hermes",
            };
            (project.join(name), project.clone())
        }
    }
}

pub(super) fn targets(request: &Request) -> Result<Vec<Target>, InstallError> {
    let agent = request.agent;
    if agent == Agent::Hermes && matches!(request.scope, Scope::Project(_)) {
        return Err(InstallError::NoProject { agent: agent.title() });
    }
    let words = command(request)?;
    let nono = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let hooks = hooks(request, &nono);
    let (folder, beside) = folders(agent, &request.scope, &request.places);
    let target = |path: PathBuf, purpose, content| Target { path, purpose, content };
    let command = |path: &str, text| target(folder.join(path), Purpose::Command, Content::Own(text));
    let section = |name: &str, ask| {
        target(beside.join(name), Purpose::Instructions, Content::Section(templates::instructions(ask)))
    };
    Ok(match agent {
        Agent::ClaudeCode => vec![
            target(folder.join("settings.json"), Purpose::Hooks, Content::Json(hooks)),
            command("commands/rollback.md", templates::claude_command(&nono)),
            section("CLAUDE.md", templates::ASK_COMMAND),
        ],
        Agent::Codex => vec![
            target(folder.join("hooks.json"), Purpose::Hooks, Content::Json(hooks)),
            command("skills/rollback/SKILL.md", templates::skill("codex", "rollback", &nono)),
            section("AGENTS.md", templates::ASK_SKILL),
        ],
        Agent::Gemini => vec![
            target(folder.join("settings.json"), Purpose::Hooks, Content::Json(hooks)),
            command("commands/rollback.toml", templates::gemini_command(&nono)),
            section("GEMINI.md", templates::ASK_COMMAND),
        ],
        Agent::Opencode => {
            let tools = (!request.always).then_some(&OPENCODE_TOOLS[..]);
            let plugin = templates::opencode_plugin(&words, tools);
            vec![
                target(folder.join("plugins/nono.js"), Purpose::Hooks, Content::Own(plugin)),
                command("commands/rollback.md", templates::opencode_command(&nono)),
                section("AGENTS.md", templates::ASK_COMMAND),
            ]
        }
        // `/rollback` is Hermes' own, for its own checkpoints.
        Agent::Hermes => vec![
            target(folder.join("config.yaml"), Purpose::Hooks, Content::Yaml(hooks)),
            command("skills/nono-rollback/SKILL.md", templates::skill("hermes", "nono-rollback", &nono)),
        ],
    })
}

/// What the person has to know besides: settings that keep the hooks from running, and what the agent asks first.
pub(super) fn notes(request: &Request) -> Result<Vec<String>, InstallError> {
    let (folder, _) = folders(request.agent, &request.scope, &request.places);
    let mut notes = Vec::new();
    notes.extend(switched_off(request.agent, &folder)?);
    match request.agent {
        Agent::Codex => notes.push(
            "Codex runs new hooks only after you trusted them: start codex, type /hooks, and accept nono's"
                .to_owned(),
        ),
        Agent::Hermes => notes.push(
            "Hermes asks once for each new hook when it starts in a terminal; elsewhere it skips hooks that nobody \
accepted"
                .to_owned(),
        ),
        Agent::ClaudeCode | Agent::Gemini | Agent::Opencode => {}
    }
    Ok(notes)
}

/// A setting that turns all hooks of the agent off.
pub(super) fn switched_off(agent: Agent, folder: &Path) -> Result<Option<String>, InstallError> {
    let (file, path, off): (&str, &[&str], bool) = match agent {
        Agent::ClaudeCode => ("settings.json", &["disableAllHooks"], true),
        Agent::Gemini => ("settings.json", &["hooksConfig", "enabled"], false),
        Agent::Codex => return codex_switched_off(&folder.join("config.toml")),
        Agent::Opencode | Agent::Hermes => return Ok(None),
    };
    let file = folder.join(file);
    let Some(bytes) = read(&file)? else { return Ok(None) };
    let is_off = json_hooks::flag(&String::from_utf8_lossy(&bytes), path) == Some(off);
    let said = || format!("{}: `{}` is {off}, so no hook runs", file.display(), path.join("."));
    Ok(is_off.then(said))
}

fn codex_switched_off(file: &Path) -> Result<Option<String>, InstallError> {
    let Some(bytes) = read(file)? else { return Ok(None) };
    // Codex itself says what is wrong with a file that is no TOML.
    let Ok(table) = String::from_utf8_lossy(&bytes).parse::<toml::Table>() else { return Ok(None) };
    let features = table.get("features").and_then(toml::Value::as_table);
    let off = ["hooks", "codex_hooks"]
        .into_iter()
        .find(|name| features.and_then(|features| features.get(*name)?.as_bool()) == Some(false));
    Ok(off.map(|name| format!("{}: `features.{name}` is false, so no hook runs", file.display())))
}
