//! Paths of protected groups: secrets are closed to reading, autorun files to writing.
//!
//! Two kinds of paths are exempt, both because a tool group of the run, or the user, opens a tool's folder for writing
//! by its name: what lies in such a folder (an agent's own login in its own state), and such a folder inside a
//! write-protected one (a cache beside programs).

use std::cell::LazyCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Closure, Closures};
use crate::access::AccessMode;
use crate::data::GroupKind;
use crate::expand::{expand, expand_everywhere};
use crate::facts::FoundKind;
use crate::is_within;
use crate::request::GrantKind;
use crate::resolve::Inputs;
use crate::resolve::locate::{Entries, same, strictly_within};
use crate::resolved::{ClosedBy, ProtectedName};

pub(super) fn add(closures: &mut Closures, inputs: &Inputs<'_>) {
    let mut bases = Bases { inputs, known: HashMap::new() };
    let tools = LazyCell::new(|| written_by_tools(inputs));
    for group in inputs.data.of_kind(GroupKind::Protected) {
        let name: Arc<str> = group.name.as_str().into();
        for (list, held) in [(&group.closed, false), (&group.held, true)] {
            for text in list {
                let (start, below) = text.split_once('/').unwrap_or((text, ""));
                for base in bases.of(start) {
                    let protected = ProtectedName { below: below.to_owned(), group: name.clone(), held };
                    if base.lacks(below) {
                        closures.names.add(&base.dir, protected);
                    } else {
                        add_path(closures, inputs, &base.dir, &protected, &tools);
                    }
                }
            }
        }
    }
}

pub(super) fn close(closures: &mut Closures, inputs: &Inputs<'_>, names: &[(PathBuf, ProtectedName)]) {
    let tools = LazyCell::new(|| written_by_tools(inputs));
    for (dir, name) in names {
        add_path(closures, inputs, dir, name, &tools);
    }
}

/// Base folders of the policy's names: the home folder and those that variables name, each listed once. Few of the
/// hundreds of names exist, and a name that is not in its folder's listing needs no further lookup.
struct Bases<'a, 'b> {
    inputs: &'a Inputs<'b>,
    known: HashMap<String, Vec<Base>>,
}

struct Base {
    dir: PathBuf,
    /// Listing of the folder. `None` where each name has to be looked up: the folder cannot be listed, or a link below
    /// the home folder leads to it, which may have to be protected.
    entries: Option<Entries>,
}

impl Bases<'_, '_> {
    /// Folders that the beginning of a text may stand for.
    fn of(&mut self, start: &str) -> &[Base] {
        let inputs = self.inputs;
        if !self.known.contains_key(start) {
            let bases = expand_everywhere(start, inputs.host).into_iter().map(|dir| Base::new(inputs, dir));
            self.known.insert(start.to_owned(), bases.collect());
        }
        self.known.get(start).map_or(&[], Vec::as_slice)
    }
}

impl Base {
    fn new(inputs: &Inputs<'_>, dir: PathBuf) -> Base {
        let place = inputs.locator.parent(&dir);
        let entries = match place.kind {
            _ if !is_plain(inputs, &dir, &place.path) => None,
            Some(FoundKind::Directory) => inputs.locator.list(&place.path).ok(),
            Some(_) => None,
            None => Some(Entries::default()),
        };
        let dir = if entries.is_some() { place.path.clone() } else { dir };
        Base { dir, entries }
    }

    /// Whether the first component of a path is known to be missing.
    fn lacks(&self, rest: &str) -> bool {
        let first = OsStr::new(rest.split_once('/').map_or(rest, |(first, _)| first));
        self.entries.as_ref().is_some_and(|entries| {
            entries.binary_search_by(|(known, _)| known.as_os_str().cmp(first)).is_err()
        })
    }
}

/// Whether a folder is reached without links below the home folder, which no command in the sandbox can replace.
fn is_plain(inputs: &Inputs<'_>, dir: &Path, found: &Path) -> bool {
    let home = inputs.host.home.as_deref();
    match home.and_then(|home| Some((home, dir.strip_prefix(home).ok()?))) {
        Some((home, below)) => {
            let home = inputs.locator.parent(home);
            found.strip_prefix(&home.path).is_ok_and(|found| same(found, below))
        }
        None => same(found, dir),
    }
}

