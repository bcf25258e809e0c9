//! Files of an agent, and nono's part in each.

use std::path::{Path, PathBuf};

use super::super::agents::Agent;
use super::super::agents::adapter::{HookFormat, HooksFile, Off};
use super::super::quote;
use super::confinement::PathConfinement;
use super::json_hooks::{self, Hook};
use super::{InstallError, InstallRequest, Places, Purpose, Scope, templates};

/// A file, and nono's part in it.
#[derive(Clone, Debug)]
pub(super) struct HookFile {
    pub(super) path: PathBuf,
    pub(super) purpose: Purpose,
    pub(super) content: HookFileContent,
}

#[derive(Clone, Debug)]
pub(super) enum HookFileContent {
    Json(Vec<Hook>),
    Yaml(Vec<Hook>),
    /// Section between two marks.
    Section(String),
    /// The whole file.
    Own(String),
}

/// Timeout of a hook: a first checkpoint of a large project takes time; later ones take milliseconds.
const TIMEOUT_SECONDS: u64 = 60;

/// Hooks that should be installed. They cover every tool: an unknown one may write, and one that only reads may be
/// refused by the sandbox.
fn hooks(agent: Agent, file: &'static HooksFile, nono: &str) -> Vec<Hook> {
    let timeout = if file.milliseconds { TIMEOUT_SECONDS * 1000 } else { TIMEOUT_SECONDS };
    let hook = |event: &'static String| Hook {
        event,
        command: format!("{nono}{}", json_hooks::signature(agent, event)),
        timeout,
    };
    file.events.iter().map(hook).collect()
}

/// Argument list that runs nono. `env` sets the variable even where no shell reads the line.
fn command(request: &InstallRequest) -> Result<Vec<String>, InstallError> {
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

/// Settings folder of an agent, and the folder of its instructions; None if it has no such settings.
pub(super) fn folders(agent: Agent, scope: &Scope, places: &Places) -> Option<(PathBuf, PathBuf)> {
    let install = &agent.adapter().install;
    match scope {
        Scope::User => {
            let moved = |(variable, appended): (&String, &String)| {
                let folder = places.moved.get(variable)?;
                Some(if appended.is_empty() { folder.clone() } else { folder.join(appended) })
            };
            let moved = install.moved_by.iter().find_map(moved);
            let folder = moved.or_else(|| Some(places.home.join(install.user.as_ref()?)))?;
            Some((folder.clone(), folder))
        }
        Scope::Project(project) => Some((project.join(install.project.as_ref()?), project.clone())),
    }
}

/// Variables that move agents' settings.
pub fn variables() -> Vec<&'static str> {
    let installs = Agent::all().into_iter().map(|agent| &agent.adapter().install);
    installs.flat_map(|install| install.moved_by.keys().map(String::as_str)).collect()
}

pub(super) fn targets(request: &InstallRequest) -> Result<Vec<HookFile>, InstallError> {
    let agent = request.agent;
    let install = &agent.adapter().install;
    let Some(file) = &install.hooks else {
        let what = install.by_hand.as_deref().unwrap_or_default();
        return Err(InstallError::ByHand {
            agent: agent.title(),
            what,
            documentation: agent.documentation(),
        });
    };
    let Some((folder, beside)) = folders(agent, &request.scope, &request.places) else {
        return Err(match request.scope {
            Scope::User => InstallError::OnlyProject { agent: agent.title() },
            Scope::Project(_) => InstallError::NoProject { agent: agent.title() },
        });
    };
    let words = command(request)?;
    let nono = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let hooks = hooks(agent, file, &nono);
    let content = match file.format {
        HookFormat::Groups | HookFormat::Entries => HookFileContent::Json(hooks),
        HookFormat::Yaml => HookFileContent::Yaml(hooks),
        HookFormat::Plugin => HookFileContent::Own(templates::plugin(agent, &words)),
    };
    let target = |path: PathBuf, purpose, content| HookFile { path, purpose, content };
    let mut targets = vec![target(folder.join(&file.file), Purpose::Hooks, content)];
    if let Some(command) = &install.command {
        let text = templates::command(agent, command, &nono);
        targets.push(target(folder.join(&command.file), Purpose::Command, HookFileContent::Own(text)));
    }
    if let Some(manifest) = &install.manifest {
        let text = format!("{:#}\n", manifest.value);
        targets.push(target(folder.join(&manifest.file), Purpose::Hooks, HookFileContent::Own(text)));
    }
    if let Some(name) = &install.instructions {
        let text = templates::instructions(install.command.as_ref());
        targets.push(target(beside.join(name), Purpose::Instructions, HookFileContent::Section(text)));
    }
    Ok(targets)
}

/// Notes for the user: settings that disable the hooks, and confirmations that the agent asks for.
pub(super) fn notes(request: &InstallRequest) -> Result<Vec<String>, InstallError> {
    let off = switched_off(request)?;
    Ok(off.into_iter().chain(request.agent.adapter().install.notes.iter().cloned()).collect())
}

/// Setting that disables all hooks of the agent, if any.
pub(super) fn switched_off(request: &InstallRequest) -> Result<Option<String>, InstallError> {
    let reach = PathConfinement::of(&request.scope)?;
    let Some((folder, _)) = folders(request.agent, &request.scope, &request.places) else { return Ok(None) };
    for Off { file, key, value } in &request.agent.adapter().install.off {
        let file = folder.join(file);
        let Some(bytes) = reach.read(&file)? else { continue };
        let text = String::from_utf8_lossy(&bytes);
        let keys: Vec<&str> = key.split('.').collect();
        // The agent itself reports what is wrong with an unreadable file.
        let is_toml = file.extension().is_some_and(|extension| extension == "toml");
        let set = if is_toml { toml_flag(&text, &keys) } else { json_hooks::flag(&text, &keys) };
        if set == Some(*value) {
            return Ok(Some(format!("{}: `{key}` is {value}, so no hook runs", file.display())));
        }
    }
    Ok(None)
}

fn toml_flag(text: &str, keys: &[&str]) -> Option<bool> {
    let table = toml::Value::Table(text.parse::<toml::Table>().ok()?);
    keys.iter().try_fold(&table, |value, key| value.get(key))?.as_bool()
}
