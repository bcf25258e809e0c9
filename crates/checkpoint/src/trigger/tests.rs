//! Lines, and what they come to.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{Judgement, TARGETS, ToolCall, judge, reason};

const CWD: &str = "/w/p";
const HOME: &str = "/home/me";

fn shell(line: &str) -> Judgement {
    let call = ToolCall::Shell { tool: "terminal".to_owned(), command: line.to_owned() };
    judge(&call, Path::new(CWD), Path::new(HOME))
}

fn targets(line: &str) -> Option<Vec<String>> {
    match shell(line) {
        Judgement::Harmless => None,
        Judgement::Destructive { targets, .. } => {
            Some(targets.iter().map(|path| path.to_string_lossy().into_owned()).collect())
        }
    }
}

/// Lines with their results, as data.
#[test]
fn lines_and_their_targets() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for row in include_str!("tests/lines.txt").lines().filter(|row| !row.is_empty() && !row.starts_with("# "))
    {
        let (expected, line) = row.split_once('\t').expect("targets, a tab, a line");
        let path = |name: &str| match name {
            "." => CWD.to_owned(),
            _ => Path::new(CWD).join(name.replace('␣', " ")).display().to_string(),
        };
        let expected =
            (expected != "harmless").then(|| expected.split_whitespace().map(path).collect::<Vec<_>>());
        let got = targets(&line.replace('⏎', "\n"));
        if got != expected {
            wrong.push(format!("{line:?}: {got:?}, not {expected:?}"));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 450, "the table has {seen} lines");
}

/// Folders that a command may run in after a `cd` that may have failed or not been run.
#[test]
fn a_cd_counts_as_far_as_it_is_certain() {
    for (line, places) in [
        ("cd /q && make", "/q"),
        ("ls && cd /q && make", "/q"),
        ("cd /q && ls; make", "/q /w/p"),
        ("ls || cd /q && make", "/q /w/p"),
        ("echo | cd /q && make", "/q /w/p"),
        ("cd /q | ls && make", "/q /w/p"),
        ("(cd /q && ls) && make", "/q /w/p"),
        ("pushd /q && ls && popd && make", "/w/p /q"),
        ("bash -c 'cd /q && make'; make", "/w/p /q"),
    ] {
        assert_eq!(targets(line).map(|targets| targets.join(" ")).as_deref(), Some(places), "{line}");
    }
}

/// A word that is a path counts where it leads to another project: by a marker, and by nothing else.
#[test]
fn other_projects_are_found_by_their_markers() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    for name in ["home", "p/sub", "q/src", "loose"] {
        std::fs::create_dir_all(dir.join(name)).unwrap();
    }
    for name in ["p/Makefile", "q/Makefile", "home/Makefile"] {
        std::fs::write(dir.join(name), "").unwrap();
    }
    let find = |line: &str| {
        let line = line.replace("DIR", dir.to_str().unwrap());
        let call = ToolCall::Shell { tool: "terminal".to_owned(), command: line };
        match judge(&call, &dir.join("p/sub"), &dir.join("home")) {
            Judgement::Harmless => panic!("it may write"),
            Judgement::Destructive { targets, .. } => targets,
        }
    };
    let here = dir.join("p/sub");
    for line in [
        "tool DIR/q/src/new",
        "tool --out=DIR/q/src/new",
        "tool -CDIR/q/src/new",
        "python3 -c 'open(\"DIR/q/src/new\", \"w\")'",
        "Q=DIR/q/src/new; rm $Q",
        "for d in DIR/q/src/new; do rm $d; done",
        "rm {DIR/q/src/new,x}",
    ] {
        assert_eq!(find(line), [here.clone(), dir.join("q/src/new")], "{line}");
    }
    assert_eq!(find("tool ../../q/src"), [here.clone(), here.join("../../q/src")]);
    for line in ["tool DIR/p/x ../x ./y z", "tool DIR/loose/x", "tool ~/x ~ /usr/bin/env", "DIR/q/src/new"] {
        assert_eq!(find(line), std::slice::from_ref(&here), "{line}");
    }
    // What is surely written counts wherever it is.
    assert_eq!(find("rm DIR/loose/x"), [here, dir.join("loose/x")]);
}

#[test]
fn what_a_table_cannot_hold() {
    for line in ["", " ", "\n", "\t\n "] {
        assert_eq!(targets(line), None, "{line:?}");
    }
    let names = |names: &[&str]| Some(names.iter().map(|name| format!("{CWD}{name}")).collect::<Vec<_>>());
    assert_eq!(targets("rm a\\ b 'c d' \"e f\" $'g'"), names(&["", "/a b", "/c d", "/e f", "/g"]));
    assert_eq!(targets("echo a > 'a b/c'"), names(&["", "/a b/c"]));
}

