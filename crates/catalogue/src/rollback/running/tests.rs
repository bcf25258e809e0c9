use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nono_policy::profile::RollbackSection;
use nono_snapshot::Observer;
use nono_snapshot::session::Session;

use super::super::catalogue::RollbackSession;
use super::super::entry::Status;
use nono_history::lock::Lock;

use super::super::ending::Ending;
use super::super::periodic_snapshots::Watching;
use super::super::restore::SessionRestores;
use super::super::tracking::{RollbackReport, RollbackRequest, Tracking, TrackingPlan};
use super::*;

const ID: &str = "20260101-000000-7";

/// A run in progress on `project`; `other` is next to it.
struct Run {
    temp: tempfile::TempDir,
    watching: Watching,
    ending: Ending,
    live: TrackedSession,
}

fn base(temp: &tempfile::TempDir) -> PathBuf {
    temp.path().canonicalize().unwrap()
}

fn tracking(temp: &tempfile::TempDir, id: &str, root: &str, interval: Option<Duration>) -> Tracking {
    let base = base(temp);
    let plan = TrackingPlan {
        of_tools: Vec::new(),
        id: id.to_owned(),
        name: None,
        command: vec!["make".to_owned()],
        roots: vec![base.join(root)],
        profile: RollbackSection::default(),
        request: RollbackRequest { interval, ..RollbackRequest::default() },
        own: vec![base.join("state")],
        state_dir: base.join("state"),
        recorder: Arc::new(()),
    };
    Tracking::begin(&plan, Arc::new(())).unwrap()
}

fn prepared() -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    for (name, text) in [("project/f", "first"), ("other/f", "before"), ("file", "before")] {
        write(&temp.path().join(name), text);
    }
    fs::create_dir(temp.path().join("state")).unwrap();
    temp
}

fn run(interval: Option<Duration>) -> Run {
    let temp = prepared();
    let (watching, ending) = tracking(&temp, ID, "project", interval).watch().unwrap();
    let live = watching.live();
    Run { temp, watching, ending, live }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Run {
    fn path(&self, name: &str) -> PathBuf {
        base(&self.temp).join(name)
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.path(name), text);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn dir(&self) -> PathBuf {
        self.path("state/rollbacks").join(ID)
    }

    fn tracked(&self) -> Vec<PathBuf> {
        Session::new(self.dir()).load_metadata().unwrap().tracked_paths
    }

    fn last(&self) -> u32 {
        Session::new(self.dir()).record().unwrap().unwrap().last_number().unwrap()
    }

    fn finish(self) -> (tempfile::TempDir, RollbackReport) {
        let report = self.ending.finish(self.watching, Some(0), Arc::new(()), true);
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        (self.temp, report)
    }
}

/// Wait until the condition holds, with a generous time limit.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    nono_testkit::look::eventually(|| what.to_owned(), || is_so().then_some(()));
}

fn open(temp: &tempfile::TempDir) -> RollbackSession {
    let catalogue = Catalogue::new(base(temp).join("state"));
    catalogue.open(catalogue.find(ID).unwrap()).unwrap()
}

#[test]
fn what_joined_is_in_the_report_and_undone() {
    let run = run(None);
    for name in ["other", "file", "new"] {
        run.live.add_root(&run.path(name)).unwrap();
        assert!(run.tracked().contains(&run.path(name)), "{name}");
    }
    for name in ["other/f", "file", "new", "project/f"] {
        run.write(name, "by the command");
    }
    let (temp, report) = run.finish();
    let changes = report.changes.unwrap().counts;
    assert_eq!((changes.modified, changes.created), (3, 1));
    assert_eq!(report.coverage.files, 3);
    let mut session = open(&temp);
    assert_eq!(session.entry().metadata.tracked_paths.len(), 4);
    assert_eq!(session.entry().metadata.coverage, Some(report.coverage));
    let verified = session.verify().unwrap();
    assert!(verified.sealed && verified.problems.is_empty(), "{verified:?}");
    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert!(done.kept.is_empty() && done.failed.is_empty(), "{done:?}");
    let read = |name: &str| fs::read_to_string(base(&temp).join(name)).ok();
    assert_eq!(
        ["other/f", "file", "new", "project/f"].map(read),
        [Some("before".to_owned()), Some("before".to_owned()), None, Some("first".to_owned())]
    );
}

