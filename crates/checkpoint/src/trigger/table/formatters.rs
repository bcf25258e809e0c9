//! Formatters and linters: their operands are what they rewrite.

use super::Rule::{Always, With};
use super::{Program, of, unless, with};

const CHECKS: &[&str] =
    &["--check", "--check-only", "--diff", "--dry-run", "--list-different", "--help", "--version"];

pub(super) const FORMATTERS: &[Program] = &[
    unless(
        &[
            "rustfmt",
            "black",
            "isort",
            "blue",
            "pyupgrade",
            "autoflake8",
            "swiftformat",
            "nixfmt",
            "alejandra",
            "phpcbf",
            "gci",
        ],
        Always,
        &["--config", "--config-path", "--edition", "-l", "--line-length"],
        CHECKS,
    ),
    with(&["gofmt", "goimports", "gofumpt", "shfmt"], With(&["-w", "--write"]), &["-r", "-i", "-ln"]),
    with(&["clang-format"], With(&["-i"]), &["-style", "--style"]),
    of(
        &["autopep8", "yapf", "docformatter", "autoflake", "codespell"],
        With(&["-i", "--in-place", "--inplace", "-w", "--write-changes"]),
    ),
    of(
        &[
            "prettier",
            "biome",
            "rome",
            "oxlint",
            "markdownlint",
            "markdownlint-cli2",
            "dprint",
            "xo",
            "standard",
            "tslint",
        ],
        With(&["-w", "--write", "--fix", "--apply", "--apply-unsafe"]),
    ),
    of(
        &["eslint", "stylelint", "eslint_d", "golangci-lint", "sqlfluff", "ktlint", "textlint", "pint"],
        With(&["--fix", "--fix-dry-run", "-F", "--format"]),
    ),
    of(
        &["rubocop", "standardrb"],
        With(&[
            "-a",
            "-A",
            "--autocorrect",
            "--autocorrect-all",
            "--auto-correct",
            "--auto-correct-all",
            "--fix",
            "-x",
        ]),
    ),
];
