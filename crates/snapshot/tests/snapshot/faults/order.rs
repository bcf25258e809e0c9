//! Durability order: every pack, index, large object and manifest is synced, with its name, before the record that
//! marks its snapshot durable is put in place; and so is everything written since, before a file that a durable
//! snapshot needed is removed. Checked in a trace of the system calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::child;
use super::lab::{Lab, run, skip};
use super::trees::make_old;

/// Durability of files after some system calls.
#[derive(Default)]
struct Disk {
    /// Files whose bytes are not on disk.
    unsynced: BTreeSet<PathBuf>,
    /// Files that were synced after they were written.
    synced: BTreeSet<PathBuf>,
    /// Folders with names that are not on disk, and such a name.
    names: BTreeMap<PathBuf, PathBuf>,
    present: BTreeSet<PathBuf>,
}

impl Disk {
    fn written(&mut self, path: PathBuf) {
        self.synced.remove(&path);
        self.unsynced.insert(path);
    }

    fn named(&mut self, path: &Path) {
        self.names.insert(path.parent().unwrap().to_owned(), path.to_owned());
        self.present.insert(path.to_owned());
    }

    fn sync(&mut self, path: &Path) {
        self.names.remove(path);
        self.unsynced.remove(path);
        self.synced.insert(path.to_owned());
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        for set in [&mut self.unsynced, &mut self.synced] {
            if set.remove(from) {
                set.insert(to.to_owned());
            } else {
                set.remove(to);
            }
        }
        self.present.remove(from);
        self.named(to);
    }

    fn link(&mut self, from: &Path, to: &Path) {
        for set in [&mut self.unsynced, &mut self.synced] {
            if set.contains(from) {
                set.insert(to.to_owned());
            }
        }
        self.named(to);
    }

    fn remove(&mut self, path: &Path) {
        self.present.remove(path);
        self.unsynced.remove(path);
        self.synced.remove(path);
    }
}

/// System calls in the order in which they ended, each on one line.
fn calls(text: &str) -> Vec<String> {
    let mut waiting: BTreeMap<&str, &str> = BTreeMap::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let (pid, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(start) = call.strip_suffix("<unfinished ...>") {
            waiting.insert(pid, start);
        } else if let Some((_, rest)) =
            call.strip_prefix("<... ").and_then(|call| call.split_once(" resumed>"))
        {
            all.push(format!("{}{rest}", waiting.remove(pid).unwrap_or_default()));
        } else {
            all.push(call.to_owned());
        }
    }
    all
}

/// Paths in a call: descriptors as `5</path>`, names in quotes, joined to the descriptor before them.
fn paths(arguments: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut folder = PathBuf::new();
    let mut rest = arguments;
    while let Some(at) = rest.find(['<', '"']) {
        let quoted = rest[at..].starts_with('"');
        let after = &rest[at + 1..];
        let end = after.find(if quoted { '"' } else { '>' }).unwrap_or(after.len());
        let text = &after[..end];
        if quoted {
            found.push(folder.join(text));
        } else {
            folder = PathBuf::from(text);
        }
        rest = &after[(end + 1).min(after.len())..];
    }
    if found.is_empty() { vec![folder] } else { found }
}

#[test]
fn data_before_the_record_that_names_it() {
    if !Path::new("/usr/bin/strace").exists() {
        return skip("no strace");
    }
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::at(dir.path());
    make_old(&lab.tree());
    let log = lab.base.join("log");
    let trace = "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2,linkat,link,unlink,unlinkat,openat,mkdir,mkdirat,write,pwrite64,writev,pwritev,copy_file_range,ftruncate";
    let arguments = ["-f", "-y", "-qq", "-s", "4096", "-o", log.to_str().unwrap(), "-e", trace];
    run(&mut child::under("strace", &arguments, &lab, "baseline+settle"));
    assert!(lab.manager().unwrap().load_manifest(0).unwrap().durable, "settled, and not durable");

    let record = lab.session().join("record.json");
    let session = lab.session();
    let stored = |path: &Path| path.extension().is_some_and(|kind| kind == "pack" || kind == "idx");
    let text = fs::read_to_string(&log).unwrap();
    let mut disk = Disk::default();
    let (mut published, mut removed, mut syncs) = (0, 0, 0);
    let mut wrong = Vec::new();
    for line in calls(&text) {
        let Some((call, arguments)) = line.split_once('(') else { continue };
        if line.contains(" = -1 ") {
            continue;
        }
        let paths = paths(arguments);
        match call {
            "fsync" | "fdatasync" => {
                syncs += 1;
                disk.sync(&paths[0]);
            }
            "write" | "pwrite64" | "writev" | "pwritev" | "ftruncate" => disk.written(paths[0].clone()),
            "copy_file_range" => disk.written(paths.last().unwrap().clone()),
            "openat" if arguments.contains("O_CREAT") && !disk.present.contains(&paths[0]) => {
                disk.named(&paths[0]);
            }
            "mkdir" | "mkdirat" => disk.named(&paths[0]),
            "rename" | "renameat" | "renameat2" => {
                if paths[1] == record {
                    published += 1;
                    // The first one does not call anything durable.
                    if published > 1 {
                        wrong.extend(not_durable(&disk, &session, Some(&paths[0])));
                    }
                }
                disk.rename(&paths[0], &paths[1]);
            }
            "link" | "linkat" => disk.link(&paths[0], &paths[1]),
            "unlink" | "unlinkat" => {
                if published >= 2 && stored(&paths[0]) && paths[0].starts_with(session.join("store/packs")) {
                    removed += 1;
                    wrong.extend(not_durable(&disk, &session, None));
                }
                disk.remove(&paths[0]);
            }
            _ => {}
        }
    }
    println!("{syncs} syncs, the record was published {published} times, {removed} files were replaced");
    assert!(
        syncs > 5 && published >= 2 && removed >= 2,
        "{syncs} syncs, {published} publications, {removed} removals: the trace shows too little"
    );
    assert!(wrong.is_empty(), "not on the disk when something relied on it: {wrong:#?}");
    assert!(!disk.names.contains_key(&session), "the record's own name was not synced: {:?}", disk.names);
}

/// Files of the store and manifests that are not durable when the record is put in place or a file is removed.
fn not_durable(disk: &Disk, session: &Path, record: Option<&Path>) -> Vec<String> {
    let store = session.join("store");
    let mut wrong = Vec::new();
    if let Some(record) = record.filter(|record| !disk.synced.contains(*record)) {
        wrong.push(format!("{}: the record itself", record.display()));
    }
    let parts = [store.join("packs"), store.join("large"), session.join("snapshots")];
    let within = |path: &&PathBuf| parts.iter().any(|part| path.starts_with(part) && *path != part);
    for path in disk.present.iter().filter(within).filter(|path| !path.is_dir()) {
        if !disk.synced.contains(path) {
            wrong.push(format!("{}: its bytes", path.display()));
        }
        let mut folder = path.parent().unwrap();
        while folder.starts_with(session) {
            if let Some(name) = disk.names.get(folder).filter(|name| path.starts_with(name) || name.is_dir())
            {
                wrong.push(format!("{}: the name {}", folder.display(), name.display()));
            }
            folder = folder.parent().unwrap();
        }
    }
    wrong.sort();
    wrong.dedup();
    wrong
}
