//! Requests that end without an answer: the process that asked dies, or the approver does.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use super::{Asked, new_world, questions, ruled, without};
use crate::harness::attack::skip;
use crate::harness::child::{Verdict, kill};
use crate::harness::{Mode, controls_only};

#[test]
fn who_dies_is_not_answered_and_the_next_one_is() {
    if controls_only() {
        return;
    }
    let world = new_world();
    let mut asked = Asked::start(&world, "ask-and-die {out}/secret , read {out}/target");
    let first = asked.question();
    assert!(first.contains("outside/secret"), "{first}");
    asked.child.say("");
    asked.child.hear(&["withdrawn"]).expect("the question is withdrawn");
    let second = asked.question();
    assert!(second.contains("outside/target"), "{second}");
    // The first answer has no waiter any more.
    asked.answered += 1;
    asked.answer("once");
    let outcome = asked.finish();
    assert!(outcome.verdict() == Verdict::Escaped && outcome.output.contains("harmless"), "{outcome}");
}

#[test]
fn a_storm_of_signals_is_one_question() {
    let control = without(&new_world(), "storm {out}/target plain", |_| ());
    assert!(control.verdict() == Verdict::Worked, "control failed: proves nothing: {control}");
    for how in ["plain", "restart"].iter().filter(|_| !controls_only()) {
        let world = new_world();
        let mut asked = Asked::start(&world, &format!("storm {{out}}/target {how}"));
        asked.question();
        // The timer fires repeatedly in that time. Where the kernel holds signals back while the call is judged, they
        // are one pending signal, so only that there was one can be checked.
        std::thread::sleep(Duration::from_millis(300));
        asked.answer("once");
        asked.answer("deny");
        let outcome = asked.finish();
        let alarms = outcome.output.lines().find_map(|line| line.strip_prefix("ALARMS: "));
        let alarms: u64 = alarms.and_then(|number| number.parse().ok()).unwrap_or(0);
        assert!(outcome.verdict() == Verdict::Worked && alarms >= 1, "{how}: {outcome}");
        assert_eq!(questions(&outcome), 1, "{how}: {outcome}");
    }
}

/// Processes of a user.
fn processes_of(user: u32) -> Vec<String> {
    let of_user = |entry: &fs::DirEntry| {
        let number = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let is_left = !stat.is_empty() && !stat.contains(") Z ");
        number && is_left && entry.metadata().is_ok_and(|meta| meta.uid() == user)
    };
    let all = fs::read_dir("/proc").expect("proc").flatten();
    all.filter(of_user)
        .map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
        .collect()
}

/// Killed while a request waits: everything inside dies with it, and the open that waited never came back.
#[test]
fn a_killed_supervisor_takes_everything_with_it() {
    if controls_only() {
        return;
    }
    for steps in ["open-and-tell {out}/secret {prj}/told", "many-questions {out}/no%d 20 {out}/secret"] {
        let world = new_world();
        let Some(user) = world.user else {
            assert!(skip(steps, "needs a harness that root started").is_empty());
            return;
        };
        let many = steps.starts_with("many");
        let mut asked = Asked::start(&world, steps);
        if many {
            for number in 0..20 {
                fs::write(world.path(&format!("outside/no{number}")), "x").expect("write");
            }
        }
        asked.question();
        assert!(processes_of(user).len() > 1, "control failed: proves nothing");
        kill(&asked.child.id().to_string());
        let patience = Instant::now() + Duration::from_secs(10);
        loop {
            let left = processes_of(user);
            if left.is_empty() {
                break;
            }
            assert!(Instant::now() < patience, "`{steps}` left {left:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let outcome = asked.finish();
        assert!(!outcome.output.contains(&world.secret) && !outcome.output.contains("ESCAPED"), "{outcome}");
        let told = fs::read_to_string(world.path("project/told")).unwrap_or_default();
        assert!(!told.contains("opened"), "`{steps}`: {told}");
    }
}

#[test]
fn without_a_free_descriptor_the_error_is_the_kernels() {
    let control = without(&new_world(), "exhausted {out}/target {out}/secret", |_| ());
    assert!(control.verdict() == Verdict::Worked, "control failed: proves nothing: {control}");
    if controls_only() {
        return;
    }
    let outcome = ruled(
        "exhausted {out}/target {out}/secret",
        &[
            r#""path": "{out}/secret", "action": "deny""#,
            r#""path": "{out}/**", "access": "read", "action": "allow""#,
        ],
    )
    .once(Mode::Run);
    assert!(outcome.verdict() == Verdict::Worked, "{outcome}");
}

/// A second listener would see nothing of what the first one answers; it is refused, and the report says so.
#[test]
fn a_listener_of_its_own_is_refused_and_told() {
    let control = without(&new_world(), "own-listener", |_| ());
    assert!(control.verdict() == Verdict::Escaped, "control failed: proves nothing: {control}");
    if controls_only() {
        return;
    }
    let world = new_world();
    let outcome = Asked::start(&world, "own-listener").finish();
    assert!(outcome.verdict() == Verdict::Blocked && outcome.errno() == "EBUSY", "{outcome}");
    assert!(outcome.output.contains("install a seccomp listener"), "{outcome}");
}

/// nono inside nono, with `--ask` on both sides: a clear message, and no way around the outer one.
#[test]
fn nono_inside_nono() {
    if controls_only() {
        return;
    }
    let deny: &[&str] = &[r#""path": "/**", "action": "deny""#];
    let outcome = ruled("run-program {bin}/nono run --ask -- cat {out}/secret", deny).once(Mode::Run);
    assert!(outcome.errors.contains("--ask needs a supervisor, and inside a nono sandbox"), "{outcome}");
    for steps in
        ["run-program {bin}/nono run -- cat {out}/secret", "run-program {bin}/nono wrap -- cat {out}/secret"]
    {
        let outcome = ruled(steps, deny).once(Mode::Run);
        assert!(!outcome.output.contains("SECRET-"), "{outcome}");
        assert!(outcome.errors.contains("ermission denied"), "cat was refused: {outcome}");
    }
}
