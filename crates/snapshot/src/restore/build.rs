//! Builds a plan from two states and a selection. Pure: it only reads nodes.

mod conflicts;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::conflict_unit::{self, Base};
use super::database::{self, DatabaseFile};
use super::hard_links;
use super::nested::Nested;
use super::plan::{DirEntryMode, DirIndex, Draft, Leave, NameStep, PlanDir, RestorePlan};
use super::presence::{SideEntry, by_rule, look};
use super::select::{Chosen, PathSelection};
use super::steps::Steps;
use super::{NoteKind, PlanNote, RestoreRequest, Selection, Skipped, Why};
use crate::diff::{Aspects, Depth, EntryRef, Lost, Pair, SideSlot, Visit, walk};
use crate::node::{Entry, Kind, Name, Node, Reason};
use crate::state::{Objects, Result, RootContent, RootState};

/// Plan the steps that bring the selected paths to the target's state.
pub fn plan(request: &RestoreRequest<'_>, objects: &dyn Objects) -> Result<RestorePlan> {
    let choice = PathSelection::new(request.selection);
    let except = PathSelection::new(&Selection::Paths(request.except.to_vec()));
    let mut plan = Draft::default();
    let mut found = vec![false; choice.paths().count()];
    let nested = Nested::new(request.target);
    for target in nested.in_order() {
        let parent = target.path.parent().unwrap_or(Path::new("/"));
        let chosen = choice.of(parent);
        if chosen == Chosen::No {
            continue;
        }
        let below = |path: &PathBuf| nested.answers(&target.path, path);
        let current = request.current.root(&target.path);
        match both(target, current) {
            Ok((new, old)) => {
                let resumed = request.resumed.and_then(|state| state.root(&target.path)?.content.entry());
                let choices = Choices { choice: &choice, except: &except, nested };
                let bases = request.bases(&target.path);
                let mut builder = Builder::new(plan, parent, choices, bases, resumed, objects);
                builder.resuming = request.resumed.is_some();
                walk(new, old, Depth::Differences, objects, &mut builder)?;
                plan = builder.finish(new, old, objects)?;
                for (found, path) in found.iter_mut().zip(choice.paths()).filter(|(_, path)| below(path)) {
                    match look(path, &target.path, new, old, objects)? {
                        SideEntry::Nothing => {}
                        SideEntry::Entry => *found = true,
                        SideEntry::LeftOut(why) => {
                            *found = true;
                            let skipped = Skipped { path: path.clone(), why };
                            if !plan.skipped.contains(&skipped) {
                                plan.skipped.push(skipped);
                            }
                        }
                    }
                }
            }
            Err(why) => {
                found.iter_mut().zip(choice.paths()).for_each(|(found, path)| *found |= below(path));
                plan.skipped.push(Skipped { path: target.path.clone(), why });
            }
        }
    }
    let missing = found.iter().zip(choice.paths()).filter(|(found, _)| !**found);
    plan.skipped.extend(missing.map(|(_, path)| Skipped { path: path.clone(), why: Why::NotFound }));
    plan.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    plan.lost.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(plan.finish())
}

impl RestoreRequest<'_> {
    /// The root in the states that conflicts are judged by.
    fn bases(&self, path: &Path) -> Vec<Base> {
        let states = if self.force { &[] } else { self.keep_changed_since };
        states.iter().map(|state| Some(Arc::new(conflict_unit::base(state, path)))).collect()
    }
}

type Sides<'a> = (Option<&'a Entry>, Option<&'a Entry>);

/// A root in the target and now, if both are known.
fn both<'a>(target: &'a RootState, current: Option<&'a RootState>) -> Result<Sides<'a>, Why> {
    let current = current.ok_or(Why::RootUnknown)?;
    let entry = |root: &'a RootState| match &root.content {
        RootContent::Failed(reason) => Err(Why::RootFailed(reason.clone())),
        RootContent::Absent => Ok(None),
        RootContent::Captured(entry) => {
            // A root's own name is the only one not checked by a node.
            let named = root.path.file_name().is_some_and(|name| Path::new(name) == entry.name.as_ref());
            if named { Ok(Some(entry)) } else { Err(Why::RootUnknown) }
        }
    };
    Ok((entry(target)?, entry(current)?))
}

