//! `nono rollback verify`: checks stored sessions against what was sealed when they ended.

use nono::diagnostic::{escape, shown};
use nono::rollback::{Catalogue, Checks, RollbackSession, SessionEntry, SessionVerified, Status};
use serde_json::{Value, json};

use super::text::some;
use crate::args::VerifyArgs;
use crate::failure::{Failure, NOT_DONE, by_signal};
use crate::message;
use crate::progress::{Worked, attempt};
use crate::units::{bytes, grouped};

/// Result of checking one session.
struct Checked {
    id: String,
    found: SessionVerified,
}

pub(super) fn verify(args: &VerifyArgs, catalogue: &Catalogue) -> Result<u8, Failure> {
    let (entries, unreadable) = match &args.session {
        Some(text) => (vec![catalogue.find(text)?], Vec::new()),
        None => catalogue.list()?,
    };
    let mut good = unreadable.is_empty();
    let mut values: Vec<Value> = Vec::new();
    for problem in &unreadable {
        values.push(json!({"session_id": null, "good": false, "problems": [problem.to_string()]}));
        message::line(&format!("error: {}", escape(&problem.to_string())));
    }
    let none = entries.is_empty() && unreadable.is_empty();
    let mut checks = Checks::default();
    for entry in entries {
        if args.session.is_none() && entry.status == Status::Live {
            // Its snapshots are being taken, and nothing is sealed yet.
            message::line(&format!("session {} is running: not checked", entry.id));
            continue;
        }
        let Worked { value: checked, signal } = check(catalogue, entry, &mut checks)?;
        if let Some(signal) = signal {
            message::line("interrupted; not everything was checked");
            return Ok(by_signal(signal));
        }
        good &= checked.found.problems.is_empty();
        values.push(checked.json());
        if !args.json {
            message::answer(&checked.text())?;
        }
    }
    if args.json {
        message::answer_json(&json!({"good": good, "sessions": values}))?;
    } else if none {
        message::answer("no sessions to check")?;
    }
    Ok(if good { 0 } else { NOT_DONE })
}

/// Checks a session. An error that prevents it is a problem of that session alone.
fn check(
    catalogue: &Catalogue,
    entry: SessionEntry,
    checks: &mut Checks,
) -> Result<Worked<Checked>, Failure> {
    let (id, dir) = (entry.id.clone(), entry.dir.clone());
    let worked = match catalogue.open(entry) {
        Ok(mut session) => {
            let verify = |session: &mut RollbackSession| session.verify_with(checks);
            attempt(&mut session, "checking", verify)?
        }
        Err(_) if dir.symlink_metadata().is_err() => Worked {
            value: Ok(SessionVerified { removed: true, ..SessionVerified::default() }),
            signal: None,
        },
        Err(error) => Worked { value: Err(error), signal: None },
    };
    let found = worked.value.unwrap_or_else(|error| SessionVerified {
        problems: vec![error.to_string()],
        ..SessionVerified::default()
    });
    Ok(Worked { value: Checked { id, found }, signal: worked.signal })
}

impl Checked {
    fn text(&self) -> String {
        let found = &self.found;
        if found.removed {
            return format!("{}: removed meanwhile", self.id);
        }
        let amount = format!(
            "{}, {} objects, {}, {}",
            some(found.snapshots, "snapshot"),
            grouped(found.objects),
            bytes(found.bytes),
            match (found.sealed, found.interrupted) {
                (true, _) => "sealed",
                (false, true) => "interrupted",
                (false, false) => "not sealed",
            }
        );
        let forgotten = found.forgotten.iter().map(|path| format!("\n  forgotten: {}", shown(path)));
        let forgotten = forgotten.collect::<String>();
        if found.problems.is_empty() {
            return format!("{}: good ({amount}){forgotten}", self.id);
        }
        let problems = found.problems.iter().map(|problem| format!("\n  {}", escape(problem)));
        format!("{}: NOT good ({amount}){}{forgotten}", self.id, problems.collect::<String>())
    }

    fn json(&self) -> Value {
        nono::rollback::json::verified(&self.id, &self.found)
    }
}
