//! Type names: a name that is defined in many places cannot be searched for.

use std::collections::BTreeMap;

use super::source::File;

/// Maximum number of definitions of one type name in the workspace.
const REPEATED: usize = 3;

const KINDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

/// Definitions of types in the product: name, and `file:line` of each.
pub(super) fn definitions(files: &[File]) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let Some(code) = file.product() else { continue };
        for (line, name) in defined(&code) {
            found.entry(name.to_owned()).or_default().push(format!("{}:{line}", file.name));
        }
    }
    found
}

/// Types that a source defines, with their lines. An associated type is part of a trait, not a name of its own; nor is the
/// `Result` of a module with its own error, as `std::io` has one.
fn defined(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().filter_map(|(at, line)| {
        let mut words =
            line.split_whitespace().skip_while(|word| word.starts_with("pub") || *word == "unsafe");
        let kind = words.next()?;
        if !KINDS.contains(&kind) || (kind == "type" && line.starts_with(' ')) {
            return None;
        }
        let name = words.next()?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        (end > 0 && &name[..end] != "Result").then(|| (at + 1, &name[..end]))
    })
}

pub(super) fn problems(definitions: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let often = definitions.iter().filter(|(_, places)| places.len() > REPEATED);
    often
        .map(|(name, places)| {
            format!(
                "type name `{name}` is defined {} times, {REPEATED} at most: {}",
                places.len(),
                places.join(" ")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_and_associated_types_are_not() {
        let code = "pub(crate) struct A<T>(T);\n    enum B {\nuse x::C;\n    type Item = u8;\ntype D = u8;\npub trait E: F {}\npub type Result<T> = u8;\n";
        let found: Vec<_> = defined(code).collect();
        assert_eq!(found, [(1, "A"), (2, "B"), (5, "D"), (6, "E")]);
    }

    #[test]
    fn a_name_may_be_defined_three_times() {
        let places = |count| [("A".to_owned(), vec!["x".to_owned(); count])].into();
        assert!(problems(&places(3)).is_empty());
        assert_eq!(problems(&places(4)).len(), 1);
    }
}
