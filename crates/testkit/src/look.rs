//! Looking from outside: at processes, at files, until something is so.

use std::fs;
use std::time::{Duration, Instant};

use crate::World;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Looks until there is an answer; `describe` says what was seen last when there is none in time.
#[track_caller]
pub fn eventually<T>(describe: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "not in time: {}", describe());
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// A file's text; empty while there is none.
pub fn read(world: &World, below: &str) -> String {
    String::from_utf8_lossy(&fs::read(world.path(below)).unwrap_or_default()).into_owned()
}

/// The processes, by pid and state, that were started with this path and are not nono.
pub fn running(world: &World, path: &str) -> Vec<(i32, char)> {
    started_with(world, path, false).into_iter().filter_map(|pid| Some((pid, state(pid)?))).collect()
}

/// The pid of the `nono` that was started with this path: the parent, not its init.
pub fn nono(world: &World, path: &str) -> Option<i32> {
    let found = started_with(world, path, true);
    found.iter().copied().find(|pid| !found.contains(&parent(*pid).unwrap_or(0)))
}

fn started_with(world: &World, path: &str, is_nono: bool) -> Vec<i32> {
    let path = world.path(path);
    let path = path.to_str().expect("text");
    let is_wanted = |words: &[&str]| words[0].ends_with("nono") == is_nono && words.contains(&path);
    let pids = fs::read_dir("/proc").expect("/proc").flatten();
    pids.filter_map(|entry| {
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        is_wanted(&line.split('\0').collect::<Vec<_>>()).then(|| entry.file_name().to_str()?.parse().ok())?
    })
    .collect()
}

/// The fields of `/proc/<pid>/stat` after the name.
fn stat(pid: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.rsplit_once(") ")?.1.to_owned())
}

fn state(pid: i32) -> Option<char> {
    stat(pid)?.chars().next()
}

fn parent(pid: i32) -> Option<i32> {
    stat(pid)?.split_whitespace().nth(1)?.parse().ok()
}
