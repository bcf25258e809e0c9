//! `nono audit export`: writes records for other programs.

use std::io;

use nono::audit::{AuditEntry, AuditError, Catalogue, Exporter, Reader, RecordFormat};

use super::{output, until_closed};
use crate::args::{ExportArgs, ExportFormat};
use crate::failure::{Failure, NOT_DONE};
use crate::message;

pub(super) fn export(args: &ExportArgs, catalogue: &Catalogue) -> Result<u8, Failure> {
    let (entries, mut problems) = if args.sessions.is_empty() {
        let (mut entries, problems) = catalogue.list()?;
        // Oldest first.
        entries.reverse();
        (entries, problems)
    } else {
        let found: Result<Vec<_>, _> = args.sessions.iter().map(|text| catalogue.find(text)).collect();
        (found?, Vec::new())
    };
    let format = match args.format {
        ExportFormat::Jsonl => RecordFormat::Jsonl,
        ExportFormat::Csv => RecordFormat::Csv,
        ExportFormat::OtlpJson => RecordFormat::OtlpJson,
    };
    let out = output(args.output.as_deref())?;
    until_closed(write(&entries, out, format, &mut problems), args.output.as_deref())?;
    message::problems("error", &problems);
    Ok(if problems.is_empty() { 0 } else { NOT_DONE })
}

/// Writes the records of each log up to the first bad one, which is reported in `problems`.
fn write(
    entries: &[AuditEntry],
    out: impl io::Write,
    format: RecordFormat,
    problems: &mut Vec<AuditError>,
) -> io::Result<()> {
    let mut exporter = Exporter::new(out, format)?;
    for entry in entries {
        exporter.session(&entry.id)?;
        let reader = match Reader::open(&entry.dir) {
            Ok(reader) => reader,
            Err(error) => {
                problems.push(error.into());
                continue;
            }
        };
        for record in reader {
            match record {
                Ok(record) => exporter.record(&record)?,
                // It is being written, or its writer was killed.
                Err(error) if error.is_torn() && entry.record.ended.is_none() => {}
                Err(error) => problems.push(error.into()),
            }
        }
    }
    exporter.finish().map(drop)
}
