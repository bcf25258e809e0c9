//! Rules of the dependency tree, as `deny.toml` states them: licenses, sources, no open versions.
//!
//! `cargo deny check` knows more (advisories, text of licenses); compiling it takes longer than compiling nono, so a
//! clean clone checks the rules with cargo's own description of the tree.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Rules that are read from `deny.toml`.
struct Rules {
    targets: Vec<String>,
    licenses: BTreeSet<String>,
}

/// Check every package that is built for one of the targets.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let rules = Rules::read(&std::fs::read_to_string(root.join("deny.toml"))?)?;
    let mut problems = BTreeSet::new();
    for target in &rules.targets {
        problems.extend(packages(root, target)?.iter().flat_map(|package| rules.problems(package)));
    }
    Ok(problems.into_iter().collect())
}

impl Rules {
    fn read(text: &str) -> io::Result<Rules> {
        let table: toml::Table = toml::from_str(text).map_err(io::Error::other)?;
        let list = |section: &str, key: &str| {
            let values = table.get(section).and_then(|section| section.get(key)?.as_array());
            let values = values.ok_or_else(|| io::Error::other(format!("deny.toml: no {section}.{key}")))?;
            Ok::<_, io::Error>(values.iter().filter_map(|value| Some(value.as_str()?.to_owned())))
        };
        Ok(Rules {
            targets: list("graph", "targets")?.collect(),
            licenses: list("licenses", "allow")?.collect(),
        })
    }

    fn problems(&self, package: &Value) -> Vec<String> {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        let mut problems = Vec::new();
        if !self.allows(text("license")) {
            problems.push(format!("{name}: license {:?} is not in deny.toml", text("license")));
        }
        match package["source"].as_str() {
            // A package of the workspace.
            None => problems.extend(open_versions(package).map(|dependency| {
                format!("{name}: any version of {dependency} would do; name one in Cargo.toml")
            })),
            Some(REGISTRY) => {}
            Some(other) => problems.push(format!("{name}: from {other}, not from the registry")),
        }
        problems
    }

    fn allows(&self, license: &str) -> bool {
        // Old packages separate alternatives by a slash.
        let parsed = spdx::Expression::parse_mode(license, spdx::ParseMode::LAX);
        parsed.is_ok_and(|expression| {
            expression.evaluate(|requirement| self.licenses.contains(&requirement.to_string()))
        })
    }
}

/// Dependencies without a version that are not packages of the workspace.
fn open_versions(package: &Value) -> impl Iterator<Item = &str> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let open = dependencies.filter(|dependency| dependency["req"] == "*" && dependency["path"].is_null());
    open.filter_map(|dependency| dependency["name"].as_str())
}

/// Packages that are compiled for this target, as cargo describes them.
fn packages(root: &Path, target: &str) -> io::Result<Vec<Value>> {
    let output = Command::new(crate::cargo())
        .args([
            "metadata",
            "--locked",
            "--all-features",
            "--format-version",
            "1",
            "--filter-platform",
            target,
        ])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let mut metadata: Value = serde_json::from_slice(&output.stdout)?;
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let built: BTreeSet<String> = nodes.filter_map(|node| Some(node["id"].as_str()?.to_owned())).collect();
    let Value::Array(packages) = metadata["packages"].take() else { return Ok(Vec::new()) };
    Ok(packages
        .into_iter()
        .filter(|package| package["id"].as_str().is_some_and(|id| built.contains(id)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules() -> Rules {
        Rules::read(
            "[graph]\ntargets = [\"x\"]\n[licenses]\nallow = [\"MIT\", \"Apache-2.0 WITH LLVM-exception\"]\n",
        )
        .unwrap()
    }

    fn problems(package: &Value) -> Vec<String> {
        rules().problems(package)
    }

    #[test]
    fn a_license_is_allowed_by_one_alternative_or_by_all_parts() {
        for allowed in ["MIT", "MIT OR GPL-3.0", "Apache-2.0/MIT", "MIT AND Apache-2.0 WITH LLVM-exception"] {
            assert!(rules().allows(allowed), "{allowed}");
        }
        for refused in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "", "whatever"] {
            assert!(!rules().allows(refused), "{refused}");
        }
    }

    #[test]
    fn other_sources_and_open_versions_are_refused() {
        let fine = json!({"name": "a", "version": "1.0.0", "license": "MIT", "source": REGISTRY});
        assert_eq!(problems(&fine), Vec::<String>::new());
        let git =
            json!({"name": "a", "version": "1.0.0", "license": "MIT", "source": "git+https://example.org/a"});
        assert_eq!(problems(&git), ["a 1.0.0: from git+https://example.org/a, not from the registry"]);
        let dependencies =
            json!([{"name": "b", "req": "*", "path": null}, {"name": "c", "req": "*", "path": "/c"}]);
        let open = json!({"name": "a", "version": "1.0.0", "license": "MIT", "source": null, "dependencies": dependencies});
        assert_eq!(problems(&open), ["a 1.0.0: any version of b would do; name one in Cargo.toml"]);
    }
}
