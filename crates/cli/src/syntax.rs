//! Syntax colours. Loading grammars and parsing some lines takes time, so it happens on a thread of its own, which
//! starts with the first job; the drawing thread takes what is ready and never waits.
//!
//! Colours are kinds of text here, not RGB values: the terminal's palette decides how a comment looks.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

use syntect::highlighting::{
    Color, HighlightIterator, HighlightState, Highlighter, ScopeSelectors, StyleModifier, Theme, ThemeItem,
};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

/// Maximum length of a line that is coloured; longer ones are machine-made.
const LONG_LINE: usize = 1000;

/// Kind of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tint {
    Plain,
    Comment,
    Keyword,
    Text,
    Constant,
    Name,
    Type,
}

/// Scopes of the grammars and their kinds. The theme encodes the row's number as a colour.
const TINTS: &[(&str, Tint)] = &[
    ("comment, punctuation.definition.comment", Tint::Comment),
    ("string, constant.character, punctuation.definition.string", Tint::Text),
    ("constant, constant.numeric, constant.language, support.constant", Tint::Constant),
    ("keyword, storage, storage.modifier, keyword.operator.word", Tint::Keyword),
    ("storage.type, entity.name.type, entity.name.class, entity.name.struct, support.type", Tint::Type),
    ("entity.name.function, support.function, variable.function", Tint::Name),
    ("entity.name.tag, entity.other.attribute-name, entity.name.section, markup.heading", Tint::Name),
    ("keyword.operator", Tint::Plain),
];
const NOTHING: u8 = u8::MAX;

/// Line as pieces: number of bytes and kind.
pub(crate) type Tints = Vec<(usize, Tint)>;

/// Side of a diff that a line belongs to; both sides are parsed in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffSide {
    Old,
    New,
    Both,
}

/// Lines to colour. The key is returned with the answer.
#[derive(Debug)]
pub(crate) struct Job<K> {
    pub(crate) key: K,
    /// Name of the file. It, or the first line, decides the language.
    pub(crate) name: String,
    pub(crate) lines: Vec<(DiffSide, String)>,
}

/// Handle of the colouring thread, which starts with the first job.
#[derive(Debug)]
pub(crate) struct Syntax<K> {
    thread: Option<Thread<K>>,
    busy: bool,
}

#[derive(Debug)]
struct Thread<K> {
    jobs: Sender<Job<K>>,
    answers: Receiver<(K, Vec<Tints>)>,
}

impl<K: Send + 'static> Syntax<K> {
    pub(crate) fn new() -> Syntax<K> {
        Syntax { thread: None, busy: false }
    }

    /// Whether a job is running. There is one at a time, since the next one depends on what is visible then.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(crate) fn ask(&mut self, job: Job<K>) {
        let thread = self.thread.get_or_insert_with(Thread::start);
        // If the thread is gone, text stays without colours.
        self.busy = thread.jobs.send(job).is_ok();
    }

    /// Finished job, if there is one.
    pub(crate) fn answer(&mut self) -> Option<(K, Vec<Tints>)> {
        let answer = self.thread.as_ref()?.answers.try_recv();
        // A thread that ended answers nothing more.
        self.busy &= matches!(answer, Err(TryRecvError::Empty));
        answer.ok()
    }
}

impl<K: Send + 'static> Thread<K> {
    fn start() -> Thread<K> {
        let (jobs, inbox) = channel::<Job<K>>();
        let (outbox, answers) = channel();
        // The thread ends with its channel. If it cannot start, text stays without colours.
        let _ = thread::Builder::new().spawn(move || {
            let grammars = Grammars::load();
            for job in inbox {
                let lines = grammars.colour(&job.name, &job.lines);
                if outbox.send((job.key, lines)).is_err() {
                    return;
                }
            }
        });
        Thread { jobs, answers }
    }
}

/// Loaded grammars and theme.
pub(crate) struct Grammars {
    syntaxes: SyntaxSet,
    theme: Theme,
}

impl Grammars {
    pub(crate) fn load() -> Grammars {
        Grammars { syntaxes: SyntaxSet::load_defaults_newlines(), theme: theme() }
    }

    fn find(&self, name: &str, first_line: &str) -> Option<&SyntaxReference> {
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        let by_name = self.syntaxes.find_syntax_by_extension(name);
        let by_extension = || self.syntaxes.find_syntax_by_extension(extension?);
        let by_line = || self.syntaxes.find_syntax_by_first_line(first_line);
        by_name.or_else(by_extension).or_else(by_line).filter(|syntax| syntax.name != "Plain Text")
    }

