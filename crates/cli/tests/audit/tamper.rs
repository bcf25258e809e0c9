//! No change of the records goes unnoticed. Each is made to the logs of real runs, found by `verify` in words and
//! as JSON, and undone again.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::kit::Kit;

/// Three sealed sessions of five records each, and one without a seal.
struct Past {
    kit: Kit,
    ids: [String; 4],
    /// The second one's `session.json` as it was while it ran.
    opening: Vec<u8>,
}

impl Past {
    fn new() -> Past {
        let kit = Kit::new();
        let (a, b) = (kit.note("a"), kit.note("b"));
        let read = format!("cat {a} {b}");
        let first = kit.session(&["--audit-integrity"], &read);
        let before = kit.ids();
        let mut talk = kit.talk(&["--audit-integrity"]);
        assert!(talk.reads(&a));
        let second = kit.new_id(&before);
        let opening = fs::read(kit.audit().join(&second).join("session.json")).unwrap();
        assert!(talk.reads(&b));
        talk.end().ok();
        let third = kit.session(&["--audit-integrity"], &read);
        let fourth = kit.session(&[], &read);
        for id in [&first, &second, &third] {
            assert_eq!(kit.lines(id).len(), 5);
        }
        kit.good();
        kit.sh("cp -a $NONO_HOME/audit $HOME/audit").ok();
        Past { kit, ids: [first, second, third, fourth], opening }
    }

    fn undo(&self) {
        self.kit.sh("rm -rf $NONO_HOME/audit; cp -a $HOME/audit $NONO_HOME/audit").ok();
        self.kit.good();
    }

    fn file(&self, which: usize, name: &str) -> PathBuf {
        self.kit.audit().join(&self.ids[which]).join(name)
    }

    fn edit(&self, which: usize, change: impl FnOnce(&mut Vec<String>)) {
        edit(self.file(which, "events.ndjson"), change);
    }

    /// Changed, caught, undone; what `verify` says about everything.
    #[track_caller]
    fn caught(&self, what: &str, change: impl FnOnce(&Past)) -> Value {
        println!("{what}");
        change(self);
        let words = self.kit.nono(&["audit", "verify"]).code(1).out;
        assert!(words.contains("BAD "), "{what}: {words}");
        let found = self.kit.nono(&["audit", "verify", "--json"]).code(1).json();
        assert_eq!(found["ok"], false, "{what}");
        let control = |char: char| char.is_control() && char != '\n';
        assert!(!words.contains(control), "{what}: {words:?}");
        self.undo();
        found
    }

    /// The same where a record is bad: its number, in words too, and by that session alone.
    #[track_caller]
    fn caught_at(&self, what: &str, which: usize, record: usize, change: impl FnOnce(&Past)) {
        let id = self.ids[which].clone();
        let found = self.caught(what, |past| {
            change(past);
            let alone = past.kit.nono(&["audit", "verify", &id]).code(1).out;
            assert!(alone.contains(&format!("record {record}: ")), "{what}: {alone}");
            past.kit.nono(&["audit", "verify", &id, "--json"]).code(1);
        });
        let found = session(&found, &id);
        assert_eq!(found["first_bad"]["record"], record, "{what}: {found:#}");
        assert_eq!(found["event_count"], record, "{what}: what comes before it is good");
        assert_eq!(found["problems"][0]["kind"], "record", "{what}");
    }

    /// The same where the records are good as far as they go.
    #[track_caller]
    fn caught_as(&self, what: &str, which: usize, kinds: &[&str], change: impl FnOnce(&Past)) {
        let id = self.ids[which].clone();
        let found = self.caught(what, |past| {
            change(past);
            past.kit.nono(&["audit", "verify", &id]).code(1);
            past.kit.nono(&["audit", "verify", &id, "--json"]).code(1);
        });
        let found = session(&found, &id);
        let problems = found["problems"].as_array().unwrap();
        let has = |kind: &str| problems.iter().any(|problem| problem["kind"] == kind);
        assert!(kinds.iter().all(|kind| has(kind)), "{what}: {found:#}");
    }
}

fn edit(path: PathBuf, change: impl FnOnce(&mut Vec<String>)) {
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
    change(&mut lines);
    fs::write(path, lines.concat()).unwrap();
}

#[track_caller]
fn session(found: &Value, id: &str) -> Value {
    let mut sessions = found["sessions"].as_array().unwrap().iter();
    sessions.find(|session| session["id"] == id).unwrap_or_else(|| panic!("{found:#}")).clone()
}

