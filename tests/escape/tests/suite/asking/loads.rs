//! Floods: a process that is refused, or waits for an answer, slows down only itself.

use std::fs;
use std::io::Write;

use super::{Asked, new_world, questions, ruled, without};
use crate::harness::child::Verdict;
use crate::harness::{Mode, controls_only};

/// `NONO_FLOOD_SECONDS` makes each of the six rounds a long one; then `NONO_ESCAPE_LIMIT` has to be longer, too.
fn seconds() -> f64 {
    std::env::var("NONO_FLOOD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0.4)
}

fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Opens of other processes keep at least half of their speed. Other tests run beside this one and take their share, so
/// one good measurement of several is enough: a flood that starves others does so each time.
#[test]
fn a_flood_of_refusals_slows_no_other_process() {
    if controls_only() {
        return;
    }
    let seen: Vec<u64> = (0..5).map(|_| flood()).take_while(|percent| *percent < 50).collect();
    assert!(seen.len() < 5, "percent of their speed that others keep: {seen:?}");
}

/// Percentage of their speed that others keep. Memory does not grow with the flood, and it is one line in the report.
fn flood() -> u64 {
    let world = new_world();
    let steps = format!("flood {{prj}}/own {{out}}/secret 64 {}", seconds());
    let mut asked = Asked::start(&world, &steps);
    asked.question();
    let before = resident(asked.child.id());
    asked.answer("deny");
    let said = asked.child.hear(&["FLOOD:", "ESCAPED", "BROKEN"]).expect("a measurement");
    drop(writeln!(std::io::stderr(), "{said}"));
    let after = resident(asked.child.id());
    let percent: u64 = said.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    asked.child.say("");
    let outcome = asked.finish();
    assert!(outcome.verdict() == Verdict::Worked, "{outcome}");
    assert!(after < before + 32 * 1024, "it had {before} kB, and has {after} kB");
    assert_eq!(questions(&outcome), 1, "{outcome}");
    let counts: Vec<u64> = outcome
        .output
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"count\": "))
        .filter_map(|number| number.trim_end_matches(',').parse().ok())
        .collect();
    assert_eq!(counts.len(), 1, "one line: {outcome}");
    assert!(counts[0] > 1000, "a flood: {counts:?}");
    percent
}

#[test]
fn while_one_waits_others_go_on() {
    if controls_only() {
        return;
    }
    let world = new_world();
    let mut asked = Asked::start(&world, "goes-on {out}/target {prj}/own 1000");
    asked.question();
    asked.child.say("");
    asked.child.hear(&["WENT ON"]).expect("the others go on");
    asked.answer("once");
    let outcome = asked.finish();
    assert!(outcome.verdict() == Verdict::Worked, "{outcome}");
}

#[test]
fn a_crowd_is_refused_one_by_one() {
    let control = without(&new_world(), "crowd {out}/secret 2000", |_| ());
    assert!(control.verdict() == Verdict::Escaped, "control failed: proves nothing: {control}");
    if controls_only() {
        return;
    }
    let outcome = ruled("crowd {out}/secret 2000", &[r#""path": "/**", "action": "deny""#]).once(Mode::Run);
    assert!(outcome.verdict() == Verdict::Blocked, "{outcome}");
    assert!(outcome.output.contains("2000 of 2000 refused"), "{outcome}");
}

/// Each call that waits for an answer costs the supervisor a descriptor. However many there are, some descriptors are
/// left: it answers, and goes on.
#[test]
fn more_who_wait_than_descriptors() {
    if controls_only() {
        return;
    }
    let world = new_world();
    let few = ["prlimit", "--nofile=64:64"].map(str::to_owned);
    let mut asked = Asked::start_through(&world, &few, "many-questions {out}/secret 250 {out}/target");
    asked.question();
    asked.child.hear(&["WAITING"]).expect("all ask");
    asked.answer("never");
    asked.child.say("");
    let question = asked.question();
    assert!(question.contains("outside/target"), "{question}");
    asked.answer("once");
    let outcome = asked.finish();
    assert!(outcome.verdict() == Verdict::Worked, "{outcome}");
}