#[test]
fn what_cannot_be_read_counts() {
    for line in ["rm 'x", "if then", "((((", "echo $(", "case", "for", "a && ", "\"", "`", "foo ( bar"] {
        let found = targets(line);
        assert!(
            found.as_ref().is_some_and(|targets| targets.contains(&CWD.to_owned())),
            "{line:?}: {found:?}"
        );
    }
    assert!(targets("rm /o/x 'unclosed").is_some_and(|targets| targets.contains(&"/o/x".to_owned())));
    for long in [format!("echo {}", "a".repeat(70_000)), format!("rm /o/y {}", "a ".repeat(70_000))] {
        assert_eq!(targets(&long), Some(vec![CWD.to_owned()]));
    }
    let long = format!("rm -rf ~/.no\"no\"; echo {}", "a ".repeat(70_000));
    let call = ToolCall::Shell { tool: "terminal".to_owned(), command: long };
    assert!(super::forgets(&call, Path::new(CWD), Path::new(HOME)));
}

/// Nesting of any depth is split in one pass, and needs a checkpoint.
#[test]
fn deep_nesting_needs_a_checkpoint() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    for times in [60, 600, 10_000] {
        for (open, close) in [
            ("( ", " )"),
            ("(", ")"),
            ("((", "))"),
            ("{ ", "; }"),
            ("echo $(", ")"),
            ("\"$(echo ", ")\""),
            ("[[ ( ", " ) ]]"),
            ("if true; then ", "; fi"),
            ("while true; do ", "; done"),
            ("case x in x) ", ";; esac"),
            ("f() { ", "; }"),
            ("${a:-", "}"),
            ("$((", "))"),
            ("! ", ""),
            ("coproc ", ""),
            ("(", ""),
            ("$(", ""),
            ("((", ""),
            ("`", "`"),
            ("{a,", "}"),
            ("bash -c '", "'"),
            ("eval ", ""),
            ("sudo ", ""),
            ("<(", ")"),
            ("[[ ! ", " ]]"),
            ("a[", "]=1"),
        ] {
            let line = nested(open, "rm x", close, times);
            assert_ne!(shell(&line), Judgement::Harmless, "{open:?}");
        }
    }
    let doubling: Vec<_> = (0..40).map(|n| format!("f{n}() {{ f{}; f{}; }}; ", n + 1, n + 1)).collect();
    assert_ne!(shell(&format!("{} f40() {{ rm x; }}; f0", doubling.concat())), Judgement::Harmless);
}

#[test]
fn targets_are_few_and_different() {
    let many = (0..200).map(|n| format!("/o/{n}")).collect::<Vec<_>>().join(" ");
    assert_eq!(targets(&format!("rm {many}")).map(|targets| targets.len()), Some(TARGETS));
    assert_eq!(targets("rm x; rm x; echo > x").map(|targets| targets.len()), Some(2));
    let paths = (0..200).map(|n| PathBuf::from(format!("/o/{n}"))).collect();
    let Judgement::Destructive { targets, .. } =
        judge(&ToolCall::Files { tool: "Write".to_owned(), paths }, Path::new(CWD), Path::new(HOME))
    else {
        panic!("files are written")
    };
    assert_eq!(targets.len(), TARGETS);
}

#[test]
fn files_and_other_tools() {
    let judged = |call: &ToolCall| judge(call, Path::new(CWD), Path::new(HOME));
    let files = |paths: &[&str]| ToolCall::Files {
        tool: "patch".to_owned(),
        paths: paths.iter().map(PathBuf::from).collect(),
    };
    assert_eq!(
        judged(&files(&["a/b", "/o/c", "~/d", "a/b"])),
        Judgement::Destructive {
            targets: ["/w/p/a/b", "/o/c", "/home/me/d"].map(PathBuf::from).to_vec(),
            reason: "before patch".to_owned()
        }
    );
    assert_eq!(
        judged(&files(&[])),
        Judgement::Destructive { targets: vec![CWD.into()], reason: "before patch".to_owned() }
    );
    assert_eq!(judged(&ToolCall::Reads { tool: "WebSearch".to_owned(), path: None }), Judgement::Harmless);
    assert_eq!(
        judged(&ToolCall::Other { tool: "mcp__x".to_owned() }),
        Judgement::Destructive { targets: vec![CWD.into()], reason: "before mcp__x".to_owned() }
    );
}

