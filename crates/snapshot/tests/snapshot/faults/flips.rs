//! Every single bit of every file in a session folder, store included: flipped, it is found and named by `verify`, or
//! opening fails and names the file. Nothing panics, and what is restored is right or not restored at all.

use nono_testkit::noise;
use std::fs;
use std::path::{Path, PathBuf};

use super::lab::{Lab, files, scratch};
use super::trees::{self, list, write};

/// A session with everything in it: settled and new packs, large objects in both forms, cache, kept contents, safety.
fn tiny(lab: &Lab, settled: bool) {
    write(&lab.tree().join("a"), "aaaa bbbb ".repeat(12));
    write(&lab.tree().join("d/b"), "b");
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    if settled {
        manager.settle().unwrap();
    }
    write(&lab.tree().join("d/b"), "c");
    manager.create_incremental().unwrap();
    if settled {
        manager.settle().unwrap();
        meddle(lab, &mut manager);
    }
}

/// A process that writes while a restore works: what is displaced then is stored, and named in the session's own list.
struct Meddler(Vec<PathBuf>);

impl nono_snapshot::Observer for Meddler {
    fn progress(&self, done: u64, _total: u64) {
        if done == 1 {
            for path in &self.0 {
                write(path, "written meanwhile");
            }
        }
    }

    fn cancelled(&self) -> bool {
        false
    }
}

fn meddle(lab: &Lab, manager: &mut nono_snapshot::SnapshotManager) {
    let paths: Vec<PathBuf> = (0..40).map(|at| lab.tree().join(format!("m{at}"))).collect();
    for path in &paths {
        write(path, "to be removed");
    }
    manager.observe(Meddler(paths));
    let restored = manager.restore_to(0).unwrap();
    manager.observe(());
    assert!(!restored.kept.is_empty(), "nothing was displaced: {restored:?}");
    assert!(lab.session().join("kept").exists());
    for path in files(&lab.tree()).iter().filter(|path| path.to_string_lossy().contains("/m")) {
        fs::remove_file(path).unwrap();
    }
}

/// The check that noticed; `None` if nothing is reported about that file.
fn noticed(lab: &Lab, path: &Path) -> Option<String> {
    let said = match lab.manager() {
        Err(error) => error.to_string(),
        Ok(mut manager) => match manager.verify() {
            Err(error) => error.to_string(),
            Ok(report) if report.is_clean() => return None,
            Ok(report) => format!("{report:?}"),
        },
    };
    // An index and its pack have one name, and are checked against each other.
    let named = if path.extension().is_some_and(|end| end == "idx" || end == "pack") {
        path.file_stem().unwrap().to_string_lossy().into_owned()
    } else {
        path.display().to_string()
    };
    Some(said).filter(|said| said.contains(&named))
}

fn flip(path: &Path, bytes: &[u8], bit: usize) {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

fn open_up(lab: &Lab) -> Vec<PathBuf> {
    let all = files(&lab.session());
    all.into_iter().filter(|path| fs::metadata(path).unwrap().len() > 0).collect()
}

/// Every third bit of a small file, so that each byte has some and each place in a byte is met; of a larger one also each
/// bit of the first and last bytes, and one in each other byte or block. With `NONO_EVERY_STEP` three times as many.
fn bits(length: usize) -> Vec<usize> {
    let step = if length > 100_000 {
        4099 * 8 + 1
    } else if length > 1000 {
        11
    } else if length > 300 {
        3
    } else {
        1
    };
    let step = if std::env::var_os("NONO_EVERY_STEP").is_some() { step } else { step * 3 };
    let edge = if length > 100_000 { 40 * 8 } else { 0 };
    let total = length * 8;
    (0..total).filter(|bit| *bit < edge || bit + edge >= total || bit % step == 0).collect()
}

fn every_bit(lab: &Lab) {
    let right = list(&lab.tree());
    let mut missed = Vec::new();
    let mut count = 0u32;
    for path in open_up(lab) {
        let bytes = fs::read(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions();
        trees::mode(&path, 0o600);
        let mut unnoticed = 0;
        for bit in bits(bytes.len()) {
            flip(&path, &bytes, bit);
            fs::set_permissions(&path, mode.clone()).unwrap();
            count += 1;
            // A session's own note is rewritten when the session is opened.
            if noticed(lab, &path).is_none() && fs::read(&path).unwrap() != bytes {
                unnoticed += 1;
                if unnoticed < 4 {
                    missed.push(format!("{} bit {bit}", path.display()));
                }
            }
            trees::mode(&path, 0o600);
        }
        fs::write(&path, &bytes).unwrap();
        fs::set_permissions(&path, mode).unwrap();
        if unnoticed >= 4 {
            missed.push(format!("{}: {unnoticed} bits", path.display()));
        }
    }
    assert!(missed.is_empty(), "flipped and not noticed: {missed:#?}");
    println!("{count} bits");
    let mut manager = lab.manager().unwrap();
    super::lab::assert_clean(&mut manager, "after all bits are as they were");
    assert_eq!(list(&lab.tree()), right, "the tree was touched");
}

#[test]
fn every_bit_of_a_new_store() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    tiny(&lab, false);
    every_bit(&lab);
}

#[test]
fn every_bit_of_a_settled_store() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    tiny(&lab, true);
    every_bit(&lab);
}

