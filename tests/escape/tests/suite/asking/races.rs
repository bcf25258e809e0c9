//! Arguments that another thread changes a million times while they are judged.

use std::fs;

use super::{Asked, new_world, ruled, without, write_rules};
use crate::harness::attack::{BARE, has_bwrap, skip};
use crate::harness::child::Verdict;
use crate::harness::fixture::{Maker, Nothing};
use crate::harness::{Attack, Mode, attacks, controls_only};

/// Reading is approved, except of `secret` and the `target` that is a second name of it.
const READING: &[&str] = &[
    r#""path": "{out}/secret", "action": "deny""#,
    r#""path": "{out}/dir2/*", "action": "deny""#,
    r#""path": "{out}/**", "access": "read", "action": "allow", "scope": "session""#,
];

fn raced(steps: &'static str) -> Attack {
    ruled(steps, READING)
}

/// Two folders with a `target` each.
fn between(steps: &'static str) -> Attack {
    let folders: Maker = Box::new(|world| {
        fs::create_dir(world.path("outside/dir2")).expect("mkdir");
        world.own(&world.path("outside/dir2"), 0o755);
        fs::hard_link(world.path("outside/secret"), world.path("outside/dir2/target")).expect("link");
        write_rules(world, READING);
        Box::new(Nothing)
    });
    raced(steps).leaks().against(folders)
}

attacks! {
    paths:
        raced("race-path {out}/target {out}/secret").leaks(),
        raced("race-path-2 {out}/target {out}/secret").leaks();
    links: raced("symlink {prj}/own {prj}/flip , race {prj}/flip {out}/target {out}/secret").leaks();
    flags_in_memory: raced("race-how {out}/target");
    working_directories: between("race-cwd {out}/dir {out}/dir2 target");
    folders_of_descriptors:
        between("race-dirfd {out}/dir {out}/dir2 target"),
        between("race-beneath {out}/dir {out}/dir2 target");
    reading_is_not_writing:
        raced("raise-rights {out}/target /proc/self/fd/%d"),
        raced("raise-rights {out}/target /dev/fd/%d"),
        raced("raise-rights {out}/target /proc/thread-self/fd/%d"),
        raced("raise-rights {out}/target path"),
        raced("raise-rights {out}/target {out}/target");
}

/// The control is another call, since a descriptor for reading cannot be written to anywhere.
#[test]
fn a_descriptor_for_reading_is_no_more() {
    let control = without(&new_world(), "write-rights {out}/target", |_| ());
    assert!(control.verdict() == Verdict::Escaped, "control failed: proves nothing: {control}");
    if !controls_only() {
        let outcome = raced("raise-rights {out}/target write").once(Mode::Run);
        assert!(outcome.verdict() == Verdict::Blocked, "{outcome}");
    }
}

/// On a machine without namespaces. (Who owns a file of rules is not visible in the one that simulates this, so the
/// test answers: yes to the first request, no to all others.)
#[test]
fn without_namespaces() {
    if !has_bwrap() {
        assert!(skip("without namespaces", "bwrap is not installed").is_empty());
        return;
    }
    let bare: Vec<_> = BARE.split(' ').map(str::to_owned).collect();
    for steps in [
        "race-path {out}/target {out}/secret",
        "race-how {out}/target",
        "raise-rights {out}/target /proc/self/fd/%d",
        "raise-rights {out}/target {out}/target",
    ] {
        let control = without(&new_world(), steps, |_| ());
        assert!(
            control.verdict() == Verdict::Escaped,
            "`{steps}`: control failed: proves nothing: {control}"
        );
        if controls_only() {
            continue;
        }
        let world = new_world();
        let mut asked = Asked::start_through(&world, &bare, steps);
        asked.answer("session");
        for _ in 0..10 {
            asked.answer("deny");
        }
        let outcome = asked.finish();
        assert!(outcome.verdict() == Verdict::Blocked, "`{steps}`: {outcome}");
        assert!(!outcome.output.contains(&world.secret), "`{steps}`: {outcome}");
    }
}
