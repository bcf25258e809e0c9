//! Turns of agents: the changes of each, and undo of one turn while later ones stay.
//!
//! The changes of a turn are the differences between the first and the last state of each of its spans. A path is
//! restored as from a checkpoint, with the state before the turn as the target and the state after it as the base, so
//! that later changes to the same file are merged, or kept and reported.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nono_history::{Conflicts, Labels, OwnerRules, Repositories, SnapshotChoice as Wanted};
use nono_snapshot::diff::Version;
use nono_snapshot::restore::{Skipped, Why};
use nono_snapshot::{Change, ChangeType, SnapshotId};

use super::open::{Bounds, Open};
use super::{CheckpointChoice, CheckpointManager, ProjectOutcome, ProjectPlan};
use crate::call_log::{self, CallRecord, Span};
use crate::error::{CheckpointError, Result};
use crate::history::{Checkpoint, Stats, TurnLink};
use crate::pending_calls::PendingCalls;
use crate::restores::Details;
use crate::stats::{self, is_git};

/// Work of an agent between two prompts of the user.
#[derive(Clone, Debug)]
pub struct WorkedTurn {
    pub link: TurnLink,
    /// Checkpoint before the turn.
    pub checkpoint: Checkpoint,
    /// Calls that changed something, in order.
    pub calls: Vec<TurnCall>,
    /// Files that it changed from its beginning to its end, without those it changed back.
    pub files: Vec<(PathBuf, ChangeType)>,
    /// Stats; `None` if the states needed for them are not kept any more.
    pub stats: Option<Stats>,
}

/// A call of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnCall {
    /// ISO 8601, UTC.
    pub time: String,
    pub tool: Option<String>,
    /// Reason of its checkpoint. Untrusted text.
    pub reason: Option<String>,
    /// Number of paths that it changed.
    pub paths: u64,
}

/// Steps to undo a turn.
#[derive(Debug, Default)]
struct Parts {
    list: Vec<(Wanted, OwnerRules)>,
    /// Paths that others changed during the turn, so that its own changes to them are unknown.
    mixed: Vec<Skipped>,
    /// Directories that the turn created, with the paths it created in each.
    made: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

impl Parts {
    /// Kept paths to report, without those that others put into directories that the turn created.
    fn told(&self, kept: Vec<Skipped>) -> Vec<Skipped> {
        let is_others = |one: &Skipped| {
            self.made.iter().any(|(dir, own)| one.path.starts_with(dir) && !own.contains(&one.path))
        };
        let mut told: Vec<Skipped> = kept.into_iter().filter(|one| !is_others(one)).collect();
        told.extend(self.mixed.iter().cloned());
        told
    }
}

/// Change of a turn to one path, over one or more spans.
struct TurnChange {
    from: SnapshotId,
    to: SnapshotId,
    change: Change,
    /// Whether others changed the path between two spans.
    is_mixed: bool,
}

impl TurnChange {
    /// Adds a later change of the same path; `false` if the two cancel out.
    fn go_on(&mut self, later: Change, to: &SnapshotId) -> bool {
        self.is_mixed |= self.change.new != later.old;
        self.to = to.clone();
        let old = self.change.old.take();
        let change_type = match (&old, &later.new) {
            (None, None) => return self.is_mixed,
            (None, Some(_)) => ChangeType::Created,
            (Some(_), None) => ChangeType::Deleted,
            (Some(old), Some(new)) if old == new => return self.is_mixed,
            (Some(old), Some(new)) if is_same_content(old, new) => ChangeType::PermissionsChanged,
            (Some(_), Some(_)) => ChangeType::Modified,
        };
        let size = |side: &Option<Version>| side.as_ref().and_then(|one| one.size).unwrap_or(0).cast_signed();
        let size_delta = size(&later.new) - size(&old);
        self.change = Change { change_type, size_delta, old, ..later };
        true
    }
}

fn is_same_content(one: &Version, other: &Version) -> bool {
    (one.kind, one.hash, one.size, &one.target) == (other.kind, other.hash, other.size, &other.target)
}

impl CheckpointManager {
    /// Turns of a project, newest first.
    pub fn turns(&self, dir: &Path) -> Result<Vec<WorkedTurn>> {
        let open = self.open(dir, Bounds::Settings)?;
        let lines = call_log::load(&open.folder.dir)?;
        let turns = open.history.turns.iter().rev();
        Ok(turns.filter_map(|link| open.worked(link, &lines)).collect())
    }