/// Selected and excepted paths.
#[derive(Clone, Copy)]
struct Choices<'a> {
    choice: &'a PathSelection,
    except: &'a PathSelection,
    nested: Nested<'a>,
}

struct BuildFrame {
    dir: DirIndex,
    chosen: Chosen,
    excepted: Chosen,
    /// The directory in the states that conflicts are judged by; empty if conflicts are not looked for.
    bases: Vec<Base>,
    resumed: Option<Arc<Node>>,
    /// Whether the directory is to be removed.
    removing: bool,
    /// Whether an entry in it has to stay.
    holds: bool,
    /// Whether a directory in it has to stay, and was reported.
    holds_dir: bool,
}

pub(super) struct Builder<'a> {
    plan: Draft,
    choices: Choices<'a>,
    objects: &'a dyn Objects,
    frames: Vec<BuildFrame>,
    /// Steps on files with several names, decided when all of them are known.
    linked: Vec<(DirIndex, usize)>,
    resuming: bool,
}

impl<'a> Builder<'a> {
    fn new(
        mut plan: Draft,
        parent: &Path,
        choices: Choices<'a>,
        bases: Vec<Base>,
        resumed: Option<&Entry>,
        objects: &'a dyn Objects,
    ) -> Builder<'a> {
        let dir = plan.dirs.len();
        plan.tops.push(dir);
        plan.dirs.push(PlanDir {
            parent: dir,
            how: DirEntryMode::Top(parent.to_path_buf()),
            steps: Steps::default(),
            children: Vec::new(),
            leave: if choices.nested.is_inside(parent) { Leave::AsEntered } else { Leave::Alone },
        });
        let resumed =
            resumed.map(|entry| Arc::new(Node { entries: vec![entry.clone()], omitted: Vec::new() }));
        let (chosen, excepted) = (choices.choice.of(parent), choices.except.of(parent));
        let (removing, holds, holds_dir) = (false, false, false);
        let top = BuildFrame { dir, chosen, excepted, bases, resumed, removing, holds, holds_dir };
        Builder { plan, choices, objects, frames: vec![top], linked: Vec::new(), resuming: false }
    }

    fn finish(mut self, new: Option<&Entry>, old: Option<&Entry>, objects: &dyn Objects) -> Result<Draft> {
        hard_links::resolve(&mut self.plan, &self.linked, new, old, objects)?;
        Ok(self.plan)
    }

    fn top(&mut self) -> &mut BuildFrame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn path(&self, name: &Name) -> PathBuf {
        let dir = self.frames.last().map_or(0, |frame| frame.dir);
        self.plan.path_of(dir, Some(name))
    }

    /// Leave an entry as it is; its directory has to stay too.
    fn skip(&mut self, name: &Name, why: Why) {
        let path = self.path(name);
        self.plan.skipped.push(Skipped { path, why });
        self.top().holds = true;
    }

    fn omitted(&mut self, pair: &Pair<'_>) {
        match (&pair.a, &pair.b) {
            (SideSlot::Omitted(then), now) => {
                let lost = Lost::of(then, now, || self.path(pair.name));
                self.plan.lost.extend(lost);
            }
            (SideSlot::Entry(_), SideSlot::Omitted(current)) => {
                self.skip(pair.name, Why::NotStored(current.reason.clone()));
            }
            (_, SideSlot::Omitted(current)) if !by_rule(&current.reason) => {
                self.skip(pair.name, Why::NotStored(current.reason.clone()));
            }
            _ => {}
        }
        // A root that is to be removed is gone by then; if it is not, that shows.
        let other = matches!(&pair.b, SideSlot::Omitted(current) if current.reason == Reason::OtherRoot);
        if !(other && self.choices.nested.goes(&self.path(pair.name))) {
            self.top().holds = true;
        }
    }

    /// Whether an entry is selected. Selecting one file of a database selects all of them.
    fn chosen(&self, name: &Name, others: &[DatabaseFile]) -> Chosen {
        let above = self.frames.last().map_or(Chosen::No, |frame| frame.chosen);
        let choice = |name: &Name| self.choices.choice.child(above, name.as_bytes());
        let whole = others.iter().any(|other| choice(&other.name) == Chosen::Whole);
        if whole { Chosen::Whole } else { choice(name) }
    }

    /// Whether an entry is excepted. Excepting one file of a database keeps all of them.
    fn is_excepted(&self, name: &Name, others: &[DatabaseFile]) -> bool {
        let above = self.frames.last().map_or(Chosen::No, |frame| frame.excepted);
        let mut names = std::iter::once(name).chain(others.iter().map(|other| &other.name));
        names.any(|name| self.choices.except.child(above, name.as_bytes()) == Chosen::Whole)
    }

    /// Reason why the files of a database have to stay because of one of them.
    fn keeps_database(&self, others: &[DatabaseFile]) -> Option<Why> {
        others.iter().find_map(|DatabaseFile { name, new, old, left_out }| {
            let (new, old) = (new.as_ref(), old.as_ref());
            let conflict = || self.is_conflict(name, new, old) && !is_same(new, old);
            left_out.clone().or_else(|| conflict().then_some(Why::ChangedSince))
        })
    }

    fn step(&mut self, step: NameStep) {
        let (old, new) = step.sides();
        let several = |entry: Option<&EntryRef>| entry.is_some_and(|entry| entry.meta.link.is_some());
        let settle_later = new.is_some() && (several(old) || several(new));
        let outside = old.filter(|old| old.meta.linked_outside).map(|old| old.name.clone());
        if let Some(name) = outside.filter(|_| !matches!(step, NameStep::Keep)) {
            let path = self.path(&name);
            self.plan.notes.push(PlanNote { path, kind: NoteKind::LinkedOutside });
        }
        let dir = self.top().dir;
        let steps = &mut self.plan.dirs[dir].steps;
        steps.push(step);
        if settle_later {
            self.linked.push((dir, steps.len() - 1));
        }
    }

    /// Plan an entry that is not a directory on either side.
    fn leaf(&mut self, new: Option<&EntryRef>, old: Option<&EntryRef>) {
        let step = match (new.cloned(), old.cloned()) {
            (None, None) => return,
            (Some(new), None) => NameStep::Create(new),
            (None, Some(old)) => NameStep::Delete(old),
            (Some(new), Some(old)) => {
                let aspects = Aspects::to_reach(&old, &new);
                if aspects.content || (aspects.metadata() && old.meta.linked_outside) {
                    NameStep::Replace { old, new }
                } else {
                    // Also if only its hard links differ: that is decided later.
                    NameStep::Meta { old, new }
                }
            }
        };
        let still = |old: &EntryRef, new: &EntryRef| {
            !Aspects::to_reach(old, new).any() && old.meta.link.is_none() && new.meta.link.is_none()
        };
        if !matches!(&step, NameStep::Meta { old, new } if still(old, new)) {
            self.step(step);
        }
    }

    fn enter(&mut self, name: &Name, chosen: Chosen, how: DirEntryMode, leave: Leave) -> Result<()> {
        let removing = matches!(how, DirEntryMode::Remove { .. });
        let above = self.frames.last();
        let below = |node: Option<&Arc<Node>>| match node.and_then(|node| node.entry(name.as_bytes())) {
            Some(Entry { kind: Kind::Dir { tree, .. }, .. }) => self.objects.node(*tree).map(Some),
            _ => Ok(None),
        };
        let bases = above.map(|frame| frame.bases.as_slice()).unwrap_or_default();
        let bases = bases.iter().map(|base| below(base.as_ref())).collect::<Result<_, _>>()?;
        let resumed = below(above.and_then(|frame| frame.resumed.as_ref()))?;
        let excepted = above.map_or(Chosen::No, |frame| frame.excepted);
        let excepted = self.choices.except.child(excepted, name.as_bytes());
        let parent = above.map_or(0, |frame| frame.dir);
        let dir = self.plan.dirs.len();
        self.plan.dirs.push(PlanDir { parent, how, steps: Steps::default(), children: Vec::new(), leave });
        let (holds, holds_dir) = (false, false);
        self.frames.push(BuildFrame { dir, chosen, excepted, bases, resumed, removing, holds, holds_dir });
        Ok(())
    }

    /// Plan an entry that is a directory on at least one side. True if it was entered.
    fn directory(
        &mut self,
        name: &Name,
        chosen: Chosen,
        new: Option<&EntryRef>,
        old: Option<&EntryRef>,
    ) -> Result<bool> {
        let whole = chosen == Chosen::Whole;
        let as_found = |builder: &Builder<'_>, old: &EntryRef| {
            let before = builder.frames.last().and_then(|frame| frame.resumed.as_ref());
            let before = before.and_then(|node| node.entry(name.as_bytes())).filter(|entry| entry.is_dir());
            Leave::AsFound(before.cloned().map_or_else(|| old.clone(), EntryRef::alone))
        };
        // A copy of the entry alone, so that its siblings are not kept in memory.
        let alone = |entry: Option<&EntryRef>| entry.map(|entry| EntryRef::alone(Entry::clone(entry)));
        let (new, old) = (alone(new), alone(old));
        let (new, old) = (new.as_ref(), old.as_ref());
        let (how, leave) = match (new, old) {
            (Some(new), Some(old)) if new.is_dir() && old.is_dir() => {
                let leave = if !whole {
                    as_found(self, old)
                } else if Aspects::to_reach(old, new).permissions() && self.is_dir_conflict(old) {
                    let path = self.path(name);
                    self.plan.skipped.push(Skipped { path, why: Why::ChangedSince });
                    Leave::AsFound(old.clone())
                } else {
                    Leave::Target { old: Some(old.clone()), new: new.clone() }
                };
                (DirEntryMode::Enter(old.clone()), leave)
            }
            (Some(new), old) if new.is_dir() => {
                let leave = Leave::Target { old: None, new: new.clone() };
                (DirEntryMode::Make { new: new.clone(), over: old.cloned() }, leave)
            }
            (new, Some(old)) if whole => {
                (DirEntryMode::Remove { old: old.clone(), then: new.cloned() }, as_found(self, old))
            }
            (_, Some(old)) => (DirEntryMode::Enter(old.clone()), as_found(self, old)),
            _ => return Ok(false),
        };
        self.enter(name, chosen, how, leave)?;
        Ok(true)
    }

    /// Keep a directory that was to be removed. Reported where it holds an entry itself, not again for each directory
    /// above it: in a deep tree the paths would not fit in memory.
    fn keep_directory(&mut self, dir: DirIndex, itself: bool) {
        let PlanDir { how, .. } = &mut self.plan.dirs[dir];
        let DirEntryMode::Remove { old, then } = how else { return };
        let in_the_way = then.is_some();
        *how = DirEntryMode::Enter(old.clone());
        let whys = [itself.then_some(Why::HoldsOthers), in_the_way.then_some(Why::InTheWay)];
        for why in whys.into_iter().flatten() {
            let path = self.plan.path_of(dir, None);
            self.plan.skipped.push(Skipped { path, why });
        }
    }

    /// Whether nothing is to be done in it or with it.
    fn is_idle(&self, frame: &BuildFrame) -> bool {
        let dir = &self.plan.dirs[frame.dir];
        let in_it = !dir.steps.is_empty() || !dir.children.is_empty();
        let itself = match (&dir.how, &dir.leave) {
            (DirEntryMode::Make { .. }, _) => frame.chosen == Chosen::Whole,
            (DirEntryMode::Remove { .. }, _) => true,
            (_, Leave::Target { old: Some(old), new }) => Aspects::to_reach(old, new).metadata(),
            (DirEntryMode::Enter(old), Leave::AsFound(found)) => Aspects::to_reach(old, found).metadata(),
            _ => false,
        };
        !in_it && !itself
    }
}