/// Large objects, compressed and not.
#[test]
fn bits_of_large_objects() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    write(&lab.tree().join("noise"), noise((4 << 20) + 11, 3));
    write(&lab.tree().join("text"), "compressible\n".repeat(400_000));
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    let large = lab.store().join("large");
    large_bits(&lab, &large);
    manager.settle().unwrap();
    large_bits(&lab, &large);
}

fn large_bits(lab: &Lab, large: &Path) {
    for path in files(large) {
        let bytes = fs::read(&path).unwrap();
        let all = bits(bytes.len());
        for bit in all.iter().step_by(all.len().div_ceil(24)) {
            flip(&path, &bytes, *bit);
            assert!(noticed(lab, &path).is_some(), "{} bit {bit}", path.display());
        }
        fs::write(&path, &bytes).unwrap();
    }
}

/// With a flipped bit anywhere, a restore gives the right bytes or an error; never other bytes.
#[test]
fn nothing_wrong_is_restored() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    write(&lab.tree().join("a"), "aaaa bbbb ".repeat(12));
    write(&lab.tree().join("d/b"), "b");
    let right = list(&lab.tree());
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    manager.settle().unwrap();
    drop(manager);
    write(&lab.tree().join("a"), "changed");
    write(&lab.tree().join("d/b"), "changed too");
    write(&lab.tree().join("new"), "and new");
    let changed = list(&lab.tree());
    lab.save("start");
    let (mut refused, mut done) = (0, 0);
    let all = open_up(&lab).into_iter().map(|path| (fs::metadata(&path).unwrap().len(), path));
    for (length, path) in all.collect::<Vec<_>>() {
        let bits = usize::try_from(length).unwrap() * 8;
        for bit in (0..bits).step_by(bits / 24 + 1) {
            lab.reset("start");
            let mode = fs::metadata(&path).unwrap().permissions();
            let bytes = fs::read(&path).unwrap();
            trees::mode(&path, 0o600);
            flip(&path, &bytes, bit);
            fs::set_permissions(&path, mode).unwrap();
            let when = format!("{} bit {bit}", path.display());
            let restored = lab.manager().and_then(|mut manager| manager.restore_to(0));
            for (name, item) in list(&lab.tree()) {
                let known = [right.get(&name), changed.get(&name)].into_iter().flatten();
                let known = known.into_iter().any(|known| known.same_bytes(&item));
                assert!(known, "{when}: {}: {item:?}", name.display());
            }
            match restored {
                Ok(restored) if restored.failed.is_empty() => {
                    done += 1;
                    let differences = trees::differences(&list(&lab.tree()), &right);
                    assert!(differences.is_empty(), "{when}: {differences:#?}");
                }
                _ => refused += 1,
            }
        }
    }
    println!("{refused} refused, {done} restored all the same");
    assert!(refused > 10);
}
