//! Cost of snapshots, compared with `cp -a`, `git add -A`, `find -printf` and reading every file, on the Linux 6.1
//! source (`--quick`: on generated files), with warm caches, on tmpfs and on a disk.

mod child;
pub(crate) mod ground;
mod reference;
mod rounds;
mod scale;
mod trace;
pub(crate) mod tree;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) use child::run as child;
pub(crate) use reference::{compress, decompress};

use crate::measure::Table;
use crate::options::{Options, Place};
use ground::{Ground, Tools};
use rounds::Rounds;
use tree::Source;

pub(crate) fn rows(options: &Options, table: &mut Table) {
    let (_folder, helper) = helper_folder();
    let tools = Tools { helper, calm: !options.quick };
    let disk = disk();
    let source = Source::find(options, &disk);
    let memory = Path::new("/dev/shm");
    let mut parents = Vec::new();
    if options.wants_on(Place::Tmpfs) && has_room(memory, if options.quick { 100 } else { 6000 }) {
        parents.push((memory, "1.0"));
    }
    if options.wants_on(Place::Disk) {
        parents.push((disk.as_path(), "0.7"));
    }
    let Some((last, _)) = parents.last().copied() else { return };
    for (parent, goal) in &parents {
        let ground = Ground::below(parent, &tools);
        let mut rounds = Rounds::new(options, &source, &ground, table);
        rounds.all(goal);
        // Once is enough: the calls are the same everywhere.
        if *parent == last && can_trace() {
            rounds.trace();
        }
    }
    // A million files come and go faster in memory.
    let megabytes = if options.quick { 100 } else { 10_000 };
    let mut parents = parents.iter().map(|(parent, _)| *parent);
    let many = parents.find(|parent| *parent == last || has_room(parent, megabytes)).unwrap_or(last);
    scale::growth(options, &Ground::below(many, &tools), table);
    // Memory is too small for it.
    if options.wants_on(Place::Disk) {
        scale::large_file(options, &Ground::below(&disk, &tools), &tools, table);
        scale::one_directory(options, &Ground::below(&disk, &tools), &tools, table);
    }
}

/// Copy of this program that the ordinary user can run, and its folder.
pub(crate) fn helper_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::Builder::new().prefix("nono-bench-").tempdir().expect("a temporary folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let helper = folder.path().join("helper");
    fs::copy(std::env::current_exe().expect("this program"), &helper).expect("a copy of this program");
    (folder, helper)
}

/// Whether the folder exists and has this many megabytes free.
fn has_room(memory: &Path, megabytes: u64) -> bool {
    let free = || ground::df(memory, "avail").parse::<u64>().unwrap_or(0) / 1000;
    let enough = memory.is_dir() && free() >= megabytes;
    if !enough {
        eprintln!("skipped: tmpfs, because {} has not {megabytes} MB free", memory.display());
    }
    enough
}

/// Folder on a disk: the temporary folder, or if that is in memory, the folder of this program.
pub(crate) fn disk() -> PathBuf {
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