    /// Colours lines; no pieces if the language is unknown.
    pub(crate) fn colour(&self, name: &str, lines: &[(DiffSide, String)]) -> Vec<Tints> {
        let first = lines.first().map_or("", |(_, line)| line);
        let Some(syntax) = self.find(name, first) else { return vec![Tints::new(); lines.len()] };
        let highlighter = Highlighter::new(&self.theme);
        let mut old = Parser::new(syntax, &highlighter);
        let mut new = Parser::new(syntax, &highlighter);
        let mut colour = |side: DiffSide, line: &str| match side {
            DiffSide::Old => old.line(line, &self.syntaxes, &highlighter),
            DiffSide::New => new.line(line, &self.syntaxes, &highlighter),
            DiffSide::Both => {
                old.line(line, &self.syntaxes, &highlighter);
                new.line(line, &self.syntaxes, &highlighter)
            }
        };
        lines.iter().map(|(side, line)| colour(*side, line)).collect()
    }
}

struct Parser {
    parse: ParseState,
    state: HighlightState,
}

impl Parser {
    fn new(syntax: &SyntaxReference, highlighter: &Highlighter<'_>) -> Parser {
        Parser { parse: ParseState::new(syntax), state: HighlightState::new(highlighter, ScopeStack::new()) }
    }

    fn line(&mut self, line: &str, syntaxes: &SyntaxSet, highlighter: &Highlighter<'_>) -> Tints {
        if line.len() > LONG_LINE {
            return Tints::new();
        }
        let line = format!("{line}\n");
        // A grammar that fails on a line leaves that line plain.
        let Ok(ops) = self.parse.parse_line(&line, syntaxes) else { return Tints::new() };
        HighlightIterator::new(&mut self.state, &ops, &line, highlighter)
            .map(|(style, text)| (text.trim_end_matches('\n').len(), tint(style.foreground)))
            .filter(|(length, _)| *length > 0)
            .collect()
    }
}

fn number(row: u8) -> Color {
    Color { r: row, g: 0, b: 0, a: u8::MAX }
}

fn tint(colour: Color) -> Tint {
    TINTS.get(usize::from(colour.r)).map_or(Tint::Plain, |(_, tint)| *tint)
}

fn theme() -> Theme {
    let item = |(row, (scopes, _)): (u8, &(&str, Tint))| {
        let scope: ScopeSelectors = scopes.parse().ok()?;
        let style = StyleModifier { foreground: Some(number(row)), background: None, font_style: None };
        Some(ThemeItem { scope, style })
    };
    let mut theme = Theme { scopes: (0..).zip(TINTS).filter_map(item).collect(), ..Theme::default() };
    theme.settings.foreground = Some(number(NOTHING));
    theme
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, lines: &[(DiffSide, &str)]) -> Vec<Vec<(String, Tint)>> {
        let lines: Vec<_> = lines.iter().map(|(side, line)| (*side, (*line).to_owned())).collect();
        let tints = Grammars::load().colour(name, &lines);
        let cut = |(tints, (_, line)): (Tints, &(DiffSide, String))| {
            let mut at = 0;
            let word = |(length, tint): (usize, Tint)| {
                at += length;
                (line[at - length..at].trim().to_owned(), tint)
            };
            tints.into_iter().map(word).filter(|(word, _)| !word.is_empty()).collect()
        };
        tints.into_iter().zip(&lines).map(cut).collect()
    }

    fn has(line: &[(String, Tint)], word: &str, tint: Tint) {
        assert!(line.contains(&(word.to_owned(), tint)), "{word} as {tint:?} in {line:?}");
    }

    #[test]
    fn words_are_told_apart() {
        let lines = words(
            "main.rs",
            &[(DiffSide::Both, "fn main() { let x = 17; } // so"), (DiffSide::New, "\"a\"")],
        );
        has(&lines[0], "main", Tint::Name);
        has(&lines[0], "17", Tint::Constant);
        has(&lines[0], "so", Tint::Comment);
        has(&lines[1], "a", Tint::Text);
    }

    #[test]
    fn each_side_goes_on_where_it_was() {
        let lines = [(DiffSide::Old, "/* open"), (DiffSide::Old, "in it"), (DiffSide::New, "let y = 1;")];
        let lines = words("a.rs", &lines);
        has(&lines[1], "in it", Tint::Comment);
        has(&lines[2], "1", Tint::Constant);
    }

    #[test]
    fn what_has_no_language_stays_plain() {
        assert_eq!(words("notes.unknown", &[(DiffSide::Both, "let x = 1;")]), [[]]);
        let long = "x".repeat(LONG_LINE + 1);
        assert_eq!(words("a.rs", &[(DiffSide::Both, &long)]), [[]]);
    }
}
