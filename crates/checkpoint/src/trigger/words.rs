//! Words of a line as the shell would expand them, as far as that is known beforehand.

use brush_parser::ParserOptions;
use brush_parser::word::{
    self, BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr, TildeExpr, WordPiece,
    WordPieceWithSource,
};

use super::state::State;

/// An argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Arg {
    /// What is known of it: all, or what comes before the first unknown part.
    pub(super) text: String,
    /// What comes after the last unknown part.
    pub(super) end: String,
    pub(super) known: Known,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    #[default]
    Whole,
    /// A pattern for file names stands at the end of `text`: what is meant lies below the folder before it.
    Pattern,
    /// A variable or the output of a command.
    Beginning,
}

impl Arg {
    pub(super) fn exact(text: impl Into<String>) -> Arg {
        Arg { text: text.into(), end: String::new(), known: Known::Whole }
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.known == Known::Whole && self.text == text
    }

    /// The name of a program, without its folder: `$VENV/bin/python` has one, `$PROGRAM` none.
    pub(super) fn program(&self) -> Option<&str> {
        let text = if self.known == Known::Whole { self.text.as_str() } else { self.end.as_str() };
        match text.rsplit_once('/') {
            Some((_, name)) => Some(name),
            None => (self.known == Known::Whole).then_some(text),
        }
    }

    /// The part that certainly leads to what it names: all of it, or the folder before what is unknown.
    pub(super) fn path(&self) -> &str {
        match (self.known, self.text.rfind('/')) {
            (Known::Whole, _) => &self.text,
            (_, Some(0)) => "/",
            (_, Some(end)) => &self.text[..end],
            (_, None) => "",
        }
    }

    fn push(&mut self, text: &str) {
        if self.known == Known::Whole {
            self.text.push_str(text);
        } else {
            self.end.push_str(text);
        }
    }

    fn unknown(&mut self, known: Known) {
        if self.known == Known::Whole {
            self.known = known;
        } else if known == Known::Beginning {
            self.known = Known::Beginning;
        }
        self.end.clear();
    }
}

/// What a word becomes, and the commands that run on the way.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    pub(super) args: Vec<Arg>,
    pub(super) commands: Vec<String>,
}

/// As many words as one with braces may become.
const BRACES: usize = 64;

/// A word of a command; nothing if it cannot be read.
pub(super) fn expand(raw: &str, state: &State) -> Option<Expanded> {
    let mut expanded = Expanded::default();
    for raw in braces(raw) {
        let pieces = word::parse(&raw, &ParserOptions::default()).ok()?;
        let arg = joined(&pieces, state, false, &mut expanded.commands)?;
        let splits = raw.contains('$') && !raw.contains(['"', '\'', '\\']);
        if splits && arg.known == Known::Whole && arg.text.contains(char::is_whitespace) {
            // The value of a variable without quotes is as many words as it has.
            expanded.args.extend(arg.text.split_whitespace().map(Arg::exact));
        } else {
            expanded.args.push(arg);
        }
    }
    Some(expanded)
}

/// The one argument that a word is where it is not split: a value, a file to write to.
pub(super) fn single(raw: &str, state: &State) -> Option<(Arg, Vec<String>)> {
    let pieces = word::parse(raw, &ParserOptions::default()).ok()?;
    let mut commands = Vec::new();
    let arg = joined(&pieces, state, false, &mut commands)?;
    Some((arg, commands))
}

/// The text of a here-document, and the commands that run on the way.
pub(super) fn document(raw: &str, expands: bool, state: &State) -> Option<(Arg, Vec<String>)> {
    if !expands {
        return Some((Arg::exact(raw), Vec::new()));
    }
    let pieces = word::parse_heredoc(raw, &ParserOptions::default()).ok()?;
    let mut commands = Vec::new();
    let arg = joined(&pieces, state, true, &mut commands)?;
    Some((arg, commands))
}

/// Without its quotes, as it was written: for text that another shell will read.
fn joined(
    pieces: &[WordPieceWithSource],
    state: &State,
    quoted: bool,
    commands: &mut Vec<String>,
) -> Option<Arg> {
    let mut arg = Arg::default();
    for piece in pieces {
        add(&piece.piece, state, quoted, &mut arg, commands)?;
    }
    Some(arg)
}

fn add(
    piece: &WordPiece,
    state: &State,
    quoted: bool,
    arg: &mut Arg,
    commands: &mut Vec<String>,
) -> Option<()> {
    match piece {
        WordPiece::Text(text) if quoted => arg.push(text),
        WordPiece::Text(text) => match pattern(text) {
            Some(at) => {
                arg.push(&text[..at]);
                arg.unknown(Known::Pattern);
                let last = text.rfind(['*', '?', '[', ']']).unwrap_or(at);
                arg.push(&text[last + 1..]);
            }
            None => arg.push(text),
        },
        WordPiece::SingleQuotedText(text) => arg.push(text),
        WordPiece::AnsiCQuotedText(text) => arg.push(&ansi(text)),
        WordPiece::EscapeSequence(text) => {
            let text = text.strip_prefix('\\').unwrap_or(text);
            // A line that goes on in the next one.
            arg.push(if text == "\n" { "" } else { text });
        }
        WordPiece::DoubleQuotedSequence(pieces) | WordPiece::GettextDoubleQuotedSequence(pieces) => {
            for piece in pieces {
                add(&piece.piece, state, true, arg, commands)?;
            }
        }
        WordPiece::TildeExpansion(tilde) => match home(tilde, state) {
            Some(home) => arg.push(&home),
            None => arg.unknown(Known::Beginning),
        },
        WordPiece::ParameterExpansion(expression) => parameter(expression, state, arg, commands)?,
        WordPiece::CommandSubstitution(command) => {
            commands.push(command.clone());
            arg.unknown(Known::Beginning);
        }
        WordPiece::BackquotedCommandSubstitution(command) => {
            // Within backquotes these three lose their backslash before the command is read.
            let plain = command.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
            commands.push(plain);
            arg.unknown(Known::Beginning);
        }
        WordPiece::ArithmeticExpression(expression) => {
            inner(Some(&expression.value), state, commands)?;
            arg.unknown(Known::Beginning);
        }
    }
    Some(())
}

