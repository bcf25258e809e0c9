//! `nono audit verify`: checks that logs and ledger are as they were written.

use nono::audit::{
    AuditError, Catalogue, Digest, LedgerVerification, Located, Verification, VerifiedState, VerifyOptions,
};
use nono::diagnostic::escape;
use serde_json::{Value, json};

use super::public_key;
use crate::args::AuditVerifyArgs;
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::units::some;

/// Results of all checks.
struct Checked {
    sessions: Vec<(Located, Verification)>,
    /// None where a single session is checked.
    ledger: Option<LedgerVerification>,
    head: Option<Head>,
    strange: Vec<AuditError>,
}

/// Expected ledger head, and whether the ledger has it.
struct Head {
    expected: Digest,
    found: Result<bool, AuditError>,
}

pub(super) fn verify(args: &AuditVerifyArgs, catalogue: &Catalogue) -> Result<u8, Failure> {
    let options = VerifyOptions { public_key: public_key(args.public_key.as_deref())? };
    let (logs, strange) = match &args.session {
        Some(text) => match catalogue.locate(text) {
            Ok(log) => (vec![log], Vec::new()),
            // A missing log is a finding, not a wrong argument.
            Err(error @ AuditError::Gone { .. }) => (Vec::new(), vec![error]),
            Err(error) => return Err(error.into()),
        },
        None => catalogue.locate_all()?,
    };
    let checked = Checked {
        sessions: logs
            .into_iter()
            .map(|log| {
                let found = catalogue.verify(&log, &options);
                (log, found)
            })
            .collect(),
        ledger: args.session.is_none().then(|| catalogue.verify_ledger()),
        head: args.ledger_head.map(|expected| Head { expected, found: catalogue.had_head(&expected) }),
        strange,
    };
    if args.json {
        message::answer_json(&checked.json().map_err(std::io::Error::from)?)?;
    } else {
        message::answer(&checked.lines().join("\n"))?;
    }
    Ok(if checked.is_good() { 0 } else { NOT_DONE })
}

impl Checked {
    fn is_good(&self) -> bool {
        self.strange.is_empty()
            && self.sessions.iter().all(|(_, found)| found.ok)
            && self.ledger.as_ref().is_none_or(|ledger| ledger.ok)
            && self.head.as_ref().is_none_or(|head| matches!(head.found, Ok(true)))
    }

    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.sessions.iter().flat_map(|(log, found)| session(log, found)).collect();
        lines.extend(self.strange.iter().map(|error| format!("BAD   {}", escape(&error.to_string()))));
        lines.extend(self.ledger.iter().flat_map(ledger));
        lines.extend(self.head.as_ref().map(Head::line));
        lines
    }

    fn json(&self) -> Result<Value, serde_json::Error> {
        let mut sessions = Vec::new();
        for (log, found) in &self.sessions {
            let mut value = json!({"id": log.id, "running": log.running});
            if let (Value::Object(value), Value::Object(found)) = (&mut value, serde_json::to_value(found)?) {
                value.extend(found);
            }
            sessions.push(value);
        }
        Ok(json!({
            "ok": self.is_good(),
            "sessions": sessions,
            "ledger": self.ledger,
            "ledger_head": self.head.as_ref().map(|head| json!({
                "expected": head.expected,
                "found": matches!(head.found, Ok(true)),
            })),
            "strange": self.strange.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))
    }
}

fn session(log: &Located, found: &Verification) -> Vec<String> {
    let state = match found.state {
        _ if found.first_bad.is_some() => "then a bad one",
        _ if log.running => "running, not sealed yet",
        VerifiedState::Sealed => "sealed",
        VerifiedState::Closed => "unsealed",
        VerifiedState::Unfinished if !found.ok => "unsealed",
        VerifiedState::Unfinished => "unsealed: interrupted; the records up to there are valid",
    };
    let signed =
        found.signed_by.as_deref().map(|key| format!(", signed by {}", escape(key))).unwrap_or_default();
    let word = if found.ok { "good" } else { "BAD " };
    let mut lines = vec![format!(
        "{word}  {}: {}, {state}{signed}",
        escape(&log.id),
        some(found.event_count, if found.first_bad.is_some() { "good record" } else { "record" })
    )];
    lines.extend(found.problems.iter().map(|problem| format!("        {}", escape(&problem.message))));
    lines
}

fn entries(count: u64) -> String {
    format!("{count} {}", if count == 1 { "entry" } else { "entries" })
}

fn ledger(ledger: &LedgerVerification) -> Vec<String> {
    let word = if ledger.ok { "good" } else { "BAD " };
    let head = ledger.head.map(|head| format!(", head {head}")).unwrap_or_default();
    let mut lines = vec![format!("{word}  ledger: {}{head}", entries(ledger.entry_count))];
    let mut problem = |text: String| lines.push(format!("        {}", escape(&text)));
    if let Some(bad) = &ledger.first_bad {
        problem(format!("line {}: {}", bad.line, bad.why));
    }
    let lists = [
        (&ledger.missing, "is in the ledger, but its log is missing"),
        (&ledger.changed, "differs from what the ledger recorded"),
        (&ledger.unlisted, "is sealed, but not in the ledger"),
        (&ledger.orphaned, "began when the ledger had entries that are missing now"),
    ];
    for (ids, what) in lists {
        for id in ids {
            problem(format!("{id} {what}"));
        }
    }
    for why in &ledger.unreadable {
        problem(why.clone());
    }
    lines
}

impl Head {
    fn line(&self) -> String {
        match &self.found {
            Ok(true) => format!("good  the ledger has the head {}", self.expected),
            Ok(false) => {
                format!("BAD   the ledger does not have the head {}: it was cut or replaced", self.expected)
            }
            Err(error) => format!("BAD   {}", escape(&error.to_string())),
        }
    }
}
