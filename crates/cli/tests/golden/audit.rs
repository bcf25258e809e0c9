//! `nono audit list`, `show`, `export`: what is read.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nono::audit::event::Decision;
use snapbox::str;

use super::audit_kit::{Logs, decision, sealed, unsealed};
use super::world::World;

fn three() -> Logs {
    let logs = Logs::new();
    logs.large(None);
    let log = logs.begin(
        "20240705-000000-8",
        200_000,
        &["curl", "--token", "[redacted:0123456789abcdef]"],
        unsealed(),
    );
    log.note(&decision("/home/me/.ssh/config", Decision::Allowed)).unwrap();
    logs.end(&log, 200_001, 0);
    let killed = logs.begin("20240705-000000-9", 200_000, &["sleep", "\u{1b}[2J"], sealed());
    killed.note(&decision("/srv/data", Decision::Denied)).unwrap();
    drop(killed);
    logs.give();
    logs
}

#[test]
fn nothing_is_recorded_yet() {
    let logs = Logs::new();
    logs.golden(
        &[
            "nono audit list",
            "nono audit list --json",
            "nono audit show last",
            "nono audit verify",
            "nono audit export",
        ],
        str![[r#"
$ nono audit list
no recorded sessions
$ nono audit list --json
[]
$ nono audit show last
! [nono] error: there are no recorded sessions
! [nono] hint: `nono run -- command` makes one
= exit 125
$ nono audit verify
good  ledger: 0 entries
$ nono audit export

"#]],
    );
    assert!(!logs.dir().exists(), "looking makes nothing");
}

#[test]
fn the_list() {
    three().golden(
        &[
            "nono audit list",
            "nono audit list --command MAKE",
            "nono audit list --since 2024-07-04T12:00 --until 2024-07-05",
            "nono audit list --since 2024-07-05T17:00",
            "nono audit list --path /home/me/.ssh --decision allowed",
            "nono audit list --host example.org",
            "nono audit list --host ample.org",
            "nono audit list --decision denied --path /srv",
        ],
        str![[r#"
$ nono audit list
20240705-000000-9  2024-07-05  sleep '\u{1b}[2J'                           1 decision (1 denied)  [interrupted]
20240705-000000-8  2024-07-05  curl --token '[redacted:0123456789abcdef]'  exit 0  1 decision  [unsealed]
20240703-094640-7  2024-07-03  make 'it so'                                exit 3  2 decisions (1 denied)  1,235 denials  2 network events (1 denied)  1 link  [sealed]  [name: build]
$ nono audit list --command MAKE
20240703-094640-7  2024-07-03  make 'it so'  exit 3  2 decisions (1 denied)  1,235 denials  2 network events (1 denied)  1 link  [sealed]  [name: build]
$ nono audit list --since 2024-07-04T12:00 --until 2024-07-05
no recorded session matches
$ nono audit list --since 2024-07-05T17:00
20240705-000000-9  2024-07-05  sleep '\u{1b}[2J'                           1 decision (1 denied)  [interrupted]
20240705-000000-8  2024-07-05  curl --token '[redacted:0123456789abcdef]'  exit 0  1 decision  [unsealed]
$ nono audit list --path /home/me/.ssh --decision allowed
20240705-000000-8  2024-07-05  curl --token '[redacted:0123456789abcdef]'  exit 0  1 decision  [unsealed]
$ nono audit list --host example.org
20240703-094640-7  2024-07-03  make 'it so'  exit 3  2 decisions (1 denied)  1,235 denials  2 network events (1 denied)  1 link  [sealed]  [name: build]
$ nono audit list --host ample.org
no recorded session matches
$ nono audit list --decision denied --path /srv
20240705-000000-9  2024-07-05  sleep '\u{1b}[2J'  1 decision (1 denied)  [interrupted]

"#]],
    );
}

/// People see their own clock and can type what they see; programs get UTC.
#[test]
fn times_are_local() {
    for (zone, started, day) in [
        ("UTC", "2024-07-03 09:46:40 +00:00", "2024-07-03 +00:00"),
        ("XYZ-05:30", "2024-07-03 15:16:40 +05:30", "2024-07-03 +05:30"),
        ("XYZ+10", "2024-07-02 23:46:40 -10:00", "2024-07-02 -10:00"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2024-07-03 11:46:40 +02:00", "2024-07-03 +02:00"),
        ("AEST-10AEDT,M10.1.0,M4.1.0/3", "2024-07-03 19:46:40 +10:00", "2024-07-03 +10:00"),
    ] {
        let logs = Logs { world: World::new().with("TZ", Some(zone)) };
        logs.large(None);
        let shown = logs.world.sh("nono audit show build").out();
        assert!(shown.contains(&format!("started  {started} (")), "{zone}: {shown}");
        assert!(
            shown.contains(&format!("\n{day}\n  {}.000    0  started", &started[11..19])),
            "{zone}: {shown}"
        );
        let listed = |since: &str| logs.world.sh(&format!("nono audit show build --until '{since}'")).out();
        // As it is shown, with the zone and without it: the first event is not after its own time.
        for typed in [started, &started[..19]] {
            let shown = listed(typed);
            assert!(shown.contains("0  started") && !shown.contains("1  snapshot"), "{typed}: {shown}");
        }
        assert_eq!(logs.json("nono audit show build --json", 0)["started"], "2024-07-03T09:46:40Z", "{zone}");
    }
}

#[test]
fn a_session() {
    three().golden(
        &[
            "nono audit show build",
            "nono audit show 20240703 --decision denied",
            "nono audit show build --path /home/me --decision allowed",
            "nono audit show build --host evil.test",
            "nono audit show build --until 2024-07-01",
            "nono audit show last",
        ],
        str![[r#"
$ nono audit show build
session 20240703-094640-7  sealed
  command  make 'it so'
  name     build
  in       /home/me/project
  started  2024-07-03 09:46:40 +00:00 (2024-07-03)
  ended    2024-07-04 09:48:20 +00:00, exit 3
  network  filtered: example.org
  counted  2 decisions (1 denied), 1,235 denials, 2 network events (1 denied), 1 link

2024-07-03 +00:00
  09:46:40.000    0  started   make 'it so'
  09:46:41.000    1  snapshot  0, root abababababababab
  09:46:41.500    2  allowed   read /home/me/notes.txt  /usr/bin/cat[42], by terminal (session), the \u{202e}task
  09:46:41.500    3  denied    read /home/me/.ssh/id_ed25519  /usr/bin/cat[42], by terminal (session), the \u{202e}task
  09:46:42.000    4  allowed   open https://login.example.org/?code=[redacted:0123456789abcdef]  /usr/bin/xdg-open[44], by terminal
  09:46:43.000    5  error     webhook: no answer
  09:46:44.000    6  warning   the disk is nearly full
  09:46:45.000    7  denied    read /etc/shadow  x1,234  /usr/bin/cat[43], not granted
  09:46:49.000   11  denied    read /tmp/\u{1b}[31mred\u{a}[nono] all is well  /usr/bin/cat[43], not granted

2024-07-04 +00:00
  09:46:40.000   12  allowed   CONNECT api.example.org:443  200  1.2 kB sent, 3.4 MB received  with credential example
  09:46:40.000   13  denied    CONNECT evil.test:443  403  no rule allows it
  09:48:20.000   15  ended     exit 3
  09:48:20.000   16  seal      16 records, root 7393221bc4f01491
$ nono audit show 20240703 --decision denied
session 20240703-094640-7  sealed
  command  make 'it so'
  name     build
  in       /home/me/project
  started  2024-07-03 09:46:40 +00:00 (2024-07-03)
  ended    2024-07-04 09:48:20 +00:00, exit 3
  network  filtered: example.org
  counted  2 decisions (1 denied), 1,235 denials, 2 network events (1 denied), 1 link

2024-07-03 +00:00
  09:46:41.500    3  denied    read /home/me/.ssh/id_ed25519  /usr/bin/cat[42], by terminal (session), the \u{202e}task
  09:46:45.000    7  denied    read /etc/shadow  x1,234  /usr/bin/cat[43], not granted
  09:46:49.000   11  denied    read /tmp/\u{1b}[31mred\u{a}[nono] all is well  /usr/bin/cat[43], not granted

2024-07-04 +00:00
  09:46:40.000   13  denied    CONNECT evil.test:443  403  no rule allows it
$ nono audit show build --path /home/me --decision allowed
session 20240703-094640-7  sealed
  command  make 'it so'
  name     build
  in       /home/me/project
  started  2024-07-03 09:46:40 +00:00 (2024-07-03)
  ended    2024-07-04 09:48:20 +00:00, exit 3
  network  filtered: example.org
  counted  2 decisions (1 denied), 1,235 denials, 2 network events (1 denied), 1 link

2024-07-03 +00:00
  09:46:41.500    2  allowed   read /home/me/notes.txt  /usr/bin/cat[42], by terminal (session), the \u{202e}task
$ nono audit show build --host evil.test
session 20240703-094640-7  sealed
  command  make 'it so'
  name     build
  in       /home/me/project
  started  2024-07-03 09:46:40 +00:00 (2024-07-03)
  ended    2024-07-04 09:48:20 +00:00, exit 3
  network  filtered: example.org
  counted  2 decisions (1 denied), 1,235 denials, 2 network events (1 denied), 1 link

2024-07-04 +00:00
  09:46:40.000   13  denied    CONNECT evil.test:443  403  no rule allows it
$ nono audit show build --until 2024-07-01
session 20240703-094640-7  sealed
  command  make 'it so'
  name     build
  in       /home/me/project
  started  2024-07-03 09:46:40 +00:00 (2024-07-03)
  ended    2024-07-04 09:48:20 +00:00, exit 3
  network  filtered: example.org
  counted  2 decisions (1 denied), 1,235 denials, 2 network events (1 denied), 1 link

no event of this session matches
$ nono audit show last
session 20240705-000000-9  interrupted
  command  sleep '\u{1b}[2J'
  in       /home/me/project
  started  2024-07-05 17:20:00 +00:00 (2024-07-05)
  network  filtered: example.org
  counted  1 decision (1 denied)

2024-07-05 +00:00
  17:20:00.000    0  started   sleep '\u{1b}[2J'

2024-07-03 +00:00
  09:46:41.500    1  denied    read /srv/data  /usr/bin/cat[42], by terminal (session), the \u{202e}task

"#]],
    );
}

#[test]
fn a_session_as_json() {
    let logs = three();
    let shown = logs.json("nono audit show build --json", 0);
    assert_eq!(shown["session_id"], "20240703-094640-7");
    assert_eq!(shown["state"], "sealed");
    assert_eq!(shown["counts"]["denials"], 1235);
    assert_eq!(shown["record"]["audit_integrity"]["hash_algorithm"], "sha256");
    let events = shown["events"].as_array().unwrap();
    assert_eq!(events.len() as u64, shown["record"]["audit_event_count"].as_u64().unwrap());
    let denials = |count: u64| events.iter().any(|one| one["event"]["count"] == count);
    assert!([1, 10, 100, 1000, 1234].into_iter().all(denials), "everything that was recorded");
    assert_eq!(events[0]["event"]["type"], "session_started");
    assert!(events[1]["prev_chain"] == events[0]["chain_hash"]);
    let denied = logs.json("nono audit show build --json --host evil.test", 0);
    assert_eq!(denied["events"].as_array().unwrap().len(), 1);
    let listed = logs.json("nono audit list --json", 0);
    let states: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["interrupted", "unsealed", "sealed"]);
    assert_eq!(listed[0]["counts"]["decisions"]["denied"], 1, "of what was killed too");
}

#[test]
fn exports() {
    let logs = three();
    let lines = logs.world.sh("nono audit export build 20240705-000000-9").out();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |id: &str| lines.iter().filter(|line| line["session_id"] == id).count();
    assert_eq!(of("20240705-000000-9"), 2);
    assert_eq!(of("20240703-094640-7") + 2, lines.len());

    logs.world.sh("nono audit export --format csv -o all.csv").quiet(0);
    let file = logs.world.path("work/all.csv");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let table = fs::read_to_string(file).unwrap();
    assert!(table.starts_with("session_id,sequence,time,type,decision,subject,"));
    assert!(
        table.contains("20240703-094640-7,0,2024-07-03T09:46:40.000Z,session_started,,make it so,"),
        "{table}"
    );

    let telemetry = logs.json("nono audit export --format otlp-json", 0);
    assert_eq!(telemetry["resourceLogs"].as_array().unwrap().len(), 3);

    logs.edit("20240705-000000-8/events.ndjson", "/home/me/.ssh", "/home/me/.sss");
    logs.golden(
        &[
            "nono audit export 20240705-000000-8 | cut -c 1-60",
            "nono audit export 20240705-000000-8 >/dev/null",
        ],
        str![[r#"
$ nono audit export 20240705-000000-8 | cut -c 1-60
{"session_id":"20240705-000000-8","sequence":0,"prev_chain":
! [nono] error: [TMP]/state/audit/20240705-000000-8/events.ndjson: record 1: it was changed after it was written: the hash of its event does not match
$ nono audit export 20240705-000000-8 >/dev/null
! [nono] error: [TMP]/state/audit/20240705-000000-8/events.ndjson: record 1: it was changed after it was written: the hash of its event does not match
= exit 1

"#]],
    );
}

#[test]
fn what_cannot_be_read_is_said() {
    let logs = three();
    logs.edit("20240705-000000-8/events.ndjson", "/home/me/.ssh", "/home/me/.sss");
    fs::write(logs.dir().join("20240705-000000-9/session.json"), "{}").unwrap();
    logs.golden(
        &[
            "nono audit list",
            "nono audit show 20240705-000000-8",
            "nono audit show 20240705-000000-8 --json | tail -3",
            "nono audit show 20240705-000000-9",
            "nono audit show 2024",
            "nono audit show nobody",
            "nono audit list --since yesterday",
            "nono audit list --decision maybe",
        ],
        str![[r#"
$ nono audit list
20240705-000000-8  2024-07-05  curl --token '[redacted:0123456789abcdef]'  exit 0  1 decision  [unsealed]
20240703-094640-7  2024-07-03  make 'it so'                                exit 3  2 decisions (1 denied)  1,235 denials  2 network events (1 denied)  1 link  [sealed]  [name: build]
! [nono] warning: [TMP]/state/audit/20240705-000000-9/session.json: not a session record: missing field `session_id` at line 1 column 2
$ nono audit show 20240705-000000-8
session 20240705-000000-8  unsealed
  command  curl --token '[redacted:0123456789abcdef]'
  in       /home/me/project
  started  2024-07-05 17:20:00 +00:00 (2024-07-05)
  ended    2024-07-05 17:20:01 +00:00, exit 0
  network  filtered: example.org
  counted  1 decision

2024-07-05 +00:00
  17:20:00.000    0  started   curl --token '[redacted:0123456789abcdef]'
! [nono] error: [TMP]/state/audit/20240705-000000-8/events.ndjson: record 1: it was changed after it was written: the hash of its event does not match
! [nono] hint: `nono audit verify` says what can still be trusted
= exit 1
$ nono audit show 20240705-000000-8 --json | tail -3
    }
  ]
}
! [nono] error: [TMP]/state/audit/20240705-000000-8/events.ndjson: record 1: it was changed after it was written: the hash of its event does not match
! [nono] hint: `nono audit verify` says what can still be trusted
$ nono audit show 20240705-000000-9
! [nono] error: [TMP]/state/audit/20240705-000000-9/session.json: not a session record: missing field `session_id` at line 1 column 2
= exit 125
$ nono audit show 2024
! [nono] error: 2024 matches several sessions: 20240705-000000-8, 20240703-094640-7
! [nono] hint: `nono audit list` lists the sessions
= exit 125
$ nono audit show nobody
! [nono] error: no recorded session is called "nobody"
! [nono] hint: `nono audit list` lists the sessions
= exit 125
$ nono audit list --since yesterday
! [nono] error: invalid value 'yesterday' for '--since <WHEN>': "yesterday" is not a time: write 2026-08-01, 2026-08-01T10:15, or 30m, 2h, 3d
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono audit list --decision maybe
! [nono] error: invalid value 'maybe' for '--decision <DECISION>'
! [nono]   [possible values: allowed, denied]
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}
