//! A command that tries to answer for the person, or to keep them from seeing what they answer.

use super::{secret, start, wait_for_question, world};
use nono_testkit::look::eventually;
use nono_testkit::screen::Screen;

#[test]
fn keys_typed_before_a_question_do_not_answer_it() {
    let world = world();
    world.file("work/late", "echo up; read x < go; exec cat $1", 0o755);
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    assert_eq!(screen.run("mkfifo go"), 0);
    start(&screen, &format!("sh late {path}"));
    screen.wait_line("up");
    screen.type_text("yyyy");
    screen.wait_for("yyyy");
    std::fs::write(world.path("work/go"), "\n").unwrap();
    wait_for_question(&screen, &path);
    screen.key("n");
    screen.wait_for("Permission denied");
    assert_eq!(screen.prompt(), 1);
}

#[test]
fn an_answer_to_a_false_question_approves_nothing() {
    let world = world();
    let path = secret(&world, "secret");
    world.file(
        "work/false",
        "printf '[nono] cat (pid 1) wants to read\\n[nono]   /harmless\\n[nono] Allow? [y/N] (fake) '\nread x\nexec cat $1",
        0o755,
    );
    let screen = Screen::new(&world);
    start(&screen, &format!("sh false {path}"));
    screen.wait_for("(fake)");
    // The answer to the false one is the command's; the true one comes after it and is asked for itself.
    screen.enter("y");
    wait_for_question(&screen, &path);
    screen.key("n");
    assert_eq!(screen.prompt(), 1);
    assert!(!screen.text().contains("it says hello"));
}

#[test]
fn a_command_cannot_answer_through_its_own_terminal() {
    let world = world();
    let path = secret(&world, "secret");
    world.file(
        "work/self",
        "(while :; do printf 'y\\nyyy' > /dev/tty; sleep 0.02; done) &\ncat $1; kill $!",
        0o755,
    );
    let screen = Screen::new(&world);
    start(&screen, &format!("sh self {path}"));
    wait_for_question(&screen, &path);
    // It stands still: two looks see the same.
    assert_eq!(screen.text(), screen.text());
    screen.key("n");
    screen.wait_for("Permission denied");
    screen.prompt();
    assert!(!screen.text().contains("it says hello"), "{}", screen.text());
}

#[test]
fn names_and_screens_do_not_disguise_a_question() {
    let world = world();
    let name = "x\u{1b}[2J\u{202e}txt\r\n[nono] fine";
    std::fs::write(world.path("other/notes").join(name), "evil\n").unwrap();
    world.file("work/hide", "printf '\\033[8m\\033[3;4r\\033(0\\033]0;half'; exec cat $1/x*", 0o755);
    let screen = Screen::new(&world);
    start(&screen, &format!("sh hide {}", world.path("other/notes").display()));
    // The shell lists the folder first.
    wait_for_question(&screen, "other/notes");
    screen.key("y");
    wait_for_question(&screen, r"x\u{1b}[2J\u{202e}txt\u{d}\u{a}[nono] fine");
    screen.key("n");
    screen.prompt();
}

#[test]
fn a_question_of_a_program_that_ended_goes_away() {
    let world = world();
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    start(&screen, &format!("sh -c 'cat {path} & echo $! > pid; wait; echo after'"));
    wait_for_question(&screen, &path);
    let killed = world.command("sh").args(["-c", &format!("pkill -KILL -xf 'cat {path}'")]).status();
    assert!(killed.unwrap().success());
    screen.wait_for("withdrawn: the program ended");
    screen.wait_line("after");
    assert_eq!(screen.prompt(), 0);
}

#[test]
fn a_flood_of_output_waits_for_the_answer() {
    let world = world();
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    start(&screen, &format!("sh -c 'yes & sleep 0.2; cat {path}; kill $!; wait; echo after'"));
    wait_for_question(&screen, &path);
    screen.key("y");
    // A process that is killed in the middle of a line leaves it without an end.
    eventually(
        || screen.text(),
        || screen.text().lines().any(|line| line.trim().trim_start_matches('y') == "after").then_some(()),
    );
    screen.prompt();
}
