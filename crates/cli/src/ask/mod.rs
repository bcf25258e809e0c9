//! Asking the person on their terminal.
//!
//! The command stands still while a question is shown: its own terminal is paused, and the keys are this question's
//! alone. Everything but an explicit yes is a no.

mod details;
mod keys;
mod layout;
mod save;
#[cfg(test)]
mod tests;

use std::env;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nono::approval::{Answer, ApprovalBackend, ApprovalError, Question, Scope, Verdict, Waiting};
use nono::stage::{Heard, Lease};
use nono::{CapabilitySource, ResolvedPolicy};

pub(crate) use save::save;

use crate::paint::{Canvas, Span, Style};
use keys::{Key, Keys};
use layout::{Choices, Page};

/// How often it is looked whether somebody still waits for the answer.
const LOOK: Duration = Duration::from_millis(100);
/// How long after an escape it was a key by itself.
const ESCAPE: Duration = Duration::from_millis(50);
/// Who types does not read. A key counts only once nothing was typed for so long.
const QUIET: Duration = Duration::from_millis(400);

/// The person at the terminal.
#[derive(Debug, Default)]
pub(crate) struct TerminalBackend {
    asked: AtomicU64,
    /// Where the command works and keeps its state, and what was opened for it by name.
    places: Vec<PathBuf>,
}

impl TerminalBackend {
    pub(crate) fn new(policy: &ResolvedPolicy) -> TerminalBackend {
        let named = policy.grants.iter().filter(|grant| {
            grant.source == CapabilitySource::User || (grant.access.writes() && !grant.is_file)
        });
        let places = named.map(|grant| &grant.resolved).chain([&policy.workdir]).cloned().collect();
        TerminalBackend { asked: AtomicU64::default(), places }
    }
}

impl ApprovalBackend for TerminalBackend {
    fn name(&self) -> String {
        "terminal".to_owned()
    }

    fn at_once(&self, question: &Question) -> Option<Answer> {
        nono::diagnostic::is_no_question(question, &self.places)
            .then(|| Answer::new(Verdict::Deny, "no question"))
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<Answer, ApprovalError> {
        let lease = waiting.terminal().ok_or(ApprovalError::NoTerminal)?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let colours =
            env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !crate::pager::is_dumb();
        let dialogue = Dialogue { question, waiting, lease, asked, colours };
        match dialogue.hold() {
            Ok(Reply::Answer(verdict)) => Ok(Answer::new(verdict, "terminal")),
            Ok(Reply::Withdrawn) => Err(ApprovalError::Withdrawn),
            Err(error) => {
                let why = nono::session::io_words(&error);
                Err(ApprovalError::Failed { backend: "the terminal".to_owned(), why })
            }
        }
    }
}

enum Reply {
    Answer(Verdict),
    /// Nobody waits for it any more.
    Withdrawn,
}

/// What a moment of waiting came to.
enum Moment {
    Press(Key),
    /// Nothing more can be typed.
    Closed,
    Withdrawn,
    /// What is shown has to be shown again.
    Disturbed,
}

/// One question on the screen.
struct Dialogue<'a> {
    question: &'a Question,
    waiting: &'a dyn Waiting,
    lease: Lease,
    asked: u64,
    colours: bool,
}

