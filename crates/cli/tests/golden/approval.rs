//! Approvers: policy files that are refused, `why` about them, and flags of commands that cannot ask.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use snapbox::str;

use super::world::{World, skip};

const RULES: &str = r#"{
  // the first rule that fits answers
  "rules": [
    {"path": "~/data/secret/**", "action": "deny", "reason": "not for machines"},
    {"path": "~/data/**", "action": "allow", "expires": "2020-01-01T00:00:00Z"},
    {"path": "~/data/**", "access": "write", "program": "tee", "action": "allow"},
    {"path": "~/data/**", "access": "read", "action": "allow", "scope": "directory"},
    {"path": "/**", "access": "write", "action": "ask"}
  ]
}
"#;

fn furnished() -> World {
    let world = World::new();
    world.file("home/rules.json", RULES);
    world.file("home/data/table.csv", "");
    world.file("home/data/sub/table.csv", "");
    world.file("home/data/secret/key", "");
    world.file("home/.ssh/id", "");
    world
}

#[test]
fn why_names_the_rule_that_would_answer() {
    furnished().golden(
        &[
            "nono why --approve policy:../home/rules.json --path ~/data/sub/table.csv",
            "nono why --approve policy:../home/rules.json --path ~/data/table.csv",
            "nono why --approve policy:../home/rules.json --path ~/data/table.csv --op write",
            "nono why --approve policy:../home/rules.json --path ~/data/secret/key --op readwrite",
            "nono why --approve policy:../home/rules.json --path ~/other",
            "nono why --approve policy:../home/rules.json --path ~/.ssh/id",
            "nono why --approve policy:../home/rules.json --path /usr/bin/env",
            "nono why --json --approve policy:../home/rules.json --path ~/data/table.csv",
            "nono why --approve terminal --path ~/data/table.csv",
            "nono why --self --approve policy:../home/rules.json --path ~/data/table.csv",
        ],
        str![[r#"
$ nono why --approve policy:../home/rules.json --path ~/data/sub/table.csv
DENIED: read [TMP]/home/data/sub/table.csv
reason: not granted
to open it: --read-file [TMP]/home/data/sub/table.csv
with --ask: policy:[TMP]/home/rules.json#2 (line 5) is skipped, since it expired at 2020-01-01T00:00:00Z
with --ask: allow the directory, by policy:[TMP]/home/rules.json#4 (line 7)
$ nono why --approve policy:../home/rules.json --path ~/data/table.csv
DENIED: read [TMP]/home/data/table.csv
reason: not granted
to open it: --read-file [TMP]/home/data/table.csv
with --ask: policy:[TMP]/home/rules.json#2 (line 5) is skipped, since it expired at 2020-01-01T00:00:00Z
with --ask: allow, by policy:[TMP]/home/rules.json#4 (line 7)
note: this does not cover the whole directory, because of policy:[TMP]/home/rules.json#1 (line 4)
$ nono why --approve policy:../home/rules.json --path ~/data/table.csv --op write
DENIED: write [TMP]/home/data/table.csv
reason: not granted
to open it: --write-file [TMP]/home/data/table.csv
with --ask: policy:[TMP]/home/rules.json#2 (line 5) is skipped, since it expired at 2020-01-01T00:00:00Z
with --ask, for tee: allow once, by policy:[TMP]/home/rules.json#3 (line 6)
with --ask: ask, by policy:[TMP]/home/rules.json#5 (line 8)
$ nono why --approve policy:../home/rules.json --path ~/data/secret/key --op readwrite
DENIED: read+write [TMP]/home/data/secret/key
reason: not granted
to open it: --allow-file [TMP]/home/data/secret/key
with --ask: deny, by policy:[TMP]/home/rules.json#1 (line 4): not for machines
$ nono why --approve policy:../home/rules.json --path ~/other
DENIED: read [TMP]/home/other
reason: not granted
note: it does not exist
with --ask: no rule of [TMP]/home/rules.json matches, so the next approver is asked
$ nono why --approve policy:../home/rules.json --path ~/.ssh/id
DENIED: read [TMP]/home/.ssh/id
reason: protected (ssh)
rule: protected group ssh: SSH keys and configuration
to open it: --bypass-protection [TMP]/home/.ssh/id --read-file [TMP]/home/.ssh/id
with --ask: no answer can open it, since it is closed by name
$ nono why --approve policy:../home/rules.json --path /usr/bin/env
ALLOWED: read /usr/bin/env
granted by: /usr (read) [group:system]
$ nono why --json --approve policy:../home/rules.json --path ~/data/table.csv
{
  "status": "denied",
  "reason": {
    "kind": "not_granted"
  },
  "closest": null,
  "suggestion": {
    "flags": [
      "--read-file",
      "[TMP]/home/data/table.csv"
    ]
  },
  "path": "[TMP]/home/data/table.csv",
  "operation": "read",
  "approval": {
    "asked": true,
    "action": "allow",
    "rule": {
      "name": "policy:[TMP]/home/rules.json#4 (line 7)",
      "number": 4,
      "line": 7,
      "path": "~/data/**",
      "program": null,
      "action": "allow",
      "scope": "session",
      "expires": null,
      "reason": null
    },
    "expired": [
      {
        "name": "policy:[TMP]/home/rules.json#2 (line 5)",
        "number": 2,
        "line": 5,
        "path": "~/data/**",
        "program": null,
        "action": "allow",
        "scope": "session",
        "expires": "2020-01-01T00:00:00Z",
        "reason": null
      }
    ],
    "by_program": [],
    "narrowed_by": {
      "name": "policy:[TMP]/home/rules.json#1 (line 4)",
      "number": 1,
      "line": 4,
      "path": "~/data/secret/**",
      "program": null,
      "action": "deny",
      "scope": null,
      "expires": null,
      "reason": "not for machines"
    }
  }
}
$ nono why --approve terminal --path ~/data/table.csv
! [nono] error: why: --approve accepts only policy:FILE, since other answers are not known beforehand
= exit 2
$ nono why --self --approve policy:../home/rules.json --path ~/data/table.csv
! [nono] error: the argument '--self' cannot be used with '--approve <WHO>'
! [nono]
! [nono] Usage: nono why --self <--path <PATH>|--host <HOST>>
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}

#[test]
fn rules_that_are_wrong_are_refused_with_their_place() {
    let world = World::new();
    for (name, rule) in [
        ("key", r#""path": "/d", "action": "allow", "acces": "read""#),
        ("action", r#""path": "/d", "action": "perhaps""#),
        ("relative", r#""path": "d/**", "action": "deny""#),
        ("glob", r#""path": "/d/[", "action": "deny""#),
        ("expires", r#""path": "/d", "action": "deny", "expires": "tomorrow""#),
        ("scope", r#""path": "/d/*.csv", "action": "allow", "scope": "directory""#),
        ("program", r#""path": "/d", "action": "allow", "program": "rg", "scope": "session""#),
        ("link", &format!(r#""path": "{}/**", "action": "deny""#, world.path("home/link").display())),
    ] {
        world.file(&format!("home/{name}.json"), format!("{{\"rules\": [\n  {{{rule}}}\n]}}\n"));
    }
    world.dir("home/real", 0o755);
    symlink("real", world.path("home/link")).unwrap();
    world.golden(
        &[
            "nono run --ask --approve policy:../home/key.json -- true",
            "nono run --ask --approve policy:../home/action.json -- true",
            "nono run --ask --approve policy:../home/relative.json -- true",
            "nono run --ask --approve policy:../home/glob.json -- true",
            "nono run --ask --approve policy:../home/expires.json -- true",
            "nono run --ask --approve policy:../home/scope.json -- true",
            "nono run --ask --approve policy:../home/program.json -- true",
            "nono run --ask --approve policy:../home/link.json -- true",
            "nono run --ask --approve policy:../home/missing.json -- true",
        ],
        str![[r#"
$ nono run --ask --approve policy:../home/key.json -- true
! [nono] error: [TMP]/home/key.json:2:37: unknown key "rules[0].acces" (nearest: "rules[0].access")
! [nono] hint: write "rules[0].access"
= exit 125
$ nono run --ask --approve policy:../home/action.json -- true
! [nono] error: [TMP]/home/action.json:2:28: rules[0].action: "perhaps" is not one of allow, deny, ask
= exit 125
$ nono run --ask --approve policy:../home/relative.json -- true
! [nono] error: [TMP]/home/relative.json:2:3: path: must begin with /, ~/ or $HOME/ (/**/ for anywhere)
= exit 125
$ nono run --ask --approve policy:../home/glob.json -- true
! [nono] error: [TMP]/home/glob.json:2:3: path: a [ is not closed
= exit 125
$ nono run --ask --approve policy:../home/expires.json -- true
! [nono] error: [TMP]/home/expires.json:2:3: expires: write a time like 2027-01-31T18:00:00Z
= exit 125
$ nono run --ask --approve policy:../home/scope.json -- true
! [nono] error: [TMP]/home/scope.json:2:3: scope: "directory" needs a path that ends with /**
= exit 125
$ nono run --ask --approve policy:../home/program.json -- true
! [nono] error: [TMP]/home/program.json:2:3: scope: a session grant holds for every program; write "once"
= exit 125
$ nono run --ask --approve policy:../home/link.json -- true
! [nono] error: [TMP]/home/link.json:2:3: path: [TMP]/home/link is a link to [TMP]/home/real
! [nono] hint: rules need paths without links: write [TMP]/home/real
= exit 125
$ nono run --ask --approve policy:../home/missing.json -- true
! [nono] error: cannot use the policy file: cannot read [TMP]/work/../home/missing.json: No such file or directory
= exit 125

"#]],
    );
}

#[test]
fn rules_that_another_user_can_change_are_refused() {
    let world = World::new();
    let rules = r#"{"rules": []}"#;
    for name in
        ["work/own.json", "home/open.json", "home/shared/rules.json", "home/twin.json", "home/good.json"]
    {
        world.file(name, rules);
    }
    fs::set_permissions(world.path("home/open.json"), fs::Permissions::from_mode(0o664)).unwrap();
    fs::set_permissions(world.path("home/shared"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::hard_link(world.path("home/twin.json"), world.path("work/twin.json")).unwrap();
    symlink("../home/good.json", world.path("work/way.json")).unwrap();
    world.golden(
        &[
            "nono run --allow . --ask --approve policy:own.json -- true",
            "nono run --allow . --deny own.json --ask --approve policy:own.json -- true",
            "nono run --read . --ask --approve policy:own.json -- echo read only is fine",
            "nono run --allow . --ask --approve policy:way.json -- true",
            "nono run --allow . --ask --approve policy:../home/good.json -- echo fine",
            "nono run --allow . --ask --approve policy:../home/twin.json -- true",
            "nono run --ask --approve policy:../home/open.json -- true",
            "nono run --ask --approve policy:../home/shared/rules.json -- true",
            "nono run --ask --approve policy:../home -- true",
        ],
        str![[r#"
$ nono run --allow . --ask --approve policy:own.json -- true
! [nono] error: cannot use the policy file: [TMP]/work/own.json is writable inside the sandbox through the grant of [TMP]/work
! [nono] hint: keep it outside the grants of the command
= exit 125
$ nono run --allow . --deny own.json --ask --approve policy:own.json -- true
! [nono] error: cannot use the policy file: [TMP]/work/own.json is writable inside the sandbox through the grant of [TMP]/work
! [nono] hint: keep it outside the grants of the command
= exit 125
$ nono run --read . --ask --approve policy:own.json -- echo read only is fine
read only is fine
$ nono run --allow . --ask --approve policy:way.json -- true
! [nono] error: cannot use the policy file: [TMP]/work/way.json is writable inside the sandbox through the grant of [TMP]/work, and leads to [TMP]/home/good.json
! [nono] hint: keep it outside the grants of the command
= exit 125
$ nono run --allow . --ask --approve policy:../home/good.json -- echo fine
fine
$ nono run --allow . --ask --approve policy:../home/twin.json -- true
! [nono] error: cannot use the policy file: [TMP]/home/twin.json has 2 hard links, and could be changed through another one
! [nono] hint: copy [TMP]/home/twin.json and use the copy
= exit 125
$ nono run --ask --approve policy:../home/open.json -- true
! [nono] error: cannot use the policy file: [TMP]/home/open.json can be written by others (mode 0664)
! [nono] hint: chmod go-w [TMP]/home/open.json
= exit 125
$ nono run --ask --approve policy:../home/shared/rules.json -- true
! [nono] error: cannot use the policy file: [TMP]/home/shared can be written by others (mode 0777), and leads to [TMP]/home/shared/rules.json
! [nono] hint: chmod go-w [TMP]/home/shared
= exit 125
$ nono run --ask --approve policy:../home -- true
! [nono] error: cannot use the policy file: [TMP]/home is not a regular file
= exit 125

"#]],
    );
}

#[test]
fn rules_of_another_user_are_refused() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can make a file of another user");
    }
    let world = World::new();
    chown(world.file("home/theirs.json", r#"{"rules": []}"#), Some(60999), None).unwrap();
    chown(world.file("home/roots.json", r#"{"rules": []}"#), Some(0), None).unwrap();
    world.golden(
        &[
            "nono run --ask --approve policy:../home/theirs.json -- true",
            "nono run --ask --approve policy:../home/roots.json -- echo fine",
        ],
        str![[r#"
$ nono run --ask --approve policy:../home/theirs.json -- true
! [nono] error: cannot use the policy file: [TMP]/home/theirs.json belongs to user 60999
! [nono] hint: keep it in a folder that you or root own
= exit 125
$ nono run --ask --approve policy:../home/roots.json -- echo fine
fine

"#]],
    );
}

#[test]
fn a_webhook_needs_a_secret_and_a_safe_way() {
    let world = World::new();
    for (name, text) in
        [("home/open", "0123456789abcdef"), ("home/short", "0123"), ("work/inside", "0123456789abcdef")]
    {
        world.file(name, text);
    }
    for name in ["home/short", "work/inside"] {
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    world.golden(
        &[
            "nono run --ask --approve webhook:https://example.org/ -- true",
            "nono run --ask --approve webhook:https://example.org/ --approve-secret ../home/open -- true",
            "nono run --ask --approve webhook:https://example.org/ --approve-secret ../home/short -- true",
            "nono run --read . --ask --approve webhook:https://example.org/ --approve-secret inside -- true",
            "NONO_WEBHOOK_SECRET=0123 nono run --ask --approve webhook:https://example.org/ -- true",
            "NONO_WEBHOOK_SECRET=0123456789abcdef nono run --ask --approve webhook:http://example.org/ -- true",
            "NONO_WEBHOOK_SECRET=0123456789abcdef nono run --ask --approve webhook:example.org -- true",
            "NONO_WEBHOOK_SECRET=0123456789abcdef nono run --env-all --ask --approve webhook:http://127.0.0.1:9/ -- env | grep -c WEBHOOK",
            "nono run --ask --approve deny --approve-secret inside -- true",
        ],
        str![[r#"
$ nono run --ask --approve webhook:https://example.org/ -- true
! [nono] error: --approve webhook:URL needs a secret shared with the service
! [nono] hint: add --approve-secret FILE, or set NONO_WEBHOOK_SECRET
= exit 2
$ nono run --ask --approve webhook:https://example.org/ --approve-secret ../home/open -- true
! [nono] error: --approve-secret: [TMP]/home/open can be read by others (mode 0644)
! [nono] hint: chmod 600 [TMP]/home/open
= exit 125
$ nono run --ask --approve webhook:https://example.org/ --approve-secret ../home/short -- true
! [nono] error: [TMP]/home/short: the secret is shorter than 16 bytes
! [nono] hint: make one: openssl rand -hex 32
= exit 125
$ nono run --read . --ask --approve webhook:https://example.org/ --approve-secret inside -- true
! [nono] error: --approve-secret: [TMP]/work/inside is readable inside the sandbox through the grant of [TMP]/work
! [nono] hint: keep it outside the grants of the command
= exit 125
$ NONO_WEBHOOK_SECRET=0123 nono run --ask --approve webhook:https://example.org/ -- true
! [nono] error: NONO_WEBHOOK_SECRET: the secret is shorter than 16 bytes
! [nono] hint: make one: openssl rand -hex 32
= exit 125
$ NONO_WEBHOOK_SECRET=0123456789abcdef nono run --ask --approve webhook:http://example.org/ -- true
! [nono] error: http://example.org/ is not on this machine, and http:// is not encrypted
! [nono] hint: use https://
= exit 2
$ NONO_WEBHOOK_SECRET=0123456789abcdef nono run --ask --approve webhook:example.org -- true
! [nono] error: "example.org" is not a valid webhook address: it must begin with https:// or http://
! [nono] hint: write https://host/path
= exit 2
$ NONO_WEBHOOK_SECRET=0123456789abcdef nono run --env-all --ask --approve webhook:http://127.0.0.1:9/ -- env | grep -c WEBHOOK
0
= exit 1
$ nono run --ask --approve deny --approve-secret inside -- true
! [nono] error: --approve-secret is for --approve webhook:URL
= exit 2

"#]],
    );
}

#[test]
fn asking_is_refused_without_a_supervisor_or_a_terminal() {
    World::new().golden(
        &[
            "nono wrap --ask -- true",
            "nono run --exec --capability-elevation -- true",
            "nono run --monitor --approve deny -- true",
            "nono run -- nono run --ask -- true",
            "nono run --approve deny -- true",
            "nono run --approve-secret x -- true",
            "nono run --ask --approve perhaps -- true",
            "nono run --ask --approve terminal --approve deny -- true",
        ],
        str![[r#"
$ nono wrap --ask -- true
! [nono] error: --ask needs a supervisor, and `nono wrap` has none
! [nono] hint: use `nono run`, or leave --ask out
= exit 2
$ nono run --exec --capability-elevation -- true
! [nono] error: --ask needs a supervisor, and --exec starts none
! [nono] hint: leave --exec or --ask out
= exit 2
$ nono run --monitor --approve deny -- true
! [nono] error: --approve needs a supervisor outside the sandbox, and --monitor confines it too
! [nono] hint: leave --monitor or --approve out
= exit 2
$ nono run -- nono run --ask -- true
! [nono] error: --ask needs a supervisor, and inside a nono sandbox the command runs directly
! [nono] hint: leave --ask out, or give it to the outer nono
! [nono] exit 2; no refusal was seen (-v shows the policy)
= exit 2
$ nono run --approve deny -- true
! [nono] error: --approve has no effect without --ask
! [nono] hint: add --ask
= exit 2
$ nono run --approve-secret x -- true
! [nono] error: --approve-secret has no effect without --ask
! [nono] hint: add --ask
= exit 2
$ nono run --ask --approve perhaps -- true
! [nono] error: invalid value 'perhaps' for '--approve <WHO>': write terminal, policy:FILE, webhook:URL or deny
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --ask --approve terminal --approve deny -- true
! [nono] error: --approve: only policy:FILE can be followed by another approver
= exit 2

"#]],
    );
}

#[test]
fn a_run_is_answered_by_the_rules() {
    let world = furnished();
    fs::write(world.path("home/data/table.csv"), "1,2\n").unwrap();
    fs::write(world.path("home/data/secret/key"), "key\n").unwrap();
    world.golden(
        &[
            "nono run --ask --approve policy:../home/rules.json -- cat ../home/data/table.csv",
            "nono run -s --ask --approve policy:../home/rules.json -- cat ../home/data/secret/key",
            "nono run -s --ask --approve policy:../home/rules.json --approve deny -- cat ../home/rules.json",
            "nono run -s --ask --approve policy:../home/rules.json -- sh -c 'echo 3 >> ../home/data/table.csv'",
            "cat ../home/data/table.csv",
        ],
        str![[r#"
$ nono run --ask --approve policy:../home/rules.json -- cat ../home/data/table.csv
1,2
! [nono] granted while it ran: read [TMP]/home/data/table.csv
$ nono run -s --ask --approve policy:../home/rules.json -- cat ../home/data/secret/key
! cat: ../home/data/secret/key: Permission denied
= exit 1
$ nono run -s --ask --approve policy:../home/rules.json --approve deny -- cat ../home/rules.json
! cat: ../home/rules.json: Permission denied
= exit 1
$ nono run -s --ask --approve policy:../home/rules.json -- sh -c 'echo 3 >> ../home/data/table.csv'
! sh: 1: cannot create ../home/data/table.csv: Permission denied
= exit 2
$ cat ../home/data/table.csv
1,2

"#]],
    );
}
