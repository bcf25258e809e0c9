//! `nono audit show`: lists the events of one session.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use nono::audit::event::DenialKey;
use nono::audit::{
    AuditEntry, AuditError, AuditEvent, AuditState, Catalogue, Digest, Filter, ReadError, Reader,
    VerifiedRecord,
};
use nono::diagnostic::{escape, quote_all, shown};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::list::{ending, numbers, value};
use super::timeline;
use crate::age::{Local, ZONE, ago, local};
use crate::args::AuditShowArgs;
use crate::failure::Failure;
use crate::message;
use crate::pager::{Pager, canvas};
use crate::paint::{Canvas, Span, Style};

pub(super) fn show(args: &AuditShowArgs, catalogue: &Catalogue, cwd: &Path) -> Result<u8, Failure> {
    let entry = catalogue.find(&args.session)?;
    let filter = super::filter(&args.filter, cwd, None);
    let bad = if args.json { as_json(&entry, &filter)? } else { as_text(&entry, &filter)? };
    let Some(bad) = bad else { return Ok(0) };
    Err(Failure::from(AuditError::from(bad)))
}

/// The records of a log, up to the first that is bad.
struct ShownLog<'a> {
    entry: &'a AuditEntry,
    filter: &'a Filter,
    bad: RefCell<Option<ReadError>>,
}

impl<'a> ShownLog<'a> {
    fn new(entry: &'a AuditEntry, filter: &'a Filter) -> ShownLog<'a> {
        ShownLog { entry, filter, bad: RefCell::new(None) }
    }

    /// Records that the filter selects.
    fn records(&self) -> impl Iterator<Item = VerifiedRecord> + '_ {
        let reader = Reader::open(&self.entry.dir).map_err(|error| self.stop(error)).ok();
        let good =
            reader.into_iter().flatten().map_while(|record| record.map_err(|error| self.stop(error)).ok());
        good.filter(|record| self.filter.wants(&record.event))
    }

    /// Notes a bad record. An incomplete last line is no error while a log is written, or when its writer was killed.
    fn stop(&self, error: ReadError) {
        if !error.is_torn() || self.entry.record.ended.is_some() {
            *self.bad.borrow_mut() = Some(error);
        }
    }
}

fn as_text(entry: &AuditEntry, filter: &Filter) -> Result<Option<ReadError>, Failure> {
    let (canvas, mut out) = (canvas(), Pager::new());
    let log = ShownLog::new(entry, filter);
    let written = head(entry, canvas, &mut out).and_then(|()| events(&log, canvas, &mut out));
    let finished = out.finish();
    match written {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        other => other.map_err(|error| Failure::stdout(&error)).and(finished)?,
    }
    Ok(log.bad.into_inner())
}

fn head(entry: &AuditEntry, canvas: Canvas, out: &mut dyn Write) -> io::Result<()> {
    let alarm = if entry.state == AuditState::Interrupted { Style::Warning } else { Style::Plain };
    let title = [
        Span::new(format!("session {}", escape(&entry.id)), Style::Title),
        Span::new(format!("  {}", entry.state.word()), alarm),
    ];
    out.write_all(canvas.line(&title).as_bytes())?;
    for (key, value) in facts(entry) {
        let line = [Span::new(format!("  {key:<9}"), Style::Faint), Span::plain(value)];
        out.write_all(canvas.line(&line).as_bytes())?;
    }
    Ok(())
}

fn facts(entry: &AuditEntry) -> Vec<(&'static str, String)> {
    let record = &entry.record;
    let mut facts = vec![("command", quote_all(&record.command))];
    facts.extend(record.name.iter().map(|name| ("name", escape(name))));
    facts.push(("in", shown(&record.workdir)));
    facts.push(("started", format!("{} ({})", local(&record.started), ago(&record.started))));
    if let Some(ended) = &record.ended {
        facts.push(("ended", format!("{}, {}", local(ended), ending(entry).unwrap_or_default())));
    }
    facts.push(("network", escape(&record.network)));
    // Damage is reported when the records are read.
    let counts = entry.counts().map(|counts| numbers(&counts)).unwrap_or_default();
    if !counts.is_empty() {
        facts.push(("counted", counts.join(", ")));
    }
    facts
}

fn events(log: &ShownLog<'_>, canvas: Canvas, out: &mut dyn Write) -> io::Result<()> {
    let totals = totals(log);
    let mut seen: HashSet<DenialKey> = HashSet::new();
    let (mut day, mut lines) = (String::new(), 0_u64);
    for record in log.records() {
        // Denials of one kind are one line, at the place of the first.
        let total = match &record.event {
            AuditEvent::Denial(denial) if !seen.insert(denial.what.clone()) => continue,
            AuditEvent::Denial(denial) => totals.get(&denial.what).copied(),
            _ => None,
        };
        let time_ms = timeline::time_ms(&record);
        let moment = Local::of(time_ms, ZONE);
        // A new line for a new zone as well: summer time may end while a session runs.
        let date = format!("{} {}", moment.day, moment.zone);
        if date != day {
            day = date;
            out.write_all(canvas.line(&[]).as_bytes())?;
            out.write_all(canvas.line(&[Span::new(day.clone(), Style::Title)]).as_bytes())?;
        }
        let clock = format!("{}.{:03}", moment.clock, time_ms % 1000);
        out.write_all(canvas.line(&timeline::line(&record, &clock, total)).as_bytes())?;
        lines += 1;
    }
    if lines == 0 && log.bad.borrow().is_none() {
        out.write_all(canvas.line(&[]).as_bytes())?;
        out.write_all(canvas.line(&[Span::plain("no event of this session matches")]).as_bytes())?;
    }
    Ok(())
}

/// Number of denials of each kind: the last count is the sum.
fn totals(log: &ShownLog<'_>) -> HashMap<DenialKey, u64> {
    let mut totals = HashMap::new();
    for record in log.records() {
        if let AuditEvent::Denial(denial) = record.event {
            totals.insert(denial.what, denial.count);
        }
    }
    totals
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    session: Value,
    record: &'a nono::audit::SessionRecord,
    #[serde(serialize_with = "each")]
    events: &'a ShownLog<'a>,
}

#[derive(Serialize)]
struct ShownRecord<'a> {
    sequence: u64,
    prev_chain: Option<Digest>,
    leaf_hash: Digest,
    chain_hash: Digest,
    event: &'a RawValue,
}

fn each<S: Serializer>(log: &ShownLog<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    for record in log.records() {
        let event = serde_json::from_str::<&RawValue>(&record.event_json);
        let event = event.map_err(serde::ser::Error::custom)?;
        let link = &record.link;
        list.serialize_element(&ShownRecord {
            sequence: link.sequence,
            prev_chain: link.prev_chain,
            leaf_hash: link.leaf_hash,
            chain_hash: link.chain_hash,
            event,
        })?;
    }
    list.end()
}

fn as_json(entry: &AuditEntry, filter: &Filter) -> Result<Option<ReadError>, Failure> {
    let log = ShownLog::new(entry, filter);
    // Damage is reported after the records that could be read.
    let counts = entry.counts().unwrap_or_default();
    message::answer_json(&Shown { session: value(entry, &counts), record: &entry.record, events: &log })?;
    Ok(log.bad.into_inner())
}
