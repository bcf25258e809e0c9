//! Nothing outlives its session: not when the command ends, not when the supervisor is killed.
//! A survivor holds a file lock; whether it lives is whether the lock is free.

use crate::harness::child::{Child, Outcome, Verdict, kill};
use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack, controls_only};

/// Asks for the lock, from outside: `now`, or `wait` until it is free.
fn lock(world: &World, when: &str) -> Outcome {
    let mut command = world.command(&world.program("attacks"));
    command.args(["lock-free", when, &world.expand("{prj}/lock")]);
    Child::start(command, None).finish()
}

/// Without nono the survivor lives on; it is ended here by the pid that it recorded.
fn control(attack: &Attack, ends: fn(Child) -> Outcome) {
    let world = World::new("/var/tmp", false);
    let mut child = attack.running(&world, None);
    child.hear(&["LEFT", "TRIED"]);
    let outcome = ends(child);
    let lock = lock(&world, "now");
    let pid = std::fs::read_to_string(world.path("project/lock")).unwrap_or_default();
    if lock.verdict() == Verdict::Blocked && !pid.trim().is_empty() {
        kill(pid.trim());
    }
    end_user(&world);
    assert!(lock.verdict() == Verdict::Blocked, "control failed: proves nothing: {outcome}{lock}");
}

/// A fluttering survivor has a new pid all the time, but a user of its own: ends that user's processes until the lock
/// is free.
fn end_user(world: &World) {
    let mut command = world.command("/bin/kill".as_ref());
    command.args(["-KILL", "--", "-1"]);
    while world.user.is_some() && lock(world, "now").verdict() == Verdict::Blocked {
        command.status().expect("kill");
    }
}

fn gone(attack: &Attack, mode: Mode, ends: fn(Child) -> Outcome, when: &str) {
    let world = World::new("/var/tmp", false);
    let mut child = attack.running(&world, Some(mode));
    let said = child.hear(&["LEFT", "TRIED"]);
    let outcome = ends(child);
    let lock = lock(&world, when);
    end_user(&world);
    assert!(said.is_some(), "{mode:?}: the survivor was not even started: {outcome}");
    assert!(lock.verdict() == Verdict::Worked, "{mode:?}: it survived: {outcome}{lock}");
}

fn killed(child: Child) -> Outcome {
    kill(&child.id().to_string());
    child.finish()
}

fn check(attack: &Attack, ends: fn(Child) -> Outcome, when: &str) {
    control(attack, ends);
    if !controls_only() {
        for mode in Mode::WITH_PARENT {
            gone(attack, *mode, ends, when);
        }
    }
}

#[test]
fn end_of_the_command() {
    check(&attack("survivor quiet {prj}/lock"), Child::finish, "now");
}

#[test]
fn end_of_the_command_with_a_chain_of_forks() {
    check(&attack("survivor flutter {prj}/lock"), Child::finish, "now");
}

/// The parent waits for it as if it were the command.
#[test]
fn end_of_the_command_with_a_sibling() {
    check(&attack("survivor sibling {prj}/lock").launched(), Child::finish, "now");
}

#[test]
fn kill_of_the_supervisor() {
    check(&attack("survivor quiet {prj}/lock stay"), killed, "wait");
}

#[test]
fn kill_of_the_supervisor_with_a_chain_of_forks() {
    check(&attack("survivor flutter {prj}/lock stay"), killed, "wait");
}

/// However many processes there are to reap, a limit is enforced: init must not spend all its time reaping.
fn ended_by_a_limit(attack: &Attack, code: i32) {
    control(attack, killed);
    for mode in Mode::WITH_PARENT.iter().filter(|_| !controls_only()) {
        let world = World::new("/var/tmp", false);
        let outcome = attack.running(&world, Some(*mode)).finish();
        let lock = lock(&world, "now");
        end_user(&world);
        assert!(outcome.output.contains("LEFT"), "{mode:?}: the swarm was not even started: {outcome}");
        assert!(outcome.status.code() == Some(code), "{mode:?}: {outcome}");
        assert!(lock.verdict() == Verdict::Worked, "{mode:?}: it survived: {outcome}{lock}");
    }
}

/// One after the other: two swarms at a time would slow each other down.
#[test]
fn limits_of_a_swarm() {
    ended_by_a_limit(&attack("swarm plain 300 {prj}/lock").flags("--max-time 2s"), 124);
    ended_by_a_limit(&attack("swarm hungry 50 {prj}/lock").flags("--max-memory 150M"), 137);
}
