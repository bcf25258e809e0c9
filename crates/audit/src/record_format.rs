//! Format of a record: one line, fully determined by the event and the records before it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::event::AuditEvent;
use crate::hash::{CHAIN_DOMAIN, Digest, EVENT_DOMAIN};
use crate::merkle::Merkle;

/// Maximum length of a line. The limit on events is far lower, since an event is in its line twice, once escaped.
pub const MAX_LINE: usize = 4 << 20;
/// Maximum size of an event.
pub const MAX_EVENT: usize = 512 << 10;

/// Hashes that tie one event to everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub sequence: u64,
    pub prev_chain: Option<Digest>,
    pub leaf_hash: Digest,
    pub chain_hash: Digest,
}

/// State of the chain: digests over all records so far.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    head: Option<Digest>,
    tree: Merkle,
}

impl Chain {
    pub fn count(&self) -> u64 {
        self.tree.leaves()
    }

    pub fn head(&self) -> Option<Digest> {
        self.head
    }

    pub fn root(&self) -> Option<Digest> {
        self.tree.root()
    }

    pub fn link(&self, event_json: &[u8]) -> Link {
        let leaf_hash = leaf(event_json);
        let chain_hash = chain(self.head, &leaf_hash);
        Link { sequence: self.count(), prev_chain: self.head, leaf_hash, chain_hash }
    }

    pub fn push(&mut self, link: &Link) {
        self.head = Some(link.chain_hash);
        self.tree.push(link.leaf_hash);
    }
}

pub fn leaf(event_json: &[u8]) -> Digest {
    Digest::of(EVENT_DOMAIN, &[event_json])
}

/// Digest of the chain so far and the next leaf.
pub fn chain(before: Option<Digest>, leaf: &Digest) -> Digest {
    Digest::of(CHAIN_DOMAIN, &[before.unwrap_or(Digest::ZERO).as_bytes(), leaf.as_bytes()])
}

#[derive(Serialize)]
struct Written<'a> {
    sequence: u64,
    prev_chain: Option<Digest>,
    leaf_hash: Digest,
    chain_hash: Digest,
    event_json: &'a str,
}

#[derive(Deserialize)]
struct ParsedRecord<'a> {
    sequence: u64,
    prev_chain: Option<Digest>,
    leaf_hash: Digest,
    chain_hash: Digest,
    event_json: String,
    #[serde(borrow, rename = "event")]
    _event: &'a RawValue,
}

/// Appends the line of an event, with its end, to `line`. It has the event as a string, whose bytes are hashed, and as
/// an object, for programs that look for a field.
pub fn write(link: &Link, event_json: &str, line: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let Link { sequence, prev_chain, leaf_hash, chain_hash } = *link;
    serde_json::to_writer(&mut *line, &Written { sequence, prev_chain, leaf_hash, chain_hash, event_json })?;
    line.pop();
    line.extend_from_slice(b",\"event\":");
    line.extend_from_slice(event_json.as_bytes());
    line.extend_from_slice(b"}\n");
    Ok(())
}

/// Record that passed all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedRecord {
    pub link: Link,
    /// Bytes that were hashed.
    pub event_json: String,
    pub event: AuditEvent,
}

/// Reason why a line is not the expected record.
#[derive(Debug, Error)]
pub enum Flaw {
    #[error("the line is not a record: {0}")]
    Shape(serde_json::Error),
    #[error("the line is longer than {MAX_LINE} bytes")]
    TooLong,
    #[error("the line is incomplete")]
    Torn,
    #[error("unexpected sequence number {0}")]
    Sequence(u64),
    #[error("it does not follow the record before it")]
    Previous,
    #[error("it was changed after it was written: the hash of its event does not match")]
    Leaf,
    #[error("its chain hash is wrong")]
    Chain,
    #[error("the line has other content than its event and its hashes")]
    NotExact,
    #[error("cannot parse the event: {0}")]
    Event(serde_json::Error),
    #[error("the seal does not match the records before it")]
    Seal,
    #[error("something follows the seal")]
    AfterSeal,
}

/// Parses `line` (with its end) and checks that it is the next record after `chain`. The line has to be byte for byte
/// what the writer would produce: nothing can hide in further keys, in a duplicate key, or in blanks.
pub fn read(line: &[u8], chain: &Chain) -> Result<VerifiedRecord, Flaw> {
    let found: ParsedRecord<'_> = serde_json::from_slice(line).map_err(Flaw::Shape)?;
    let link = chain.link(found.event_json.as_bytes());
    if found.sequence != link.sequence {
        return Err(Flaw::Sequence(found.sequence));
    }
    if found.prev_chain != link.prev_chain {
        return Err(Flaw::Previous);
    }
    if found.leaf_hash != link.leaf_hash {
        return Err(Flaw::Leaf);
    }
    if found.chain_hash != link.chain_hash {
        return Err(Flaw::Chain);
    }
    let mut exact = Vec::with_capacity(line.len());
    write(&link, &found.event_json, &mut exact).map_err(Flaw::Shape)?;
    if exact != line {
        return Err(Flaw::NotExact);
    }
    let event = serde_json::from_str(&found.event_json).map_err(Flaw::Event)?;
    Ok(VerifiedRecord { link, event_json: found.event_json, event })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Warning;

    #[test]
    fn the_golden_leaf_and_chain() {
        let link = Chain::default().link(br#"{"type":"session_ended","ended":"t","exit_code":0}"#);
        let leaf = "41d4327e2c77da30d255b773bc8eb2e2d1641305ad8a357d27eabfdde363f315";
        let chain = "91eeedc870b9ad2684afee061e19f15f50c5fc05712f05d27b68b13b23ec5ec0";
        assert_eq!((link.leaf_hash.hex().as_str(), link.chain_hash.hex().as_str()), (leaf, chain));
    }

    fn line() -> String {
        let event = AuditEvent::Warning(Warning { time_ms: 7, message: "a \"b\"\n\u{e9}".to_owned() });
        let json = serde_json::to_string(&event).unwrap();
        let mut line = Vec::new();
        write(&Chain::default().link(json.as_bytes()), &json, &mut line).unwrap();
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn the_line_has_its_keys_in_order() {
        let line = line();
        let at: Vec<usize> = ["sequence", "prev_chain", "leaf_hash", "chain_hash", "event_json", "event"]
            .iter()
            .map(|key| line.find(&format!("\"{key}\":")).unwrap())
            .collect();
        assert!(at.is_sorted(), "{line}");
        assert!(line.starts_with("{\"sequence\":0,\"prev_chain\":null,") && line.ends_with("}}\n"), "{line}");
        assert_eq!(line.matches('\n').count(), 1);
        assert!(read(line.as_bytes(), &Chain::default()).is_ok());
    }

    #[test]
    fn nothing_hides_in_a_line() {
        let line = line();
        for (from, to) in [
            ("{\"sequence\"", "{ \"sequence\""),
            ("{\"sequence\"", "{\"more\":1,\"sequence\""),
            ("{\"sequence\":0,", "{\"sequence\":0,\"sequence\":0,"),
            ("\"event\":{\"type\":\"warning\",", "\"event\":{\"type\":\"warning\",\"x\":1,"),
            ("\"event\":{\"type\"", "\"event\":{},\"event\":{\"type\""),
            ("}}\n", "} }\n"),
            ("}}\n", "}}\r\n"),
            ("\u{e9}", "\\u00e9"),
        ] {
            let changed = line.replacen(from, to, 1);
            assert_ne!(changed, line, "{from}");
            assert!(read(changed.as_bytes(), &Chain::default()).is_err(), "{changed}");
        }
    }
}
