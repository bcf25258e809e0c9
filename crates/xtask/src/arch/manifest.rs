//! Check of the manifests: every crate inherits the workspace's lints, with few exceptions, and only crates without examples
//! in their documentation leave out documentation tests, each of which costs a compilation of the crate.

use std::io;
use std::path::Path;

use super::graph::Crate;

/// Crates with a list of their own: the home of `unsafe`, and measurements, which print and round.
const OWN_LINTS: &[&str] = &["nono-sys", "nono-benches"];

pub(super) fn problems(crates: &[Crate]) -> io::Result<Vec<String>> {
    let mut problems = Vec::new();
    for one in crates.iter().filter(|one| !OWN_LINTS.contains(&one.name.as_str())) {
        if !inherits_lints(&std::fs::read_to_string(&one.manifest)?) {
            problems.push(format!(
                "{} does not inherit the workspace's lints: add [lints] workspace = true",
                one.name
            ));
        }
    }
    for one in crates.iter().filter(|one| one.manifest.with_file_name("src/lib.rs").exists()) {
        let leaves_out = std::fs::read_to_string(&one.manifest)?.contains("doctest = false");
        match (leaves_out, has_examples(&one.manifest.with_file_name("src"))?) {
            (true, true) => {
                problems.push(format!("{} has examples that are not run: remove doctest = false", one.name));
            }
            (false, false) => {
                problems.push(format!("{} has no examples: add doctest = false to [lib]", one.name));
            }
            _ => {}
        }
    }
    Ok(problems)
}

/// Whether the documentation of a crate has examples in Rust.
fn has_examples(dir: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            has_examples(&path)?
        } else {
            path.extension().is_some_and(|end| end == "rs") && has_example(&std::fs::read_to_string(&path)?)
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the comments of a source file have an example in Rust. Every second fence closes a block.
fn has_example(source: &str) -> bool {
    let comments = source.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))
    });
    let mut opening = comments.filter_map(|text| text.trim().strip_prefix("```")).step_by(2);
    opening.any(|kind| matches!(kind, "" | "rust" | "no_run" | "should_panic" | "compile_fail"))
}

fn inherits_lints(manifest: &str) -> bool {
    let lines = manifest.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut section = "";
    for line in lines.filter(|line| !line.is_empty()) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[lints]" && line.replace(' ', "") == "workspace=true" {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{has_example, inherits_lints};

    #[test]
    fn only_rust_is_an_example() {
        assert!(has_example("//! ```no_run\n//! let x = 1;\n//! ```"));
        assert!(!has_example("//! ```toml\n//! x = 1\n//! ```"));
        assert!(!has_example("let fence = \"```\";"));
    }

    #[test]
    fn only_the_lints_section_counts() {
        assert!(inherits_lints("[package]\nname = \"a\"\n\n[lints]\nworkspace = true # all of them\n"));
        assert!(!inherits_lints("[package]\nversion.workspace = true\n"));
        assert!(!inherits_lints("[lints]\n# workspace = true\n[package]\nworkspace = true\n"));
    }
}
