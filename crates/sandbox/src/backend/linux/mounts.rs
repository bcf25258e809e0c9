//! Mount steps of a blueprint.
//!
//! The order is: copies of the writable grants, everything read-only, private file systems and replacements, the
//! writable grants back in, and the masks on top, so that no later step can uncover what an earlier one closed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_policy::is_within;
use nono_policy::resolved::{ClosedBy, ClosedHow, ClosedPath, PathKind, ResolvedPolicy};

use super::aliases::aliases;
use super::blueprint::{Blueprint, Cover, Layers, MountStep, SessionPaths, WatchedName};
use super::sockets::bound_sockets;
use crate::refusal::Refusal;
use crate::strategy::ExecStrategy;

/// Adds the mount steps, in order.
pub(super) fn mounts(blueprint: &mut Blueprint, policy: &ResolvedPolicy, session: &SessionPaths) {
    let run = run_exposures(policy);
    let writable = writable_grants(policy);
    let mut steps: Vec<MountStep> = Vec::new();
    steps.extend(
        writable.iter().chain(run.iter().flatten()).map(|path| MountStep::Keep { path: path.clone() }),
    );
    steps.extend(inside_grant(&writable, session).map(|_| MountStep::Keep { path: session.tmp_dir() }));
    if !writable.iter().any(|path| path == Path::new("/")) {
        steps.push(MountStep::ReadOnlyRoot);
    }
    steps.extend(private_file_systems(blueprint.layers, policy.limits.memory));
    if let Some(run) = &run {
        blueprint.run_entries = run_entries(run, &writable);
        let source = if blueprint.run_entries.is_empty() { &session.empty_dir } else { &session.run_dir };
        steps.push(MountStep::Replace { source: source.clone(), target: "/run".into() });
    }
    steps.extend(
        blueprint
            .copies
            .iter()
            .map(|(target, source)| MountStep::Replace { source: source.clone(), target: target.clone() }),
    );
    let mut back: Vec<&PathBuf> =
        writable.iter().chain(run.iter().flatten()).filter(|path| *path != Path::new("/")).collect();
    // Parents before what is in them, or they would cover it.
    back.sort_by_key(|path| path.components().count());
    steps.extend(back.into_iter().map(|path| MountStep::PutBack { path: path.clone() }));
    steps.extend(close_sessions(&writable, session));
    steps.extend(pins(policy, &writable));
    steps.extend(policy.closed.iter().filter_map(|closed| mask(closed, &writable, session)));
    let copy = |(target, source): (&Path, PathBuf)| MountStep::Copy { source, target: target.to_owned() };
    steps.extend(session.copies(policy).map(copy));
    steps.extend(socket_masks(policy, session));
    steps.extend(aliases(&steps));
    blueprint.watched = watched(policy, blueprint.strategy, session);
    blueprint.mounts = steps;
}

/// Directory of all sessions, where a writable grant (of `/tmp`, say) contains it.
fn inside_grant<'a>(writable: &[PathBuf], session: &'a SessionPaths) -> Option<&'a Path> {
    let sessions = session.dir.parent()?;
    writable.iter().any(|grant| is_within(sessions, grant)).then_some(sessions)
}

/// Makes the directories of this and of other sessions read-only from inside, except this one's own `tmp`.
fn close_sessions(writable: &[PathBuf], session: &SessionPaths) -> Vec<MountStep> {
    let read_only =
        |dir: &Path| MountStep::Mask { source: dir.to_owned(), target: dir.to_owned(), must: true };
    let mut steps: Vec<MountStep> = session.others.iter().map(|dir| read_only(dir)).collect();
    if let Some(sessions) = inside_grant(writable, session) {
        steps.extend([read_only(sessions), MountStep::PutBack { path: session.tmp_dir() }]);
    }
    steps
}

/// Directories whose files a program accepts only from root or from the user. In a user namespace root's files seem to
/// belong to uid 65534, so ssh would refuse to start; copies owned by the user have the same content.
const OWNER_CHECKED: &[&str] = &["/etc/ssh/ssh_config.d"];