/// Where a pattern for file names begins. `[` alone is a command.
fn pattern(text: &str) -> Option<usize> {
    let set = text.find('[').filter(|at| text[*at..].contains(']'));
    text.find(['*', '?']).into_iter().chain(set).min()
}

fn home(tilde: &TildeExpr, state: &State) -> Option<String> {
    match tilde {
        TildeExpr::Home => state.value("HOME"),
        TildeExpr::WorkingDir => state.value("PWD"),
        TildeExpr::OldWorkingDir => state.value("OLDPWD"),
        TildeExpr::UserHome(_)
        | TildeExpr::NthDirFromTopOfDirStack { .. }
        | TildeExpr::NthDirFromBottomOfDirStack { .. } => None,
    }
}

fn parameter(
    expression: &ParameterExpr,
    state: &State,
    arg: &mut Arg,
    commands: &mut Vec<String>,
) -> Option<()> {
    use ParameterExpr as P;
    let value = match expression {
        P::Parameter { parameter: Parameter::Named(name), indirect: false } => state.value(name),
        P::UseDefaultValues { default_value: text, .. }
        | P::AssignDefaultValues { default_value: text, .. }
        | P::IndicateErrorIfNullOrUnset { error_message: text, .. }
        | P::UseAlternativeValue { alternative_value: text, .. }
        | P::RemoveSmallestSuffixPattern { pattern: text, .. }
        | P::RemoveLargestSuffixPattern { pattern: text, .. }
        | P::RemoveSmallestPrefixPattern { pattern: text, .. }
        | P::RemoveLargestPrefixPattern { pattern: text, .. } => {
            inner(text.as_deref(), state, commands)?;
            None
        }
        P::ReplaceSubstring { pattern, replacement, .. } => {
            inner(Some(pattern), state, commands)?;
            inner(replacement.as_deref(), state, commands)?;
            None
        }
        P::Substring { offset, length, .. } => {
            inner(Some(&offset.value), state, commands)?;
            inner(length.as_ref().map(|length| length.value.as_str()), state, commands)?;
            None
        }
        _ => None,
    };
    match value {
        Some(value) => arg.push(&value),
        None => arg.unknown(Known::Beginning),
    }
    Some(())
}

/// The commands that run while a part of an expression is expanded.
fn inner(text: Option<&str>, state: &State, commands: &mut Vec<String>) -> Option<()> {
    let Some(text) = text.filter(|text| text.contains(['$', '`'])) else { return Some(()) };
    let pieces = word::parse(text, &ParserOptions::default()).ok()?;
    joined(&pieces, state, false, commands).map(|_| ())
}

/// The usual escapes of `$'…'`; what is left out is no part of a path that anybody writes.
fn ansi(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (c, if c == '\\' { letters.next() } else { None }) {
            ('\\', Some('n')) => plain.push('\n'),
            ('\\', Some('t')) => plain.push('\t'),
            ('\\', Some('r')) => plain.push('\r'),
            ('\\', Some(other)) => plain.push(other),
            _ => plain.push(c),
        }
    }
    plain
}

/// The words that braces make of one; the word itself if there are none, or too many.
fn braces(raw: &str) -> Vec<String> {
    let whole = || vec![raw.to_owned()];
    if !raw.contains('{') || raw.len() > 4096 {
        return whole();
    }
    match word::parse_brace_expansions(raw, &ParserOptions::default()) {
        Ok(Some(parts)) => sequence(&parts).filter(|words| !words.is_empty()).unwrap_or_else(|| {
            // Too many: whatever lies below the folder before them.
            let before = raw.split('{').next().unwrap_or_default();
            if before.contains(['"', '\'', '\\']) { whole() } else { vec![format!("{before}*")] }
        }),
        // Not a word with braces: taken as it stands.
        Ok(None) | Err(_) => whole(),
    }
}

fn sequence(parts: &[BraceExpressionOrText]) -> Option<Vec<String>> {
    let mut words = vec![String::new()];
    for part in parts {
        let ends = match part {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(members) => {
                let mut ends = Vec::new();
                for member in members {
                    match member {
                        BraceExpressionMember::Child(parts) => ends.extend(sequence(parts)?),
                        BraceExpressionMember::NumberSequence { start, end, .. } => {
                            ends.extend([start.to_string(), end.to_string()]);
                        }
                        BraceExpressionMember::CharSequence { start, end, .. } => {
                            ends.extend([start.to_string(), end.to_string()]);
                        }
                    }
                }
                ends
            }
        };
        if words.len().saturating_mul(ends.len()) > BRACES {
            return None;
        }
        words = words.iter().flat_map(|word| ends.iter().map(move |end| format!("{word}{end}"))).collect();
    }
    Some(words)
}
