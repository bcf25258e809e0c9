//! State and temporary folders that nono must not, or cannot, use.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use nono_testkit::user::STRANGER;
use rustix::process::geteuid;
use snapbox::str;

use super::world::{World, skip, uid};

#[test]
fn a_state_folder_that_other_users_can_change() {
    let world = World::new();
    world.dir("home/open", 0o777);
    world.dir("home/group", 0o770);
    world.dir("home/real", 0o700);
    symlink("real", world.path("home/link")).unwrap();
    world.file("home/file", "");
    world.golden(
        &[
            "NONO_HOME=$HOME/open nono run -- true",
            "NONO_HOME=$HOME/group nono run -- true",
            "NONO_HOME=$HOME/link nono run -- true",
            "NONO_HOME=$HOME/file nono run -- true",
            "NONO_HOME=$HOME/file/below nono run -- true",
            "NONO_HOME=/proc/no/such nono run -- true",
        ],
        str![[r#"
$ NONO_HOME=$HOME/open nono run -- true
! [nono] error: [TMP]/home/open can be written by others (mode 0777): nono does not keep its state there
! [nono] hint: chmod 700 [TMP]/home/open
= exit 125
$ NONO_HOME=$HOME/group nono run -- true
! [nono] error: [TMP]/home/group can be written by others (mode 0770): nono does not keep its state there
! [nono] hint: chmod 700 [TMP]/home/group
= exit 125
$ NONO_HOME=$HOME/link nono run -- true
! [nono] error: [TMP]/home/link is a symbolic link: nono does not keep its state there
! [nono] hint: move it away, or set NONO_HOME to a folder of your own
= exit 125
$ NONO_HOME=$HOME/file nono run -- true
! [nono] error: [TMP]/home/file is not a directory: nono does not keep its state there
! [nono] hint: move it away, or set NONO_HOME to a folder of your own
= exit 125
$ NONO_HOME=$HOME/file/below nono run -- true
! [nono] error: [TMP]/home/file/below cannot be used for nono's state: Not a directory
! [nono] hint: set NONO_HOME to a folder you can write
= exit 125
$ NONO_HOME=/proc/no/such nono run -- true
! [nono] error: /proc/no/such cannot be used for nono's state: No such file or directory
! [nono] hint: set NONO_HOME to a folder you can write
= exit 125

"#]],
    );
}

#[test]
fn a_foreign_state_folder() {
    if !geteuid().is_root() {
        return skip("only root can give a folder away");
    }
    let world = World::new();
    let foreign = world.dir("home/foreign", 0o755);
    chown(foreign, Some(STRANGER), Some(STRANGER)).unwrap();
    world.golden(
        &["NONO_HOME=$HOME/foreign nono run -- true"],
        str![[r#"
$ NONO_HOME=$HOME/foreign nono run -- true
! [nono] error: [TMP]/home/foreign belongs to user 60112: nono does not keep its state there
! [nono] hint: move it away, or set NONO_HOME to a folder of your own
= exit 125

"#]],
    );
}

/// What has to write says so, and where. A run keeps a log, unless it is told not to.
#[test]
fn a_state_folder_that_cannot_be_written() {
    let world = World::new();
    world.dir("state", 0o500);
    world.golden(
        &["nono run -- echo ran", "nono run --no-audit -- echo ran", "nono setup --check-only > /dev/null"],
        str![[r#"
$ nono run -- echo ran
! [nono] error: cannot write the audit log, so nothing was run: [TMP]/state/audit cannot be used for nono's state: Permission denied
! [nono] hint: make room, or set NONO_HOME to a folder you can write; --no-audit runs it without a log
= exit 125
$ nono run --no-audit -- echo ran
ran
$ nono setup --check-only > /dev/null

"#]],
    );
    let outcome = world.sh("nono setup");
    assert_eq!(outcome.code(), Some(125));
    assert!(world.clean(&outcome.err()).contains("error: cannot write [TMP]/state"), "{}", outcome.err());
    assert_eq!(fs::read_dir(world.path("state")).unwrap().count(), 0);
    world.dir("state", 0o700);
}

#[test]
fn a_temporary_folder_that_cannot_be_used() {
    let world = World::new();
    world.dir("home/shut", 0o500);
    world.dir("home/taken", 0o700);
    world.file(&format!("home/taken/nono-{}", uid()), "");
    world.dir("home/open", 0o700);
    world.dir(&format!("home/open/nono-{}", uid()), 0o777);
    world.dir("home/linked", 0o700);
    symlink("/usr", world.path(&format!("home/linked/nono-{}", uid()))).unwrap();
    world.golden(
        &[
            "TMPDIR=$HOME/shut nono run -- true",
            "TMPDIR=$HOME/no-such nono run -- true",
            "TMPDIR=$HOME/taken nono run -- true",
            "TMPDIR=$HOME/open nono run -- true",
            "TMPDIR=$HOME/linked nono run -- true",
        ],
        str![[r#"
$ TMPDIR=$HOME/shut nono run -- true
! [nono] error: cannot create the session folder in [TMP]/home/shut/nono-[UID]: Permission denied
! [nono] hint: set TMPDIR to a folder you can write
= exit 125
$ TMPDIR=$HOME/no-such nono run -- true
! [nono] error: cannot create the session folder in [TMP]/home/no-such/nono-[UID]: No such file or directory
! [nono] hint: set TMPDIR to a folder you can write
= exit 125
$ TMPDIR=$HOME/taken nono run -- true
! [nono] error: cannot create the session folder in [TMP]/home/taken/nono-[UID]: it exists, but is not a folder that only you can write
! [nono] hint: set TMPDIR to a folder you can write
= exit 125
$ TMPDIR=$HOME/open nono run -- true
! [nono] error: cannot create the session folder in [TMP]/home/open/nono-[UID]: it exists, but is not a folder that only you can write
! [nono] hint: set TMPDIR to a folder you can write
= exit 125
$ TMPDIR=$HOME/linked nono run -- true
! [nono] error: cannot create the session folder in [TMP]/home/linked/nono-[UID]: it exists, but is not a folder that only you can write
! [nono] hint: set TMPDIR to a folder you can write
= exit 125

"#]],
    );
}

#[test]
fn no_room_left() {
    let world = World::new();
    // A limit of zero bytes for files stands for a full disk: every write fails, every name can still be made.
    let outcome = world.sh("trap '' XFSZ; ulimit -f 0; nono run -- true 2>&1 | cat");
    let text = world.clean(&outcome.out());
    assert!(text.starts_with("[nono] error: ") && text.contains("[TMP]/tmp"), "{text}");
    world.left_nothing();
}

#[test]
fn a_missing_or_relative_home_is_refused() {
    let world = World::new().with("HOME", None);
    world.golden(
        &[
            "nono run -- true",
            "nono why --path /x",
            "nono profile list",
            "HOME= nono run -- true",
            "HOME=rel nono run -- true",
            "nono completion bash | head -1",
        ],
        str![[r#"
$ nono run -- true
! [nono] error: HOME is not set, so nono cannot tell which of your files to protect
! [nono] hint: set HOME to your home folder
= exit 125
$ nono why --path /x
! [nono] error: HOME is not set, so nono cannot tell which of your files to protect
! [nono] hint: set HOME to your home folder
= exit 125
$ nono profile list
! [nono] error: HOME is not set, so nono cannot tell which of your files to protect
! [nono] hint: set HOME to your home folder
= exit 125
$ HOME= nono run -- true
! [nono] error: HOME is not set, so nono cannot tell which of your files to protect
! [nono] hint: set HOME to your home folder
= exit 125
$ HOME=rel nono run -- true
! [nono] error: HOME is "rel", which is not an absolute path, so nono cannot tell which of your files to protect
! [nono] hint: set HOME to your home folder
= exit 125
$ nono completion bash | head -1
_nono() {

"#]],
    );
}

#[test]
fn the_state_folder_is_made_private() {
    let world = World::new();
    world.sh("umask 000; NONO_HOME=$HOME/deep/nono nono run -- true").quiet(0);
    let mode = |below: &str| fs::metadata(world.path(below)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("home/deep/nono"), 0o700);
    world.left_nothing();
}
