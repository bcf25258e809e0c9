//! Completions and manual pages.

use std::process::Command;

use snapbox::str;

use super::world::{World, skip};
use nono_testkit::process::finish_with;

const COMMANDS: &[&str] = &["run", "shell", "wrap", "why", "profile", "setup", "completion", "man"];

#[test]
fn completions() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = world.sh(&format!("nono completion {shell}"));
        outcome.quiet(0);
        for word in COMMANDS.iter().chain(&["bypass-protection", "max-file-size"]) {
            assert!(outcome.out().contains(word), "{shell}: {word}");
        }
        if Command::new(shell).arg("--version").output().is_err() {
            eprintln!("not parsed: {shell} is not installed");
            continue;
        }
        let parsed = finish_with(world.command(shell).arg("-n"), outcome.stdout);
        parsed.quiet(0);
    }
    world.golden(
        &["nono completion tcsh", "nono completion"],
        str![[r#"
$ nono completion tcsh
! [nono] error: invalid value 'tcsh' for '<SHELL>'
! [nono]   [possible values: bash, elvish, fish, powershell, zsh]
! [nono]
! [nono]   tip: a similar value exists: 'zsh'
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono completion
! [nono] error: the following required arguments were not provided:
! [nono]   <SHELL>
! [nono]
! [nono] Usage: nono completion <SHELL>
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}

#[test]
fn a_completion_works() {
    let world = World::new();
    let line = "eval \"$(nono completion bash)\"; COMP_WORDS=(nono run --bypass); COMP_CWORD=2; _nono nono --bypass run; echo \"${COMPREPLY[@]}\"";
    let mut command = world.command("bash");
    let outcome = nono_testkit::process::finish(command.args(["-c", line]));
    assert_eq!(outcome.out(), "--bypass-protection\n", "{outcome:?}");
}

#[test]
fn manual_pages() {
    let world = World::new();
    world.sh("nono man --dir pages").quiet(0);
    let mut pages: Vec<String> = std::fs::read_dir(world.path("work/pages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    for command in COMMANDS {
        assert!(pages.contains(&format!("nono-{command}.1")), "{pages:?}");
    }
    for page in ["nono.1", "nono-profile-init.1"] {
        assert!(pages.iter().any(|known| known == page), "{page} in {pages:?}");
    }
    for command in COMMANDS {
        let outcome = world.sh(&format!("nono man {command}"));
        outcome.quiet(0);
        assert!(
            outcome.out().contains(".SH NAME") && outcome.out().contains("Example"),
            "{command}: {}",
            outcome.out()
        );
    }
    world.golden(
        &["nono man no-such", "nono man --dir /proc/no"],
        str![[r#"
$ nono man no-such
! [nono] error: there is no command "no-such"
! [nono] hint: nono --help lists them
= exit 2
$ nono man --dir /proc/no
! [nono] error: cannot create /proc/no: No such file or directory
= exit 125

"#]],
    );
}

#[test]
fn manual_pages_can_be_read() {
    if Command::new("mandoc").arg("-V").output().is_err() {
        return skip("mandoc is not installed");
    }
    let world = World::new();
    world.sh("nono man --dir pages").quiet(0);
    let lint = world.sh("mandoc -T lint -W error pages/*.1");
    assert_eq!((lint.code(), lint.out().as_str()), (Some(0), ""), "{lint:?}");
    let named =
        world.sh("nono man run > run.1; head -3 run.1; mandoc -T ascii run.1 | col -b | head -1").out();
    assert!(named.contains("nono-run(1)"), "the page of a command has the command's name: {named}");
}
