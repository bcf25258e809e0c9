//! Translation of a blueprint to the raw plan that a forked child follows without further decisions.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nono_sys::landlock::Ruleset;
use nono_sys::launch::{
    self, ChildProgram, Confine, LaunchError, LaunchPlan, SetupOp, Step, Terminal, WatchedMask,
};
use nono_sys::notify::{Abilities, Listener};
use nono_sys::{errno, fs, process};
use thiserror::Error;

use super::blueprint::{
    self, Blueprint, Cover, KernelRule, MountStep, ProxyPlace, SessionPaths, WatchedName,
};
use super::filter;
use crate::refusal::Refusal;

/// Failure to make the plan: an input the kernel could not take.
#[derive(Debug, Error)]
pub enum PlanError {
    #[error("{what} contains a NUL byte")]
    Nul { what: &'static str },
    #[error("{path}: {error}", path = .path.display())]
    Path { path: PathBuf, error: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Concrete blueprint: rulesets filled, programs assembled, directories made. Ready for one launch.
#[derive(Debug)]
pub struct Prepared {
    blueprint: Blueprint,
    ruleset: Ruleset,
    session: SessionPaths,
}

impl Prepared {
    /// Opens every granted path and fills the ruleset; makes what the mounts need below the `/run` replacement.
    pub fn new(blueprint: Blueprint, session: SessionPaths) -> Result<Prepared, PlanError> {
        let ruleset = fill(&blueprint)?;
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| PlanError::Path { path, error: errno::describe(&error) }
        };
        for (entry, is_dir) in &blueprint.run_entries {
            make_entry(&session.run_dir.join(entry), *is_dir).map_err(at(entry))?;
        }
        for (original, copy) in &blueprint.copies {
            copy_folder(original, copy).map_err(at(original))?;
        }
        Ok(Prepared { blueprint, ruleset, session })
    }

    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// Confines the calling process by the same rules (the parent of a monitored run). It may also remove the session's
    /// directory, which is the only thing it still has to do.
    pub fn confine_self(&self) -> Result<(), PlanError> {
        let ruleset = fill(&self.blueprint)?;
        let sessions = self.session.dir.parent().unwrap_or(&self.session.dir).to_owned();
        // In `/proc` the command's processes, over which the limits are added up.
        for (path, access) in [(sessions, blueprint::EVERYTHING), ("/proc".into(), blueprint::READ)] {
            add_rule(&ruleset, &KernelRule { path, access: access & self.blueprint.handled_fs })?;
        }
        launch::confine_self(&ruleset, &filter::compile(self.blueprint.filter)).map_err(|error| {
            Refusal::Kernel { step: error.step.words(), error: errno::text(error.errno) }.into()
        })
    }

    pub fn plan(&self, command: Command) -> Result<LaunchPlan, PlanError> {
        let program = ChildProgram::new(
            c_path(&command.program, "the program's path")?,
            command.argv.into_iter().map(|arg| c_string(arg, "an argument")).collect::<Result<_, _>>()?,
            environment(command.env)?,
        );
        let (setup, slots) = setup_ops(&self.blueprint)?;
        Ok(LaunchPlan {
            namespaces: clone_flags(&self.blueprint),
            setup,
            slots: vec![-1; slots],
            masks: self.watched()?,
            serve: match self.blueprint.proxy {
                Some(ProxyPlace::Own { port }) => Some(port),
                Some(ProxyPlace::Host(_)) | None => None,
            },
            confine: Confine {
                limits: limits(&self.blueprint),
                ruleset: Some(self.ruleset.try_clone().map_err(|e| kernel("copy the Landlock rules", &e))?),
                filter: filter::compile(self.blueprint.filter),
                listen: self.blueprint.mediated().any(),
                workdir: c_path(&self.blueprint.workdir, "the working directory")?,
                signal_mask: command.signal_mask,
            },
            program,
            stdio: command.stdio,
            terminal: command.terminal,
            grace_ms: command.grace_ms,
            time_ms: self.blueprint.limits.time.map(milliseconds),
        })
    }

    fn watched(&self) -> Result<Vec<WatchedMask>, PlanError> {
        let mask = |WatchedName { path, cover }: &WatchedName| {
            let cover = match cover {
                Cover::Nothing => launch::Cover::Nothing {
                    dir: c_path(&self.session.mask_dir, "a mask")?,
                    file: c_path(&self.session.mask_file, "a mask")?,
                },
                Cover::Itself => launch::Cover::Itself,
                Cover::Copy(copy) => launch::Cover::Copy(c_path(copy, "a copy")?),
            };
            Ok(WatchedMask {
                target: c_path(path, "a closed path")?,
                parent: c_path(path.parent().unwrap_or(Path::new("/")), "a closed path")?,
                cover,
            })
        };
        self.blueprint.watched.iter().map(mask).collect()
    }
}

/// Program to execute, and how it is connected.
#[derive(Debug)]
pub struct Command {
    /// Resolved file.
    pub program: PathBuf,
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    /// Descriptors for 0, 1 and 2; -1 keeps the caller's.
    pub stdio: [RawFd; 3],
    pub terminal: Terminal,
    pub signal_mask: libc::sigset_t,
    pub grace_ms: u32,
}

fn kernel(step: &'static str, error: &io::Error) -> PlanError {
    Refusal::Kernel { step, error: errno::describe(error) }.into()
}

pub(super) fn fill(blueprint: &Blueprint) -> Result<Ruleset, Refusal> {
    let step = "create the Landlock ruleset";
    let failed = |error: io::Error| Refusal::Kernel { step, error: errno::describe(&error) };
    let ruleset =
        Ruleset::new(blueprint.handled_fs, blueprint.handled_net, blueprint.scoped).map_err(failed)?;
    for rule in &blueprint.rules {
        add_rule(&ruleset, rule)?;
    }
    for (port, access) in &blueprint.ports {
        ruleset.allow_port(*port, *access).map_err(failed)?;
    }
    Ok(ruleset)
}

fn add_rule(ruleset: &Ruleset, rule: &KernelRule) -> Result<(), Refusal> {
    let refused =
        |error: io::Error| Refusal::Rule { path: rule.path.clone(), error: errno::describe(&error) };
    let target = match fs::open_path(&rule.path) {
        Ok(target) => target,
        // Gone since it was resolved, or not accessible: then the child cannot use it either.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EACCES)) => return Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Err(Refusal::Changed { path: rule.path.clone() });
        }
        Err(error) => return Err(refused(error)),
    };
    ruleset.allow_beneath(target.as_fd(), rule.access).map_err(refused)
}

fn make_entry(path: &Path, is_dir: bool) -> io::Result<()> {
    let dir = if is_dir { Some(path) } else { path.parent() };
    if let Some(dir) = dir {
        std::fs::create_dir_all(dir)?;
    }
    if !is_dir && !path.exists() {
        fs::make_file(path, 0o600, b"")?;
    }
    Ok(())
}

/// Copies the regular files of one directory, as the user's own. What cannot be read here cannot be read by the child
/// either.
fn copy_folder(original: &Path, copy: &Path) -> io::Result<()> {
    fs::make_dir(copy, 0o755)?;
    for entry in std::fs::read_dir(original)?.flatten() {
        if let Ok(content) = std::fs::read(entry.path()) {
            fs::make_file(&copy.join(entry.file_name()), 0o644, &content)?;
        }
    }
    Ok(())
}

fn c_string(text: OsString, what: &'static str) -> Result<CString, PlanError> {
    CString::new(text.into_vec()).map_err(|_| PlanError::Nul { what })
}

fn c_path(path: &Path, what: &'static str) -> Result<CString, PlanError> {
    c_string(path.as_os_str().to_owned(), what)
}

fn environment(env: Vec<(OsString, OsString)>) -> Result<Vec<CString>, PlanError> {
    let entry = |(name, value): (OsString, OsString)| {
        let mut text = name;
        text.push(OsStr::from_bytes(b"="));
        text.push(value);
        c_string(text, "the environment")
    };
    env.into_iter().map(entry).collect()
}

fn clone_flags(blueprint: &Blueprint) -> i32 {
    let layers = blueprint.layers;
    [
        (layers.user, libc::CLONE_NEWUSER),
        (layers.mount, libc::CLONE_NEWNS),
        (layers.pid, libc::CLONE_NEWPID),
        (layers.ipc, libc::CLONE_NEWIPC),
        (layers.net, libc::CLONE_NEWNET),
    ]
    .into_iter()
    .filter_map(|(wanted, flag)| wanted.then_some(flag))
    .fold(0, |all, flag| all | flag)
}

/// Milliseconds of a time limit, capped at weeks.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

fn limits(blueprint: &Blueprint) -> Vec<(u32, u64)> {
    let limits = &blueprint.limits;
    let mut list = vec![(libc::RLIMIT_CORE, 0)];
    list.extend(limits.file_size.map(|bytes| (libc::RLIMIT_FSIZE, bytes)));
    // Only a backstop: the supervisor watches the sum over the tree, and that is the limit which is reported.
    list.extend(limits.memory.map(|bytes| (libc::RLIMIT_DATA, backstop(bytes))));
    // Init counts too: it lives in the same user namespace.
    list.extend(limits.processes.map(|count| (libc::RLIMIT_NPROC, count.saturating_add(1))));
    list
}

/// Limit of one process, far enough above the limit of the tree that the latter is reached first.
fn backstop(limit: u64) -> u64 {
    const ROOM: u64 = 1 << 30;
    limit.saturating_mul(4).saturating_add(ROOM)
}

fn map_ids() -> Result<SetupOp, PlanError> {
    let line = |id: u32| c_string(format!("{id} {id} 1").into(), "an id");
    Ok(SetupOp::MapIds { uid_map: line(process::uid())?, gid_map: line(process::gid())? })
}

/// Operations of the child, and the number of detached mounts it holds at once.
fn setup_ops(blueprint: &Blueprint) -> Result<(Vec<SetupOp>, usize), PlanError> {
    let mut ops = Vec::new();
    if blueprint.layers.user {
        ops.push(map_ids()?);
    }
    if blueprint.layers.mount {
        ops.push(SetupOp::MakePrivate);
    }
    let kept: Vec<&PathBuf> = blueprint
        .mounts
        .iter()
        .filter_map(|step| if let MountStep::Keep { path } = step { Some(path) } else { None })
        .collect();
    for step in &blueprint.mounts {
        ops.push(mount_op(step, &kept)?);
    }
    if blueprint.layers.net {
        ops.push(SetupOp::LoopbackUp);
    }
    for rule in &blueprint.late_rules {
        ops.push(SetupOp::AllowPath { path: c_path(&rule.path, "a rule")?, access: rule.access });
    }
    Ok((ops, kept.len()))
}

fn mount_op(step: &MountStep, kept: &[&PathBuf]) -> Result<SetupOp, PlanError> {
    let slot = |path: &PathBuf| kept.iter().position(|kept| *kept == path).unwrap_or_default();
    let place = |path: &Path| c_path(path, "a mount");
    Ok(match step {
        MountStep::Keep { path } => SetupOp::CloneTree { path: place(path)?, slot: slot(path) },
        MountStep::ReadOnlyRoot => SetupOp::ReadOnly { path: c"/".to_owned() },
        MountStep::Private { kind, target, options } => SetupOp::Mount {
            kind: c_string((*kind).into(), "a mount")?,
            target: place(target)?,
            flags: private_flags(kind),
            data: c_string(options.into(), "a mount")?,
        },
        MountStep::Replace { source, target } => {
            SetupOp::Mask { source: place(source)?, target: place(target)?, if_there: false }
        }
        MountStep::Pin { path } => SetupOp::Pin { path: place(path)? },
        MountStep::Hold { path } => SetupOp::Hold { path: place(path)? },
        MountStep::Copy { source, target } => {
            SetupOp::Copy { source: place(source)?, target: place(target)? }
        }
        MountStep::PutBack { path } => SetupOp::PlaceTree { slot: slot(path), target: place(path)? },
        MountStep::Mask { source, target, must } => {
            SetupOp::Mask { source: place(source)?, target: place(target)?, if_there: !must }
        }
    })
}

fn private_flags(kind: &str) -> libc::c_ulong {
    match kind {
        "proc" => libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
        // A terminal is a device.
        "devpts" => libc::MS_NOSUID | libc::MS_NOEXEC,
        _ => libc::MS_NOSUID | libc::MS_NODEV,
    }
}

/// Plan that confines nothing: it only shows whether namespaces and private file systems are available.
fn namespace_plan(user: bool) -> Result<LaunchPlan, PlanError> {
    let mut setup = Vec::new();
    let mut namespaces = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWNET;
    if user {
        namespaces |= libc::CLONE_NEWUSER;
        setup.push(map_ids()?);
    }
    setup.push(SetupOp::MakePrivate);
    setup.push(SetupOp::ReadOnly { path: c"/".to_owned() });
    setup.push(mount_op(
        &MountStep::Private { kind: "proc", target: "/proc".into(), options: String::new() },
        &[],
    )?);
    Ok(LaunchPlan {
        namespaces,
        setup,
        slots: Vec::new(),
        masks: Vec::new(),
        serve: None,
        confine: Confine {
            limits: Vec::new(),
            ruleset: None,
            filter: Vec::new(),
            listen: false,
            workdir: c"/".to_owned(),
            signal_mask: process::current_mask(),
        },
        program: ChildProgram::nothing(),
        stdio: [-1; 3],
        terminal: Terminal::Inherit { tty: -1, foreground: false },
        grace_ms: 0,
        time_ms: None,
    })
}

pub(super) fn try_namespaces(user: bool) -> Result<(), LaunchError> {
    // A plan made of constants has no NUL in it.
    let Ok(mut plan) = namespace_plan(user) else { return Ok(()) };
    let launched = launch::spawn(&mut plan)?;
    let outcome = launched.go();
    launched.finish();
    outcome
}

/// Installs a filter with a listener in a process that ends at once, to see what the kernel supports.
pub(super) fn try_listener() -> Result<Abilities, LaunchError> {
    // A plan made of constants has no NUL in it.
    let failed = |errno| LaunchError { step: Step::HandOver, index: 0, errno };
    let mut plan = namespace_plan(false).map_err(|_| failed(libc::EINVAL))?;
    plan.namespaces = 0;
    plan.setup.clear();
    plan.confine.filter = filter::allow_all();
    plan.confine.listen = true;
    let launched = launch::spawn(&mut plan)?;
    let abilities = launched.go().and_then(|()| {
        let handed = launched.hand_over().map_err(|e| failed(e.raw_os_error().unwrap_or(libc::EIO)))?;
        Ok(Listener::new(handed.listener).abilities())
    });
    launched.finish();
    abilities
}

/// Plan of a probe instead of a program: confined like any command, it tries to read `secret` and to write `target`,
/// and exits with 0 only if both were refused.
pub fn probe_plan(prepared: &Prepared, secret: &Path, target: &Path) -> Result<LaunchPlan, PlanError> {
    let mut plan = prepared.plan(Command {
        program: "/".into(),
        argv: Vec::new(),
        env: Vec::new(),
        stdio: [-1; 3],
        terminal: Terminal::Inherit { tty: -1, foreground: false },
        signal_mask: process::current_mask(),
        grace_ms: 0,
    })?;
    plan.program = ChildProgram::probe(c_path(secret, "a probe")?, c_path(target, "a probe")?);
    Ok(plan)
}
