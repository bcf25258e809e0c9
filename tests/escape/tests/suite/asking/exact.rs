//! An open on the command's behalf is the same as one without nono: the same flags, modes and errors for every request.

use super::{new_world, ruled, without};
use crate::harness::child::{Outcome, Verdict};
use crate::harness::{Mode, controls_only};

const EVERYTHING: &[&str] = &[
    r#""path": "{out}/**", "action": "allow", "scope": "directory""#,
    r#""path": "{out}", "action": "allow""#,
];

fn lines(outcome: &Outcome) -> Vec<&str> {
    outcome.output.lines().filter_map(|line| line.strip_prefix("EXACT ")).collect()
}

/// Known differences, and why they are right.
fn is_known(plain: &str, with: &str) -> bool {
    // The judged object is opened through its descriptor's name, which is a link: `O_NOFOLLOW` was checked before, but
    // is no longer among the flags.
    with.starts_with("nofollow of ") && plain.replacen("flags 05", "flags 01", 1) == with
}

#[test]
fn as_without_nono() {
    let world = new_world();
    let prepared = without(&world, "exact-prepare {out}", |_| ());
    assert!(prepared.verdict() == Verdict::Worked, "{prepared}");
    let plain = without(&world, "exact {out}", |_| ());
    assert!(plain.verdict() == Verdict::Worked, "{plain}");
    assert!(lines(&plain).len() > 500, "control failed: proves nothing: {plain}");
    if controls_only() {
        return;
    }
    let attack = ruled("exact {out}", EVERYTHING).before("exact-prepare {out}");
    let asked = attack.once(Mode::Run);
    assert!(asked.verdict() == Verdict::Worked, "{asked}");
    let (plain, asked) = (lines(&plain), lines(&asked));
    assert_eq!(plain.len(), asked.len());
    let differ: Vec<_> = plain
        .iter()
        .zip(&asked)
        .filter(|(plain, asked)| plain != asked && !is_known(plain, asked))
        .map(|(plain, asked)| format!("{plain}\n    with nono: {asked}"))
        .collect();
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), differ.join("\n"));
}