    /// Finds a turn by a number of the list (1 is the newest), an id or its beginning.
    pub fn find_turn(&self, dir: &Path, text: &str) -> Result<TurnLink> {
        self.open(dir, Bounds::Settings)?.turn_link(text)
    }

    /// Plan of undoing one turn; nothing is touched.
    pub fn plan_turn(
        &mut self,
        dir: &Path,
        turn: &TurnLink,
        choice: &CheckpointChoice,
    ) -> Result<ProjectPlan> {
        let mut open = self.open(dir, Bounds::None)?;
        let _paused = open.manager.make_room_to_restore()?;
        let line = open.before_turn(turn)?;
        let parts = open.parts(turn, choice)?;
        let list = parts.list.iter().map(|(wanted, rule)| (wanted, rule));
        let mut restore = open.restores().plan_parts::<Details>(list)?;
        restore.kept = parts.told(restore.kept);
        let undone = if restore.changes.is_empty() { Vec::new() } else { vec![turn.turn.clone()] };
        let project = open.workdir().to_owned();
        Ok(ProjectPlan { project, restore, turns_undone: undone, not_covered: line.left_out })
    }

    /// Undoes one turn and keeps later work. [`CheckpointManager::undo`] reverts it, like any restore.
    pub fn undo_turn(
        &mut self,
        dir: &Path,
        turn: &TurnLink,
        choice: &CheckpointChoice,
    ) -> Result<ProjectOutcome> {
        let mut open = self.open(dir, Bounds::None)?;
        let _paused = open.manager.make_room_to_restore()?;
        let line = open.before_turn(turn)?;
        let parts = open.parts(turn, choice)?;
        let mut prepared = Vec::new();
        for (wanted, rule) in &parts.list {
            prepared.push(open.restores().prepare(wanted, rule)?);
        }
        let whole = choice.paths.is_empty();
        let turns = if whole { vec![turn.clone()] } else { Vec::new() };
        let details = Details {
            checkpoint: line.clone(),
            who: self.who.clone(),
            forced: open.whose(&line, prepared.iter().flat_map(|prepared| &prepared.forced))?,
            turns: turns.clone(),
            alone: true,
            marked: PendingCalls::load(&open.folder)?.mark().is_some(),
        };
        let begin = self.next_restore(&open, details)?;
        let list = parts.list.iter().zip(prepared).map(|((wanted, rule), prepared)| (wanted, rule, prepared));
        let (mut under, mut done) = open.restores().restore_parts(list, line.snapshot_id(), begin)?;
        done.kept = parts.told(done.kept);
        open.complete(&mut under, &mut done)?;
        let undone = if done.changes.is_empty() { Vec::new() } else { vec![turn.turn.clone()] };
        let project = open.workdir().to_owned();
        // The conversation goes on: later turns are kept.
        let agents = Vec::new();
        let outcome = ProjectOutcome { project, checkpoint: line, turns_undone: undone, agents, done };
        self.tell(&open, &outcome, std::slice::from_ref(turn), true);
        Ok(outcome)
    }
}

impl Open {
    fn worked(&self, link: &TurnLink, lines: &[CallRecord]) -> Option<WorkedTurn> {
        let checkpoint = self.history.find(&link.checkpoint)?.clone();
        let own = lines.iter().filter(|line| line.turn.is(link));
        let calls = own.map(|line| TurnCall {
            time: line.time.clone(),
            tool: line.tool.clone(),
            reason: line.reason.clone(),
            paths: line.paths.len() as u64 + line.more,
        });
        let calls: Vec<TurnCall> = calls.collect();
        // Unreadable states have no stats; damage must not prevent a list.
        let joined = self.joined(&call_log::spans(lines, link)).ok();
        let changes: Option<Vec<Change>> =
            joined.map(|joined| joined.into_values().map(|one| one.change).collect());
        let stats = changes.as_ref().map(|changes| stats::count(&self.manager, changes));
        let files = changes.into_iter().flatten().map(|change| (change.path, change.change_type)).collect();
        Some(WorkedTurn { link: link.clone(), checkpoint, calls, files, stats })
    }

