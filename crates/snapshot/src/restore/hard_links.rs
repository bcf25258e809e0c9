//! Files with several names (hard links). Which names belong together counts, not their inode numbers.
//!
//! A group of names in the target keeps a current file if one of its names still has that content; each such file
//! serves at most one group. The other names are linked to it, or to the first one that is made. Attributes are changed
//! only on a file that has no names outside the group: otherwise the names get a file of their own.

use std::collections::{HashMap, HashSet};

use super::plan::{Anchor, DirIndex, Layout, NameStep};
use crate::diff::{Aspects, Depth, EntryRef, Pair, Visit, walk};
use crate::hash::ContentHash;
use crate::node::{Entry, Kind, Name};
use crate::state::{Objects, Result};

/// A name whose file has several names on one of the sides.
#[derive(Debug)]
struct Member {
    path: Box<[Name]>,
    new: Option<EntryRef>,
    old: Option<EntryRef>,
}

/// A file: by its inode number, or for a single name by its index in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Set {
    Inode(u64, Option<ContentHash>),
    Single(usize),
}

impl Set {
    fn of(entry: &EntryRef, at: usize) -> Set {
        // On an overlay two files may have the same inode number, so the content is part of the identity.
        let content = match &entry.kind {
            Kind::File { hash, .. } => Some(*hash),
            _ => None,
        };
        entry.meta.link.map_or(Set::Single(at), |inode| Set::Inode(inode, content))
    }
}

/// Decide the steps `linked` of `plan`, each a directory and a step index, for the root with these sides.
pub(super) fn resolve(
    plan: &mut Layout,
    linked: &[(DirIndex, usize)],
    new: Option<&Entry>,
    old: Option<&Entry>,
    objects: &dyn Objects,
) -> Result<()> {
    if linked.is_empty() {
        return Ok(());
    }
    let mut all = Collector { path: Vec::new(), members: Vec::new() };
    walk(new, old, Depth::Nothing, objects, &mut all)?;
    let members = all.members;
    let by_path: HashMap<&[Name], usize> =
        members.iter().enumerate().map(|(at, member)| (&*member.path, at)).collect();
    let stepped: Vec<Option<usize>> = linked
        .iter()
        .map(|(dir, step)| {
            let step = plan.dirs[*dir].steps.get(*step)?;
            let (_, mut path) = plan.names(*dir);
            path.extend(step.name());
            let path: Vec<Name> = path.into_iter().cloned().collect();
            by_path.get(&*path).copied()
        })
        .collect();
    let mut groups = Groups::new(&members, stepped.iter().flatten().copied().collect());
    for ((dir, step), member) in linked.iter().zip(&stepped) {
        let steps = &mut plan.dirs[*dir].steps;
        if let (Some(member), Some(mut decided)) = (member, steps.get(*step)) {
            groups.decide(*member, &mut decided);
            steps.set(*step, decided);
        }
    }
    Ok(())
}

struct Groups<'a> {
    members: &'a [Member],
    /// Members for which the plan has a step.
    stepped: HashSet<usize>,
    /// Current members of each file.
    now: HashMap<Set, Vec<usize>>,
    /// Current file that a group keeps, and the first member that has it.
    kept: HashMap<Set, (Set, usize)>,
    taken: HashSet<Set>,
    /// Member for which a group's file is made.
    made: HashMap<Set, usize>,
}

impl<'a> Groups<'a> {
    fn new(members: &'a [Member], stepped: HashSet<usize>) -> Groups<'a> {
        let mut now: HashMap<Set, Vec<usize>> = HashMap::new();
        for (at, member) in members.iter().enumerate() {
            if let Some(old) = &member.old {
                now.entry(Set::of(old, at)).or_default().push(at);
            }
        }
        let mut groups = Groups {
            members,
            stepped,
            now,
            kept: HashMap::new(),
            taken: HashSet::new(),
            made: HashMap::new(),
        };
        // First groups with the same number then and now, so that others do not take their file.
        let same_number = |group: Set, file: Set| group == file;
        let several = |group: Set, _: Set| matches!(group, Set::Inode(..));
        groups.keep(same_number);
        groups.keep(several);
        groups.keep(|_, _| true);
        groups
    }

    fn keep(&mut self, eligible: impl Fn(Set, Set) -> bool) {
        for at in 0..self.members.len() {
            let Member { new: Some(new), old: Some(old), .. } = &self.members[at] else { continue };
            let (group, file) = (Set::of(new, at), Set::of(old, at));
            let free = !self.kept.contains_key(&group) && !self.taken.contains(&file);
            if free && eligible(group, file) && self.may_keep(at, new, old) {
                self.kept.insert(group, (file, at));
                self.taken.insert(file);
            }
        }
    }

    fn may_keep(&self, at: usize, new: &EntryRef, old: &EntryRef) -> bool {
        let aspects = Aspects::to_reach(old, new);
        if new.is_dir() || aspects.content {
            return false;
        }
        let group = Set::of(new, at);
        let in_group = |other: &usize| {
            self.members[*other].new.as_ref().is_some_and(|entry| Set::of(entry, *other) == group)
        };
        let own = || self.now.get(&Set::of(old, at)).is_some_and(|names| names.iter().all(in_group));
        !aspects.metadata() || (self.stepped.contains(&at) && !old.meta.linked_outside && own())
    }

    fn decide(&mut self, at: usize, step: &mut NameStep) {
        let Member { new: Some(new), old, .. } = &self.members[at] else { return };
        let group = Set::of(new, at);
        let kept = self.kept.get(&group).copied();
        let old = old.as_ref().filter(|old| !old.is_dir());
        if let (Some((file, _)), Some(old)) = (kept, old) {
            let aspects = Aspects::to_reach(old, new);
            if Set::of(old, at) == file && !aspects.content {
                *step = if aspects.metadata() {
                    NameStep::Meta { old: old.clone(), new: new.clone() }
                } else {
                    NameStep::Keep
                };
                return;
            }
        }
        let anchor = kept.map(|(_, first)| first).or_else(|| self.made.get(&group).copied());
        let late = matches!(step, NameStep::Late(_));
        *step = match (anchor, old.cloned()) {
            (Some(anchor), old) => {
                let anchor = Anchor(self.members[anchor].path.clone());
                NameStep::Link { old, new: new.clone(), anchor }
            }
            (None, Some(old)) => NameStep::Replace { old, new: new.clone() },
            (None, None) if late => NameStep::Late(new.clone()),
            (None, None) => NameStep::Create(new.clone()),
        };
        if anchor.is_none() {
            self.made.insert(group, at);
        }
    }
}

struct Collector {
    path: Vec<Name>,
    members: Vec<Member>,
}

impl Visit for Collector {
    fn pair(&mut self, pair: &Pair<'_>) -> Result<bool> {
        self.path.push(pair.name.clone());
        let (new, old) = (pair.a.entry(), pair.b.entry());
        let several = |entry: Option<&EntryRef>| entry.is_some_and(|entry| entry.meta.link.is_some());
        if several(new) || several(old) {
            let path = self.path.as_slice().into();
            self.members.push(Member { path, new: new.cloned(), old: old.cloned() });
        }
        let descend = new.is_some_and(|entry| entry.is_dir()) || old.is_some_and(|entry| entry.is_dir());
        if !descend {
            self.path.pop();
        }
        Ok(descend)
    }

    fn leave(&mut self) -> Result<()> {
        self.path.pop();
        Ok(())
    }
}
