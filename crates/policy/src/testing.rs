//! A file system that exists only in memory, for tests of resolution and queries.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::data::{EnvironmentData, Group, GroupKind, PolicyData};
use crate::facts::{EntryKind, Facts, FoundKind, ResolvedPath};
use crate::profile::MergedProfile;
use crate::request::{GrantKind, GrantRequest, HostContext, RunRequest};
use crate::{AccessMode, PolicyError, ResolvedPolicy};

#[derive(Clone, Debug)]
enum FakeNode {
    Is(FoundKind),
    Link(PathBuf),
}

/// In-memory file tree; parents are made as needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeTree {
    nodes: BTreeMap<PathBuf, FakeNode>,
    links: BTreeMap<PathBuf, u64>,
}

impl FakeTree {
    /// Tree from lines: `d/` makes a directory, `a -> b` a link, `a =` a socket, `a |` a pipe, `a !` a device, else a
    /// file.
    pub(crate) fn of(lines: &[&str]) -> FakeTree {
        let mut tree = FakeTree::default();
        tree.nodes.insert("/".into(), FakeNode::Is(FoundKind::Directory));
        for line in lines {
            match line.split_once(" -> ") {
                Some((from, to)) => tree.add(from, FakeNode::Link(to.into())),
                None => tree.add_plain(line),
            }
        }
        tree
    }

    fn add_plain(&mut self, line: &str) {
        let (path, kind) = match line.rsplit_once(' ') {
            Some((path, "=")) => (path, FoundKind::Socket),
            Some((path, "|")) => (path, FoundKind::Fifo),
            Some((path, "!")) => (path, FoundKind::Device),
            _ if line.ends_with('/') => (line.trim_end_matches('/'), FoundKind::Directory),
            _ => (line, FoundKind::File),
        };
        self.add(path, FakeNode::Is(kind));
    }

    fn add(&mut self, path: &str, node: FakeNode) {
        let path = PathBuf::from(path);
        for parent in path.ancestors().skip(1) {
            self.nodes.entry(parent.to_path_buf()).or_insert(FakeNode::Is(FoundKind::Directory));
        }
        self.nodes.insert(path, node);
    }

    pub(crate) fn with_links(mut self, path: &str, links: u64) -> FakeTree {
        self.links.insert(path.into(), links);
        self
    }

    /// Every path that is not a link.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&Path, FoundKind)> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            FakeNode::Is(kind) => Some((path.as_path(), *kind)),
            FakeNode::Link(_) => None,
        })
    }

    fn follow(&self, path: &Path, budget: u32) -> io::Result<PathBuf> {
        if budget == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut at = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::ParentDir => drop(at.pop()),
                Component::Normal(name) => {
                    let next = at.join(name);
                    at = match self.nodes.get(&next) {
                        Some(FakeNode::Is(_)) => next,
                        Some(FakeNode::Link(target)) => self.follow(&at.join(target), budget - 1)?,
                        None => return Err(io::ErrorKind::NotFound.into()),
                    };
                }
                _ => {}
            }
        }
        Ok(at)
    }
}

