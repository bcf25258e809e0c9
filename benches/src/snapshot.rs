//! What snapshots cost: beside `cp -a`, `git add -A`, `find -printf` and reading every file, on the Linux 6.1 source
//! (`--quick`: on generated files), with warm caches, on tmpfs and on a disk.

mod child;
mod ground;
mod reference;
mod rounds;
mod scale;
mod trace;
mod tree;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) use child::run as child;
pub(crate) use reference::{compress, decompress};

use crate::measure::Row;
use crate::options::{Options, Place};
use ground::{Ground, Tools};
use rounds::Rounds;
use tree::Source;

pub(crate) fn rows(options: &Options) -> Vec<Row> {
    let folder = tempfile::Builder::new().prefix("nono-bench-").tempdir().expect("a temporary folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let helper = folder.path().join("helper");
    fs::copy(std::env::current_exe().expect("this program"), &helper).expect("a copy of this program");
    let tools = Tools { helper, calm: !options.quick };
    let disk = disk();
    let source = Source::find(options, &disk);
    let mut rows = Vec::new();
    let mut last = None;
    let memory = Path::new("/dev/shm");
    for (place, parent, goal) in [(Place::Tmpfs, memory, "1.0"), (Place::Disk, disk.as_path(), "0.7")] {
        if !options.wants_on(place) {
            continue;
        }
        if place == Place::Tmpfs && !memory.is_dir() {
            eprintln!("skipped: tmpfs, because there is no /dev/shm");
            continue;
        }
        last = Some(parent);
        let ground = Ground::below(parent, &tools);
        let rounds = Rounds::new(options, &source, &ground).all(goal);
        // Once is enough: the calls are the same everywhere.
        let counted = place == Place::Disk || !options.wants_on(Place::Disk);
        rows.extend(if counted && can_trace() { rounds.trace() } else { rounds.rows });
    }
    if let Some(parent) = last {
        let ground = Ground::below(parent, &tools);
        rows.extend(scale::growth(options, &ground));
        rows.extend(scale::large_file(options, &ground, &tools));
    }
    rows
}

/// Where temporary files are; where that is memory, where this program is.
fn disk() -> PathBuf {
    let here = std::env::current_dir().expect("a folder");
    let places = [std::env::temp_dir(), PathBuf::from("/var/tmp"), here];
    let on_disk = |place: &&PathBuf| place.is_dir() && ground::df(place, "fstype") != "tmpfs";
    places.iter().find(on_disk).unwrap_or(&places[0]).clone()
}

fn can_trace() -> bool {
    if !ground::has("strace") {
        eprintln!("skipped: counting system calls, because strace is not installed");
        return false;
    }
    true
}
