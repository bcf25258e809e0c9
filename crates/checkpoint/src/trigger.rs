//! Which tool calls are worth a checkpoint, and of which folders. Pure: nothing is looked up on disk.
//!
//! A shell line is parsed as a shell parses it ([`brush_parser`]) and walked whole: pipelines, branches, subshells,
//! functions that are called, substitutions, here-documents, and what wrappers (`sudo`, `env`, `xargs`, `bash -c`) run.
//! Each simple command is looked up in a table of what loses or overwrites something. The working directory is followed
//! through the line, since the project of the *target* is what has to be kept.
//!
//! When in doubt the answer is yes: a checkpoint of an unchanged project costs a walk over its stats. Programs that the
//! table does not know (`make`, `cargo build`, `npm test`, `./script.sh`, `python script.py`) are the exception: they are
//! not judged destructive, or every call would be; what they change is still the agent's by the mark taken after the call.
//! One-line scripts (`python -c`, `node -e`) are read for words that write.

mod args;
mod commands;
mod guard;
mod interpreters;
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
    /// Anything else.
    Other { tool: String },
}

impl Call {
    pub fn tool(&self) -> &str {
        match self {
            Call::Files { tool, .. } | Call::Shell { tool, .. } | Call::Other { tool } => tool,
        }
    }
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing of the user's is at risk.
    Harmless,
    /// These may lose something: absolute, as written, not resolved.
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
        Call::Other { .. } => return Judgement::Harmless,
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
        Call::Shell { command, .. } => match guard::targets(command, cwd, home) {
            None => return Judgement::Harmless,
            Some(targets) => targets,
        },
    };
    let targets = if targets.is_empty() { vec![cwd.to_owned()] } else { targets };
    Judgement::Destructive { targets, reason: reason(call) }
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
        Call::Files { .. } | Call::Other { .. } => format!("before {tool}"),
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
