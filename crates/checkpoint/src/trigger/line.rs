//! A shell line as simple commands: their words, and the files that redirections write to.
//!
//! One pass over the characters, without recursion. It never fails: what it does not know (substitutions, groups, loops,
//! here-documents, variables) still yields words to look for paths in, but the line then counts as not understood.

use std::iter::Peekable;
use std::str::Chars;

/// A word without its quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// `~` stands for the home folder, `*` for what is not known, `?` and `[` for themselves.
    pub(super) text: String,
    /// Whether it holds a variable or a list in braces.
    pub(super) unknown: bool,
}

/// Operator after a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Join {
    /// `&&`: the next one runs only if it succeeded.
    And,
    /// `|` or `||`.
    Other,
    #[default]
    End,
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) words: Vec<Word>,
    /// Files that its redirections write to.
    pub(super) writes: Vec<Word>,
    pub(super) join: Join,
}

/// All commands of a line.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) commands: Vec<Simple>,
    /// Whether it is a plain list of simple commands.
    pub(super) understood: bool,
}

/// Reserved words, which are not commands at the start of a command.
const RESERVED: [&str; 20] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in",
    "select", "function", "coproc", "time", "!", "{", "}",
];

/// Splits a line. Linear in its length.
pub(super) fn split(text: &str) -> Line {
    let mut splitter = Splitter {
        rest: text.chars().peekable(),
        line: Line { understood: true, ..Line::default() },
        command: Simple::default(),
        word: None,
        role: Role::Argument,
        quoted: false,
        outer: Vec::new(),
        backquote: None,
        documents: Vec::new(),
    };
    splitter.run();
    splitter.line
}

/// Role of the next word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Argument,
    Read,
    Written,
    /// Ends a here-document.
    Delimiter,
}

struct Splitter<'a> {
    rest: Peekable<Chars<'a>>,
    line: Line,
    command: Simple,
    word: Option<Word>,
    role: Role,
    /// Within double quotes.
    quoted: bool,
    /// The same for each open parenthesis, and for an open backquote.
    outer: Vec<bool>,
    backquote: Option<bool>,
    /// Here-documents that begin after this line.
    documents: Vec<String>,
}