#[test]
fn a_reason_is_one_short_line() {
    let of =
        |command: &str| reason(&ToolCall::Shell { tool: "terminal".to_owned(), command: command.to_owned() });
    assert_eq!(of("rm -rf build"), "before terminal: rm -rf build");
    assert_eq!(of("rm -rf \\\n\tbuild\x1b[2J"), "before terminal: rm -rf \\ build [2J");
    assert_eq!(of(&"é".repeat(100)), format!("before terminal: {}…", "é".repeat(60)));
    assert_eq!(of(&"é".repeat(60)), format!("before terminal: {}", "é".repeat(60)));
    assert_eq!(reason(&ToolCall::Other { tool: String::new() }), "before tool");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_too_strange(line in any::<String>()) {
        let _ = shell(&line);
    }

    /// Pieces of the language in any order: whatever comes of it, it comes.
    #[test]
    fn no_mix_of_shell_syntax_panics(pieces in prop::collection::vec(prop::sample::select(vec![
        "rm", "cd", "/a", "x", "$X", "$(", ")", "(", "`", "\"", "'", "\\", "{", "}", ";", "&&", "||", "|", "&", ">", ">>", "<",
        "<<EOF", "\n", "EOF", "if", "then", "fi", "for", "in", "do", "done", "case", "esac", "[[", "]]", "((", "))", "-i", "sed",
        "git", "-C", "find", "-exec", "bash", "-c", "eval", "xargs", "env", "=", "*", "?", "[", "~", "#", "!", "f()", "é", "\u{0}",
        "-", "--", "tar", "python", "-e", "$'", "${", ",", "..",
    ]), 0..40), glue in prop::sample::select(vec!["", " "])) {
        let _ = shell(&pieces.join(glue));
    }

    /// Whatever harmless things stand around it, a removal is seen.
    #[test]
    fn a_removal_is_seen_among_others(before in "[a-z]{1,8}( [a-z0-9./-]{1,8}){0,3}", after in "[a-z]{1,8}", join in prop::sample::select(vec![";", "&&", "||", "|", "\n", "&"])) {
        let keyword = |text: &str| ["if", "then", "fi", "for", "in", "do", "done", "case", "esac", "while", "until", "time", "else", "elif", "select", "function", "coproc", "exit", "exec"].contains(&text.split(' ').next().unwrap_or_default());
        prop_assume!(!keyword(&before) && !keyword(&after) && !before.starts_with("cd"));
        let line = format!("{before} {join} rm /o/gone {join} {after}");
        let found = targets(&line).unwrap_or_default();
        prop_assert!(found.contains(&"/o/gone".to_owned()), "{line:?} {found:?}");
    }
}

#[test]
fn what_removes_history_is_known_however_it_is_written() {
    let forgets = |line: &str| {
        let call = ToolCall::Shell { tool: "Bash".to_owned(), command: line.to_owned() };
        super::forgets(&call, Path::new(CWD), Path::new("/home/u"))
    };
    let long = format!("echo {}; nono checkpoints clear --yes", "x".repeat(1 << 20));
    for line in [
        "nono checkpoints clear --yes",
        "ls; nono checkpoints clear --yes",
        "true && /usr/local/bin/nono checkpoints forget . --yes",
        "NONO_HOME=/home/u/.nono nono checkpoints prune --yes",
        "env NONO_HOME=/x nono rollback cleanup --all --yes",
        "bash -c 'nono audit cleanup --yes'",
        "sudo -u u nono hooks remove claude-code --yes",
        "n''ono check\"points\" cle\\ar",
        "nono checkpoints $WHAT --yes",
        "nono $WHAT",
        "echo clear | xargs nono checkpoints --yes",
        "$(nono checkpoints clear --yes)",
        "f() { nono checkpoints clear; }; f",
        "nono profile trust",
        "( nono checkpoints 'clear' ",
        long.as_str(),
    ] {
        assert!(forgets(line), "{line:.80}");
    }
    for line in [
        "nono checkpoints list",
        "nono checkpoints restore 3 --yes",
        "nono checkpoints clear --dry-run",
        "nono hooks remove --help",
        "nono profile trust --show",
        "echo nono checkpoints clear",
        "grep -r 'nono checkpoints clear' docs",
        "git commit -m 'nono checkpoints clear'",
        "rm -rf build",
        "nono",
    ] {
        assert!(!forgets(line), "{line}");
    }
}
