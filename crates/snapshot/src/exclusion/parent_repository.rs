//! The repository that contains a root, when its top is above the root.
//!
//! Its ignore files from the top down to the root's parent are used, and its `info/exclude`, unless they exclude the
//! root: the caller asked for just that folder. As in git, the search ends at a filesystem boundary.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

use super::ExclusionNote;
use super::dir_rules::DirRules;
use super::ignore_file::{List, Subject};
use super::paths::last_component;
use super::repository::WorktreeTop;
use super::shared::{ParentRepository, RepositoryRecord, RootRules, SharedRules};
use crate::node::Reason;

pub(super) fn find(live: &RootRules, shared: &SharedRules) -> Option<ParentRepository> {
    let device = fstat(open(&live.root)?).ok()?.st_dev;
    let mut steps = String::new();
    for top in live.root.ancestors().skip(1) {
        steps.push_str("../");
        let dir = open(top)?;
        if fstat(&dir).ok()?.st_dev != device {
            return None;
        }
        let below = live.root.strip_prefix(top).ok()?.as_os_str().as_bytes();
        let prefix: Box<[u8]> = [below, b"/"].concat().into();
        let place = WorktreeTop::Above(prefix.clone());
        if let Some(repository) = live.repository(shared, dir.as_fd(), place, &format!("{steps}.git")) {
            let above = ParentRepository { prefix, repository, files: Vec::new() };
            return Some(with_files(live, shared, top, below, above));
        }
    }
    None
}

/// Whether the root is inside a `.git` folder, where no ignore rule applies.
pub(super) fn is_inside_git(root: &Path) -> bool {
    root.components().any(|part| part.as_os_str() == ".git")
}

fn open(path: &Path) -> Option<OwnedFd> {
    openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Read the ignore files from the top down to the root's parent.
fn with_files(
    live: &RootRules,
    shared: &SharedRules,
    top: &Path,
    below: &[u8],
    mut above: ParentRepository,
) -> ParentRepository {
    if !shared.ignore_in_force() {
        return above;
    }
    let starts = below.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let dirs: Vec<&[u8]> = std::iter::once(0).chain(starts).map(|end| &below[..end]).collect();
    for dir in dirs {
        let path = top.join(std::ffi::OsStr::from_bytes(dir));
        let name = || file_name(&above.prefix, dir, ".gitignore");
        if let Some(text) = open(&path).and_then(|dir| live.ignore_file(dir.as_fd(), name)) {
            above.files.push((dir.to_vec(), text));
        }
    }
    if let Some(Reason::Ignored { rule, file }) = leaves_out_root(below, &above) {
        live.record().notes.push(ExclusionNote::RootIgnored { rule, file });
        above.files.clear();
        above.repository.exclude = None;
    }
    above
}

/// The rule above the root that excludes the root or a directory containing it.
fn leaves_out_root(below: &[u8], above: &ParentRepository) -> Option<Reason> {
    let ends = below.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.chain([below.len()]).find_map(|end| leaves_out(&below[..end], above))
}

/// The innermost ignore file that matches `dir` decides; `info/exclude` comes last.
fn leaves_out(dir: &[u8], above: &ParentRepository) -> Option<Reason> {
    let holds = |from: &[u8]| {
        from.is_empty() || dir.strip_prefix(from).is_some_and(|rest| rest.len() > 1 && rest.starts_with(b"/"))
    };
    let inner = above.files.iter().rev().filter(|(from, _)| holds(from));
    let files = inner.map(|(from, text)| (from.as_slice(), text, ".gitignore"));
    let exclude = above.repository.exclude.iter().map(|text| (&b""[..], text, ".git/info/exclude"));
    for (from, text, name) in files.chain(exclude) {
        let fold = above.repository.repository.fold;
        let list = List::parse(Arc::clone(text), fold);
        let subject = Subject::new(last_component(dir), true, fold);
        if let Some(rule) = list.last_match(&subject, &WorktreeTop::below(from).seen(dir)) {
            let file = file_name(&above.prefix, from, name);
            return (!rule.negative).then(|| Reason::Ignored { rule: list.line(rule), file });
        }
    }
    None
}

/// Displayed name of a file in the directory `dir` below the top, relative to the root.
fn file_name(prefix: &[u8], dir: &[u8], name: &str) -> String {
    let depth = |path: &[u8]| path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).count();
    format!("{}{name}", "../".repeat(depth(prefix).saturating_sub(depth(dir))))
}

impl DirRules {
    /// Add the rules of the repository above.
    pub(super) fn with_above(&self, above: &ParentRepository) -> DirRules {
        let RepositoryRecord { repository, exclude } = &above.repository;
        let mut rules = self.with_repository(Arc::clone(repository));
        if let Some(text) = exclude {
            let file = file_name(&above.prefix, b"", ".git/info/exclude");
            rules.with_list(text, WorktreeTop::Above(above.prefix.clone()), file);
        }
        for (dir, text) in &above.files {
            let skip = if dir.is_empty() { 0 } else { dir.len() + 1 };
            let rest: Box<[u8]> = above.prefix.get(skip..).unwrap_or_default().into();
            rules.with_list(text, WorktreeTop::Above(rest), file_name(&above.prefix, dir, ".gitignore"));
        }
        rules
    }
}
