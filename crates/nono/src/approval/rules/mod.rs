//! Answers from a file: ordered rules, and the first that fits answers.
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
//! A rule fits when its path matches the *resolved* path, its program (if it names one) matches whoever asks, and its
//! access: an "allow" has to cover all that is asked for, a "deny" or "ask" any part of it. What no rule answers is asked.
//! A program's name is no proof of anything: the command can call any program by any name. It is there to tell apart
//! what honest programs want.
//!
//! The file is read once, before the command starts, and only if the command cannot write it.

mod moment;
mod parse;

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use nono_policy::error::Position;
use nono_policy::{AccessMode, ProfileError, ResolvedPolicy};
use thiserror::Error;

use super::trusted::{self, Secrecy, TrustError};
use super::{Answer, ApprovalBackend, ApprovalError, Question, Scope, Subject, Verdict, Waiting};
use crate::glob::Pattern;

const MAX_BYTES: u64 = 1 << 20;

/// Why a file of rules was refused.
#[derive(Debug, Error)]
pub enum PolicyFileError {
    #[error("the policy file is not used: {0}")]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Text(#[from] ProfileError),
    #[error("{at}: {key}: {what}")]
    Rule { at: Position, key: &'static str, what: &'static str },
    #[error("{at}: {key}: {} is a link to {}", .link.display(), .real.display())]
    Link { at: Position, key: &'static str, link: PathBuf, real: PathBuf },
}

impl PolicyFileError {
    /// What to do about it, where the message does not say it.
    pub fn hint(&self) -> Option<String> {
        match self {
            PolicyFileError::Trust(error) => error.hint(),
            PolicyFileError::Text(ProfileError::UnknownKey { nearest: None, .. }) => {
                Some("a rule has path, action, access, program, scope, expires, reason".to_owned())
            }
            PolicyFileError::Text(error) => error.hint(),
            PolicyFileError::Link { real, .. } => {
                Some(format!("rules are about real paths: write {}", real.display()))
            }
            PolicyFileError::Rule { .. } => None,
        }
    }
}

/// What a rule says. `Ask`: whoever comes next decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Allow(Scope),
    Deny,
    Ask,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Allow(Scope::Once) => "allow once",
            Action::Allow(Scope::Directory) => "allow the directory",
            Action::Allow(_) => "allow",
            Action::Deny => "deny",
            Action::Ask => "ask",
        })
    }
}

/// Alternatives of one pattern.
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

fn names(path: &Path) -> Vec<&[u8]> {
    path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect()
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

/// One rule. Counted from 1, as people count.
#[derive(Debug)]
pub struct Rule {
    pub number: usize,
    pub line: usize,
    pub action: Action,
    pub reason: Option<String>,
    path: Globs,
    access: Option<AccessMode>,
    program: Option<ProgramGlob>,
    expires: Option<Expiry>,
}

impl Rule {
    /// As it is written.
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

    /// Whether its access is about what is wanted: all of it for a yes, any of it otherwise.
    fn is_about(&self, wanted: AccessMode) -> bool {
        let Some(access) = self.access else { return true };
        match self.action {
            Action::Allow(_) => access.covers(wanted),
            Action::Deny | Action::Ask => {
                access.reads() && wanted.reads() || access.writes() && wanted.writes()
            }
        }
    }
}

/// What is asked of a file of rules.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Resolved.
    pub path: &'a Path,
    pub access: AccessMode,
    /// What an answer for the whole directory would open; `None`: there must be none.
    pub folder: Option<&'a Path>,
    /// `None`: not known, as in `nono why`.
    pub program: Option<&'a Path>,
}

/// What a file of rules says to it.
#[derive(Debug)]
pub struct Ruling<'a> {
    pub action: Action,
    /// None: no rule fits, and that means to ask.
    pub rule: Option<&'a Rule>,
    /// Rules that would have come first, had they not expired.
    pub expired: Vec<&'a Rule>,
    /// Rules that come first if their program asks. Only where the program is not known.
    pub depends: Vec<&'a Rule>,
    /// The rule says "directory", and this one before it says otherwise about something in that directory: so the
    /// answer is about the file alone.
    pub narrowed_by: Option<&'a Rule>,
}

