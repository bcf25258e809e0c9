//! Which tool calls are worth a checkpoint, and of which folders. Pure: nothing is looked up on disk.
//!
//! A shell line is parsed as a shell parses it ([`brush_parser`]) and walked whole: pipelines, branches, subshells,
//! functions that are called, substitutions, here-documents, and what wrappers (`sudo`, `env`, `xargs`, `bash -c`) run.
//! Each simple command is looked up in tables: what a program writes to, and which programs only read. The working
//! directory is followed through the line, since the project of the *target* is what has to be kept.
//!
//! When in doubt the answer is yes: what the tables do not know (`make`, `npm test`, `./script.sh`, `python -c`, a tool of a
//! server) may change anything where it runs. A turn has one checkpoint of a project, so that the doubt costs little.

mod args;
mod commands;
mod forgets;
mod guard;
mod interpreters;
pub mod patch;
mod special;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod walk;
mod words;
mod wrappers;

use std::path::{Path, PathBuf};

/// What an agent's tool is about to do, in the words of no agent in particular.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Writes these files (absolute, or relative to the working directory).
    Files { tool: String, paths: Vec<PathBuf> },
    /// A line for a shell.
    Shell { tool: String, command: String },
    /// Known to change no file; of this one, if it says so.
    Reads { tool: String, path: Option<PathBuf> },
    /// Anything else: it may change whatever is there.
    Other { tool: String },
}

impl Call {
    pub fn tool(&self) -> &str {
        match self {
            Call::Files { tool, .. }
            | Call::Shell { tool, .. }
            | Call::Reads { tool, .. }
            | Call::Other { tool } => tool,
        }
    }
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is known to change nothing.
    Harmless,
    /// Something here may be changed or lost: absolute, as written, not resolved.
    Destructive {
        targets: Vec<PathBuf>,
        /// `before patch`, `before terminal: rm -rf build`.
        reason: String,
    },
}

/// As many targets as a call may have; a call with more names folders that hold the rest, or is cut.
pub const TARGETS: usize = 64;

/// Judge a call made in `cwd`. `home`: what `~` means.
pub fn judge(call: &Call, cwd: &Path, home: &Path) -> Judgement {
    let targets = match call {
        Call::Reads { .. } => return Judgement::Harmless,
        Call::Other { .. } => Vec::new(),
        Call::Files { paths, .. } => {
            let mut targets: Vec<PathBuf> = Vec::new();
            for path in paths.iter().take(TARGETS) {
                let path = tilde(path, home).unwrap_or_else(|| cwd.join(path));
                if !targets.contains(&path) {
                    targets.push(path);
                }
            }
            targets
        }
        Call::Shell { command, .. } => match guard::judge(command, cwd, home).targets {
            None => return Judgement::Harmless,
            Some(targets) => targets,
        },
    };
    let targets = if targets.is_empty() { vec![cwd.to_owned()] } else { targets };
    Judgement::Destructive { targets, reason: reason(call) }
}

/// Whether a call removes what its own effects could be undone with: nono's history, its hooks. A program that hides what
/// it runs is not seen through; it is a help, and no boundary.
pub fn forgets(call: &Call, cwd: &Path, home: &Path) -> bool {
    match call {
        // Most lines have nothing of it, and need not be parsed for this.
        Call::Shell { command, .. } => forgets::names_it(command) && guard::judge(command, cwd, home).forgets,
        Call::Files { .. } | Call::Reads { .. } | Call::Other { .. } => false,
    }
}

/// `~` and `~/x` of tools that leave them to us.
fn tilde(path: &Path, home: &Path) -> Option<PathBuf> {
    path.strip_prefix("~").ok().map(|rest| home.join(rest))
}

/// Why there is a checkpoint, in one short line.
pub fn reason(call: &Call) -> String {
    const COMMAND: usize = 60;
    let tool = one_line(call.tool(), 40);
    let tool = if tool.is_empty() { "tool" } else { tool.as_str() };
    match call {
        Call::Shell { command, .. } => format!("before {tool}: {}", one_line(command, COMMAND)),
        Call::Files { .. } | Call::Reads { .. } | Call::Other { .. } => format!("before {tool}"),
    }
}

/// The first characters of a text, without line breaks and what else a terminal would act on.
fn one_line(text: &str, most: usize) -> String {
    // Every character of the result is at most one of the first few of the text or a space before it.
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        let gap = usize::from(length > 0);
        for c in std::iter::repeat_n(' ', gap).chain(word.chars()) {
            if length == most {
                line.push('…');
                return line;
            }
            line.push(c);
            length += 1;
        }
    }
    line
}
