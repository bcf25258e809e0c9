//! The changes of a restore, as a list computed while it is read. A list of a million changes with their paths and
//! versions would be larger than the rest of the restore; the plan and one bit for each completed step are enough.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde::{Serialize, Serializer};

use super::plan::{DirEntryMode, DirIndex, Layout, Leave, NameStep};
use crate::diff::{self, Change, ChangeType};

/// Changes of a restore in the order of paths; those of several restores one after the other.
#[derive(Clone, Default)]
pub struct Changes {
    parts: Vec<Arc<PlanPart>>,
}

enum PlanPart {
    Planned(Planned),
    Listed(Vec<Change>),
}

/// Changes of one plan.
struct Planned {
    layout: Arc<Layout>,
    marks: DoneBits,
}

/// Completed parts of a plan, one bit each: two for every directory itself, and one for each step in it.
pub(super) struct DoneBits {
    first: Vec<usize>,
    bits: Vec<AtomicU64>,
    count: AtomicUsize,
}

/// Bit for the entry that replaces a directory or was replaced by it.
const SWAP: usize = 0;
/// Bit for the directory itself.
const OWN: usize = 1;
const STEPS: usize = 2;

impl DoneBits {
    pub(super) fn new(layout: &Layout) -> DoneBits {
        let mut next = 0;
        let first = layout.dirs.iter().map(|dir| {
            let first = next;
            next += STEPS + dir.steps.len();
            first
        });
        let first = first.collect();
        let bits = std::iter::repeat_with(AtomicU64::default).take(next.div_ceil(64)).collect();
        DoneBits { first, bits, count: AtomicUsize::new(0) }
    }

    /// Marks for everything in a plan.
    fn all(layout: &Layout) -> DoneBits {
        let marks = DoneBits::new(layout);
        for (index, dir) in layout.dirs.iter().enumerate() {
            marks.swapped(layout, index);
            marks.own(layout, index);
            for (at, step) in dir.steps.iter().enumerate() {
                marks.step(index, at, &step);
            }
        }
        marks
    }

    fn place(&self, dir: DirIndex, which: usize) -> Option<(&AtomicU64, u64)> {
        let at = self.first.get(dir)? + which;
        Some((self.bits.get(at / 64)?, 1 << (at % 64)))
    }

    fn set(&self, dir: DirIndex, which: usize) {
        if let Some((bits, bit)) = self.place(dir, which) {
            bits.fetch_or(bit, Ordering::Relaxed);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn has(&self, dir: DirIndex, which: usize) -> bool {
        self.place(dir, which).is_some_and(|(bits, bit)| bits.load(Ordering::Relaxed) & bit != 0)
    }

    pub(super) fn swapped(&self, layout: &Layout, dir: DirIndex) {
        if layout.swap_change(dir).is_some() {
            self.set(dir, SWAP);
        }
    }

    pub(super) fn own(&self, layout: &Layout, dir: DirIndex) {
        if layout.dir_change(dir).is_some() {
            self.set(dir, OWN);
        }
    }

    /// Mark step `at` of a directory, which is `step`, as done.
    pub(super) fn step(&self, dir: DirIndex, at: usize, step: &NameStep) {
        if step.change_type().is_some() {
            self.set(dir, STEPS + at);
        }
    }
}

impl Changes {
    pub(super) fn of(layout: Arc<Layout>, marks: DoneBits) -> Changes {
        Changes { parts: vec![Arc::new(PlanPart::Planned(Planned { layout, marks }))] }
    }

    /// Changes of a plan that is applied completely.
    pub(super) fn planned(layout: &Arc<Layout>) -> Changes {
        Changes::of(layout.clone(), DoneBits::all(layout))
    }

    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterate over the changes.
    pub fn iter(&self) -> impl Iterator<Item = Change> + '_ {
        self.parts.iter().flat_map(|part| part.iter())
    }

    pub fn to_vec(&self) -> Vec<Change> {
        self.iter().collect()
    }

    /// Append the changes of a later restore.
    pub fn extend(&mut self, more: Changes) {
        self.parts.extend(more.parts);
    }
}

impl From<Vec<Change>> for Changes {
    fn from(list: Vec<Change>) -> Changes {
        Changes { parts: vec![Arc::new(PlanPart::Listed(list))] }
    }
}

impl FromIterator<Change> for Changes {
    fn from_iter<I: IntoIterator<Item = Change>>(list: I) -> Changes {
        list.into_iter().collect::<Vec<_>>().into()
    }
}

impl Serialize for Changes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl IntoIterator for Changes {
    type Item = Change;
    type IntoIter = std::vec::IntoIter<Change>;

