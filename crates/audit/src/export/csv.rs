//! Export as CSV (RFC 4180), safe to open in a spreadsheet.

use super::facts::{facts, word};
use crate::record_format::VerifiedRecord;

const COLUMNS: &[&str] = &[
    "session_id",
    "sequence",
    "time",
    "type",
    "decision",
    "subject",
    "access",
    "program",
    "pid",
    "by",
    "scope",
    "reason",
    "count",
    "bytes_sent",
    "bytes_received",
    "leaf_hash",
    "chain_hash",
    "event_json",
];

pub(super) fn head() -> String {
    COLUMNS.join(",") + "\r\n"
}

pub(super) fn row(session_id: &str, record: &VerifiedRecord) -> String {
    let facts = facts(&record.event);
    let cells = [
        session_id.to_owned(),
        record.link.sequence.to_string(),
        super::moment(facts.time_ms),
        facts.kind.to_owned(),
        facts.decision.map(word).unwrap_or_default().to_owned(),
        facts.subject,
        facts.access,
        facts.program,
        facts.pid.map(|pid| pid.to_string()).unwrap_or_default(),
        facts.by,
        facts.scope,
        facts.reason,
        facts.count.to_string(),
        facts.bytes_sent.to_string(),
        facts.bytes_received.to_string(),
        record.link.leaf_hash.hex(),
        record.link.chain_hash.hex(),
        record.event_json.clone(),
    ];
    cells.map(|text| cell(&text)).join(",") + "\r\n"
}

/// Cell of a table. Spreadsheets run cells with some beginnings as formulas: an apostrophe makes them text.
pub(super) fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
