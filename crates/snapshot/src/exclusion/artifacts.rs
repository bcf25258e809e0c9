//! What tools make and can make again: one table, each line with its reason and its evidence.
//!
//! A directory is an artifact by its name only together with evidence, so that `src/build/` with sources in it is not
//! lost: a marker beside it (`Cargo.toml` beside `target`) or inside it (`pyvenv.cfg` inside `.venv`). Where a name alone
//! proves nothing (`dist`, `out`, `bin`) it is not here: it is left out only when the ignore rules say so. Files have no
//! evidence but their name, so their verdict depends on nothing else in their directory.

use std::sync::LazyLock;

use super::glob::Glob;

/// One line of the table.
#[derive(Debug)]
struct Artifact {
    /// A name or a glob.
    name: &'static str,
    what: &'static str,
    /// One of these beside it is enough.
    beside: &'static [&'static str],
    /// One of these inside it is enough.
    inside: &'static [&'static str],
}

const fn dir(
    name: &'static str,
    what: &'static str,
    beside: &'static [&'static str],
    inside: &'static [&'static str],
) -> Artifact {
    Artifact { name, what, beside, inside }
}

const PACKAGE: &[&str] = &["package.json"];
const GRADLE: &[&str] =
    &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradlew"];
const PYTHON: &[&str] = &["pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py"];
const TAG: &[&str] = &["CACHEDIR.TAG"];

static DIRECTORIES: &[Artifact] = &[
    dir(
        "node_modules",
        "packages installed by npm",
        &["package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"],
        &[".package-lock.json", ".yarn-integrity", ".modules.yaml"],
    ),
    dir("bower_components", "packages installed by Bower", &["bower.json"], &[]),
    dir("target", "build output of cargo", &["Cargo.toml"], &[".rustc_info.json"]),
    dir("target", "build output of Maven", &["pom.xml"], &[]),
    dir("target", "build output of sbt", &["build.sbt"], &[]),
    dir(
        ".next",
        "build output of Next.js",
        &["package.json", "next.config.js", "next.config.mjs", "next.config.ts"],
        &[],
    ),
    dir(".nuxt", "build output of Nuxt", PACKAGE, &[]),
    dir(".svelte-kit", "build output of SvelteKit", PACKAGE, &[]),
    dir(".angular", "cache of Angular", &["angular.json"], &[]),
    dir(".parcel-cache", "cache of Parcel", PACKAGE, &[]),
    dir(".turbo", "cache of Turborepo", &["turbo.json", "package.json"], &[]),
    dir(".nyc_output", "coverage data of nyc", PACKAGE, &[]),
    // Made by Python alone, and only for this.
    dir("__pycache__", "compiled Python", &[], &["."]),
    dir(".venv", "Python virtual environment", &[], &["pyvenv.cfg"]),
    dir("venv", "Python virtual environment", &[], &["pyvenv.cfg"]),
    dir("env", "Python virtual environment", &[], &["pyvenv.cfg"]),
    dir(".tox", "test environments of tox", PYTHON, &[]),
    dir(".nox", "test environments of nox", PYTHON, &[]),
    dir(".eggs", "packages fetched by setuptools", PYTHON, &[]),
    dir("*.egg-info", "package description made by setuptools", &[], &["PKG-INFO"]),
    dir(".mypy_cache", "cache of mypy", &["mypy.ini"], TAG),
    dir(".pytest_cache", "cache of pytest", &["pytest.ini"], TAG),
    dir(".ruff_cache", "cache of ruff", &["ruff.toml"], TAG),
    dir(".cache", "a cache", &[], TAG),
    dir(".gradle", "cache of Gradle", GRADLE, &[]),
    dir("build", "build output of CMake", &[], &["CMakeCache.txt"]),
    dir("cmake-build-*", "build output of CMake", &[], &["CMakeCache.txt"]),
    dir("obj", "build output of .NET", &[], &["project.assets.json"]),
    dir(".build", "build output of Swift", &["Package.swift"], &[]),
    dir("Pods", "packages installed by CocoaPods", &["Podfile"], &["Manifest.lock"]),
    dir(".dart_tool", "cache of Dart", &["pubspec.yaml"], &[]),
    dir(".terraform", "providers fetched by Terraform", &[".terraform.lock.hcl"], &[]),
    dir("_build", "build output of Mix", &["mix.exs"], &[]),
    dir("_build", "build output of Dune", &["dune-project"], &[]),
    dir("elm-stuff", "build output of Elm", &["elm.json"], &[]),
    dir(".stack-work", "build output of Stack", &["stack.yaml"], &[]),
    dir("dist-newstyle", "build output of Cabal", &["cabal.project"], &[]),
    dir("zig-cache", "cache of Zig", &["build.zig"], &[]),
    dir(".zig-cache", "cache of Zig", &["build.zig"], &[]),
    dir("zig-out", "build output of Zig", &["build.zig"], &[]),
];

static FILES: &[(&str, &str)] = &[
    ("*.pyc", "compiled Python"),
    ("*.pyo", "compiled Python"),
    ("*.tmp.[0-9]*.[0-9]*", "temporary file of an unfinished write"),
];

struct Table {
    directories: Vec<(Glob, &'static Artifact)>,
    files: Vec<(Glob, &'static str)>,
}

/// A line that does not parse is a mistake in the table; a test sees to it that there is none.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table {
    directories: DIRECTORIES.iter().filter_map(|line| Some((Glob::parse(line.name).ok()?, line))).collect(),
    files: FILES.iter().filter_map(|(name, what)| Some((Glob::parse(name).ok()?, *what))).collect(),
});

/// The artifact a file is, by its name.
pub(super) fn file(name: &[u8]) -> Option<&'static str> {
    TABLE.files.iter().find(|(glob, _)| glob.matches(name)).map(|(_, what)| *what)
}

/// Whether a directory of this name may be an artifact.
pub(super) fn is_candidate(name: &[u8]) -> bool {
    TABLE.directories.iter().any(|(glob, _)| glob.matches(name))
}

/// The artifact a directory is. `exists` is asked for `marker` beside it and for `name/marker` inside it.
pub(super) fn directory(name: &[u8], exists: &dyn Fn(&[u8]) -> bool) -> Option<&'static str> {
    let proven = |artifact: &Artifact| {
        artifact.beside.iter().any(|marker| exists(marker.as_bytes()))
            || artifact.inside.iter().any(|marker| {
                // The name alone says it.
                *marker == "." || exists(&[name, b"/", marker.as_bytes()].concat())
            })
    };
    let lines = TABLE.directories.iter().filter(|(glob, _)| glob.matches(name));
    lines.map(|(_, artifact)| *artifact).find(|artifact| proven(artifact)).map(|artifact| artifact.what)
}

/// What an artifact of this name is called when its evidence is gone.
pub(super) fn presumed(name: &[u8]) -> Option<&'static str> {
    directory(name, &|_| true)
}

/// Lines that are not globs, or say nothing about why.
#[cfg(test)]
pub(super) fn broken_lines() -> Vec<&'static str> {
    let no_evidence = |line: &&Artifact| {
        Glob::parse(line.name).is_err()
            || line.what.is_empty()
            || line.beside.is_empty() && line.inside.is_empty()
    };
    let directories = DIRECTORIES.iter().filter(no_evidence).map(|line| line.name);
    let files = FILES.iter().filter(|(name, what)| Glob::parse(name).is_err() || what.is_empty());
    directories.chain(files.map(|(name, _)| *name)).collect()
}
