//! Putting nono's hooks into the settings of agents, and taking them out again.
//!
//! [`plan_install`] and [`plan_remove`] read files and say which would have which bytes; [`apply`] writes them. What is
//! in those files and not nono's stays as it is, byte for byte. A file that cannot be understood is refused with the
//! place, and nothing is written at all. Taking out: where a file is still what the install left, it becomes again what
//! it was before (`record`); else what is recognisably nono's goes and the rest stays.

mod apply;
mod config;
mod error;
mod files;
mod json_hooks;
mod jsonc;
mod reach;
mod record;
mod section;
mod status;
mod templates;
mod yaml;
mod yaml_scan;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::agents::Agent;
use files::{Content, Target};
use reach::Reach;

pub use apply::{Applied, apply};
pub use error::InstallError;
pub use files::variables;
pub use status::{State, Status, status};

/// Where agents keep their settings: the home folder, and the variables that move them away from there.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub home: PathBuf,
    /// Those of [`variables`] that are set, to absolute paths.
    pub moved: BTreeMap<String, PathBuf>,
}

/// Whose settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    User,
    /// Of the project in this folder.
    Project(PathBuf),
}

#[derive(Clone, Debug)]
pub struct Request {
    pub agent: Agent,
    pub scope: Scope,
    pub places: Places,
    /// nono, as the agent is to call it.
    pub binary: PathBuf,
    /// `NONO_HOME`, where it is set: the hooks pass it on.
    pub nono_home: Option<PathBuf>,
    /// nono's own folder, for `config.toml` and the record of what was installed.
    pub state_dir: PathBuf,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Hooks,
    /// `/rollback`, or a skill of that name.
    Command,
    /// What the agent should know of nono.
    Instructions,
    /// `[checkpoints] enabled = true`.
    Config,
}

impl Purpose {
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Hooks => "hooks",
            Purpose::Command => "command",
            Purpose::Instructions => "instructions",
            Purpose::Config => "config",
        }
    }
}

/// One file that gets other bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: PathBuf,
    /// The file itself, where a link leads to it.
    pub leads_to: Option<PathBuf>,
    pub purpose: Purpose,
    /// `None`: there is no such file.
    pub before: Option<Vec<u8>>,
    /// `None`: it is removed.
    pub after: Option<Vec<u8>>,
}

impl Change {
    /// `create`, `edit` or `delete`.
    pub fn action(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "create",
            (_, None) => "delete",
            _ => "edit",
        }
    }
}

/// What would be done.
#[derive(Clone, Debug)]
pub struct Plan {
    pub agent: Agent,
    pub changes: Vec<Change>,
    /// For the person: what is left alone, and what the agent wants to be told before it runs hooks.
    pub notes: Vec<String>,
    is_install: bool,
    state_dir: PathBuf,
    reach: Reach,
}

/// What to write to install the hooks. Nothing to write: they are there already.
pub fn plan_install(request: &Request) -> Result<Plan, InstallError> {
    let targets = files::targets(request)?;
    let mut plan = Plan::new(request, true)?;
    for target in targets {
        let before = plan.reach.read(&target.path)?;
        if let Some(note) = foreign(&target, before.as_deref()) {
            plan.notes.push(note);
            continue;
        }
        let after = installed(&target, before.as_deref(), request)?;
        plan.push(&target, before, Some(after))?;
    }
    if let Some(change) = config::enable(&request.state_dir)? {
        plan.changes.push(change);
    }
    plan.notes.extend(files::notes(request)?);
    Ok(plan)
}

