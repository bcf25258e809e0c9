//! `nono why`: verdict, reason, rule, closest grant, flag.

use snapbox::str;

use super::world::World;

fn furnished() -> World {
    let world = World::new();
    world.file("work/data/file", "");
    world.file("home/.ssh/id", "");
    world
}

#[test]
fn paths() {
    furnished().golden(
        &[
            "nono why --path /usr/bin/env",
            "nono why --path /usr/bin/env --op write",
            "nono why --path data/file",
            "nono why --path data/file --op write",
            "nono why --path data/file --op readwrite",
            "nono why --path data",
            "nono why --read . --path data/file",
            "nono why --read . --path data/file --op write",
            "nono why --read . --path data/new --op write",
            "nono why --allow-cwd --path data/../data/new --op readwrite",
            "nono why --allow . --deny data --path data/file",
            "nono why --allow .. --path ~/.ssh/id",
            "nono why --path ~/.ssh/id",
            "nono why --read .. --path ../state",
            "nono why --read-file data/file --path data/file",
            "nono why -p rust-dev --path data/file --op write",
        ],
        str![[r#"
$ nono why --path /usr/bin/env
ALLOWED: read /usr/bin/env
granted by: /usr (read) [group:system]
$ nono why --path /usr/bin/env --op write
DENIED: write /usr/bin/env
reason: granted for reading only
closest grant: /usr/bin (read) [group:system]
to open it: --write-file /usr/bin/env
$ nono why --path data/file
DENIED: read data/file
reason: not granted
to open it: --read-file [TMP]/work/data/file
$ nono why --path data/file --op write
DENIED: write data/file
reason: not granted
to open it: --write-file [TMP]/work/data/file
$ nono why --path data/file --op readwrite
DENIED: read+write data/file
reason: not granted
to open it: --allow-file [TMP]/work/data/file
$ nono why --path data
DENIED: read data
reason: not granted
to open it: --read [TMP]/work/data
$ nono why --read . --path data/file
ALLOWED: read data/file
granted by: [TMP]/work (read) [user]
$ nono why --read . --path data/file --op write
DENIED: write data/file
reason: granted for reading only
closest grant: [TMP]/work (read) [user]
to open it: --write-file [TMP]/work/data/file
$ nono why --read . --path data/new --op write
DENIED: write data/new
reason: granted for reading only
closest grant: [TMP]/work (read) [user]
to open it: --write [TMP]/work/data
$ nono why --allow-cwd --path data/../data/new --op readwrite
ALLOWED: read+write data/../data/new
granted by: [TMP]/work (read+write) [user]
$ nono why --allow . --deny data --path data/file
DENIED: read data/file
reason: closed by --deny
rule: deny [user]
closest grant: [TMP]/work (read+write) [user]
to open it: leave --deny out
$ nono why --allow .. --path ~/.ssh/id
DENIED: read [TMP]/home/.ssh/id
reason: protected (ssh)
rule: protected group ssh: SSH keys and configuration
closest grant: [TMP] (read+write) [user]
to open it: --bypass-protection [TMP]/home/.ssh/id --read-file [TMP]/home/.ssh/id
$ nono why --path ~/.ssh/id
DENIED: read [TMP]/home/.ssh/id
reason: protected (ssh)
rule: protected group ssh: SSH keys and configuration
to open it: --bypass-protection [TMP]/home/.ssh/id --read-file [TMP]/home/.ssh/id
$ nono why --read .. --path ../state
DENIED: read ../state
reason: nono's own files are never open
rule: built in
closest grant: [TMP] (read) [user]
to open it: no flag opens this
$ nono why --read-file data/file --path data/file
ALLOWED: read data/file
granted by: [TMP]/work/data/file (read) [user]
$ nono why -p rust-dev --path data/file --op write
ALLOWED: write data/file
granted by: [TMP]/work (read+write) [profile:rust-dev]

"#]],
    );
}

#[test]
fn hosts() {
    furnished().golden(
        &[
            "nono why --host example.org",
            "nono why --host example.org --port 443 --allow-net",
            "nono why --host localhost --port 80 --allow-connect-port 80",
            "nono why --host localhost --port 81 --allow-connect-port 80",
            "nono why -p claude-code --host example.org",
        ],
        str![[r#"
$ nono why --host example.org
DENIED: connect to example.org
reason: the network is blocked
to open it: --allow-domain example.org
$ nono why --host example.org --port 443 --allow-net
ALLOWED: connect to example.org:443
reason: the network is open
$ nono why --host localhost --port 80 --allow-connect-port 80
ALLOWED: connect to localhost:80
reason: the port is open
$ nono why --host localhost --port 81 --allow-connect-port 80
DENIED: connect to localhost:81
reason: only single ports are open, and this is not one of them
to open it: --allow-connect-port 81
$ nono why -p claude-code --host example.org
DENIED: connect to example.org
reason: only some hosts are open, and this is not one of them
to open it: --allow-domain example.org

"#]],
    );
}

#[test]
fn an_exit_code_only_when_asked_for() {
    let world = furnished();
    for (line, code) in [
        ("nono why --path data/file", 0),
        ("nono why --exit-code --path data/file", 1),
        ("nono why --exit-code --read . --path data/file", 0),
        ("nono why --exit-code --host example.org", 1),
        ("nono why --exit-code --json --host example.org", 1),
        ("nono why --exit-code --allow-net --host example.org", 0),
    ] {
        world.sh(line).quiet(code);
    }
}

/// Nothing has to be opened for a name that does not exist, least of all the root of everything.
#[test]
fn what_does_not_exist_needs_no_wide_grant() {
    let world = furnished();
    for path in ["/no/such/place", "../home/no/such/place"] {
        let outcome = world.sh(&format!("nono why --path {path}"));
        let out = world.clean(&outcome.out());
        assert!(out.contains("does not exist") && !out.contains("to open it: --read"), "{out}");
    }
}

#[test]
fn a_question_must_fit_together() {
    let world = furnished();
    assert_eq!(world.sh("nono why --port 80 --path x").code(), Some(2), "a port without a host");
    let outcome = world.sh("nono why");
    assert!(outcome.err().contains("--path") && outcome.err().contains("--host"), "{}", outcome.err());
    let outcome = world.sh("NONO_CAP_FILE=/etc/passwd nono why --self --path data/file");
    assert!(
        outcome.code() == Some(125) && outcome.err().contains("/etc/passwd"),
        "which file: {}",
        outcome.err()
    );
}

#[test]
fn about_oneself() {
    furnished().golden(
        &[
            "nono run --read data -- nono why --self --path data/file",
            "nono run --read data -- nono why --self --path data/file --op write",
            "nono run --read .. -- nono why --self --path ~/.ssh/id --exit-code || true",
            "nono wrap --read data -- nono why --self --json --path data/file",
            "nono run --monitor --allow-net -- nono why --self --host example.org",
            "nono why --self --path data/file",
            "NONO_CAP_FILE=/no/such nono why --self --path data/file",
        ],
        str![[r#"
$ nono run --read data -- nono why --self --path data/file
ALLOWED: read data/file
granted by: [TMP]/work/data (read) [user]
$ nono run --read data -- nono why --self --path data/file --op write
DENIED: write data/file
reason: granted for reading only
closest grant: [TMP]/work/data (read) [user]
to open it: --write-file [TMP]/work/data/file
$ nono run --read .. -- nono why --self --path ~/.ssh/id --exit-code || true
DENIED: read [TMP]/home/.ssh/id
reason: protected (ssh)
rule: protected group ssh: SSH keys and configuration
closest grant: [TMP] (read) [user]
to open it: --bypass-protection [TMP]/home/.ssh/id --read-file [TMP]/home/.ssh/id
! [nono] exit 1; no refusal was seen (-v shows the policy)
$ nono wrap --read data -- nono why --self --json --path data/file
{
  "status": "allowed",
  "granted_path": "[TMP]/work/data",
  "access": "read",
  "source": "user",
  "path": "data/file",
  "operation": "read"
}
$ nono run --monitor --allow-net -- nono why --self --host example.org
ALLOWED: connect to example.org
reason: the network is open
$ nono why --self --path data/file
! [nono] error: --self works only inside a nono sandbox (NONO_CAP_FILE names no file)
! [nono] hint: leave --self out to ask about a policy given by flags
= exit 125
$ NONO_CAP_FILE=/no/such nono why --self --path data/file
! [nono] error: --self works only inside a nono sandbox (NONO_CAP_FILE names no file)
! [nono] hint: leave --self out to ask about a policy given by flags
= exit 125

"#]],
    );
}

#[test]
fn wrong_questions() {
    furnished().golden(
        &[
            "nono why --path x --host y",
            "nono why --path x --op execute",
            "nono why --self --allow . --path x",
            "nono why --read /no/such --path x",
        ],
        str![[r#"
$ nono why --path x --host y
! [nono] error: the argument '--path <PATH>' cannot be used with '--host <HOST>'
! [nono]
! [nono] Usage: nono why <--path <PATH>|--host <HOST>>
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono why --path x --op execute
! [nono] error: invalid value 'execute' for '--op <OP>'
! [nono]   [possible values: read, write, readwrite]
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono why --self --allow . --path x
! [nono] error: the argument '--self' cannot be used with '--allow <DIR>'
! [nono]
! [nono] Usage: nono why --self <--path <PATH>|--host <HOST>>
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono why --read /no/such --path x
! [nono] error: /no/such does not exist (granted by you)
= exit 125

"#]],
    );
}