#[test]
fn many_join_at_once_and_while_snapshots_are_taken() {
    let run = run(Some(Duration::from_millis(1)));
    let names: Vec<String> = (0..24).map(|number| format!("late-{number}")).collect();
    for name in &names {
        run.write(name, "before");
    }
    std::thread::scope(|scope| {
        for (number, some) in names.chunks(6).enumerate() {
            let run = &run;
            scope.spawn(move || {
                for name in some {
                    run.live.add_root(&run.path(name)).unwrap();
                    run.write(name, "by the command");
                    run.write(&format!("project/{number}"), name);
                    run.live.checkpoint("because").unwrap();
                }
            });
        }
    });
    let (temp, report) = run.finish();
    assert_eq!(report.changes.unwrap().counts.modified, 24);
    open(&temp).restore(&RestoreChoice::everything()).unwrap();
    for name in &names {
        assert_eq!(fs::read_to_string(base(&temp).join(name)).unwrap(), "before", "{name}");
    }
}

/// A patient caller is in the middle of its work: it is cancelled, and the path to add is served before it continues.
#[test]
fn what_can_wait_gives_way() {
    let run = run(None);
    let shared = run.live.0.clone();
    let (entered, enters) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let until = Until(shared.signals.clone());
            let gave_way = shared.patiently(|_| {
                assert!(!until.cancelled());
                entered.send(()).unwrap();
                while !until.cancelled() {
                    std::thread::yield_now();
                }
            });
            gave_way.unwrap();
            let tracked = shared.patiently(|work| work.metadata.tracked_paths.len());
            assert_eq!(tracked.unwrap(), 2, "it went on too early");
        });
        enters.recv().unwrap();
        run.live.add_root(&run.path("other")).unwrap();
    });
    run.finish();
}

/// A change in an added path triggers a snapshot.
#[test]
fn what_joined_is_watched() {
    let run = run(Some(Duration::from_millis(20)));
    run.live.add_root(&run.path("other")).unwrap();
    let mut last = run.last();
    for text in ["one", "two", "three"] {
        run.write("other/f", text);
        wait_for(text, || run.last() > last);
        last = run.last();
    }
    run.finish();
}

#[test]
fn what_is_covered_or_has_no_state_does_not_join() {
    let run = run(None);
    let before = run.tracked();
    for path in ["/dev/null", "/proc/self/mem", "/sys/kernel"] {
        run.live.add_root(Path::new(path)).unwrap();
    }
    for name in ["project", "project/f", "project/new/deep"] {
        run.live.add_root(&run.path(name)).unwrap();
    }
    assert_eq!((run.tracked(), run.last()), (before.clone(), 0));
    // nono's own state, a symlink in the path, a relative path, the root.
    std::os::unix::fs::symlink(run.path("other"), run.path("link")).unwrap();
    for path in [run.path("state/config.toml"), run.path("link/f"), "relative".into(), "/".into()] {
        run.live.add_root(&path).unwrap_err();
        assert_eq!((run.tracked(), run.last()), (before.clone(), 0), "{}", path.display());
    }
    run.finish();
}

#[test]
fn a_checkpoint_is_a_snapshot_with_a_reason() {
    let run = run(None);
    assert_eq!(run.live.checkpoint("nothing happened").unwrap(), 0);
    run.write("project/f", "second");
    assert_eq!(run.live.checkpoint(&"x".repeat(1000)).unwrap(), 1);
    assert_eq!(run.live.checkpoint("again").unwrap(), 1);
    let (temp, _) = run.finish();
    let session = open(&temp);
    let checkpoints = &session.entry().metadata.checkpoints;
    let kept: Vec<_> = checkpoints.iter().map(|one| (one.snapshot, one.why.len())).collect();
    assert_eq!(kept, [(0, 16), (1, 200), (1, 5)]);
}

