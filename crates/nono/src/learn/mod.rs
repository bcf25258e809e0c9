//! Proposal of the smallest sensible profile from the recorded accesses of a command.
//!
//! [`propose`] is pure, except that it asks [`Facts`] what exists at a path now. Paths that the base policy opens are
//! left out; protected paths are named but never proposed, nor is anything that would open a whole home folder or
//! system. The profile is only a proposal: it comes from one run, and a hostile command can try to get paths into it.
//! The user has to review it.

mod fold;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nono_policy::profile::{DetailedPath, FilesystemSection, NetworkSection, OneOrMany, PathEntry, Profile};
use nono_policy::{
    AccessMode, DeniedReason, Facts, FoundKind, NetworkPolicy, QueryResult, ResolvedPolicy, SOME_NAME,
    is_system_folder, is_within, query_path,
};
use nono_supervisor::recorded::{PathObject, Reached, Recorded, Touched, Use};

use crate::session::Learned;
use fold::Grants;

/// Base folders for writing paths in a profile.
#[derive(Clone, Debug, Default)]
pub struct BaseFolders {
    /// The home folder, without links.
    pub home: Option<PathBuf>,
    /// The working directory, without links.
    pub workdir: PathBuf,
}

impl BaseFolders {
    /// The path as written in a profile; `None` if it cannot be written there.
    pub fn written(&self, path: &Path) -> Option<String> {
        let below = |start: &str, base: &Path| {
            let rest = path.strip_prefix(base).ok()?.to_str()?;
            Some(if rest.is_empty() { start.to_owned() } else { format!("{start}/{rest}") })
        };
        below("$WORKDIR", &self.workdir)
            .or_else(|| below("$HOME", self.home.as_deref()?))
            .or_else(|| path.to_str().map(str::to_owned))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    pub path: PathBuf,
    pub access: AccessMode,
    pub is_dir: bool,
}

/// A path that is not proposed, and the flags that open it nevertheless, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    pub path: PathBuf,
    pub access: AccessMode,
    pub reason: DeniedReason,
    pub flags: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Proposal {
    pub profile: Profile,
    pub grants: Vec<Proposed>,
    pub closed: Vec<Closed>,
    /// Folders that are too large to be opened as a whole.
    pub too_wide: Vec<(PathBuf, AccessMode)>,
    /// Devices and pipes, which only flags can open, and names that a profile cannot contain.
    pub left_out: Vec<PathBuf>,
    pub executed: Vec<PathBuf>,
    pub denied: Vec<(PathBuf, AccessMode)>,
    pub reached: Vec<(Reached, u64)>,
    pub bound: BTreeSet<u16>,
    pub unrecorded: u64,
}

/// Propose a profile, with a name if one is given. `run` is the policy of the recorded run.
pub fn propose(
    name: Option<&str>,
    description: &str,
    learned: &Learned,
    run: &ResolvedPolicy,
    places: &BaseFolders,
    facts: &dyn Facts,
) -> Proposal {
    let Learned { base, extends, recorded } = learned;
    let mut needs = Needs {
        base,
        run,
        places,
        facts,
        grants: Grants::default(),
        closed: Vec::new(),
        too_wide: BTreeMap::new(),
        special: BTreeSet::new(),
    };
    needs.collect(&recorded.touched);
    let grants = needs.grants.reduced(|folder, access| needs.is_wide(folder, access));
    let (filesystem, grants, unnamed) = filesystem(grants, places, facts);
    let profile = Profile {
        name: name.map(str::to_owned),
        description: Some(description.to_owned()),
        extends: Some(match extends.as_slice() {
            [one] => OneOrMany::One(one.clone()),
            many => OneOrMany::Many(many.to_vec()),
        }),
        filesystem,
        network: network(recorded, base),
        ..Profile::default()
    };
    let Needs { closed, too_wide, special, .. } = needs;
    Proposal {
        profile,
        grants,
        closed,
        too_wide: too_wide.into_iter().collect(),
        left_out: special.into_iter().chain(unnamed).collect(),
        executed: paths(recorded, |touched| touched.uses.contains(&Use::Execute)),
        denied: denied(recorded),
        reached: recorded.reached.iter().map(|(reached, count)| (reached.clone(), *count)).collect(),
        bound: recorded.bound.clone(),
        unrecorded: recorded.unrecorded,
    }
}

fn paths(recorded: &Recorded, which: impl Fn(&Touched) -> bool) -> Vec<PathBuf> {
    recorded.touched.iter().filter(|(_, touched)| which(touched)).map(|(path, _)| path.clone()).collect()
}

fn denied(recorded: &Recorded) -> Vec<(PathBuf, AccessMode)> {
    let touched = recorded.touched.iter().filter(|(path, _)| !is_kernels(path));
    touched.filter_map(|(path, touched)| Some((path.clone(), access(&touched.denied)?))).collect()
}

/// Access needed for these uses. Creating names in a folder counts as writing to it.
fn access(uses: &BTreeSet<Use>) -> Option<AccessMode> {
    let reads = uses.contains(&Use::Read) || uses.contains(&Use::Execute);
    let writes = uses.contains(&Use::Write) || uses.contains(&Use::Names);
    match (reads, writes) {
        (true, true) => Some(AccessMode::ReadWrite),
        (true, false) => Some(AccessMode::Read),
        (false, true) => Some(AccessMode::Write),
        (false, false) => None,
    }
}

fn is_kernels(path: &Path) -> bool {
    is_within(path, Path::new("/proc"))
}

/// Accesses needed beyond the base policy.
struct Needs<'a> {
    base: &'a ResolvedPolicy,
    run: &'a ResolvedPolicy,
    places: &'a BaseFolders,
    facts: &'a dyn Facts,
    grants: Grants,
    closed: Vec<Closed>,
    too_wide: BTreeMap<PathBuf, AccessMode>,
    special: BTreeSet<PathBuf>,
}

