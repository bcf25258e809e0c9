//! What programs do to files, as data. A program that is not here is not judged destructive.

mod files;
mod projects;

use super::args::Values;

pub(super) struct Program {
    pub(super) names: &'static [&'static str],
    pub(super) rule: Rule,
    /// Options that take a value.
    pub(super) values: Values,
    /// With one of these it changes nothing.
    pub(super) unless: &'static [&'static str],
}

pub(super) enum Rule {
    /// Every operand is at risk, but for the first few.
    Operands(usize),
    /// The last operand is, or the folder that `-t` names.
    Last,
    /// With one of these options its operands are; without operands, where it runs.
    With(&'static [&'static str]),
    /// The values of these options are.
    Values(&'static [&'static str]),
    /// Where it runs, and its operands.
    Always,
    /// With one of these as its first operand (or two words), where it runs. An empty one: without any.
    Subcommand(&'static [&'static str]),
    /// With one of these as any operand, where it runs.
    AnyOperand(&'static [&'static str]),
}

const fn of(names: &'static [&'static str], rule: Rule) -> Program {
    Program { names, rule, values: &[], unless: &[] }
}

const fn with(names: &'static [&'static str], rule: Rule, values: Values) -> Program {
    Program { names, rule, values, unless: &[] }
}

const fn unless(
    names: &'static [&'static str],
    rule: Rule,
    values: Values,
    unless: &'static [&'static str],
) -> Program {
    Program { names, rule, values, unless }
}

/// Options that make a program only tell about itself.
const HELP: &[&str] = &["--help", "--version"];

pub(super) fn find(name: &str) -> Option<&'static Program> {
    files::FILES.iter().chain(projects::PROJECTS).find(|program| program.names.contains(&name))
}

/// What `git` does to files of the work tree, or to what only `.git` holds.
pub(super) const GIT: &[&str] = &[
    "reset",
    "clean",
    "checkout",
    "restore",
    "switch",
    "rebase",
    "pull",
    "merge",
    "apply",
    "am",
    "cherry-pick",
    "revert",
    "rm",
    "mv",
    "read-tree",
    "checkout-index",
    "sparse-checkout",
    "bisect",
    "filter-branch",
    "filter-repo",
    "subtree",
    "update-ref",
    "gc",
    "prune",
    "replace",
    "rerere",
    "stage-fixup",
    "unpack-file",
    "merge-file",
    "mergetool",
];

/// Those of which only some forms do.
pub(super) const GIT_FORMS: &[(&str, &[&str])] = &[
    ("submodule", &["update", "deinit", "foreach", "sync", "add", "absorbgitdirs"]),
    ("worktree", &["remove", "prune", "move"]),
    ("branch", &["-D", "-d", "--delete", "-f", "--force", "-M", "-m", "--move"]),
    ("tag", &["-d", "--delete", "-f", "--force"]),
    ("reflog", &["expire", "delete"]),
    ("lfs", &["pull", "checkout", "prune", "migrate"]),
    ("notes", &["remove", "prune"]),
    ("remote", &["remove", "rm", "prune"]),
];

/// In the text of a script of one line: what writes, removes or runs something else.
pub(super) const WRITING: &[&str] = &[
    // Python
    "unlink",
    "rmtree",
    "remove(",
    "removedirs",
    "rmdir",
    "rename(",
    "replace(",
    "shutil.",
    "write_text",
    "write_bytes",
    ".write(",
    "truncate",
    "os.system",
    "subprocess",
    "popen",
    "fileinput",
    "touch(",
    "symlink",
    "savetxt",
    "to_csv",
    "to_json(",
    "to_parquet",
    "json.dump(",
    "pickle.dump(",
    "yaml.dump(",
    "exec(",
    "copytree",
    "copyfile",
    // JavaScript
    "writefile",
    "appendfile",
    "createwritestream",
    "rmsync",
    "rm(",
    "unlinksync",
    "rmdirsync",
    "renamesync",
    "copyfilesync",
    "cpsync",
    "truncatesync",
    "mkdtemp",
    "child_process",
    "execsync",
    "spawn",
    "fs.promises",
    "deno.write",
    "deno.remove",
    "deno.rename",
    "bun.write",
    // Perl, Ruby, PHP, Lua
    "file.write",
    "file.delete",
    "fileutils",
    "io.write(",
    "file_put_contents",
    "fwrite",
    "fputs",
    "system(",
    "system ",
    "`",
    "qx",
    "os.remove",
    "os.rename",
    "os.execute",
    "dir.rmdir",
    "file.open",
    "io.open",
    "inplace",
];
