//! `nono profile …` where all is well.

use snapbox::str;

use super::world::World;

#[test]
fn lists() {
    let world = World::new();
    world.profile("mine", r#"{"description": "My own", "extends": ["rust-dev", "node-dev"]}"#);
    world.profile("broken", "{");
    world.golden(
        &["nono profile list", "nono profile list --json | tail -18"],
        str![[r#"
$ nono profile list
default        System programs only; no working directory, no network (built in)
claude-code    Claude Code: its own state, the working directory, its services (built in)
codex          Codex: its own state, the working directory, its services (built in)
gemini         Gemini CLI: its own state, the working directory, its services (built in)
opencode       OpenCode: its own state, the working directory, its services (built in)
qwen           Qwen Code: its own state, the working directory, its services (built in)
hermes         Hermes: its own state, the working directory, its services (built in)
aider          aider: its own state, the working directory, its services (built in)
python-dev     Python projects: interpreters read, package caches written, no network (built in)
node-dev       Node projects: runtimes read, package caches written, no network (built in)
rust-dev       Rust projects: toolchains read, cargo caches written, no network (built in)
go-dev         Go projects: toolchains read, module and build caches written, no network (built in)
broken         unusable: [TMP]/home/.config/nono/profiles/broken.json:1:1: Unterminated object
mine           My own ([TMP]/home/.config/nono/profiles/mine.json)
$ nono profile list --json | tail -18
  {
    "name": "broken",
    "description": null,
    "source": "[TMP]/home/.config/nono/profiles/broken.json",
    "extends": [],
    "error": "[TMP]/home/.config/nono/profiles/broken.json:1:1: Unterminated object"
  },
  {
    "name": "mine",
    "description": "My own",
    "source": "[TMP]/home/.config/nono/profiles/mine.json",
    "extends": [
      "rust-dev",
      "node-dev"
    ],
    "error": null
  }
]

"#]],
    );
    let list: serde_json::Value =
        serde_json::from_slice(&world.sh("nono profile list --json").stdout).unwrap();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 14);
    for profile in list {
        let keys: Vec<&str> = profile.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["name", "description", "source", "extends", "error"]);
    }
}

