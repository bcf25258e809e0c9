//! Layout of an approval prompt: escaped lines, as wide as the terminal.
//!
//! The first line names the program and the access, the next ones the object. The path is never shortened: it is
//! wrapped over several lines, and a request that does not fit on the screen can only be denied.

use std::path::{Path, PathBuf};

use nono::AccessMode;
use nono::approval::{Object, Question, Subject};

use super::characters::misleads;
use crate::paint::{self, Canvas, Span, Style};
use crate::review::text;

const PREFIX: &str = "[nono] ";
const INDENT: &str = "  ";
/// Maximum number of columns of a reason; `PROGRAM`: of a program's name and other text of the command's.
const REASON: usize = 200;
const PROGRAM: usize = 60;
/// Maximum number of files of a restore that are listed.
const NAMED: usize = 8;

/// Answers that a prompt offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choices {
    pub(crate) allow: bool,
    pub(crate) session: bool,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) never: bool,
}

impl Choices {
    /// Answers that make sense for this request.
    pub(crate) fn of(question: &Question) -> Choices {
        match &question.subject {
            Subject::Access { folder, .. } => {
                Choices { allow: true, session: true, folder: folder.clone(), never: true }
            }
            Subject::Restore { .. } | Subject::RestoreCheckpoint { .. } | Subject::OpenUrl { .. } => {
                Choices { allow: true, session: false, folder: None, never: false }
            }
        }
    }

    /// Denials only, for a request that does not fit on the screen.
    pub(crate) fn refusals(&self) -> Choices {
        Choices { allow: false, session: false, folder: None, never: self.never }
    }
}

/// Layout of lines at the width of the terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) canvas: Canvas,
}

impl Page {
    /// Lines that name the program, the access and the object.
    pub(crate) fn question(self, question: &Question) -> Vec<String> {
        let program = cut(&harmless(&question.asker.program), PROGRAM);
        let who = format!("{program} (pid {}) wants to ", question.asker.pid);
        let mut lines = match &question.subject {
            Subject::Access { path, written, access, object, .. } => {
                let mut lines = self.said(&[Span::plain(who), wish(*access, *object)]);
                lines.extend(self.block(&harmless(path), Style::Title));
                if let Some(written) = written {
                    lines.extend(self.block(&format!("asked for as {}", harmless(written)), Style::Plain));
                }
                lines
            }
            Subject::Restore { snapshot, paths } => {
                self.restore(&who, &format!("snapshot {snapshot}"), paths)
            }
            Subject::RestoreCheckpoint { project, checkpoint, reason, paths, changes, kept } => {
                let checkpoint = format!("checkpoint {}", cut(&harmless(Path::new(checkpoint)), PROGRAM));
                let mut lines = self.restore(&who, &checkpoint, paths);
                let taken = cut(&harmless(Path::new(reason)), REASON);
                lines.extend(self.block(&format!("of {}", harmless(project)), Style::Title));
                lines.extend(self.block(&format!("taken: \"{taken}\""), Style::Plain));
                lines.extend(self.block(&counted(*changes, *kept), Style::Plain));
                lines
            }
            Subject::OpenUrl { url } => {
                let open = Span::new("open this in your browser", Style::Warning);
                let mut lines = self.said(&[Span::plain(who), open]);
                lines.extend(self.block(&harmless(Path::new(url)), Style::Title));
                lines
            }
        };
        if let Some(reason) = &question.reason {
            let reason = cut(&harmless(Path::new(reason)), REASON);
            lines.extend(self.block(&format!("reason it gives: \"{reason}\""), Style::Plain));
        }
        lines
    }

    fn restore(self, who: &str, to: &str, paths: &[PathBuf]) -> Vec<String> {
        let what = if paths.is_empty() { "everything" } else { "these" };
        let put = Span::new(format!("put {what} back"), Style::Warning);
        let mut lines = self.said(&[Span::plain(who), put, Span::plain(format!(" to the state of {to}"))]);
        lines.extend(paths.iter().take(NAMED).flat_map(|path| self.block(&harmless(path), Style::Title)));
        if let Some(more) = paths.len().checked_sub(NAMED).filter(|more| *more > 0) {
            lines.extend(self.block(&format!("and {more} more"), Style::Title));
        }
        lines
    }

    /// Lines that list the keys. The cursor stays at the end of the last one.
    pub(crate) fn prompt(self, choices: &Choices) -> Vec<String> {
        let mut keys = Vec::new();
        if choices.allow {
            keys.push("y once".to_owned());
        }
        if choices.session {
            keys.push("s session".to_owned());
        }
        if let Some(folder) = &choices.folder {
            keys.push(format!("d folder {}", harmless(folder)));
        }
        if choices.session {
            keys.push("p save".to_owned());
        }
        keys.push("n no".to_owned());
        if choices.never {
            keys.push("v never".to_owned());
        }
        keys.push("? details".to_owned());
        let question =
            if choices.allow { "Allow? [y/N]" } else { "This window is too small to allow it. [N]" };
        // A key and its name stay on one line.
        let room = self.canvas.width.saturating_sub(text::columns(PREFIX) + 1);
        let (mut lines, mut line) = (Vec::new(), vec![Span::new(question, Style::Title)]);
        let mut used = text::columns(question);
        let last = keys.len() - 1;
        for (at, key) in keys.into_iter().enumerate() {
            let before = if at == 0 { " (" } else { " " };
            let word = format!("{before}{key}{}", if at == last { ")" } else { "," });
            if used + text::columns(&word) > room {
                lines.extend(self.said(&std::mem::take(&mut line)));
                used = 0;
            }
            used += text::columns(&word);
            line.push(Span::plain(if line.is_empty() { word.trim_start().to_owned() } else { word }));
        }
        lines.extend(self.said(&line));
        lines
    }

