//! `nono audit verify`, `cleanup`, `keygen`, `prove`, `check-proof`: what is believed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nono::audit::SigningKey;
use nono::audit::event::Decision;
use nono::rollback::live_lock::LiveLock;
use snapbox::str;

use super::audit_kit::{Logs, decision, sealed, unsealed};

fn some() -> Logs {
    let logs = Logs::new();
    logs.large(None);
    logs.small("20240704-000000-1", 100_000, &["true"]);
    let log = logs.begin("20240704-000000-2", 100_010, &["false"], unsealed());
    logs.end(&log, 100_011, 1);
    let killed = logs.begin("20240704-000000-3", 100_020, &["sleep"], sealed());
    killed.note(&decision("/srv", Decision::Denied)).unwrap();
    drop(killed);
    logs.give();
    logs
}

#[test]
fn everything_is_as_it_was_written() {
    let logs = some();
    logs.golden(
        &["nono audit verify", "nono audit verify --all | wc -l", "nono audit verify build"],
        str![[r#"
$ nono audit verify
good  20240703-094640-7: 17 records, sealed
good  20240704-000000-1: 3 records, sealed
good  20240704-000000-2: 2 records, unsealed
good  20240704-000000-3: 2 records, unsealed: interrupted; the records up to there are valid
good  ledger: 2 entries, head 553eeccc27fcc26bad59431de974b725219ea004697531fc91f0a80212563c20
$ nono audit verify --all | wc -l
5
$ nono audit verify build
good  20240703-094640-7: 17 records, sealed

"#]],
    );
    let found = logs.json("nono audit verify --json", 0);
    assert_eq!(found["ok"], true);
    assert_eq!(found["sessions"].as_array().unwrap().len(), 4);
    let head = found["ledger"]["head"].as_str().unwrap().to_owned();
    logs.small("20240704-000000-4", 100_030, &["true"]);
    logs.world.sh(&format!("nono audit verify --ledger-head {head} >/dev/null")).quiet(0);
}

#[test]
fn what_was_changed_is_named() {
    let logs = some();
    let head = logs.json("nono audit verify --json", 0)["ledger"]["head"].as_str().unwrap().to_owned();
    logs.edit("20240703-094640-7/events.ndjson", "notes.txt", "other.txt");
    logs.edit("20240704-000000-2/session.json", "\"exit_code\": 1", "\"exit_code\": 0");
    fs::remove_dir_all(logs.dir().join("20240704-000000-1")).unwrap();
    logs.golden(
        &[
            "nono audit verify",
            "nono audit verify build",
            "nono audit verify 20240704-000000-1",
            "nono audit verify 20240704-000000-1 --json",
        ],
        str![[r#"
$ nono audit verify
BAD   20240703-094640-7: 2 good records, then a bad one
        record 2: it was changed after it was written: the hash of its event does not match
BAD   20240704-000000-2: 2 records, unsealed
        session.json does not match the log
good  20240704-000000-3: 2 records, unsealed: interrupted; the records up to there are valid
BAD   ledger: 2 entries, head 553eeccc27fcc26bad59431de974b725219ea004697531fc91f0a80212563c20
        20240704-000000-1 is in the ledger, but its log is missing
= exit 1
$ nono audit verify build
BAD   20240703-094640-7: 2 good records, then a bad one
        record 2: it was changed after it was written: the hash of its event does not match
= exit 1
$ nono audit verify 20240704-000000-1
BAD   session 20240704-000000-1 is in the ledger, but its log is missing
= exit 1
$ nono audit verify 20240704-000000-1 --json
{
  "ok": false,
  "sessions": [],
  "ledger": null,
  "ledger_head": null,
  "strange": [
    "session 20240704-000000-1 is in the ledger, but its log is missing"
  ]
}
= exit 1

"#]],
    );
    let found = logs.json("nono audit verify --json", 1);
    assert_eq!(found["ok"], false);
    assert_eq!(found["sessions"][0]["first_bad"]["record"], 2);
    assert_eq!(found["ledger"]["missing"][0], "20240704-000000-1");
    // The ledger begun anew, as if nothing had ever been.
    fs::remove_file(logs.dir().join("ledger.ndjson")).unwrap();
    let outcome = logs.world.sh(&format!("nono audit verify --ledger-head {head}"));
    assert_eq!(outcome.code(), Some(1));
    assert!(outcome.out().contains("the ledger does not have the head"), "{outcome:?}");
}

#[test]
fn a_damaged_record_is_a_finding_too() {
    let logs = some();
    fs::write(logs.dir().join("20240704-000000-2/session.json"), "{").unwrap();
    fs::create_dir(logs.dir().join("a strange name")).unwrap();
    logs.give();
    logs.golden(
        &[
            "nono audit verify 20240704-000000-2",
            "nono audit verify | grep BAD",
            "nono audit verify --json >/dev/null",
        ],
        str![[r#"
$ nono audit verify 20240704-000000-2
BAD   20240704-000000-2: 2 records, unsealed
        [TMP]/state/audit/20240704-000000-2/session.json: not a session record: EOF while parsing an object at line 1 column 1
= exit 1
$ nono audit verify | grep BAD
BAD   20240704-000000-2: 2 records, unsealed
BAD   [TMP]/state/audit/a strange name: it is not a recorded session: not a name that nono uses
$ nono audit verify --json >/dev/null
= exit 1

"#]],
    );
}

#[test]
fn signatures() {
    let logs = Logs::new();
    let outcome = logs.world.sh("nono audit keygen -o my.key > my.pub");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let key = logs.world.path("work/my.key");
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    logs.world.sh("nono audit keygen -o other.key > other.pub; nono audit keygen > default.pub");
    // The test's own user reads it, so it has to own the file for the moment.
    std::os::unix::fs::chown(&key, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    logs.large(Some(SigningKey::load(&key).unwrap()));
    logs.small("20240704-000000-1", 100_000, &["true"]);
    logs.golden(
        &[
            "nono audit keygen -o my.key",
            "nono audit keygen",
            "nono audit verify build --public-key my.pub | sed 's/signed by .*/signed by [KEY]/'",
            "nono audit verify build --public-key other.pub",
            "nono audit verify last --public-key my.pub",
            "nono audit verify build --public-key other.key",
        ],
        str![[r#"
$ nono audit keygen -o my.key
! [nono] error: [TMP]/work/my.key already exists
! [nono] hint: overwriting it would destroy that key; choose another file with -o
= exit 1
$ nono audit keygen
! [nono] error: [TMP]/state/audit/signing.key already exists
! [nono] hint: overwriting it would destroy that key; choose another file with -o
= exit 1
$ nono audit verify build --public-key my.pub | sed 's/signed by .*/signed by [KEY]/'
good  20240703-094640-7: 17 records, sealed, signed by [KEY]
$ nono audit verify build --public-key other.pub
BAD   20240703-094640-7: 17 records, sealed
        the signature is not by the expected key
= exit 1
$ nono audit verify last --public-key my.pub
BAD   20240704-000000-1: 3 records, sealed
        the log is not signed
= exit 1
$ nono audit verify build --public-key other.key
! [nono] error: other.key: not an Ed25519 public key
= exit 125

"#]],
    );
}

#[test]
fn proofs() {
    let logs = some();
    let root = logs.json("nono audit prove build 2", 0)["proof"]["merkle_root"].as_str().unwrap().to_owned();
    let world = &logs.world;
    world.sh("nono audit prove build 2 -o proof.json").quiet(0);
    world.sh("sed s/notes.txt/other.txt/ proof.json > forged.json; echo '{}' > empty.json");
    world.sh(&format!("echo {root} > root"));
    logs.golden(
        &[
            "nono audit check-proof proof.json",
            "nono audit check-proof proof.json --root $(cat root)",
            "nono audit check-proof proof.json --session build",
            "nono audit check-proof proof.json --session 20240704-000000-1",
            "nono audit check-proof proof.json --root $(cat root | tr 0-9 1-90)",
            "nono audit check-proof forged.json --root $(cat root)",
            "nono audit check-proof empty.json",
            "nono audit check-proof missing.json",
            "nono audit check-proof proof.json --root 12",
            "nono audit prove build 999",
        ],
        str![[r#"
$ nono audit check-proof proof.json
holds: this is event 2 of 16 under the root 7393221bc4f01491f942ad20476bd8c4d9e2bde7a96ead4d50842e5d75e2643e
{"type":"capability_decision","time_ms":1720000001500,"path":"/home/me/notes.txt","access":"read","program":"/usr/bin/cat","pid":42,"decision":"allowed","by":"terminal","scope":"session","reason":"the \u{202e}task"}
! [nono] warning: only checked against the root in the proof itself, which proves nothing; give one from elsewhere with --root, --session or --public-key
$ nono audit check-proof proof.json --root $(cat root)
holds: this is event 2 of 16 under the root 7393221bc4f01491f942ad20476bd8c4d9e2bde7a96ead4d50842e5d75e2643e
{"type":"capability_decision","time_ms":1720000001500,"path":"/home/me/notes.txt","access":"read","program":"/usr/bin/cat","pid":42,"decision":"allowed","by":"terminal","scope":"session","reason":"the \u{202e}task"}
! [nono] note: not verified: the position of the event (2 of 16) and its session (20240703-094640-7); check them with --session or --public-key
$ nono audit check-proof proof.json --session build
holds: this is event 2 of 16 under the root 7393221bc4f01491f942ad20476bd8c4d9e2bde7a96ead4d50842e5d75e2643e
{"type":"capability_decision","time_ms":1720000001500,"path":"/home/me/notes.txt","access":"read","program":"/usr/bin/cat","pid":42,"decision":"allowed","by":"terminal","scope":"session","reason":"the \u{202e}task"}
$ nono audit check-proof proof.json --session 20240704-000000-1
does not hold: it is for session 20240703-094640-7
= exit 1
$ nono audit check-proof proof.json --root $(cat root | tr 0-9 1-90)
does not hold: the proof is for another log: its root or its number of events is not the expected one
= exit 1
$ nono audit check-proof forged.json --root $(cat root)
does not hold: the proof is for another event
= exit 1
$ nono audit check-proof empty.json
does not hold: it is not a proof: missing field `session_id` at line 1 column 2
= exit 1
$ nono audit check-proof missing.json
! [nono] error: cannot read missing.json: No such file or directory
= exit 125
$ nono audit check-proof proof.json --root 12
! [nono] error: invalid value '12' for '--root <HASH>': a digest is 64 lower-case hexadecimal digits
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono audit prove build 999
! [nono] error: there is no record 999: the log has 17
= exit 125

"#]],
    );
}

#[test]
fn cleanup() {
    let logs = some();
    // One that is being written, and one whose place says so.
    let id = "20240704-000000-3";
    let written = logs.begin("20240704-000000-5", 100_040, &["cat"], unsealed());
    logs.world.dir(&format!("state/run/{id}"), 0o700);
    let running = LiveLock::begin(&logs.world.path(&format!("state/run/{id}"))).unwrap();
    logs.give();
    logs.golden(
        &[
            "nono audit cleanup",
            "nono audit cleanup --all",
            "nono audit cleanup --keep 3 --dry-run | sed 's/, [0-9.]* .*/, [SIZE]/'",
            "nono audit cleanup --older-than 99999 --dry-run",
            "nono audit list | wc -l",
            "nono audit cleanup --keep 3 --yes 2>&1 | sed 's/, [0-9.]* .*/, [SIZE]/'",
            "nono audit verify | sed 's/head .*/head [HASH]/'",
            "nono audit cleanup --all --yes 2>&1 | sed 's/, [0-9.]* .*/, [SIZE]/'",
            "nono audit list",
            "nono audit verify 20240704-000000-1",
            "nono audit verify | sed 's/head .*/head [HASH]/'",
        ],
        str![[r#"
$ nono audit cleanup
! [nono] error: the following required arguments were not provided:
! [nono]   <--keep <N>|--older-than <DAYS>|--all>
! [nono]
! [nono] Usage: nono audit cleanup <--keep <N>|--older-than <DAYS>|--all>
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono audit cleanup --all
! [nono] error: nothing was removed: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be removed, --yes removes it without asking
= exit 1
$ nono audit cleanup --keep 3 --dry-run | sed 's/, [0-9.]* .*/, [SIZE]/'
2 sessions would be removed, [SIZE]
  20240704-000000-1  2024-07-04  true
  20240703-094640-7  2024-07-03  make 'it so'
$ nono audit cleanup --older-than 99999 --dry-run
nothing to remove
$ nono audit list | wc -l
5
$ nono audit cleanup --keep 3 --yes 2>&1 | sed 's/, [0-9.]* .*/, [SIZE]/'
[nono] 2 sessions removed, [SIZE]
[nono]   20240704-000000-1  2024-07-04  true
[nono]   20240703-094640-7  2024-07-03  make 'it so'
$ nono audit verify | sed 's/head .*/head [HASH]/'
good  20240704-000000-2: 2 records, unsealed
good  20240704-000000-3: 2 records, running, not sealed yet
good  20240704-000000-5: 1 record, running, not sealed yet
good  ledger: 4 entries, head [HASH]
$ nono audit cleanup --all --yes 2>&1 | sed 's/, [0-9.]* .*/, [SIZE]/'
[nono] 1 session removed, [SIZE]
[nono]   20240704-000000-2  2024-07-04  false
$ nono audit list
20240704-000000-5  2024-07-04  cat    [running]
20240704-000000-3  2024-07-04  sleep  1 decision (1 denied)  [running]
$ nono audit verify 20240704-000000-1
! [nono] error: session 20240704-000000-1 was removed by a cleanup
= exit 125
$ nono audit verify | sed 's/head .*/head [HASH]/'
good  20240704-000000-3: 2 records, running, not sealed yet
good  20240704-000000-5: 1 record, running, not sealed yet
good  ledger: 4 entries, head [HASH]

"#]],
    );
    drop((running, written));
    let removed = logs.json("nono audit cleanup --all --yes --json", 0);
    assert_eq!(removed["removed"].as_array().unwrap().len(), 2);
    assert_eq!(removed["removed"][1]["session_id"], id);
    assert_eq!(removed["dry_run"], false);
    assert_eq!(logs.json("nono audit verify --json", 0)["ledger"]["removed"].as_array().unwrap().len(), 2);
}
