//! Details of an approval prompt: the object, the program, and the effect of each key.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nono::approval::{Asker, Object, Question, Subject};

use super::layout::{Choices, cut, harmless};
use crate::host::parent;
use crate::{age, units};

/// Maximum number of columns of a command line.
const COMMAND: usize = 300;
/// Maximum number of parent processes listed.
const PARENTS: usize = 8;

/// Detail lines, escaped for the terminal.
pub(super) fn of(question: &Question, choices: &Choices, asked: u64) -> Vec<String> {
    let mut lines = Vec::new();
    if let Subject::Access { path, object, .. } = &question.subject {
        lines.push(stands(path, *object));
    }
    lines.extend(program(&question.asker));
    lines.extend(meanings(question, choices));
    lines.push(format!("question {asked} of this session"));
    lines
}

fn stands(path: &Path, object: Object) -> String {
    if object == Object::New {
        return "it does not exist yet and would be created".to_owned();
    }
    match path.symlink_metadata() {
        Ok(meta) => format!(
            "{}, {}, mode {:04o}, owned by user {}, changed {}",
            if meta.is_dir() { "a folder" } else { "a file" },
            units::bytes(meta.size()),
            meta.mode() & 0o7777,
            meta.uid(),
            changed(&meta),
        ),
        Err(error) => format!("cannot read its attributes: {}", nono::session::io_words(&error)),
    }
}

fn changed(meta: &fs::Metadata) -> String {
    let passed = meta.modified().ok().and_then(|time| time.elapsed().ok());
    passed.map_or_else(|| "in the future".to_owned(), age::passed)
}

/// Program, command line and parent processes. The sandboxed side controls all of it, so it proves nothing.
fn program(asker: &Asker) -> Vec<String> {
    let mut lines = Vec::new();
    if let Ok(file) = fs::read_link(format!("/proc/{}/exe", asker.pid)) {
        lines.push(format!("program: {}", harmless(&file)));
    }
    if let Some(line) = command_line(asker.pid) {
        lines.push(format!("command line: {}", cut(&line, COMMAND)));
    }
    let parents = parents(asker.pid);
    if !parents.is_empty() {
        lines.push(format!("started by: {}", parents.join(" < ")));
    }
    lines
}

fn command_line(pid: u32) -> Option<String> {
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = Vec::new();
    // It may be megabytes long.
    fs::File::open(format!("/proc/{pid}/cmdline")).ok()?.take(4096).read_to_end(&mut bytes).ok()?;
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let shown: Vec<String> =
        words.map(|word| harmless(Path::new(std::ffi::OsStr::from_bytes(word)))).collect();
    (!shown.is_empty()).then(|| shown.join(" "))
}

/// Parent processes, up to nono itself.
fn parents(pid: u32) -> Vec<String> {
    let mut chain = Vec::new();
    let mut at = parent(pid);
    while let Some(pid) = at.filter(|pid| *pid != std::process::id() && *pid > 1) {
        if chain.len() == PARENTS {
            chain.push("…".to_owned());
            break;
        }
        let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        let name = String::from_utf8_lossy(&name);
        chain.push(format!("{} ({pid})", harmless(Path::new(name.trim_end_matches('\n')))));
        at = parent(pid);
    }
    chain
}

fn meanings(question: &Question, choices: &Choices) -> Vec<String> {
    let mut lines = Vec::new();
    let (path, access) = match &question.subject {
        Subject::Access { path, access, .. } => (path, access),
        Subject::Restore { .. } | Subject::RestoreCheckpoint { .. } => {
            lines.push("y: restore; a safety snapshot is taken first".to_owned());
            lines.push("n, Enter, Esc: leave everything as it is".to_owned());
            return lines;
        }
        Subject::OpenUrl { .. } => {
            lines.push(
                "y: open it, outside the sandbox, with everything your browser is logged in to".to_owned(),
            );
            lines.push("n, Enter, Esc: do not open it".to_owned());
            return lines;
        }
    };
    let shown = harmless(path);
    if choices.allow {
        lines.push(format!("y: {access}, this one time"));
    }
    if choices.session {
        lines.push(format!("s: {access} {shown} until the session ends"));
    }
    if let Some(folder) = &choices.folder {
        lines.push(format!(
            "d: {access} everything in {} and below it until the session ends",
            harmless(folder)
        ));
    }
    if choices.session {
        lines.push("p: as s, and save it in a profile".to_owned());
    }
    lines.push("n, Enter, Esc: no; the same question does not come again in this session".to_owned());
    if choices.never {
        lines.push(format!("v: deny {shown} and everything below it until the session ends"));
    }
    lines
}
