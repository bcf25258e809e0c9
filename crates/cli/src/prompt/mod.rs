//! Approval prompt on the user's terminal.
//!
//! The command's terminal is paused while a prompt is shown, and key presses go to the prompt alone. Everything but an
//! explicit yes is a denial. After each drawing, keys are dropped for a while, so that a key meant for what was shown
//! before does not answer; the line that lists the keys appears when they count.

mod characters;
mod details;
mod keys;
mod layout;
mod save;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nono::approval::{ApprovalAnswer, ApprovalBackend, ApprovalError, Question, Scope, Verdict, Waiting};
use nono::terminal_lease::{Lease, TerminalInput};
use nono::{CapabilitySource, ResolvedPolicy};

pub(crate) use save::save;

use crate::paint::{Canvas, Span, Style};
use keys::{KeyPress, Keys};
use layout::{Choices, Page};

/// Interval of checks whether the request was withdrawn.
const LOOK: Duration = Duration::from_millis(100);
/// Time that a prompt is shown before a key counts: long enough to stop typing a key that was meant for something else.
const KEY_DELAY: Duration = Duration::from_millis(700);
/// The same, for a prompt that follows one that was withdrawn.
const STANDS_INSTEAD: Duration = Duration::from_millis(1500);
/// Time after a withdrawn prompt in which the user may still mean that one.
const RECENT: Duration = Duration::from_secs(10);
/// Time that the notice of a withdrawn request stays on the screen.
const WITHDRAWN_NOTICE: Duration = Duration::from_millis(700);
/// Pause in typing that is required before a key counts: a user who types does not read.
const QUIET: Duration = Duration::from_millis(400);

/// Approver that asks the user on the terminal.
#[derive(Debug, Default)]
pub(crate) struct TerminalBackend {
    asked: AtomicU64,
    /// Working directory, writable folders, and paths that the user granted.
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

    fn at_once(&self, question: &Question) -> Option<ApprovalAnswer> {
        nono::diagnostic::is_no_question(question, &self.places)
            .then(|| ApprovalAnswer::new(Verdict::Deny, "no question"))
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<ApprovalAnswer, ApprovalError> {
        let lease = waiting.terminal().ok_or(ApprovalError::NoTerminal)?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let colours = crate::pager::wants_colours();
        let dialogue = Dialogue { question, waiting, lease, asked, colours, began: Instant::now() };
        match dialogue.hold() {
            Ok(PromptReply::Answer(verdict)) => Ok(ApprovalAnswer::new(verdict, "terminal")),
            Ok(PromptReply::Withdrawn) => Err(ApprovalError::Withdrawn),
            Err(error) => {
                let why = nono::session::io_words(&error);
                Err(ApprovalError::Failed { backend: "the terminal".to_owned(), why })
            }
        }
    }
}

enum PromptReply {
    Answer(Verdict),
    /// The request was withdrawn.
    Withdrawn,
}

/// Outcome of one wait for input.
enum Moment {
    Press(KeyPress),
    /// The terminal is closed.
    Closed,
    /// The request was withdrawn.
    Unwanted,
    /// The run is over.
    Ended,
    /// The prompt has to be drawn again.
    Disturbed,
}

/// One prompt on the screen.
struct Dialogue<'a> {
    question: &'a Question,
    waiting: &'a dyn Waiting,
    lease: Lease,
    asked: u64,
    colours: bool,
    began: Instant,
}