    /// Text wrapped over as many lines as it needs.
    pub(crate) fn said(self, spans: &[Span]) -> Vec<String> {
        self.wrapped(spans, "")
    }

    /// Text wrapped and indented.
    pub(crate) fn block(self, words: &str, style: Style) -> Vec<String> {
        self.wrapped(&[Span::new(words, style)], INDENT)
    }

    /// Lines that begin with the prefix and are never wider than the terminal, so that it does not wrap them itself:
    /// what it wraps would look like a line of the command's.
    fn wrapped(self, spans: &[Span], indent: &str) -> Vec<String> {
        let head = format!("{PREFIX}{indent}");
        // A terminal that is too narrow for anything gets what it can show.
        let room = self.canvas.width.saturating_sub(text::columns(&head) + 1).max(1);
        let draw = |line: Vec<Span>| {
            let spans: Vec<Span> = std::iter::once(Span::plain(head.clone())).chain(line).collect();
            self.canvas.line(&spans).trim_end_matches('\n').to_owned()
        };
        paint::broken(spans.to_vec(), room).into_iter().map(draw).collect()
    }
}

/// Number of paths that a restore would change and keep.
fn counted(changes: u64, kept: u64) -> String {
    let changes = match changes {
        1 => "1 path changes".to_owned(),
        several => format!("{} paths change", crate::units::grouped(several)),
    };
    match kept {
        0 => changes,
        kept => format!("{changes}, {} kept because they changed later", crate::units::grouped(kept)),
    }
}

/// Requested access; writing is highlighted.
fn wish(access: AccessMode, object: Object) -> Span {
    let (words, style) = match (access, object) {
        (AccessMode::Read, Object::Directory) => ("read the folder", Style::Plain),
        (AccessMode::Read, _) => ("read", Style::Plain),
        (_, Object::New) => ("CREATE", Style::Warning),
        (AccessMode::Write, Object::Directory) => ("WRITE in the folder", Style::Warning),
        (AccessMode::Write, Object::File) => ("WRITE", Style::Warning),
        (AccessMode::ReadWrite, Object::Directory) => ("read and WRITE in the folder", Style::Warning),
        (AccessMode::ReadWrite, Object::File) => ("read and WRITE", Style::Warning),
    };
    Span::new(words, style)
}

/// Escapes text of the command's for the prompt: one line, no character that looks like another. Backslashes are
/// doubled, so that no name looks like an escape.
pub(crate) fn harmless(text: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut shown = String::new();
    for (at, part) in text.as_os_str().as_bytes().split(|byte| *byte == b'\\').enumerate() {
        if at > 0 {
            shown.push_str("\\\\");
        }
        for c in text::name(Path::new(std::ffi::OsStr::from_bytes(part))).chars() {
            if misleads(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
        }
    }
    // A blank at the end would not be seen.
    if shown.ends_with(' ') {
        shown.pop();
        shown.push_str("\\u{20}");
    }
    shown
}

/// Cuts text to this many columns, with an ellipsis where something was cut.
pub(crate) fn cut(words: &str, columns: usize) -> String {
    if text::columns(words) <= columns {
        return words.to_owned();
    }
    let mut kept = String::new();
    for c in words.chars() {
        kept.push(c);
        if text::columns(&kept) >= columns {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_or_told_from_another_is_shown_by_its_number() {
        for c in [
            '\u{34f}',
            '\u{fe0f}',
            '\u{2800}',
            '\u{2215}',
            '\u{2044}',
            '\u{a0}',
            '\u{2003}',
            '\u{3000}',
            '\u{1680}',
            '\u{200b}',
            '\u{202e}',
            '\u{2066}',
            '\u{61c}',
            '\u{ad}',
            '\u{3164}',
            '\u{e0041}',
            '\u{ff0f}',
            '\u{2024}',
            '\u{338}',
            '\u{1d5a0}',
            '\u{2026}',
            '\u{feff}',
            '\u{85}',
            '\u{2028}',
            '\u{f8ff}',
        ] {
            let shown = harmless(Path::new(&format!("a{c}b")));
            assert_eq!(shown, format!("a{}b", c.escape_unicode()));
        }
    }

    #[test]
    fn names_in_any_script_stay_readable() {
        for name in ["na\u{ef}ve", "e\u{301}", "日本語", "报告（最终）", "файл", "a b", "ελληνικά", "🦀"]
        {
            assert_eq!(harmless(Path::new(name)), name);
        }
    }
}
