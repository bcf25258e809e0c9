//! Native half of `nono_py.audit`: digests, records, ledger and proofs, by the rules of the library.
//!
//! Other programs write this format too, so any kind of event counts here, and digits may be in upper case. Reading files
//! and naming lines is left to Python.

use nono::audit::record_format::{self, Chain};
use nono::audit::{Digest, LedgerEntry, Proof, ProtectedFields, is_session_id};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::plain;

create_exception!(
    nono_py.audit,
    VerificationError,
    PyException,
    "A log, a ledger or a record is not what was written."
);

fn wrong(message: impl ToString) -> PyErr {
    VerificationError::new_err(message.to_string())
}

fn no_digest(name: &str) -> PyErr {
    wrong(format!("{name} is not a SHA-256 digest (64 hexadecimal digits)"))
}

fn from_hex(text: &str) -> Option<Digest> {
    Digest::try_from(text.to_ascii_lowercase()).ok()
}

/// Digest given as hexadecimal digits or as bytes.
fn digest(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Digest> {
    let found = match value.cast::<PyBytes>() {
        Ok(bytes) => bytes.as_bytes().try_into().ok().map(Digest::from_bytes),
        Err(_) => value.extract::<String>().ok().and_then(|text| from_hex(&text)),
    };
    found.ok_or_else(|| no_digest(name))
}

/// A number that is no bool.
fn number(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let number = value.extract().ok().filter(|_| !value.is_instance_of::<PyBool>());
    number.ok_or_else(|| wrong(format!("{name} is out of range: {value:.40}")))
}

fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> PyResult<T> {
    if !json.trim_ascii_start().starts_with(b"{") {
        return Err(wrong("not a JSON object"));
    }
    // The caller names the line.
    serde_json::from_slice(json)
        .map_err(|error| wrong(error.to_string().replace("at line 1 column", "at column")))
}

/// A digest as text.
#[pyfunction]
pub(crate) fn _digest_text(value: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<String>> {
    value.map(|value| Ok(digest(value, name)?.hex())).transpose()
}

/// Leaf and chain hash of the next record of a log.
#[pyfunction]
pub(crate) fn _audit_link(event_json: &[u8], head: Option<&Bound<'_, PyAny>>) -> PyResult<(String, String)> {
    let head = head.map(|head| digest(head, "chain head")).transpose()?;
    let leaf = record_format::leaf(event_json);
    Ok((leaf.hex(), record_format::chain(head, &leaf).hex()))
}

/// Digests over the records of a log, each checked against those before it.
#[pyclass(name = "_LogCheck", module = "nono_py._nono_py")]
#[derive(Debug, Default)]
pub(crate) struct LogCheck {
    chain: Chain,
    /// Whether a record lacks the text of its event.
    #[pyo3(get)]
    missing: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordLine<'a> {
    #[serde(borrow)]
    sequence: Option<&'a RawValue>,
    /// `null` in the first record, but never missing.
    prev_chain: &'a RawValue,
    leaf_hash: Option<&'a RawValue>,
    chain_hash: Option<&'a RawValue>,
    event_json: Option<&'a RawValue>,
    event: Option<&'a RawValue>,
}

fn digest_in(value: Option<&RawValue>, name: &str) -> PyResult<Digest> {
    let text = value.and_then(|value| serde_json::from_str::<String>(value.get()).ok());
    text.and_then(|text| from_hex(&text)).ok_or_else(|| no_digest(name))
}

#[pymethods]
impl LogCheck {
    #[new]
    fn new() -> LogCheck {
        LogCheck::default()
    }

    #[getter]
    fn count(&self) -> u64 {
        self.chain.count()
    }

    #[getter]
    fn head(&self) -> Option<String> {
        self.chain.head().map(|head| head.hex())
    }

    #[getter]
    fn root(&self) -> Option<String> {
        self.chain.root().map(|root| root.hex())
    }

    /// Check the next line.
    fn add(&mut self, line: &[u8]) -> PyResult<()> {
        let found: RecordLine<'_> = object(line)?;
        let event = found.event.map(RawValue::get).filter(|event| event.starts_with('{'));
        let event = event.ok_or_else(|| wrong("the record has no event"))?;
        let text = found.event_json.map(|text| serde_json::from_str::<String>(text.get())).transpose();
        let text = text
            .map_err(|_| wrong("event_json is not a string, or holds half a character (a lone surrogate)"))?;
        let due = self.chain.link(text.as_deref().unwrap_or(event).as_bytes());
        let sequence = found.sequence.map_or("missing", RawValue::get);
        if sequence != due.sequence.to_string() {
            return Err(wrong(format!("sequence is {sequence:.40}, and should be {}", due.sequence)));
        }
        let before = Some(found.prev_chain).filter(|before| before.get() != "null");
        if before.map(|before| digest_in(Some(before), "prev_chain")).transpose()? != due.prev_chain {
            return Err(wrong("prev_chain is not the chain hash of the record before it"));
        }
        if text.as_ref().is_some_and(|text| text != event) {
            return Err(wrong("event differs from event_json: it was changed, or repeats a key"));
        }
        if digest_in(found.leaf_hash, "leaf hash")? != due.leaf_hash {
            return Err(wrong("leaf hash mismatch: the event is not the one that was hashed"));
        }
        if digest_in(found.chain_hash, "chain hash")? != due.chain_hash {
            return Err(wrong("chain hash mismatch"));
        }
        self.missing |= text.is_none();
        self.chain.push(&due);
        Ok(())
    }
}

/// Entries of a ledger, each checked against the one before it, and the last one of a session.
#[pyclass(name = "_LedgerCheck", module = "nono_py._nono_py")]
#[derive(Debug)]
pub(crate) struct LedgerCheck {
    session_id: String,
    last: Option<LedgerEntry>,
    found: Option<Digest>,
}

#[pymethods]
impl LedgerCheck {
    #[new]
    fn new(session_id: String) -> LedgerCheck {
        LedgerCheck { session_id, last: None, found: None }
    }

    #[getter]
    fn count(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.sequence.saturating_add(1))
    }

    #[getter]
    fn head(&self) -> Option<String> {
        self.last.as_ref().map(|last| last.chain_hash.hex())
    }

    /// The digest of the session in its last entry.
    #[getter]
    fn found(&self) -> Option<String> {
        self.found.map(|found| found.hex())
    }

    /// Check the next line.
    fn add(&mut self, line: &[u8]) -> PyResult<()> {
        let entry = object::<LedgerEntry>(line)?.due(self.last.as_ref()).map_err(wrong)?;
        check_id(&entry.session_id)?;
        if entry.session_id == self.session_id {
            self.found = Some(entry.session_digest);
        }
        self.last = Some(entry);
        Ok(())
    }
}

fn check_id(id: &str) -> PyResult<()> {
    if is_session_id(id) { Ok(()) } else { Err(wrong(format!("invalid audit session id: {id:.100?}"))) }
}

/// Protected fields of a session's record.
fn protected(json: &str) -> PyResult<(ProtectedFields, Digest)> {
    let names = "session_id started ended command executable_identity tracked_paths snapshot_count exit_code \
                 merkle_roots network_events audit_event_count audit_integrity audit_attestation";
    let given: Map<String, Value> = object(json.as_bytes())?;
    let missing: Vec<&str> = names.split(' ').filter(|name| !given.contains_key(*name)).collect();
    if !missing.is_empty() {
        return Err(wrong(format!("missing protected digest fields: {}", missing.join(", "))));
    }
    let fields: ProtectedFields = object(json.as_bytes())?;
    let digest = fields.digest().map_err(wrong)?;
    Ok((fields, digest))
}

/// The id of a session, and the digest over its protected fields.
#[pyfunction]
pub(crate) fn _session_digest(json: &str) -> PyResult<(String, String)> {
    let (fields, digest) = protected(json)?;
    Ok((fields.session_id, digest.hex()))
}

/// The entry of the ledger for a session.
#[pyfunction]
pub(crate) fn _ledger_record<'py>(
    py: Python<'py>,
    json: &str,
    sequence: &Bound<'py, PyAny>,
    previous: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (fields, session) = protected(json)?;
    check_id(&fields.session_id)?;
    let before = previous.map(|previous| digest(previous, "previous chain")).transpose()?;
    let sequence = number(sequence, "sequence")?;
    let entry = LedgerEntry::new(sequence, before, &fields.session_id, session, fields.completed_at());
    plain::value(py, &entry.map_err(wrong)?)
}

