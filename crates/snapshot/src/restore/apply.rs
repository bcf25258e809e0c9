//! Applies a plan. One task per directory, or several for a directory with many steps: open it, change the names in it,
//! queue its subdirectories; the last task done finishes it, so that its permissions and time are set when nothing in
//! it changes any more. No task waits, nothing recurses, and failures are reported while the rest continues.

mod directories;

use std::convert::Infallible;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::AtFlags;

use super::changes::{Changes, DoneBits};
use super::displace;
use super::meta::Problems;
use super::open::{Opened, open_existing, open_path, open_top, open_up};
use super::outcome::{StepAttempt, StepSpace, Waiting};
use super::parent_root::Entered;
use super::place_entry::{Displaced, NotDone, TargetDir};
use super::plan::{Anchor, DirEntryMode, DirIndex, NameStep, RestorePlan};
use super::{FailedPath, Journal, KeptAside, RestoreError, RestoreOutcome, Skipped, Why, sweep};
use crate::diff::EntryRef;
use crate::disk;
use crate::node::{Entry, Name};
use crate::pool::{self, Queue};
use crate::state::{Objects, Observer};

/// Number of steps of one directory done by one task.
const STEPS_PER_TASK: usize = 2048;

/// Apply a plan. The caller began the journal, and finishes it with the outcome unless that is cancelled.
pub fn apply(
    plan: &RestorePlan,
    objects: &dyn Objects,
    journal: &Journal,
    observer: &dyn Observer,
) -> RestoreOutcome {
    let work = ApplyWork {
        plan,
        objects,
        observer,
        opened: Opened::new(plan),
        pending: plan.dirs.iter().map(|_| AtomicUsize::new(0)).collect(),
        late: Mutex::default(),
        prefix: journal.record.id.prefix(),
        temps: AtomicU64::new(0),
        done: AtomicU64::new(0),
        total: plan.total(),
        cancelled: AtomicBool::new(false),
        marks: DoneBits::new(plan),
    };
    let mut outcome = RestoreOutcome {
        skipped: plan.skipped.clone(),
        lost: plan.lost.clone(),
        ..RestoreOutcome::default()
    };
    // Root by root: nested roots must not work on the same names at once.
    for top in &plan.tops {
        let dir = &plan.dirs[*top];
        if !dir.steps.is_empty() || !dir.children.is_empty() {
            let entered = Entered::look(dir);
            work.root(*top, &mut outcome);
            outcome.failed.extend(entered.and_then(Entered::leave));
        }
    }
    outcome.cancelled = work.cancelled.into_inner();
    outcome.changes = Changes::of(plan.layout.clone(), work.marks);
    if !outcome.failed.is_empty() {
        // Temporary files that could not be removed at the time.
        let swept = sweep(plan, journal.record.id, objects);
        outcome.kept.extend(swept.kept);
        outcome.failed.extend(swept.failed);
    }
    outcome.sort();
    outcome
}

struct ApplyWork<'a> {
    plan: &'a RestorePlan,
    objects: &'a dyn Objects,
    observer: &'a dyn Observer,
    opened: Opened<'a>,
    /// Number of parts of each directory that must be done before it is finished.
    pending: Vec<AtomicUsize>,
    /// Directories with steps that come after everything else.
    late: Mutex<Vec<Waiting>>,
    prefix: String,
    temps: AtomicU64,
    done: AtomicU64,
    total: u64,
    cancelled: AtomicBool,
    /// Steps that were done.
    marks: DoneBits,
}

/// A unit of work.
enum ApplyTask {
    Dir(DirIndex),
    /// More steps of a directory.
    Steps(DirIndex, Range<usize>),
}

type Fd = Arc<OwnedFd>;

