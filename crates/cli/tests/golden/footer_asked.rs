//! What the footer says where the supervisor itself refused: exactly what, whom, how often, by which rule.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use serde_json::Value;
use snapbox::str;

use super::world::{World, golden};

const RULES: &str = r#"{
  "rules": [
    {"path": "~/data/secret/**", "action": "deny", "reason": "not for machines"},
    {"path": "~/data/**", "action": "allow"}
  ]
}
"#;

fn furnished() -> World {
    let world = World::new();
    world.file("home/rules.json", RULES);
    for name in ["a", "b", "c", "d", "e"] {
        world.file(&format!("home/data/{name}"), name);
    }
    world.file("home/data/secret/key", "");
    world.file("home/other", "");
    world.file("home/.ssh/id", "");
    world.file("home/.inputrc", "");
    world.file("home/.terminfo/x/xterm", "");
    world.file("work/closed", "");
    world
}

/// The footer without the policy and the general advice, which other tests look at.
fn said(world: &World, line: &str) -> String {
    let text = plain_programs(&world.clean(&world.sh(line).err()));
    let ours = text.lines().filter(|line| line.starts_with("[nono]") && !line.contains("supervised:"));
    let lines = ours.take_while(|line| !line.ends_with("policy:"));
    format!("$ {line}\n") + &lines.map(|line| format!("! {line}\n")).collect::<String>()
}

/// `sh` and `python3` are links to other names on most machines.
fn plain_programs(text: &str) -> String {
    let text = ["dash", "bash", "busybox"]
        .iter()
        .fold(text.to_owned(), |text, name| text.replace(&format!(" by {name}"), " by sh"));
    let mut parts = text.split(" by python3");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + " by python3" + part.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit())
    })
}

