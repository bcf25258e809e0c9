//! Findings as lines for a person, or as JSON for a program.

use std::path::Path;

use nono_policy::{AccessMode, CapabilitySource, DeniedReason, FsCapability, NetworkPolicy, ResolvedPolicy};
use serde_json::{Value, json};

use super::{Denial, Findings, Limit};
use crate::session::network_word;

/// Turns a failed command's findings into text. Lines come without prefix; whoever prints them adds it.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosticFormatter<'a> {
    pub exit_code: i32,
    pub policy: &'a ResolvedPolicy,
    pub findings: &'a Findings,
}

impl DiagnosticFormatter<'_> {
    /// The footer, line by line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "The command exited with code {}. This may be due to sandbox restrictions.",
            self.exit_code
        )];
        lines.extend(self.denied());
        lines.push("Sandbox policy:".to_owned());
        lines.extend(self.grants());
        lines.push(format!("  network: {}", network_word(&self.policy.network)));
        lines.push("To open more, run it again with:".to_owned());
        lines.extend(self.general().map(|(flag, word)| format!("  {flag:<16} {word}")));
        lines
    }

    fn denied(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for limit in &self.findings.limits {
            lines.push(format!("It seems to have run into {}.", self.limit_words(*limit)));
        }
        if self.findings.denials.is_empty() && !self.findings.network {
            return lines;
        }
        lines.push("Denied:".to_owned());
        for denial in &self.findings.denials {
            lines.push(format!("  {} {}: {}", denial.operation, shown(&denial.path), words(&denial.reason)));
            if !denial.flags.is_empty() {
                lines.push(format!("    open it with: {}", quote_all(&denial.flags)));
            }
        }
        if self.findings.network {
            lines.push(format!("  network: it is {}", network_word(&self.policy.network)));
            lines.push("    open it with: --allow-net".to_owned());
        }
        lines
    }

    fn limit_words(&self, limit: Limit) -> String {
        let limits = &self.policy.limits;
        match limit {
            Limit::Memory => format!("--max-memory ({} MiB)", limits.memory.unwrap_or(0) >> 20),
            Limit::Processes => format!("--max-procs ({})", limits.processes.unwrap_or(0)),
            Limit::FileSize => format!("--max-file-size ({} bytes)", limits.file_size.unwrap_or(0)),
        }
    }

    /// What was granted on purpose, one by one; what every program needs to start, as a number.
    fn grants(&self) -> Vec<String> {
        let (base, chosen): (Vec<&FsCapability>, Vec<&FsCapability>) =
            self.policy.grants.iter().partition(|grant| is_base(grant));
        let mut lines: Vec<String> =
            chosen.iter().map(|grant| format!("  {} ({})", shown(&grant.resolved), grant.access)).collect();
        if lines.is_empty() {
            lines.push("  no path was granted".to_owned());
        }
        if !base.is_empty() {
            lines.push(format!(
                "  and {} system paths that programs need to start (--dry-run lists them)",
                base.len()
            ));
        }
        if chosen.iter().any(|grant| grant.is_file) {
            lines.push(
                "  A granted file is the file it was at the start: once saved anew by others, it is closed."
                    .to_owned(),
            );
        }
        lines
    }

    /// The network's flag only where the network is closed.
    fn general(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let open = self.policy.network == NetworkPolicy::Allowed;
        GENERAL.iter().filter(move |(flag, _)| !(open && *flag == "--allow-net"))
    }

    pub fn json(&self) -> Value {
        let grant = |grant: &FsCapability| {
            json!({
                "path": grant.resolved.to_string_lossy(),
                "access": grant.access,
                "is_file": grant.is_file,
                "source": grant.source.to_string(),
            })
        };
        let denial = |denial: &Denial| {
            json!({
                "path": denial.path.to_string_lossy(),
                "operation": denial.operation,
                "reason": denial.reason,
                "flags": denial.flags,
            })
        };
        json!({
            "exit_code": self.exit_code,
            "may_be_due_to_sandbox": true,
            "denials": self.findings.denials.iter().map(denial).collect::<Vec<_>>(),
            "network_denied": self.findings.network,
            "limits": self.findings.limits,
            "policy": {
                "grants": self.policy.grants.iter().map(grant).collect::<Vec<_>>(),
                "network": network_word(&self.policy.network),
            },
            "flags": self.general().map(|(flag, word)| json!({"flag": flag, "meaning": word})).collect::<Vec<_>>(),
        })
    }
}

const GENERAL: &[(&str, &str)] = &[
    ("--allow <path>", "read and write a folder and everything in it"),
    ("--read <path>", "read it only"),
    ("--write <path>", "write it only"),
    ("--allow-net", "use the network"),
];

/// Granted by nono itself or by what every program needs, not by the person or a profile.
fn is_base(grant: &FsCapability) -> bool {
    matches!(grant.source, CapabilitySource::Group(_) | CapabilitySource::System)
}

/// Why it is closed, as the end of a sentence.
pub fn words(reason: &DeniedReason) -> String {
    match reason {
        DeniedReason::NotGranted => "not granted".to_owned(),
        DeniedReason::InsufficientAccess { granted, .. } => match granted {
            AccessMode::Read => "granted for reading only".to_owned(),
            AccessMode::Write => "granted for writing only".to_owned(),
            AccessMode::ReadWrite => "granted".to_owned(),
        },
        DeniedReason::Protected { group } => format!("protected ({group})"),
        DeniedReason::DenyRule { source } => format!("denied by {source}"),
        DeniedReason::NonoState => "nono's own files are never open".to_owned(),
        DeniedReason::CarvedDirectory { path } => {
            format!("nothing new can be made directly in {}, which holds protected files", shown(path))
        }
    }
}

/// A path with everything escaped that a terminal would act on.
pub fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy())
}

/// Control characters and those that reorder text become visible.
pub fn escape(text: &str) -> String {
    let risky = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|c| if risky(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// Words as a shell would take them.
pub fn quote_all(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    let word = escape(word);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_gets_through() {
        assert_eq!(escape("a\x1b[31mb\u{202e}c\n"), "a\\u{1b}[31mb\\u{202e}c\\u{a}");
        assert_eq!(quote_all(&["--read".into(), "/a b".into()]), "--read '/a b'");
        assert_eq!(quote("it's"), "'it'\\''s'");
    }
}
