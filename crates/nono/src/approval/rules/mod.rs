//! Approvals from a file: an ordered list of rules, of which the first match decides.
//!
//! ```jsonc
//! {
//!   "rules": [
//!     {"path": "~/data/secret/**", "action": "deny"},
//!     {"path": "~/data/**", "access": "read", "action": "allow", "scope": "directory"},
//!     {"path": "/etc/ssl/openssl.cnf", "program": "git", "access": "read", "action": "allow"},
//!     {"path": "~/out/**", "action": "allow", "expires": "2027-01-31T18:00:00Z", "reason": "the migration"},
//!     {"path": "/**", "action": "ask"}
//!   ]
//! }
//! ```
//!
//! A rule matches by the *resolved* path, by the requesting program (if the rule names one), and by access: an "allow"
//! has to cover all of the requested access, a "deny" or "ask" any part of it. A request that no rule matches is asked.
//! A program's name proves nothing, since the command can give any program any name; it serves to distinguish
//! well-behaved programs.
//!
//! The file is read once, before the command starts, and only if the command cannot write it.

mod parse;
mod rfc3339;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use nono_policy::error::Position;
use nono_policy::{AccessMode, ProfileError, ResolvedPolicy};
use thiserror::Error;

use super::trusted::{self, Secrecy, TrustError};
use super::{ApprovalAnswer, ApprovalBackend, ApprovalError, Question, Scope, Subject, Verdict, Waiting};
use nono_policy::glob::{Pattern, names};

const MAX_BYTES: u64 = 1 << 20;

/// Reasons why a policy file was refused.
#[derive(Debug, Error)]
pub enum PolicyFileError {
    #[error("cannot use the policy file: {0}")]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Text(#[from] ProfileError),
    #[error("{at}: {key}: {what}")]
    Rule { at: Position, key: &'static str, what: &'static str },
    #[error("{at}: {key}: {} is a link to {}", .link.display(), .real.display())]
    Link { at: Position, key: &'static str, link: PathBuf, real: PathBuf },
}

impl PolicyFileError {
    /// The next step for the user, where the message does not name it.
    pub fn hint(&self) -> Option<String> {
        match self {
            PolicyFileError::Trust(error) => error.hint(),
            PolicyFileError::Text(ProfileError::UnknownKey { nearest: None, .. }) => {
                Some("a rule has path, action, access, program, scope, expires, reason".to_owned())
            }
            PolicyFileError::Text(error) => error.hint(),
            PolicyFileError::Link { real, .. } => {
                Some(format!("rules need paths without links: write {}", real.display()))
            }
            PolicyFileError::Rule { .. } => None,
        }
    }
}

/// Action of a rule. `Ask`: the next approver decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAction {
    Allow(Scope),
    Deny,
    Ask,
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleAction::Allow(Scope::Once) => "allow once",
            RuleAction::Allow(Scope::Directory) => "allow the directory",
            RuleAction::Allow(_) => "allow",
            RuleAction::Deny => "deny",
            RuleAction::Ask => "ask",
        })
    }
}

/// Alternatives of one pattern with braces.
#[derive(Debug)]
struct Globs {
    text: String,
    patterns: Vec<Pattern>,
}

impl Globs {
    fn matches(&self, path: &Path) -> bool {
        let names = names(path);
        self.patterns.iter().any(|pattern| pattern.matches(&names))
    }

    fn reaches(&self, dir: &Path) -> bool {
        let names = names(dir);
        self.patterns.iter().any(|pattern| pattern.reaches(&names))
    }
}

#[derive(Debug)]
enum ProgramGlob {
    Path(Globs),
    Name(Globs),
}

impl ProgramGlob {
    fn globs(&self) -> &Globs {
        let (ProgramGlob::Path(globs) | ProgramGlob::Name(globs)) = self;
        globs
    }

    fn matches(&self, program: &Path) -> bool {
        match self {
            ProgramGlob::Path(globs) => program.is_absolute() && globs.matches(program),
            ProgramGlob::Name(globs) => {
                program.file_name().is_some_and(|name| globs.matches(Path::new(name)))
            }
        }
    }
}

