//! Files that mean nothing one by one: SQLite databases and git repositories, written while they are captured. The
//! oracles are SQLite and git themselves.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nono_snapshot::restore::Why;
use nono_snapshot::{Protection, RestoreOptions, SnapshotId};

use crate::common::{World, clean, git, go_back, skip};

/// Writes a database without end, and says each number when its transaction was committed.
const WRITER: &str = r"
import sqlite3, sys, time
path, mode, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
db = sqlite3.connect(path, isolation_level=None)
db.execute('pragma journal_mode=' + mode)
db.execute('pragma synchronous=off')
db.execute('pragma wal_autocheckpoint=8')
db.execute('create table if not exists t(n integer primary key, noise blob)')
n = 0
while True:
    n += 1
    db.execute('begin immediate')
    for part in range(4):
        db.execute('insert or replace into t values(?, randomblob(3000))', (n * 4 + part,))
        db.execute('update t set noise = randomblob(3000) where n = ?', ((n * 7) % (n * 4) + 1,))
    db.execute('delete from t where n < ?', (n * 4 - 80,))
    db.execute('commit')
    print(n, flush=True)
    time.sleep(pause)
";

const CHECK: &str = r"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute('pragma integrity_check').fetchone()[0])
print((db.execute('select max(n) from t').fetchone()[0] or 0) // 4)
";

struct Writer {
    child: Child,
    committed: Arc<AtomicU64>,
}

impl Writer {
    fn start(mut command: Command) -> Writer {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let committed = Arc::new(AtomicU64::new(0));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = committed.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                said.store(line.trim().parse().unwrap_or(0), Ordering::SeqCst);
            }
        });
        let writer = Writer { child, committed };
        while writer.committed() < 5 {
            std::thread::yield_now();
        }
        writer
    }

    fn committed(&self) -> u64 {
        self.committed.load(Ordering::SeqCst)
    }

    fn wait_for(&self, more: u64) {
        let goal = self.committed() + more;
        while self.committed() < goal {
            std::thread::yield_now();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn has_sqlite() -> bool {
    let found = Command::new("python3").args(["-c", "import sqlite3"]).status();
    let there = found.is_ok_and(|status| status.success());
    if !there {
        skip("python3 with sqlite3 is not installed");
    }
    there
}

fn python(script: &str, args: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg("-c").arg(script).args(args);
    command
}

/// Check the database; returns the last number in it.
fn check(path: &Path) -> u64 {
    let out = python(CHECK, &[path.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("ok"), "{text}{}", String::from_utf8_lossy(&out.stderr));
    lines.next().unwrap().parse().unwrap()
}

/// Capture while a database is written, end the writer, restore, and check with SQLite. Returns the number of captures.
fn rounds(mode: &str, pause: &str, rounds: u32) -> u32 {
    let mut captured = 0;
    for round in 0..rounds {
        let world = World::new();
        let path = world.path("app.db");
        // Something has to be captured, or it is no snapshot.
        world.write("other", "text");
        let writer = Writer::start(python(WRITER, &[path.to_str().unwrap(), mode, pause]));
        let mut manager = world.manager();
        let before = writer.committed();
        let baseline = manager.create_baseline().unwrap();
        writer.wait_for(20);
        let middle = writer.committed();
        let (later, _) = manager.create_incremental().unwrap();
        writer.wait_for(5);
        drop(writer);
        for (manifest, before) in [(later, middle), (baseline, before)] {
            let held = |name: &str| manifest.protection(&world.path(name)).unwrap();
            let restored = go_back(&mut manager, &SnapshotId::Number(manifest.number));
            let protection = held("app.db");
            if protection == Protection::Captured {
                clean(&restored);
                captured += 1;
                let found = check(&path);
                assert!(found >= before, "{mode} {round}: {found} of {before} transactions");
            } else {
                // All or none.
                for name in ["app.db-wal", "app.db-journal"] {
                    assert_ne!(held(name), Protection::Captured, "{mode} {round}: {name} {protection:?}");
                }
                check(&path);
            }
        }
    }
    captured
}

#[test]
fn database_with_a_log_is_captured_as_a_whole_while_it_is_written() {
    if has_sqlite() {
        let captured = rounds("wal", "0.03", 4);
        assert!(captured > 0, "never captured");
    }
}

#[test]
fn database_with_a_journal_is_captured_as_a_whole_while_it_is_written() {
    if has_sqlite() {
        let captured = ["delete", "truncate", "persist"].map(|mode| rounds(mode, "0.03", 2));
        assert!(captured.iter().sum::<u32>() > 0, "never captured");
    }
}

#[test]
fn database_that_is_written_without_pause_is_sound_or_left_out() {
    if has_sqlite() {
        rounds("wal", "0", 3);
        rounds("delete", "0", 3);
    }
}

/// The log of a database cannot be read: both are excluded, and the reason names the database.
#[test]
fn database_is_left_out_with_its_log() {
    if !has_sqlite() {
        return;
    }
    let world = World::new();
    world.sh("python3 -c \"import sqlite3; sqlite3.connect('app.db').execute('create table t(n)')\"");
    world.write("app.db-wal", "");
    world.write("notes.txt", "text");
    world.write("notes.txt-wal", "not a log");
    world.sh("rm app.db-wal; ln -s nowhere app.db-wal");
    let mut manager = world.manager_with(nono_snapshot::ExclusionConfig {
        exclude_globs: vec!["app.db-wal".into()],
        ..nono_snapshot::ExclusionConfig::default()
    });
    let baseline = manager.create_baseline().unwrap();
    let why = |name: &str| baseline.protection(&world.path(name)).unwrap();
    match why("app.db") {
        Protection::LeftOut { reason, .. } => assert!(reason.to_string().contains("the database app.db")),
        other => panic!("{other:?}"),
    }
    assert_eq!(why("notes.txt"), Protection::Captured);
    assert_eq!(why("notes.txt-wal"), Protection::Captured);
}

/// Another process wrote the log after the session: the database stays with it, and is restored with it when forced.
#[test]
fn database_whose_log_was_changed_is_kept_as_a_whole() {
    let world = World::new();
    let head = |text: &str| [&b"SQLite format 3\0"[..], text.as_bytes()].concat();
    world.write("app.db", head("one"));
    world.write("app.db-wal", "log one");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.write("app.db", head("two"));
    world.write("app.db-wal", "log two");
    manager.create_incremental().unwrap();
    world.write("app.db-wal", "log of another process");
    let since =
        RestoreOptions { keep_changed_since: vec![SnapshotId::Number(1)], ..RestoreOptions::default() };
    let restored = manager.restore(&SnapshotId::Number(0), &since).unwrap();
    let skipped: Vec<(PathBuf, Why)> =
        restored.skipped.iter().map(|one| (one.path.clone(), one.why.clone())).collect();
    let kept = ["app.db", "app.db-wal"].map(|name| (world.path(name), Why::ChangedSince));
    assert_eq!(skipped, kept);
    assert_eq!(world.read("app.db-wal"), "log of another process");
    // Chosen alone, the database brings its log with it.
    let one = RestoreOptions { paths: vec![world.path("app.db")], ..RestoreOptions::default() };
    clean(&manager.restore(&SnapshotId::Number(0), &one).unwrap());
    assert_eq!(world.read("app.db-wal"), "log one");
}

#[test]
fn repository_is_captured_as_a_whole_while_it_is_written() {
    let world = World::new();
    git(&world.tree, &["init", "-q"]);
    world.write("file", "0");
    git(&world.tree, &["add", "."]);
    git(&world.tree, &["commit", "-qm", "first"]);
    let script = "n=0; while :; do n=$((n+1)); echo $n > file; git add file; git commit -qm $n; \
         if [ $((n % 7)) = 0 ]; then git gc -q --prune=now; fi; echo $n; done";
    for round in 0..3 {
        let mut loop_of_commits = Command::new("bash");
        loop_of_commits.args(["-c", script]).current_dir(&world.tree).stderr(Stdio::null());
        for role in ["AUTHOR", "COMMITTER"] {
            loop_of_commits.env(format!("GIT_{role}_NAME"), "n").env(format!("GIT_{role}_EMAIL"), "n@n");
        }
        loop_of_commits.env("GIT_CONFIG_GLOBAL", "/dev/null");
        std::os::unix::process::CommandExt::process_group(&mut loop_of_commits, 0);
        let writer = Writer::start(loop_of_commits);
        let base = World::new();
        let session = base.session.clone();
        let place = World { session, tree: world.tree.clone(), dir: base.dir };
        let mut manager = place.manager();
        manager.create_baseline().unwrap();
        writer.wait_for(8);
        end_group(&writer);
        drop(writer);
        // What git leaves when it is killed.
        world.sh("find .git -name '*.lock' -delete; rm -f .git/gc.pid");
        let restored = go_back(&mut manager, &SnapshotId::Number(0));
        assert!(restored.failed.is_empty(), "{:?}", restored.failed);
        world.sh("find .git -name '*.lock' -delete; rm -f .git/gc.pid");
        world.sh(&format!("git fsck --full --strict || (echo round {round}; false)"));
        world.sh("git reset -q --hard");
    }
}

fn end_group(writer: &Writer) {
    let pid = rustix::process::Pid::from_raw(writer.child.id().cast_signed()).unwrap();
    rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).unwrap();
}
