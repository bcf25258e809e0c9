//! Architecture checks: dependencies between crates, lints, and rules for the source text.

mod graph;
mod manifest;
mod source;
mod text;

use std::io;
use std::path::Path;

/// Violations of the rules, one line each; empty if there are none.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let crates = graph::read(root)?;
    let mut problems = graph::problems(&crates);
    problems.extend(manifest::problems(&crates)?);
    problems.extend(source::problems(root)?);
    Ok(problems)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_keeps_its_shape() {
        let problems = super::check(&crate::root()).unwrap();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }
}
