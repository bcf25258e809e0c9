//! Export as OpenTelemetry logs in JSON: one `resourceLogs` entry per session, one `logRecords` entry per event.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::facts::{facts, word};
use crate::event::{AuditEvent, Decision};
use crate::hash::Digest;
use crate::record_format::VerifiedRecord;

pub(super) const BEGIN: &str = "{\"resourceLogs\":[";
pub(super) const SESSION_END: &str = "]}]}";
pub(super) const END: &str = "]}\n";
/// Digest domain of trace ids, which are made from session ids.
const TRACE_DOMAIN: &[u8] = b"nono.audit.trace\n";

/// Severity numbers and texts of OpenTelemetry.
const INFO: (u8, &str) = (9, "INFO");
const WARN: (u8, &str) = (13, "WARN");
const ERROR: (u8, &str) = (17, "ERROR");

pub(super) fn session(id: &str) -> serde_json::Result<String> {
    let resource = json!({"attributes": [
        {"key": "service.name", "value": {"stringValue": "nono"}},
        {"key": "nono.session.id", "value": {"stringValue": id}},
    ]});
    let scope = json!({"name": "nono.audit", "version": env!("CARGO_PKG_VERSION")});
    Ok(format!(
        "{{\"resource\":{},\"scopeLogs\":[{{\"scope\":{},\"logRecords\":[",
        serde_json::to_string(&resource)?,
        serde_json::to_string(&scope)?
    ))
}

pub(super) fn record(session_id: &str, record: &VerifiedRecord) -> serde_json::Result<String> {
    let facts = facts(&record.event);
    let nanoseconds = (u128::from(facts.time_ms) * 1_000_000).to_string();
    let (number, name) = severity(&record.event, facts.decision);
    let link = &record.link;
    let mut attributes = vec![
        attribute("nono.event.sequence", &json!(link.sequence)),
        attribute("nono.event.leaf_hash", &json!(link.leaf_hash)),
        attribute("nono.event.chain_hash", &json!(link.chain_hash)),
    ];
    let event: Map<String, Value> = serde_json::from_str(&record.event_json)?;
    let told = event.iter().filter(|(key, value)| *key != "time_ms" && !value.is_null());
    attributes.extend(told.map(|(key, value)| attribute(&format!("nono.event.{key}"), value)));
    let body = [
        facts.kind,
        facts.decision.map(word).unwrap_or_default(),
        &facts.access,
        &facts.subject,
        &facts.reason,
    ];
    let body = body.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    serde_json::to_string(&json!({
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": number,
        "severityText": name,
        "eventName": format!("nono.{}", facts.kind),
        "body": {"stringValue": body},
        "attributes": attributes,
        "traceId": &Digest::of(TRACE_DOMAIN, &[session_id.as_bytes()]).hex()[..32],
    }))
}

fn severity(event: &AuditEvent, decision: Option<Decision>) -> (u8, &'static str) {
    match (event, decision) {
        (AuditEvent::BackendError(_), _) => ERROR,
        (AuditEvent::Warning(_), _) | (_, Some(Decision::Denied)) => WARN,
        _ => INFO,
    }
}

fn attribute(key: &str, value: &Value) -> Value {
    json!({"key": key, "value": any(value)})
}

/// Value with its type. Integers are strings in this format, because 64 bits do not fit into every program's numbers.
fn any(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(yes) => json!({"boolValue": yes}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        Value::Array(values) => json!({"arrayValue": {"values": values.iter().map(any).collect::<Vec<_>>()}}),
        Value::Object(map) => bytes(map).map_or_else(
            || {
                let told = map.iter().filter(|(_, value)| !value.is_null());
                let values: Vec<Value> = told.map(|(key, value)| attribute(key, value)).collect();
                json!({"kvlistValue": {"values": values}})
            },
            |bytes| json!({"bytesValue": STANDARD.encode(bytes)}),
        ),
    }
}

/// Bytes of a path that is not UTF-8.
fn bytes(map: &Map<String, Value>) -> Option<Vec<u8>> {
    let values = map.get("bytes").filter(|_| map.len() == 1)?.as_array()?;
    values.iter().map(|value| value.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect()
}