#[test]
fn shows() {
    let world = World::new();
    world.profile(
        "mine",
        r#"{
  // Comments, and a comma at the end, are fine.
  "description": "My own", /* and
     so are these */
  "extends": "default",
  "filesystem": {
    "read": [{"path": "~/data", "optional": true}, "/opt"], "deny": ["$WORKDIR/.env"],
    "read_file": ["~/.netrc"], "bypass_protection": ["~/.netrc"],
  },
  "network": {"block": true, "allow_connect_port": [5432]},
  "environment": {"allow_vars": ["MY_*"], "deny_vars": ["MY_KEY"], "set_vars": {"A": "b"}},
}"#,
    );
    world.golden(
        &["nono profile show mine", "nono profile show mine --json"],
        str![[r#"
$ nono profile show mine
mine: My own
inherits: default < mine
groups.include:
  git_config
filesystem.grants:
  ~/data (read) optional
  /opt (read)
  ~/.netrc (read)
filesystem.deny:
  $WORKDIR/.env
filesystem.bypass_protection:
  ~/.netrc
network.block: true
network.allow_connect_port:
  5432
workdir: none
environment.allow_vars:
  MY_*
environment.deny_vars:
  MY_KEY
environment.set_vars.A: b
interactive: false
$ nono profile show mine --json
{
  "groups": {
    "include": [
      "git_config"
    ]
  },
  "filesystem": {
    "grants": [
      "~/data (read) optional",
      "/opt (read)",
      "~/.netrc (read)"
    ],
    "deny": [
      "$WORKDIR/.env"
    ],
    "bypass_protection": [
      "~/.netrc"
    ],
    "unix_socket": []
  },
  "network": {
    "block": true,
    "allow_connect_port": [
      5432
    ]
  },
  "workdir": "none",
  "environment": {
    "allow_vars": [
      "MY_*"
    ],
    "deny_vars": [
      "MY_KEY"
    ],
    "set_vars": {
      "A": "b"
    }
  },
  "rollback": {},
  "interactive": false,
  "security": {}
}

"#]],
    );
}

#[test]
fn every_built_in_profile_can_be_shown_and_used() {
    let world = World::new();
    let names = world.sh("nono profile list | cut -d' ' -f1").out();
    let expected = [
        "default",
        "claude-code",
        "codex",
        "gemini",
        "opencode",
        "hermes",
        "python-dev",
        "node-dev",
        "rust-dev",
        "go-dev",
    ];
    for name in expected {
        assert!(names.lines().any(|line| line == name), "{name} is not listed");
        world.sh(&format!("nono profile show {name}")).quiet(0);
        world.sh(&format!("nono run -p {name} -- true")).quiet(0);
    }
    world.left_nothing();
}

#[test]
fn differences() {
    let world = World::new();
    world.profile(
        "mine",
        r#"{"filesystem": {"read_file": ["/x"], "deny": ["/y"]}, "network": {"block": false}}"#,
    );
    world.profile(
        "more",
        r#"{"extends": "mine", "filesystem": {"read": [{"path": "/z", "optional": true}]}}"#,
    );
    world.golden(
        &[
            "nono profile diff default default",
            "nono profile diff default mine",
            "nono profile diff mine more --exit-code",
            "nono profile diff mine more --exit-code --json",
            "nono profile diff mine mine --exit-code",
        ],
        str![[r#"
$ nono profile diff default default
no difference
$ nono profile diff default mine
- groups.include: git_config
- network.block: true
+ network.block: false
+ filesystem.grant: /x (read, file)
+ filesystem.deny: /y
$ nono profile diff mine more --exit-code
+ filesystem.grant: /z (read, directory, optional)
= exit 1
$ nono profile diff mine more --exit-code --json
[
  {
    "key": "filesystem.grant",
    "change": "added",
    "value": "/z (read, directory, optional)"
  }
]
= exit 1
$ nono profile diff mine mine --exit-code
no difference

"#]],
    );
}

#[test]
fn a_profile_works() {
    let world = World::new();
    world.file("home/notes/a", "note\n");
    world.file("work/.env", "secret\n");
    world.profile(
        "mine",
        r#"{"filesystem": {"read": ["~/notes"], "deny": ["$WORKDIR/.env"]}, "workdir": {"access": "readwrite"},
            "environment": {"set_vars": {"GREETING": "hello"}}}"#,
    );
    world.profile("more", r#"{"filesystem": {"read": ["~/notes"]}}"#);
    world.golden(
        &[
            "nono run -s -p mine -- sh -c 'cat ~/notes/a; echo $GREETING; touch made; cat .env'",
            "nono run -s --extends more -- cat ../home/notes/a",
            "nono run -s -p ~/.config/nono/profiles/more.json -- cat ../home/notes/a",
        ],
        str![[r#"
$ nono run -s -p mine -- sh -c 'cat ~/notes/a; echo $GREETING; touch made; cat .env'
note
hello
! cat: .env: Permission denied
= exit 1
$ nono run -s --extends more -- cat ../home/notes/a
note
$ nono run -s -p ~/.config/nono/profiles/more.json -- cat ../home/notes/a
note

"#]],
    );
}

#[test]
fn a_run_reads_its_profile_once() {
    let world = World::new();
    world.profile(
        "mine",
        r#"{"workdir": {"access": "readwrite"}, "security": {"capability_elevation": true}}"#,
    );
    let rules = world.file("home/rules.json", r#"{"rules": []}"#);
    let line = format!(
        "strace -f -e trace=openat -o trace nono run -p mine --approve policy:{} -- true 2>errors; \
         cat errors; grep -c profiles/mine.json trace",
        rules.display()
    );
    let outcome = world.sh(&line);
    assert_eq!(outcome.out(), "1\n", "{outcome:?}");
}
