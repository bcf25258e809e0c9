//! A restore of thousands of files into one directory, where they are made without names and by several tasks: killed at
//! many of its steps, it is completed, and no name ever holds half a file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use super::child;
use super::lab::{Lab, scratch};

const FILES: usize = 5000;

fn content(at: usize) -> String {
    format!("content of {at} ").repeat(20)
}

fn files(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn many_files_in_one_directory_are_restored_after_a_kill() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    for at in 0..FILES {
        fs::write(lab.tree().join(format!("file-{at}")), content(at)).unwrap();
    }
    let whole = files(&lab.tree());
    lab.manager().unwrap().create_baseline().unwrap();
    for at in (0..FILES).filter(|at| at % 50 != 0) {
        fs::remove_file(lab.tree().join(format!("file-{at}"))).unwrap();
    }
    lab.save("start");
    let mut killed = 0;
    for at in [5, 40, 41, 42, 100, 1001, 1002, 1003, 7000, 14_000, 100_000] {
        lab.reset("start");
        let output = child::killed_at(&lab, "restore", at);
        if output.status.signal() == Some(9) {
            killed += 1;
            for (name, text) in files(&lab.tree()) {
                // Temporary names may hold anything; there are none where files are made without one.
                assert!(!name.starts_with(".nono-"), "killed at {at}: {name}");
                assert_eq!(whole.get(&name), Some(&text), "killed at {at}: {name}");
            }
            lab.manager().unwrap().restore_to(0).unwrap();
        } else {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert!(files(&lab.tree()) == whole, "killed at {at}: not whole");
    }
    assert!(killed > 5, "only {killed} were killed in it");
}
