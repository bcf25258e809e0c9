//! Removal of old logs, recorded in the ledger: a session that is missing without such an entry is reported by
//! `verify`.

use std::path::PathBuf;
use std::time::Duration;

use nono_sys::fs::remove_tree;
use nono_sys::time::seconds;

use super::catalogue::{AuditEntry, Catalogue};
use super::error::AuditError;

/// Name prefix of a log that is being removed.
const ASIDE: &str = ".removing-";

/// Limits; a session that exceeds any of them is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Number of newest sessions to keep.
    pub keep: Option<usize>,
    pub older_than: Option<Duration>,
    pub all: bool,
}

/// Result of a cleanup, or of a dry run.
#[derive(Debug, Default)]
pub struct Cleaned {
    pub removed: Vec<AuditEntry>,
    pub bytes: u64,
    pub problems: Vec<AuditError>,
}

impl Catalogue {
    /// Remove sessions beyond `retention`, but never a running one. `now_ms`: time from which ages are counted.
    pub fn cleanup(&self, retention: &Retention, now_ms: u64, dry_run: bool) -> Result<Cleaned, AuditError> {
        let (sessions, problems) = self.list()?;
        let gone: Vec<AuditEntry> = sessions
            .into_iter()
            .enumerate()
            .filter(|(at, entry)| !entry.is_running() && retention.drops(*at, entry, now_ms))
            .map(|(_, entry)| entry)
            .collect();
        let bytes = gone.iter().map(size).sum();
        let mut cleaned = Cleaned { removed: Vec::new(), bytes, problems };
        if dry_run {
            cleaned.removed = gone;
            return Ok(cleaned);
        }
        self.sweep(now_ms)?;
        let mut aside = Vec::new();
        for entry in gone {
            // Renamed first: it is no longer a session, and never half of one.
            match std::fs::rename(&entry.dir, self.aside(&entry.id)) {
                Ok(()) => aside.push(entry),
                Err(error) => cleaned.problems.push(AuditError::io(&entry.dir)(error)),
            }
        }
        self.discard(aside, now_ms, &mut cleaned)?;
        Ok(cleaned)
    }

    /// Record the removal in the ledger, then remove what was set aside. Without the ledger entry nothing is removed.
    fn discard(&self, aside: Vec<AuditEntry>, now_ms: u64, cleaned: &mut Cleaned) -> Result<(), AuditError> {
        let ids: Vec<&str> = aside.iter().map(|entry| entry.id.as_str()).collect();
        if let Err(error) = self.tell(&ids, now_ms) {
            for entry in &aside {
                // Best effort: the error that matters is the one returned, and the next cleanup finds what is left.
                let _ = std::fs::rename(self.aside(&entry.id), &entry.dir);
            }
            return Err(error);
        }
        for entry in aside {
            let place = self.aside(&entry.id);
            match remove_tree(&place) {
                Ok(()) => cleaned.removed.push(entry),
                Err(error) => cleaned.problems.push(AuditError::io(&place)(error)),
            }
        }
        Ok(())
    }

    fn tell(&self, ids: &[&str], now_ms: u64) -> Result<(), AuditError> {
        if !ids.is_empty() {
            self.ledger().removed(ids, now_ms)?;
        }
        Ok(())
    }

    fn aside(&self, id: &str) -> PathBuf {
        self.dir().join(format!("{ASIDE}{id}"))
    }

    /// Finish an interrupted cleanup, possibly one that had not reached the ledger.
    fn sweep(&self, now_ms: u64) -> Result<(), AuditError> {
        let Ok(entries) = std::fs::read_dir(self.dir()) else { return Ok(()) };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let left: Vec<String> =
            names.filter_map(|name| name.strip_prefix(ASIDE).map(ToOwned::to_owned)).collect();
        self.tell(&left.iter().map(String::as_str).collect::<Vec<_>>(), now_ms)?;
        for id in &left {
            remove_tree(&self.aside(id)).map_err(AuditError::io(&self.aside(id)))?;
        }
        Ok(())
    }
}

impl Retention {
    /// Whether the session at this position, counted from the newest, has to be removed.
    fn drops(&self, at: usize, entry: &AuditEntry, now_ms: u64) -> bool {
        let record = &entry.record;
        let moment = seconds(record.completed_at()).map_or(0, |seconds| seconds * 1000);
        let age = Duration::from_millis(now_ms.saturating_sub(moment));
        self.all
            || self.keep.is_some_and(|keep| at >= keep)
            || self.older_than.is_some_and(|limit| age > limit)
    }
}

