//! Asking the person on their terminal.
//!
//! The command stands still while a question is shown: its own terminal is paused, and the keys are this question's
//! alone. Everything but an explicit yes is a no. Each time something is drawn it stands there for a while before a key
//! counts, and the line that names the keys appears when they do: a key that was meant for what stood there before is
//! dropped.

mod characters;
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
/// How long a question stands before a key counts: longer than it takes to stop a key that was meant for another.
const STANDS: Duration = Duration::from_millis(700);
/// How long, where it came after one that was withdrawn.
const STANDS_INSTEAD: Duration = Duration::from_millis(1500);
/// So long after one that was withdrawn somebody may still mean that one.
const RECENT: Duration = Duration::from_secs(10);
/// How long it is seen that a question was withdrawn, before anything else is.
const FAREWELL: Duration = Duration::from_millis(700);
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
        let dialogue = Dialogue { question, waiting, lease, asked, colours, began: Instant::now() };
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
    /// Nobody waits for the answer any more.
    Unwanted,
    /// The run is over.
    Ended,
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
    began: Instant,
}

impl Dialogue<'_> {
    fn hold(&self) -> io::Result<Reply> {
        let mut details = false;
        let mut choices = self.show(details)?;
        loop {
            let moment = match self.stand() {
                None => {
                    self.prompt(&choices)?;
                    self.wait(&choices)
                }
                Some(moment) => moment,
            };
            let verdict = match moment {
                Moment::Unwanted => return self.withdraw(true),
                Moment::Ended => return self.withdraw(false),
                Moment::Closed => Some(Verdict::Deny),
                Moment::Press(Key::Char('?')) => {
                    details = true;
                    None
                }
                Moment::Press(key) => verdict(key, &choices),
                Moment::Disturbed => None,
            };
            if let Some(verdict) = verdict {
                self.lease.show(&format!("{}\r\n", words(verdict, &choices)))?;
                return Ok(Reply::Answer(verdict));
            }
            if !self.lease.full_screen {
                self.lease.show("\r\n")?;
            }
            choices = self.show(details)?;
        }
    }

    /// The question, and what may be answered: only what the person can see in full can be allowed.
    fn show(&self, details: bool) -> io::Result<Choices> {
        let (rows, columns) = self.lease.size();
        let page = self.page(columns);
        let mut choices = Choices::of(self.question);
        let question = page.question(self.question);
        let mut lines = self.notice(page);
        let rows = usize::from(rows).saturating_sub(lines.len());
        if question.len() + page.prompt(&choices).len() > rows {
            choices = choices.refusals();
        }
        if details {
            let more = details::of(self.question, &choices, self.asked);
            let more: Vec<String> = more.iter().flat_map(|line| page.block(line, Style::Plain)).collect();
            let left = rows.saturating_sub(question.len() + page.prompt(&choices).len());
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

    /// Whether somebody may be about to answer another question, which stood here before.
    fn comes_instead(&self) -> bool {
        self.lease.last_withdrawn.is_some_and(|then| self.began.saturating_duration_since(then) < RECENT)
    }

    /// A question that comes instead of another says so, and therefore stands elsewhere.
    fn notice(&self, page: Page) -> Vec<String> {
        let words = "The question before was withdrawn. This is another one:";
        if self.comes_instead() { page.said(&[Span::new(words, Style::Warning)]) } else { Vec::new() }
    }

    /// `stays`: long enough to be seen, unless the terminal has to be given back at once.
    fn withdraw(&self, stays: bool) -> io::Result<Reply> {
        let (_, columns) = self.lease.size();
        let line = self.page(columns).said(&[Span::plain("withdrawn: the program ended")]);
        self.lease.show(&format!("\r\n{}\r\n", line.join("\r\n")))?;
        let end = Instant::now() + if stays { FAREWELL } else { Duration::ZERO };
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || matches!(self.lease.listen(left), Heard::Closed | Heard::Ended) {
                break;
            }
        }
        self.lease.withdrawn();
        Ok(Reply::Withdrawn)
    }

    /// What was drawn stands there, and keys are dropped, until it has been there long enough and nobody types.
    /// `None`: it has.
    fn stand(&self) -> Option<Moment> {
        let disturbances = self.lease.disturbances();
        let mut until = Instant::now() + if self.comes_instead() { STANDS_INSTEAD } else { STANDS };
        if let Some(last_key) = self.lease.last_key {
            until = until.max(last_key + QUIET);
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            match self.lease.listen(left.min(LOOK)) {
                Heard::Keys(_) => until = until.max(Instant::now() + QUIET),
                Heard::Closed => return Some(Moment::Closed),
                Heard::Ended => return Some(Moment::Ended),
                Heard::Nothing => {}
            }
            if !self.waiting.still_wanted() {
                return Some(Moment::Unwanted);
            }
            if self.lease.disturbances() != disturbances {
                return Some(Moment::Disturbed);
            }
        }
    }

    /// Until a key is pressed that means something.
    fn wait(&self, choices: &Choices) -> Moment {
        let disturbances = self.lease.disturbances();
        let mut keys = Keys::default();
        loop {
            match self.lease.listen(keys.patience().unwrap_or(LOOK)) {
                Heard::Keys(bytes) => keys.heard(&bytes, Instant::now()),
                Heard::Nothing => match keys.silence(Instant::now()) {
                    Some(key) if key == Key::Char('?') || verdict(key, choices).is_some() => {
                        return Moment::Press(key);
                    }
                    _ => {}
                },
                Heard::Closed => return Moment::Closed,
                Heard::Ended => return Moment::Ended,
            }
            if !self.waiting.still_wanted() {
                return Moment::Unwanted;
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
