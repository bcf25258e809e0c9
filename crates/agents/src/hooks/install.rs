//! Installing nono's hooks into the settings of agents, and removing them.
//!
//! [`plan_install`] and [`plan_remove`] read files and compute their new content; [`apply`] writes it. Everything in
//! those files that is not nono's stays as it is, byte for byte. A file that cannot be parsed is refused with the
//! position, and nothing is written at all. On removal, a file that is still what the install left is restored to its
//! earlier content (`install_record`); else nono's recognisable parts are removed and the rest stays.

mod apply;
mod config;
mod confined_dir;
mod confinement;
mod error;
mod files;
mod install_record;
mod json_hooks;
mod jsonc;
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
use confinement::PathConfinement;
use files::{HookFile, HookFileContent};

pub use apply::{Applied, apply};
pub use error::InstallError;
pub use files::variables;
pub use status::{AgentStatus, HookState, status};

/// Location of agents' settings: the home folder, and the variables that move them.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub home: PathBuf,
    /// Variables of [`variables`] that are set, with their absolute paths.
    pub moved: BTreeMap<String, PathBuf>,
}

/// Owner of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    User,
    /// The project in this folder.
    Project(PathBuf),
}

#[derive(Clone, Debug)]
pub struct InstallRequest {
    pub agent: Agent,
    pub scope: Scope,
    pub places: Places,
    /// nono binary that the agent shall call.
    pub binary: PathBuf,
    /// `NONO_HOME`, if set: the hooks pass it on.
    pub nono_home: Option<PathBuf>,
    /// nono's own folder, for `config.toml` and the record of what was installed.
    pub state_dir: PathBuf,
}

/// Purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Hooks,
    /// `/rollback`, or a skill of that name.
    Command,
    /// Instructions about nono for the model.
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

/// One file that is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit {
    pub path: PathBuf,
    /// The file itself, if the path is a symlink.
    pub leads_to: Option<PathBuf>,
    pub purpose: Purpose,
    /// `None`: there is no such file.
    pub before: Option<Vec<u8>>,
    /// `None`: the file is removed.
    pub after: Option<Vec<u8>>,
}

impl FileEdit {
    /// `create`, `edit` or `delete`.
    pub fn action(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "create",
            (_, None) => "delete",
            _ => "edit",
        }
    }
}

/// Planned changes.
#[derive(Clone, Debug)]
pub struct InstallPlan {
    pub agent: Agent,
    pub changes: Vec<FileEdit>,
    /// Notes for the user: files left alone, and confirmations that the agent asks for before it runs hooks.
    pub notes: Vec<String>,
    is_install: bool,
    state_dir: PathBuf,
    reach: PathConfinement,
}

/// Plan the installation of the hooks. Without changes they are installed already.
pub fn plan_install(request: &InstallRequest) -> Result<InstallPlan, InstallError> {
    let targets = files::targets(request)?;
    let mut plan = InstallPlan::new(request, true)?;
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

/// Plan their removal. Whether checkpoints are enabled is not changed: other agents may rely on it.
pub fn plan_remove(request: &InstallRequest) -> Result<InstallPlan, InstallError> {
    let targets = files::targets(request)?;
    let mut plan = InstallPlan::new(request, false)?;
    let record = install_record::InstallRecord::load(&request.state_dir)?;
    for target in targets {
        let before = match plan.reach.read(&target.path) {
            // nono's part is not behind the link, and the rest can be removed.
            Err(InstallError::LeadsOut { path, target }) => {
                let (path, target) = (path.display(), target.display());
                plan.notes
                    .push(format!("{path} is a link to {target}, outside the project; it stays as it is"));
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

impl InstallPlan {
    fn new(request: &InstallRequest, is_install: bool) -> Result<InstallPlan, InstallError> {
        Ok(InstallPlan {
            agent: request.agent,
            changes: Vec::new(),
            notes: Vec::new(),
            is_install,
            state_dir: request.state_dir.clone(),
            reach: PathConfinement::of(&request.scope)?,
        })
    }

    fn push(
        &mut self,
        target: &HookFile,
        before: Option<Vec<u8>>,
        after: Option<Vec<u8>>,
    ) -> Result<(), InstallError> {
        if before != after {
            let (path, purpose) = (target.path.clone(), target.purpose);
            let leads_to = self.reach.leads_to(&path)?;
            self.changes.push(FileEdit { path, leads_to, purpose, before, after });
        }
        Ok(())
    }
}

/// Message if a file that should be wholly nono's is not: it is left alone.
fn foreign(target: &HookFile, before: Option<&[u8]>) -> Option<String> {
    let (HookFileContent::Own(_), Some(before)) = (&target.content, before) else { return None };
    let is_ours = find(before, templates::MARK.as_bytes()).is_some();
    (!is_ours).then(|| format!("{} is yours, and stays as it is", target.path.display()))
}

/// Content with nono's part.
fn installed(
    target: &HookFile,
    before: Option<&[u8]>,
    request: &InstallRequest,
) -> Result<Vec<u8>, InstallError> {
    let path = &target.path;
    match &target.content {
        HookFileContent::Json(hooks) => {
            let text = text(path, before)?;
            let text = if text.trim().is_empty() { "{}\n" } else { text };
            let edited = json_hooks::install(text, hooks, request.agent);
            edited.map(String::into_bytes).map_err(|problem| problem.at(path))
        }
        HookFileContent::Yaml(hooks) => {
            let edited = yaml::install(text(path, before)?, hooks);
            edited.map(String::into_bytes).map_err(|problem| problem.at(path))
        }
        HookFileContent::Section(body) => section::install(before.unwrap_or_default(), request.agent, body)
            .map_err(|line| InstallError::Section { path: path.clone(), line }),
        HookFileContent::Own(text) => Ok(text.clone().into_bytes()),
    }
}

/// Content without nono's part; `None` if there was nothing else in it.
fn removed(
    target: &HookFile,
    before: &[u8],
    request: &InstallRequest,
) -> Result<Option<Vec<u8>>, InstallError> {
    let path = &target.path;
    match &target.content {
        HookFileContent::Json(_) => {
            let edited = json_hooks::remove(text(path, Some(before))?, request.agent);
            edited.map(|text| Some(text.into_bytes())).map_err(|problem| problem.at(path))
        }
        HookFileContent::Yaml(hooks) => {
            let edited = yaml::remove(text(path, Some(before))?, hooks);
            edited.map(|text| Some(text.into_bytes())).map_err(|problem| problem.at(path))
        }
        HookFileContent::Section(_) => {
            let left = section::remove(before, request.agent);
            let left = left.map_err(|line| InstallError::Section { path: path.clone(), line })?;
            Ok((!left.is_empty() || before.is_empty()).then_some(left))
        }
        HookFileContent::Own(_) => Ok(foreign(target, Some(before)).map(|_| before.to_vec())),
    }
}

fn text<'a>(path: &Path, bytes: Option<&'a [u8]>) -> Result<&'a str, InstallError> {
    std::str::from_utf8(bytes.unwrap_or_default())
        .map_err(|_| InstallError::NotText { path: path.to_owned() })
}

/// Read a file of nono's own; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    PathConfinement::Anywhere.read(path)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
