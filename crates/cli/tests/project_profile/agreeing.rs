//! On a terminal: shown, asked once, and asked again when it is something else.

use super::*;
use nono_testkit::screen::Screen;

fn read_data(world: &World) -> String {
    format!("nono run --allow-cwd -- cat {}", data(world))
}

#[test]
fn a_yes_is_asked_for_once() {
    let world = world();
    let screen = Screen::new(&world);
    screen.start(&read_data(&world));
    screen.wait_for("exactly this?");
    let text = screen.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("[nono]")).collect();
    assert!(lines.len() <= 10, "{text}");
    let whole = lines.join(" ");
    for part in ["work/.nono/profile.json", "read     ", "other/data", "closes   ", "work/.env"] {
        assert!(whole.contains(part), "{part}: {text}");
    }
    screen.enter("y");
    screen.wait_line("data");
    assert_eq!(screen.prompt(), 0);
    screen.clear();
    assert_eq!(screen.run(&read_data(&world)), 0);
    assert!(!screen.text().contains("exactly this?"), "{}", screen.text());
    // Nor without a terminal, nor from a folder in it.
    assert_eq!(
        nono(&world, &["run", "--allow-cwd", "--workdir", "src", "--", "cat", &data(&world)]).out,
        "data\n"
    );
}

#[test]
fn a_no_is_kept_until_the_user_asks() {
    let world = world();
    let screen = Screen::new(&world);
    screen.start(&read_data(&world));
    screen.wait_for("exactly this?");
    screen.enter("");
    assert_ne!(screen.prompt(), 0);
    screen.clear();
    assert_ne!(screen.run(&read_data(&world)), 0);
    assert!(!screen.text().contains("exactly this?"), "{}", screen.text());
    agree(&world);
    screen.clear();
    assert_eq!(screen.run(&read_data(&world)), 0);
    assert_eq!(nono(&world, &["profile", "trust", "--forget"]).code, 0);
    assert_ne!(nono(&world, &["run", "--allow-cwd", "--", "cat", &data(&world)]).code, 0);
}

#[test]
fn other_bytes_are_another_question_that_names_the_difference() {
    let world = world();
    agree(&world);
    profile(&world, r#"{"filesystem": {"read": ["../other/more"], "deny": [".env"]}}"#);
    let ran =
        nono(&world, &["run", "--allow-cwd", "--", "cat", &world.path("other/more/y").display().to_string()]);
    assert!(ran.out.is_empty() && ran.err.contains("it changed since you agreed to it"), "{ran:?}");
    let screen = Screen::new(&world);
    screen.start(&read_data(&world));
    screen.wait_for("exactly this?");
    let text = screen.text().replace("\n[nono]   ", "");
    assert!(text.contains(" changed since you agreed to it:"), "{text}");
    assert!(text.contains("+ read") && text.contains("other/more"), "{text}");
    assert!(text.contains("- read") && text.contains("other/data"), "{text}");
    assert!(!text.contains("closes"), "{text}");
    screen.enter("n");
    assert_ne!(screen.prompt(), 0);
}

#[test]
fn what_is_used_is_what_was_shown() {
    let world = world();
    let screen = Screen::new(&world);
    let more = world.path("other/more/y").display().to_string();
    screen.start(&format!("nono run --allow-cwd -- cat {more}"));
    screen.wait_for("exactly this?");
    // While the person reads.
    profile(&world, r#"{"filesystem": {"read": ["../other/more"]}}"#);
    screen.enter("y");
    assert_ne!(screen.prompt(), 0);
    assert!(!screen.text().contains("\nmore\n"), "{}", screen.text());
    let again = nono(&world, &["run", "--allow-cwd", "--", "cat", &more]);
    assert!(again.code != 0 && again.err.contains("it changed since you agreed to it"), "{again:?}");
}

#[test]
fn a_long_one_is_shown_by_a_command_of_its_own() {
    let world = world();
    let hosts: Vec<String> = (0..60).map(|n| format!("\"host-number-{n}.example.org\"")).collect();
    profile(&world, &format!(r#"{{"network": {{"allow_domain": [{}]}}}}"#, hosts.join(", ")));
    let screen = Screen::new(&world);
    assert_eq!(screen.run("nono run --allow-cwd -- true"), 0);
    let text = screen.text().replace('\n', "");
    assert!(
        text.contains("it grants more than can be listed here") && !text.contains("exactly this?"),
        "{text}"
    );
    let shown = nono(&world, &["profile", "trust", "--show"]);
    assert!(shown.out.contains("host-number-0.") && shown.out.contains("host-number-59."), "{shown:?}");
}

#[test]
fn an_agent_is_asked_about_alone_at_its_first_start() {
    let world = world();
    world.file("bin/claude", "#!/bin/sh\necho claude ran\n", 0o755);
    let screen = Screen::new(&world);
    screen.start("nono claude");
    screen.wait_for("from now on?");
    screen.enter("y");
    screen.wait_line("claude ran");
    screen.prompt();
    let text = screen.text().replace('\n', "");
    assert!(!text.contains("exactly this?") && text.contains("you have not agreed to it"), "{text}");
    screen.clear();
    // With the agreement nothing is asked while it runs.
    world.file("bin/claude", &format!("#!/bin/sh\ncat {}\n", data(&world)), 0o755);
    screen.start("nono claude");
    screen.wait_for("exactly this?");
    screen.enter("y");
    screen.wait_line("data");
    screen.prompt();
}
