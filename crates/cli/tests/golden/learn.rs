//! `nono learn`: what is recorded, what is proposed, and that the proposal is enough.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use snapbox::str;

use super::world::World;

/// Everything that changes a folder, and programs of its own.
const JOB: &str = r#"#!/bin/sh
set -e
cat ~/data/in > result
mkdir -p ~/out/sub
echo one > ~/out/sub/first
mv ~/out/sub/first ~/out/sub/second
cat ~/out/sub/second
ln -s second ~/out/sub/link
ln ~/out/sub/second ~/out/sub/hard
cd ~/out
truncate -s 1 ../kept
rm -r sub
cd ~/many
cat 1 2 3 4 > /dev/null
../tools/helper.py
mktemp > /dev/null
"#;

const HELPER: &str = r#"#!/usr/bin/env python3
import os, socket
with open(os.path.expanduser("~/data/both"), "r+") as f:
    f.write("x")
s = socket.socket(socket.AF_UNIX)
s.bind(os.path.expanduser("~/out/socket"))
os.unlink(os.path.expanduser("~/out/socket"))
print("helped")
"#;

fn script(world: &World, below: &str, text: &str) {
    let path = world.file(below, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn furnished() -> World {
    let world = World::new();
    script(&world, "home/tools/job.sh", JOB);
    script(&world, "home/tools/helper.py", HELPER);
    for name in ["data/in", "data/both", "kept", "many/1", "many/2", "many/3", "many/4", ".ssh/id"] {
        world.file(&format!("home/{name}"), "some text");
    }
    world.dir("home/out", 0o755);
    world
}

fn profile(world: &World, name: &str) -> Value {
    let path = world.path(&format!("home/.config/nono/profiles/{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn what_was_learned_is_enough() {
    let world = furnished();
    let job = "../home/tools/job.sh";
    // Without a profile it gets nowhere.
    assert_eq!(world.sh(&format!("nono run -s -- {job}")).status.code(), Some(2));
    let learned = world.sh(&format!("nono learn --allow-all --save job -- {job}"));
    assert_eq!(learned.status.code(), Some(0), "{}", learned.err());
    assert_eq!(learned.out(), "one\nhelped\n", "with --save the command keeps its output");
    assert_eq!(
        profile(&world, "job"),
        json!({
            "name": "job",
            "description": "What job.sh used when it was watched",
            "extends": "default",
            "filesystem": {
                "allow": ["$HOME/out"],
                "read": ["$HOME/many", "$HOME/tools"],
                "write": ["$WORKDIR"],
                "allow_file": ["$HOME/data/both"],
                "read_file": ["$HOME/data/in"],
                "write_file": ["$HOME/kept"],
            },
        })
    );
    // A second time, with nothing but the profile; and not without it.
    fs::remove_file(world.path("work/result")).unwrap();
    let again = world.sh(&format!("nono run -p job -- {job}"));
    assert_eq!((again.status.code(), again.out().as_str()), (Some(0), "one\nhelped\n"), "{}", again.err());
    assert!(again.err().is_empty(), "{}", again.err());
    assert!(world.path("work/result").exists());
    assert_eq!(world.sh(&format!("nono run -s -- {job}")).status.code(), Some(2));
    world.left_nothing();
}

/// Files that run later outside, there or not, are marked instead of proposed.
#[test]
fn what_runs_later_is_not_proposed() {
    let world = furnished();
    world.file("home/.gitconfig", "[user]\n");
    world.dir("home/.local/bin", 0o755);
    let written = [".gitconfig", ".vimrc", ".local/bin/tool"];
    let job: String = written.iter().map(|name| format!("echo x >> ~/{name}; ")).collect();
    let learned = world.sh(&format!("nono learn --allow-all -- sh -c '{job}echo x > ~/out/new; true'"));
    assert_eq!(learned.code(), Some(0), "{learned:?}");
    let proposed: Value = serde_json::from_str(&learned.out()).unwrap();
    assert_eq!(proposed["filesystem"], json!({ "write": ["$HOME/out"] }), "{learned:?}");
    let said = learned.err();
    let (_, marked) = said.split_once("not proposed:").unwrap_or_else(|| panic!("{said}"));
    for name in [".gitconfig", ".vimrc", ".local/bin"] {
        let line = marked.lines().find(|line| line.contains(&format!("$HOME/{name}")));
        assert!(line.is_some_and(|line| line.contains("runs later")), "{name}: {said}");
    }
}

#[test]
fn it_proposes_and_tells() {
    let world = furnished();
    let paths = "cat ~/data/in ~/.ssh/id ../state/x";
    world.golden(
        &[
            &format!("nono learn -- sh -c '{paths}; echo said > here; echo x > ~/new; true'"),
            &format!("nono learn --allow-all -- sh -c '{paths}; echo said > here; ls ~ > /dev/null; true'"),
            "nono learn -s --read ../home/data -- sh -c 'echo said; cat ~/data/in > /dev/null'",
            "nono learn -s -- true",
        ],
        str![[r#"
$ nono learn -- sh -c 'cat ~/data/in ~/.ssh/id ../state/x; echo said > here; echo x > ~/new; true'
{
  "description": "What sh used when it was watched",
  "extends": "default",
  "filesystem": {
    "write": [
      "$WORKDIR"
    ],
    "read_file": [
      "$HOME/data/in"
    ]
  }
}
! cat: [TMP]/home/data/in: Permission denied
! cat: [TMP]/home/.ssh/id: Permission denied
! cat: ../state/x: Permission denied
! sh: 1: cannot create here: Read-only file system
! sh: 1: cannot create [TMP]/home/new: Read-only file system
! [nono] it started:
! [nono]   cat
! [nono] it used, beyond what its profile opens:
! [nono]   write $WORKDIR and everything in it
! [nono]   read $HOME/data/in
! [nono] it was denied in this run:
! [nono]   write $HOME
! [nono]   read $HOME/.ssh/id
! [nono]   read $HOME/data/in
! [nono]   write $HOME/new
! [nono]   write $WORKDIR
! [nono]   write $WORKDIR/here
! [nono] not proposed:
! [nono]   read $HOME/.ssh/id: protected (ssh); it needs --bypass-protection [TMP]/home/.ssh/id --read-file [TMP]/home/.ssh/id
! [nono]   write $HOME: that would open everything in it
! [nono] hint: denials may have stopped it early; --allow-all shows what it would do next
$ nono learn --allow-all -- sh -c 'cat ~/data/in ~/.ssh/id ../state/x; echo said > here; ls ~ > /dev/null; true'
{
  "description": "What sh used when it was watched",
  "extends": "default",
  "filesystem": {
    "write": [
      "$WORKDIR"
    ],
    "read_file": [
      "$HOME/data/in"
    ]
  }
}
! [nono] warning: --allow-all: it may read and change everything that is not protected, and use the network
! [nono] hint: with --rollback, what it changes in the working directory can be undone
! some textcat: [TMP]/home/.ssh/id: Permission denied
! cat: ../state/x: Permission denied
! [nono] it started:
! [nono]   cat
! [nono]   ls
! [nono] it used, beyond what its profile opens:
! [nono]   write $WORKDIR and everything in it
! [nono]   read $HOME/data/in
! [nono] it was denied in this run:
! [nono]   read $HOME/.ssh/id
! [nono] not proposed:
! [nono]   read $HOME/.ssh/id: protected (ssh); it needs --bypass-protection [TMP]/home/.ssh/id --read-file [TMP]/home/.ssh/id
! [nono]   read $HOME: that would open everything in it
$ nono learn -s --read ../home/data -- sh -c 'echo said; cat ~/data/in > /dev/null'
{
  "description": "What sh used when it was watched",
  "extends": "default",
  "filesystem": {
    "read_file": [
      "$HOME/data/in"
    ]
  }
}
! said
$ nono learn -s -- true
{
  "description": "What true used when it was watched",
  "extends": "default"
}

"#]],
    );
}

#[test]
fn what_it_cannot_do_is_refused() {
    let world = furnished();
    world.profile("mine", "{}");
    world.golden(
        &[
            "nono learn --ask -- true",
            "nono learn --approve deny -- true",
            "nono learn --save mine -- true",
            "nono learn --save default -- true",
            "nono learn --save a/b -- true",
            "nono learn -- no-such-program",
            "nono learn",
            "nono learn --save -- sh -c 'exit 3'",
            "nono run -s --read-file ../bin/nono -- nono learn -- true",
            "nono learn -s -- sh -c 'exit 3' > /dev/null",
            "nono learn -s -- sh -c 'kill -9 $$' > /dev/null",
        ],
        str![[r#"
$ nono learn --ask -- true
! [nono] error: --ask cannot be used with learn, which never asks; leave --ask out
= exit 2
$ nono learn --approve deny -- true
! [nono] error: --approve cannot be used with learn, which never asks; leave --approve out
= exit 2
$ nono learn --save mine -- true
! [nono] error: [TMP]/home/.config/nono/profiles/mine.json already exists
! [nono] hint: choose another name, or edit it
= exit 125
$ nono learn --save default -- true
! [nono] error: default is the name of a built-in profile
! [nono] hint: choose another name
= exit 125
$ nono learn --save a/b -- true
! [nono] error: "a/b" is not a profile name: use letters, digits, '-' and '_'
= exit 2
$ nono learn -- no-such-program
! [nono] error: no-such-program: command not found
= exit 127
$ nono learn
! [nono] error: the following required arguments were not provided:
! [nono]   <COMMAND>...
! [nono]
! [nono] Usage: nono learn <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono learn --save -- sh -c 'exit 3'
! [nono] error: a value is required for '--save <NAME>' but none was supplied
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run -s --read-file ../bin/nono -- nono learn -- true
! [nono] error: learn needs a supervisor, which it cannot start inside a sandbox; run it outside
= exit 2
$ nono learn -s -- sh -c 'exit 3' > /dev/null
= exit 3
$ nono learn -s -- sh -c 'kill -9 $$' > /dev/null
= exit 137

"#]],
    );
}

#[test]
fn a_network_that_was_used_is_proposed() {
    let world = World::new();
    let connect =
        "import socket; s = socket.socket(); s.setblocking(False); s.connect_ex((\"192.0.2.1\", 443))";
    let line = format!("nono learn --allow-all -- python3 -c '{connect}'");
    let outcome = world.sh(&line);
    let profile: Value = serde_json::from_str(&outcome.out()).unwrap();
    assert_eq!(profile["network"], json!({"block": false}), "{}", outcome.err());
    assert!(outcome.err().contains("[nono]   connect to 192.0.2.1:443"), "{}", outcome.err());
    // A server of its own is no reason to open anything.
    let own = "import socket; l = socket.create_server((\"127.0.0.1\", 0)); s = socket.create_connection(l.getsockname())";
    let outcome = world.sh(&format!("nono learn -- python3 -c '{own}'"));
    let profile: Value = serde_json::from_str(&outcome.out()).unwrap();
    assert_eq!(profile.get("network"), None, "{}", outcome.err());
}

/// With everything open, what is snapshotted is still the working directory and what the flags name.
#[test]
fn snapshots_do_not_follow_allow_all() {
    let world = furnished();
    world.file("work/mine", "before");
    let line =
        "nono learn --allow-all --rollback --no-rollback-prompt --save it -- sh -c 'echo after > mine'";
    let outcome = world.sh(line);
    assert_eq!(outcome.status.code(), Some(0), "{}", outcome.err());
    assert!(outcome.err().contains("snapshot 0: 1 file,"), "{}", outcome.err());
    assert!(outcome.err().contains("only what it changes in the working directory can be undone"));
    let undone = world.sh("nono undo --yes");
    assert_eq!(undone.status.code(), Some(0), "{}", undone.err());
    assert_eq!(fs::read_to_string(world.path("work/mine")).unwrap(), "before");
}
