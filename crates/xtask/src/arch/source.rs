//! Rules for the source text: files that may use `unsafe`, print, read the environment or test for the operating
//! system, and the maximum length of a file.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::text;

/// Words that only some paths may use. `tests`: tests and examples may use them anywhere.
struct WordRule {
    words: &'static [&'static str],
    allowed: &'static [&'static str],
    tests: bool,
    why: &'static str,
}

const RULES: &[WordRule] = &[
    WordRule {
        words: &["unsafe"],
        allowed: &["crates/sys/"],
        tests: false,
        why: "unsafe belongs to crates/sys",
    },
    WordRule {
        words: &["println!", "eprintln!", "print!", "eprint!", "process::exit"],
        allowed: &["crates/cli/", "crates/xtask/", "benches/", "crates/testkit/"],
        tests: true,
        why: "a library neither prints nor exits: return a value and let crates/cli print it",
    },
    WordRule {
        words: &[
            "env::var",
            "env::var_os",
            "env::vars",
            "env::vars_os",
            "env::args",
            "env::args_os",
            "env::home_dir",
        ],
        allowed: &["crates/cli/", "crates/py/", "crates/xtask/", "benches/", "crates/testkit/"],
        tests: true,
        why: "a library does not read the environment: the caller passes it in",
    },
    WordRule {
        words: &["target_os"],
        allowed: &["crates/sys/", "crates/sandbox/src/backend/"],
        tests: false,
        why: "only crates/sys and crates/sandbox/src/backend may test for the operating system",
    },
];

const LONGEST: usize = 500;

/// Files that may be longer, each with the reason.
const LONG: &[(&str, &str)] = &[];

/// One source file of the workspace.
pub(super) struct File {
    /// Relative to the workspace, with `/`.
    pub(super) name: String,
    path: PathBuf,
    source: String,
    code: String,
    /// Part of a test or an example, as a whole.
    is_test: bool,
}

impl File {
    /// Source of the product, without comments, strings and test items; nothing for a file of tests and their kit, of
    /// this tool or of the benchmarks.
    pub(super) fn product(&self) -> Option<String> {
        let tools = ["crates/xtask/", "crates/testkit/"];
        let ours = self.name.starts_with("crates/") && !tools.iter().any(|tool| self.name.starts_with(tool));
        (ours && !self.is_test).then(|| text::without_tests(&self.code))
    }

    /// Number of lines, tests at its end left out.
    pub(super) fn lines(&self) -> usize {
        let tests = self.code.find("\n#[cfg(test)]\nmod tests {").unwrap_or(self.source.len());
        self.source[..tests].lines().count()
    }
}

/// All source files, in the order of their names.
pub(super) fn files(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for folder in ["crates", "tests", "benches"] {
        collect(root, &root.join(folder), &mut files)?;
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let tests = test_files(&files);
    for file in &mut files {
        let folder = |name: &str| file.name.split('/').any(|part| part == name);
        // The path in `#[path = "x_tests.rs"]` is a literal, which the check does not see.
        let is_named = file.name.ends_with("_tests.rs");
        file.is_test = is_named || tests.contains(&file.path) || folder("tests") || folder("examples");
    }
    Ok(files)
}

pub(super) fn problems(files: &[File]) -> Vec<String> {
    let mut problems: Vec<String> = files.iter().flat_map(words).collect();
    problems.extend(lengths(files, LONG));
    problems
}

fn collect(root: &Path, dir: &Path, files: &mut Vec<File>) -> io::Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path)?;
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(File { name, code: text::code(&source), path, source, is_test: false });
        }
    }
    Ok(())
}

/// Files that some other file declares as `#[cfg(test)] mod name;`.
fn test_files(files: &[File]) -> HashSet<PathBuf> {
    files
        .iter()
        .flat_map(|file| {
            text::test_modules(&file.code).into_iter().flat_map(|name| module_files(&file.path, name))
        })
        .collect()
}

/// Possible files of a module that `parent` declares.
fn module_files(parent: &Path, name: &str) -> [PathBuf; 2] {
    let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|root| parent.ends_with(root));
    let dir = if is_root { parent.with_file_name("") } else { parent.with_extension("") };
    [dir.join(name).with_extension("rs"), dir.join(name).join("mod.rs")]
}

fn words(file: &File) -> Vec<String> {
    let product = text::without_tests(&file.code);
    let mut problems = Vec::new();
    for rule in RULES.iter().filter(|rule| !rule.allowed.iter().any(|place| file.name.starts_with(place))) {
        let code = match (rule.tests, file.is_test) {
            (true, true) => continue,
            (true, false) => &product,
            (false, _) => &file.code,
        };
        for word in rule.words {
            let lines = text::lines_with(code, word);
            problems.extend(lines.iter().map(|line| format!("{}:{line}: `{word}`: {}", file.name, rule.why)));
        }
    }
    problems
}

fn lengths(files: &[File], long: &[(&str, &str)]) -> Vec<String> {
    let allowed = |name: &str| long.iter().any(|(known, _)| *known == name);
    let mut problems = Vec::new();
    for file in files {
        let lines = file.source.lines().count();
        if lines > LONGEST && !allowed(&file.name) {
            problems.push(format!(
                "{}: {lines} lines; split it, or give a reason in crates/xtask/src/arch/source.rs",
                file.name
            ));
        }
        if lines <= LONGEST && allowed(&file.name) {
            problems.push(format!(
                "{}: no longer over {LONGEST} lines; take it off the list of long files",
                file.name
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, source: &str) -> File {
        let is_test = name.ends_with("tests.rs");
        File {
            name: name.into(),
            path: name.into(),
            source: source.into(),
            code: text::code(source),
            is_test,
        }
    }

    #[test]
    fn forbidden_words_are_found_where_they_may_not_stand() {
        let source = "fn f() { unsafe { g() }; println!(\"x\"); std::env::var(\"A\"); }\n";
        assert_eq!(words(&file("crates/policy/src/a.rs", source)).len(), 3);
        assert_eq!(words(&file("crates/cli/src/a.rs", source)).len(), 1);
        assert_eq!(words(&file("crates/sys/src/a.rs", source)).len(), 2);
        assert_eq!(words(&file("crates/policy/src/tests.rs", source)).len(), 1);
    }

    #[test]
    fn a_module_is_looked_for_where_rust_does() {
        assert_eq!(module_files(Path::new("a/mod.rs"), "tests")[0], Path::new("a/tests.rs"));
        assert_eq!(module_files(Path::new("a/b.rs"), "tests")[0], Path::new("a/b/tests.rs"));
        assert_eq!(module_files(Path::new("a/lib.rs"), "tests")[1], Path::new("a/tests/mod.rs"));
    }

    #[test]
    fn a_long_file_needs_a_reason() {
        let long = "\n".repeat(LONGEST + 1);
        let excused = [("crates/policy/src/b.rs", "a reason")];
        assert_eq!(lengths(&[file("crates/policy/src/a.rs", &long)], &excused).len(), 1);
        assert_eq!(lengths(&[file("crates/policy/src/b.rs", &long)], &excused).len(), 0);
        assert_eq!(lengths(&[file("crates/policy/src/b.rs", "")], &excused).len(), 1);
    }
}
