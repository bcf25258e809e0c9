//! Inclusion proofs: one event belongs to a log, for a verifier that has only the root over all events.

use serde::{Deserialize, Serialize};
use std::path::Path;
use thiserror::Error;

use crate::event::{AuditEvent, Seal};
use crate::hash::Digest;
use crate::merkle::node;
use crate::reader::{ReadError, Reader};
use crate::record_format::leaf;
use crate::sign::{PublicKey, SignError};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofSide {
    Left,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sibling {
    pub direction: ProofSide,
    pub hash: Digest,
}

/// Path from a leaf to the root. A level at which the node moves up unchanged has no entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    pub leaf_index: u64,
    pub leaf_count: u64,
    pub leaf_hash: Digest,
    pub merkle_root: Digest,
    pub siblings: Vec<Sibling>,
}

#[derive(Debug, Error)]
pub enum ProofError {
    #[error("there is no record {index}: the log has {count}")]
    NoSuchRecord { index: u64, count: u64 },
    #[error("the proof does not lead from its leaf to its root")]
    Wrong,
    #[error("the proof is for another event")]
    OtherEvent,
    #[error("the proof is for another log: its root or its number of events is not the expected one")]
    OtherRoot,
    #[error("the proof has no signature to check")]
    Unsigned,
    #[error(transparent)]
    Signature(#[from] SignError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Proof {
    pub fn build(leaves: &[Digest], index: u64) -> Result<Proof, ProofError> {
        let count = leaves.len() as u64;
        let none = ProofError::NoSuchRecord { index, count };
        let Some((mut at, leaf_hash)) =
            usize::try_from(index).ok().and_then(|at| Some((at, *leaves.get(at)?)))
        else {
            return Err(none);
        };
        let (mut level, mut siblings) = (leaves.to_vec(), Vec::new());
        while level.len() > 1 {
            let (direction, other) =
                if at % 2 == 1 { (ProofSide::Left, at - 1) } else { (ProofSide::Right, at + 1) };
            siblings.extend(level.get(other).map(|hash| Sibling { direction, hash: *hash }));
            level = level.chunks(2).map(pair).collect();
            at /= 2;
        }
        Ok(Proof { leaf_index: index, leaf_count: count, leaf_hash, merkle_root: level[0], siblings })
    }

    /// Checks that the proof leads from its leaf, at its index among that many, to its root.
    pub fn check(&self) -> Result<(), ProofError> {
        let (mut at, mut width, mut hash) = (self.leaf_index, self.leaf_count, self.leaf_hash);
        if at >= width {
            return Err(ProofError::Wrong);
        }
        let mut siblings = self.siblings.iter();
        while width > 1 {
            let expected = if at % 2 == 1 {
                Some(ProofSide::Left)
            } else if at + 1 < width {
                Some(ProofSide::Right)
            } else {
                None
            };
            if let Some(side) = expected {
                let sibling =
                    siblings.next().filter(|found| found.direction == side).ok_or(ProofError::Wrong)?;
                hash = match side {
                    ProofSide::Left => node(&sibling.hash, &hash),
                    ProofSide::Right => node(&hash, &sibling.hash),
                };
            }
            at /= 2;
            width = width.div_ceil(2);
        }
        if siblings.next().is_some() || hash != self.merkle_root {
            return Err(ProofError::Wrong);
        }
        Ok(())
    }

    /// Checks the proof, and that its root and number of records are the expected ones: the root alone does not fix the
    /// number.
    pub fn check_against(&self, root: &Digest, count: u64) -> Result<(), ProofError> {
        if self.merkle_root != *root || self.leaf_count != count {
            return Err(ProofError::OtherRoot);
        }
        self.check()
    }
}

fn pair(nodes: &[Digest]) -> Digest {
    match nodes {
        [left, right] => node(left, right),
        alone => alone[0],
    }
}

/// Event with everything needed to check that it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventProof {
    pub session_id: String,
    /// Exact bytes of the event.
    pub event_json: String,
    pub proof: Proof,
    /// Seal of a sealed log: the proof leads to the root in it, which may be signed.
    pub seal: Option<Seal>,
}

