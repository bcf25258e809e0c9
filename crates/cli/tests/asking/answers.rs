//! What each key does.

use super::{PROMPT, answer, secret, settings, start, wait_for_question, world};
use nono_testkit::look::{eventually, read};
use nono_testkit::screen::Screen;

#[test]
fn yes_opens_it_once_and_anything_else_does_not() {
    let world = world();
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    let before = settings(&world, &screen);
    for (key, status, text) in [
        ("y", 0, "it says hello"),
        ("n", 1, "Permission denied"),
        ("Enter", 1, "Permission denied"),
        ("Escape", 1, "Permission denied"),
        ("C-c", 1, "Permission denied"),
        ("C-d", 1, "Permission denied"),
        ("v", 1, "Permission denied"),
    ] {
        println!("{key}");
        screen.clear();
        start(&screen, &format!("cat {path}"));
        answer(&screen, &path, key);
        assert_eq!(screen.prompt(), status, "{key}: {}", screen.text());
        assert!(screen.text().contains(text), "{key}: {}", screen.text());
        assert_eq!(settings(&world, &screen), before, "{key}");
    }
}

#[test]
fn once_is_once_and_a_session_is_a_session() {
    let world = world();
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    start(&screen, &format!("sh -c 'cat {path}; cat {path}; cat {path}'"));
    for key in ["y", "s"] {
        answer(&screen, &path, key);
    }
    assert_eq!(screen.prompt(), 0);
    let text = screen.text();
    assert_eq!(text.matches("it says hello").count(), 3, "{text}");
    assert_eq!(text.matches(PROMPT).count(), 2, "{text}");
}

#[test]
fn a_folder_opens_what_is_in_it_and_a_no_is_remembered() {
    let world = world();
    let screen = Screen::new(&world);
    let (first, second) = (secret(&world, "secret"), secret(&world, "second"));
    start(&screen, &format!("sh -c 'cat {first}; cat {second}'"));
    answer(&screen, &first, "d");
    assert_eq!(screen.prompt(), 0);
    assert!(screen.text().contains("it says hello") && screen.text().contains("it says more"));
    screen.clear();
    start(&screen, &format!("sh -c 'cat {first}; cat {first}; cat {second}'"));
    answer(&screen, &first, "n");
    answer(&screen, &second, "y");
    assert_eq!(screen.prompt(), 0);
    let text = screen.text();
    assert_eq!((text.matches(PROMPT).count(), text.matches("Permission denied").count()), (2, 2), "{text}");
}

#[test]
fn what_is_saved_is_open_next_time() {
    let world = world();
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    start(&screen, &format!("cat {path}"));
    answer(&screen, &path, "p");
    assert_eq!(screen.prompt(), 0);
    screen.wait_for("saved 1 grant to profile default-approved; use it with --profile default-approved");
    screen.clear();
    assert_eq!(screen.run(&format!("nono run --allow-cwd --profile default-approved -- cat {path}")), 0);
    assert!(screen.text().contains("it says hello") && !screen.text().contains(PROMPT), "{}", screen.text());
}

#[test]
fn details_come_before_the_answer() {
    let world = world();
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    start(&screen, &format!("cat {path}"));
    wait_for_question(&screen, &path);
    screen.key("?");
    for part in
        ["a file, 14 bytes, mode 0644", "program: /", "command line: cat", "started by: ", "question 1 of"]
    {
        screen.wait_for(part);
    }
    answer(&screen, &path, "y");
    assert_eq!(screen.prompt(), 0);
}

#[test]
fn writing_is_asked_for_as_writing() {
    let world = world();
    let screen = Screen::new(&world);
    let (old, new) = (secret(&world, "secret"), secret(&world, "fresh"));
    start(&screen, &format!("sh -c 'echo changed > {old}; echo made > {new}'"));
    wait_for_question(&screen, &old);
    assert!(screen.text().contains("WRITE"), "{}", screen.text());
    screen.key("y");
    wait_for_question(&screen, &new);
    assert!(screen.text().contains("CREATE"), "{}", screen.text());
    screen.key("y");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/secret"), "changed\n");
    assert_eq!(read(&world, "other/notes/fresh"), "made\n");
}

#[test]
fn without_a_terminal_the_answer_is_no() {
    let world = world();
    let path = secret(&world, "secret");
    let mut command = world.command("setsid");
    command.args(["nono", "run", "--ask", "--allow-cwd", "--", "cat", &path]);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_question_in_a_pipeline_is_on_the_terminal() {
    let world = world();
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    for (line, seen) in [
        (format!("nono run --ask --allow-cwd -- cat {path} > out; sed s/^/kept:/ out"), "kept:it says hello"),
        (format!("nono run --ask --allow-cwd -- cat {path} 2> err | sed s/^/kept:/"), "kept:it says hello"),
        (
            format!("nono run --ask --allow-cwd -- cat {path} < /dev/null 2> err | sed s/^/kept:/"),
            "kept:it says",
        ),
    ] {
        println!("{line}");
        screen.clear();
        screen.start(&line);
        answer(&screen, &path, "y");
        assert_eq!(screen.prompt(), 0);
        screen.wait_for(seen);
    }
    // What nono says at the end goes where errors go, and nothing of the question does.
    let said = || read(&world, "work/err");
    let only = |text: &str| text.lines().all(|line| line.starts_with("[nono] granted while it ran: read "));
    eventually(said, || (!said().is_empty() && only(&said())).then_some(()));
}