/// A file of rules, read and checked.
#[derive(Debug)]
pub struct PolicyFile {
    path: PathBuf,
    rules: Vec<Rule>,
}

impl PolicyFile {
    /// Read `path`, which is absolute, if nothing inside a sandbox with `policy` can write it. `home` is what `~` means.
    pub fn load(
        path: &Path,
        home: Option<&Path>,
        policy: &ResolvedPolicy,
    ) -> Result<PolicyFile, PolicyFileError> {
        let (text, path) = trusted::read(path, policy, Secrecy::Open, MAX_BYTES)?;
        Ok(PolicyFile { rules: parse::parse(&text, &path, home)?, path })
    }

    /// Without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Rules that have no effect any more.
    pub fn expired(&self) -> impl Iterator<Item = &Rule> {
        let now = now();
        self.rules.iter().filter(move |rule| rule.is_over(now))
    }

    /// Which rule, as reports name it.
    pub fn name_of(&self, rule: &Rule) -> String {
        format!("policy:{}#{} (line {})", self.path.display(), rule.number, rule.line)
    }

    /// What the rules say now.
    pub fn consult(&self, wanted: Wanted<'_>) -> Ruling<'_> {
        self.consult_at(wanted, now())
    }

    /// What the rules would say if somebody wanted `path`, which is absolute and may have links in it.
    pub fn explain(&self, path: &Path, access: AccessMode) -> Ruling<'_> {
        let path = crate::session::resolved(path);
        let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
        self.consult(Wanted { path: &path, access, folder, program: None })
    }

    fn consult_at(&self, wanted: Wanted<'_>, now: u64) -> Ruling<'_> {
        let mut ruling = Ruling {
            action: Action::Ask,
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

    /// `rule` answers. A whole directory is opened only if no rule before it closes something in there.
    fn settle<'a>(&'a self, ruling: Ruling<'a>, rule: &'a Rule, wanted: Wanted<'_>, now: u64) -> Ruling<'a> {
        let mut ruling = Ruling { action: rule.action, rule: Some(rule), ..ruling };
        if rule.action != Action::Allow(Scope::Directory) {
            return ruling;
        }
        // A path that ends in /** also matches what stands at its beginning; the folder around that was never meant.
        let Some(dir) = wanted.folder.filter(|dir| rule.path.matches(dir)) else {
            ruling.action = Action::Allow(Scope::Session);
            return ruling;
        };
        let before = self.rules.iter().take_while(|before| before.number < rule.number);
        let mut closing = before.filter(|before| !matches!(before.action, Action::Allow(_)));
        ruling.narrowed_by = closing.find(|before| {
            !before.is_over(now) && before.is_about(wanted.access) && before.path.reaches(dir)
        });
        if ruling.narrowed_by.is_some() {
            ruling.action = Action::Allow(Scope::Session);
        }
        ruling
    }

    /// The answer to a question; none where somebody else has to be asked.
    pub fn answer(&self, question: &Question) -> Option<Answer> {
        let Subject::Access { path, access, folder, .. } = &question.subject else { return None };
        let program = Some(question.asker.program.as_path());
        let ruling = self.consult(Wanted { path, access: *access, folder: folder.as_deref(), program });
        let verdict = match ruling.action {
            Action::Allow(scope) => Verdict::Allow(scope),
            Action::Deny => Verdict::Deny,
            Action::Ask => return None,
        };
        let over = |rule: &&Rule| format!("; #{} (line {}) has expired", rule.number, rule.line);
        let over: String = ruling.expired.iter().map(over).collect::<Vec<_>>().concat();
        let by = format!("{}{over}", self.name_of(ruling.rule?));
        Some(Answer::new(verdict, by))
    }
}

fn now() -> u64 {
    // A clock before 1970 would make every rule current: then none is.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |now| now.as_secs())
}

/// A file of rules, and whoever is asked what it does not answer.
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

    fn at_once(&self, question: &Question) -> Option<Answer> {
        self.file.answer(question).or_else(|| self.next.at_once(question))
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<Answer, ApprovalError> {
        match self.file.answer(question) {
            Some(answer) => Ok(answer),
            None => self.next.decide(question, waiting),
        }
    }
}

#[cfg(test)]
mod tests;
