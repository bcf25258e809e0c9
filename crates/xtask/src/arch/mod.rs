//! The shape of the workspace, checked: which crate may use which, what may stand in its source, how often a type name
//! may be defined, and how many modules may depend on each other in a circle.

mod circles;
mod graph;
mod manifest;
mod names;
mod source;
mod text;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Everything that breaks a rule, one line each; empty is good.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let crates = graph::read(root)?;
    let files = source::files(root)?;
    let mut problems = graph::problems(&crates);
    problems.extend(manifest::problems(&crates)?);
    problems.extend(source::problems(&files));
    problems.extend(names::problems(&names::definitions(&files)));
    problems.extend(circles::problems(&circles::circles(&files)));
    Ok(problems)
}

/// The numbers behind the rules, as a page of text: lines by crate, repeated type names, module circles.
pub(crate) fn measure(root: &Path) -> io::Result<String> {
    let files = source::files(root)?;
    let mut page = String::from("lines of production code (all; without comments and empty lines)\n");
    let mut crates: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for file in &files {
        let Some(code) = file.product() else { continue };
        let name = file.name.split('/').nth(1).unwrap_or_default();
        let (lines, code_lines) = crates.entry(name).or_default();
        *lines += file.lines();
        *code_lines += code.lines().filter(|line| !line.trim().is_empty()).count();
    }
    let sum = crates.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    for (name, (lines, code)) in
        crates.iter().map(|(name, counts)| (*name, *counts)).chain([("together", sum)])
    {
        let _infallible = writeln!(page, "  {name:<12} {lines:>7} {code:>7}");
    }
    let definitions = names::definitions(&files);
    let repeated = definitions.values().filter(|places| places.len() > 1).count();
    let _infallible = writeln!(page, "type names defined more than once: {repeated}; most often:");
    let mut often: Vec<_> = definitions.iter().collect();
    often.sort_by_key(|(name, places)| (std::cmp::Reverse(places.len()), name.as_str()));
    for (name, places) in often.iter().take(5) {
        let _infallible = writeln!(page, "  {name:<20} {}", places.len());
    }
    let circles = circles::circles(&files);
    let _infallible = writeln!(page, "module circles: {}", circles.len());
    for circle in &circles {
        let _infallible = writeln!(page, "  {:>2}  {}", circle.len(), circle.join(" "));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_keeps_its_shape() {
        let problems = super::check(&crate::root()).unwrap();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }
}
