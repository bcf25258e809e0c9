//! kill -9 as an ordinary user, for whom closed files and directories are closed: they are made readable for a moment,
//! and the next operation restores their modes.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use super::child;
use super::kill::assert_tidy;
use super::lab::{Lab, assert_clean, run, scratch};
use super::trees::{self, Listing, assert_same, list, make_new, make_small_old};

/// What a copy of this test is run from, since the user may not get to where it is.
pub(crate) fn program_for_users(lab: &Lab) -> std::path::PathBuf {
    let program = lab.base.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    trees::mode(&program, 0o755);
    trees::mode(&lab.base, 0o755);
    program
}

/// Run the operation; returns whether it was not killed after all.
pub(crate) fn killed_at(lab: &Lab, program: &Path, operation: &str, at: u64) -> bool {
    let output = child::as_user(lab, program, operation, at).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let done = output.status.success();
    assert!(done || output.status.signal() == Some(9), "{operation} as a user killed at step {at}: {text}");
    done
}

/// The last snapshot of a session makes closed entries readable too.
#[test]
fn closed_as_a_user() {
    if !rustix::process::geteuid().is_root() {
        return super::lab::skip("becoming another user needs root");
    }
    let dir = scratch();
    let lab = Lab::at(dir.path());
    make_small_old(&lab.tree());
    run(Command::new("chown").args(["-R", "65534:65534"]).arg(&lab.base));
    let old = list(&lab.tree());
    lab.manager().unwrap().create_baseline().unwrap();
    make_new(&lab.tree());
    trees::write(&lab.tree().join("closed/in"), "in a closed directory");
    trees::mode(&lab.tree().join("closed"), 0o000);
    trees::mode(&lab.tree(), 0o300);
    run(Command::new("chown").args(["-R", "65534:65534"]).arg(&lab.base));
    let new = list(&lab.tree());
    lab.save("start");
    let program = program_for_users(&lab);
    let mut left_open = 0;
    for at in 0..5000 {
        lab.reset("start");
        let done = killed_at(&lab, &program, "closed", at);
        let when = format!("killed at step {at}");
        left_open += u64::from(is_left_open(&lab, &new));
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, &when);
        child::one(&mut manager, "closed").unwrap();
        assert_same(&list(&lab.tree()), &new, &when);
        assert_tidy(&lab, &mut manager, &when);
        manager.restore_to(0).unwrap();
        assert_same(&list(&lab.tree()), &old, &format!("{when}: back to 0"));
        manager.restore_to(manager.snapshot_count().unwrap() - 1).unwrap();
        assert_same(&list(&lab.tree()), &new, &format!("{when}: the last one"));
        if done {
            assert!(left_open > 4, "no kill while something was opened up");
            return;
        }
    }
    panic!("it never ends");
}

/// Whether a mode is changed, and the log names it.
pub(crate) fn is_left_open(lab: &Lab, new: &Listing) -> bool {
    let journal = lab.session().join("restore.journal").exists();
    lab.session().join("unlocked").exists() && !journal && list(&lab.tree()) != *new
}

/// Many closed directories, and nested closed ones deeper than the maximum path length. The next operation restores
/// their modes, killed or not.
#[test]
fn many_and_deep_as_a_user() {
    if !rustix::process::geteuid().is_root() {
        return super::lab::skip("becoming another user needs root");
    }
    let dir = scratch();
    let lab = Lab::at(dir.path());
    trees::write(&lab.tree().join("file"), "x");
    lab.manager().unwrap().create_baseline().unwrap();
    for at in 0..200 {
        trees::write(&lab.tree().join(format!("many/{at}/file")), format!("{at}"));
        trees::mode(&lab.tree().join(format!("many/{at}/file")), 0o000);
        trees::mode(&lab.tree().join(format!("many/{at}")), 0o000);
    }
    // Made from the inside: a shell that goes down, and closes on its way back.
    let script = "n=$(printf 'n%.0s' $(seq 200)); down() { if [ $1 -gt 0 ]; then mkdir $n; cd $n; down $(($1-1)); cd ..; chmod 000 $n; fi; }; down 60";
    run(Command::new("bash").args(["-c", script]).current_dir(lab.tree()));
    run(Command::new("chown").args(["-R", "65534:65534"]).arg(&lab.base));
    let modes = || run(Command::new("find").arg(lab.tree()).args(["-printf", "%P %m %T@\n"]));
    let new = modes();
    let (session, start) = (lab.session(), lab.base.join("session-at-start"));
    super::lab::copy(&session, &start);
    let program = program_for_users(&lab);
    let (mut left_open, mut untouched) = (0, 0);
    for at in (0..5000).step_by(31) {
        assert!(!killed_at(&lab, &program, "restore", at));
        if session.join("restore.journal").exists() {
            println!("opened up after {left_open} of {untouched} kills");
            assert!(left_open > 8, "too few kills while something was opened up: {left_open}");
            return;
        }
        left_open += u64::from(modes() != new);
        untouched += 1;
        // Killed once more while it closes.
        let again = child::as_user(&lab, &program, "recover", at % 400).output().unwrap();
        assert!(again.status.success() || again.status.signal() == Some(9));
        lab.manager().unwrap().recover().unwrap();
        assert_eq!(modes(), new, "killed at step {at}");
        assert!(!session.join("unlocked").exists());
        fs::remove_dir_all(&session).unwrap();
        super::lab::copy(&start, &session);
    }
    panic!("restore never ends");
}
