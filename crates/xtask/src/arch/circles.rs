//! Module circles: files of one crate that import from each other, so that none of them can be read or moved alone.
//!
//! A file depends on another when a `use` of it that is not a re-export names something there. Paths written in place
//! are not counted: they are few, and most lead from a parent to its own child.

use std::collections::{BTreeMap, BTreeSet};

use super::source::File;

/// Maximum number of files in a circle.
const LARGEST: usize = 6;

type Module = Vec<String>;

/// Circles of two files and more, the largest first; each as the sorted names of its files.
pub(super) fn circles(files: &[File]) -> Vec<Vec<String>> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, (&str, String)>> = BTreeMap::new();
    for file in files {
        let Some((name, path)) = file.name.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
        else {
            continue;
        };
        if let Some(code) = file.product() {
            crates.entry(name).or_default().insert(module(path), (&file.name, code));
        }
    }
    let mut found: Vec<Vec<String>> = crates.values().flat_map(in_crate).collect();
    found.sort_by_key(|circle| (std::cmp::Reverse(circle.len()), circle.clone()));
    found
}

pub(super) fn problems(circles: &[Vec<String>]) -> Vec<String> {
    let large = circles.iter().filter(|circle| circle.len() > LARGEST);
    large
        .map(|circle| {
            format!("{} files import from each other, {LARGEST} at most: {}", circle.len(), circle.join(" "))
        })
        .collect()
}

/// Module path of a file below `src/`.
fn module(path: &str) -> Module {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Module = path.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

fn in_crate(modules: &BTreeMap<Module, (&str, String)>) -> Vec<Vec<String>> {
    let names: Vec<&Module> = modules.keys().collect();
    let number: BTreeMap<&Module, usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let edges: Vec<BTreeSet<usize>> = modules
        .iter()
        .map(|(from, (_, code))| {
            let targets = imports(code).into_iter().filter_map(|path| target(from, &path, modules));
            targets.filter(|to| to != from).filter_map(|to| number.get(&to).copied()).collect()
        })
        .collect();
    let reached: Vec<BTreeSet<usize>> = (0..edges.len()).map(|from| reachable(from, &edges)).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for from in 0..edges.len() {
        let circle: BTreeSet<usize> =
            reached[from].iter().copied().filter(|to| reached[*to].contains(&from)).collect();
        if circle.len() > 1 && seen.is_disjoint(&circle) {
            circles.push(circle.iter().map(|at| modules[names[*at]].0.to_owned()).collect());
            seen.extend(circle);
        }
    }
    circles
}

/// Everything that can be reached from `from` by one edge or more.
fn reachable(from: usize, edges: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        next.extend(edges[at].iter().copied().filter(|to| reached.insert(*to)));
    }
    reached
}

/// Paths that a source imports, re-exports left out.
fn imports(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let before = &rest[..at];
        let line = before.rsplit('\n').next().unwrap_or_default();
        rest = &rest[at + 4..];
        if !line.trim().is_empty() {
            continue;
        }
        let Some(end) = rest.find(';') else { break };
        let tree: String = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        expand("", &tree, &mut paths);
        rest = &rest[end..];
    }
    paths
}

/// The single paths of a `use` tree: `a::{b, c::{d, e}}` is three.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, body)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        if !path.is_empty() {
            paths.push(format!("{prefix}{path}"));
        }
        return;
    };
    let body = body.strip_suffix('}').unwrap_or(body);
    let prefix = format!("{prefix}{}", head.trim());
    let (mut depth, mut start) = (0, 0);
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                expand(&prefix, &body[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    expand(&prefix, &body[start..], paths);
}

/// Module of this crate that an import leads to: the deepest one on its path.
fn target(from: &Module, path: &str, modules: &BTreeMap<Module, (&str, String)>) -> Option<Module> {
    let mut parts = path.split("::").peekable();
    let mut at = match *parts.peek()? {
        "crate" => {
            parts.next();
            Module::new()
        }
        "self" | "super" => from.clone(),
        first => {
            let child = below(from, first);
            return modules.contains_key(&child).then(|| deepest(from.clone(), parts, modules));
        }
    };
    while let Some(word @ ("self" | "super")) = parts.peek().copied() {
        parts.next();
        if word == "super" {
            at.pop()?;
        }
    }
    let found = deepest(at, parts, modules);
    modules.contains_key(&found).then_some(found)
}

fn below(module: &Module, name: &str) -> Module {
    let mut child = module.clone();
    child.push(name.to_owned());
    child
}

fn deepest<'a>(
    mut at: Module,
    parts: impl Iterator<Item = &'a str>,
    modules: &BTreeMap<Module, (&str, String)>,
) -> Module {
    for part in parts {
        let child = below(&at, part);
        if !modules.contains_key(&child) {
            break;
        }
        at = child;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_imports_is_its_paths_and_reexports_are_left_out() {
        let code = "use a::{b, c::{d, e as f}};\npub use x::Y;\n    use super::z;\nlet because = 1;\n";
        assert_eq!(imports(code), ["a::b", "a::c::d", "a::c::e", "super::z"]);
    }

    #[test]
    fn files_that_import_from_each_other_are_one_circle() {
        let source = [
            ("lib.rs", "use a::X;"),
            ("a.rs", "use crate::b::Y;"),
            ("b/mod.rs", "use self::c::Z;"),
            ("b/c.rs", "use super::super::a::X;"),
            ("d.rs", "use crate::a::X;"),
        ];
        let modules = source.iter().map(|(path, code)| (module(path), (*path, (*code).to_owned()))).collect();
        assert_eq!(in_crate(&modules), [["a.rs", "b/mod.rs", "b/c.rs"]]);
    }

    #[test]
    fn a_circle_above_the_limit_is_a_problem() {
        let circle = |files: usize| vec![(0..files).map(|n| format!("{n}.rs")).collect::<Vec<_>>()];
        assert_eq!(problems(&circle(LARGEST + 1)).len(), 1);
        assert!(problems(&circle(LARGEST)).is_empty());
    }
}
