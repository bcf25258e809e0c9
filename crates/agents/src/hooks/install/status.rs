//! Status of an agent's hooks: installed, up to date, and calling an existing nono.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::agents::Agent;
use super::confinement::PathConfinement;
use super::files::{self, HookFile, HookFileContent};
use super::{
    InstallError, InstallRequest, Purpose, Scope, foreign, installed, json_hooks, section, templates, yaml,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookState {
    NotInstalled,
    Installed,
    /// Installing again would change something.
    Outdated {
        why: String,
    },
    /// The hooks do not work.
    Broken {
        why: String,
    },
}

impl HookState {
    pub fn name(&self) -> &'static str {
        match self {
            HookState::NotInstalled => "not installed",
            HookState::Installed => "installed",
            HookState::Outdated { .. } => "outdated",
            HookState::Broken { .. } => "broken",
        }
    }

    /// Reason, if they are outdated or broken.
    pub fn why(&self) -> Option<&str> {
        match self {
            HookState::Outdated { why } | HookState::Broken { why } => Some(why),
            HookState::NotInstalled | HookState::Installed => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct AgentStatus {
    pub agent: Agent,
    pub scope: Scope,
    pub state: HookState,
    /// File with the hooks.
    pub file: PathBuf,
    /// nono binary that they call, and whether it can be run.
    pub binary: Option<(PathBuf, bool)>,
}

pub fn status(request: &InstallRequest) -> Result<AgentStatus, InstallError> {
    let targets = files::targets(request)?;
    let file = targets.first().map(|target| target.path.clone()).unwrap_or_default();
    let (state, binary) = match examine(request, &targets) {
        Ok(found) => found,
        // An unreadable file is a status, too.
        Err(error) => (HookState::Broken { why: error.to_string() }, None),
    };
    Ok(AgentStatus { agent: request.agent, scope: request.scope.clone(), state, file, binary })
}

type AgentFindings = (HookState, Option<(PathBuf, bool)>);

fn examine(request: &InstallRequest, targets: &[HookFile]) -> Result<AgentFindings, InstallError> {
    let mut commands = Vec::new();
    let mut stale = None;
    let mut parts = 0;
    let reach = PathConfinement::of(&request.scope)?;
    for target in targets {
        let bytes = match reach.read(&target.path) {
            // nono's part is not behind the link.
            Err(InstallError::LeadsOut { .. }) if target.purpose != Purpose::Hooks => None,
            bytes => bytes?,
        };
        let Some(bytes) = bytes else {
            stale.get_or_insert_with(|| format!("{} is missing", target.path.display()));
            continue;
        };
        if foreign(target, Some(&bytes)).is_some() {
            continue;
        }
        let mine = called(target, &bytes, request)?;
        let is_there = !mine.is_empty() || is_part_there(target, &bytes, request.agent);
        commands.extend(mine);
        parts += usize::from(is_there);
        if installed(target, Some(&bytes), request)? != bytes {
            stale.get_or_insert_with(|| {
                format!("{} differs from what this version of nono writes", target.path.display())
            });
        }
    }
    let binary = commands.first().and_then(|command| binary(command)).map(|path| {
        let runs = is_executable(&path);
        (path, runs)
    });
    let state = if parts == 0 {
        HookState::NotInstalled
    } else if commands.is_empty() {
        HookState::Broken { why: "the hooks are missing; other parts of the installation remain".to_owned() }
    } else if let Some((path, false)) = &binary {
        HookState::Broken { why: format!("{} cannot be run", path.display()) }
    } else if let Some(off) = files::switched_off(request)? {
        HookState::Broken { why: off }
    } else if let Some(why) = stale {
        HookState::Outdated { why }
    } else {
        HookState::Installed
    };
    Ok((state, binary))
}

/// Commands of nono's in a file that has hooks.
fn called(target: &HookFile, bytes: &[u8], request: &InstallRequest) -> Result<Vec<String>, InstallError> {
    let path = &target.path;
    let commands = match &target.content {
        HookFileContent::Json(_) => {
            let text = super::text(path, Some(bytes))?;
            if text.trim().is_empty() {
                return Ok(Vec::new());
            }
            json_hooks::commands(text, request.agent).map_err(|problem| problem.at(path))?
        }
        HookFileContent::Yaml(hooks) => {
            yaml::found(super::text(path, Some(bytes))?, hooks).map_err(|problem| problem.at(path))?
        }
        HookFileContent::Own(_) if target.purpose == Purpose::Hooks => {
            return Ok(plugin_command(bytes).into_iter().collect());
        }
        HookFileContent::Section(_) | HookFileContent::Own(_) => return Ok(Vec::new()),
    };
    Ok(commands.into_iter().map(|(_, command)| command).collect())
}

fn is_part_there(target: &HookFile, bytes: &[u8], agent: Agent) -> bool {
    match &target.content {
        HookFileContent::Section(_) => section::is_there(bytes, agent),
        HookFileContent::Own(_) => super::find(bytes, templates::MARK.as_bytes()).is_some(),
        HookFileContent::Json(_) | HookFileContent::Yaml(_) => false,
    }
}

/// Command of the plugin that runs nono, as a shell line.
fn plugin_command(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let words = text.lines().find_map(|line| line.strip_prefix("const COMMAND = "))?;
    let words: Vec<String> = serde_json::from_str(words).ok()?;
    Some(words.iter().map(|word| super::super::quote(word)).collect::<Vec<_>>().join(" "))
}

/// Program in a command of nono's: the first word that is an absolute path.
fn binary(command: &str) -> Option<PathBuf> {
    words(command).into_iter().map(PathBuf::from).find(|word| word.is_absolute())
}

/// Split a line written by [`quote`](super::super::quote), or put in double quotes by YAML, into words.
fn words(line: &str) -> Vec<String> {
    let inner = line.find("command: ").map_or(line, |at| &line[at + "command: ".len()..]);
    let unquoted: Option<String> =
        serde_json::Deserializer::from_str(inner).into_iter::<String>().next().and_then(Result::ok);
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quoted, mut begun) = (false, false);
    let mut chars = unquoted.as_deref().unwrap_or(inner).chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => (quoted, begun) = (!quoted, true),
            '\\' if !quoted => word.extend(chars.next()),
            c if c.is_whitespace() && !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