#[derive(Debug)]
struct Expiry {
    text: String,
    seconds: u64,
}

/// One rule; `number` counts from 1.
#[derive(Debug)]
pub struct ApprovalRule {
    pub number: usize,
    pub line: usize,
    pub action: RuleAction,
    pub reason: Option<String>,
    path: Globs,
    access: Option<AccessMode>,
    program: Option<ProgramGlob>,
    expires: Option<Expiry>,
}

impl ApprovalRule {
    /// The path pattern as written in the file.
    pub fn path(&self) -> &str {
        &self.path.text
    }

    pub fn program(&self) -> Option<&str> {
        self.program.as_ref().map(|program| program.globs().text.as_str())
    }

    pub fn expires(&self) -> Option<&str> {
        self.expires.as_ref().map(|expires| expires.text.as_str())
    }

    fn is_over(&self, now: u64) -> bool {
        self.expires.as_ref().is_some_and(|expires| expires.seconds <= now)
    }

    /// Whether the rule applies to the requested access: an "allow" must cover all of it, other actions any part.
    fn is_about(&self, wanted: AccessMode) -> bool {
        let Some(access) = self.access else { return true };
        match self.action {
            RuleAction::Allow(_) => access.covers(wanted),
            RuleAction::Deny | RuleAction::Ask => {
                access.reads() && wanted.reads() || access.writes() && wanted.writes()
            }
        }
    }
}

/// A request, as the rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub path: &'a Path,
    pub access: AccessMode,
    /// Directory that an approval with scope "directory" would open; `None`: that scope is not possible.
    pub folder: Option<&'a Path>,
    /// `None`: unknown, as in `nono why`.
    pub program: Option<&'a Path>,
}

/// Decision of the rules on a request.
#[derive(Debug)]
pub struct Ruling<'a> {
    pub action: RuleAction,
    /// The deciding rule; `None`: no rule matches, so the action is to ask.
    pub rule: Option<&'a ApprovalRule>,
    /// Rules before it that match but have expired.
    pub expired: Vec<&'a ApprovalRule>,
    /// Rules before it that match for their program only. Used where the program is unknown.
    pub depends: Vec<&'a ApprovalRule>,
    /// An earlier rule that decides otherwise for a path in the directory, so that a "directory" approval was reduced
    /// to the file alone.
    pub narrowed_by: Option<&'a ApprovalRule>,
}

/// A policy file, read and checked.
#[derive(Debug)]
pub struct PolicyFile {
    path: PathBuf,
    rules: Vec<ApprovalRule>,
}

impl PolicyFile {
    /// Read `path`, which is absolute, if no process in a sandbox with `policy` can write it. `home` replaces `~`.
    pub fn load(
        path: &Path,
        home: Option<&Path>,
        policy: &ResolvedPolicy,
    ) -> Result<PolicyFile, PolicyFileError> {
        let (text, path) = trusted::read(path, policy, Secrecy::Open, MAX_BYTES)?;
        Ok(PolicyFile { rules: parse::parse(&text, &path, home)?, path })
    }