    fn into_iter(self) -> Self::IntoIter {
        self.to_vec().into_iter()
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Changes {
    fn eq(&self, other: &Changes) -> bool {
        self.iter().eq(other.iter())
    }
}

impl PartialEq<Vec<Change>> for Changes {
    fn eq(&self, other: &Vec<Change>) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| one == *other)
    }
}

impl PartialEq<Changes> for Vec<Change> {
    fn eq(&self, other: &Changes) -> bool {
        other == self
    }
}

impl PlanPart {
    fn len(&self) -> usize {
        match self {
            PlanPart::Planned(planned) => planned.marks.count.load(Ordering::Relaxed),
            PlanPart::Listed(list) => list.len(),
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = Change> + '_> {
        match self {
            PlanPart::Planned(planned) => planned.iter(),
            PlanPart::Listed(list) => Box::new(list.iter().cloned()),
        }
    }
}

impl Planned {
    fn iter(&self) -> Box<dyn Iterator<Item = Change> + '_> {
        let mut tops = self.layout.tops.clone();
        // Paths of a nested root are between those of the outer one.
        let nested = tops.iter().any(|top| matches!(self.layout.dirs[*top].leave, Leave::AsEntered));
        tops.sort_by_cached_key(|top| self.layout.root_path(*top));
        let walk = PlanWalk { part: self, tops: tops.into(), frames: Vec::new(), ready: VecDeque::new() };
        if !nested {
            return Box::new(walk);
        }
        let mut all: Vec<Change> = walk.collect();
        diff::sort(&mut all);
        Box::new(all.into_iter())
    }
}

/// Walks a plan in the order of paths: in each directory, its steps and subdirectories by name.
struct PlanWalk<'a> {
    part: &'a Planned,
    tops: VecDeque<DirIndex>,
    frames: Vec<PlanFrame>,
    ready: VecDeque<Change>,
}

struct PlanFrame {
    dir: DirIndex,
    step: usize,
    child: usize,
}

enum Next {
    Step(usize),
    Child(DirIndex),
    End,
}

impl Iterator for PlanWalk<'_> {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Some(change);
            }
            let Some(frame) = self.frames.last_mut() else {
                let top = self.tops.pop_front()?;
                self.frames.push(PlanFrame { dir: top, step: 0, child: 0 });
                continue;
            };
            let dir = frame.dir;
            match self.part.after(frame) {
                Next::Step(at) => self.ready.extend(self.part.step(dir, at)),
                Next::Child(child) => {
                    self.ready.extend(self.part.own(child));
                    self.frames.push(PlanFrame { dir: child, step: 0, child: 0 });
                }
                Next::End => {
                    self.frames.pop();
                }
            }
        }
    }
}

impl Planned {
    /// Next step or subdirectory of a directory.
    fn after(&self, frame: &mut PlanFrame) -> Next {
        let dir = &self.layout.dirs[frame.dir];
        // Skip steps that were not done.
        while frame.step < dir.steps.len() && !self.marks.has(frame.dir, STEPS + frame.step) {
            frame.step += 1;
        }
        let child = dir.children.get(frame.child).copied();
        let step_first = match (frame.step < dir.steps.len(), child) {
            (true, None) => true,
            (true, Some(child)) => self.is_before(frame.dir, frame.step, child),
            (false, Some(_)) => false,
            (false, None) => return Next::End,
        };
        if step_first {
            frame.step += 1;
            return Next::Step(frame.step - 1);
        }
        frame.child += 1;
        child.map_or(Next::End, Next::Child)
    }

    fn is_before(&self, dir: DirIndex, step: usize, child: DirIndex) -> bool {
        let child_dir = &self.layout.dirs[child];
        let step = self.layout.dirs[dir].steps.get(step);
        let name = step.as_ref().and_then(NameStep::name);
        match name.cmp(&child_dir.name()) {
            // An entry replaces the directory: before the content of the directory, after the directory itself.
            std::cmp::Ordering::Equal => !self.layout.is_alone(child),
            order => order.is_lt(),
        }
    }

    fn step(&self, dir: DirIndex, at: usize) -> Option<Change> {
        self.layout.step_change(dir, &self.layout.dirs[dir].steps.get(at)?)
    }

    /// Changes of the directory itself and of the entry in its place, the removal first.
    fn own(&self, dir: DirIndex) -> impl Iterator<Item = Change> + use<> {
        let swap = self.marks.has(dir, SWAP).then(|| self.layout.swap_change(dir)).flatten();
        let own = self.marks.has(dir, OWN).then(|| self.layout.dir_change(dir)).flatten();
        let goes = |change: &Change| change.change_type == ChangeType::Deleted;
        let both = if own.as_ref().is_some_and(goes) { [own, swap] } else { [swap, own] };
        both.into_iter().flatten()
    }
}

impl Layout {
    /// Path of the root in this parent directory.
    fn root_path(&self, top: DirIndex) -> Vec<u8> {
        let dir = &self.dirs[top];
        let step = dir.steps.get(0);
        let child = dir.children.first().and_then(|child| self.dirs[*child].name());
        let name = child.or(step.as_ref().and_then(NameStep::name));
        let path = match &dir.how {
            DirEntryMode::Top(path) => path.as_os_str().as_encoded_bytes(),
            _ => b"/",
        };
        // Order of paths: a component that ends sorts before one that continues.
        let mut key: Vec<u8> = path.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect();
        if !key.ends_with(&[0]) {
            key.push(0);
        }
        key.extend_from_slice(name.map_or(b"", |name| name.as_bytes()));
        key
    }
}