impl EventProof {
    /// Proof for record `sequence` of the log in a session's folder. Events of a sealed log are proven against its
    /// seal; the seal itself, and events of a log without one, against the root over all records.
    pub fn build(dir: &Path, session_id: &str, sequence: u64) -> Result<EventProof, ProofError> {
        let (mut leaves, mut event_json, mut seal) = (Vec::new(), None, None);
        for record in Reader::open(dir)? {
            let record = match record {
                // An incomplete record of a killed writer; the records before it are valid.
                Err(error) if error.is_torn() => break,
                record => record?,
            };
            leaves.push(record.link.leaf_hash);
            if record.link.sequence == sequence {
                event_json = Some(record.event_json);
            }
            if let AuditEvent::Seal(found) = record.event {
                seal = Some(found);
            }
        }
        let seal = seal.filter(|seal| sequence < seal.event_count);
        if seal.is_some() {
            leaves.pop();
        }
        let proof = Proof::build(&leaves, sequence)?;
        let count = proof.leaf_count;
        let event_json = event_json.ok_or(ProofError::NoSuchRecord { index: sequence, count })?;
        Ok(EventProof { session_id: session_id.to_owned(), event_json, proof, seal })
    }

    /// Checks that the event is the leaf, that the leaf is under the root, that the root is the seal's, and with a key,
    /// that this key signed the seal.
    pub fn check(&self, key: Option<&PublicKey>) -> Result<(), ProofError> {
        if leaf(self.event_json.as_bytes()) != self.proof.leaf_hash {
            return Err(ProofError::OtherEvent);
        }
        match &self.seal {
            Some(seal) => self.proof.check_against(&seal.merkle_root, seal.event_count)?,
            None => self.proof.check()?,
        }
        match self.seal.as_ref().filter(|seal| seal.signature.is_some()) {
            Some(seal) => seal.check_signature(&self.session_id, key).map(drop)?,
            None if key.is_some() => return Err(ProofError::Unsigned),
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(count: u64) -> Vec<Digest> {
        (0..count).map(|number| Digest::of(b"leaf", &[&number.to_le_bytes()])).collect()
    }

    #[test]
    fn the_golden_proof() {
        let leaves: Vec<Digest> = (1..=5).map(|byte| Digest::from_bytes([byte; 32])).collect();
        let proof = Proof::build(&leaves, 2).unwrap();
        let json = serde_json::to_string(&proof).unwrap();
        let (three, four, five) = ("03".repeat(32), "04".repeat(32), "05".repeat(32));
        let golden = format!(
            "{{\"leaf_index\":2,\"leaf_count\":5,\"leaf_hash\":\"{three}\",\
             \"merkle_root\":\"87f9319b8dbb3d3fd55d419aabf3c218aafd2dfd82d5e30fb22e8e89c10c0160\",\"siblings\":[\
             {{\"direction\":\"right\",\"hash\":\"{four}\"}},\
             {{\"direction\":\"left\",\"hash\":\"85fb11ff61817c3aa118af30f054a3ea63c042902722cf8ae35e704fff9624fe\"}},\
             {{\"direction\":\"right\",\"hash\":\"{five}\"}}]}}"
        );
        assert_eq!(json, golden);
        proof.check().unwrap();
    }

    #[test]
    fn every_leaf_has_a_proof_and_it_fits_no_other_place() {
        for count in 1..40 {
            let leaves = leaves(count);
            for index in 0..count {
                let proof = Proof::build(&leaves, index).unwrap();
                proof.check_against(&proof.merkle_root, count).unwrap();
                assert!(proof.check_against(&proof.merkle_root, count + 1).is_err());
                for other in (0..count).filter(|other| *other != index) {
                    assert!(Proof { leaf_index: other, ..proof.clone() }.check().is_err(), "{index} {other}");
                }
                let mut spare = proof.clone();
                spare.siblings.push(Sibling { direction: ProofSide::Left, hash: Digest::ZERO });
                assert!(spare.check().is_err());
                for at in 0..proof.siblings.len() {
                    let mut changed = proof.clone();
                    changed.siblings.remove(at);
                    assert!(changed.check().is_err());
                }
            }
            assert!(Proof::build(&leaves, count).is_err());
        }
        assert!(Proof::build(&[], 0).is_err());
    }
}
