//! Hooks of agents, and the calls that need a checkpoint.

use std::path::PathBuf;

use nono::checkpoints::trigger::{self, Judgement, ToolCall};
use nono::hooks::agents::Agent;
use nono::hooks::install::{self, AgentStatus, InstallError, InstallPlan, InstallRequest, Scope};
use nono::hooks::json as shapes;
use nono::json::path;
use pyo3::prelude::*;
use serde_json::json;

use super::args::absolute;
use super::{error, host};
use crate::blocking::long;
use crate::error::{Raise, Raised};
use crate::paths::{PathArg, PathText, texts};
use crate::plain::{Extra, Record};

fn status(status: &AgentStatus) -> Record {
    let binary = status.binary.as_ref().map(|(binary, _)| path(binary));
    Record::new("HookStatus", shapes::status(status))
        .with("file", Extra::Json(path(&status.file)))
        .with("binary", Extra::Json(binary.into()))
}

/// Changes to install or remove hooks; made, unless it is a dry run.
fn changes(plan: &InstallPlan, dry_run: bool) -> Result<Record, InstallError> {
    let applied = if dry_run || plan.changes.is_empty() { None } else { Some(install::apply(plan)?) };
    let change = |change: &install::FileEdit| json!({"path": path(&change.path), "action": change.action()});
    let backups = applied.iter().flat_map(|applied| &applied.backups).map(|backup| path(backup));
    Ok(Record::new("HookChanges", shapes::plan(plan, applied.as_ref()))
        .with("backups", Extra::Json(backups.collect()))
        .with("changes", Extra::Json(plan.changes.iter().map(change).collect())))
}

/// Settings to change, and the nono binary that hooks call.
#[derive(Clone, Debug)]
struct Wish {
    project: Option<PathBuf>,
    host: nono::checkpoints::Host,
    binary: PathBuf,
}

impl Wish {
    fn new(
        py: Python<'_>,
        project: Option<PathArg>,
        binary: Option<PathArg>,
        state_dir: Option<PathArg>,
        home: Option<PathArg>,
    ) -> PyResult<Wish> {
        let host = host::host(state_dir, home)?;
        let binary = if let Some(binary) = binary {
            absolute(binary)?
        } else {
            let found = py.import("shutil")?.getattr("which")?.call1(("nono",))?;
            let found: Option<PathArg> = found.extract()?;
            let none = || error::raise("no_nono", "nono is not on the PATH: give its path, binary=…");
            absolute(found.ok_or_else(none)?)?
        };
        Ok(Wish { project: project.map(absolute).transpose()?, host, binary })
    }

    fn request(&self, agent: Agent) -> InstallRequest {
        InstallRequest {
            agent,
            scope: self.project.clone().map_or(Scope::User, Scope::Project),
            places: host::places(&self.host),
            binary: self.binary.clone(),
            nono_home: host::moved(&self.host),
            state_dir: self.host.state_dir.clone(),
        }
    }

    fn change(
        &self,
        agent: &str,
        dry_run: bool,
        plan: impl Fn(&InstallRequest) -> Result<InstallPlan, InstallError>,
    ) -> PyResult<Record> {
        let request = self.request(known(agent)?);
        let done = plan(&request).and_then(|plan| changes(&plan, dry_run));
        done.raised(error::install)
    }
}

fn known(agent: &str) -> PyResult<Agent> {
    agent.parse().map_err(|error| Raise::new("unknown_agent", error).value_error())
}

/// Which agents have nono's hooks, and whether they work: one, or all of them. With `project`, the hooks of that
/// folder instead of the person's own.
#[pyfunction]
#[pyo3(signature = (agent=None, *, project=None, binary=None, state_dir=None, home=None))]
pub(crate) fn hooks_status(
    py: Python<'_>,
    agent: Option<String>,
    project: Option<PathArg>,
    binary: Option<PathArg>,
    state_dir: Option<PathArg>,
    home: Option<PathArg>,
) -> PyResult<Vec<Record>> {
    let wish = Wish::new(py, project, binary, state_dir, home)?;
    let agents = match &agent {
        Some(agent) => vec![known(agent)?],
        None => Agent::all(),
    };
    long(py, (), |_| {
        let mut all = Vec::new();
        for one in agents {
            match install::status(&wish.request(one)) {
                // Of all agents, those that cannot have hooks there are left out.
                Err(error) if agent.is_none() && error.is_no_place() => {}
                found => all.push(status(&found.raised(error::install)?)),
            }
        }
        Ok(all)
    })
}

/// Let an agent tell nono what it is about to do, so that there is a checkpoint from before. Adds hooks, a command
/// /rollback and a few lines for the agent to read, and turns checkpoints on in `config.toml`; what else is in the
/// agent's files stays as it is. `binary` is the program `nono`, by default the one on the PATH.
#[pyfunction]
#[pyo3(signature = (agent, *, project=None, binary=None, dry_run=false, state_dir=None, home=None))]
pub(crate) fn hooks_install(
    py: Python<'_>,
    agent: &str,
    project: Option<PathArg>,
    binary: Option<PathArg>,
    dry_run: bool,
    state_dir: Option<PathArg>,
    home: Option<PathArg>,
) -> PyResult<Record> {
    let wish = Wish::new(py, project, binary, state_dir, home)?;
    long(py, (), |_| wish.change(agent, dry_run, install::plan_install))
}

/// Remove the hooks: the files become what they were.
#[pyfunction]
#[pyo3(signature = (agent, *, project=None, binary=None, dry_run=false, state_dir=None, home=None))]
pub(crate) fn hooks_remove(
    py: Python<'_>,
    agent: &str,
    project: Option<PathArg>,
    binary: Option<PathArg>,
    dry_run: bool,
    state_dir: Option<PathArg>,
    home: Option<PathArg>,
) -> PyResult<Record> {
    let wish = Wish::new(py, project, binary, state_dir, home)?;
    long(py, (), |_| wish.change(agent, dry_run, install::plan_remove))
}

/// Folders and files that a shell command may change: `(targets, reason)` for `ensure_checkpoint`, or None if it is known
/// to change nothing. Nothing is run.
#[pyfunction]
#[pyo3(signature = (command, *, cwd=None, home=None, tool="terminal"))]
pub(crate) fn risk_of(
    py: Python<'_>,
    command: &str,
    cwd: Option<PathArg>,
    home: Option<PathArg>,
    tool: &str,
) -> PyResult<Option<(Vec<PathText>, String)>> {
    let cwd = cwd.map_or_else(|| std::env::current_dir().map_err(PyErr::from), absolute)?;
    let home = host::home(home)?;
    let call = ToolCall::Shell { tool: tool.to_owned(), command: command.to_owned() };
    let judged = long(py, (), |_| Ok(trigger::judge(&call, &cwd, &home)))?;
    Ok(match judged {
        Judgement::Harmless => None,
        Judgement::Destructive { targets, reason } => Some((texts(&targets), reason)),
    })
}
