//! Too little of something: the size of files, threads, room on the disk.

use std::fs;
use std::process::Command;

use super::kit::Kit;
use super::world::{World, is_root};
use nono_testkit::oracle::same;
use nono_testkit::skip;

/// `ulimit -f` is the person's, for the restore only: what it forbids is told by name, and the rest is restored.
#[test]
fn a_limit_on_the_size_of_files_is_told_by_name() {
    let kit = Kit::new();
    kit.bare("echo small > small; head -c 600000 /dev/urandom > large; mkdir d; echo deep > d/deep");
    let before = kit.look();
    kit.run("echo changed > small; echo gone > large; rm -r d").ok();
    let mut limited = kit.world.command("bash");
    // In blocks of a kilobyte.
    limited.args(["-c", "ulimit -f 300; exec nono rollback restore last --yes"]);
    let out = limited.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("large") && said.contains("File too large"), "{said}");
    assert_eq!(fs::read_to_string(kit.tree().join("small")).unwrap(), "small\n");
    assert_eq!(fs::read_to_string(kit.tree().join("d/deep")).unwrap(), "deep\n");
    assert_eq!(fs::read_to_string(kit.tree().join("large")).unwrap(), "gone\n");
    kit.restored(&before);
}

/// The command itself has the signal as it always was.
#[test]
fn the_command_is_ended_by_its_own_limit() {
    let kit = Kit::new();
    let said = kit.run("ulimit -c 0; ulimit -f 10; head -c 100000 /dev/zero > file; echo $?");
    assert!(said.out.contains("153"), "{said:?}");
}

/// As many processes as the user may have: no thread is left for the snapshots, which are taken all the same.
#[test]
fn a_command_that_takes_all_processes_is_undone() {
    if !is_root() {
        return skip("a user of its own is needed");
    }
    // The limit counts what the same user runs elsewhere, so this one runs nothing else.
    let user = 100_000 + std::process::id() % 100_000;
    let kit = Kit { world: World::of(Some(user)) };
    kit.bare(
        "echo before > file; mkdir d; for i in 1 2 3 4 5 6 7 8 9; do mkdir d/$i; echo $i > d/$i/f; done",
    );
    let before = kit.look();
    let script = "echo after > file; rm -r d/3; i=0; while [ $i -lt 400 ]; do sleep 600 & i=$((i+1)); done";
    let mut command = kit.world.command("prlimit");
    command.args(["--nproc=60", "nono", "run", "--rollback", "--allow", ".", "--", "dash", "-c", script]);
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "dash says that it cannot fork: {said}");
    assert!(said.contains("fork") && !said.contains("panicked"), "{said}");
    assert_eq!(fs::read_to_string(kit.tree().join("file")).unwrap(), "after\n");
    kit.restored(&before);
}

/// The state folder and the tree are on one small filesystem, and the command leaves no block of it.
#[test]
fn a_command_that_fills_the_disk_is_undone() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let kit = Kit::new();
    let (image, at) = (kit.world.path("image"), kit.world.path("work"));
    fs::File::create(&image).unwrap().set_len(96 << 20).unwrap();
    let tool = |program: &str, args: &[&str]| {
        Command::new(program).args(args).output().is_ok_and(|out| out.status.success())
    };
    let (image, place) = (image.to_str().unwrap(), at.to_str().unwrap());
    if !tool("mkfs.ext4", &["-q", "-F", image]) || !tool("mount", &["-o", "loop", image, place]) {
        return skip("no filesystem can be made here");
    }
    let undone = std::panic::catch_unwind(|| fill_and_undo(&kit));
    assert!(tool("umount", &["-l", place]));
    undone.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn fill_and_undo(kit: &Kit) {
    for dir in ["work", "work/tree", "work/state"] {
        let dir = kit.world.path(dir);
        fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::chown(&dir, Some(super::world::ORDINARY), Some(super::world::ORDINARY)).unwrap();
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(kit.world.path("work/state"), mode).unwrap();
    let tree = kit.world.path("work/tree");
    kit.bare(
        "cd tree; echo small > small; head -c 6000000 /dev/urandom > large; mkdir d; echo deep > d/deep",
    );
    let before = nono_testkit::oracle::look(&tree);
    let nono = |args: &[&str]| {
        let mut command = kit.command(args);
        let out = command.env("NONO_HOME", kit.world.path("work/state")).current_dir(&tree).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
        (out.status.code(), said)
    };
    let fill = "echo changed > small; rm -r d; cat /dev/zero > zeros; cat /dev/urandom >> zeros; echo x >> small; true";
    let (code, said) = nono(&["run", "--rollback", "--allow", ".", "--", "bash", "-c", fill]);
    assert_eq!(code, Some(0), "{said}");
    // What nono released at the end is taken, too, and upkeep works at the same time.
    kit.bare("cat /dev/zero > rest || while echo x >> rest; do :; done; true");
    let mut upkeep = kit.command(&["__upkeep", "store"]);
    let mut upkeep = upkeep.env("NONO_HOME", kit.world.path("work/state")).spawn().unwrap();
    let (code, said) = nono(&["rollback", "restore", "last", "--yes"]);
    assert!(upkeep.wait().unwrap().success(), "upkeep leaves a full disk as it is");
    assert_eq!(code, Some(0), "{said}");
    same(&before, &nono_testkit::oracle::look(&tree));
}