    /// The file's path without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn rules(&self) -> &[ApprovalRule] {
        &self.rules
    }

    pub fn expired(&self) -> impl Iterator<Item = &ApprovalRule> {
        let now = now();
        self.rules.iter().filter(move |rule| rule.is_over(now))
    }

    /// Name of a rule in reports.
    pub fn name_of(&self, rule: &ApprovalRule) -> String {
        format!("policy:{}#{} (line {})", self.path.display(), rule.number, rule.line)
    }

    /// Decision of the rules at this moment.
    pub fn consult(&self, wanted: Wanted<'_>) -> Ruling<'_> {
        self.consult_at(wanted, now())
    }

    /// Decision of the rules on `path`, which is absolute and may contain links, for `nono why`.
    pub fn explain(&self, path: &Path, access: AccessMode) -> Ruling<'_> {
        let path = crate::session::resolved(path);
        let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
        self.consult(Wanted { path: &path, access, folder, program: None })
    }

    fn consult_at(&self, wanted: Wanted<'_>, now: u64) -> Ruling<'_> {
        let mut ruling = Ruling {
            action: RuleAction::Ask,
            rule: None,
            expired: Vec::new(),
            depends: Vec::new(),
            narrowed_by: None,
        };
        for rule in &self.rules {
            if !rule.is_about(wanted.access) || !rule.path.matches(wanted.path) {
                continue;
            }
            match (&rule.program, wanted.program) {
                (Some(glob), Some(program)) if !glob.matches(program) => {}
                _ if rule.is_over(now) => ruling.expired.push(rule),
                (Some(_), None) => ruling.depends.push(rule),
                _ => return self.settle(ruling, rule, wanted, now),
            }
        }
        ruling
    }

    /// Decide by `rule`. A whole directory is opened only if no earlier rule denies or asks about a path in it.
    fn settle<'a>(
        &'a self,
        ruling: Ruling<'a>,
        rule: &'a ApprovalRule,
        wanted: Wanted<'_>,
        now: u64,
    ) -> Ruling<'a> {
        let mut ruling = Ruling { action: rule.action, rule: Some(rule), ..ruling };
        if rule.action != RuleAction::Allow(Scope::Directory) {
            return ruling;
        }
        // A pattern ending in /** also matches its own base; the directory around the base is not meant.
        let Some(dir) = wanted.folder.filter(|dir| rule.path.matches(dir)) else {
            ruling.action = RuleAction::Allow(Scope::Session);
            return ruling;
        };
        let before = self.rules.iter().take_while(|before| before.number < rule.number);
        let mut closing = before.filter(|before| !matches!(before.action, RuleAction::Allow(_)));
        ruling.narrowed_by = closing.find(|before| {
            !before.is_over(now) && before.is_about(wanted.access) && before.path.reaches(dir)
        });
        if ruling.narrowed_by.is_some() {
            ruling.action = RuleAction::Allow(Scope::Session);
        }
        ruling
    }

    /// The answer to a question; `None` if the next approver has to be asked.
    pub fn answer(&self, question: &Question) -> Option<ApprovalAnswer> {
        let Subject::Access { path, access, folder, .. } = &question.subject else { return None };
        let program = Some(question.asker.program.as_path());
        let ruling = self.consult(Wanted { path, access: *access, folder: folder.as_deref(), program });
        let verdict = match ruling.action {
            RuleAction::Allow(scope) => Verdict::Allow(scope),
            RuleAction::Deny => Verdict::Deny,
            RuleAction::Ask => return None,
        };
        let over = |rule: &&ApprovalRule| format!("; #{} (line {}) has expired", rule.number, rule.line);
        let over: String = ruling.expired.iter().map(over).collect::<Vec<_>>().concat();
        let by = format!("{}{over}", self.name_of(ruling.rule?));
        Some(ApprovalAnswer::new(verdict, by))
    }
}

fn now() -> u64 {
    // With a clock before 1970 every rule counts as expired.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |now| now.as_secs())
}

/// A policy file, and the approver for what it does not decide.
#[derive(Debug)]
pub struct Chain {
    file: PolicyFile,
    next: Arc<dyn ApprovalBackend>,
}

impl Chain {
    pub fn new(file: PolicyFile, next: Arc<dyn ApprovalBackend>) -> Chain {
        Chain { file, next }
    }
}

impl ApprovalBackend for Chain {
    fn name(&self) -> String {
        format!("policy:{}, {}", self.file.path.display(), self.next.name())
    }

    fn begin(&self, session: &str) {
        self.next.begin(session);
    }

    fn at_once(&self, question: &Question) -> Option<ApprovalAnswer> {
        self.file.answer(question).or_else(|| self.next.at_once(question))
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<ApprovalAnswer, ApprovalError> {
        match self.file.answer(question) {
            Some(answer) => Ok(answer),
            None => self.next.decide(question, waiting),
        }
    }
}

#[cfg(test)]
mod tests;