    fn turn_link(&self, text: &str) -> Result<TurnLink> {
        let links = &self.history.turns;
        let none = || CheckpointError::NoTurn { turn: text.to_owned(), project: self.workdir().to_owned() };
        let is_number = text.len() < 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let mut found: Vec<&TurnLink> = links.iter().filter(|link| link.turn == text).collect();
        if found.is_empty() && is_number {
            let at = text.parse().unwrap_or(0_usize).checked_sub(1);
            found.extend(at.and_then(|at| links.iter().rev().nth(at)));
        } else if found.is_empty() && !text.is_empty() {
            found.extend(links.iter().filter(|link| link.turn.starts_with(text)));
        }
        match found.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(none()),
            several => Err(CheckpointError::Ambiguous {
                text: text.to_owned(),
                ids: several.iter().map(|link| link.turn.clone()).collect(),
            }),
        }
    }

    fn before_turn(&self, turn: &TurnLink) -> Result<Checkpoint> {
        let none = || CheckpointError::NoTurn { turn: turn.turn.clone(), project: self.workdir().to_owned() };
        self.history.find(&turn.checkpoint).cloned().ok_or_else(none)
    }

    /// Change of each path over these spans.
    fn joined(&self, spans: &[Span]) -> Result<BTreeMap<PathBuf, TurnChange>> {
        let mut all: BTreeMap<PathBuf, TurnChange> = BTreeMap::new();
        for Span { from, to } in spans {
            for change in self.manager.diff(from, to)?.into_iter().filter(|change| !is_git(&change.path)) {
                let path = change.path.clone();
                if let Some(known) = all.get_mut(&path) {
                    if !known.go_on(change, to) {
                        all.remove(&path);
                    }
                    continue;
                }
                let (from, to) = (from.clone(), to.clone());
                all.insert(path, TurnChange { from, to, change, is_mixed: false });
            }
        }
        Ok(all)
    }

    /// Steps to undo a turn; paths with the same states before and after form one part.
    fn parts(&self, turn: &TurnLink, choice: &CheckpointChoice) -> Result<Parts> {
        let chosen = self.chosen(&choice.paths)?;
        let is_chosen = |path: &Path| chosen.is_empty() || chosen.iter().any(|above| path.starts_with(above));
        let spans = call_log::spans(&call_log::load(&self.folder.dir)?, turn);
        let gone = |_| CheckpointError::TurnGone {
            turn: turn.turn.clone(),
            project: self.workdir().to_owned(),
            checkpoint: turn.checkpoint.clone(),
        };
        let joined = self.joined(&spans).map_err(gone)?;
        let mut groups: BTreeMap<(SnapshotId, SnapshotId), Vec<PathBuf>> = BTreeMap::new();
        let mut parts = Parts::default();
        for (path, one) in joined.into_iter().filter(|(path, _)| is_chosen(path)) {
            if one.is_mixed && choice.conflicts != Conflicts::Force {
                parts.mixed.push(Skipped { path, why: Why::ChangedSince });
                continue;
            }
            let group = groups.entry((one.from.clone(), one.to)).or_default();
            let made = self.made(&path, &one.change, &one.from)?;
            // With force, a directory would be removed together with files of others.
            match made.filter(|_| choice.conflicts != Conflicts::Force) {
                Some(dir) => {
                    if !parts.made.contains_key(&dir) {
                        group.push(dir.clone());
                    }
                    parts.made.entry(dir).or_default().insert(path);
                }
                None => group.push(path),
            }
        }
        let part = |((from, to), paths): ((SnapshotId, SnapshotId), Vec<PathBuf>)| {
            let wanted = Wanted { paths, conflicts: merging(choice.conflicts), ..Wanted::everything(from) };
            let rule = OwnerRules {
                since: Some(vec![to.clone()]),
                left: Some(to),
                repositories: Repositories::LeaveAlone,
                labels: Labels {
                    base: "what the turn left".to_owned(),
                    target: format!("before turn {}", turn.turn),
                },
                ..OwnerRules::default()
            };
            (wanted, rule)
        };
        parts.list = groups.into_iter().map(part).collect();
        Ok(parts)
    }

    /// Topmost directory that was created for a file, which is removed with it.
    fn made(&self, path: &Path, change: &Change, from: &SnapshotId) -> Result<Option<PathBuf>> {
        let mut made = None;
        if change.change_type == ChangeType::Created {
            for above in path.ancestors().skip(1).take_while(|above| *above != self.workdir()) {
                if self.manager.entry(from, above)?.is_some() {
                    break;
                }
                made = Some(above.to_owned());
            }
        }
        Ok(made)
    }
}

/// Conflict rule for undoing one turn: later work in the same file is merged by default.
fn merging(conflicts: Conflicts) -> Conflicts {
    match conflicts {
        Conflicts::Keep => Conflicts::Merge { markers: false },
        other => other,
    }
}