fn add_path(
    closures: &mut Closures,
    inputs: &Inputs<'_>,
    dir: &Path,
    name: &ProtectedName,
    tools: &[PathBuf],
) {
    let path = dir.join(&name.below);
    let place = inputs.locator.place(&path);
    if tools.iter().any(|tool| is_within(&place.path, tool)) {
        return;
    }
    let by = || ClosedBy::Protected(name.group.as_ref().to_owned());
    let through_links = !same(&place.path, &path);
    if through_links && name.held {
        hold_links(closures, inputs, &path, &by);
    }
    let mut closure = Closure::new(&path, place, by());
    if name.held {
        closure.keep_read = true;
        let inside = tools.iter().filter(|tool| strictly_within(tool, &closure.path));
        closure.openings = inside.cloned().collect();
    }
    // Names are listed once, so only links can lead two of them to the same path.
    if through_links {
        closures.put(closure);
    } else {
        closures.push(closure);
    }
}

/// Protects the links in a path below the home folder: a command that replaces one decides what runs.
fn hold_links(closures: &mut Closures, inputs: &Inputs<'_>, path: &Path, by: &dyn Fn() -> ClosedBy) {
    let Some(home) = inputs.host.home.as_deref() else { return };
    for on_the_way in path.ancestors().take_while(|dir| strictly_within(dir, home)) {
        closures.add_link(inputs, on_the_way, by());
    }
}

/// Folders, without links, that the tool groups of this run may write; and folders of other tool groups that the user
/// grants for writing by exactly that name.
fn written_by_tools(inputs: &Inputs<'_>) -> Vec<PathBuf> {
    let granted = granted_by_name(inputs);
    let mut written = Vec::new();
    for group in inputs.data.of_kind(GroupKind::Tool) {
        let chosen = inputs.profile.groups.include.contains(&group.name);
        if !chosen && granted.is_empty() {
            continue;
        }
        let texts = group.write.iter().chain(&group.allow).chain(&group.create);
        let paths =
            texts.filter(|text| !text.ends_with('*')).filter_map(|text| expand(text, inputs.host).ok());
        written.extend(paths.filter(|path| chosen || granted.contains(path)));
    }
    written.into_iter().map(|path| inputs.locator.place(&path).path).collect()
}