/// What to write to take them out again. Whether checkpoints are enabled is left as it is: other agents may rely on it.
pub fn plan_remove(request: &Request) -> Result<Plan, InstallError> {
    let targets = files::targets(request)?;
    let mut plan = Plan::new(request, false)?;
    let record = record::Record::load(&request.state_dir)?;
    for target in targets {
        let before = match plan.reach.read(&target.path) {
            // nono's part is not behind it, and the rest can go.
            Err(InstallError::LeadsOut { path, target }) => {
                let (path, target) = (path.display(), target.display());
                plan.notes
                    .push(format!("{path} is a link to {target}, out of the project; it stays as it is"));
                continue;
            }
            before => before?,
        };
        let Some(before) = before else { continue };
        let after = match record.original(&target.path, request.agent, &before) {
            Some(original) => original?,
            None => removed(&target, &before, request)?,
        };
        plan.push(&target, Some(before), after)?;
    }
    Ok(plan)
}

impl Plan {
    fn new(request: &Request, is_install: bool) -> Result<Plan, InstallError> {
        Ok(Plan {
            agent: request.agent,
            changes: Vec::new(),
            notes: Vec::new(),
            is_install,
            state_dir: request.state_dir.clone(),
            reach: Reach::of(&request.scope)?,
        })
    }

    fn push(
        &mut self,
        target: &Target,
        before: Option<Vec<u8>>,
        after: Option<Vec<u8>>,
    ) -> Result<(), InstallError> {
        if before != after {
            let (path, purpose) = (target.path.clone(), target.purpose);
            let leads_to = self.reach.leads_to(&path)?;
            self.changes.push(Change { path, leads_to, purpose, before, after });
        }
        Ok(())
    }
}

/// A file that should be wholly nono's and is somebody else's is left alone.
fn foreign(target: &Target, before: Option<&[u8]>) -> Option<String> {
    let (Content::Own(_), Some(before)) = (&target.content, before) else { return None };
    let is_ours = find(before, templates::MARK.as_bytes()).is_some();
    (!is_ours).then(|| format!("{} is yours, and stays as it is", target.path.display()))
}

/// The file with nono's part in it.
fn installed(target: &Target, before: Option<&[u8]>, request: &Request) -> Result<Vec<u8>, InstallError> {
    let path = &target.path;
    match &target.content {
        Content::Json(hooks) => {
            let text = text(path, before)?;
            let text = if text.trim().is_empty() { "{}\n" } else { text };
            let edited = json_hooks::install(text, hooks, request.agent);
            edited.map(String::into_bytes).map_err(|problem| problem.at(path))
        }
        Content::Yaml(hooks) => {
            let edited = yaml::install(text(path, before)?, hooks);
            edited.map(String::into_bytes).map_err(|problem| problem.at(path))
        }
        Content::Section(body) => section::install(before.unwrap_or_default(), request.agent, body)
            .map_err(|line| InstallError::Section { path: path.clone(), line }),
        Content::Own(text) => Ok(text.clone().into_bytes()),
    }
}

/// The file without nono's part; `None` where nothing else was in it.
fn removed(target: &Target, before: &[u8], request: &Request) -> Result<Option<Vec<u8>>, InstallError> {
    let path = &target.path;
    match &target.content {
        Content::Json(_) => {
            let edited = json_hooks::remove(text(path, Some(before))?, request.agent);
            edited.map(|text| Some(text.into_bytes())).map_err(|problem| problem.at(path))
        }
        Content::Yaml(hooks) => {
            let edited = yaml::remove(text(path, Some(before))?, hooks);
            edited.map(|text| Some(text.into_bytes())).map_err(|problem| problem.at(path))
        }
        Content::Section(_) => {
            let left = section::remove(before, request.agent);
            let left = left.map_err(|line| InstallError::Section { path: path.clone(), line })?;
            Ok((!left.is_empty() || before.is_empty()).then_some(left))
        }
        Content::Own(_) => Ok(foreign(target, Some(before)).map(|_| before.to_vec())),
    }
}

fn text<'a>(path: &Path, bytes: Option<&'a [u8]>) -> Result<&'a str, InstallError> {
    std::str::from_utf8(bytes.unwrap_or_default())
        .map_err(|_| InstallError::NotText { path: path.to_owned() })
}

/// A file of nono's own; `None` where there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    Reach::Anywhere.read(path)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