pub(super) fn copies(policy: &ResolvedPolicy, session: &SessionPaths) -> Vec<(PathBuf, PathBuf)> {
    let granted = |dir: &Path| policy.grants.iter().any(|grant| is_within(dir, &grant.resolved));
    let filled = |dir: &Path| std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    OWNER_CHECKED
        .iter()
        .map(Path::new)
        .filter(|dir| granted(dir) && filled(dir))
        .map(|dir| (dir.to_owned(), session.dir.join(dir.file_name().unwrap_or_default())))
        .collect()
}

/// Directories that a private file system hides. Processes and terminals are the sandbox's own; the content of the
/// host's `/dev/shm` does not exist inside.
const HIDDEN: [&str; 2] = ["/dev/shm", "/dev/pts"];

/// Refuses grants of what does not exist inside.
pub(super) fn refuse_hidden(policy: &ResolvedPolicy) -> Result<(), Refusal> {
    for grant in &policy.grants {
        let own = HIDDEN
            .iter()
            .map(Path::new)
            .find(|own| is_within(&grant.resolved, own) && grant.resolved != *own);
        if let Some(own) = own.filter(|own| own.is_dir()) {
            return Err(Refusal::CannotGive { path: grant.original.clone(), own: own.to_owned() });
        }
    }
    Ok(())
}

/// Refuses closed paths inside a grant: without mounts they cannot be hidden; `reason` says why there are none.
pub(super) fn refuse_masks(policy: &ResolvedPolicy, reason: &str) -> Result<(), Refusal> {
    let Some(closed) = policy.closed.iter().find(|closed| closed.how == ClosedHow::Mask) else {
        return Ok(());
    };
    let grant = policy
        .grants
        .iter()
        .find(|grant| is_within(&closed.resolved, &grant.resolved))
        .map_or_else(PathBuf::new, |grant| grant.resolved.clone());
    Err(Refusal::CannotMask { path: closed.resolved.clone(), grant, reason: reason.to_owned() })
}

fn private_file_systems(layers: Layers, memory: Option<u64>) -> Vec<MountStep> {
    let mut steps = Vec::new();
    let mut add = |kind, target: &str, options: String| {
        if Path::new(target).is_dir() {
            steps.push(MountStep::Private { kind, target: target.into(), options });
        }
    };
    // Its content is memory that no process's own use shows.
    let size = memory.map_or_else(String::new, |bytes| format!(",size={bytes}"));
    add("tmpfs", "/dev/shm", format!("mode=1777{size}"));
    add("devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=620".to_owned());
    if layers.pid {
        add("proc", "/proc", String::new());
    }
    steps
}

/// Writable grants that no other writable grant contains.
fn writable_grants(policy: &ResolvedPolicy) -> Vec<PathBuf> {
    let writable =
        policy.grants.iter().filter(|grant| grant.access.writes() && !grant.resolved.starts_with("/dev"));
    outermost(&writable.map(|grant| &grant.resolved).collect::<Vec<_>>())
}

/// Paths that lie in no other of these, sorted.
fn outermost(paths: &[&PathBuf]) -> Vec<PathBuf> {
    let is_inside = |path: &PathBuf| paths.iter().any(|other| path != *other && path.starts_with(other));
    let outermost: BTreeSet<PathBuf> =
        paths.iter().copied().filter(|path| !is_inside(path)).cloned().collect();
    outermost.into_iter().collect()
}

/// Paths to show below `/run`, where the machine's services listen. It is replaced by an empty directory unless it was
/// granted itself; what was granted below it is mounted in. `None`: it is left alone.
fn run_exposures(policy: &ResolvedPolicy) -> Option<Vec<PathBuf>> {
    let run = Path::new("/run");
    if !run.is_dir() || policy.grants.iter().any(|grant| is_within(run, &grant.resolved)) {
        return None;
    }
    let wanted = policy.grants.iter().chain(&policy.unix_sockets).map(|grant| &grant.resolved);
    let mut exposed = outermost(&wanted.filter(|path| path.starts_with(run)).collect::<Vec<_>>());
    let writable = writable_grants(policy);
    exposed.retain(|path| !writable.contains(path));
    Some(exposed)
}

