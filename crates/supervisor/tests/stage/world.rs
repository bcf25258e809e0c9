//! Directory for each test, with this program in it where an ordinary user can start it.

use std::process::Command;

pub(crate) use nono_testkit::World;
use nono_testkit::is_root;
use nono_testkit::user::STAGE;

/// Directories `{bin,home,tmp,work}`; commands start in `work`.
pub(crate) fn world() -> World {
    let folders = ["bin", "home", "tmp", "work"].map(|name| (name, 0o755));
    let world = World::new(is_root().then_some(STAGE), &folders);
    // By another process: a thread that forks while this one has the copy open for writing would keep it busy.
    let binary = std::env::current_exe().unwrap();
    assert!(Command::new("cp").arg(binary).arg(world.path("bin/player")).status().unwrap().success());
    let mut fifo = Command::new("mkfifo");
    assert!(fifo.args(["-m", "666"]).arg(world.path("tmp/ask")).status().unwrap().success());
    world
}
