//! The state of a tree, as reported by independent programs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Paths as text, each with all its attributes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Oracle(pub BTreeMap<String, String>);

/// Everything below and including `tree`. Files above a gigabyte are compared by size and holes only.
pub fn look(tree: &Path) -> Oracle {
    let mut all = Oracle::default();
    find(tree, &mut all);
    sums(tree, &mut all);
    let xattrs = ["-R", "-P", "-h", "-d", "-m", "-", "-e", "hex", "."];
    blocks(tree, Command::new("getfattr").args(xattrs), "xattrs", &mut all);
    blocks(tree, Command::new("getfacl").args(["-R", "-P", "-n", "."]), "acl", &mut all);
    all
}

/// Only what `find` reports: for trees whose paths the other programs cannot handle.
pub fn look_with_find(tree: &Path) -> Oracle {
    let mut all = Oracle::default();
    find(tree, &mut all);
    all
}

impl Oracle {
    fn note(&mut self, path: &[u8], what: &str, value: &str) {
        use std::fmt::Write;
        let path = path.escape_ascii().to_string();
        let about = self.0.entry(path).or_default();
        write!(about, " {what}={value}").unwrap();
    }

    /// The same without these paths and their content.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Oracle {
        let below =
            |path: &str| names.iter().any(|name| path == *name || path.starts_with(&format!("{name}/")));
        Oracle(self.0.iter().filter(|(path, _)| !below(path)).map(|(a, b)| (a.clone(), b.clone())).collect())
    }
}

/// Fail with the paths that differ.
#[track_caller]
pub fn same(before: &Oracle, after: &Oracle) {
    let mut differences = Vec::new();
    for (path, was) in &before.0 {
        match after.0.get(path) {
            None => differences.push(format!("{path}: gone, was{was}")),
            Some(is) if is != was => differences.push(format!("{path}:\n  was{was}\n  is {is}")),
            Some(_) => {}
        }
    }
    let new = after.0.iter().filter(|(path, _)| !before.0.contains_key(*path));
    differences.extend(new.map(|(path, is)| format!("{path}: new, is{is}")));
    differences.truncate(30);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn output(tree: &Path, command: &mut Command) -> Vec<u8> {
    let out = command.current_dir(tree).env("LC_ALL", "C").output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

const FORMAT: &str = "%P\\0%y\\0%m\\0%T@\\0%l\\0%s\\0%n\\0%U:%G\\0";

fn find(tree: &Path, all: &mut Oracle) {
    let listed = output(tree, Command::new("find").args([".", "-printf", FORMAT]));
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    for record in fields.chunks_exact(8) {
        let text = |at: usize| record[at].escape_ascii().to_string();
        // The size and link count of a directory belong to the filesystem.
        let size = if record[1] == b"d" { String::new() } else { format!("{} n{}", text(5), text(6)) };
        let value = format!("{} {} {} -> {} {size} {}", text(1), text(2), text(3), text(4), text(7));
        all.note(record[0], "find", &value);
    }
}

fn sums(tree: &Path, all: &mut Oracle) {
    let script = "find . -type f -size -1048576k -print0 | xargs -0 -r sha256sum -z";
    let listed = output(tree, Command::new("bash").args(["-o", "pipefail", "-c", script]));
    for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let (sum, path) = line.split_at(64);
        all.note(path[2..].strip_prefix(b"./").unwrap_or(path), "sha256", &String::from_utf8_lossy(sum));
    }
}

/// Parse the output of getfattr and getfacl: a line `# file: path`, more lines, an empty line.
fn blocks(tree: &Path, command: &mut Command, what: &str, all: &mut Oracle) {
    let listed = output(tree, command.stdin(Stdio::null()));
    let text = listed.escape_ascii().to_string().replace("\\n", "\n");
    for block in text.split("\n\n") {
        let Some((first, rest)) = block.trim_start_matches('\n').split_once('\n') else { continue };
        let path = first.trim_start_matches("# file: ");
        let mut lines: Vec<&str> = rest.lines().collect();
        lines.sort_unstable();
        // Such a path is escaped by the program, not by us: an entry of its own.
        let about = all.0.entry(format!("{what} {path}")).or_default();
        about.push_str(&lines.join(" "));
    }
}

/// Inode of every path.
pub fn inodes(tree: &Path) -> BTreeMap<String, String> {
    let listed = output(tree, Command::new("find").args([".", "-printf", "%P\\0%i\\0"]));
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    fields.chunks_exact(2).map(|pair| (text(pair[0]), text(pair[1]))).collect()
}