impl Dialogue<'_> {
    fn hold(&self) -> io::Result<Reply> {
        let mut keys = Keys::default();
        let mut details = false;
        let mut choices = self.show(details)?;
        if !self.wait_for_quiet(&mut keys) {
            return self.withdraw();
        }
        self.prompt(&choices)?;
        loop {
            let verdict = match self.wait(&mut keys) {
                Moment::Withdrawn => return self.withdraw(),
                Moment::Closed => Some(Verdict::Deny),
                Moment::Press(Key::Char('?')) => {
                    details = true;
                    None
                }
                Moment::Disturbed => None,
                Moment::Press(key) => match verdict(key, &choices) {
                    None => continue,
                    verdict => verdict,
                },
            };
            if let Some(verdict) = verdict {
                self.lease.show(&format!("{}\r\n", words(verdict, &choices)))?;
                return Ok(Reply::Answer(verdict));
            }
            if !self.lease.full_screen {
                self.lease.show("\r\n")?;
            }
            choices = self.show(details)?;
            self.prompt(&choices)?;
        }
    }

    /// The question, and what may be answered: only what the person can see in full can be allowed.
    fn show(&self, details: bool) -> io::Result<Choices> {
        let (rows, columns) = self.lease.size();
        let page = self.page(columns);
        let mut choices = Choices::of(self.question);
        let question = page.question(self.question);
        if question.len() + page.prompt(&choices).len() > usize::from(rows) {
            choices = choices.refusals();
        }
        let mut lines = Vec::new();
        if details {
            let more = details::of(self.question, &choices, self.asked);
            let more: Vec<String> = more.iter().flat_map(|line| page.block(line, Style::Plain)).collect();
            let left = usize::from(rows).saturating_sub(question.len() + page.prompt(&choices).len());
            // On a screen that is drawn over there is nowhere to scroll to.
            let kept = if self.lease.full_screen { left.min(more.len()) } else { more.len() };
            lines.extend(more.into_iter().take(kept));
        }
        lines.extend(question);
        if self.lease.full_screen {
            self.lease.show("\x1b[H\x1b[2J")?;
        }
        self.lease.show(&(lines.join("\r\n") + "\r\n"))?;
        Ok(choices)
    }

    fn prompt(&self, choices: &Choices) -> io::Result<()> {
        let (_, columns) = self.lease.size();
        self.lease.show(&(self.page(columns).prompt(choices).join("\r\n") + " "))
    }

    fn page(&self, columns: u16) -> Page {
        Page { canvas: Canvas { colours: self.colours, width: usize::from(columns) } }
    }

    fn withdraw(&self) -> io::Result<Reply> {
        let (_, columns) = self.lease.size();
        let line = self.page(columns).said(&[Span::plain("withdrawn: the program ended")]);
        self.lease.show(&format!("\r\n{}\r\n", line.join("\r\n")))?;
        Ok(Reply::Withdrawn)
    }

    /// Keys that follow those for the command are dropped. Whether the question is still wanted after that.
    fn wait_for_quiet(&self, keys: &mut Keys) -> bool {
        let mut last = self.lease.last_key;
        loop {
            let left = last.map_or(Duration::ZERO, |last| QUIET.saturating_sub(last.elapsed()));
            if left.is_zero() {
                return true;
            }
            match self.lease.listen(left.min(LOOK)) {
                Heard::Keys(bytes) => {
                    keys.press(&bytes);
                    last = Some(Instant::now());
                }
                Heard::Nothing if self.waiting.still_wanted() => {}
                Heard::Closed => return true,
                Heard::Nothing | Heard::Ended => return false,
            }
        }
    }

    fn wait(&self, keys: &mut Keys) -> Moment {
        let disturbances = self.lease.disturbances();
        loop {
            let patience = if keys.is_open() { ESCAPE } else { LOOK };
            let key = match self.lease.listen(patience) {
                Heard::Keys(bytes) => keys.press(&bytes),
                Heard::Nothing => keys.rest(),
                Heard::Closed => return Moment::Closed,
                Heard::Ended => return Moment::Withdrawn,
            };
            if let Some(key) = key {
                return Moment::Press(key);
            }
            if !self.waiting.still_wanted() {
                return Moment::Withdrawn;
            }
            if self.lease.disturbances() != disturbances {
                return Moment::Disturbed;
            }
        }
    }
}

/// What a key means; `None`: nothing.
fn verdict(key: Key, choices: &Choices) -> Option<Verdict> {
    match key {
        Key::Enter | Key::Away | Key::Char('n' | 'N') => Some(Verdict::Deny),
        Key::Char('y' | 'Y') if choices.allow => Some(Verdict::Allow(Scope::Once)),
        Key::Char('s') if choices.session => Some(Verdict::Allow(Scope::Session)),
        Key::Char('p') if choices.session => Some(Verdict::Allow(Scope::Saved)),
        Key::Char('d') if choices.folder.is_some() => Some(Verdict::Allow(Scope::Directory)),
        Key::Char('v') if choices.never => Some(Verdict::Never),
        Key::Char(_) => None,
    }
}

/// The record of an answer.
fn words(verdict: Verdict, choices: &Choices) -> String {
    match verdict {
        Verdict::Allow(Scope::Once) => "yes".to_owned(),
        Verdict::Allow(Scope::Session) => "yes, for this session".to_owned(),
        Verdict::Allow(Scope::Saved) => "yes, and saved".to_owned(),
        Verdict::Allow(Scope::Directory) => {
            let folder = choices.folder.as_deref().map(layout::harmless);
            format!("yes, everything in {}", folder.unwrap_or_default())
        }
        Verdict::Deny => "no".to_owned(),
        Verdict::Never => "never".to_owned(),
    }
}
