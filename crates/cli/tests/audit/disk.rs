//! A disk that is full: what was decided is still recorded, what cannot be recorded is denied.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use super::kit::Kit;
use super::world::{ORDINARY, is_root};

/// nono's own folder is a file system of its own; unmounted before the world goes.
struct Disk {
    at: PathBuf,
    kit: Kit,
}

impl Drop for Disk {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.at).status();
        if !done.is_ok_and(|status| status.success()) {
            let _ = Command::new("umount").arg("-l").arg(&self.at).status();
        }
    }
}

/// None where the tester cannot mount anything, which is said.
fn disk(how: impl Fn(&Kit, &mut Command)) -> Option<Disk> {
    let kit = Kit::new();
    let at = kit.world.path("state");
    let mut mount = Command::new("mount");
    how(&kit, &mut mount);
    let why = if is_root() {
        let done = mount.arg(&at).output().unwrap();
        (!done.status.success()).then(|| String::from_utf8_lossy(&done.stderr).into_owned())
    } else {
        Some("only root mounts file systems".to_owned())
    };
    if let Some(why) = why {
        nono_testkit::skip(&why);
        return None;
    }
    let disk = Disk { at, kit };
    std::os::unix::fs::chown(&disk.at, Some(ORDINARY), Some(ORDINARY)).unwrap();
    fs::set_permissions(&disk.at, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    Some(disk)
}

fn tmpfs(size: &str) -> Option<Disk> {
    disk(|_, mount| {
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]);
    })
}

fn ext4() -> Option<Disk> {
    disk(|kit, mount| {
        let image = kit.world.path("other/image");
        File::create(&image).unwrap().set_len(16 << 20).unwrap();
        let made = Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        mount.args(["-o", "loop", "-t", "ext4"]).arg(&image);
    })
}

impl Disk {
    /// Fills the disk to the last byte, as another process would.
    fn fill(&self) {
        let mut hog = File::options().create(true).append(true).open(self.at.join("hog")).unwrap();
        for size in [64 << 10, 4096, 512] {
            while hog.write_all(&vec![0x5a; size]).is_ok() {}
            // That it is full is what is wanted here.
            let _ = hog.sync_data();
        }
    }

    fn drain(&self) {
        fs::remove_file(self.at.join("hog")).unwrap();
    }
}

/// A record of such a path is large, so that what was put aside is used up soon.
fn long(kit: &Kit, name: usize) -> String {
    let folders = format!("notes/{0}/{0}/{0}/{0}/{0}/{0}/{0}/{0}", "d".repeat(250));
    let path = kit.world.path(&format!("other/{folders}/{name}"));
    if name == 0 {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
    fs::write(&path, "text\n").unwrap();
    path.display().to_string()
}

#[track_caller]
fn a_full_disk(disk: &Disk) {
    let kit = &disk.kit;
    let mut talk = kit.talk(&["--audit-integrity"]);
    assert!(talk.reads(&kit.note("a")), "there is room");
    let id = kit.ids().pop_first().unwrap();
    let decisions = || kit.events_of(&id, "capability_decision").len();
    assert_eq!(decisions(), 1);
    disk.fill();
    assert!(talk.reads(&kit.note("b")), "there is a reserve");
    assert_eq!(decisions(), 2, "and it is recorded");
    let mut allowed = 2;
    let denied = (0..2000).find(|number| {
        let read = talk.reads(&long(kit, *number));
        allowed += usize::from(read);
        // Neither more nor less than what is on record.
        assert_eq!(decisions(), allowed, "{number}");
        !read
    });
    let denied = denied.expect("a full disk denies in the end");
    assert!(!talk.reads(&long(kit, denied + 1)), "and goes on to do so");
    disk.drain();
    assert!(talk.reads(&long(kit, denied + 2)), "there is room again");
    let said = talk.end().ok();
    assert_eq!(decisions(), allowed + 1, "{said:?}");
    let events = kit.events(&id);
    assert_eq!(events.last().unwrap()["type"], "seal");
    let warning = events.iter().find(|event| event["type"] == "warning").expect("it is said");
    assert!(warning["message"].as_str().unwrap().contains("2 decisions refused"), "{warning}");
    kit.good();
}

#[test]
fn what_is_decided_on_a_full_tmpfs_is_recorded_or_denied() {
    if let Some(disk) = tmpfs("8m") {
        a_full_disk(&disk);
    }
}

#[test]
fn what_is_decided_on_a_full_ext4_is_recorded_or_denied() {
    if let Some(disk) = ext4() {
        a_full_disk(&disk);
    }
}

#[test]
fn a_log_is_closed_and_entered_on_a_full_disk() {
    let Some(disk) = tmpfs("8m") else { return };
    let kit = &disk.kit;
    let mut talk = kit.talk(&["--audit-integrity"]);
    assert!(talk.reads(&kit.note("a")));
    disk.fill();
    talk.end().ok();
    assert_eq!(kit.ledger().len(), 1);
    assert_eq!(kit.good()["sessions"][0]["state"], "sealed");
}

#[test]
fn on_a_full_disk_nothing_begins() {
    let Some(disk) = tmpfs("256k") else { return };
    disk.fill();
    let kit = &disk.kit;
    let said = kit.run(&[], "touch ran").code(125);
    assert!(said.err.contains("so nothing was run") && said.err.contains("No space left"), "{said:?}");
    assert!(said.err.contains("hint: make room"), "{said:?}");
    disk.drain();
    // Not enough for what has to be put aside.
    let said = kit.run(&[], "touch ran").code(125);
    assert!(said.err.contains("No space left"), "{said:?}");
    assert!(!kit.world.path("work/ran").exists());
    let left =
        fs::read_dir(kit.audit()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> =
        left.filter(|name| !["redaction.key", "executables.json"].contains(&&**name)).collect();
    assert!(left.is_empty(), "nothing half done is left: {left:?}");
}
