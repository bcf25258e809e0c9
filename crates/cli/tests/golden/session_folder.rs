//! The folder of a session: private, described to the child, gone at the end.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use super::world::{World, skip, uid};
use nono_testkit::process::{Running, finish};

#[test]
fn the_child_can_read_its_own_policy() {
    let world = World::new();
    for way in ["run", "run --monitor", "wrap"] {
        let outcome = world.sh(&format!(
            "nono {way} --read . --name mine -- sh -c 'stat -c %a \"$NONO_CAP_FILE\" \"$(dirname \"$NONO_CAP_FILE\")\"; cat \"$NONO_CAP_FILE\"'"
        ));
        outcome.quiet(0);
        let out = outcome.out();
        assert!(out.starts_with("400\n700\n"), "{way}: {out}");
        let state: serde_json::Value = serde_json::from_str(&out["400\n700\n".len()..]).unwrap();
        let grants = state.to_string();
        assert!(grants.contains(&format!("{}/work", world.root().display())), "{grants}");
    }
}

#[test]
fn the_child_cannot_change_it() {
    let world = World::new();
    for way in ["run", "run --monitor", "wrap"] {
        for attack in ["echo x > $f", "rm -f $f", "chmod 600 $f", "mv $f $f.old", "touch $(dirname $f)/new"] {
            let outcome = world.sh(&format!("nono {way} -- sh -c 'f=$NONO_CAP_FILE; {attack} 2>/dev/null'"));
            assert_ne!(outcome.code(), Some(0), "{way}: {attack}");
        }
    }
}

/// Sessions with another `TMPDIR` have their folders, and what they hide things with, in the usual temporary folder. A
/// command that makes that folder before they do would own it.
#[test]
fn the_child_cannot_change_those_of_sessions_with_another_temporary_folder() {
    let world = World::new();
    for temp in ["/tmp", "/var/tmp"] {
        let probe = format!("nono-{}/probe-{}", uid(), std::process::id());
        for way in ["run", "run --monitor"] {
            let outcome = world.sh(&format!("nono {way} -s --allow {temp} -- touch {temp}/{probe} 2>&1"));
            assert!(outcome.out().contains("Read-only file system"), "{way} {temp}: {outcome:?}");
            let base = fs::metadata(format!("{temp}/nono-{}", uid())).unwrap();
            assert_eq!(base.permissions().mode() & 0o777, 0o700);
            world.sh(&format!("touch {temp}/{probe} && rm {temp}/{probe}")).quiet(0);
        }
    }
}

#[test]
fn it_is_gone_afterwards() {
    let world = World::new();
    for line in [
        "nono run -- true",
        "nono run -s -- false",
        "nono run --monitor -- true",
        "nono run --max-time 50ms -- sleep 9",
    ] {
        world.sh(line);
        assert_eq!(world.sessions(), Vec::<std::path::PathBuf>::new(), "{line}");
    }
    assert_eq!(
        fs::metadata(world.path(&format!("tmp/nono-{}", uid()))).unwrap().permissions().mode() & 0o777,
        0o700
    );
}

#[test]
fn what_wrap_and_the_killed_leave_is_swept_by_the_next_run() {
    let world = World::new();
    world.sh("nono wrap -- true").quiet(0);
    assert_eq!(world.sessions().len(), 1, "no process is there to remove it");
    let running = Running::start(&mut world.nono(&["run", "--", "sh", "-c", "echo ready; exec sleep 1000"]));
    running.until("ready");
    assert_eq!(world.sessions().len(), 1, "the first is swept, the second alive");
    world.sh("nono run -- true").quiet(0);
    assert_eq!(world.sessions().len(), 1, "a live one stays");
    running.signal(Signal::KILL);
    running.end();
    let next = world.sh("nono run -- true");
    assert!(next.code() == Some(0) && next.err().contains("was killed together with nono"), "{next:?}");
    world.left_nothing();
}

