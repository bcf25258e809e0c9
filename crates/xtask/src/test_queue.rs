//! `cargo xtask test`: all test programs, several at once, so that no processor is idle while one program ends with a
//! single long test. cargo itself runs them one after the other.
//!
//! Each has as many threads as there are processors: tests wait half of the time for other processes or the disk. More of
//! them at once only makes limits on time fail.
//!
//! cargo builds the programs and says which there are; each is started where cargo would start it. What one prints comes in
//! one piece when it ends, and what failed comes again at the end. Arguments are those for `cargo test`.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The programs that take longest, the longest first: whatever is started last is short. The others follow by name.
const LONGEST: [&str; 7] = [
    "nono-cli cli",
    "nono-escape-tests suite",
    "nono-snapshot snapshot",
    "nono-snapshot store_faults",
    "nono-checkpoint checkpoint",
    "nono-snapshot restore",
    "nono-supervisor stage",
];
/// Arguments that choose programs.
const CHOOSING: [&str; 6] = ["--test", "--tests", "--lib", "--bin", "--bins", "--all-targets"];
/// Number of programs in the table of the slowest.
const SHOWN: usize = 10;

/// One program with tests, or the tests in the documentation.
struct Program {
    /// Package and target.
    name: String,
    run: Vec<OsString>,
    dir: PathBuf,
}

/// Result of a program.
struct Ran {
    name: String,
    time: Duration,
    /// What it printed, if it failed.
    failed: Option<String>,
}

/// Build and run all tests; returns the names of what failed.
pub(super) fn run(root: &Path, cargo_args: &[&str]) -> io::Result<Vec<String>> {
    let mut programs = build(root, cargo_args)?;
    // cargo wants either these or chosen programs.
    if !cargo_args.iter().any(|arg| CHOOSING.contains(arg)) {
        programs.push(doc_tests(root, cargo_args));
    }
    programs.sort_by_cached_key(|program| {
        let place = LONGEST.iter().position(|name| *name == program.name);
        (place.unwrap_or(LONGEST.len()), program.name.clone())
    });
    let mut ran = run_all(programs)?;
    for (name, text) in ran.iter().filter_map(|one| Some((&one.name, one.failed.as_ref()?))) {
        crate::print(&format!("\n== {name}, which failed\n{}\n", failures(text)));
    }
    ran.sort_by_key(|one| std::cmp::Reverse(one.time));
    let slowest = ran.iter().take(SHOWN).map(|one| format!("{:<36}{:>5} s\n", one.name, one.time.as_secs()));
    let slowest: String = slowest.collect();
    crate::print(&format!("\nthe slowest test programs\n{slowest}"));
    if let Some(file) = std::env::var_os("NONO_TEST_SLOWEST") {
        std::fs::write(file, slowest)?;
    }
    Ok(ran.iter().filter(|one| one.failed.is_some()).map(|one| format!("{} failed", one.name)).collect())
}

/// Let cargo build the programs, and say which there are.
fn build(root: &Path, cargo_args: &[&str]) -> io::Result<Vec<Program>> {
    let mut cargo = Command::new(crate::cargo());
    cargo.arg("test").args(cargo_args).args(["--no-run", "--message-format=json-render-diagnostics"]);
    let built = cargo.current_dir(root).stderr(Stdio::inherit()).output()?;
    if !built.status.success() {
        return Err(io::Error::other("the tests were not built"));
    }
    let runner = root.join("scripts/run-test");
    let lines = built.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let programs = lines.map(|line| Ok(program(&serde_json::from_slice(line)?, &runner)));
    programs.filter_map(Result::transpose).collect()
}

/// The program of a message of cargo's, if it is about one with tests.
fn program(message: &Value, runner: &Path) -> Option<Program> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let dir = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = message["target"]["name"].as_str()?;
    Some(Program {
        name: format!("{} {target}", package(message["package_id"].as_str()?)),
        run: vec![runner.into(), message["executable"].as_str()?.into()],
        dir: dir.to_owned(),
    })
}

/// Name of a package by its id, which is `path+file:///folder/name#version` or `path+file:///folder/x#name@version`.
fn package(id: &str) -> &str {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    version.split_once('@').map_or_else(|| place.rsplit('/').next().unwrap_or(place), |(name, _)| name)
}