impl Visit for Builder<'_> {
    fn pair(&mut self, pair: &Pair<'_>) -> Result<bool> {
        let others = database::others(pair);
        let chosen = self.chosen(pair.name, &others);
        if chosen == Chosen::No {
            return Ok(false);
        }
        if self.is_excepted(pair.name, &others) {
            // Not reported, but the directory has to stay with it.
            self.top().holds_dir |= !matches!(pair.b, SideSlot::Nothing);
            return Ok(false);
        }
        if pair.a.is_omitted() || pair.b.is_omitted() {
            self.omitted(pair);
            return Ok(false);
        }
        let (new, old) = (pair.a.entry(), pair.b.entry());
        if self.is_conflict(pair.name, new, old) && !is_same(new, old) {
            // Already in the wanted state, by a later change of others: not a conflict.
            if !is_same_but_time(new, old) {
                self.skip(pair.name, Why::ChangedSince);
            }
            return Ok(false);
        }
        if let Some(why) = self.keeps_database(&others).filter(|_| !is_same(new, old)) {
            self.skip(pair.name, why);
            return Ok(false);
        }
        if self.is_changed_unit(pair.name, old)? {
            self.skip(pair.name, Why::ChangedSince);
            return Ok(false);
        }
        if let Some(reason) = self.is_incomplete_unit(pair.name, new, old)? {
            self.skip(pair.name, Why::IncompleteRepository(reason));
            return Ok(false);
        }
        let is_dir = |entry: Option<&EntryRef>| entry.is_some_and(|entry| entry.is_dir());
        if is_dir(new) || is_dir(old) {
            return self.directory(pair.name, chosen, new, old);
        }
        if chosen == Chosen::Whole {
            self.leaf(new, old);
        }
        Ok(false)
    }

    fn leave(&mut self) -> Result<()> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        if frame.removing && (frame.holds || frame.holds_dir) {
            self.keep_directory(frame.dir, frame.holds);
            self.top().holds_dir = true;
        }
        if self.is_idle(&frame) {
            self.plan.dirs.truncate(frame.dir);
            return Ok(());
        }
        let dir = &mut self.plan.dirs[frame.dir];
        dir.steps.shrink();
        let parent = dir.parent;
        self.plan.dirs[parent].children.push(frame.dir);
        if let DirEntryMode::Remove { then, .. } = &mut self.plan.dirs[frame.dir].how
            && let Some(new) = then.take_if(|new| new.meta.link.is_some())
        {
            self.step(NameStep::Late(new));
        }
        Ok(())
    }
}

/// Whether only the time would be set.
fn is_same_but_time(new: Option<&EntryRef>, old: Option<&EntryRef>) -> bool {
    let (Some(new), Some(old)) = (new, old) else { return false };
    let aspects = Aspects::to_reach(old, new);
    !new.is_dir() && !old.is_dir() && !aspects.content && !aspects.permissions()
}

/// Whether nothing would be done, so there is nothing to report.
fn is_same(new: Option<&EntryRef>, old: Option<&EntryRef>) -> bool {
    match (new, old) {
        (Some(new), Some(old)) => !new.is_dir() && !Aspects::to_reach(old, new).any(),
        (None, None) => true,
        _ => false,
    }
}
