//! `--help`: every command has an example, every flag its word.

use snapbox::str;

use super::world::World;

const COMMANDS: &[&str] = &[
    "",
    "run",
    "shell",
    "wrap",
    "rollback",
    "rollback list",
    "rollback show",
    "rollback restore",
    "rollback undo",
    "rollback review",
    "rollback verify",
    "rollback pin",
    "rollback unpin",
    "rollback cleanup",
    "rollback recover",
    "rollback repair",
    "checkpoints",
    "checkpoints status",
    "checkpoints list",
    "checkpoints create",
    "checkpoints diff",
    "checkpoints restore",
    "checkpoints undo",
    "checkpoints name",
    "checkpoints pin",
    "checkpoints unpin",
    "checkpoints prune",
    "checkpoints import",
    "checkpoints clear",
    "checkpoints clear-legacy",
    "checkpoints verify",
    "checkpoints forget",
    "undo",
    "redo",
    "status",
    "diff",
    "audit",
    "audit list",
    "audit show",
    "audit verify",
    "audit export",
    "audit cleanup",
    "audit keygen",
    "audit prove",
    "audit check-proof",
    "hooks",
    "hooks install",
    "hooks status",
    "hooks remove",
    "why",
    "mcp",
    "ps",
    "inspect",
    "stop",
    "request",
    "learn",
    "profile list",
    "profile show",
    "profile diff",
    "profile validate",
    "profile init",
    "profile schema",
    "profile",
    "setup",
    "completion",
    "man",
];

/// The flags of a run that belong to this step; `shell` takes them all, `wrap` those that need no parent.
const RUN_FLAGS: &[&str] = &[
    "-a, --allow <DIR>",
    "-r, --read <DIR>",
    "-w, --write <DIR>",
    "--allow-file <FILE>",
    "--read-file <FILE>",
    "--write-file <FILE>",
    "--allow-cwd",
    "--deny <PATH>",
    "--allow-unix-socket <PATH>",
    "--bypass-protection <PATH>",
    "--workdir <DIR>",
    "-p, --profile <NAME|FILE>",
    "--extends <NAME>",
    "--env <NAME[=VALUE]>",
    "--env-all",
    "--allow-net",
    "--block-net",
    "--allow-connect-port <PORT>",
    "--listen-port <PORT>",
    "--max-time <TIME>",
    "--max-memory <SIZE>",
    "--max-procs <N>",
    "--max-file-size <SIZE>",
    "-s, --silent",
    "-v, --verbose",
    "--dry-run",
    "--name <NAME>",
];
const PARENT_FLAGS: &[&str] = &["--no-diagnostics", "--diagnostics-json"];

#[test]
fn every_command_has_an_example() {
    let world = World::new();
    for command in COMMANDS {
        let outcome = world.sh(&format!("nono {command} --help"));
        outcome.quiet(0);
        let out = outcome.out();
        assert!(
            out.contains("\nExample:\n  nono ") || out.contains("\nExamples:\n  nono "),
            "{command}: {out}"
        );
        assert!(!world.sh(&format!("nono {command} -h")).out().is_empty(), "{command}");
    }
}

#[test]
fn every_flag_is_there() {
    let world = World::new();
    for (command, more) in [("run", PARENT_FLAGS), ("shell", PARENT_FLAGS), ("wrap", &[])] {
        let help = world.sh(&format!("nono {command} --help")).out();
        for flag in RUN_FLAGS.iter().chain(more) {
            assert!(
                help.contains(&format!("{flag}\n")) || help.contains(&format!("{flag} ")),
                "{command} {flag}"
            );
        }
    }
    for flag in ["--monitor", "--exec", "--supervised"] {
        assert!(world.sh("nono run --help").out().contains(flag), "{flag}");
    }
}

/// The flags of the commands that look at sessions and undo them.
const ROLLBACK_FLAGS: &[(&str, &[&str])] = &[
    ("list", &["--path <PATH>", "--recent <N>", "--all", "--json"]),
    (
        "show",
        &[
            "[ID] [PATH]... [-- <PATH>...]",
            "--diff",
            "--side-by-side",
            "--stat",
            "--full",
            "--from <N>",
            "--to <N>",
            "--snapshots",
            "--coverage",
            "--json",
        ],
    ),
    (
        "restore",
        &[
            "[ID] [PATH]... [-- <PATH>...]",
            "--snapshot <N>",
            "--dry-run",
            "--merge",
            "--force",
            "-y, --yes",
            "--json",
        ],
    ),
    ("undo", &["[ID]", "--dry-run", "-y, --yes", "--json"]),
    ("review", &["[ID]"]),
    ("verify", &["[ID]", "--json"]),
    ("pin", &["<ID>"]),
    ("unpin", &["<ID>"]),
    (
        "cleanup",
        &[
            "--keep <N>",
            "--older-than <DAYS>",
            "--max-size <SIZE>",
            "--all",
            "--dry-run",
            "-y, --yes",
            "--json",
        ],
    ),
    ("recover", &["--json"]),
];

