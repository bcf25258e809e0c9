//! Profiles that cannot be used: which file, which line, which word, and what to write instead.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use snapbox::str;

use super::world::World;

#[test]
fn words_that_are_not_known() {
    let world = World::new();
    world.profile("key", "{\n  \"name\": \"key\",\n  \"filesytem\": {}\n}");
    world.profile("inner", "{\n  // comment\n  \"filesystem\": {\"reed\": []}\n}");
    world.profile("alien", "{\"zzzzzzzzzzzzzz\": 1}");
    world.profile("type", "{\n\"workdir\": {\n   \"access\": 5}}");
    world.profile("value", "{\"workdir\": {\"access\": \"sometimes\"}}");
    world.profile("twice", "{\"name\": \"twice\",\n\"name\": \"twice\"}");
    world.profile("group", "{\"groups\": {\"include\": [\"ruste\"]}}");
    world.profile("unprotect", "{\"groups\": {\"exclude\": [\"ssh\"]}}");
    let lines = ["key", "inner", "alien", "type", "value", "twice", "group", "unprotect"]
        .map(|name| format!("nono run -p {name} -- true"));
    world.golden(&lines.each_ref().map(String::as_str), str![[r#"
$ nono run -p key -- true
! [nono] error: [TMP]/home/.config/nono/profiles/key.json:3:3: unknown key "filesytem" (nearest: "filesystem")
! [nono] hint: write "filesystem"
= exit 125
$ nono run -p inner -- true
! [nono] error: [TMP]/home/.config/nono/profiles/inner.json:3:18: unknown key "filesystem.reed" (nearest: "filesystem.read")
! [nono] hint: write "filesystem.read"
= exit 125
$ nono run -p alien -- true
! [nono] error: [TMP]/home/.config/nono/profiles/alien.json:1:2: unknown key "zzzzzzzzzzzzzz"
! [nono] hint: nono profile schema prints every known key
= exit 125
$ nono run -p type -- true
! [nono] error: [TMP]/home/.config/nono/profiles/type.json:3:14: workdir.access: expected string, found number
= exit 125
$ nono run -p value -- true
! [nono] error: [TMP]/home/.config/nono/profiles/value.json:1:24: workdir.access: "sometimes" is not one of none, read, write, readwrite
= exit 125
$ nono run -p twice -- true
! [nono] error: [TMP]/home/.config/nono/profiles/twice.json:2:1: key "name" appears twice
= exit 125
$ nono run -p group -- true
! [nono] error: profile group: unknown group "ruste" (nearest: "rust")
! [nono] hint: use "rust"
= exit 125
$ nono run -p unprotect -- true
! [nono] error: profile unprotect: the protected group "ssh" cannot be excluded
! [nono] hint: open single paths with filesystem.bypass_protection and a grant
= exit 125

"#]]);
}

#[test]
fn text_that_is_not_a_profile() {
    let world = World::new();
    world.profile("empty", "");
    world.profile("open", "{\n  \"name\": \"open\",\n");
    world.profile("comma", "{\n  \"name\": \"comma\",,\n}");
    world.profile("list", "[]");
    world.profile("unended", "{ /* for ever");
    world.file("home/.config/nono/profiles/bytes.json", b"{\"name\": \"\xff\"}");
    world.dir("home/.config/nono/profiles/folder.json", 0o755);
    let shut = world.profile("shut", "{}");
    fs::set_permissions(shut, fs::Permissions::from_mode(0o000)).unwrap();
    world.profile("large", &" ".repeat(5 << 20));
    let lines = ["empty", "open", "comma", "list", "unended", "bytes", "folder", "shut", "large"]
        .map(|name| format!("nono run -p {name} -- true"));
    world.golden(&lines.each_ref().map(String::as_str), str![[r#"
$ nono run -p empty -- true
! [nono] error: [TMP]/home/.config/nono/profiles/empty.json:1:1: the file is empty
= exit 125
$ nono run -p open -- true
! [nono] error: [TMP]/home/.config/nono/profiles/open.json:1:1: Unterminated object
= exit 125
$ nono run -p comma -- true
! [nono] error: [TMP]/home/.config/nono/profiles/comma.json:2:19: Unexpected token in object
= exit 125
$ nono run -p list -- true
! [nono] error: [TMP]/home/.config/nono/profiles/list.json:1:1: the profile: expected object, found array
= exit 125
$ nono run -p unended -- true
! [nono] error: [TMP]/home/.config/nono/profiles/unended.json:1:3: Unterminated comment block
= exit 125
$ nono run -p bytes -- true
! [nono] error: profile [TMP]/home/.config/nono/profiles/bytes.json cannot be read: invalid utf-8 sequence of 1 bytes from index 10
= exit 125
$ nono run -p folder -- true
! [nono] error: profile [TMP]/home/.config/nono/profiles/folder.json is not a regular file
= exit 125
$ nono run -p shut -- true
! [nono] error: profile [TMP]/home/.config/nono/profiles/shut.json cannot be read: Permission denied
= exit 125
$ nono run -p large -- true
! [nono] error: profile [TMP]/home/.config/nono/profiles/large.json is larger than 1048576 bytes
= exit 125

"#]]);
}

#[test]
fn profiles_that_do_not_fit_together() {
    let world = World::new();
    world.profile("a", r#"{"extends": "b"}"#);
    world.profile("b", r#"{"extends": ["default", "c"]}"#);
    world.profile("c", r#"{"extends": "a"}"#);
    world.profile("self", r#"{"extends": "self"}"#);
    world.profile("orphan", r#"{"extends": "rust-dex"}"#);
    world.profile("misnamed", r#"{"name": "other"}"#);
    world.profile("network", r#"{"network": {"block": false, "allow_connect_port": [1]}}"#);
    world.golden(
        &[
            "nono run -p a -- true",
            "nono run -p self -- true",
            "nono run -p orphan -- true",
            "nono run -p misnamed -- true",
            "nono run -p network -- true",
            "nono run --extends no-such -- true",
            "nono run -p clade-code -- true",
            "nono run -p ./no-such.json -- true",
            "nono run -p 'a b' -- true",
        ],
        str![[r#"
$ nono run -p a -- true
! [nono] error: profiles extend each other in a circle: a -> b -> c -> a
= exit 125
$ nono run -p self -- true
! [nono] error: profiles extend each other in a circle: self -> self
= exit 125
$ nono run -p orphan -- true
! [nono] error: there is no profile "rust-dex", which profile "orphan" extends (nearest: "rust-dev")
! [nono] hint: use "rust-dev"
= exit 125
$ nono run -p misnamed -- true
! [nono] error: profile [TMP]/home/.config/nono/profiles/misnamed.json has the name "other", but its file name says "misnamed"
= exit 125
$ nono run -p network -- true
! [nono] error: profile network opens the network and also lists single ports or hosts
! [nono] hint: set network.block to true to allow those alone, or drop them
= exit 125
$ nono run --extends no-such -- true
! [nono] error: there is no profile "no-such" (from --extends)
! [nono] hint: nono profile list shows the profiles there are
= exit 125
$ nono run -p clade-code -- true
! [nono] error: there is no profile "clade-code" (nearest: "claude-code")
! [nono] hint: use "claude-code"
= exit 125
$ nono run -p ./no-such.json -- true
! [nono] error: profile [TMP]/work/./no-such.json cannot be read: No such file or directory
= exit 125
$ nono run -p 'a b' -- true
! [nono] error: "a b" is not a profile name: use letters, digits, - and _
= exit 125

"#]],
    );
}

#[test]
fn reserved_names() {
    let world = World::new();
    world.profile("default", "{}");
    world.file("work/mine.json", r#"{"name": "claude-code"}"#);
    world.golden(
        &["nono run -- true", "nono run -p ./mine.json -- true", "nono profile list | grep -v 'built in'"],
        str![[r#"
$ nono run -- true
! [nono] error: [TMP]/home/.config/nono/profiles/default.json uses the name of the built-in profile "default", which is reserved
! [nono] hint: rename the file and write "extends": "default" in it
= exit 125
$ nono run -p ./mine.json -- true
! [nono] error: [TMP]/work/./mine.json uses the name of the built-in profile "claude-code", which is reserved
! [nono] hint: rename the file and write "extends": "claude-code" in it
= exit 125
$ nono profile list | grep -v 'built in'
default        unusable: [TMP]/home/.config/nono/profiles/default.json uses the name of the built-in profile "default", which is reserved

"#]],
    );
}

#[test]
fn hooks_of_agents_are_data_with_a_shape() {
    let world = World::new();
    world.profile("asks", r#"{"hooks": {"claude-code": {"install": "ask"}}}"#);
    world.profile("shape", r#"{"hooks": {"claude-code": ["x"]}}"#);
    world.profile("word", r#"{"hooks": {"claude-code": {"install": "yes"}}}"#);
    world.profile("agent", r#"{"hooks": {"nobody": {"install": "ask"}}}"#);
    let lines = ["asks", "shape", "word", "agent"].map(|name| format!("nono run -p {name} -- true"));
    world.golden(
        &lines.each_ref().map(String::as_str),
        str![[r#"
$ nono run -p asks -- true
$ nono run -p shape -- true
! [nono] error: [TMP]/home/.config/nono/profiles/shape.json:1:27: hooks.claude-code: expected object, found array
= exit 125
$ nono run -p word -- true
! [nono] error: [TMP]/home/.config/nono/profiles/word.json:1:39: hooks.claude-code.install: "yes" is not one of ask, never
= exit 125
$ nono run -p agent -- true
! [nono] error: hooks in the profile: "nobody" is not a supported agent; supported are claude-code, codex, gemini, opencode, hermes, qwen, cursor, copilot, goose, kiro, cline
= exit 125

"#]],
    );
}

#[test]
fn validate_tells_of_every_file() {
    let world = World::new();
    world.file("work/good.json", "{ // fine\n }");
    world.file("work/bad.json", "{\n\"nam\": \"x\"}");
    world.file("work/worse.json", "{");
    world.golden(
        &[
            "nono profile validate good.json",
            "nono profile validate bad.json good.json worse.json no-such.json",
            "nono profile validate",
            "nono profile show no-such",
            "nono profile diff default no-such",
        ],
        str![[r#"
$ nono profile validate good.json
good.json: valid
$ nono profile validate bad.json good.json worse.json no-such.json
good.json: valid
! [nono] error: bad.json:2:1: unknown key "nam" (nearest: "name")
! [nono] hint: write "name"
! [nono] error: worse.json:1:1: Unterminated object
! [nono] error: profile no-such.json cannot be read: No such file or directory
= exit 1
$ nono profile validate
! [nono] error: the following required arguments were not provided:
! [nono]   <FILES>...
! [nono]
! [nono] Usage: nono profile validate <FILES>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono profile show no-such
! [nono] error: there is no profile "no-such"
! [nono] hint: nono profile list shows the profiles there are
= exit 125
$ nono profile diff default no-such
! [nono] error: there is no profile "no-such"
! [nono] hint: nono profile list shows the profiles there are
= exit 125

"#]],
    );
}

#[test]
fn paths_of_a_profile_that_are_not_there() {
    let world = World::new();
    world.profile("must", r#"{"filesystem": {"read": ["~/no-such"]}}"#);
    world.profile("may", r#"{"filesystem": {"read": [{"path": "~/no-such", "optional": true}]}}"#);
    world.profile("variable", r#"{"filesystem": {"read": ["$NO_SUCH/x"]}}"#);
    world.golden(
        &["nono run -p must -- true", "nono run -p may -- true", "nono run -p variable -- true"],
        str![[r#"
$ nono run -p must -- true
! [nono] error: ~/no-such does not exist (granted by profile:must)
! [nono] hint: mark it in profile must as {"path": "~/no-such", "optional": true}, or create it
= exit 125
$ nono run -p may -- true
$ nono run -p variable -- true
! [nono] error: $NO_SUCH/x: unknown variable $NO_SUCH
= exit 125

"#]],
    );
}
