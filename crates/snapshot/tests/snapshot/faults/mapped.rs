//! Writes through shared mappings, which on a page that is dirty already change no time: seen all the same, on every
//! filesystem where the stat cache is trusted.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::changes::{assert_seen, next_tick};
use super::lab::{Lab, scratch, skip};
use super::mounts::Mount;
use super::trees::write;

/// Maps a file, and writes a letter into it whenever it is told to; keeps the mapping until its input ends.
const HELPER: &str = "
import mmap, sys
with open(sys.argv[1], 'r+b') as f:
    m = mmap.mmap(f.fileno(), 0)
for line in sys.stdin:
    m[10:11] = line[0].encode()
    print('done', flush=True)
";

struct Mapper {
    child: Child,
    tell: Option<ChildStdin>,
    hear: BufReader<ChildStdout>,
}

impl Mapper {
    fn of(path: &Path) -> Option<Mapper> {
        let mut command = Command::new("python3");
        command.args(["-c", HELPER]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            skip("no python3");
            return None;
        };
        let (tell, hear) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Some(Mapper { child, tell, hear })
    }

    fn store(&mut self, letter: char) {
        writeln!(self.tell.as_mut().unwrap(), "{letter}").unwrap();
        let mut line = String::new();
        self.hear.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
    }

    fn end(&mut self) {
        drop(self.tell.take());
        self.child.wait().unwrap();
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        self.end();
    }
}

fn on(base: &Path, what: &str) {
    let lab = Lab::at(base);
    live(&lab, what);
    fs::remove_dir_all(lab.base.join("now")).unwrap();
    let lab = Lab::at(base);
    ended(&lab, what);
}

/// The mapping stays; the page is dirty all the time.
fn live(lab: &Lab, what: &str) {
    let path = lab.tree().join("d/mapped");
    write(&path, vec![b'.'; 8192]);
    let Some(mut mapper) = Mapper::of(&path) else { return };
    mapper.store('a');
    next_tick(&path);
    let mut same = lab.manager().unwrap();
    same.create_baseline().unwrap();
    for (round, letter) in ('b'..'h').enumerate() {
        mapper.store(letter);
        let taken = if round % 2 == 0 {
            same.create_incremental().unwrap()
        } else {
            lab.manager().unwrap().create_incremental().unwrap()
        };
        assert_seen(&path, &taken, &format!("{what}, mapped, store {round}"));
    }
}

/// The mapping was there at one capture, was written through once more, and is gone at the next.
fn ended(lab: &Lab, what: &str) {
    let path = lab.tree().join("d/mapped");
    write(&path, vec![b'.'; 8192]);
    let Some(mut mapper) = Mapper::of(&path) else { return };
    mapper.store('a');
    next_tick(&path);
    lab.manager().unwrap().create_baseline().unwrap();
    mapper.store('b');
    mapper.end();
    let taken = lab.manager().unwrap().create_incremental().unwrap();
    assert_seen(&path, &taken, &format!("{what}, mapped before and not any more"));
}

#[test]
fn on_tmpfs() {
    match Mount::tmpfs(64) {
        Some(mount) => on(mount.path(), "tmpfs"),
        None => on(scratch().path(), "memory"),
    }
}

#[test]
fn on_ext4() {
    if let Some(mount) = Mount::image("ext4", 64) {
        on(mount.path(), "ext4");
    }
}

#[test]
fn on_xfs() {
    if let Some(mount) = Mount::image("xfs", 400) {
        on(mount.path(), "xfs");
    }
}

#[test]
fn on_btrfs() {
    if let Some(mount) = Mount::image("btrfs", 256) {
        on(mount.path(), "btrfs");
    }
}

#[test]
fn on_the_disk() {
    on(tempfile::tempdir().unwrap().path(), "the disk");
}

#[test]
fn on_an_overlay() {
    if let Some(mount) = Mount::overlay(|_| {}) {
        on(mount.path(), "overlay");
    }
}

/// The file comes from the layer below, and is copied up by the first writer.
#[test]
fn on_an_overlay_of_what_was_below() {
    let below = |lower: &Path| write(&lower.join("now/tree/d/mapped"), vec![b'.'; 8192]);
    let Some(mount) = Mount::overlay(below) else { return };
    let lab = Lab::at(mount.path());
    let path = lab.tree().join("d/mapped");
    next_tick(&path);
    lab.manager().unwrap().create_baseline().unwrap();
    let Some(mut mapper) = Mapper::of(&path) else { return };
    for (round, letter) in ('a'..'e').enumerate() {
        mapper.store(letter);
        let taken = lab.manager().unwrap().create_incremental().unwrap();
        assert_seen(&path, &taken, &format!("overlay, from below, store {round}"));
    }
}
