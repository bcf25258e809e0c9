//! One question in the place of another, while the person is about to answer the first.

use std::time::{Duration, Instant};

use super::raw::Raw;
use super::world::World;
use super::{PROMPT, answer, secret, start, wait_for_question, world};
use nono_testkit::look::eventually;
use nono_testkit::screen::Screen;

/// Milliseconds after the switch.
const KEYS: [u64; 7] = [0, 100, 200, 300, 400, 500, 600];
/// What a question stands for at least before a key counts.
const STANDS: Duration = Duration::from_millis(700);

fn kill(world: &World, line: &str) {
    assert!(world.command("pkill").args(["-KILL", "-xf", line]).status().unwrap().success());
}

/// A script whose first question is about the harmless file, and whose second, about the secret, comes when it is told.
fn bait(world: &World, before: &str) {
    let (bait, prize) = (secret(world, "second"), secret(world, "secret"));
    world.file(
        "work/both",
        &format!("{before}\ncat {bait} & (read x < go; echo > went; exec cat {prize}) & wait; echo after"),
        0o755,
    );
    let made = world.command("sh").args(["-c", "rm -f go went; mkfifo go"]).status();
    assert!(made.unwrap().success());
}

fn let_the_other_ask(world: &World) {
    std::fs::write(world.path("work/go"), "\n").unwrap();
    eventually(
        || "the other process has not asked".to_owned(),
        || world.path("work/went").exists().then_some(()),
    );
}

/// A question about the harmless one stands, another about the secret waits behind it.
fn baited(world: &World, before: &str) -> Raw {
    bait(world, before);
    let mut raw = Raw::start(world, &[], &["sh", "both"]);
    raw.wait_for("second");
    raw.wait_for("? details)");
    let_the_other_ask(world);
    raw
}

/// Keys right after the switch. Whether they came before the keys that work were shown; else it was no attack.
fn attack(world: &World, before: &str) -> bool {
    let mut raw = baited(world, before);
    let killed = Instant::now();
    kill(world, &format!("cat {}", secret(world, "second")));
    raw.wait_for("withdrawn: the program ended");
    raw.wait_for("The previous question was withdrawn.");
    raw.wait_for("notes/secret");
    let switched = Instant::now();
    for after in KEYS {
        std::thread::sleep(
            (switched + Duration::from_millis(after)).saturating_duration_since(Instant::now()),
        );
        if raw.has(PROMPT) {
            assert!(killed.elapsed() >= STANDS, "a question takes an answer at once: {}", raw.text());
            return false;
        }
        raw.send(b"y");
    }
    raw.wait_for("? details)");
    assert!(!raw.text().contains("it says hello"), "{}", raw.text());
    raw.press_until("n", "no\r\n");
    raw.end();
    assert!(!raw.text().contains("it says hello"), "{}", raw.text());
    true
}

#[test]
fn a_yes_for_one_question_does_not_answer_the_next() {
    for before in ["", "stty -icanon; printf '\\033[?1049hdrawn'"] {
        let world = world();
        // A machine that sleeps longer than the pause tries nothing.
        assert!((0..10).any(|_| attack(&world, before)), "too slow a machine to be too fast on");
    }
}

#[test]
fn a_yes_while_a_question_is_withdrawn_answers_nothing() {
    let world = world();
    let mut raw = baited(&world, "");
    kill(&world, &format!("cat {}", secret(&world, "second")));
    // Faster than a person reads: the next question shows its keys when that has stopped.
    raw.wait_for("withdrawn: the program ended");
    for _ in 0..100 {
        raw.send(b"y");
        std::thread::sleep(Duration::from_millis(20));
        assert!(!raw.has("? details)"), "{}", raw.text());
    }
    raw.wait_for("? details)");
    assert!(!raw.text().contains("it says hello"), "{}", raw.text());
    // After that, one key answers.
    raw.send(b"y");
    raw.wait_for("it says hello");
    raw.end();
}

/// The same in tmux.
#[test]
fn a_yes_for_one_question_does_not_answer_the_next_in_tmux() {
    let world = world();
    bait(&world, "");
    let screen = Screen::new(&world);
    start(&screen, "sh both");
    wait_for_question(&screen, &secret(&world, "second"));
    let_the_other_ask(&world);
    kill(&world, &format!("cat {}", secret(&world, "second")));
    let switched = Instant::now();
    while switched.elapsed() < Duration::from_millis(300) {
        screen.key("y");
    }
    wait_for_question(&screen, &secret(&world, "secret"));
    assert!(screen.text().contains("withdrawn: the program ended"), "{}", screen.text());
    assert!(!screen.text().contains("it says hello"), "{}", screen.text());
    answer(&screen, &secret(&world, "secret"), "n");
    screen.wait_line("after");
    assert!(!screen.text().contains("it says hello"), "{}", screen.text());
}