impl ApplyWork<'_> {
    fn root(&self, top: DirIndex, outcome: &mut RestoreOutcome) {
        let workers = std::iter::repeat_with(RestoreOutcome::default).take(pool::threads()).collect();
        let work = |outcome: &mut RestoreOutcome, task, queue: &Queue<ApplyTask>| {
            match task {
                ApplyTask::Dir(index) => self.enter(index, queue, outcome),
                ApplyTask::Steps(index, range) => self.more_steps(index, range, outcome),
            }
            Ok::<(), Infallible>(())
        };
        let Ok(outcomes) = pool::run(workers, vec![ApplyTask::Dir(top)], work);
        for one in outcomes {
            outcome.join(one);
        }
        self.late_steps(outcome);
    }

    fn is_cancelled(&self) -> bool {
        let cancelled = self.cancelled.load(Ordering::Relaxed) || self.observer.cancelled();
        if cancelled {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        cancelled
    }

    fn count(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.observer.progress(done, self.total);
    }

    fn temp(&self) -> Vec<u8> {
        let number = self.temps.fetch_add(1, Ordering::Relaxed);
        format!("{}{number}", self.prefix).into_bytes()
    }

    fn enter(&self, index: DirIndex, queue: &Queue<ApplyTask>, outcome: &mut RestoreOutcome) {
        let dir = &self.plan.dirs[index];
        if self.is_cancelled() {
            return self.release(index, None, outcome);
        }
        let fd = match self.open(index, outcome) {
            Ok(fd) => fd,
            Err(not_done) => {
                outcome.note(self.plan.path_of(index, None), not_done);
                return self.release(index, None, outcome);
            }
        };
        let late = dir.steps.any_late();
        let mut parts = (0..dir.steps.len()).step_by(STEPS_PER_TASK);
        let part = |start: usize| start..dir.steps.len().min(start + STEPS_PER_TASK);
        let first = parts.next().map(part);
        // One for this task, so that the directory is not finished while it works in it.
        let waits = 1 + dir.children.len() + usize::from(late) + parts.len();
        self.pending[index].store(waits, Ordering::Release);
        let goes = |child: &&DirIndex| matches!(self.plan.dirs[**child].how, DirEntryMode::Remove { .. });
        let (early, others): (Vec<DirIndex>, Vec<DirIndex>) = dir.children.iter().partition(goes);
        queue.push_all(others.into_iter().map(ApplyTask::Dir));
        queue.push_all(parts.map(|start| ApplyTask::Steps(index, part(start))));
        if let Some(first) = first {
            self.steps(index, first, fd.as_fd(), outcome);
        }
        if late {
            self.wait(index, Vec::new());
        }
        // Removals first, to free space.
        queue.push_all(early.into_iter().map(ApplyTask::Dir));
        self.part_done(index, Some(fd), outcome);
    }

    fn wait(&self, index: DirIndex, again: Vec<usize>) {
        pool::locked(&self.late).push(Waiting { index, again });
    }

    /// Apply some of a directory's steps. Those that find the disk full are retried at the end.
    fn steps(&self, index: DirIndex, range: Range<usize>, fd: BorrowedFd<'_>, outcome: &mut RestoreOutcome) {
        let steps = &self.plan.dirs[index].steps;
        let mut place = TargetDir::new(fd, self.objects).with_steps(steps.len());
        let mut full = Vec::new();
        // Removals first, to free space.
        for goes in [true, false] {
            for at in range.clone() {
                let Some(step) = steps.get(at).filter(|step| !step.is_late()) else { continue };
                if matches!(step, NameStep::Delete(_)) == goes {
                    let room = self.step(index, at, &step, &mut place, StepAttempt::First, outcome);
                    full.extend((room == StepSpace::None).then_some(at));
                }
            }
        }
        if !full.is_empty() {
            self.pending[index].fetch_add(1, Ordering::AcqRel);
            self.wait(index, full);
        }
    }

    fn more_steps(&self, index: DirIndex, range: Range<usize>, outcome: &mut RestoreOutcome) {
        let fd = match self.opened.get(index, None) {
            Ok(fd) => {
                self.steps(index, range, fd.as_fd(), outcome);
                Some(fd)
            }
            Err(error) => {
                for step in range.filter_map(|at| self.plan.dirs[index].steps.get(at)) {
                    self.not_opened(index, &step, &error, outcome);
                }
                None
            }
        };
        self.part_done(index, fd, outcome);
    }

    /// Report that the directory of a step could not be opened again.
    fn not_opened(&self, index: DirIndex, step: &NameStep, error: &io::Error, outcome: &mut RestoreOutcome) {
        let error = io::Error::from(error.kind());
        outcome
            .note(self.plan.path_of(index, step.name()), RestoreError::io("open its parent")(error).into());
    }

    /// Open a directory, or create it, and make it writable.
    fn open(&self, index: DirIndex, outcome: &mut RestoreOutcome) -> Result<Fd, NotDone> {
        let dir = &self.plan.dirs[index];
        if let DirEntryMode::Top(path) = &dir.how {
            let fd = open_top(path).map_err(RestoreError::io("open it"))?;
            return Ok(self.opened.put(index, fd));
        }
        let parent = self.opened.get(dir.parent, None).map_err(RestoreError::io("open its parent"))?;
        let name = dir.name().map_or(&b""[..], Name::as_bytes);
        let (fd, mut opened_up) = match &dir.how {
            DirEntryMode::Make { over, .. } => {
                if let Some(old) = over {
                    let place = TargetDir::new(parent.as_fd(), self.objects);
                    let displaced = place.delete(&self.temp(), old)?;
                    self.keep(index, None, displaced, outcome);
                    self.marks.swapped(self.plan, index);
                }
                (directories::make_dir(parent.as_fd(), name)?, false)
            }
            _ => open_existing(parent.as_fd(), name).map_err(RestoreError::io("open it"))?,
        };
        if self.plan.is_touched(index) {
            opened_up |= open_up(fd.as_fd()).map_err(RestoreError::io("make it writable"))?;
        }
        let fd = self.opened.put(index, fd);
        if opened_up {
            self.opened.mark_opened_up(index);
        }
        Ok(fd)
    }

    fn keep(&self, index: DirIndex, name: Option<&Name>, displaced: Displaced, outcome: &mut RestoreOutcome) {
        let Displaced { kept, beside } = displaced;
        outcome.kept.extend(kept.map(|content| KeptAside { path: self.plan.path_of(index, name), content }));
        if let Some(beside) = beside.as_deref().and_then(Name::new) {
            let dir = if name.is_some() { index } else { self.plan.dirs[index].parent };
            outcome
                .skipped
                .push(Skipped { path: self.plan.path_of(dir, Some(&beside)), why: Why::StillWritten });
        }
    }

    fn step(
        &self,
        index: DirIndex,
        at: usize,
        step: &NameStep,
        place: &mut TargetDir<'_>,
        attempt: StepAttempt,
        outcome: &mut RestoreOutcome,
    ) -> StepSpace {
        let Some(name) = step.name() else { return StepSpace::Enough };
        if self.is_cancelled() {
            return StepSpace::Enough;
        }
        let mut problems = Vec::new();
        match self.do_step(index, step, place, &mut problems) {
            Err(NotDone::Failed(error)) if attempt == StepAttempt::First && error.is_full() => {
                return StepSpace::None;
            }
            Ok(displaced) => {
                self.keep(index, Some(name), displaced, outcome);
                self.marks.step(index, at, step);
                outcome.done += 1;
                self.count();
            }
            Err(not_done) => outcome.note(self.plan.path_of(index, Some(name)), not_done),
        }
        self.report(index, Some(name), problems, outcome);
        StepSpace::Enough
    }

    fn report(&self, index: DirIndex, name: Option<&Name>, problems: Problems, outcome: &mut RestoreOutcome) {
        let failed =
            problems.into_iter().map(|error| FailedPath { path: self.plan.path_of(index, name), error });
        outcome.failed.extend(failed);
    }

    fn do_step(
        &self,
        index: DirIndex,
        step: &NameStep,
        place: &mut TargetDir<'_>,
        problems: &mut Problems,
    ) -> Result<Displaced, NotDone> {
        match step {
            NameStep::Keep => Ok(Displaced::default()),
            NameStep::Delete(old) => place.delete(&self.temp(), old),
            NameStep::Meta { old, new } => place.change(old, new, problems).map(|()| Displaced::default()),
            NameStep::Create(new) | NameStep::Late(new) => {
                self.create(new, place, problems).map(|()| Displaced::default())
            }
            NameStep::Replace { old, new } => {
                let temp = self.temp();
                place.make(&temp, new, problems)?;
                place.replace(&temp, &self.temp(), old, new)
            }
            NameStep::Link { old, new, anchor } => {
                let temp = self.temp();
                if let Err(error) = self.link(index, anchor, new, place.dir, &temp) {
                    // The content matters more than being one file with the other names.
                    problems.push(RestoreError::io("link it to its other name")(error));
                    place.make(&temp, new, problems)?;
                }
                match old {
                    Some(old) => place.replace(&temp, &self.temp(), old, new),
                    None => place.put(&temp, new.name.as_bytes()).map(|()| Displaced::default()),
                }
            }
        }
    }

    fn create(
        &self,
        new: &EntryRef,
        place: &mut TargetDir<'_>,
        problems: &mut Problems,
    ) -> Result<(), NotDone> {
        if place.make_unnamed(new, problems)? {
            return Ok(());
        }
        let temp = self.temp();
        place.make(&temp, new, problems)?;
        place.put(&temp, new.name.as_bytes())
    }

    fn link(
        &self,
        index: DirIndex,
        anchor: &Anchor,
        new: &Entry,
        dir: BorrowedFd<'_>,
        temp: &[u8],
    ) -> io::Result<()> {
        let Some((name, parents)) = anchor.0.split_last() else { return Ok(()) };
        let top = self.opened.get(self.plan.top(index), None)?;
        let from = open_path(top.as_fd(), &parents.iter().collect::<Vec<_>>())?;
        let stat = rustix::fs::statat(&from, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)?;
        if displace::kind_of(&stat) != displace::expected_kind(&new.kind) {
            return Err(rustix::io::Errno::STALE.into());
        }
        disk::step()?;
        Ok(rustix::fs::linkat(&from, name.as_bytes(), dir, temp, AtFlags::empty())?)
    }

    /// Apply steps that need the result of all others, then finish the directories that waited for them.
    fn late_steps(&self, outcome: &mut RestoreOutcome) {
        let waiting = std::mem::take(&mut *pool::locked(&self.late));
        let links = |step: &NameStep| matches!(step, NameStep::Link { .. });
        let made = |step: &NameStep| matches!(step, NameStep::Late(_));
        for Waiting { index, again } in &waiting {
            let steps = &self.plan.dirs[*index].steps;
            let again = again.iter().filter_map(|at| Some((*at, steps.get(*at)?)));
            self.late_steps_in(*index, again, outcome);
        }
        for which in [&made as &dyn Fn(&NameStep) -> bool, &links] {
            for Waiting { index, .. } in waiting.iter().filter(|waiting| waiting.again.is_empty()) {
                let steps = self.plan.dirs[*index].steps.iter().enumerate();
                self.late_steps_in(*index, steps.filter(|(_, step)| which(step)), outcome);
            }
        }
        for Waiting { index, .. } in waiting {
            self.part_done(index, None, outcome);
        }
    }

    fn late_steps_in(
        &self,
        index: DirIndex,
        steps: impl Iterator<Item = (usize, NameStep)>,
        outcome: &mut RestoreOutcome,
    ) {
        let mut steps = steps.peekable();
        if steps.peek().is_none() {
            return;
        }
        match self.opened.get(index, None) {
            Ok(fd) => {
                let mut place = TargetDir::new(fd.as_fd(), self.objects);
                for (at, step) in steps {
                    self.step(index, at, &step, &mut place, StepAttempt::Last, outcome);
                }
            }
            Err(error) => steps.for_each(|(_, step)| self.not_opened(index, &step, &error, outcome)),
        }
    }

    /// Count one part of a directory as done; the last one finishes it, and so on upwards.
    fn part_done(&self, mut index: DirIndex, mut fd: Option<Fd>, outcome: &mut RestoreOutcome) {
        while self.pending[index].fetch_sub(1, Ordering::AcqRel) == 1 {
            let parent = self.plan.dirs[index].parent;
            let own = match fd.take() {
                Some(fd) => Ok(fd),
                None => self.opened.get(index, None),
            };
            if parent == index {
                return self.opened.close(index);
            }
            // Before it is removed: afterwards `..` no longer leads up from it.
            let up = match &own {
                Ok(own) => self.opened.get(parent, Some(own.as_fd())).ok(),
                Err(_) => None,
            };
            let finished = own.map_err(RestoreError::io("open it")).map_err(NotDone::from);
            match finished.and_then(|own| self.finish(index, own.as_fd(), up.as_ref(), outcome)) {
                Ok(()) => outcome.done += u64::from(self.plan.own_kind(index).is_some()),
                Err(not_done) => outcome.note(self.plan.path_of(index, None), not_done),
            }
            self.count();
            self.opened.close(index);
            index = parent;
            fd = up;
        }
    }

    /// Skip a directory that was not entered: its parent waits for one part less.
    fn release(&self, index: DirIndex, fd: Option<Fd>, outcome: &mut RestoreOutcome) {
        let parent = self.plan.dirs[index].parent;
        if parent != index {
            self.part_done(parent, fd, outcome);
        }
    }

    fn finish(
        &self,
        index: DirIndex,
        fd: BorrowedFd<'_>,
        parent: Option<&Fd>,
        outcome: &mut RestoreOutcome,
    ) -> Result<(), NotDone> {
        let dir = &self.plan.dirs[index];
        let mut left = Ok(());
        if let DirEntryMode::Remove { old, then } = &dir.how
            && !self.is_cancelled()
        {
            match self.remove(index, old, then.as_ref(), parent, outcome) {
                Ok(()) => return Ok(()),
                Err(not_done) => left = Err(not_done),
            }
        }
        let mut problems = Vec::new();
        let changed = self.leave(index, dir, fd, &mut problems);
        changed.map_err(RestoreError::io("stat it"))?;
        if problems.is_empty() && left.is_ok() && !matches!(dir.how, DirEntryMode::Remove { .. }) {
            self.marks.own(self.plan, index);
        }
        self.report(index, None, problems, outcome);
        left
    }
}
