//! Build artifacts, which tools can make again: one table, each line with its reason and its evidence.
//!
//! A directory is an artifact only by its name together with evidence, so that `src/build/` with sources in it is not
//! lost. For names that people use for other things too (`target`, `build`), the evidence is a file that the tool
//! itself puts inside; for names that belong to a tool (`.next`, `node_modules`), a file beside it from which it can be
//! made again is enough. Names without any possible evidence (`dist`, `out`, `bin`) are not listed. A directory of any
//! name is a cache if it has the tag of the Cache Directory Tagging Specification. Files are never artifacts: a name
//! proves nothing about a file's content, and one file costs little.

use once_cell::race::OnceBox;

use super::evidence::Evidence;
use super::glob::Glob;

/// A line of the table.
#[derive(Debug)]
struct Artifact {
    /// Name or glob.
    name: &'static str,
    what: &'static str,
    /// Evidence beside the directory; one of these is enough.
    beside: &'static [&'static str],
    /// Evidence inside the directory; one of these is enough.
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

static DIRECTORIES: &[Artifact] = &[
    dir(
        "node_modules",
        "packages installed by npm",
        &["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"],
        &[".package-lock.json", ".yarn-integrity", ".modules.yaml"],
    ),
    dir("bower_components", "packages installed by Bower", &["bower.json"], &[]),
    dir("target", "build output of cargo", &[], &[".rustc_info.json"]),
    dir("target", "build output of Maven", &[], &["maven-status", "maven-archiver"]),
    dir("target", "build output of sbt", &[], &["global-logging", "streams"]),
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
    dir("__pycache__", "compiled Python", &["*.py"], &[]),
    dir(".venv", "Python virtual environment", &[], &["pyvenv.cfg"]),
    dir("venv", "Python virtual environment", &[], &["pyvenv.cfg"]),
    dir("env", "Python virtual environment", &[], &["pyvenv.cfg"]),
    dir(".tox", "test environments of tox", PYTHON, &[]),
    dir(".nox", "test environments of nox", PYTHON, &[]),
    dir(".eggs", "packages fetched by setuptools", PYTHON, &[]),
    dir("*.egg-info", "package description made by setuptools", &[], &["PKG-INFO"]),
    dir(".mypy_cache", "cache of mypy", &["mypy.ini"], &[]),
    dir(".pytest_cache", "cache of pytest", &["pytest.ini"], &[]),
    dir(".ruff_cache", "cache of ruff", &["ruff.toml"], &[]),
    dir(".gradle", "cache of Gradle", GRADLE, &[]),
    dir("build", "build output of CMake", &[], &["CMakeCache.txt"]),
    dir("cmake-build-*", "build output of CMake", &[], &["CMakeCache.txt"]),
    dir("obj", "build output of .NET", &[], &["project.assets.json"]),
    dir(".build", "build output of Swift", &["Package.swift"], &[]),
    dir("Pods", "packages installed by CocoaPods", &[], &["Manifest.lock"]),
    dir(".dart_tool", "cache of Dart", &["pubspec.yaml"], &[]),
    dir(".terraform", "providers fetched by Terraform", &[".terraform.lock.hcl"], &[]),
    dir("_build", "build output of Mix", &[], &["dev/lib", "test/lib", "prod/lib"]),
    dir("_build", "build output of Dune", &[], &[".db"]),
    dir("elm-stuff", "build output of Elm", &["elm.json"], &[]),
    dir(".stack-work", "build output of Stack", &["stack.yaml"], &[]),
    dir("dist-newstyle", "build output of Cabal", &["cabal.project"], &[]),
    dir("zig-cache", "cache of Zig", &["build.zig"], &[]),
    dir(".zig-cache", "cache of Zig", &["build.zig"], &[]),
    dir("zig-out", "build output of Zig", &["build.zig"], &[]),
];

/// First bytes of a valid `CACHEDIR.TAG`.
const SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// The compiled table; lines that do not parse are dropped, and a test checks that there are none.
fn table() -> &'static [(Glob, &'static Artifact)] {
    static TABLE: OnceBox<Vec<(Glob, &'static Artifact)>> = OnceBox::new();
    let parse = |line: &'static Artifact| Some((Glob::parse(line.name).ok()?, line));
    TABLE.get_or_init(|| Box::new(DIRECTORIES.iter().filter_map(parse).collect()))
}

/// Whether a directory of this name may be an artifact.
pub(super) fn is_candidate(name: &[u8]) -> bool {
    table().iter().any(|(glob, _)| glob.matches(name))
}

/// Description of the artifact that a directory is, by its name and the evidence around it.
pub(super) fn directory(name: &[u8], around: &dyn Evidence) -> Option<&'static str> {
    // An empty marker is no evidence: no tool writes it so.
    let inside = |marker: &&str| around.is_filled(&[name, b"/", marker.as_bytes()].concat());
    let beside = |marker: &&str| match marker.strip_prefix('*') {
        Some(end) => around.any_ends_with(end.as_bytes()),
        None => around.is_filled(marker.as_bytes()),
    };
    // An empty directory is not build output.
    let proven = |artifact: &Artifact| {
        artifact.inside.iter().any(inside) || (artifact.beside.iter().any(beside) && !around.is_empty(name))
    };
    let lines = table().iter().filter(|(glob, _)| glob.matches(name));
    lines.map(|(_, artifact)| *artifact).find(|artifact| proven(artifact)).map(|artifact| artifact.what)
}

/// Description of a directory that is tagged as a cache.
pub(super) fn tagged(name: &[u8], around: &dyn Evidence) -> Option<&'static str> {
    let tag = [name, b"/CACHEDIR.TAG"].concat();
    around.begins_with(&tag, SIGNATURE).then_some("a cache, by its CACHEDIR.TAG")
}

/// Description of an artifact by name alone, when its evidence is gone.
pub(super) fn presumed(name: &[u8]) -> Option<&'static str> {
    directory(name, &super::freeze::Anything)
}

/// Table lines that are not globs or have no reason.
#[cfg(test)]
pub(super) fn broken_lines() -> Vec<&'static str> {
    let no_evidence = |line: &&Artifact| {
        Glob::parse(line.name).is_err()
            || line.what.is_empty()
            || line.beside.is_empty() && line.inside.is_empty()
    };
    DIRECTORIES.iter().filter(no_evidence).map(|line| line.name).collect()
}
