//! State of the review: selection, marks, open dialog. Keys change it (`keys`), drawing shows it (`draw`), and slow
//! work is done in small steps while no key is waiting (`App::work`).

use std::collections::BTreeMap;
use std::path::Path;

use nono::rollback::{ChangeSet, Done, RestoreChoice, RollbackError, SnapshotInfo};
use nono::snapshot::SnapshotId;

use super::labels;
use super::marks::{MarkedItems, item_paths};
use super::source::ReviewSource;
use super::tree::{ChangeTree, Row};
use super::view::{View, ViewLine, Views};
use super::watch::undisturbed;
use crate::paint::Span;
use crate::syntax::Syntax;

/// Scroll position of a list: selected row, first visible row, number of visible rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scroll {
    pub(super) at: usize,
    pub(super) top: usize,
    pub(super) height: usize,
}

impl Scroll {
    pub(super) fn go(&mut self, at: usize, length: usize) {
        self.at = at.min(length.saturating_sub(1));
        self.top = self.top.min(self.at).max((self.at + 1).saturating_sub(self.height.max(1)));
    }

    pub(super) fn page(&self) -> usize {
        self.height.saturating_sub(1).max(1)
    }

    /// Adapts to a new height.
    pub(super) fn fit(&mut self, height: usize, length: usize) {
        self.height = height;
        self.go(self.at, length);
        self.top = self.top.min(length.saturating_sub(height));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    Tree,
    Diff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Search,
    Filter,
}

/// Mode that decides the meaning of keys.
#[derive(Debug)]
pub(super) enum Mode {
    Browse,
    Input {
        purpose: Purpose,
        text: String,
    },
    /// The plan is being computed.
    Planning(RestoreChoice),
    Plan {
        choice: RestoreChoice,
        said: Vec<Span>,
        top: usize,
    },
    Restoring(RestoreChoice),
    Done {
        said: Vec<Span>,
        top: usize,
    },
    Timeline {
        snapshots: Vec<SnapshotInfo>,
        scroll: Scroll,
    },
    Help {
        top: usize,
    },
    /// Question whether to leave although there are marks.
    Leave,
}

/// Result of a step of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepResult {
    Nothing,
    /// The screen has to be drawn again.
    Changed,
    /// A new question is on the screen: keys pressed before do not answer it.
    Asked,
}

pub(super) struct App {
    pub(super) source: Box<dyn ReviewSource>,
    pub(super) set: ChangeSet,
    pub(super) tree: ChangeTree,
    pub(super) marks: MarkedItems,
    pub(super) focus: Focus,
    pub(super) list: Scroll,
    pub(super) diff: Scroll,
    /// First visible column of the diff.
    pub(super) column: usize,
    /// Side by side if the user chose it; none: depends on the width.
    pub(super) wants_split: Option<bool>,
    pub(super) is_split: bool,
    pub(super) mode: Mode,
    pub(super) message: Option<String>,
    pub(super) search: Option<String>,
    pub(super) restored: MarkedItems,
    pub(super) finished: Vec<Done>,
    pub(super) is_left: bool,
    pub(super) binary: BTreeMap<usize, bool>,
    pub(super) views: Views,
    syntax: Syntax<CacheKey>,
    /// Number of the change set: answers about an older one are dropped.
    generation: u64,
}

#[derive(Debug)]
struct CacheKey {
    generation: u64,
    item: usize,
    hunk: usize,
}

impl App {
    pub(super) fn new(source: Box<dyn ReviewSource>, set: ChangeSet) -> App {
        App {
            source,
            tree: ChangeTree::new(&set),
            set,
            marks: MarkedItems::default(),
            focus: Focus::Tree,
            list: Scroll::default(),
            diff: Scroll::default(),
            column: 0,
            wants_split: None,
            is_split: false,
            mode: Mode::Browse,
            message: None,
            search: None,
            restored: MarkedItems::default(),
            finished: Vec::new(),
            is_left: false,
            binary: BTreeMap::new(),
            views: Views::default(),
            syntax: Syntax::new(),
            generation: 0,
        }
    }

    pub(super) fn row(&self) -> Option<&Row> {
        self.tree.seen(self.list.at)
    }

    pub(super) fn item(&self) -> Option<usize> {
        self.row()?.item()
    }

    /// View of the selected change, once it is loaded.
    pub(super) fn view(&self) -> Option<&View> {
        self.views.get(self.item()?)
    }

    pub(super) fn places(&self) -> &[ViewLine] {
        self.view().map_or(&[], |view| view.places(self.is_split))
    }

    /// Selects another row.
    pub(super) fn select(&mut self, position: usize) {
        let before = self.item();
        self.list.go(position, self.tree.len());
        if self.item() != before {
            self.diff = Scroll { height: self.diff.height, ..Scroll::default() };
            self.column = 0;
        }
    }

    /// Whether background work will change the screen.
    pub(super) fn is_waiting(&self) -> bool {
        self.syntax.is_busy()
    }