/// Another byte of the same kind, inside a value of the event.
fn one_byte(line: &mut String) {
    let at = line.find("\"time_ms\":").unwrap() + "\"time_ms\":".len();
    let other = if line.as_bytes()[at] == b'9' { "8" } else { "9" };
    line.replace_range(at..=at, other);
}

#[test]
fn altered_repeated_and_moved_records_are_found() {
    let past = Past::new();
    // The log of a run without a seal is as well chained as the others.
    for which in [1, 3] {
        let count = past.kit.lines(&past.ids[which]).len();
        for at in 0..count {
            past.caught_at("one byte", which, at, |past| past.edit(which, |lines| one_byte(&mut lines[at])));
        }
        past.caught_at("a record twice", which, 2, |past| {
            past.edit(which, |lines| lines.insert(2, lines[1].clone()));
        });
        past.caught_at("a record in another's place", which, 2, |past| {
            past.edit(which, |lines| lines[2] = lines[1].clone());
        });
        past.caught_at("a record of another session", which, 1, |past| {
            let other = past.kit.lines(&past.ids[0])[1].clone() + "\n";
            past.edit(which, |lines| lines[1] = other);
        });
        past.caught_at("a line that is no record", which, 3, |past| {
            past.edit(which, |lines| lines.insert(3, "{}\n".to_owned()));
        });
        past.caught_at("one taken out", which, 1, |past| past.edit(which, |lines| drop(lines.remove(1))));
        past.caught_at("the first taken out", which, 0, |past| {
            past.edit(which, |lines| drop(lines.remove(0)));
        });
        past.caught_at("two in the other order", which, 1, |past| past.edit(which, |lines| lines.swap(1, 2)));
    }
}

#[test]
fn truncated_logs_are_found() {
    let past = Past::new();
    for which in [1, 3] {
        let count = past.kit.lines(&past.ids[which]).len();
        for left in 1..count {
            past.caught_as("the end cut off", which, &["truncated"], |past| {
                past.edit(which, |lines| lines.truncate(left));
            });
        }
        past.caught_as("nothing left", which, &[], |past| past.edit(which, Vec::clear));
        past.caught_as("half a record", which, &["truncated"], |past| {
            past.edit(which, |lines| {
                let last = lines.last_mut().unwrap();
                last.truncate(last.len() / 2);
            });
        });
        past.caught_as("no log", which, &[], |past| {
            fs::remove_file(past.file(which, "events.ndjson")).unwrap();
        });
    }
    // As if it had been killed; only the ledger knows better.
    past.caught_as("cut off, with the record it had then", 1, &["ledger"], |past| {
        past.edit(1, |lines| lines.truncate(2));
        fs::write(past.file(1, "session.json"), &past.opening).unwrap();
    });
}

#[test]
fn the_record_of_a_session() {
    let past = Past::new();
    for which in [1, 3] {
        let path = |past: &Past| past.file(which, "session.json");
        for (from, to) in [
            ("\"exit_code\": 0", "\"exit_code\": 1"),
            ("\"bash\"", "\"dash\""),
            ("\"allowed\": 2", "\"allowed\": 1"),
            ("{\n", "{\n\n"),
        ] {
            past.caught_as(from, which, &["session"], |past| {
                let text = fs::read_to_string(path(past)).unwrap();
                assert!(text.contains(from), "{from}: {text}");
                fs::write(path(past), text.replacen(from, to, 1)).unwrap();
            });
        }
        past.caught_as("another's record", which, &[], |past| {
            fs::copy(past.file(0, "session.json"), path(past)).unwrap();
        });
        past.caught_as("no record", which, &[], |past| fs::remove_file(path(past)).unwrap());
        past.caught_as("no JSON", which, &[], |past| fs::write(path(past), "{").unwrap());
    }
}

