//! What programs do to files, as data. A program that is not here may do anything.

mod files;
mod formatters;
mod readers;

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
    /// With one of these as its first operand (or two words), where it runs.
    Subcommand(&'static [&'static str]),
    /// Nothing is, unless it has one of these options.
    Reads(&'static [&'static str]),
    /// Nothing is with one of these as its first operand (or two words); an empty one: without any.
    ReadsWith(&'static [&'static str]),
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
pub(super) const HELP: &[&str] = &["--help", "--version"];

pub(super) fn find(name: &str) -> Option<&'static Program> {
    let tables = [files::FILES, formatters::FORMATTERS, readers::READERS];
    tables.into_iter().flatten().find(|program| program.names.contains(&name))
}

/// What `git` does without changing anything. Those with forms of their own are in [`GIT_FORMS`].
pub(super) const GIT: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "grep",
    "blame",
    "annotate",
    "shortlog",
    "describe",
    "rev-parse",
    "rev-list",
    "ls-files",
    "ls-tree",
    "cat-file",
    "for-each-ref",
    "show-ref",
    "show-branch",
    "name-rev",
    "merge-base",
    "diff-tree",
    "diff-index",
    "diff-files",
    "range-diff",
    "cherry",
    "whatchanged",
    "count-objects",
    "var",
    "verify-commit",
    "verify-tag",
    "check-ignore",
    "check-attr",
    "check-ref-format",
    "version",
    "get-tar-commit-id",
    "patch-id",
    "stripspace",
    "column",
];

/// Those of which only these forms change nothing; an empty one: without an operand.
pub(super) const GIT_FORMS: &[(&str, &[&str])] = &[
    ("stash", &["list", "show"]),
    ("branch", &[""]),
    ("tag", &[""]),
    ("remote", &["", "show", "get-url"]),
    ("worktree", &["list"]),
    ("submodule", &["status", "summary"]),
    ("reflog", &["", "show", "exists"]),
    ("notes", &["", "list", "show"]),
    ("bisect", &["log", "view", "visualize"]),
    ("lfs", &["ls-files", "status", "env"]),
    ("sparse-checkout", &["list"]),
    ("config", &["get", "list"]),
    ("bundle", &["verify", "list-heads"]),
    ("commit-graph", &["verify"]),
    ("multi-pack-index", &["verify"]),
];

/// Settings that a command of git may be given without any program coming of it.
pub(super) const GIT_SETTINGS: &[&str] =
    &["color.", "core.quotepath", "core.abbrev", "user.", "advice.", "log.", "column."];

/// Options with which any program runs another one.
pub(super) const RUNNING: &[&str] = &[
    "--checkpoint-action",
    "--to-command",
    "--use-compress-program",
    "--compress-program",
    "--info-script",
    "--new-volume-script",
    "--rmt-command",
    "--rsh-command",
    "--rsh",
    "--open-files-in-pager",
    "--ext-diff",
    "--exec",
];

/// Options of a list.
pub(super) const GIT_LISTING: &[&str] = &[
    "-a",
    "--all",
    "-r",
    "--remotes",
    "-v",
    "-vv",
    "--verbose",
    "--sort",
    "--format",
    "--column",
    "--color",
    "-n",
];

/// Options with which a command of git changes nothing, whatever else it is given.
pub(super) const GIT_DRY: &[(&str, &[&str])] = &[
    ("clean", &["-n", "--dry-run"]),
    ("add", &["-n", "--dry-run"]),
    ("rm", &["-n", "--dry-run"]),
    ("mv", &["-n", "--dry-run"]),
    ("push", &["-n", "--dry-run"]),
    ("branch", &["-l", "--list", "--contains", "--merged", "--no-merged", "--show-current", "--points-at"]),
    ("tag", &["-l", "--list", "--contains", "--points-at", "-v", "--verify"]),
    ("config", &["--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l", "--list"]),
];