/// Refuse what is not the id of a session.
#[pyfunction]
pub(crate) fn _check_session_id(session_id: &Bound<'_, PyAny>) -> PyResult<()> {
    match session_id.extract::<String>() {
        Ok(id) => check_id(&id),
        Err(_) => Err(wrong(format!("invalid audit session id: {session_id:?}"))),
    }
}

/// A proof that the leaf with this index is one of these.
#[pyfunction]
pub(crate) fn _build_proof<'py>(
    py: Python<'py>,
    leaf_hashes: &Bound<'py, PyAny>,
    leaf_index: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let leaves = leaf_hashes.try_iter().map_err(|_| wrong("the leaf hashes are not a list"))?;
    let leaf = |(at, leaf): (usize, PyResult<Bound<'_, PyAny>>)| digest(&leaf?, &format!("leaf {at}"));
    let leaves = leaves.enumerate().map(leaf).collect::<PyResult<Vec<_>>>()?;
    let proof = Proof::build(&leaves, number(leaf_index, "leaf index")?).map_err(wrong)?;
    plain::value(py, &proof)
}

/// Whether a proof holds, and leads to this root.
#[pyfunction]
pub(crate) fn _check_proof(json: &str, expected_root: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    let proof: Proof = object(json.as_bytes())?;
    let expected = expected_root.map(|root| digest(root, "expected root")).transpose()?;
    Ok(expected.is_none_or(|root| root == proof.merkle_root) && proof.check().is_ok())
}
