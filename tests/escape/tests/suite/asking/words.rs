//! Requests on the request socket: the answer is what was approved, for a process inside, once.

use std::fs;

use super::own::furnish;
use super::{Asked, new_world, questions};
use crate::harness::child::{Child, Outcome, Verdict};
use crate::harness::controls_only;

/// Answers the first request with yes, the others with no.
fn once(steps: &str) -> Outcome {
    let world = new_world();
    furnish(&world);
    let mut asked = Asked::start(&world, steps);
    for answer in ["once", "deny", "deny"] {
        asked.answer(answer);
    }
    asked.finish()
}

#[test]
fn the_descriptor_is_what_was_asked_for() {
    if controls_only() {
        return;
    }
    let outcome = once("ask-words 1 read {out}/target");
    assert!(outcome.verdict() == Verdict::Escaped && outcome.output.contains("harmless"), "{outcome}");
    assert!(
        outcome.output.contains("ANSWER: 1 descriptors") && outcome.output.contains("ACCESS: 0"),
        "{outcome}"
    );
    let outcome = once("ask-words 1 read+write {out}/target");
    assert!(outcome.output.contains("ACCESS: 2"), "{outcome}");
    let outcome = once("raise-words 1 {out}/target");
    assert!(outcome.verdict() == Verdict::Blocked, "{outcome}");
}

#[test]
fn what_was_shown_is_what_is_given() {
    if controls_only() {
        return;
    }
    let world = new_world();
    let mut asked = Asked::start(&world, "ask-words 1 read {prj}/../outside/./target");
    let question = asked.question();
    assert!(question.contains(&format!("path: \"{}\"", world.expand("{out}/target"))), "{question}");
    fs::rename(world.path("outside/secret"), world.path("outside/target")).expect("rename");
    asked.answer("once");
    let outcome = asked.finish();
    assert!(!outcome.output.contains(&world.secret), "{outcome}");
    assert!(outcome.output.contains("harmless"), "{outcome}");
}

#[test]
fn an_id_is_good_once() {
    if controls_only() {
        return;
    }
    let outcome = once("ask-words same read {out}/target , ask-words same read {out}/secret");
    assert!(outcome.verdict() == Verdict::Blocked && outcome.output.contains("replayed"), "{outcome}");
    assert_eq!(questions(&outcome), 1, "{outcome}");
}

#[test]
fn what_is_closed_is_closed_in_words() {
    if controls_only() {
        return;
    }
    for path in [
        "{home}/.ssh/id_rsa",
        "{prj}/key",
        "{out}/keys/id_rsa",
        "{out}/alias",
        "{home}/.nono/state",
        "/proc/self/root{out}/secret",
        "/proc/self/fd/0",
        "/dev/stdin",
        "/proc/self/mem",
    ] {
        let outcome = once(&format!("ask-words 1 read {path}"));
        assert!(outcome.verdict() == Verdict::Blocked, "{path}: {outcome}");
        assert_eq!(questions(&outcome), 0, "{path}: {outcome}");
        assert!(!outcome.output.contains("SECRET-"), "{path}: {outcome}");
    }
}

/// The same user, outside, with the name of the channel.
#[test]
fn who_is_outside_is_not_talked_to() {
    if controls_only() {
        return;
    }
    let world = new_world();
    let mut asked = Asked::start(&world, "show-channel , ask-words 1 read {out}/target");
    let said = asked.child.hear(&["CHANNEL "]).expect("a channel");
    let mut command = world.command(&world.program("attacks"));
    command.args(world.expand("ask-words 2 read {out}/secret").split_whitespace());
    command.env("NONO_REQUEST_SOCK", said.trim_start_matches("CHANNEL "));
    let outside = Child::start(command, None).finish();
    assert!(outside.verdict() == Verdict::Blocked && outside.output.contains("stranger"), "{outside}");
    asked.child.say("");
    asked.answer("once");
    let outcome = asked.finish();
    assert!(outcome.verdict() == Verdict::Escaped, "from inside it is: {outcome}");
    assert_eq!(questions(&outcome), 1, "{outcome}");
}
