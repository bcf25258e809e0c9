//! `nono checkpoints forget`: a path out of checkpoints and sessions, and sessions that still verify.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nono::snapshot::hash::content_hash;
use nono::snapshot::store::{ObjectKey, Store};
use snapbox::str;

use super::checkpoints_kit::{ids, moments};
use super::sessions::Sessions;
use super::world::{golden, uid};
use nono_testkit::process::Running;

/// Bytes that no compression hides, of the kernel's.
fn secret() -> Vec<u8> {
    let mut bytes = vec![0; 3000];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut bytes).unwrap();
    bytes
}

/// The files that hold these bytes. What a command left to be settled goes on beside this: a file that is there may be
/// gone when it is looked at.
fn files_with(dir: &Path, bytes: &[u8]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let kind = path.symlink_metadata()?.file_type();
        if kind.is_dir() {
            found.extend(files_with(&path, bytes)?);
        } else if kind.is_file() && fs::read(&path)?.windows(bytes.len()).any(|part| part == bytes) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether a store has this content, by the engine and by its bytes: the two agree as soon as no process moves them.
fn has(store: &Path, content: &[u8]) -> bool {
    let begin = Instant::now();
    loop {
        let read = Store::open(store).unwrap().contains(ObjectKey::from(content_hash(content))).unwrap();
        let bytes = files_with(store.parent().unwrap(), &content[..64]);
        if matches!(&bytes, Ok(files) if read != files.is_empty()) {
            return read;
        }
        assert!(begin.elapsed() < PATIENCE, "the engine says {read}, the bytes are in {bytes:?}");
    }
}

/// Nothing takes that long to be settled.
const PATIENCE: Duration = Duration::from_secs(60);

fn transcript(sessions: &Sessions, lines: &[&str]) -> String {
    ids(&sessions.transcript(lines).lines().map(|line| moments(line) + "\n").collect::<String>())
}

/// A file that was there, was changed by a session, and is in a checkpoint as well.
#[test]
fn from_sessions_and_checkpoints() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    let (before, after) = (secret(), secret());
    world.file("work/Makefile", "all:\n");
    world.file("work/sub/secret", &before);
    world.file("work/kept", "before\n");
    world.file("after", &after);
    sessions.run_with("--allow . --read-file ../after", "cat ../after > sub/secret; echo after > kept");
    assert_eq!(world.sh("nono checkpoints create").code(), Some(0));
    let store = world.path("state/store");
    assert!(has(&store, &before) && has(&store, &after), "the control");
    let lines = [
        "nono checkpoints forget sub/secret --dry-run",
        "nono checkpoints forget sub/secret --yes",
        "nono rollback verify",
        "nono rollback show --coverage",
        "nono rollback show --stat",
        "nono checkpoints verify",
        "nono checkpoints forget sub/secret --yes",
    ];
    golden(
        transcript(&sessions, &lines),
        str![[r#"
$ nono checkpoints forget sub/secret --dry-run
[TMP]/work/sub/secret of [TMP]/work would be removed from 1 checkpoint and 1 session
  [id1]  [TIME]  by hand
  session [1] (sh -c 'cat ../after > sub/secret; echo after > kept', [AGE])
$ nono checkpoints forget sub/secret --yes
! [nono] [TMP]/work/sub/secret of [TMP]/work was removed from 1 checkpoint and 1 session; [N] objects deleted from the store
$ nono rollback verify
[1]: good (2 snapshots, [N] objects, [SIZE], sealed)
  forgotten: [TMP]/work/sub/secret
$ nono rollback show --coverage
snapshot 0: 2 files, [SIZE]
not covered: 1 path
  [TMP]/work/sub/secret: forgotten: its contents were removed
! [nono] the last session here: [1] (sh -c 'cat ../after > sub/secret; echo after > kept', [AGE])
$ nono rollback show --stat
~ kept | 2 +-
1 path, 1 line added, 1 line removed
! [nono] the last session here: [1] (sh -c 'cat ../after > sub/secret; echo after > kept', [AGE])
$ nono checkpoints verify
good (1 project, 1 checkpoint, [N] objects, [SIZE])
$ nono checkpoints forget sub/secret --yes
! [nono] no checkpoint of [TMP]/work and no session holds [TMP]/work/sub/secret; nothing was removed
= exit 1

"#]],
    );
    assert!(!has(&store, &before) && !has(&store, &after));
    let listed = sessions.json("nono rollback list --json", 0);
    assert_eq!(listed[0]["changes"]["modified"], 1, "{listed}");
    // Everything else comes back, and the file is left as it is.
    assert_eq!(sessions.sh("nono rollback restore --yes").code(), Some(0));
    assert_eq!(fs::read_to_string(world.path("work/kept")).unwrap(), "before\n");
    assert_eq!(fs::read(world.path("work/sub/secret")).unwrap(), after);
    fs::remove_file(world.path("work/sub/secret")).unwrap();
    assert_eq!(sessions.sh("nono rollback restore --force --yes").code(), Some(0));
    assert!(!world.path("work/sub/secret").exists(), "nothing brings it back");
    assert_eq!(sessions.json("nono rollback verify --json", 0)["sessions"][0]["forgotten"][0], {
        serde_json::json!(world.path("work/sub/secret"))
    });
}

/// There are no checkpoints, and each session is in a store of its own kind.
#[test]
fn from_sessions_alone() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    let (first, made) = (secret(), secret());
    world.file("work/secret", &first);
    world.file("made", &made);
    world.dir("dest", 0o700);
    sessions.run_with("--allow . --rollback-dest ../dest", "echo 1 > file");
    sessions.run_with("--allow . --read-file ../made", "cat ../made > new");
    let (ours, elsewhere) = (world.path("state/store"), world.path("dest/store"));
    assert!(has(&ours, &made) && has(&ours, &first) && has(&elsewhere, &first), "the control");
    let lines =
        ["nono checkpoints forget secret --yes", "nono checkpoints forget new --yes", "nono rollback verify"];
    golden(
        transcript(&sessions, &lines),
        str![[r#"
$ nono checkpoints forget secret --yes
! [nono] [TMP]/work/secret of [TMP]/work was removed from 2 sessions; 1 object deleted from the store
$ nono checkpoints forget new --yes
! [nono] [TMP]/work/new of [TMP]/work was removed from 1 session; 1 object deleted from the store
$ nono rollback verify
[2]: good (2 snapshots, [N] objects, [SIZE], sealed)
  forgotten: [TMP]/work/new
  forgotten: [TMP]/work/secret
[1]: good (2 snapshots, [N] objects, [SIZE], sealed)
  forgotten: [TMP]/work/secret

"#]],
    );
    assert!(!has(&ours, &made) && !has(&ours, &first) && !has(&elsewhere, &first));
}

#[test]
fn a_session_that_runs_is_named() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    let content = secret();
    world.file("work/secret", &content);
    sessions.run("echo 1 > file");
    let args = ["run", "-s", "--rollback", "--allow", ".", "--", "sh", "-c", "echo ready; exec sleep 1000"];
    let running = Running::start(&mut world.nono(&args));
    running.until("ready");
    sessions.newest();
    let lines = ["nono checkpoints forget secret --dry-run", "nono checkpoints forget secret --yes"];
    golden(
        transcript(&sessions, &lines),
        str![[r#"
$ nono checkpoints forget secret --dry-run
[TMP]/work/secret of [TMP]/work would be removed from 2 sessions
  session [2] (sh -c 'echo ready; exec sleep 1000', [AGE]): running, so it keeps the path until it ends
  session [1] (sh -c 'echo 1 > file', [AGE])
$ nono checkpoints forget secret --yes
! [nono] [TMP]/work/secret of [TMP]/work was removed from 1 session
! [nono] warning: session [2] still has [TMP]/work/secret: it is running; forget the path again when it has ended
! [nono] warning: session [2] still has the same content: [TMP]/work/secret
= exit 1

"#]],
    );
    let store = world.path("state/store");
    assert!(has(&store, &content), "what runs keeps it");
    assert_eq!(sessions.sh("nono stop [2]").code(), Some(0));
    running.end();
    assert_eq!(world.sh("nono checkpoints forget secret --yes").code(), Some(0));
    assert!(!has(&store, &content));
    assert_eq!(world.sh("nono rollback verify").code(), Some(0));
}

/// What did not fit its seal before does not fit it afterwards; what was cut off is completed by the next one.
#[test]
fn seals() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    world.file("work/secret", secret());
    sessions.run("echo 1 > file");
    sessions.run("echo 2 > file");
    let forged = sessions.folder(1).join("session.json");
    fs::write(&forged, fs::read_to_string(&forged).unwrap().replace("echo 1", "echo 0")).unwrap();
    let (record, ledger) = (sessions.folder(2).join("session.json"), sessions.dir().join("seals.ndjson"));
    let (described, sealed) = (fs::read(&record).unwrap(), fs::read(&ledger).unwrap());
    assert_eq!(world.sh("nono checkpoints forget secret --yes").code(), Some(0));
    assert_eq!(sessions.sh("nono rollback verify [1]").code(), Some(1));
    assert_eq!(sessions.sh("nono rollback verify [2]").code(), Some(0));
    // As a process leaves it that is killed after the record was written.
    fs::write(&record, described).unwrap();
    fs::write(&ledger, sealed).unwrap();
    let note = sessions.folder(2).join("forgetting");
    fs::write(&note, "").unwrap();
    chown(&note, Some(uid()), Some(uid())).unwrap();
    assert_eq!(sessions.sh("nono rollback verify [2]").code(), Some(1));
    assert_eq!(world.sh("nono checkpoints forget secret --yes").code(), Some(0));
    assert_eq!(sessions.sh("nono rollback verify [2]").code(), Some(0));
    assert!(!note.exists());
}

#[test]
fn what_is_tracked_as_a_whole_is_named() {
    let sessions = Sessions::new();
    sessions.world.file("work/secret", secret());
    sessions.run_with("--allow-file secret", "echo 1 > secret");
    let lines = ["nono checkpoints forget secret --yes", "nono checkpoints forget nobody --yes"];
    golden(
        transcript(&sessions, &lines),
        str![[r#"
$ nono checkpoints forget secret --yes
! [nono] warning: session [1] still has [TMP]/work/secret: it is a tracked root of that session; `nono rollback cleanup` removes sessions
= exit 1
$ nono checkpoints forget nobody --yes
! [nono] no checkpoint of [TMP]/work and no session holds [TMP]/work/nobody; nothing was removed
= exit 1

"#]],
    );
}
