//! Inputs that fuzzing began with and those it found worth keeping: what holds there holds here, on every machine.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../../../fuzz/checks/audit_reader.rs"]
mod check;

use std::path::Path;

#[test]
fn records() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/audit_reader");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{}", folder.display());
    for file in files {
        check::check(&std::fs::read(file).unwrap());
    }
}