fn doc_tests(root: &Path, cargo_args: &[&str]) -> Program {
    let words = ["test", "--doc", "--quiet"].iter().chain(cargo_args).map(OsString::from);
    let run = std::iter::once(crate::cargo()).chain(words).collect();
    Program { name: "documentation".to_owned(), run, dir: root.to_owned() }
}

/// Run them, as many at once as there are processors.
fn run_all(programs: Vec<Program>) -> io::Result<Vec<Ran>> {
    let (queue, ran) = (Mutex::new(VecDeque::from(programs)), Mutex::new(Vec::new()));
    let at_once = std::thread::available_parallelism().map_or(2, usize::from);
    let work = || -> io::Result<()> {
        loop {
            let Some(program) = lock(&queue).pop_front() else { return Ok(()) };
            let one = run_one(program)?;
            lock(&ran).push(one);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the tests panicked")))
        })
    })?;
    Ok(ran.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn run_one(program: Program) -> io::Result<Ran> {
    // Whoever looks at a run that hangs sees what it hangs in.
    crate::print(&format!("   {} begins\n", program.name));
    let begun = Instant::now();
    let mut output = nameless_file()?;
    let mut command = Command::new(&program.run[0]);
    command.args(&program.run[1..]).current_dir(&program.dir).env("CARGO_MANIFEST_DIR", &program.dir);
    let status =
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?).status()?;
    let mut text = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut text)?;
    let (time, text) = (begun.elapsed(), String::from_utf8_lossy(&text).into_owned());
    let seconds = time.as_secs();
    crate::print(&format!("\n== {}: {status}, {seconds} s\n{text}", program.name));
    io::stdout().flush()?;
    Ok(Ran { name: program.name, time, failed: (!status.success()).then_some(text) })
}

/// A file for what a program prints. With a pipe, a process that it left behind would keep this one waiting.
fn nameless_file() -> io::Result<File> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("nono-tests-{}-{number}", std::process::id()));
    let file = File::options().read(true).append(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// The end of what a program printed, from its list of failures on; all of it if it has none.
fn failures(text: &str) -> &str {
    text.find("\nfailures:\n").map_or(text, |at| &text[at + 1..])
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends it")]

    use super::*;

    #[test]
    fn programs_with_tests_are_found_in_the_messages_of_cargo() {
        let message = |test: bool, id: &str| {
            serde_json::json!({
                "reason": "compiler-artifact", "package_id": id, "manifest_path": "/w/crates/cli/Cargo.toml",
                "target": { "name": "cli" }, "profile": { "test": test }, "executable": "/w/target/cli-1",
            })
        };
        let found = |message: &Value| program(message, Path::new("/w/scripts/run-test"));
        assert!(found(&message(false, "path+file:///w/crates/cli#nono-cli@0.1.0")).is_none());
        let one = found(&message(true, "path+file:///w/crates/cli#nono-cli@0.1.0")).unwrap();
        assert_eq!((one.name.as_str(), one.dir.as_path()), ("nono-cli cli", Path::new("/w/crates/cli")));
        assert_eq!(one.run, ["/w/scripts/run-test", "/w/target/cli-1"]);
        assert_eq!(found(&message(true, "path+file:///w/crates/xtask#0.1.0")).unwrap().name, "xtask cli");
    }

    /// One that fails does not keep the others from running, and what it printed is kept.
    #[test]
    fn all_are_run_and_what_failed_is_kept() {
        let program = |name: &str, script: &str| Program {
            name: name.to_owned(),
            run: ["sh", "-c", script].map(OsString::from).to_vec(),
            dir: std::env::temp_dir(),
        };
        let text = "echo one >&2; printf '\\nfailures:\\nit\\n'; exit 3";
        let programs = vec![program("bad", text), program("a", "true"), program("b", "true")];
        let mut ran = run_all(programs).unwrap();
        ran.sort_by(|a, b| a.name.cmp(&b.name));
        let failed: Vec<_> = ran.iter().map(|one| (one.name.as_str(), one.failed.as_deref())).collect();
        let said = "one\n\nfailures:\nit\n";
        assert_eq!(failed, [("a", None), ("b", None), ("bad", Some(said))]);
        assert_eq!(failures(said), "failures:\nit\n");
        assert_eq!(failures("killed"), "killed");
    }
}