impl Facts for FakeTree {
    fn resolve(&self, path: &Path) -> io::Result<ResolvedPath> {
        let path = self.follow(path, 10)?;
        match self.nodes.get(&path) {
            Some(FakeNode::Is(kind)) => Ok(ResolvedPath { path, kind: *kind }),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, EntryKind)>> {
        let below = self.nodes.iter().filter(|(path, _)| path.parent() == Some(dir));
        Ok(below.filter_map(|(path, node)| Some((path.file_name()?.to_owned(), entry_kind(node)))).collect())
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        match self.nodes.get(path) {
            Some(FakeNode::Link(target)) => Ok(target.clone()),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Everything outside the home folders belongs to the system.
    fn is_system_link(&self, path: &Path) -> bool {
        !path.starts_with("/h") && !path.starts_with("/other")
    }

    fn hard_links(&self, path: &Path) -> io::Result<u64> {
        Ok(self.links.get(path).copied().unwrap_or(1))
    }
}

fn entry_kind(node: &FakeNode) -> EntryKind {
    match node {
        FakeNode::Link(_) => EntryKind::Symlink,
        FakeNode::Is(FoundKind::Directory) => EntryKind::Directory,
        FakeNode::Is(FoundKind::File) => EntryKind::File,
        FakeNode::Is(_) => EntryKind::Other,
    }
}

/// Home in `/h`, work in `/h/w`, nono's own in `/h/.nono` and `/h/.config/nono`.
pub(crate) fn host() -> HostContext {
    HostContext {
        cwd: "/h/w".into(),
        home: Some("/h".into()),
        state_dir: "/h/.nono".into(),
        config_dir: "/h/.config/nono".into(),
        binary: Some("/usr/bin/nono".into()),
        ..HostContext::default()
    }
}

/// A small policy: `/usr` is base, `~/.ssh` and `~/.config/cloud` are protected, `tool` opens `~/.tool`.
pub(crate) fn data() -> PolicyData {
    let group = |name: &str, kind, read: &[&str], closed: &[&str]| Group {
        name: name.into(),
        kind,
        description: name.into(),
        read: read.iter().map(ToString::to_string).collect(),
        write: vec![],
        allow: vec![],
        create: vec![],
        closed: closed.iter().map(ToString::to_string).collect(),
        held: vec![],
        made: vec![],
    };
    PolicyData {
        groups: vec![
            group("system", GroupKind::Base, &["/usr", "/bin", "/etc/py*"], &[]),
            group("ssh", GroupKind::Protected, &[], &["~/.ssh"]),
            group("cloud", GroupKind::Protected, &[], &["$XDG_CONFIG_HOME/cloud"]),
            group("tool", GroupKind::Tool, &["~/.tool", "~/.ssh/tool"], &[]),
        ],
        agents: vec![],
        environment: EnvironmentData {
            allow: vec!["PATH".into()],
            never: vec!["LD_*".into(), "BASH_ENV".into()],
            secret: vec!["*_TOKEN".into()],
        },
    }
}

/// The tree most tests start from.
pub(crate) fn tree() -> FakeTree {
    FakeTree::of(&[
        "/usr/bin/nono",
        "/usr/bin/ls",
        "/bin -> usr/bin",
        "/etc/python3/",
        "/etc/pyrc",
        "/etc/shadow",
        "/h/.ssh/id",
        "/h/.ssh/config",
        "/h/.ssh/tool",
        "/h/.config/cloud/key",
        "/h/.config/other/file",
        "/h/.config/nono/profiles/",
        "/h/.nono/store",
        "/h/.tool/state",
        "/h/w/src/main.rs",
        "/h/w/.env",
        "/h/w/link -> /h/.ssh/id",
        "/h/w/dangling -> nowhere",
        "/h/w/sock =",
        "/h/w/pipe |",
        "/h/w/dev !",
        "/h/notes",
        "/h/shortcut -> w",
        "/other/data",
    ])
}

pub(crate) fn grant(path: &str, access: AccessMode, kind: GrantKind) -> GrantRequest {
    GrantRequest { path: path.into(), access, kind }
}

pub(crate) fn dir(path: &str, access: AccessMode) -> RunRequest {
    RunRequest { grants: vec![grant(path, access, GrantKind::Directory)], ..RunRequest::default() }
}

pub(crate) fn resolve_in(tree: &FakeTree, request: &RunRequest) -> Result<ResolvedPolicy, PolicyError> {
    crate::resolve(request, &host(), &MergedProfile::default(), &data(), tree)
}

pub(crate) fn resolved(request: &RunRequest) -> ResolvedPolicy {
    resolve_in(&tree(), request).unwrap()
}

pub(crate) fn refused(request: &RunRequest) -> PolicyError {
    resolve_in(&tree(), request).unwrap_err()
}
