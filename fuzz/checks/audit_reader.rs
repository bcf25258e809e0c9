//! Untrusted logs: the bytes as they are, and the bytes as events in records that are otherwise valid.

use std::path::PathBuf;

use nono_audit::Reader;
use nono_audit::record_format::{Chain, write};

fn read(bytes: &[u8]) -> u64 {
    let mut reader = Reader::new(PathBuf::from("events.ndjson"), bytes);
    let mut good = 0;
    for record in &mut reader {
        match record {
            Ok(record) => {
                assert_eq!(record.link.sequence, good);
                good += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert_eq!(reader.read().count(), good);
    good
}

pub(crate) fn check(bytes: &[u8]) {
    let alone = read(bytes);
    let mut chain = Chain::default();
    let mut log = Vec::new();
    for event in bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()) {
        let link = chain.link(event.as_bytes());
        if write(&link, event, &mut log).is_ok() {
            chain.push(&link);
        }
    }
    let written = read(&log);
    assert!(written <= chain.count());
    // Every change of one byte is detected.
    if let (Some(at), true) = (bytes.first().map(|byte| usize::from(*byte)), written > 0) {
        let at = at * log.len() / 256;
        let mut changed = log.clone();
        changed[at] ^= 1;
        assert!(read(&changed) < chain.count() || written < chain.count(), "byte {at} can be changed");
    }
    let _ = alone;
}