impl Needs<'_> {
    fn collect(&mut self, touched: &BTreeMap<PathBuf, Touched>) {
        let ours = || touched.iter().filter(|(path, _)| !is_kernels(path));
        // Folders first: files created in them need no grant of their own.
        for (path, touched) in ours() {
            if touched.uses.contains(&Use::Names)
                && self.is_needed(path, &path.join(SOME_NAME), false, AccessMode::Write)
            {
                self.folder(path, AccessMode::Write);
            }
        }
        let made = |path: &Path| {
            let is_made = |above: &Path| touched.get(above).is_some_and(|t| t.uses.contains(&Use::Made));
            path.ancestors().any(is_made)
        };
        for (path, touched) in ours() {
            let own: BTreeSet<Use> = touched.uses.iter().copied().filter(|one| *one != Use::Names).collect();
            let Some(access) = access(&own) else { continue };
            let made = made(path);
            if self.is_needed(path, path, !made, access) {
                self.object(path, touched.stands, access, made);
            }
        }
    }

    /// Whether an access is missing that a profile may open; one that it may not is recorded in `closed`.
    fn is_needed(&mut self, named: &Path, path: &Path, exists: bool, access: AccessMode) -> bool {
        let QueryResult::Denied { reason, suggestion, .. } = query_path(self.base, path, exists, access)
        else {
            return false;
        };
        let in_run = match query_path(self.run, path, exists, access) {
            QueryResult::Denied { reason, .. } => Some(reason),
            QueryResult::Allowed { .. } => None,
        };
        let Some(reason) = [Some(reason), in_run].into_iter().flatten().find(stays_closed) else {
            return true;
        };
        let flags = suggestion.map(|suggestion| suggestion.flags).unwrap_or_default();
        self.closed.push(Closed { path: named.to_owned(), access, reason, flags });
        false
    }

    fn object(&mut self, path: &Path, stands: PathObject, access: AccessMode, made: bool) {
        if made {
            // The next run has to create it again.
            if self.grants.widen_above(path, access) {
                return;
            }
            return match self.facts.resolve(path).map(|found| found.kind) {
                Ok(FoundKind::Directory) => self.folder(path, access),
                Ok(FoundKind::File) => self.grants.file(path, access),
                // Gone, or not something that a profile can open.
                _ => {}
            };
        }
        match stands {
            PathObject::Directory => self.folder(path, access),
            PathObject::File => self.grants.file(path, access),
            PathObject::Special => drop(self.special.insert(path.to_owned())),
        }
    }

    fn folder(&mut self, path: &Path, access: AccessMode) {
        if self.is_wide(path, access) {
            let known = self.too_wide.entry(path.to_owned()).or_insert(access);
            *known = known.union(access);
        } else {
            self.grants.folder(path, access);
        }
    }

    fn is_wide(&self, folder: &Path, access: AccessMode) -> bool {
        let holds = |path: &Path| is_within(path, folder);
        let closed = self.base.closed.iter().chain(&self.run.closed);
        is_system_folder(folder)
            || self.places.home.as_deref().is_some_and(holds)
            || closed
                .filter(|closed| !closed.keep_read || access.writes())
                .any(|closed| holds(&closed.resolved))
    }
}

