//! Loss of power around whole commands: nono's folder and the tree are on a disk that is cut off after a command, then
//! mounted again. And the files that such a loss left empty, one by one: no command fails for them for ever.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

mod empty;

use crate::world;
use crate::world::said;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nono_testkit::look::eventually;
use nono_testkit::oracle::{Oracle, look, same};
use said::Said;
use world::{ORDINARY, World, is_root};

/// As in the tests of the engine: nothing is written by the clock, and renames write no data.
const OPTIONS: &str = "loop,noauto_da_alloc,commit=300";
const PYTHON: &str = "import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', int(sys.argv[2])))";

/// What of the unsynced changes reaches the disk.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// Names, without the data: new files are empty.
    Names = 1,
    Nothing = 2,
}

/// A world whose `state` and `work` are on a disk of their own.
struct Disk {
    world: World,
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.at()).status();
    }
}

impl Disk {
    fn new() -> Option<Disk> {
        let skip = |why: &str| {
            nono_testkit::skip(why);
            None
        };
        if !is_root() {
            return skip("only root mounts file systems");
        }
        let disk = Disk { world: World::new() };
        fs::create_dir(disk.at()).unwrap();
        let image = disk.world.path("image");
        File::create(&image).unwrap().set_len(96 << 20).unwrap();
        let made = Command::new("mkfs.ext4").args(["-q", "-F", "-J", "size=4"]).arg(&image).output();
        if !made.as_ref().is_ok_and(|made| made.status.success()) {
            return skip(&format!("mkfs.ext4: {made:?}"));
        }
        let mounted = disk.mount();
        if !mounted.status.success() {
            return skip(&String::from_utf8_lossy(&mounted.stderr));
        }
        for name in ["state", "work"] {
            let path = disk.at().join(name);
            fs::create_dir(&path).unwrap();
            chown(&path, Some(ORDINARY), Some(ORDINARY)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        Some(disk)
    }

    fn at(&self) -> PathBuf {
        self.world.path("disk")
    }

    fn mount(&self) -> std::process::Output {
        let mut mount = Command::new("mount");
        mount.args(["-o", OPTIONS]).arg(self.world.path("image")).arg(self.at()).output().unwrap()
    }

    /// Everything so far is on the disk.
    fn sync(&self) {
        assert!(Command::new("sync").arg("-f").arg(self.at()).status().unwrap().success());
    }

    /// The power goes, and comes back.
    fn cut(&self, what: Cut) {
        let mut python = Command::new("python3");
        let cut = python.args(["-c", PYTHON]).arg(self.at()).arg((what as u32).to_string()).output();
        assert!(cut.as_ref().is_ok_and(|cut| cut.status.success()), "{cut:?}");
        // Upkeep in the background notices by itself that its disk is gone.
        let unmounted = || Command::new("umount").arg(self.at()).status().unwrap().success().then_some(());
        eventually(|| "the end of what uses the disk".to_owned(), unmounted);
        self.wait_for_the_device();
        assert!(self.mount().status.success());
    }

    /// A sandbox of another test may have copied this mount: until that one ends, mounting the image again would only
    /// give back the file system that was cut off.
    fn wait_for_the_device(&self) {
        let patience = Instant::now() + Duration::from_secs(60);
        let devices = || {
            let listed = Command::new("losetup").arg("-j").arg(self.world.path("image")).output().unwrap();
            String::from_utf8(listed.stdout).unwrap()
        };
        while !devices().is_empty() {
            assert!(Instant::now() < patience, "still in use: {}", devices());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.world.command(program);
        command.env("NONO_HOME", self.at().join("state")).current_dir(self.at().join("work"));
        command
    }

    fn nono(&self, args: &[&str]) -> Said {
        Said::of(&self.command("nono").args(args).output().unwrap())
    }

    fn run(&self, script: &str) -> Said {
        self.nono(&["run", "--rollback", "--allow", ".", "--", "bash", "-c", script])
    }

    #[track_caller]
    fn bare(&self, script: &str) {
        assert!(self.command("bash").args(["-ec", script]).status().unwrap().success());
    }

    fn look(&self) -> Oracle {
        look(&self.at().join("work"))
    }
}

const TREE: &str = "mkdir -p src docs; for n in $(seq 40); do echo \"text $n\" > src/$n; done; echo a > docs/a; \
                    ln -s docs/a link; echo all: > Makefile";
const DAMAGE: &str = "for n in $(seq 40); do echo other > src/$n; done; rm -r docs; echo new > new";

/// Nothing that lies there makes a later command fail before it began.
#[track_caller]
fn others_go_on(disk: &Disk) {
    disk.nono(&["run", "--allow", ".", "--", "true"]).ok();
    disk.run("echo again > again").ok();
    disk.nono(&["rollback", "restore", "last", "--yes"]).ok();
    disk.nono(&["rollback", "list"]).ok();
    disk.nono(&["audit", "list"]).ok();
    disk.bare("echo more > more");
    disk.nono(&["checkpoints", "create"]).ok();
    disk.nono(&["checkpoints", "list"]).ok();
    disk.nono(&["audit", "verify", "last"]).ok();
}

#[test]
fn after_the_first_commands() {
    for cut in [Cut::Names, Cut::Nothing] {
        let Some(disk) = Disk::new() else { return };
        disk.bare(TREE);
        disk.sync();
        disk.nono(&["run", "--allow", ".", "--", "true"]).ok();
        disk.nono(&["checkpoints", "create"]).ok();
        disk.cut(cut);
        others_go_on(&disk);
    }
}

#[test]
fn after_a_run() {
    for cut in [Cut::Names, Cut::Nothing] {
        let Some(disk) = Disk::new() else { return };
        disk.bare(TREE);
        let before = disk.look();
        disk.run("true").ok();
        disk.sync();
        disk.run(DAMAGE).ok();
        disk.cut(cut);
        let restored = disk.nono(&["rollback", "restore", "last", "--yes", "--force"]);
        if restored.code == Some(0) && matches!(cut, Cut::Names) {
            same(&before, &disk.look());
        }
        assert_ne!(restored.code, Some(125), "{restored:?}");
        others_go_on(&disk);
    }
}

#[test]
fn after_a_restore() {
    for cut in [Cut::Names, Cut::Nothing] {
        let Some(disk) = Disk::new() else { return };
        disk.bare(TREE);
        let before = disk.look();
        disk.run(DAMAGE).ok();
        disk.sync();
        disk.nono(&["rollback", "restore", "last", "--yes"]).ok();
        disk.cut(cut);
        same(&before, &disk.look());
        others_go_on(&disk);
    }
}

#[test]
fn after_a_checkpoint_and_its_restore() {
    for cut in [Cut::Names, Cut::Nothing] {
        let Some(disk) = Disk::new() else { return };
        disk.bare(TREE);
        let before = disk.look();
        disk.nono(&["checkpoints", "create"]).ok();
        disk.sync();
        disk.bare(DAMAGE);
        disk.nono(&["checkpoints", "create"]).ok();
        disk.cut(cut);
        disk.nono(&["checkpoints", "list"]).ok();
        disk.bare("echo third > third");
        disk.nono(&["checkpoints", "create"]).ok();
        let list = disk.nono(&["checkpoints", "list", "--json"]).ok().json();
        let first = oldest(&list).expect("the first checkpoint");
        disk.sync();
        disk.nono(&["checkpoints", "restore", &first, "--yes", "--force"]).ok();
        disk.cut(cut);
        same(&before, &disk.look());
        others_go_on(&disk);
    }
}

/// The id of the first checkpoint: lists begin with the newest.
fn oldest(list: &serde_json::Value) -> Option<String> {
    let all = list.as_array().or_else(|| list.get("checkpoints")?.as_array())?;
    all.last()?["id"].as_str().map(str::to_owned)
}

/// The first file of this name below a folder.
fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
            let path = entry.path();
            if path.file_name().is_some_and(|found| found == name) {
                return Some(path);
            }
            if entry.file_type().unwrap().is_dir() {
                waiting.push(path);
            }
        }
    }
    None
}
