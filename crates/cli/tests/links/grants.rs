//! A typed path that passes through a link is granted only after its target was confirmed.

use std::os::unix::fs::symlink;

use super::*;
use nono_testkit::screen::Screen;

/// `build -> $HOME`, made by the first run.
fn planted() -> World {
    let world = world();
    first_run(
        &world,
        "ln -s \"$HOME\" build; ln -s ~/diary notes; mkdir out; echo o > out/o; ln -s out inner",
    );
    world
}

#[test]
fn a_planted_link_widens_no_grant() {
    let world = planted();
    let home = path(&world, "home");
    // The control: the same grant by its own name.
    let control = nono(&world, &["run", "--read", &home, "--", "cat", "build/diary"]).ok();
    assert_eq!(control.out, "dear diary\n");
    let command = ["cat", "build/diary"];
    for flags in [
        ["--allow", "./build"],
        ["--read", "build"],
        ["--write", "out/../build"],
        ["--read-file", "notes"],
        ["--allow-file", "build/diary"],
        ["--write-file", "notes"],
        ["--workdir", "build"],
        ["--rollback-dest", "build/session"],
        ["--bypass-protection", "build/.ssh"],
    ] {
        for way in ["run", "wrap", "learn"] {
            let mut args = vec![way];
            args.extend(flags);
            args.extend(["--rollback"].iter().filter(|_| flags[0] == "--rollback-dest" && way != "wrap"));
            if flags[0] == "--rollback-dest" && way == "wrap" {
                continue;
            }
            args.push("--");
            args.extend(command);
            let ran = nono(&world, &args).code(125);
            assert!(ran.out.is_empty(), "{args:?}: {ran:?}");
            let target = if flags[1] == "notes" { path(&world, "home/diary") } else { home.clone() };
            assert!(ran.err.contains(&format!("leads to {target}")), "{args:?}: {ran:?}");
            assert!(ran.err.contains(&format!("hint: use {target}")), "{args:?}: {ran:?}");
        }
    }
    let by_variable = world
        .command("nono")
        .args(["run", "--", "cat", "build/diary"])
        .env("NONO_READ", "build")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(Said::of(&by_variable).code(125).out.is_empty());
}

#[test]
fn profiles_pass_through_no_planted_link_either() {
    let world = planted();
    world.file(
        "home/.config/nono/profiles/mine.json",
        r#"{"filesystem": {"read": ["$WORKDIR/build"]}}"#,
        0o600,
    );
    let ran = nono(&world, &["run", "-p", "mine", "--", "cat", "build/diary"]).code(125);
    assert!(ran.out.is_empty() && ran.err.contains("(given by profile:mine)"), "{ran:?}");
}

#[test]
fn a_planted_link_opens_no_socket() {
    let world = world();
    let socket = path(&world, "other/daemon.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    first_run(&world, &format!("ln -s {socket} db.sock"));
    let ran = nono(&world, &["run", "--allow-unix-socket", "db.sock", "--", "true"]).code(125);
    assert!(ran.err.contains(&format!("leads to {socket}")), "{ran:?}");
    nono(&world, &["run", "--allow-unix-socket", &socket, "--", "true"]).ok();
}

#[test]
fn links_that_stay_in_their_folder_or_that_no_command_made_need_no_word() {
    let world = planted();
    let ran = nono(&world, &["run", "--read", "inner", "--", "cat", "out/o"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("o\n", ""));
    // Directly in the home folder: nothing that runs in a sandbox makes a name there.
    symlink(world.path("other"), world.path("home/code")).unwrap();
    let ran = nono(&world, &["run", "--allow", &path(&world, "home"), "--", "sh", "-c", "ln -s / ~/mine"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let ran = nono(
        &world,
        &["run", "--read", &path(&world, "home/code/data"), "--", "cat", &path(&world, "other/data/x")],
    );
    assert_eq!(ran.ok().out, "data\n");
    // Of the system's own.
    nono(&world, &["run", "--read", "/bin", "--read-file", "/etc/mtab", "--", "true"]);
}

#[test]
fn a_dry_run_and_why_name_the_link() {
    let world = planted();
    let home = path(&world, "home");
    let shown = nono(&world, &["run", "--dry-run", "--read", "build", "--", "true"]).ok();
    let line =
        format!("asks before it is granted: {} is a link that leads to {home}", path(&world, "work/build"));
    assert!(shown.out.contains(&line), "{shown:?}");
    let shown = nono(&world, &["run", "--dry-run", "--workdir", "build", "--", "true"]).ok();
    assert!(shown.out.contains(&line), "{shown:?}");
    let why = nono(&world, &["why", "--read", "build", "--path", "build/diary"]).ok();
    assert!(why.out.contains("ALLOWED") && why.out.contains(&line), "{why:?}");
    let why = nono(&world, &["why", "--read", "build", "--path", "build/diary", "--json"]).ok().json();
    assert_eq!(why["asked_links"][0]["target"], home, "{why}");
}

#[test]
fn on_a_terminal_it_is_asked_once_for_each_target() {
    let world = planted();
    let screen = Screen::new(&world);
    let run = "nono run --allow-cwd --read build -- cat build/diary";
    screen.start(run);
    screen.wait_for("now and later?");
    assert!(screen.text().replace('\n', "").contains(&format!("leads to {}", path(&world, "home"))));
    screen.enter("");
    assert_eq!(screen.prompt(), 125);
    screen.clear();
    screen.start(run);
    screen.wait_for("now and later?");
    screen.enter("y");
    screen.wait_line("dear diary");
    assert_eq!(screen.prompt(), 0);
    // Neither again, nor without a terminal.
    assert_eq!(
        nono(&world, &["run", "--read", "build", "--", "cat", "build/diary"]).ok().out,
        "dear diary\n"
    );
    // Leading elsewhere it is another link.
    first_run(&world, &format!("ln -sfn {} build", path(&world, "other")));
    let ran = nono(&world, &["run", "--read", "build", "--", "cat", "build/data/x"]).code(125);
    assert!(ran.out.is_empty(), "{ran:?}");
}

#[test]
fn what_is_granted_is_what_was_shown() {
    let world = planted();
    let screen = Screen::new(&world);
    screen.start("nono run --allow-cwd --read build -- cat build/data/x");
    screen.wait_for("now and later?");
    // While the person reads.
    first_run(&world, &format!("ln -sfn {} build", path(&world, "other")));
    screen.enter("y");
    assert_eq!(screen.prompt(), 125);
    assert!(!screen.text().contains("\ndata\n"), "{}", screen.text());
}
