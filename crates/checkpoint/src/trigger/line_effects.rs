//! The folders that a shell line may change: where its commands run, and the files that it names.

use std::path::{Component, Path, PathBuf};

use super::line::{self, Join, Simple, Word};
use super::read_only_programs::{is_device, only_reads};
use super::{TARGETS, forgets, patch};

/// Longest line that is split into commands; of a longer one only the paths are found.
const LONGEST: usize = 64 << 10;
/// Bytes of a path that the kernel takes.
const LONGEST_PATH: usize = 4096;
/// Folders that a command may run in, at once: each `cd` may have failed.
const BASES: usize = 4;
/// Paths that are looked up on disk.
const NAMED: usize = 32;
/// Scripts within scripts that are split.
const DEPTH: usize = 3;

/// Programs that remove or overwrite all their operands.
const WRITERS: [&str; 17] = [
    "rm", "rmdir", "unlink", "shred", "trash", "mv", "ln", "truncate", "tee", "touch", "mkdir", "chmod",
    "chown", "chgrp", "sed", "patch", "sponge",
];
/// Programs that overwrite their last operand.
const COPIERS: [&str; 4] = ["cp", "install", "rsync", "scp"];
/// Programs that run a script given as a word or on standard input.
const SHELLS: [&str; 9] = ["bash", "sh", "zsh", "dash", "ksh", "fish", "su", "eval", "script"];
/// Programs whose operands are files of another machine.
const ELSEWHERE: [&str; 4] = ["ssh", "docker", "podman", "kubectl"];
/// Options whose value is the folder that the program works in.
const FOLDERS: [&str; 7] =
    ["-C", "--directory", "--prefix", "--dir", "--cwd", "--work-tree", "--target-directory"];

/// Paths in a shell line, and what the line may do.
#[derive(Debug, Default)]
pub(super) struct LineEffects {
    /// Whether it is known to change no file.
    pub(super) only_reads: bool,
    /// Directories in which commands run, and paths that they write to.
    pub(super) targets: Vec<PathBuf>,
    /// Other words that are paths.
    pub(super) named: Vec<PathBuf>,
    /// Whether it removes nono's own history or hooks.
    pub(super) forgets: bool,
}

/// Examine a line. Linear in its length.
pub(super) fn examine(text: &str, cwd: &Path, home: &Path) -> LineEffects {
    let mut finder = Finder { home, cwd, bases: vec![cwd.to_owned()], found: LineEffects::default() };
    finder.found.only_reads = true;
    if text.len() > LONGEST {
        finder.unread(text);
    } else {
        finder.line(text, DEPTH);
    }
    finder.found
}

struct Finder<'a> {
    home: &'a Path,
    cwd: &'a Path,
    /// Directories in which the next command may run.
    bases: Vec<PathBuf>,
    found: LineEffects,
}

