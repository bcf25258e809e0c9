//! Steps of one directory, packed. A plan may hold millions of them: each is kept in the encoding of a node's entries,
//! some 90 bytes for a new file, and unpacked on access.

use std::collections::HashMap;

use super::plan::NameStep;
use crate::bytes::{Malformed, Reader, Writer};
use crate::diff::EntryRef;
use crate::node::Entry;

const CREATE: u8 = 1;
const REPLACE: u8 = 2;
const DELETE: u8 = 3;
const META: u8 = 4;
const LATE: u8 = 5;

#[derive(Debug, Default)]
pub(super) struct Steps {
    bytes: Vec<u8>,
    /// Offset of each step.
    starts: Vec<usize>,
    /// Steps on files with several names, decided afterwards.
    decided: HashMap<usize, NameStep>,
}

impl Steps {
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    pub(super) fn push(&mut self, step: NameStep) {
        let at = self.starts.len();
        self.starts.push(self.bytes.len());
        let mut out = Writer::onto(std::mem::take(&mut self.bytes));
        let packed = pack(&step, &mut out);
        self.bytes = out.finish();
        if !packed {
            self.decided.insert(at, step);
        }
    }

    /// Replace a step.
    pub(super) fn set(&mut self, at: usize, step: NameStep) {
        self.decided.insert(at, step);
    }

    /// Release unused memory after the last step.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.starts.shrink_to_fit();
    }

    pub(super) fn get(&self, at: usize) -> Option<NameStep> {
        if let Some(step) = self.decided.get(&at) {
            return Some(step.clone());
        }
        // These bytes never left this process: what was packed can be unpacked.
        unpack(self.bytes.get(*self.starts.get(at)?..)?).ok()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = NameStep> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Whether any step comes after everything else.
    pub(super) fn any_late(&self) -> bool {
        self.any(|tag| tag == LATE, NameStep::is_late)
    }

    /// Whether any step changes the names in the directory.
    pub(super) fn any_moves(&self) -> bool {
        self.any(|tag| tag != META, |step| !matches!(step, NameStep::Keep | NameStep::Meta { .. }))
    }

    fn any(&self, packed: impl Fn(u8) -> bool, decided: impl Fn(&NameStep) -> bool) -> bool {
        self.starts.iter().enumerate().any(|(at, start)| match self.decided.get(&at) {
            Some(step) => decided(step),
            None => self.bytes.get(*start).is_some_and(|tag| packed(*tag)),
        })
    }
}

/// Pack a step. False: steps of this kind are not packed.
fn pack(step: &NameStep, out: &mut Writer) -> bool {
    let (tag, entries): (u8, [Option<&EntryRef>; 2]) = match step {
        NameStep::Create(new) => (CREATE, [Some(new), None]),
        NameStep::Late(new) => (LATE, [Some(new), None]),
        NameStep::Delete(old) => (DELETE, [Some(old), None]),
        NameStep::Replace { old, new } => (REPLACE, [Some(old), Some(new)]),
        NameStep::Meta { old, new } => (META, [Some(old), Some(new)]),
        NameStep::Link { .. } | NameStep::Keep => return false,
    };
    out.byte(tag);
    entries.into_iter().flatten().for_each(|entry| entry.encode(out));
    true
}

fn unpack(bytes: &[u8]) -> Result<NameStep, Malformed> {
    let mut from = Reader::new(bytes);
    let tag = from.byte()?;
    let first = EntryRef::alone(Entry::decode(&mut from)?);
    Ok(match tag {
        CREATE => NameStep::Create(first),
        LATE => NameStep::Late(first),
        DELETE => NameStep::Delete(first),
        REPLACE => NameStep::Replace { old: first, new: EntryRef::alone(Entry::decode(&mut from)?) },
        META => NameStep::Meta { old: first, new: EntryRef::alone(Entry::decode(&mut from)?) },
        _ => return Err(Malformed("a step")),
    })
}