#[test]
fn every_flag_of_rollback_is_there() {
    let world = World::new();
    for (command, flags) in ROLLBACK_FLAGS {
        let help = world.sh(&format!("nono rollback {command} --help")).out();
        for flag in *flags {
            assert!(help.contains(flag), "rollback {command} {flag}: {help}");
        }
    }
    for flag in ["[ID|PATH]...", "--to <TIME|ID>", "--dry-run", "--merge", "--force", "-y, --yes", "--json"] {
        assert!(world.sh("nono undo --help").out().contains(flag), "undo {flag}");
    }
    for flag in ["[PATH]...", "--stat", "--side-by-side", "--full", "--exit-code", "--json"] {
        assert!(world.sh("nono diff --help").out().contains(flag), "diff {flag}");
    }
    assert!(world.sh("nono status --help").out().contains("--json"));
    for flag in ["--dry-run", "-y, --yes", "--json"] {
        assert!(world.sh("nono redo --help").out().contains(flag), "redo {flag}");
    }
}

/// The flags of the commands for checkpoints.
const CHECKPOINT_FLAGS: &[(&str, &[&str])] = &[
    ("", &["--json", "<COMMAND>"]),
    ("status", &["--json"]),
    ("list", &["--path <PATH>", "--all", "--json"]),
    ("create", &["[PATH]", "-m, --message <WHY>", "--json"]),
    (
        "diff",
        &["<N|ID> [PATH]...", "--path <PATH>", "--glob", "--stat", "--side-by-side", "--exit-code", "--json"],
    ),
    (
        "restore",
        &[
            "[N|ID] [PATH]...",
            "--path <PATH>",
            "--turn <ID>",
            "--glob",
            "--with-git",
            "--dry-run",
            "--merge",
            "--conflict-markers",
            "--force",
            "-y, --yes",
            "--json",
        ],
    ),
    ("undo", &["--path <PATH>", "--dry-run", "-y, --yes", "--json"]),
    ("name", &["<N|ID> <NAME>", "--path <PATH>"]),
    ("pin", &["<N|ID>", "--path <PATH>"]),
    ("unpin", &["<N|ID>", "--path <PATH>"]),
    (
        "prune",
        &[
            "--retention-days <DAYS>",
            "--max-size-mb <MB>",
            "--keep-orphans",
            "--dry-run",
            "-y, --yes",
            "--json",
        ],
    ),
    ("import", &["<DIR>", "--json"]),
    ("clear", &["--path <PATH>", "--dry-run", "-y, --yes", "--json"]),
    ("clear-legacy", &["--dry-run", "-y, --yes", "--json"]),
    ("verify", &["--path <PATH>", "--json"]),
    ("forget", &["<PATH>", "--dry-run", "-y, --yes", "--json"]),
];

#[test]
fn every_flag_of_checkpoints_is_there() {
    let world = World::new();
    for (command, flags) in CHECKPOINT_FLAGS {
        let help = world.sh(&format!("nono checkpoints {command} --help")).out();
        for flag in *flags {
            assert!(help.contains(flag), "checkpoints {command} {flag}: {help}");
        }
    }
}

/// The flags of the commands that look at what was recorded.
const AUDIT_FLAGS: &[(&str, &[&str])] = &[
    (
        "list",
        &[
            "--since <WHEN>",
            "--until <WHEN>",
            "--command <TEXT>",
            "--path <PATH>",
            "--decision <DECISION>",
            "--host <HOST>",
            "--json",
        ],
    ),
    (
        "show",
        &["<ID>", "--since <WHEN>", "--path <PATH>", "--decision <DECISION>", "--host <HOST>", "--json"],
    ),
    ("verify", &["[ID]", "--all", "--public-key <FILE>", "--ledger-head <HASH>", "--json"]),
    ("export", &["[ID]...", "--format <FORMAT>", "jsonl, csv, otlp-json", "-o, --output <FILE>"]),
    ("cleanup", &["--keep <N>", "--older-than <DAYS>", "--all", "--dry-run", "-y, --yes", "--json"]),
    ("keygen", &["-o, --output <FILE>"]),
    ("prove", &["<ID> <SEQ>", "-o, --output <FILE>"]),
    ("check-proof", &["<FILE>", "--root <HASH>", "--session <ID>", "--public-key <FILE>"]),
];

#[test]
fn every_flag_of_audit_is_there() {
    let world = World::new();
    for (command, flags) in AUDIT_FLAGS {
        let help = world.sh(&format!("nono audit {command} --help")).out();
        for flag in *flags {
            assert!(help.contains(flag), "audit {command} {flag}: {help}");
        }
    }
}

/// The flags of the commands for sessions that run.
const CONTROL_FLAGS: &[(&str, &[&str])] = &[
    ("ps", &["--json"]),
    ("inspect", &["<ID>", "--json"]),
    ("stop", &["<ID>", "--dry-run"]),
    ("learn", &["--allow-all", "--save <NAME>"]),
    (
        "request",
        &[
            "-r, --read <PATH>",
            "-w, --write <PATH>",
            "-a, --allow <PATH>",
            "--reason <TEXT>",
            "--json",
            "[COMMAND]...",
        ],
    ),
];

