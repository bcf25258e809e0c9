//! Repeats a scan until it is valid: the rules leave enough files, and no git repository changed during it.

use std::os::fd::OwnedFd;

use super::{CaptureError, OneRoot, Totals, Workers, repositories};
use crate::build::{self, Built};
use crate::cache::{Cache, CachedRoot, NewCache};
use crate::capture::error::Result;
use crate::coverage::CoverageNote;
use crate::dirs::Dirs;
use crate::exclusion::Rules;
use crate::node::Time;
use crate::paths;
use crate::scan::ScanCounts;
use crate::stat::FoundStat;

/// A root with a complete scan and complete nodes.
pub(super) struct StableScan<'s> {
    pub(super) workers: Workers<'s>,
    pub(super) dirs: Dirs,
    pub(super) rules: Rules,
    pub(super) frozen: Vec<u8>,
    pub(super) scanned: ScanCounts,
    pub(super) built: Built,
    /// Whether it was scanned more than once.
    pub(super) again: bool,
}

impl OneRoot<'_> {
    /// Scan until no git repository changes meanwhile; one that changes each time is excluded.
    pub(super) fn scan_until_stable<'s>(
        &self,
        fd: &OwnedFd,
        cache: Option<&Cache>,
        about: &CachedRoot,
        found: (&FoundStat, Time),
        mut workers: Workers<'s>,
        all: &mut Totals,
    ) -> Result<StableScan<'s>> {
        let mut rules = self.rules()?;
        let mut unstable: Vec<Vec<u8>> = Vec::new();
        let mut last: Option<Cache> = None;
        let mut noted = false;
        for attempt in 0.. {
            let dirs = Dirs::new(fd.try_clone().map_err(|source| self.io(source))?);
            let known = last.as_ref().or(cache);
            // After an error the appenders are gone, so the capture cannot skip this root.
            let scan = self.scan(&dirs, (&rules, &unstable), known, found, workers, all);
            let scanned;
            (workers, scanned) = scan.map_err(|error| self.scan_error(error))?;
            let frozen = rules.freeze().encode();
            if self.must_set_aside(&dirs, &rules, &frozen, &scanned) {
                let would_leave = Some(scanned.counts.files);
                let root = self.path.to_owned();
                all.coverage.notes.push(CoverageNote::IgnoreRulesSetAside { root, would_leave });
                rules = rules.set_aside();
                noted = true;
                continue;
            }
            if rules.is_set_aside() && !noted {
                let root = self.path.to_owned();
                all.coverage.notes.push(CoverageNote::IgnoreRulesSetAside { root, would_leave: None });
                noted = true;
            }
            let growing = scanned.growing.iter().map(|(dir, name, size)| {
                let path = self.path.join(paths::from_bytes(&dirs.path(*dir))).join(paths::from_bytes(name));
                CoverageNote::Growing { path, size: *size }
            });
            let growing: Vec<CoverageNote> = growing.collect();
            let changed = repositories::changed(&dirs, &scanned.listings);
            let Some(worker) = workers.first_mut() else { break };
            let built = build::build(scanned.listings, &scanned.links, known, &mut worker.store)?;
            if changed.is_empty() {
                let (scanned, again) = (scanned.counts, last.is_some());
                all.coverage.notes.extend(growing);
                return Ok(StableScan { workers, dirs, rules, frozen, scanned, built, again });
            }
            if attempt >= repositories::ATTEMPTS {
                unstable.extend(changed);
            }
            let next = NewCache { about: about.clone(), dirs: built.dirs };
            last = Some(next.into_cache().map_err(CaptureError::Record)?);
        }
        Err(CaptureError::Cancelled)
    }
}
