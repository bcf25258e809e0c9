//! `nono checkpoints prune`, `clear` and `clear-legacy`.

use nono::checkpoints::{Legacy, Pruned, Retention, json};
use nono::diagnostic::{escape, shown};
use serde_json::Value;

use super::{CheckpointContext, text};
use crate::args::{ClearArgs, ConsentArgs, PruneArgs};
use crate::commands::removal::{self, Removal};
use crate::failure::Failure;
use crate::units::{bytes, some};

pub(super) fn prune(args: &PruneArgs, place: &CheckpointContext) -> Result<u8, Failure> {
    let retention = retention(args, place);
    removal::perform(args.consent, |dry_run| Ok(place.manager.prune(&retention, dry_run)?))
}

pub(super) fn clear(args: &ClearArgs, place: &CheckpointContext) -> Result<u8, Failure> {
    let dir = args.path.as_ref().map(|path| place.cwd.join(path));
    removal::perform(args.consent, |dry_run| Ok(place.manager.clear(dir.as_deref(), dry_run)?))
}

pub(super) fn clear_legacy(consent: ConsentArgs, place: &CheckpointContext) -> Result<u8, Failure> {
    removal::perform(consent, |dry_run| Ok(place.manager.clear_legacy(dry_run)?))
}

/// Limits from the flags; configured limits for flags that are not given.
fn retention(args: &PruneArgs, place: &CheckpointContext) -> Retention {
    let configured = place.manager.retention();
    Retention {
        max_bytes: args.max_size_mb.map_or(configured.max_bytes, |megabytes| megabytes << 20),
        retention_days: args.retention_days.unwrap_or(configured.retention_days),
        delete_orphans: configured.delete_orphans && !args.keep_orphans,
        ..configured
    }
}

impl Removal for Vec<Legacy> {
    const PROBLEM: &'static str = "warning";

    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    fn lines(&self, before: bool) -> Vec<String> {
        if self.as_slice().is_empty() {
            return Vec::new();
        }
        let would = if before { "would be removed" } else { "removed" };
        let mut lines = vec![format!("{} {would}", some(self.len(), "archive"))];
        lines.extend(self.iter().map(|one| format!("  {}  {}", escape(&one.name()), bytes(one.bytes))));
        lines
    }

    fn json(&self, dry_run: bool) -> Result<Value, Failure> {
        Ok(json::legacy(self, dry_run))
    }
}

impl Removal for Pruned {
    const PROBLEM: &'static str = "warning";

    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.projects_removed.is_empty() && self.legacy.as_slice().is_empty()
    }

    fn lines(&self, before: bool) -> Vec<String> {
        let mut lines = Vec::new();
        if !(self.removed.is_empty() && self.projects_removed.is_empty()) {
            let count: usize = self.removed.iter().map(|(_, gone)| gone.len()).sum();
            let what = some(count, "checkpoint");
            lines.push(removal::freed(&what, self.bytes_before, self.bytes_after, before));
        }
        lines.extend(text::removed(self.removed.iter().map(|(project, gone)| (&**project, &**gone))));
        let whole = self.projects_removed.iter();
        lines.extend(whole.map(|project| format!("  {}: its whole history", shown(project))));
        lines.extend(self.legacy.lines(before));
        if self.over_budget {
            lines.push(
                "still over the size limit: what is left is pinned, named, or the newest of its project"
                    .to_owned(),
            );
        }
        lines
    }

    fn json(&self, dry_run: bool) -> Result<Value, Failure> {
        Ok(json::pruned(self, dry_run))
    }

    fn problems(&self) -> Vec<String> {
        self.problems.iter().map(ToString::to_string).collect()
    }
}