#[test]
fn a_refusal_has_program_rule_count_and_flag() {
    let world = furnished();
    let rules = "--ask --approve policy:../home/rules.json --approve deny";
    let lines = [
        "nono run --ask --approve deny -- cat ../home/other".to_owned(),
        "nono run --ask --approve deny -- sh -c 'cat ../home/other; cat ../home/other ../home/other; exit 1'"
            .to_owned(),
        "nono run --ask --approve deny -- sh -c 'echo x > ../home/new; exit 1'".to_owned(),
        format!("nono run {rules} -- sh -c 'cat ../home/data/a ../home/data/secret/key ../home/other'"),
        "nono run --ask --approve deny --read .. -- cat ../home/.ssh/id".to_owned(),
        "nono run --ask --approve deny --allow . --deny closed -- cat closed".to_owned(),
        "nono run --ask --approve deny --read . -- sh -c 'rm closed; cat ../home/other; exit 1'".to_owned(),
    ];
    golden(
        lines.iter().map(|line| said(&world, line)).collect(),
        str![[r#"
$ nono run --ask --approve deny -- cat ../home/other
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   read [TMP]/home/other by cat: denied by --approve deny
! [nono]     open it with: --read-file [TMP]/home/other
$ nono run --ask --approve deny -- sh -c 'cat ../home/other; cat ../home/other ../home/other; exit 1'
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   read [TMP]/home/other by cat (3 times): denied by --approve deny
! [nono]     open it with: --read-file [TMP]/home/other
$ nono run --ask --approve deny -- sh -c 'echo x > ../home/new; exit 1'
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   write [TMP]/home/new by sh: denied by --approve deny
$ nono run --ask --approve policy:../home/rules.json --approve deny -- sh -c 'cat ../home/data/a ../home/data/secret/key ../home/other'
! [nono] granted while it ran: read [TMP]/home/data/a
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   read [TMP]/home/data/secret/key by cat: denied by policy:[TMP]/home/rules.json#1 (line 3)
! [nono]     open it with: --read-file [TMP]/home/data/secret/key
! [nono]   read [TMP]/home/other by cat: denied by --approve deny
! [nono]     open it with: --read-file [TMP]/home/other
$ nono run --ask --approve deny --read .. -- cat ../home/.ssh/id
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   read [TMP]/home/.ssh/id by cat: protected (ssh)
! [nono]     open it with: --bypass-protection [TMP]/home/.ssh/id --read-file [TMP]/home/.ssh/id
$ nono run --ask --approve deny --allow . --deny closed -- cat closed
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   read [TMP]/work/closed by cat: closed by --deny
$ nono run --ask --approve deny --read . -- sh -c 'rm closed; cat ../home/other; exit 1'
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   read [TMP]/home/other by cat: denied by --approve deny
! [nono]     open it with: --read-file [TMP]/home/other
! [nono]   write [TMP]/work/closed: granted for reading only
! [nono]     open it with: --write [TMP]/work

"#]],
    );
}

#[test]
fn what_every_program_looks_for_is_hidden() {
    let world = furnished();
    let inside = "sh -c 'cat ~/.inputrc ~/.terminfo/x/xterm; cat ../home/other; exit 1'";
    let lines = ["", " -v"].map(|flags| format!("nono run --ask --approve deny{flags} -- {inside}"));
    golden(
        lines.iter().map(|line| said(&world, line)).collect(),
        str![[r#"
$ nono run --ask --approve deny -- sh -c 'cat ~/.inputrc ~/.terminfo/x/xterm; cat ../home/other; exit 1'
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   read [TMP]/home/other by cat: denied by --approve deny
! [nono]     open it with: --read-file [TMP]/home/other
! [nono]   and [N] probes that programs make at every start (-v lists them)
$ nono run --ask --approve deny -v -- sh -c 'cat ~/.inputrc ~/.terminfo/x/xterm; cat ../home/other; exit 1'
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   read [TMP]/home/.inputrc by cat: denied by --approve deny
! [nono]     open it with: --read-file [TMP]/home/.inputrc
! [nono]   read [TMP]/home/.terminfo/x/xterm by cat: denied by --approve deny
! [nono]     open it with: --read-file [TMP]/home/.terminfo/x/xterm
! [nono]   read [TMP]/home/other by cat: denied by --approve deny
! [nono]     open it with: --read-file [TMP]/home/other

"#]],
    );
}

#[test]
fn sockets_and_addresses_have_words_of_their_own() {
    let world = furnished();
    let path = world.path("home/socket");
    let _server = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let unix = "import socket; socket.socket(socket.AF_UNIX).connect(\"../home/socket\")";
    let tcp =
        |address: &str| format!("import socket; socket.socket(socket.AF_INET).connect((\"{address}\", 9))");
    let lines = [
        format!("nono run --allow-net -- python3 -c '{unix}'"),
        format!("nono run --allow-connect-port 1 -- python3 -c '{}'", tcp("127.0.0.1")),
        format!("nono run --allow-connect-port 1 -- python3 -c '{}'", tcp("192.0.2.1")),
    ];
    golden(
        lines.iter().map(|line| said(&world, line)).collect(),
        str![[r#"
$ nono run --allow-net -- python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("../home/socket")'
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   connect to the socket [TMP]/home/socket by python3: not granted
! [nono]     no flag is proposed, since it is a service outside the sandbox, which acts there for its clients
$ nono run --allow-connect-port 1 -- python3 -c 'import socket; socket.socket(socket.AF_INET).connect(("127.0.0.1", 9))'
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   connect to 127.0.0.1:9 by python3: not granted
! [nono]     open it with: --allow-connect-port 9
$ nono run --allow-connect-port 1 -- python3 -c 'import socket; socket.socket(socket.AF_INET).connect(("192.0.2.1", 9))'
! [nono] The command exited with code 1. This may be due to sandbox restrictions.
! [nono] Denied:
! [nono]   connect to 192.0.2.1:9 by python3: not granted
! [nono]     open it with: --allow-net

"#]],
    );
}

#[test]
fn what_was_granted_is_said_in_one_line() {
    let world = furnished();
    let run = |flags: &str, inside: &str| {
        format!("nono run{flags} --ask --approve policy:../home/rules.json --approve deny -- {inside}")
    };
    let all = "cat ../home/data/a ../home/data/b ../home/data/c ../home/data/d ../home/data/e";
    let lines = [
        run("", "cat ../home/data/a"),
        run("", all),
        run(" -s", all),
        run("", "sh -c 'printf x >&2; cat ../home/data/a; exit 0'"),
        run("", "cat /dev/null"),
        run("", "sh -c 'cat ../home/data/a; exit 3' | cat"),
    ];
    assert!(said(&world, &run(" -v", all)).contains("/home/data/d, read "));
    world.golden(&lines.each_ref().map(String::as_str), str![[r#"
$ nono run --ask --approve policy:../home/rules.json --approve deny -- cat ../home/data/a
a
! [nono] granted while it ran: read [TMP]/home/data/a
$ nono run --ask --approve policy:../home/rules.json --approve deny -- cat ../home/data/a ../home/data/b ../home/data/c ../home/data/d ../home/data/e
abcde
! [nono] granted while it ran: read [TMP]/home/data/a, read [TMP]/home/data/b, read [TMP]/home/data/c (2 more with -v)
$ nono run -s --ask --approve policy:../home/rules.json --approve deny -- cat ../home/data/a ../home/data/b ../home/data/c ../home/data/d ../home/data/e
abcde
$ nono run --ask --approve policy:../home/rules.json --approve deny -- sh -c 'printf x >&2; cat ../home/data/a; exit 0'
a
! x
! [nono] granted while it ran: read [TMP]/home/data/a
$ nono run --ask --approve policy:../home/rules.json --approve deny -- cat /dev/null
$ nono run --ask --approve policy:../home/rules.json --approve deny -- sh -c 'cat ../home/data/a; exit 3' | cat
a
! [nono] granted while it ran: read [TMP]/home/data/a
! [nono] exit 3; no refusal was seen (-v shows the policy)

"#]]);
}

/// The JSON of one run.
fn json(world: &World, line: &str) -> Value {
    let text = world.clean(&world.sh(line).err());
    assert!(!text.contains("[nono]"), "{text}");
    let json = text.lines().skip_while(|line| *line != "{").collect::<Vec<_>>().join("\n");
    serde_json::from_str(&json).unwrap()
}

#[test]
fn the_json_has_all_of_it() {
    let world = furnished();
    let line = "nono run --ask --approve policy:../home/rules.json --approve deny --diagnostics-json -- \
sh -c 'cat ../home/data/a ../home/data/secret/key ~/.inputrc; echo x > ../home/other; exit 4'";
    let mut value = json(&world, line);
    for denial in value["denials"].as_array_mut().unwrap() {
        assert!(denial["pid"].as_u64().unwrap() > 1, "{denial}");
        denial["pid"] = "[PID]".into();
        let program = denial["program"].as_str().unwrap().rsplit('/').next().unwrap();
        denial["program"] = plain_programs(&format!(" by {program}")).split_off(4).into();
    }
    for key in ["policy", "flags", "limits", "may_be_due_to_sandbox"] {
        value.as_object_mut().unwrap().remove(key);
    }
    golden(
        format!("{value:#}"),
        str![[r#"
{
  "exit_code": 4,
  "expansions": [
    {
      "path": "[TMP]/home/data/a",
      "access": "read",
      "is_dir": false,
      "scope": "session",
      "by": "policy:[TMP]/home/rules.json#2 (line 4)"
    }
  ],
  "denials": [
    {
      "kind": "open",
      "path": "[TMP]/home/data/secret/key",
      "operation": "read",
      "because": {
        "kind": "answered",
        "by": "policy:[TMP]/home/rules.json#1 (line 3)"
      },
      "reason": null,
      "flags": [
        "--read-file",
        "[TMP]/home/data/secret/key"
      ],
      "means": null,
      "exact": true,
      "program": "cat",
      "pid": "[PID]",
      "count": 1,
      "probe": false
    },
    {
      "kind": "open",
      "path": "[TMP]/home/.inputrc",
      "operation": "read",
      "because": {
        "kind": "answered",
        "by": "deny"
      },
      "reason": null,
      "flags": [
        "--read-file",
        "[TMP]/home/.inputrc"
      ],
      "means": null,
      "exact": true,
      "program": "cat",
      "pid": "[PID]",
      "count": 1,
      "probe": true
    },
    {
      "kind": "open",
      "path": "[TMP]/home/other",
      "operation": "write",
      "because": {
        "kind": "answered",
        "by": "deny"
      },
      "reason": null,
      "flags": [
        "--write-file",
        "[TMP]/home/other"
      ],
      "means": null,
      "exact": true,
      "program": "sh",
      "pid": "[PID]",
      "count": 1,
      "probe": false
    }
  ],
  "denials_unlisted": 0,
  "denied_unasked": 0,
  "network_denied": false,
  "hosts_denied": [],
  "hosts_denied_unlisted": 0,
  "asked": 0
}
"#]],
    );
}

/// Without a terminal, which is found out by asking. How many requests are asked about depends on timing; all are
/// counted.
#[test]
fn a_flood_is_one_line() {
    let world = furnished();
    for n in 0..120 {
        world.file(&format!("home/many/{n}"), "");
    }
    let line = |end: &str| {
        let flood = "for n in $(seq 0 119); do true < ../home/many/$n; done 2> /dev/null";
        format!("nono run --ask -- sh -c '{flood}; {end}'")
    };
    let text = world.sh(&line("exit 0")).err();
    let number = |text: &str, before: &str, after: &str| -> u64 {
        let line = text.lines().find(|line| line.contains(before)).unwrap_or_else(|| panic!("{text}"));
        line.split(before).nth(1).unwrap().split(after).next().unwrap().trim().parse().unwrap()
    };
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(number(&text, "[nono] denied without asking, too many at once: ", " request") > 0);
    let text = world.sh(&line("exit 1")).err();
    assert!(number(&text, "[nono]   and ", " more denied without asking: too many at once") > 0);
    let value = json(&world, &line("exit 1").replace("--ask", "--diagnostics-json --ask"));
    let listed: u64 =
        value["denials"].as_array().unwrap().iter().map(|denial| denial["count"].as_u64().unwrap()).sum();
    assert_eq!(listed + value["denied_unasked"].as_u64().unwrap(), 120, "{value:#}");
}
