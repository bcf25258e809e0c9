//! Export of records for other programs. Records are streamed: only one is in memory, however long a log is.

mod csv;
mod facts;
mod otlp;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::hash::Digest;
use crate::record_format::VerifiedRecord;

pub use facts::{Facts, facts, word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFormat {
    /// One JSON object per line.
    Jsonl,
    /// RFC 4180, with a head line.
    Csv,
    /// OpenTelemetry's logs, as one JSON document.
    OtlpJson,
}

/// Writes the records of any number of sessions, each begun by [`Exporter::session`].
#[derive(Debug)]
pub struct Exporter<W> {
    out: W,
    format: RecordFormat,
    session: Option<String>,
    /// Number of records of the session so far.
    records: u64,
}

#[derive(Serialize)]
struct ExportLine<'a> {
    session_id: &'a str,
    sequence: u64,
    prev_chain: Option<Digest>,
    leaf_hash: Digest,
    chain_hash: Digest,
    event: &'a RawValue,
}

impl<W: Write> Exporter<W> {
    pub fn new(mut out: W, format: RecordFormat) -> io::Result<Exporter<W>> {
        match format {
            RecordFormat::Jsonl => {}
            RecordFormat::Csv => out.write_all(csv::head().as_bytes())?,
            RecordFormat::OtlpJson => out.write_all(otlp::BEGIN.as_bytes())?,
        }
        Ok(Exporter { out, format, session: None, records: 0 })
    }

    /// Starts a session; the following records belong to it.
    pub fn session(&mut self, id: &str) -> io::Result<()> {
        if self.format == RecordFormat::OtlpJson {
            if self.session.is_some() {
                self.out.write_all(otlp::SESSION_END.as_bytes())?;
                self.out.write_all(b",")?;
            }
            self.out.write_all(otlp::session(id)?.as_bytes())?;
        }
        self.session = Some(id.to_owned());
        self.records = 0;
        Ok(())
    }

    pub fn record(&mut self, record: &VerifiedRecord) -> io::Result<()> {
        let id = self.session.as_deref().unwrap_or_default();
        let text = match self.format {
            RecordFormat::Jsonl => line(id, record)? + "\n",
            RecordFormat::Csv => csv::row(id, record),
            RecordFormat::OtlpJson if self.records > 0 => format!(",{}", otlp::record(id, record)?),
            RecordFormat::OtlpJson => otlp::record(id, record)?,
        };
        self.records += 1;
        self.out.write_all(text.as_bytes())
    }

    pub fn finish(mut self) -> io::Result<W> {
        if self.format == RecordFormat::OtlpJson {
            if self.session.is_some() {
                self.out.write_all(otlp::SESSION_END.as_bytes())?;
            }
            self.out.write_all(otlp::END.as_bytes())?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// `YYYY-MM-DDTHH:MM:SS.mmmZ` of milliseconds since 1970.
pub fn moment(time_ms: u64) -> String {
    let second = nono_sys::time::iso_ms(time_ms);
    format!("{}.{:03}Z", second.trim_end_matches('Z'), time_ms % 1000)
}

fn line(session_id: &str, record: &VerifiedRecord) -> serde_json::Result<String> {
    let link = &record.link;
    serde_json::to_string(&ExportLine {
        session_id,
        sequence: link.sequence,
        prev_chain: link.prev_chain,
        leaf_hash: link.leaf_hash,
        chain_hash: link.chain_hash,
        event: &RawValue::from_string(record.event_json.clone())?,
    })
}