/// Whether a path stays closed regardless of grants.
fn stays_closed(reason: &DeniedReason) -> bool {
    matches!(
        reason,
        DeniedReason::Protected { .. }
            | DeniedReason::NonoState
            | DeniedReason::AgentSettings { .. }
            | DeniedReason::DenyRule { .. }
    )
}

/// The grants as a profile section, and the paths that a profile cannot name.
fn filesystem(
    grants: Grants,
    places: &BaseFolders,
    facts: &dyn Facts,
) -> (FilesystemSection, Vec<Proposed>, Vec<PathBuf>) {
    let mut section = FilesystemSection::default();
    let (mut proposed, mut unnamed) = (Vec::new(), Vec::new());
    for grant in grants.into_list() {
        let Some(text) = places.written(&grant.path) else {
            unnamed.push(grant.path);
            continue;
        };
        let list = match (grant.access, grant.is_dir) {
            (AccessMode::ReadWrite, true) => &mut section.allow,
            (AccessMode::Read, true) => &mut section.read,
            (AccessMode::Write, true) => &mut section.write,
            (AccessMode::ReadWrite, false) => &mut section.allow_file,
            (AccessMode::Read, false) => &mut section.read_file,
            (AccessMode::Write, false) => &mut section.write_file,
        };
        // A path that is gone must not make the next run fail.
        list.push(match facts.resolve(&grant.path) {
            Ok(_) => PathEntry::Plain(text),
            Err(_) => PathEntry::Detailed(DetailedPath { path: text, optional: true }),
        });
        proposed.push(grant);
    }
    (section, proposed, unnamed)
}

const NAME_SERVICE: u16 = 53;
/// Start of the kernel's ephemeral port range.
const CHOSEN: u16 = 32768;

/// The network section: everything, if any address beyond this machine was used. A local name server counts as beyond,
/// since it answers for others.
fn network(recorded: &Recorded, base: &ResolvedPolicy) -> NetworkSection {
    let known: &[u16] = match &base.network {
        NetworkPolicy::Allowed => return NetworkSection::default(),
        NetworkPolicy::Blocked => &[],
        NetworkPolicy::Ports { connect, .. } | NetworkPolicy::Filtered { connect, .. } => connect,
    };
    let outside = |reached: &&Reached| !reached.loopback || reached.port == NAME_SERVICE;
    if recorded.reached.keys().any(|reached| outside(&reached)) {
        return NetworkSection { block: Some(false), ..NetworkSection::default() };
    }
    let chosen = recorded.bound.contains(&0);
    let is_own = |port: u16| recorded.bound.contains(&port) || chosen && port >= CHOSEN;
    let ports: BTreeSet<u16> = recorded.reached.keys().map(|reached| reached.port).collect();
    let missing = ports.into_iter().filter(|port| !is_own(*port) && !known.contains(port));
    NetworkSection { allow_connect_port: missing.collect(), ..NetworkSection::default() }
}
