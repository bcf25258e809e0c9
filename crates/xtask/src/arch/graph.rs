//! The layering rule: a crate uses only crates of lower layers, never one beside it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Every crate of the design, with its layer. A crate that is not here fails the check, so that adding one is a
/// decision.
const LAYERS: &[(&str, u32)] = &[
    ("nono-sys", 0),
    ("nono-testkit", 0),
    ("nono-policy", 1),
    ("nono-snapshot", 1),
    ("nono-audit", 1),
    ("nono-history", 2),
    ("nono-checkpoint", 3),
    ("nono-sandbox", 2),
    ("nono-proxy", 2),
    ("nono-supervisor", 4),
    ("nono-agents", 5),
    ("nono-egress", 5),
    ("nono-catalogue", 5),
    ("nono", 6),
    ("nono-cli", 7),
    ("nono-py", 7),
];

/// Crates that are tools for the project: they may use anything, and nothing may use them.
const TOOLS: &[&str] = &["xtask", "nono-escape-tests", "nono-benches"];

/// A crate of the workspace and the names of everything it depends on.
#[derive(Debug)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) manifest: PathBuf,
    pub(super) uses: Vec<String>,
}

/// The workspace's crates, as cargo sees them. Build and test dependencies count like the others.
pub(super) fn read(root: &Path) -> io::Result<Vec<Crate>> {
    let output = Command::new(crate::cargo())
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let crates: Option<Vec<Crate>> =
        metadata["packages"].as_array().map(|list| list.iter().filter_map(package).collect());
    crates
        .filter(|crates| !crates.is_empty())
        .ok_or_else(|| io::Error::other("cargo metadata names no packages"))
}

fn package(value: &Value) -> Option<Crate> {
    let uses = value["dependencies"].as_array()?.iter().filter_map(|dependency| dependency["name"].as_str());
    Some(Crate {
        name: value["name"].as_str()?.to_owned(),
        manifest: value["manifest_path"].as_str()?.into(),
        uses: uses.map(str::to_owned).collect(),
    })
}

/// Every dependency that goes sideways or up, and every crate without a layer.
pub(super) fn problems(crates: &[Crate]) -> Vec<String> {
    let ours = |name: &str| crates.iter().any(|known| known.name == name);
    let mut problems = Vec::new();
    for one in crates {
        if is_tool(&one.name) {
            continue;
        }
        let Some(above) = layer(&one.name) else {
            problems
                .push(format!("{} has no layer: give it one in crates/xtask/src/arch/graph.rs", one.name));
            continue;
        };
        for target in one.uses.iter().filter(|name| ours(name)) {
            problems.extend(edge(&one.name, above, target));
        }
    }
    problems
}

fn edge(from: &str, above: u32, to: &str) -> Option<String> {
    if is_tool(to) {
        return Some(format!("{from} -> {to}: nothing may use a tool of the project"));
    }
    let below = layer(to)?;
    let direction = match below.cmp(&above) {
        std::cmp::Ordering::Less => return None,
        std::cmp::Ordering::Equal => "sideways",
        std::cmp::Ordering::Greater => "up",
    };
    Some(format!(
        "{from} (layer {above}) -> {to} (layer {below}): goes {direction}; a crate uses lower layers only"
    ))
}

fn layer(name: &str) -> Option<u32> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

fn is_tool(name: &str) -> bool {
    TOOLS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &[&str])]) -> Vec<String> {
        let crates: Vec<Crate> = edges
            .iter()
            .map(|(name, uses)| Crate {
                name: (*name).to_owned(),
                manifest: PathBuf::new(),
                uses: uses.iter().map(|name| (*name).to_owned()).collect(),
            })
            .collect();
        problems(&crates)
    }

    #[test]
    fn a_graph_that_goes_down_is_fine() {
        let fine = graph(&[
            ("nono-sys", &["libc"]),
            ("nono-policy", &["nono-sys", "serde"]),
            ("nono-sandbox", &["nono-policy", "nono-sys"]),
            ("nono", &["nono-sandbox", "nono-sys"]),
            ("nono-cli", &["nono", "clap"]),
            ("xtask", &["nono"]),
        ]);
        assert_eq!(fine, Vec::<String>::new());
    }

    #[test]
    fn edges_up_and_sideways_are_named() {
        let bad = graph(&[
            ("nono-sys", &["nono-policy"]),
            ("nono-policy", &["nono-snapshot"]),
            ("nono-snapshot", &[]),
            ("nono-supervisor", &["nono-sandbox", "nono-cli"]),
            ("nono-sandbox", &[]),
            ("nono-cli", &[]),
        ]);
        assert_eq!(bad.len(), 3, "{bad:#?}");
        assert!(bad[0].starts_with("nono-sys (layer 0) -> nono-policy (layer 1): goes up"));
        assert!(bad[1].starts_with("nono-policy (layer 1) -> nono-snapshot (layer 1): goes sideways"));
        assert!(bad[2].starts_with("nono-supervisor (layer 4) -> nono-cli (layer 7): goes up"));
    }

    #[test]
    fn a_crate_without_a_layer_and_a_tool_that_is_used_are_named() {
        let bad = graph(&[("nono-extra", &[]), ("nono", &["xtask"]), ("xtask", &[])]);
        assert_eq!(bad.len(), 2, "{bad:#?}");
        assert!(bad[0].starts_with("nono-extra has no layer"));
        assert!(bad[1].starts_with("nono -> xtask"));
    }
}
