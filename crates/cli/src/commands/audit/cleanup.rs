//! `nono audit cleanup`: removes old logs and records that in the ledger.

use std::time::Duration;

use nono::audit::{Catalogue, Cleaned, Retention};
use nono::diagnostic::{escape, quote_all};
use nono::snapshot::time::now_ms;
use serde_json::{Value, json};

use super::list::value;
use crate::age::ago;
use crate::args::ForgetArgs;
use crate::commands::removal::{self, Removal};
use crate::failure::Failure;
use crate::units::{bytes, some};

pub(super) fn cleanup(args: &ForgetArgs, catalogue: &Catalogue) -> Result<u8, Failure> {
    let retention = Retention {
        keep: args.keep,
        older_than: args.older_than.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        all: args.all,
    };
    removal::perform(args.consent, |dry_run| Ok(catalogue.cleanup(&retention, now_ms(), dry_run)?))
}

impl Removal for Cleaned {
    const PROBLEM: &'static str = "error";

    fn is_empty(&self) -> bool {
        self.removed.is_empty()
    }

    fn lines(&self, before: bool) -> Vec<String> {
        if self.removed.is_empty() {
            return Vec::new();
        }
        let (would, freed) = (if before { "would be removed" } else { "removed" }, bytes(self.bytes));
        let mut lines = vec![format!("{} {would}, {freed}", some(self.removed.len(), "session"))];
        lines.extend(self.removed.iter().map(|entry| {
            let (age, command) = (ago(&entry.record.started), quote_all(&entry.record.command));
            format!("  {}  {age}  {command}", escape(&entry.id))
        }));
        lines
    }

    fn json(&self, dry_run: bool) -> Result<Value, Failure> {
        // The logs may be gone: use the counts of the record.
        let removed = self.removed.iter().map(|entry| value(entry, &entry.record.counts));
        Ok(json!({
            "dry_run": dry_run,
            "removed": removed.collect::<Vec<_>>(),
            "bytes": self.bytes,
            "problems": self.problems(),
        }))
    }

    fn problems(&self) -> Vec<String> {
        self.problems.iter().map(ToString::to_string).collect()
    }
}