impl Finder<'_> {
    /// A line that is too long, or a script that is too deep.
    fn unread(&mut self, text: &str) {
        self.found.only_reads = false;
        self.found.forgets |= forgets::crude(text);
        self.here();
        self.pieces(text);
    }

    fn line(&mut self, text: &str, depth: usize) {
        let line = line::split(text);
        self.found.only_reads &= line.understood;
        // Where the list under way began, which a `cd` in it may have left; and whether all before in it is joined by `&&`.
        let (mut start, mut sure, mut before) = (self.bases.clone(), true, Join::End);
        for command in &line.commands {
            if before != Join::And {
                sure = line.understood && before == Join::End;
                add_all(&mut self.bases, BASES, std::mem::take(&mut start));
                start.clone_from(&self.bases);
            }
            before = command.join;
            self.command(command, (line.understood, sure && before == Join::And), depth);
        }
        if !line.understood {
            self.here();
        }
        if text.contains("*** Begin Patch") {
            let paths = patch::paths(text);
            paths.iter().take(TARGETS).for_each(|path| self.add(path, true));
        }
    }

    fn command(&mut self, command: &Simple, (understood, sure): (bool, bool), depth: usize) {
        if let Some((first, args)) = command.words.split_first() {
            self.change(&first.text, args, sure);
        }
        if only_reads(command) {
            return;
        }
        self.found.only_reads = false;
        self.found.forgets |= forgets::command(&command.words);
        self.here();
        if command.words.iter().chain(&command.writes).any(|word| word.unknown) {
            add_all(&mut self.found.targets, TARGETS, vec![self.cwd.to_owned()]);
        }
        let files = command.writes.iter().filter(|word| !is_device(&word.text));
        files.for_each(|word| self.add(&word.text, true));
        self.operands(&command.words, understood);
        let is_shell = |word: &Word| SHELLS.contains(&name(word));
        if let Some(at) = command.words.iter().position(is_shell) {
            for script in
                command.words[at + 1..].iter().filter(|word| word.text.contains(char::is_whitespace))
            {
                let bases = self.bases.clone();
                match depth.checked_sub(1) {
                    Some(depth) => self.line(&script.text, depth),
                    None => self.unread(&script.text),
                }
                self.bases = bases;
            }
        }
    }

    /// The words of a command that are paths, or that a program in it takes as paths.
    fn operands(&mut self, words: &[Word], understood: bool) {
        let find = |programs: &[&str]| words.iter().position(|word| programs.contains(&name(word)));
        let removes =
            |writer: Option<usize>| writer.is_some() || words.iter().any(|word| word.text == "-delete");
        let is_elsewhere = find(&ELSEWHERE) == Some(0);
        let (writer, copier) = if is_elsewhere { (None, None) } else { (find(&WRITERS), find(&COPIERS)) };
        let writer = find(&["find"]).filter(|_| removes(writer)).or(writer).unwrap_or(words.len());
        let copied =
            copier.and_then(|at| (at + 2..words.len()).rev().find(|at| !words[*at].text.starts_with('-')));
        let mut is_folder = false;
        for (at, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            let is_operand = at > writer && !text.starts_with('-');
            let value =
                text.split_once('=').filter(|(option, _)| *option == "of" || FOLDERS.contains(option));
            if let Some((_, value)) = value {
                self.add(value, true);
            } else if is_folder || is_operand || Some(at) == copied {
                self.add(text, true);
            } else if at > 0 || !understood || text.contains('=') {
                self.named(text);
            }
            if text.contains('{') {
                self.pieces(text);
            }
            is_folder = FOLDERS.contains(&text);
        }
    }

    /// A word of a program that may do anything with it.
    fn named(&mut self, text: &str) {
        if text.contains(|c: char| c.is_whitespace() || "'\"`(){},;".contains(c)) {
            return self.pieces(text);
        }
        let option = text.strip_prefix("-C").or_else(|| text.strip_prefix("-I")).unwrap_or(text);
        let value = option.split_once('=').map_or(option, |(_, value)| value);
        let is_path =
            value == "~" || value.contains('/') && !value.contains("://") && !value.starts_with('-');
        if is_path {
            self.add(value, false);
        }
    }

    /// Finds pieces of a text that look like absolute paths.
    fn pieces(&mut self, text: &str) {
        let breaks = |c: char| c.is_whitespace() || c.is_control() || "'\"`()<>|&;=,{}$".contains(c);
        for piece in text.split(breaks) {
            if self.found.named.len() >= NAMED {
                return;
            }
            if piece.starts_with("~/") || piece.len() > 1 && piece.starts_with('/') {
                self.add(piece, false);
            }
        }
    }

    /// Adds the directories in which a command runs to the targets.
    fn here(&mut self) {
        add_all(&mut self.found.targets, TARGETS, self.bases.clone());
    }

    fn add(&mut self, text: &str, is_target: bool) {
        let paths = self.paths(text);
        let (list, most) =
            if is_target { (&mut self.found.targets, TARGETS) } else { (&mut self.found.named, NAMED) };
        add_all(list, most, paths);
    }

    /// The paths that a word may mean, as far as they are known.
    fn paths(&self, text: &str) -> Vec<PathBuf> {
        let Some(text) = known_part(text) else { return Vec::new() };
        match text.strip_prefix('~') {
            Some("") => vec![self.home.to_owned()],
            Some(rest) if rest.starts_with('/') => vec![plain(&self.home.join(rest.trim_start_matches('/')))],
            _ => self.bases.iter().map(|base| plain(&base.join(text))).collect(),
        }
    }

    /// `cd` and the like: a folder more, or another one if the next command runs only there.
    fn change(&mut self, program: &str, args: &[Word], sure: bool) {
        let to = args.iter().find(|arg| arg.text == "-" || !arg.text.starts_with('-'));
        let (mut bases, known) = match (program, to) {
            ("cd" | "pushd", Some(word)) if word.text != "-" => (self.paths(&word.text), !word.unknown),
            ("cd", None) => (vec![self.home.to_owned()], true),
            // Back, to a folder that is not kept.
            ("cd" | "pushd" | "popd", _) => (vec![self.cwd.to_owned()], false),
            _ => return,
        };
        let before = std::mem::take(&mut self.bases);
        if !sure || !known || bases.is_empty() {
            bases.extend(before);
        }
        add_all(&mut self.bases, BASES, bases);
    }
}

/// The last part of a word that may be a program's path.
pub(super) fn name(word: &Word) -> &str {
    word.text.rsplit('/').next().unwrap_or_default()
}

/// Known part of a path: the folder before a pattern or a variable.
fn known_part(text: &str) -> Option<&str> {
    let known = match text.find(['*', '?', '[', '{']) {
        Some(0) => return None,
        Some(at) => &text[..text[..at].rfind('/').map_or(0, |slash| slash.max(1))],
        None => text,
    };
    (!known.is_empty() && known.len() < LONGEST_PATH && !is_device(known)).then_some(known)
}

/// Path without `.` components.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|component| *component != Component::CurDir).collect()
}

/// Adds paths that are not in a list yet, up to a number.
fn add_all(list: &mut Vec<PathBuf>, most: usize, paths: Vec<PathBuf>) {
    for path in paths {
        if list.len() < most && !list.contains(&path) {
            list.push(path);
        }
    }
}
