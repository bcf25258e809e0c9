//! What a model can type inside a sandbox: nothing is deleted or put back without the person, and a `--yes` from inside is
//! not theirs.

use super::*;

/// Commands that delete, put back or rename, as an agent would type them.
const COMMANDS: [&str; 14] = [
    "nono checkpoints clear --yes",
    "nono checkpoints clear --all --yes",
    "nono checkpoints forget src/a --yes",
    "nono checkpoints prune --yes",
    "nono checkpoints clear-legacy --yes",
    "nono checkpoints restore 1 --yes",
    "nono checkpoints restore 1 --yes --force",
    "nono checkpoints undo --yes",
    "nono checkpoints name 1 mine",
    "nono rollback cleanup --all --yes",
    "nono undo --yes",
    "nono audit cleanup --yes",
    "nono hooks remove claude-code --yes",
    "nono profile trust",
];

#[test]
fn commands_that_delete_do_nothing_however_they_are_called() {
    let world = world();
    assert_eq!(nono(&world, &["checkpoints", "create", "-m", "mine"]).code, 0);
    assert_eq!(nono(&world, &["hooks", "install", "claude-code", "--yes"]).code, 0);
    let settings = read(&world, "home/.claude/settings.json");
    world.file("work/src/a", "two\n", 0o644);
    let state = world.path("state").display().to_string();
    let mut script = String::from("prompt; before $PWD/src/a; ");
    for command in COMMANDS {
        for form in [
            command.to_owned(),
            format!("{command} <&-"),
            format!("yes | {command}"),
            format!("env -u NONO_CAP_FILE -u NONO_REQUEST_SOCK {command}"),
            format!("NONO_HOME={state} {command} </dev/null"),
        ] {
            script.push_str(&form);
            script.push_str(" >/dev/null 2>&1; ");
        }
    }
    let script = format!("{script} rm -rf {state} 2>/dev/null; ls {state} 2>/dev/null; echo over");
    let before = checkpoints(&world, ".");
    let ran = agent(&world, &["-p", "claude-code", "--checkpoints"], &script);
    assert!(ran.out.ends_with("over\n"), "{}", ran.err);
    assert_eq!(read(&world, "work/src/a"), "two\n", "{}", ran.out);
    let after = checkpoints(&world, ".");
    assert!(after.len() > before.len(), "those of the run came, none went: {after:?}");
    for one in &before {
        assert!(
            after.iter().any(|other| other["id"] == one["id"] && other["name"] == one["name"]),
            "{after:?}"
        );
    }
    assert!(nono(&world, &["audit", "list"]).out.lines().count() >= 1);
    assert_eq!(read(&world, "home/.claude/settings.json"), settings);
}

#[test]
fn frames_of_its_own_delete_nothing() {
    let world = world();
    assert_eq!(nono(&world, &["checkpoints", "create", "-m", "mine"]).code, 0);
    world.file("work/src/a", "two\n", 0o644);
    world.file("bin/frames.py", FRAMES, 0o644);
    let frames = world.path("bin/frames.py").display().to_string();
    let flags = ["--allow-cwd", "--checkpoints", "--rollback", "--read-file", &frames];
    let ran = agent(&world, &flags, &format!("python3 {frames}"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.ends_with("over\n"), "{} {}", ran.out, ran.err);
    for line in ran.out.lines().filter(|line| line.contains("restore") && line.contains("answer")) {
        assert!(!line.contains("\"restored\""), "{line}");
    }
    assert_eq!(read(&world, "work/src/a"), "two\n");
    let list = checkpoints(&world, ".");
    assert!(list.iter().any(|one| one["reason"] == "mine"), "{list:?}");
}

/// Says everything to the socket that it might listen to, and some that it must not.
const FRAMES: &str = r#"
import json, os, socket, struct
path = os.environ["NONO_REQUEST_SOCK"]
def send(packet):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    try:
        s.connect(path)
        s.send(packet)
        return s.recv(1 << 17)
    except OSError as error:
        return str(error).encode()
    finally:
        s.close()
def frame(value):
    text = json.dumps(value).encode()
    return struct.pack("<I", len(text)) + text
work = os.getcwd()
both = {"conflicts": "keep", "paths": [], "target": "1", "dir": work}
actions = [{"action": "restore", **dict(both, conflicts=c)} for c in ("keep", "force", "merge", "Force", "overwrite")]
actions += [{"action": "restore", **both}, {"kind": "restore", **both}, {"type": "restore", **both}]
actions += [{name: {"dir": work, "yes": True}} for name in ("clear", "forget", "prune", "undo", "name", "delete")]
actions += ["clear", None, 7, [], {"list": {"dir": "/"}}, {"list": {"dir": work + "/../../.."}}]
for action in actions:
    for more in ({}, {"yes": True}, {"confirmed": True}):
        print("answer", json.dumps(action)[:60], send(frame({"version": 1, "type": "history_request", "id": "1", "action": action, **more}))[:200])
for kind in ("stop", "status", "checkpoint_request", "restore_request", "clear_request", "prune"):
    print("answer", kind, send(frame({"version": 1, "type": kind, "id": "1", "snapshot": 0, "yes": True}))[:200])
deep = b'{"version":1,"type":"history_request","id":"1","action":' + b'[' * 30000 + b']' * 30000 + b'}'
for packet in (b"", b"\0", b"\xff" * 100, struct.pack("<I", 1 << 31) + b"{}", struct.pack("<I", 2) + b"{}x",
               struct.pack("<I", len(deep)) + deep, struct.pack("<I", 4) + b"\xff\xfe\0\0"):
    send(packet)
print("over")
"#;