#[test]
fn every_flag_of_running_sessions_is_there() {
    let world = World::new();
    for (command, flags) in CONTROL_FLAGS {
        let help = world.sh(&format!("nono {command} --help")).out();
        for flag in *flags {
            assert!(help.contains(flag), "{command} {flag}: {help}");
        }
    }
}

/// In every text of help each flag has its explanation.
#[test]
fn no_flag_without_a_word() {
    let world = World::new().with("COLUMNS", Some("200"));
    for command in COMMANDS {
        let help = world.sh(&format!("nono {command} --help")).out();
        let lines: Vec<&str> = help.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let flag = line.trim();
            // Values that an argument can have are listed with a dash, too.
            if !flag.starts_with('-') || flag.starts_with("- ") {
                continue;
            }
            // Where one has such a list, all explanations stand below their flags, and further in.
            let indent = |line: &str| line.len() - line.trim_start().len();
            let below = lines.get(at + 1).is_some_and(|next| {
                !next.trim().is_empty() && !next.trim().starts_with('-') && indent(next) > indent(line)
            });
            assert!(below || flag.split("  ").count() > 1, "{command}: {flag}");
        }
    }
}

#[test]
fn the_front_page() {
    let world = World::new();
    let (asked, bare) = (world.sh("nono --help"), world.sh("nono"));
    assert_eq!((bare.code(), bare.err()), (Some(2), asked.out()), "without a word the same, as an error");
    world.golden(
        &["nono --help", "nono help why | head -1", "nono --version", "nono run --version"],
        str![[r#"
$ nono --help
Run an AI agent, or any command, in a sandbox that the kernel enforces

Usage: nono <COMMAND>

Commands:
  run          Run a command in a sandbox, with a supervisor outside it
  shell        Start your shell in a sandbox
  claude       Start Claude Code in a sandbox, with undo
  codex        Start Codex in a sandbox, with undo
  gemini       Start Gemini CLI in a sandbox, with undo
  opencode     Start OpenCode in a sandbox, with undo
  qwen         Start Qwen Code in a sandbox, with undo
  hermes       Start Hermes in a sandbox, with undo
  aider        Start aider in a sandbox, with undo
  wrap         Confine this process and become the command: no supervisor, smallest surface
  rollback     Look at what sessions changed, put it back, check and remove them
  undo         Undo what the last session in this directory did: shows the plan, and asks
  redo         Take the last undo or restore back
  turns        List what agents did here, turn by turn: the request, the calls made, the files
               changed
  status       Show what is protected, what runs and what can be undone in this directory
  diff         Show what the last session in this directory changed; without one, what changed since
               the newest checkpoint
  log          List every version of a file, and which turn, command or session made it
  cat          Print a file as it was: at a checkpoint, before a session, or in a version of `nono
               log`
  checkpoints  List, compare and restore earlier states of a project, kept while agents work on it
  hook         Called by agents before and after their tools: reads the agent's JSON on stdin,
               answers in its format
  hooks        Put nono's hooks into a coding agent: a checkpoint before each risky step, and
               /rollback inside the agent
  audit        Look at what sessions did, and check that the records were not changed
  why          Explain whether a path or a host is open, by which rule, and what would open it
  ps           List the running sessions
  inspect      Show what a running session does: its denials, grants and questions
  stop         End a running session and everything it started
  request      From inside a sandbox: ask for a file or a folder that was not granted
  learn        Run a command, watch what it does, and propose the smallest profile for it
  mcp          Serve checkpoints, why and request to an agent, as tools of the Model Context
               Protocol on stdin and stdout
  profile      List, show, compare, check and create profiles
  setup        Show what this machine can enforce, and try it
  completion   Print a completion script for a shell
  man          Print a manual page
  help         Print this message or the help of the given subcommand(s)

Options:
  -h, --help     Print help
  -V, --version  Print version

Example:
  nono run --allow . -- make test

Exit codes: the command's own; 128+n for signal n; 126 not executable; 127 not found; 124 out of
time; 125 the command was not run; 2 wrong usage.
$ nono help why | head -1
Explain whether a path or a host is open, by which rule, and what would open it
$ nono --version
nono 0.1.0
$ nono run --version
! [nono] error: unexpected argument '--version' found
! [nono]
! [nono]   tip: a similar argument exists: '--verbose'
! [nono]   tip: to pass '--version' as a value, use '-- --version'
! [nono]
! [nono] Usage: nono run --verbose <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}

#[test]
fn what_needs_a_supervisor_is_said() {
    World::new().golden(
        &[
            "nono run --checkpoints -- true",
            "nono run --no-checkpoints -- true",
            "nono wrap --no-audit -- true",
            "nono run -- echo --checkpoints",
        ],
        str![[r#"
$ nono run --checkpoints -- true
! [nono] warning: [TMP]/work is not protected by a checkpoint: no project is writable for the command
$ nono run --no-checkpoints -- true
$ nono wrap --no-audit -- true
! [nono] error: --no-audit needs a supervisor, and `nono wrap` has none
! [nono] hint: use `nono run`, or leave --no-audit out
= exit 2
$ nono run -- echo --checkpoints
--checkpoints

"#]],
    );
}