    /// Does one small step of slow work; called while no key is waiting.
    pub(super) fn work(&mut self) -> StepResult {
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Planning(choice) => return self.make_plan(choice),
            Mode::Restoring(choice) => return self.restore(&choice),
            mode => self.mode = mode,
        }
        if self.take_tints() || self.load_view() || self.look_at_one_content() {
            return StepResult::Changed;
        }
        self.ask_for_tints();
        StepResult::Nothing
    }

    fn take_tints(&mut self) -> bool {
        let Some((CacheKey { generation, item, hunk }, tints)) = self.syntax.answer() else { return false };
        if generation == self.generation
            && let Some(view) = self.views.get_mut(item)
        {
            view.tints[hunk] = Some(tints);
        }
        true
    }

    fn load_view(&mut self) -> bool {
        let Some(item) = self.item().filter(|item| self.views.get(*item).is_none()) else { return false };
        let diff = self.source.diff(&self.set.items[item]);
        self.views.put(item, View::new(&self.set, &self.set.items[item], diff));
        true
    }

    /// Finds out for one visible row whether its content is binary.
    fn look_at_one_content(&mut self) -> bool {
        let seen = self.list.top..self.tree.len().min(self.list.top + self.list.height);
        let mut items = seen.filter_map(|position| self.tree.seen(position)?.item());
        let Some(item) = items.find(|item| !self.binary.contains_key(item)) else { return false };
        // An error is shown in the diff pane.
        let is_binary = self.source.is_binary(&self.set.items[item]).unwrap_or(false);
        self.binary.insert(item, is_binary);
        true
    }

    fn ask_for_tints(&mut self) {
        if self.syntax.is_busy() {
            return;
        }
        let places = self.places();
        let seen =
            &places[self.diff.top.min(places.len())..places.len().min(self.diff.top + self.diff.height)];
        let Some(item) = self.item() else { return };
        let generation = self.generation;
        let job = self.view().and_then(|view| view.job(seen, |hunk| CacheKey { generation, item, hunk }));
        if let Some(job) = job {
            self.syntax.ask(job);
        }
    }

    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.message = Some(text.into());
    }

    pub(super) fn fail(&mut self, error: &RollbackError) {
        self.say(format!("error: {}", nono::diagnostic::escape(&error.to_string())));
    }

    /// Starts to compute the plan for what is marked.
    pub(super) fn ask_for_plan(&mut self) {
        if self.marks.is_empty() {
            self.say("nothing is marked: space marks, a marks all");
        } else {
            self.mode = Mode::Planning(self.marks.choice(&self.set));
        }
    }

    fn make_plan(&mut self, choice: RestoreChoice) -> StepResult {
        // The coverage is only additional information.
        let coverage = self.source.coverage(&choice.snapshot).ok();
        match self.source.plan(&choice) {
            Err(error) => self.fail(&error),
            Ok(plan) => {
                let said = labels::plan(&self.set, &plan, &choice, coverage.as_ref());
                self.mode = Mode::Plan { choice, said, top: 0 };
            }
        }
        StepResult::Asked
    }

    fn restore(&mut self, choice: &RestoreChoice) -> StepResult {
        match undisturbed(|| self.source.restore(choice)) {
            Err(error) => self.fail(&error),
            Ok(done) => {
                self.note_restored(choice, &done);
                let said = labels::done(&self.set, &done);
                self.finished.push(done);
                self.marks.clear();
                self.mode = Mode::Done { said, top: 0 };
            }
        }
        StepResult::Asked
    }

    fn note_restored(&mut self, choice: &RestoreChoice, done: &Done) {
        let is_stuck = |path: &Path| {
            done.failed.iter().any(|(failed, _)| failed == path)
                || done.kept.iter().any(|kept| path.starts_with(&kept.path))
        };
        let fine = |item: usize| !item_paths(&self.set.items[item]).any(is_stuck);
        debug_assert!(choice.snapshot == self.set.from);
        self.restored.take_in(&self.marks, fine);
    }

    pub(super) fn open_timeline(&mut self) {
        match self.source.timeline() {
            Err(error) => self.fail(&error),
            Ok(snapshots) => {
                let at = snapshots.iter().position(|snapshot| snapshot.id == self.set.from).unwrap_or(0);
                self.mode = Mode::Timeline { snapshots, scroll: Scroll { at, ..Scroll::default() } };
            }
        }
    }

    /// Compares with another snapshot, to which a restore then goes.
    pub(super) fn compare_with(&mut self, id: &SnapshotId) {
        match self.source.changes(id) {
            Err(error) => self.fail(&error),
            Ok(set) => {
                self.generation += 1;
                self.tree = ChangeTree::new(&set);
                self.set = set;
                self.views = Views::default();
                self.binary.clear();
                self.restored.clear();
                self.marks.clear();
                self.list = Scroll { height: self.list.height, ..Scroll::default() };
                self.diff = Scroll { height: self.diff.height, ..Scroll::default() };
                self.focus = Focus::Tree;
                self.say(format!("compared with {}", labels::point(id)));
            }
        }
    }
}