#[test]
fn the_ledger_and_whole_sessions() {
    let past = Past::new();
    let [first, second, third, fourth] = &past.ids;
    let head = past.kit.good()["ledger"]["head"].as_str().unwrap().to_owned();
    let ledger = || past.kit.audit().join("ledger.ndjson");
    for at in 0..3 {
        let found = past.caught("a line taken out", |_| edit(ledger(), |lines| drop(lines.remove(at))));
        let (unlisted, alone) = (&found["ledger"]["unlisted"], session(&found, &past.ids[at]));
        let first_bad = &found["ledger"]["first_bad"];
        assert!(first_bad["line"] == at + 1 || unlisted[0] == past.ids[at].as_str(), "{found:#}");
        assert_eq!(alone["ok"], false, "{found:#}");
        let found = past.caught("a line changed", |past| {
            edit(ledger(), |lines| lines[at] = lines[at].replacen(&past.ids[at], fourth, 1));
        });
        assert_eq!(found["ledger"]["first_bad"]["line"], at + 1, "{found:#}");
        let found = past.caught("a session removed", |past| {
            fs::remove_dir_all(past.kit.audit().join(&past.ids[at])).unwrap();
            let said = past.kit.nono(&["audit", "verify", &past.ids[at]]).code(1);
            assert!(said.out.contains("is in the ledger, but its log is missing"), "{said:?}");
        });
        assert_eq!(found["ledger"]["missing"], serde_json::json!([past.ids[at]]));
    }
    let found = past.caught("two lines in the other order", |_| edit(ledger(), |lines| lines.swap(0, 1)));
    assert_eq!(found["ledger"]["first_bad"]["line"], 1, "{found:#}");
    let found = past.caught("no ledger", |_| fs::remove_file(ledger()).unwrap());
    assert_eq!(found["ledger"]["unlisted"].as_array().unwrap().len(), 3, "{found:#}");
    past.caught("two sessions in each other's place", |past| {
        past.kit.sh(&format!("cd $NONO_HOME/audit; mv {first} x; mv {second} {first}; mv x {second}")).ok();
        for id in [first, second] {
            let alone = past.kit.nono(&["audit", "verify", id]).code(1).out;
            assert!(alone.contains("this is the log of session"), "{alone}");
            past.kit.nono(&["audit", "verify", id, "--json"]).code(1);
        }
    });
    // The last one with its line: a session that began later, or a noted head, shows that there was more.
    let gone = |past: &Past| {
        fs::remove_dir_all(past.kit.audit().join(third)).unwrap();
        edit(ledger(), |lines| drop(lines.pop()));
    };
    let found = past.caught("the last one with its line", gone);
    assert_eq!(found["ledger"]["orphaned"], serde_json::json!([fourth]), "{found:#}");
    past.caught("the last one, and the session after it", |past| {
        gone(past);
        fs::remove_dir_all(past.kit.audit().join(fourth)).unwrap();
        past.kit.nono(&["audit", "verify"]).ok();
        past.kit.nono(&["audit", "verify", "--ledger-head", &head]).code(1);
        past.kit.nono(&["audit", "verify", "--ledger-head", &head, "--json"]).code(1);
        // For the rest of the check, something that is seen without it.
        fs::remove_file(ledger()).unwrap();
    });
}

#[test]
fn a_killed_session_is_a_valid_beginning() {
    let kit = Kit::new();
    let mut talk = kit.talk(&["--audit-integrity"]);
    assert!(talk.reads(&kit.note("a")));
    let id = kit.ids().pop_first().unwrap();
    let running = kit.nono(&["audit", "list", "--json"]).ok().json();
    assert_eq!((&running[0]["state"], &running[0]["ended"]), (&"running".into(), &Value::Null));
    let found = kit.good();
    assert_eq!(
        (&found["sessions"][0]["state"], &found["sessions"][0]["running"]),
        (&"unfinished".into(), &true.into())
    );
    talk.child.kill().unwrap();
    talk.end();
    let found = kit.good();
    assert_eq!(
        (&found["sessions"][0]["state"], &found["sessions"][0]["running"]),
        (&"unfinished".into(), &false.into())
    );
    assert_eq!(found["sessions"][0]["event_count"], 2);
    let words = kit.nono(&["audit", "verify", &id]).ok().out;
    assert!(words.contains("unsealed: interrupted; the records up to there are valid"), "{words}");
    let listed = kit.nono(&["audit", "list"]).ok().out;
    assert!(
        listed.contains(&id) && listed.contains("[interrupted]") && listed.contains("1 decision"),
        "{listed}"
    );
    // A torn last line is what a kill in the middle of a write leaves.
    let path = kit.audit().join(&id).join("events.ndjson");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 9);
    fs::write(&path, bytes).unwrap();
    let found = kit.good();
    assert_eq!(
        (&found["sessions"][0]["torn"], &found["sessions"][0]["event_count"]),
        (&true.into(), &1.into())
    );
    // But a changed record in it is a changed record.
    edit(path, |lines| one_byte(&mut lines[0]));
    kit.nono(&["audit", "verify"]).code(1);
}
