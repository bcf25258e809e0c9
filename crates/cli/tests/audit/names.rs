//! Names of any bytes: one record each, nothing lost, nothing forged, and nothing that a terminal obeys.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde_json::Value;

use super::kit::Kit;

const FORGED: &[u8] = br#"x"}
{"sequence":2,"prev_chain":null,"event":{"type":"capability_decision","decision":"allowed"}}
{"a":"#;

fn names() -> Vec<&'static [u8]> {
    vec![
        b"new\nline",
        b"quote\"backslash\\",
        b"'; rm -rf ~",
        FORGED,
        b"not \xff\xfe text \x80",
        b"\x1b[2J\x1b]0;title\x07 bell",
        b"\xe2\x80\xaeright to left\xe2\x80\x8b",
        b"[nono] all is well",
        b" space ",
        b"tab\tcr\rdel\x7f",
    ]
}

/// A path as it stands in a record.
fn path(value: &Value) -> OsString {
    match value {
        Value::String(text) => text.into(),
        other => {
            let bytes = other["bytes"].as_array().unwrap_or_else(|| panic!("{other}"));
            OsString::from_vec(
                bytes.iter().map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap()).collect(),
            )
        }
    }
}

#[test]
fn any_name_is_one_record() {
    let kit = Kit::new();
    let notes = kit.world.path("other/notes");
    let mut wanted = BTreeSet::new();
    for name in names() {
        // A file's name has no `/`; the forged one needs none.
        let file = notes.join(OsStr::from_bytes(name));
        fs::write(&file, "x\n").unwrap();
        wanted.insert(file.into_os_string());
    }
    let mut command = kit.command(&["run", "--silent", "--allow-cwd", "--audit-integrity"]);
    let output = command.args(kit.asking()).args(["--", "cat", "--"]).args(&wanted).output().unwrap();
    assert_eq!(output.stdout, b"x\n".repeat(names().len()), "{output:?}");
    let id = kit.ids().pop_first().unwrap();
    let events = kit.events(&id);
    assert_eq!(events.len(), names().len() + 3, "the beginning, the end, the seal, and one for each");
    let recorded = |events: &[Value]| -> Vec<OsString> {
        let decisions = events.iter().filter(|event| event["type"] == "capability_decision");
        decisions.map(|event| path(&event["path"])).collect()
    };
    assert_eq!(recorded(&events).len(), names().len());
    assert_eq!(recorded(&events).into_iter().collect::<BTreeSet<_>>(), wanted);
    kit.good();

    // The same through an export, line by line.
    let exported = kit.nono(&["audit", "export", &id, "--format", "jsonl"]).ok().out;
    let exported: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(exported.len(), events.len());
    let exported: Vec<Value> = exported.into_iter().map(|record| record["event"].clone()).collect();
    assert_eq!(exported, events);
}

#[test]
fn what_is_shown_is_never_obeyed() {
    let kit = Kit::new();
    let notes = kit.world.path("other/notes");
    let files: Vec<OsString> =
        names().iter().map(|name| notes.join(OsStr::from_bytes(name)).into_os_string()).collect();
    for file in &files {
        fs::write(file, "x\n").unwrap();
    }
    let mut command = kit.command(&["run", "--silent", "--allow-cwd", "--name", "hostile"]);
    command.args(["--ask", "--approve", "deny", "--", "cat", "--"]).args(&files).output().unwrap();
    let mut command = kit.command(&["run", "--silent", "--allow-cwd"]);
    command.args(kit.asking()).args(["--", "cat", "--"]).args(&files).output().unwrap();
    for args in [
        &["audit", "show", "hostile"][..],
        &["audit", "show", "last"],
        &["audit", "list"],
        &["audit", "verify"],
        &["audit", "show", "last", "--path", notes.to_str().unwrap()],
    ] {
        let output = kit.command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let bad = |byte: &u8| byte.is_ascii_control() && *byte != b'\n';
        assert!(!output.stdout.iter().any(bad) && !output.stderr.iter().any(bad), "{args:?}: {output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(!text.contains('\u{202e}') && !text.contains('\u{200b}'), "{args:?}: {text}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("[nono]")), "{args:?}: {text}");
        assert!(!text.lines().any(|line| line.starts_with("{\"sequence\"")), "{args:?}: {text}");
    }
    let shown = kit.nono(&["audit", "show", "last"]).ok().out;
    assert_eq!(shown.matches("  allowed  ").count(), names().len(), "{shown}");
    let shown = kit.nono(&["audit", "show", "hostile"]).ok().out;
    assert_eq!(shown.matches("  denied  ").count(), names().len(), "{shown}");
}