#[test]
fn a_restore_while_it_runs_can_be_undone_later() {
    let run = run(None);
    run.live.add_root(&run.path("file")).unwrap();
    run.write("project/f", "second");
    run.write("project/g", "second");
    run.write("file", "second");
    let number = run.live.checkpoint("before it went wrong").unwrap();
    for name in ["project/f", "project/g", "file"] {
        run.write(name, "wrong");
    }
    let done = run.live.restore(number, &[run.path("project/f"), run.path("file")]).unwrap();
    assert!(done.undo.is_some() && done.failed.is_empty() && done.kept.is_empty(), "{done:?}");
    assert_eq!(["project/f", "project/g", "file"].map(|name| run.read(name)), ["second", "wrong", "second"]);
    assert_eq!(SessionRestores::load(&run.dir()).unwrap().restores.len(), 1);
    let first = run.live.restore(0, &[run.path("file")]).unwrap();
    assert_eq!(run.read("file"), "before");
    run.live.restore(number, &[run.path("elsewhere")]).unwrap_err();
    for snapshot in [number + 1000, u64::MAX] {
        let missing = run.live.restore(snapshot, &[]);
        assert!(matches!(missing, Err(RollbackError::NoSnapshot { .. })), "{missing:?}");
    }
    let (temp, _) = run.finish();
    let read = |name: &str| fs::read_to_string(base(&temp).join(name)).unwrap();
    open(&temp).undo(first.undo.as_deref()).unwrap();
    assert_eq!(read("file"), "second");
    open(&temp).undo(done.undo.as_deref()).unwrap();
    assert_eq!((read("file"), read("project/f")), ("wrong".to_owned(), "wrong".to_owned()));
    assert!(open(&temp).verify().unwrap().problems.is_empty());
}

#[test]
fn no_root_joins_during_a_restore() {
    let temp = prepared();
    let other = "20260101-000000-6";
    let (watching, ending) = tracking(&temp, other, "other", None).watch().unwrap();
    ending.finish(watching, Some(0), Arc::new(()), true);
    let (watching, ending) = tracking(&temp, ID, "project", None).watch().unwrap();
    let live = watching.live();
    let run = Run { temp, watching, ending, live };
    let dir = run.path("state/rollbacks").join(other);
    let lock = Lock::take(&dir).unwrap();
    let refused = run.live.add_root(&run.path("other/f"));
    assert!(matches!(refused, Err(RollbackError::Restoring { .. })), "{refused:?}");
    drop(lock);
    write(&dir.join("restore.journal"), "cut off");
    let refused = run.live.add_root(&run.path("other/f"));
    assert!(matches!(refused, Err(RollbackError::Restoring { .. })), "{refused:?}");
    assert_eq!(run.tracked(), [run.path("project")]);
    fs::remove_file(dir.join("restore.journal")).unwrap();
    run.live.add_root(&run.path("other/f")).unwrap();
    assert_eq!(run.tracked(), [run.path("other/f"), run.path("project")]);
    run.finish();
}

#[test]
fn every_call_after_the_end_is_an_error() {
    let refused = |live: &TrackedSession, path: &Path| {
        live.add_root(path).unwrap_err();
        live.checkpoint("late").unwrap_err();
        live.restore(0, &[]).unwrap_err();
    };
    let finished = run(None);
    let (live, path) = (finished.live.clone(), finished.path("other"));
    finished.finish();
    refused(&live, &path);
    // Dropped without an end, as by a killed supervisor: the added path is undone too.
    let Run { temp, watching, ending, live } = run(None);
    let path = base(&temp).join("other");
    live.add_root(&path).unwrap();
    write(&path.join("f"), "by the command");
    drop((watching, ending));
    refused(&live, &path);
    drop(live);
    let mut session = open(&temp);
    assert_eq!(session.entry().status, Status::Interrupted);
    assert_eq!(session.entry().metadata.tracked_paths.len(), 2);
    session.restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(fs::read_to_string(path.join("f")).unwrap(), "before");
}