impl Splitter<'_> {
    fn run(&mut self) {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => self.escape(),
                '"' => {
                    self.quoted = !self.quoted;
                    self.word();
                }
                '$' => self.dollar(),
                '`' => self.backquote(),
                _ if self.quoted => self.word().text.push(c),
                '\'' => self.single(),
                ' ' | '\t' => self.end_word(),
                '\n' => self.newline(),
                '|' => {
                    self.rest.next_if(|next| "|&".contains(*next));
                    self.end_command(Join::Other);
                }
                '&' if self.rest.next_if_eq(&'>').is_some() => self.redirect('>'),
                '&' if self.rest.next_if_eq(&'&').is_some() => self.end_command(Join::And),
                ';' | '&' => self.end_command(Join::End),
                '<' | '>' => self.redirect(c),
                '(' | ')' => self.nest(c == '('),
                '#' if self.word.is_none() => while self.rest.next_if(|next| *next != '\n').is_some() {},
                _ => self.plain(c),
            }
        }
        let open = self.quoted || !self.outer.is_empty() || self.backquote.is_some();
        self.line.understood &= !open && self.documents.is_empty();
        self.end_command(Join::End);
    }

    /// The word under way; a new one if there is none.
    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn plain(&mut self, c: char) {
        self.line.understood &= !c.is_control();
        let word = self.word();
        word.unknown |= c == '{' || c == '}';
        word.text.push(c);
    }

    fn escape(&mut self) {
        match self.rest.next() {
            None => self.line.understood = false,
            Some('\n') => {}
            Some(c) => {
                if self.quoted && !"\"\\$`".contains(c) {
                    self.word().text.push('\\');
                }
                self.word().text.push(c);
            }
        }
    }

    fn single(&mut self) {
        self.word();
        loop {
            match self.rest.next() {
                Some('\'') => return,
                Some(c) => self.word().text.push(c),
                None => return self.line.understood = false,
            }
        }
    }

    fn dollar(&mut self) {
        let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        match self.rest.peek().copied() {
            Some('(') => {
                self.rest.next();
                self.nest(true);
            }
            // `$'…'` has escapes of its own.
            Some('\'') if !self.quoted => self.line.understood = false,
            Some('{') => {
                self.rest.next();
                let name: String = std::iter::from_fn(|| self.rest.next_if(is_name)).collect();
                let whole = self.rest.next_if_eq(&'}').is_some();
                self.line.understood &= whole;
                self.variable(if whole { &name } else { "" });
            }
            Some(c) if is_name(&c) => {
                let name: String = std::iter::from_fn(|| self.rest.next_if(is_name)).collect();
                self.variable(&name);
            }
            Some('?' | '#' | '@' | '*' | '!' | '$' | '-') => {
                self.rest.next();
                self.variable("");
            }
            _ => self.word().text.push('$'),
        }
    }

    fn variable(&mut self, name: &str) {
        let word = self.word();
        match name {
            "HOME" if word.text.is_empty() => word.text.push('~'),
            "PWD" if word.text.is_empty() => word.text.push('.'),
            _ => {
                word.text.push('*');
                word.unknown = true;
            }
        }
    }

    /// A substitution or a group: commands of its own begin or end.
    fn nest(&mut self, opens: bool) {
        self.line.understood = false;
        self.end_command(Join::End);
        if opens {
            self.outer.push(self.quoted);
            self.quoted = false;
        } else {
            self.quoted = self.outer.pop().unwrap_or_default();
        }
    }

    fn backquote(&mut self) {
        self.line.understood = false;
        self.end_command(Join::End);
        match self.backquote.take() {
            Some(quoted) => self.quoted = quoted,
            None => self.backquote = Some(std::mem::take(&mut self.quoted)),
        }
    }

    fn redirect(&mut self, sign: char) {
        let is_number = |word: &Word| !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
        let more = self.rest.next_if(|next| "<>|&".contains(*next));
        self.role = match (sign, more) {
            ('<', Some('<')) if self.rest.next_if_eq(&'<').is_some() => Role::Read,
            ('<', Some('<')) => {
                self.rest.next_if_eq(&'-');
                Role::Delimiter
            }
            ('<', None | Some('&')) => Role::Read,
            (_, Some('&')) => {
                // Another name of an open file, or a file.
                let copy = |next: &char| next.is_ascii_digit() || *next == '-';
                if self.rest.next_if(copy).is_some() {
                    while self.rest.next_if(copy).is_some() {}
                    Role::Argument
                } else {
                    Role::Written
                }
            }
            _ => Role::Written,
        };
    }

    /// The bodies of here-documents are words of the last command before them.
    fn newline(&mut self) {
        self.end_word();
        for delimiter in std::mem::take(&mut self.documents) {
            let mut text = String::new();
            while self.rest.peek().is_some() {
                let start = text.len();
                text.extend(std::iter::from_fn(|| self.rest.next_if(|next| *next != '\n')));
                self.rest.next();
                if text[start..].trim_start_matches('\t') == delimiter {
                    text.truncate(start);
                    break;
                }
                text.push('\n');
            }
            self.command.words.push(Word { text, unknown: true });
            self.line.understood = false;
        }
        self.end_command(Join::End);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::replace(&mut self.role, Role::Argument) {
            Role::Argument if self.command.words.is_empty() && RESERVED.contains(&word.text.as_str()) => {
                self.line.understood = false;
            }
            Role::Argument => self.command.words.push(word),
            Role::Read => self.line.understood &= !word.unknown,
            Role::Written => self.command.writes.push(word),
            Role::Delimiter => self.documents.push(word.text),
        }
    }

    fn end_command(&mut self, join: Join) {
        self.end_word();
        // A redirection to nothing is an error of the line.
        self.line.understood &= std::mem::replace(&mut self.role, Role::Argument) == Role::Argument;
        let command = std::mem::take(&mut self.command);
        if !command.words.is_empty() || !command.writes.is_empty() {
            self.line.commands.push(Simple { join, ..command });
        }
    }
}
