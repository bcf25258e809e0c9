//! Inputs that fuzzing began with and those it found worth keeping: what holds there holds here, on every machine.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../../../fuzz/checks/body.rs"]
mod body;
#[path = "../../../../fuzz/checks/request.rs"]
mod request;
#[path = "../../../../fuzz/checks/sni.rs"]
mod sni;

use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{}", folder.display());
    for file in files {
        check(&std::fs::read(file).unwrap());
    }
}

#[test]
fn heads() {
    replay("request", request::check);
}

#[test]
fn greetings() {
    replay("sni", sni::check);
}

#[test]
fn bodies() {
    replay("body", body::check);
}
