//! `nono rollback cleanup`: removes old sessions and the objects that only they need.

use std::time::Duration;

use nono::diagnostic::{escape, quote_all, shown};
use nono::rollback::{self, Pruned, Retention, RollbackSettings};
use serde_json::Value;

use super::SessionContext;
use crate::age::ago;
use crate::args::CleanupArgs;
use crate::commands::removal::{self, Removal};
use crate::failure::Failure;
use crate::units::some;

pub(super) fn cleanup(args: &CleanupArgs, place: &SessionContext) -> Result<u8, Failure> {
    removal::perform(args.consent, |dry_run| {
        let retention = retention(args, place)?;
        if !place.catalogue.sessions_dir().exists() {
            return Ok(Pruned::default());
        }
        Ok(place.catalogue.prune(&retention, dry_run)?)
    })
}

/// Limits from the flags; configured limits if no flag is given.
fn retention(args: &CleanupArgs, place: &SessionContext) -> Result<Retention, Failure> {
    let given = Retention {
        max_sessions: args.keep,
        max_per_project: None,
        max_bytes: args.max_size,
        older_than: args.older_than.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        all: args.all,
        lazy: None,
    };
    if given != Retention::default() {
        return Ok(given);
    }
    let settings = RollbackSettings::load(&place.state_dir.join("config.toml"))?;
    Ok(Retention {
        max_per_project: Some(settings.max_sessions),
        max_bytes: Some(settings.max_bytes()),
        ..given
    })
}

impl Removal for Pruned {
    const PROBLEM: &'static str = "error";

    fn is_empty(&self) -> bool {
        self.removed.is_empty()
    }

    fn lines(&self, before: bool) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.is_empty() {
            let what = some(self.removed.len(), "session");
            lines.push(removal::freed(&what, self.bytes_before, self.bytes_after, before));
        }
        lines.extend(self.removed.iter().map(|entry| {
            let (age, command) = (ago(&entry.metadata.started), quote_all(&entry.metadata.command));
            format!("  {}  {age}  {command}  {}", escape(&entry.id), shown(&entry.project))
        }));
        if self.over_budget {
            let left = "the sessions left are running, pinned or made by another program";
            lines.push(format!("still over the size limit: {left}"));
        }
        lines
    }

    fn json(&self, dry_run: bool) -> Result<Value, Failure> {
        Ok(rollback::json::pruned(self, dry_run)?)
    }

    fn problems(&self) -> Vec<String> {
        self.problems.iter().map(ToString::to_string).collect()
    }
}
