//! `nono audit prove` and `check-proof`: proof that one event was recorded, without the others.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use nono::audit::{AuditError, Catalogue, EventProof, ProofError, VerifyOptions};
use nono::diagnostic::{escape, shown};

use super::{output, public_key, until_closed};
use crate::args::{CheckProofArgs, ProveArgs};
use crate::failure::{Failure, NOT_DONE};
use crate::message;

/// Maximum size of a proof file: events and Merkle paths are short.
const LARGEST: u64 = 8 << 20;

pub(super) fn prove(args: &ProveArgs, catalogue: &Catalogue) -> Result<u8, Failure> {
    let entry = catalogue.find(&args.session)?;
    let proof = EventProof::build(&entry.dir, &entry.id, args.sequence).map_err(AuditError::from)?;
    let text = serde_json::to_string_pretty(&proof).map_err(std::io::Error::from)?;
    let mut out = output(args.output.as_deref())?;
    until_closed(writeln!(out, "{text}").and_then(|()| out.flush()), args.output.as_deref())?;
    Ok(0)
}

pub(super) fn check(args: &CheckProofArgs, catalogue: &Catalogue) -> Result<u8, Failure> {
    let key = public_key(args.public_key.as_deref())?;
    let proof = match read(&args.file)? {
        Ok(proof) => proof,
        Err(why) => return fails(&format!("it is not a proof: {why}")),
    };
    let held = proof.check(key.as_ref()).and_then(|()| match &args.root {
        Some(root) => proof.proof.check_against(root, proof.proof.leaf_count),
        None => Ok(()),
    });
    if let Err(why) = held {
        return fails(&why.to_string());
    }
    if let Some(why) =
        args.session.as_ref().map(|text| of_session(&proof, text, catalogue)).transpose()?.flatten()
    {
        return fails(&why);
    }
    let (at, count) = (proof.proof.leaf_index, proof.proof.leaf_count);
    message::answer(&format!(
        "holds: this is event {at} of {count} under the root {}\n{}",
        proof.proof.merkle_root,
        escape(&proof.event_json)
    ))?;
    if args.root.is_none() && args.session.is_none() && key.is_none() {
        message::line(
            "warning: only checked against the root in the proof itself, which proves nothing; give one from \
elsewhere with --root, --session or --public-key",
        );
    } else if args.session.is_none() && key.is_none() {
        // A root does not commit to the number of events or to the session.
        message::line(&format!(
            "note: not verified: the position of the event ({at} of {count}) and its session ({}); check them with --session or --public-key",
            proof.session_id
        ));
    }
    Ok(0)
}

fn fails(why: &str) -> Result<u8, Failure> {
    message::answer(&format!("does not hold: {}", escape(why))).map(|_| NOT_DONE)
}

fn read(file: &Path) -> Result<serde_json::Result<EventProof>, Failure> {
    let failed = |error: std::io::Error| Failure::cannot("read", file, &error);
    let mut text = Vec::new();
    File::open(file).map_err(failed)?.take(LARGEST + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > LARGEST {
        return Ok(Err(serde::de::Error::custom(format!("{} is too large", shown(file)))));
    }
    Ok(serde_json::from_slice(&text))
}

/// Reason why the proof does not fit that session, if it does not.
fn of_session(proof: &EventProof, text: &str, catalogue: &Catalogue) -> Result<Option<String>, Failure> {
    let log = catalogue.locate(text)?;
    if log.id != proof.session_id {
        return Ok(Some(format!("it is for session {}", proof.session_id)));
    }
    let found = catalogue.verify(&log, &VerifyOptions::default());
    if let Some(problem) = found.problems.first() {
        return Ok(Some(format!("session {} fails verification: {}", log.id, problem.message)));
    }
    let own = EventProof::build(&log.dir, &log.id, proof.proof.leaf_index);
    let same = own.and_then(|own| proof.proof.check_against(&own.proof.merkle_root, own.proof.leaf_count));
    match same {
        Ok(()) => Ok(None),
        Err(ProofError::OtherRoot) => Ok(Some(format!("session {} has another root", log.id))),
        Err(error) => Ok(Some(error.to_string())),
    }
}
