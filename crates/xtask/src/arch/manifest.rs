//! Check that every crate inherits the workspace's lints, with few exceptions.

use std::io;

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
    Ok(problems)
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
    use super::inherits_lints;

    #[test]
    fn only_the_lints_section_counts() {
        assert!(inherits_lints("[package]\nname = \"a\"\n\n[lints]\nworkspace = true # all of them\n"));
        assert!(!inherits_lints("[package]\nversion.workspace = true\n"));
        assert!(!inherits_lints("[lints]\n# workspace = true\n[package]\nworkspace = true\n"));
    }
}