/// Size on disk, as far as it can be determined.
fn size(entry: &AuditEntry) -> u64 {
    let Ok(files) = std::fs::read_dir(&entry.dir) else { return 0 };
    files.flatten().filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nono_audit::event::{SessionEnded, SessionStarted};
    use nono_audit::log::Options;
    use nono_audit::{AuditLog, Digest};

    use super::*;

    const EVERYTHING: Retention = Retention { keep: None, older_than: None, all: true };

    fn begin(catalogue: &Catalogue, id: &str) -> AuditLog {
        let started = SessionStarted {
            time_ms: 1_000,
            session_id: id.to_owned(),
            name: None,
            version: String::new(),
            pid: 1,
            command: vec!["true".to_owned()],
            workdir: "/".into(),
            executable: None,
            policy_digest: Digest::ZERO,
            tracked_paths: Vec::new(),
            network: "blocked".to_owned(),
            project_profiles: Vec::new(),
            ledger_head: None,
        };
        AuditLog::create(&catalogue.dir(), started, Options { integrity: true, key: None }).unwrap()
    }

    fn sessions(ids: &[&str]) -> (tempfile::TempDir, Catalogue) {
        let dir = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::new(dir.path());
        for id in ids {
            let ended = SessionEnded {
                time_ms: 2_000,
                exit_code: 0,
                signal: None,
                limit: None,
                stopped: false,
                interrupted: false,
            };
            assert!(begin(&catalogue, id).finish(ended, None).unwrap().ledger.is_none());
        }
        (dir, catalogue)
    }

    fn ids(entries: &[AuditEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.id.as_str()).collect()
    }

    #[test]
    fn ages_and_numbers() {
        let (_dir, catalogue) = sessions(&["20240101-000000-1", "20240101-000000-2", "20240101-000000-3"]);
        let would = |retention: Retention, now| {
            let cleaned = catalogue.cleanup(&retention, now, true).unwrap();
            ids(&cleaned.removed).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let keep = |keep| Retention { keep: Some(keep), ..Retention::default() };
        assert_eq!(would(keep(2), 0), ["20240101-000000-1"]);
        assert_eq!(would(keep(0), 0).len(), 3);
        let day = Retention { older_than: Some(Duration::from_secs(86_400)), ..Retention::default() };
        assert_eq!(would(day, 86_402_000).len(), 0, "not older than that yet");
        assert_eq!(would(day, 86_402_001).len(), 3);
        assert_eq!(catalogue.list().unwrap().0.len(), 3);
        assert!(catalogue.cleanup(&keep(1), 3_000, false).unwrap().problems.is_empty());
        assert_eq!(ids(&catalogue.list().unwrap().0), ["20240101-000000-3"]);
        assert!(catalogue.verify_ledger().ok);
    }

    #[test]
    fn what_was_cut_off_is_completed() {
        let (_dir, catalogue) = sessions(&["20240101-000000-1", "20240101-000000-2"]);
        fs::rename(catalogue.dir().join("20240101-000000-1"), catalogue.aside("20240101-000000-1")).unwrap();
        assert_eq!(catalogue.verify_ledger().missing, ["20240101-000000-1"]);
        let nothing = Retention { keep: Some(9), ..Retention::default() };
        assert!(catalogue.cleanup(&nothing, 3_000, false).unwrap().removed.is_empty());
        let ledger = catalogue.verify_ledger();
        assert!(ledger.ok && ledger.removed == ["20240101-000000-1"], "{ledger:?}");
        assert!(!catalogue.aside("20240101-000000-1").exists());
    }

    #[test]
    fn without_a_ledger_nothing_is_removed() {
        let (_dir, catalogue) = sessions(&["20240101-000000-1", "20240101-000000-2"]);
        let path = catalogue.dir().join("ledger.ndjson");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("20240101", "20240102", 1)).unwrap();
        assert!(matches!(catalogue.cleanup(&EVERYTHING, 3_000, false), Err(AuditError::Ledger(_))));
        assert_eq!(catalogue.list().unwrap().0.len(), 2);
    }

    #[test]
    fn what_is_written_now_stays() {
        let (_dir, catalogue) = sessions(&["20240101-000000-1"]);
        let log = begin(&catalogue, "20240101-000000-2");
        let cleaned = catalogue.cleanup(&EVERYTHING, 3_000, false).unwrap();
        assert_eq!(ids(&cleaned.removed), ["20240101-000000-1"]);
        drop(log);
        let cleaned = catalogue.cleanup(&EVERYTHING, 3_000, false).unwrap();
        assert_eq!(ids(&cleaned.removed), ["20240101-000000-2"], "its writer was killed");
    }
}
