//! Known to be open, by design: what these see is metadata, or what they touch was handed in by the user.
//! They fail nothing; they print what this machine does, so that SECURITY.md can be held against it.

use std::io::Write;

use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack, controls_only};

fn print(what: &str, attack: &Attack) {
    for mode in Mode::ALL.iter().filter(|_| !controls_only()) {
        let outcome = attack.running(&World::new("/var/tmp", false), Some(*mode)).finish();
        drop(writeln!(std::io::stderr(), "open by design? {what}: {mode:?}: {:?}", outcome.verdict()));
    }
}

#[test]
fn metadata_and_handed_in_files() {
    print("stat of a file outside", &attack("stat {out}/secret"));
    print("inotify on a folder outside", &attack("inotify {out}"));
    print("chmod of a file given on stdin", &attack("stdin-meta").input("{out}/target"));
}
