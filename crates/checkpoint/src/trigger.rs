//! Detection of tool calls that need a checkpoint first, and of the folders they may change.
//!
//! The manager takes one before the first call of a turn that finds something changed, so every shell or file call asks for
//! it, labelled with its command. Exempt is only what is known to read: tools that say so, and shell lines that are a plain
//! list of programs from a short table (`read_only_programs`). What is not plainly understood (a substitution, a script, `make`, a
//! redirection to a file) may change anything where it runs.
//!
//! A line may name files elsewhere (`line_effects`): what it redirects to, removes or runs in is kept whatever it is; other
//! words that are paths only where they lead to another project. Only for these anything is looked up on disk.

mod forgets;
mod line;
mod line_effects;
pub mod patch;
mod read_only_programs;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::project;

/// A tool call that an agent is about to make, independent of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCall {
    /// Writes these files (absolute, or relative to the working directory).
    Files { tool: String, paths: Vec<PathBuf> },
    /// A line for a shell.
    Shell { tool: String, command: String },
    /// Changes no file; reads this one, where that is known.
    Reads { tool: String, path: Option<PathBuf> },
    /// Anything else: may change any file.
    Other { tool: String },
}

impl ToolCall {
    pub fn tool(&self) -> &str {
        match self {
            ToolCall::Files { tool, .. }
            | ToolCall::Shell { tool, .. }
            | ToolCall::Reads { tool, .. }
            | ToolCall::Other { tool } => tool,
        }
    }
}

/// Whether a call needs a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Known to change no file.
    Harmless,
    /// These folders and files may be changed: absolute, as written, not resolved.
    Destructive {
        targets: Vec<PathBuf>,
        /// `before patch`, `before terminal: rm -rf build`.
        reason: String,
    },
}

/// Maximum number of targets of a call.
pub const TARGETS: usize = 64;

/// Judges a call made in `cwd`. `home` is what `~` means.
pub fn judge(call: &ToolCall, cwd: &Path, home: &Path) -> Judgement {
    let targets = match call {
        ToolCall::Reads { .. } => return Judgement::Harmless,
        ToolCall::Other { .. } => Vec::new(),
        ToolCall::Files { paths, .. } => {
            let mut targets: Vec<PathBuf> = Vec::new();
            for path in paths.iter().take(TARGETS) {
                // Some tools do not expand `~`.
                let path = path.strip_prefix("~").map_or_else(|_| cwd.join(path), |rest| home.join(rest));
                if !targets.contains(&path) {
                    targets.push(path);
                }
            }
            targets
        }
        ToolCall::Shell { command, .. } => {
            let mut found = line_effects::examine(command, cwd, home);
            if found.only_reads {
                return Judgement::Harmless;
            }
            found.named.retain(|path| project::is_in_another(path, cwd, home));
            found.targets.extend(found.named);
            found.targets.truncate(TARGETS);
            found.targets
        }
    };
    let targets = if targets.is_empty() { vec![cwd.to_owned()] } else { targets };
    Judgement::Destructive { targets, reason: reason(call) }
}

/// Whether a call removes nono's own history or hooks. A help against mistakes and no boundary: a script can hide it.
pub fn forgets(call: &ToolCall, cwd: &Path, home: &Path) -> bool {
    match call {
        // Most lines do not name nono, and need not be split for this.
        ToolCall::Shell { command, .. } => {
            forgets::unquoted(command).contains("nono") && line_effects::examine(command, cwd, home).forgets
        }
        ToolCall::Files { .. } | ToolCall::Reads { .. } | ToolCall::Other { .. } => false,
    }
}

/// Label of the checkpoint before a call, in one short line.
pub fn reason(call: &ToolCall) -> String {
    const COMMAND: usize = 60;
    let tool = one_line(call.tool(), 40);
    let tool = if tool.is_empty() { "tool" } else { tool.as_str() };
    match call {
        ToolCall::Shell { command, .. } => format!("before {tool}: {}", one_line(command, COMMAND)),
        ToolCall::Files { .. } | ToolCall::Reads { .. } | ToolCall::Other { .. } => format!("before {tool}"),
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