fn run_entries(exposed: &[PathBuf], writable: &[PathBuf]) -> Vec<(PathBuf, bool)> {
    let below_run =
        writable.iter().filter_map(|path| path.strip_prefix("/run").ok().map(|rest| (path, rest)));
    exposed
        .iter()
        .filter_map(|path| path.strip_prefix("/run").ok().map(|rest| (path, rest)))
        .chain(below_run)
        .map(|(path, rest)| (rest.to_owned(), path.is_dir()))
        .collect()
}

/// Mask of a closed path. One that exists is hidden, also where no rule covers it: a rule cannot keep its metadata
/// closed. What may be read is read-only anyway outside the writable grants.
fn mask(closed: &ClosedPath, writable: &[PathBuf], session: &SessionPaths) -> Option<MountStep> {
    if closed.has_openings || closed.how == ClosedHow::Copy {
        return None;
    }
    let spared = closed.keep_read && closed.how == ClosedHow::NotGranted;
    if spared && !writable.iter().any(|grant| is_within(&closed.resolved, grant)) {
        return None;
    }
    if is_held(closed) {
        return Some(MountStep::Hold { path: closed.resolved.clone() });
    }
    let source = match closed.kind {
        // The object itself, read-only: it can be used and not changed.
        PathKind::Directory | PathKind::File if closed.keep_read => closed.resolved.clone(),
        PathKind::Directory => session.mask_dir.clone(),
        PathKind::File => session.mask_file.clone(),
        PathKind::Absent | PathKind::Link => return None,
    };
    Some(MountStep::Mask { source, target: closed.resolved.clone(), must: closed.how == ClosedHow::Mask })
}

/// Whether it is an agent's settings where a rule would let them be written.
fn is_held(closed: &ClosedPath) -> bool {
    closed.how == ClosedHow::Mask && matches!(closed.by, ClosedBy::Agent(_))
}

/// Pins of the directories between a writable grant and a masked path: if one could be renamed, something else could be
/// put in place of what is closed (another binary in place of nono's, a directory without a mask).
fn pins(policy: &ResolvedPolicy, writable: &[PathBuf]) -> Vec<MountStep> {
    let own = policy.closed.iter().filter(|closed| closed.how != ClosedHow::NotGranted);
    let mut folders: Vec<&Path> = own
        .flat_map(|closed| closed.resolved.ancestors().skip(1))
        .filter(|dir| writable.iter().any(|grant| is_within(dir, grant) && *dir != grant))
        .collect();
    folders.sort_by_key(|dir| dir.components().count());
    folders.dedup();
    folders.into_iter().map(|dir| MountStep::Pin { path: dir.to_owned() }).collect()
}

/// Masks of every path socket that a process listens on now, except the granted ones and those that the replaced `/run`
/// hides.
fn socket_masks(policy: &ResolvedPolicy, session: &SessionPaths) -> Vec<MountStep> {
    let granted = |path: &Path| policy.unix_sockets.iter().any(|socket| socket.resolved == path);
    bound_sockets()
        .into_iter()
        .filter(|path| !granted(path))
        .filter(|path| !policy.closed.iter().any(|closed| is_within(path, &closed.resolved)))
        .map(|target| MountStep::Mask { source: session.mask_file.clone(), target, must: false })
        .collect()
}

/// Names whose mask a process outside could remove; only a supervised run has an init that watches.
fn watched(policy: &ResolvedPolicy, strategy: ExecStrategy, session: &SessionPaths) -> Vec<WatchedName> {
    if strategy == ExecStrategy::Direct {
        return Vec::new();
    }
    let masked = policy.closed.iter().filter(|closed| closed.how == ClosedHow::Mask);
    let masked = masked.filter(|closed| !closed.keep_read || is_held(closed)).map(|closed| {
        let cover = if is_held(closed) { Cover::Itself } else { Cover::Nothing };
        WatchedName { path: closed.resolved.clone(), cover }
    });
    let copied = session.copies(policy);
    let copied = copied.map(|(path, copy)| WatchedName { path: path.to_owned(), cover: Cover::Copy(copy) });
    masked.chain(copied).collect()
}