impl Dialogue<'_> {
    fn hold(&self) -> io::Result<PromptReply> {
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
                Moment::Press(KeyPress::Char('?')) => {
                    details = true;
                    None
                }
                Moment::Press(key) => verdict(key, &choices),
                Moment::Disturbed => None,
            };
            if let Some(verdict) = verdict {
                self.lease.show(&format!("{}\r\n", words(verdict, &choices)))?;
                return Ok(PromptReply::Answer(verdict));
            }
            if !self.lease.full_screen {
                self.lease.show("\r\n")?;
            }
            choices = self.show(details)?;
        }
    }

    /// Draws the request and returns the answers it offers: only what is shown in full can be allowed.
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
            // A full screen does not scroll.
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

    /// Whether the user may still be answering the prompt that was shown before.
    fn comes_instead(&self) -> bool {
        self.lease.last_withdrawn.is_some_and(|then| self.began.saturating_duration_since(then) < RECENT)
    }

    /// Notice above a prompt that replaces a withdrawn one; it also moves the prompt to other lines.
    fn notice(&self, page: Page) -> Vec<String> {
        let words = "The previous question was withdrawn. This is another one:";
        if self.comes_instead() { page.said(&[Span::new(words, Style::Warning)]) } else { Vec::new() }
    }

    /// Shows that the request was withdrawn. `stays`: long enough to be read, unless the terminal is needed at once.
    fn withdraw(&self, stays: bool) -> io::Result<PromptReply> {
        let (_, columns) = self.lease.size();
        let line = self.page(columns).said(&[Span::plain("withdrawn: the program ended")]);
        self.lease.show(&format!("\r\n{}\r\n", line.join("\r\n")))?;
        let end = Instant::now() + if stays { WITHDRAWN_NOTICE } else { Duration::ZERO };
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero()
                || matches!(self.lease.listen(left), TerminalInput::Closed | TerminalInput::Ended)
            {
                break;
            }
        }
        self.lease.withdrawn();
        Ok(PromptReply::Withdrawn)
    }

    /// Drops keys until the prompt has been shown long enough and the user has stopped typing. `None`: keys count now.
    fn stand(&self) -> Option<Moment> {
        let disturbances = self.lease.disturbances();
        let mut until = Instant::now() + if self.comes_instead() { STANDS_INSTEAD } else { KEY_DELAY };
        if let Some(last_key) = self.lease.last_key {
            until = until.max(last_key + QUIET);
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            match self.lease.listen(left.min(LOOK)) {
                TerminalInput::Keys(_) => until = until.max(Instant::now() + QUIET),
                TerminalInput::Closed => return Some(Moment::Closed),
                TerminalInput::Ended => return Some(Moment::Ended),
                TerminalInput::Nothing => {}
            }
            if !self.waiting.still_wanted() {
                return Some(Moment::Unwanted);
            }
            if self.lease.disturbances() != disturbances {
                return Some(Moment::Disturbed);
            }
        }
    }

    /// Waits until a key is pressed that the prompt offers.
    fn wait(&self, choices: &Choices) -> Moment {
        let disturbances = self.lease.disturbances();
        let mut keys = Keys::default();
        loop {
            match self.lease.listen(keys.patience().unwrap_or(LOOK)) {
                TerminalInput::Keys(bytes) => keys.heard(&bytes, Instant::now()),
                TerminalInput::Nothing => match keys.silence(Instant::now()) {
                    Some(key) if key == KeyPress::Char('?') || verdict(key, choices).is_some() => {
                        return Moment::Press(key);
                    }
                    _ => {}
                },
                TerminalInput::Closed => return Moment::Closed,
                TerminalInput::Ended => return Moment::Ended,
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

/// Verdict that a key stands for, if any.
fn verdict(key: KeyPress, choices: &Choices) -> Option<Verdict> {
    match key {
        KeyPress::Enter | KeyPress::Away | KeyPress::Char('n' | 'N') => Some(Verdict::Deny),
        KeyPress::Char('y' | 'Y') if choices.allow => Some(Verdict::Allow(Scope::Once)),
        KeyPress::Char('s') if choices.session => Some(Verdict::Allow(Scope::Session)),
        KeyPress::Char('p') if choices.session => Some(Verdict::Allow(Scope::Saved)),
        KeyPress::Char('d') if choices.folder.is_some() => Some(Verdict::Allow(Scope::Directory)),
        KeyPress::Char('v') if choices.never => Some(Verdict::Never),
        KeyPress::Char(_) => None,
    }
}

/// Answer as it stays on the screen.
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
