//! Reasons and attempts as text.

use nono_policy::text::{escape, shown};
use nono_policy::{AccessMode, CapabilitySource, DeniedReason, PolicyData};
use nono_supervisor::report::{DeniedAttempt, RefusalReason};

/// Reason of a denial, as the end of a sentence.
pub fn words(reason: &DeniedReason) -> String {
    match reason {
        DeniedReason::NotGranted => "not granted".to_owned(),
        DeniedReason::InsufficientAccess { granted, .. } => match granted {
            AccessMode::Read => "granted for reading only".to_owned(),
            AccessMode::Write => "granted for writing only".to_owned(),
            AccessMode::ReadWrite => "granted".to_owned(),
        },
        DeniedReason::Protected { group } if PolicyData::embedded().runs_later(group) => {
            format!("protected, because it runs later ({group})")
        }
        DeniedReason::Protected { group } => format!("protected ({group})"),
        DeniedReason::DenyRule { source } => closed_by(source),
        DeniedReason::NonoState => "nono's own files are never open".to_owned(),
        DeniedReason::AgentSettings { agent } => {
            format!("it decides what {} runs, and is never writable in the sandbox", escape(agent))
        }
        DeniedReason::CarvedDirectory { path } => {
            format!("new entries cannot be created directly in {}, which holds protected files", shown(path))
        }
    }
}

/// The attempt, beginning with the verb.
pub fn attempt_words(attempt: &DeniedAttempt) -> String {
    match attempt {
        DeniedAttempt::Open { path, access } => format!("{access} {}", shown(path)),
        DeniedAttempt::Metadata { path, call } => format!("{} {}", escape(call), shown(path)),
        DeniedAttempt::Socket { path } => format!("connect to the socket {}", shown(path)),
        DeniedAttempt::Network { what, .. } | DeniedAttempt::Other { what } => escape(what),
    }
}

/// Rule that closes a path by name.
pub fn closed_by(source: &CapabilitySource) -> String {
    match source {
        CapabilitySource::User => "closed by --deny".to_owned(),
        other => format!("closed by {other}"),
    }
}

/// Reason of a refusal, as the end of a sentence.
pub fn because_words(because: &RefusalReason) -> String {
    match because {
        RefusalReason::Policy { reason } => words(reason),
        RefusalReason::Answered { by } => match by.as_str() {
            "terminal" => "denied by you".to_owned(),
            "deny" => "denied by --approve deny".to_owned(),
            other => format!("denied by {}", escape(other)),
        },
        RefusalReason::NoAnswer { why } => format!("no answer ({})", escape(why)),
        RefusalReason::TooMany => "too many requests".to_owned(),
        RefusalReason::Failed { why } => escape(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_gets_through() {
        let risky = "\x1b[2J\u{202e}";
        let attempts = [
            DeniedAttempt::Open { path: risky.into(), access: AccessMode::Read },
            DeniedAttempt::Metadata { path: risky.into(), call: risky.into() },
            DeniedAttempt::Socket { path: risky.into() },
            DeniedAttempt::Network { what: risky.into(), port: None },
            DeniedAttempt::Other { what: risky.into() },
        ];
        let reasons = [
            RefusalReason::Answered { by: risky.into() },
            RefusalReason::NoAnswer { why: risky.into() },
            RefusalReason::Failed { why: risky.into() },
        ];
        let all = attempts.iter().map(attempt_words).chain(reasons.iter().map(because_words));
        for text in all {
            assert!(!text.contains(['\x1b', '\u{202e}']), "{text:?}");
        }
    }
}