/// Folders below the home that flags and the user's own profiles grant for writing; a project's profile does not count.
fn granted_by_name(inputs: &Inputs<'_>) -> Vec<PathBuf> {
    let Some(home) = inputs.host.home.as_deref() else { return Vec::new() };
    let wanted = |access: AccessMode, kind| access.writes() && kind == GrantKind::Directory;
    let flags = inputs.request.grants.iter().filter(|grant| wanted(grant.access, grant.kind));
    let flags = flags.map(|grant| inputs.host.absolute(&grant.path));
    let profile = inputs.profile.filesystem.grants.iter();
    let profile = profile.filter(|grant| wanted(grant.access, grant.kind) && !grant.at.exact);
    let profile = profile.filter_map(|grant| expand(&grant.at.path, inputs.host).ok());
    flags.chain(profile).filter(|path| strictly_within(path, home)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessMode::{Read, ReadWrite, Write};
    use crate::data::Group;
    use crate::error::PolicyError;
    use crate::facts::HostFacts;
    use crate::profile::{MergedProfile, ProfileStore};
    use crate::request::{HostContext, ProfileRef, RunRequest};
    use crate::resolved::{ClosedHow, ResolvedPolicy};
    use crate::testing::{FakeTree, data, dir, host};
    use crate::{DeniedReason, PolicyData, QueryResult, query_path, query_path_on};

    /// The small policy, where `~/.edit`, `~/bin` and `~/.tool` run later, `~/.edit/login` is secret, and the tool has
    /// a cache in `~/.tool`.
    fn policy() -> PolicyData {
        let mut data = data();
        let more = |name: &str, closed: &[&str], held: &[&str]| Group {
            name: name.into(),
            kind: GroupKind::Protected,
            description: name.into(),
            read: vec![],
            write: vec![],
            allow: vec![],
            create: vec![],
            closed: closed.iter().map(ToString::to_string).collect(),
            held: held.iter().map(ToString::to_string).collect(),
            made: vec![],
        };
        data.groups.push(more("later", &[], &["~/.edit", "~/bin", "~/.tool"]));
        data.groups.push(more("logins", &["~/.edit/login", "~/.tool/cache/login"], &[]));
        let tool = data.groups.iter_mut().find(|group| group.name == "tool").unwrap();
        tool.allow.push("~/.tool/cache".into());
        data
    }

    fn tree(more: &[&str]) -> FakeTree {
        let base = ["/usr/bin/nono", "/h/.nono/store", "/h/w/a", "/h/.edit/rc", "/h/.edit/login", "/h/notes"];
        let tool = ["/h/.tool/run", "/h/.tool/cache/login"];
        FakeTree::of(&base.into_iter().chain(tool).chain(more.iter().copied()).collect::<Vec<_>>())
    }

    fn resolved(
        tree: &FakeTree,
        request: &RunRequest,
        groups: &[&str],
    ) -> Result<ResolvedPolicy, PolicyError> {
        let mut profile = MergedProfile::default();
        profile.groups.include = groups.iter().map(ToString::to_string).collect();
        crate::resolve(request, &host(), &profile, &policy(), tree)
    }

    fn allows(policy: &ResolvedPolicy, path: &str, there: bool, want: AccessMode) -> bool {
        query_path(policy, Path::new(path), there, want).is_allowed()
    }

    #[test]
    fn what_runs_later_is_read_and_not_written_and_a_secret_in_it_neither() {
        let policy = resolved(&tree(&[]), &dir("/h", ReadWrite), &[]).unwrap();
        assert!(allows(&policy, "/h/.edit/rc", true, Read) && !allows(&policy, "/h/.edit/rc", true, Write));
        assert!(!allows(&policy, "/h/.edit/new", false, Write) && !allows(&policy, "/h/bin/a", false, Write));
        assert!(!allows(&policy, "/h/.edit/login", true, Read));
        assert!(allows(&policy, "/h/notes", true, ReadWrite));
        assert!(
            policy.closed.iter().all(|closed| closed.how == ClosedHow::NotGranted),
            "{:?}",
            policy.closed
        );
        let QueryResult::Denied { reason, suggestion, .. } =
            query_path(&policy, Path::new("/h/.edit/rc"), true, Write)
        else {
            panic!("allowed")
        };
        assert_eq!(reason, DeniedReason::Protected { group: "later".into() });
        let flags = ["--bypass-protection", "/h/.edit/rc", "--write-file", "/h/.edit/rc"];
        assert_eq!(suggestion.unwrap().flags, flags);
    }

    #[test]
    fn writing_it_needs_a_bypass_and_reading_it_does_not() {
        let tree = tree(&[]);
        assert!(matches!(
            resolved(&tree, &dir("/h/.edit", ReadWrite), &[]),
            Err(PolicyError::Protected { group, .. }) if group == "later"
        ));
        let reading = resolved(&tree, &dir("/h/.edit", Read), &[]).unwrap();
        assert!(
            allows(&reading, "/h/.edit/rc", true, Read) && !allows(&reading, "/h/.edit/login", true, Read)
        );
        let request = RunRequest { bypass_protection: vec!["/h/.edit/rc".into()], ..dir("/h", ReadWrite) };
        let opened = resolved(&tree, &request, &[]).unwrap();
        assert!(allows(&opened, "/h/.edit/rc", true, ReadWrite));
        assert!(!allows(&opened, "/h/.edit/new", false, Write));
    }

    #[test]
    fn what_a_tool_writes_by_name_is_its_own() {
        let tree = tree(&[]);
        let without = resolved(&tree, &dir("/h", ReadWrite), &[]).unwrap();
        assert!(!allows(&without, "/h/.tool/cache/new", false, Write));
        let by_name = dir("/h/.tool/cache", ReadWrite);
        let reading = resolved(&tree, &dir("/h/.tool/cache", Read), &[]).unwrap();
        assert!(!allows(&reading, "/h/.tool/cache/login", true, Read));
        for (request, groups) in
            [(dir("/h", ReadWrite), &["tool"][..]), (RunRequest::default(), &["tool"]), (by_name, &[])]
        {
            let with = resolved(&tree, &request, groups).unwrap();
            assert!(allows(&with, "/h/.tool/cache/new", false, Write));
            assert!(allows(&with, "/h/.tool/cache/login", true, ReadWrite));
            assert!(!allows(&with, "/h/.tool/run", true, Write));
        }
    }

    #[test]
    fn a_link_is_held_with_what_it_leads_to() {
        let tree = tree(&["/h/bin -> /h/w/dots", "/h/w/dots/a"]);
        let policy = resolved(&tree, &dir("/h", ReadWrite), &[]).unwrap();
        assert!(!allows(&policy, "/h/w/dots/a", true, Write) && allows(&policy, "/h/w/dots/a", true, Read));
        assert!(allows(&policy, "/h/w/a", true, Write));
        assert!(policy.rules.iter().all(|rule| rule.path != Path::new("/h/bin")));
    }

    #[test]
    fn a_name_that_is_not_there_is_closed_where_a_grant_reaches_it_and_explained_elsewhere() {
        let is_bin = |closed: &crate::ClosedPath| closed.resolved == Path::new("/h/bin");
        let small = resolved(&tree(&[]), &dir("/h/w", ReadWrite), &[]).unwrap();
        assert!(!small.closed.iter().any(is_bin));
        let wide = resolved(&tree(&[]), &dir("/h", ReadWrite), &[]).unwrap();
        assert!(wide.closed.iter().any(is_bin));
        for policy in [small, wide] {
            let QueryResult::Denied { reason, .. } =
                query_path(&policy, Path::new("/h/bin/new"), false, Write)
            else {
                panic!("allowed")
            };
            assert_eq!(reason, DeniedReason::Protected { group: "later".into() });
        }
    }

    #[test]
    fn of_names_that_are_not_there_the_deepest_explains() {
        let bare = FakeTree::of(&["/usr/bin/nono", "/h/.nono/store", "/h/w/a"]);
        let policy = resolved(&bare, &dir("/h/w", ReadWrite), &[]).unwrap();
        for (path, group) in [("/h/.edit/login", "logins"), ("/h/.edit/rc", "later")] {
            let QueryResult::Denied { reason, .. } = query_path(&policy, Path::new(path), false, Write)
            else {
                panic!("allowed")
            };
            assert_eq!(reason, DeniedReason::Protected { group: group.into() });
        }
    }

    #[test]
    fn a_home_behind_a_link_is_protected_as_any() {
        let tree = FakeTree::of(&["/usr/bin/nono", "/real/.edit/rc", "/real/w/a", "/h -> /real"]);
        for (granted, is_closed) in [("/real/w", false), ("/real", true)] {
            let policy = resolved(&tree, &dir(granted, ReadWrite), &[]).unwrap();
            let is_bin = |closed: &crate::ClosedPath| closed.resolved == Path::new("/real/bin");
            assert_eq!(policy.closed.iter().any(is_bin), is_closed, "{granted}");
            assert!(!allows(&policy, "/real/bin/new", false, Write), "{granted}");
            let reason = query_path(&policy, Path::new("/real/bin/new"), false, Write);
            assert!(matches!(reason, QueryResult::Denied { reason: DeniedReason::Protected { .. }, .. }));
        }
    }

    /// A home that has everything the policy names.
    fn full_home() -> (tempfile::TempDir, HostContext) {
        let temp = tempfile::tempdir().unwrap();
        let home = std::fs::canonicalize(temp.path()).unwrap();
        let host = HostContext {
            cwd: home.join("work"),
            home: Some(home.clone()),
            state_dir: home.join(".nono"),
            config_dir: home.join(".config/nono"),
            can_mask: true,
            ..HostContext::default()
        };
        std::fs::create_dir(home.join("work")).unwrap();
        let groups = &PolicyData::embedded().groups;
        let written = groups.iter().flat_map(|group| group.allow.iter().chain(&group.create));
        let dirs = written.filter(|text| !text.starts_with('/') && !text.ends_with('*'));
        for dir in dirs.chain(groups.iter().flat_map(|group| &group.held)) {
            std::fs::create_dir_all(expand(dir, &host).unwrap()).unwrap();
        }
        for file in groups.iter().flat_map(|group| &group.closed) {
            let path = expand(file, &host).unwrap();
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if !path.exists() {
                std::fs::write(path, "").unwrap();
            }
        }
        (temp, host)
    }

    #[test]
    fn every_profile_keeps_what_is_its_own_and_only_that() {
        let (_temp, host) = full_home();
        let home = host.home.clone().unwrap();
        let data = PolicyData::embedded();
        let store = ProfileStore::new(None);
        for info in store.list() {
            let profile = store.resolve(&ProfileRef::Name(info.name.clone()), &[]).unwrap();
            for request in [RunRequest::default(), dir(home.to_str().unwrap(), ReadWrite)] {
                let policy = crate::resolve(&request, &host, &profile, data, &HostFacts).unwrap();
                let asks = |path: &Path, want| query_path_on(&policy, &HostFacts, &home, path, want);
                let own = profile.groups.include.iter().filter_map(|name| data.group(name));
                let own: Vec<PathBuf> = own
                    .flat_map(|group| group.allow.iter().chain(&group.create))
                    .filter(|text| !text.ends_with('*'))
                    .map(|text| expand(text, &host).unwrap())
                    .collect();
                for path in &own {
                    let name = path.join("x");
                    assert!(asks(&name, ReadWrite).is_allowed(), "{}: {}", info.name, name.display());
                }
                for group in data.of_kind(GroupKind::Protected) {
                    for (list, want) in [(&group.closed, Read), (&group.held, Write)] {
                        for path in list.iter().map(|text| expand(text, &host).unwrap()) {
                            let is_own = own.iter().any(|own| is_within(&path, own));
                            let answer = asks(&path, want);
                            assert_eq!(answer.is_allowed(), is_own, "{}: {}", info.name, path.display());
                        }
                    }
                }
            }
        }
    }
}
