//! Nothing is put back from inside unless a person says so.

use super::*;
use nono_testkit::screen::Screen;

const SCRIPT: &str = "prompt; before $PWD/src/a; echo two > src/a; after $PWD/src/a; nono checkpoints restore 1; \
                      echo came to $?";

#[test]
fn without_a_terminal_the_answer_is_no() {
    let world = world();
    let ran = agent(&world, USUAL, SCRIPT);
    assert_eq!(ran.code, 0);
    assert!(ran.out.ends_with("came to 1\n"), "{}", ran.out);
    assert!(ran.err.contains("there is no terminal to ask on"), "{}", ran.err);
    assert_eq!(read(&world, "work/src/a"), "two\n");
}

fn asked(world: &World, screen: &Screen<'_>, key: &str) {
    world.file("bin/script.sh", &format!(". {}\n{SCRIPT}\n", world.path("bin/agent.sh").display()), 0o644);
    let bin = world.path("bin").display().to_string();
    screen.start(&format!("nono run --allow-cwd --checkpoints --read {bin} -- sh {bin}/script.sh"));
    screen.wait_for("Allow? [y/N]");
    let text = screen.text();
    for part in ["put everything back to the state of checkpoint", "taken: \"before run:", "1 path changes"] {
        let whole = text.replace("\n[nono]   ", "").replace("\n[nono] ", "");
        assert!(whole.contains(part), "{part}: {text}");
    }
    assert!(text.contains("work"), "{text}");
    screen.key(key);
}

#[test]
fn the_person_agrees() {
    let world = world();
    let screen = Screen::new(&world);
    asked(&world, &screen, "y");
    screen.wait_for("came to 0");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(read(&world, "work/src/a"), "one\n");
    assert!(nono(&world, &["audit", "show", "last"]).code == 0);
    assert_eq!(nono(&world, &["checkpoints", "undo", "--yes"]).code, 0);
    assert_eq!(read(&world, "work/src/a"), "two\n", "and it can be taken back");
}

#[test]
fn the_person_does_not() {
    let world = world();
    let screen = Screen::new(&world);
    asked(&world, &screen, "n");
    screen.wait_for("came to 1");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(read(&world, "work/src/a"), "two\n");
}