/// A nono that does not see the processes of another does not take that for their end.
#[test]
fn a_live_one_of_another_pid_namespace_is_not_swept() {
    let world = World::new();
    let apart = ["--map-current-user", "--pid", "--fork", "--mount-proc"];
    if finish(world.command("unshare").args(apart).arg("true")).code() != Some(0) {
        return skip("unshare cannot make a pid namespace");
    }
    let running = Running::start(&mut world.nono(&["run", "--", "sh", "-c", "echo ready; exec sleep 1000"]));
    running.until("ready");
    let sessions = world.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    finish(world.command("unshare").args(apart).args(["nono", "run", "-s", "--", "true"])).quiet(0);
    assert_eq!(world.sessions(), sessions, "swept, or left behind");
    running.signal(Signal::TERM);
    running.end();
    world.left_nothing();
}

/// The one inside cannot write where the sessions of the user are, even if it is told to; its own place it can.
#[test]
fn a_run_inside_a_run_that_has_the_temporary_folder() {
    let world = World::new();
    for way in ["run", "run --monitor", "wrap"] {
        for grant in ["../tmp", ".."] {
            for inside in ["", "env TMPDIR=$TMPDIR ", "env -u TMPDIR "] {
                let line = format!(
                    "nono {way} -s --read ../bin --allow {grant} -- {inside}nono {way} -s -- sh -c 'exit 4'"
                );
                assert_eq!(world.sh(&line).code(), Some(4), "{line}");
            }
        }
    }
}

#[test]
fn its_own_temporary_folder_can_be_used() {
    let world = World::new();
    let outcome = world.sh("nono run -- sh -c 'echo x > $TMPDIR/a && cat $TMPDIR/a && mktemp >/dev/null'");
    outcome.quiet(0);
    assert_eq!(outcome.out(), "x\n");
    world.left_nothing();
}

#[test]
fn a_child_that_shuts_its_folder_does_not_keep_it() {
    let world = World::new();
    world.sh("nono run -- sh -c 'mkdir $TMPDIR/d; touch $TMPDIR/d/f; chmod 0 $TMPDIR/d'").quiet(0);
    world.sh("nono run -- true").quiet(0);
    world.left_nothing();
}

/// The masks are shared by all sessions of a user: a session that could replace one would decide what the next one
/// sees in place of a denied file.
#[test]
fn a_granted_temporary_folder_does_not_open_other_sessions() {
    let world = World::new();
    world.file("home/letter", "private");
    world.file("work/denied", "denied");
    let base = format!("{}/nono-{}", world.path("tmp").display(), uid());
    world.sh("nono run -- true").quiet(0);
    for way in ["run", "run --monitor", "wrap"] {
        for attack in [
            "rm -f closed-file",
            "ln -sf ~/letter closed-file",
            "chmod 755 closed",
            "mkdir new",
            "mv ../$(basename $PWD) ../other",
            "chmod 600 $NONO_CAP_FILE",
        ] {
            let line = format!("nono {way} -s --allow ../tmp -- sh -c 'cd {base} && {attack} 2>/dev/null'");
            assert_ne!(world.sh(&line).code(), Some(0), "{line}");
        }
        let own = "d=$(dirname $NONO_CAP_FILE)/tmp; echo kept > $d/file && cat $d/file";
        assert_eq!(world.sh(&format!("nono {way} --allow ../tmp -- sh -c '{own}'")).out(), "kept\n", "{way}");
    }
    let outcome = world.sh("nono run -s --allow . --deny denied -- cat denied");
    assert!(outcome.code() == Some(1) && outcome.out().is_empty(), "{}", outcome.out());
}

/// And one that was changed all the same, from outside, is not used.
#[test]
fn a_mask_that_was_changed_is_not_used() {
    let world = World::new();
    world.file("work/denied", "denied");
    world.sh("nono run -- true").quiet(0);
    let mask = world.path(&format!("tmp/nono-{}/closed-file", uid()));
    fs::remove_file(&mask).unwrap();
    std::os::unix::fs::symlink(world.file("home/letter", "private"), &mask).unwrap();
    let outcome = world.sh("nono run --allow . --deny denied -- cat denied");
    assert!(outcome.code() == Some(125) && outcome.out().is_empty(), "{}", outcome.err());
    assert!(outcome.err().contains("was changed; remove it"), "{}", outcome.err());
}
