use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde_json::Value;

use super::*;
use crate::event::{AuditEvent, CapabilityDecision, Decision, Denial, DenialKey, Network, Warning};
use crate::record_format::Chain;

fn records(events: Vec<AuditEvent>) -> Vec<VerifiedRecord> {
    let mut chain = Chain::default();
    let mut record = |event: AuditEvent| {
        let event_json = serde_json::to_string(&event).unwrap();
        let link = chain.link(event_json.as_bytes());
        chain.push(&link);
        VerifiedRecord { link, event_json, event }
    };
    events.into_iter().map(&mut record).collect()
}

fn events() -> Vec<AuditEvent> {
    let odd = PathBuf::from(OsString::from_vec(b"/a/\xff\",\n=b".to_vec()));
    vec![
        AuditEvent::Warning(Warning { time_ms: 1_500, message: "=1+1\r\n".to_owned() }),
        AuditEvent::CapabilityDecision(CapabilityDecision {
            time_ms: 2_000,
            path: odd.clone(),
            access: "read".to_owned(),
            program: "/bin/cat".into(),
            pid: 7,
            decision: Decision::Denied,
            by: "terminal".to_owned(),
            scope: None,
            reason: Some("@please".to_owned()),
        }),
        AuditEvent::Denial(Denial {
            time_ms: 3_000,
            what: DenialKey {
                kind: "open".to_owned(),
                path: None,
                access: "write".to_owned(),
                reason: String::new(),
                program: odd,
            },
            pid: 8,
            count: 1000,
        }),
        AuditEvent::Network(Network {
            time_ms: 4_000,
            mode: "connect".to_owned(),
            decision: Decision::Allowed,
            host: "x.org".to_owned(),
            port: 443,
            method: None,
            path: None,
            status: Some(200),
            reason: None,
            category: None,
            address: None,
            credential: None,
            bytes_sent: u64::MAX,
            bytes_received: 2,
            duration_ms: 3,
            phase: None,
            count: 1,
        }),
    ]
}

fn export(format: RecordFormat, sessions: &[&str]) -> String {
    let mut exporter = Exporter::new(Vec::new(), format).unwrap();
    for id in sessions {
        exporter.session(id).unwrap();
        for record in records(events()) {
            exporter.record(&record).unwrap();
        }
    }
    String::from_utf8(exporter.finish().unwrap()).unwrap()
}

#[test]
fn lines_hold_the_exact_event() {
    let text = export(RecordFormat::Jsonl, &["a-1", "b-2"]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 8);
    for (at, (line, record)) in lines.iter().zip(records(events()).iter().cycle()).enumerate() {
        assert_eq!(line["session_id"], if at < 4 { "a-1" } else { "b-2" });
        assert_eq!(line["sequence"], at % 4);
        assert_eq!(line["leaf_hash"], record.link.leaf_hash.hex());
        assert_eq!(line["event"].to_string(), record.event_json);
    }
    assert!(lines[0]["prev_chain"].is_null() && lines[4]["prev_chain"].is_null());
}

/// Parser of RFC 4180, to read the export back.
fn read_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {
                assert_eq!(chars.next(), Some('\n'));
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty() && !quoted);
    rows
}

#[test]
fn tables_are_whole_and_harmless() {
    let rows = read_csv(&export(RecordFormat::Csv, &["a-1"]));
    assert_eq!(rows.len(), 5);
    let column = |name: &str| rows[0].iter().position(|cell| cell == name).unwrap();
    let cell = |row: usize, name: &str| rows[row][column(name)].as_str();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    assert_eq!(cell(1, "reason"), "'=1+1\r\n");
    assert_eq!(cell(1, "time"), "1970-01-01T00:00:01.500Z");
    assert_eq!(cell(2, "subject"), "/a/\\xff\",\n=b");
    assert_eq!(cell(2, "reason"), "'@please");
    assert_eq!(
        (cell(2, "decision"), cell(3, "decision"), cell(4, "decision")),
        ("denied", "denied", "allowed")
    );
    assert_eq!((cell(3, "subject"), cell(3, "count")), ("open", "1000"));
    assert_eq!((cell(4, "subject"), cell(4, "bytes_sent")), ("x.org:443", "18446744073709551615"));
    for (row, record) in rows[1..].iter().zip(records(events())) {
        assert_eq!(row[column("event_json")], record.event_json);
        let formula = |cell: &String| cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
        assert!(!row.iter().any(formula), "{row:?}");
    }
    for (text, defused) in
        [("=a", "\"'=a\""), ("-1", "\"'-1\""), ("a", "a"), ("a,b", "\"a,b\""), ("a\"", "\"a\"\"\"")]
    {
        assert_eq!(csv::cell(text), defused);
    }
}

#[test]
fn telemetry_has_its_shape() {
    let text = export(RecordFormat::OtlpJson, &["a-1", "b-2"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let sessions = document["resourceLogs"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    let logs = |session: usize| sessions[session]["scopeLogs"][0]["logRecords"].as_array().unwrap();
    let (first, second) = (logs(0), logs(1));
    assert_eq!((first.len(), second.len()), (4, 4));
    assert_eq!(first[0]["timeUnixNano"], "1500000000");
    assert_eq!(
        [13, 13, 13, 9].map(Value::from),
        [0, 1, 2, 3].map(|at: usize| first[at]["severityNumber"].clone())
    );
    let trace = first[0]["traceId"].as_str().unwrap();
    assert!(trace.len() == 32 && trace.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(first.iter().all(|record| record["traceId"] == trace));
    assert_ne!(second[0]["traceId"], trace);
    let attribute = |record: &Value, key: &str| {
        let list = record["attributes"].as_array().unwrap().clone();
        list.into_iter().find(|one| one["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(attribute(&first[1], "nono.event.path")["bytesValue"], "L2Ev/yIsCj1i");
    assert_eq!(attribute(&first[3], "nono.event.bytes_sent")["intValue"], "18446744073709551615");
    assert_eq!(first[3]["body"]["stringValue"], "network allowed connect x.org:443");
    assert_eq!(export(RecordFormat::OtlpJson, &[]), "{\"resourceLogs\":[]}\n");
}
