//! Cost of tracking a run: two snapshots around a command that does nothing, watching during a build, memory while
//! idle, and opening a review of ten thousand changes.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::measure::{Row, Table, median, time};
use crate::options::Options;
use crate::snapshot::ground::{Ground, Tools, run};
use crate::snapshot::tree::{Source, generate};
use crate::snapshot::{disk, helper_folder};

/// Number of files that change for the review.
const CHANGES: usize = 10_000;
const QUICK_CHANGES: usize = 200;

pub(crate) fn rows(options: &Options, table: &mut Table) {
    let (_folder, helper) = helper_folder();
    let tools = Tools { helper, calm: !options.quick };
    let disk = disk();
    let source = Source::find(options, &disk);
    let bench = Bench { ground: Ground::below(&disk, &tools), options };
    fs::copy(&options.nono, bench.nono()).expect("the nono binary");
    let tree = source.put(&bench.ground, "tree");
    bench.around(&tree, table);
    bench.idle(&tree, table);
    bench.watching(table);
    bench.review(table);
}

struct Bench<'a> {
    ground: Ground,
    options: &'a Options,
}

impl Bench<'_> {
    fn nono(&self) -> PathBuf {
        self.ground.path("nono")
    }

    /// nono as the ordinary user, in a folder.
    fn command(&self, dir: &Path, args: &[&str]) -> Command {
        let mut command = self.ground.command(self.nono());
        command.args(args).current_dir(dir).env("NONO_HOME", self.ground.path("state"));
        command.env("TMPDIR", self.ground.path("home")).stdin(Stdio::null());
        command
    }

    fn ms(&self, command: &mut Command) -> f64 {
        self.ground.calm();
        let begin = Instant::now();
        run(command);
        begin.elapsed().as_secs_f64() * 1e3
    }

    /// Baseline and final snapshot of a tree that does not change.
    fn around(&self, tree: &Path, table: &mut Table) {
        let git = format!("git --git-dir=../repository.git --work-tree=. -C {}", tree.display());
        self.ground.sh(&format!("git init -q --bare repository.git; {git} add -A"));
        let args = ["run", "--rollback", "--allow", ".", "--", "true"];
        run(&mut self.command(tree, &args));
        let (mut reference, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..self.options.short_rounds() {
            reference.push(self.ground.time(&format!("{git} add -A")));
            ours.push(self.ms(&mut self.command(tree, &args)));
        }
        let what = "`nono run --rollback -- true`, second time on, to `git add -A` unchanged";
        table.push(Row::times(what, median(reference), median(ours), "2.5"));
    }

    /// The supervisor's memory while its command waits.
    fn idle(&self, tree: &Path, table: &mut Table) {
        let mut command = self.command(tree, &["run", "--rollback", "--allow", ".", "--", "cat"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        let mut stdout = child.stdout.take().expect("piped");
        let mut reply = [0; 5];
        stdin.write_all(b"line\n").expect("cat reads");
        stdout.read_exact(&mut reply).expect("cat answers");
        // Everything is watched once the thread that does so sleeps; the memory is looked at until it stays the same.
        let resident = || {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it is alive");
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
            line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(0.0) / 1e3
        };
        let (mut last, mut same) = (resident(), 0);
        while same < 20 {
            std::thread::sleep(std::time::Duration::from_millis(200));
            let now = resident();
            same = if (now - last).abs() < 0.1 { same + 1 } else { 0 };
            last = now;
        }
        drop(stdin);
        child.wait().expect("it ends");
        table.push(Row::size("memory of the supervisor while idle, on that tree", last, "60 MB"));
    }

    /// Something like `make`: processes that read sources and write objects beside them. It tells its own time, so what
    /// is before and after it does not count.
    fn watching(&self, table: &mut Table) {
        let tree = self.ground.path("build");
        generate(&self.ground, &tree, 2000, 4000);
        let helper = self.ground.helper().display().to_string();
        let units = if self.options.quick { "20" } else { "1500" };
        let flags = ["run", "--allow", ".", "--read-file", &helper];
        let command = ["--", &helper, "build", ".", units];
        let plain = [flags.as_slice(), &command].concat();
        let tracked = [&flags[..1], &["--rollback", "--no-rollback-prompt"], &flags[1..], &command].concat();
        let number = |args: &[&str]| -> f64 {
            self.ground.calm();
            run(&mut self.command(&tree, args)).trim().parse().expect("its own time")
        };
        number(&tracked);
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..self.options.short_rounds() {
            without.push(number(&plain));
            with.push(number(&tracked));
        }
        table.push(Row::times(
            "a build that is watched, to one that is not",
            median(without),
            median(with),
            "1.02",
        ));
    }

    /// Time from the start of `rollback review` to the first complete screen.
    fn review(&self, table: &mut Table) {
        let count = if self.options.quick { QUICK_CHANGES } else { CHANGES };
        let tree = self.ground.path("changes");
        generate(&self.ground, &tree, count, 500);
        let script = "find . -name '*.c' -print0 | xargs -0 sed -i '1s/^/changed /'";
        run(&mut self.command(
            &tree,
            &["run", "--rollback", "--no-rollback-prompt", "--allow", ".", "--", "sh", "-c", script],
        ));
        let mut times = Vec::new();
        for _ in 0..self.options.rounds() {
            times.push(self.open_review(&tree));
        }
        let what = format!("a review of {count} changes opens");
        table.push(Row::fact(&what, time(median(times)), "100 ms"));
    }

    fn open_review(&self, tree: &Path) -> f64 {
        let line = format!("stty rows 24 cols 80; {} rollback review last", self.nono().display());
        let mut command = self.ground.command("script");
        command.args(["-qefc", &line, "/dev/null"]).current_dir(tree).env("TERM", "xterm-256color");
        command.env("NONO_HOME", self.ground.path("state")).env("TMPDIR", self.ground.path("home"));
        let begin = Instant::now();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script starts");
        let mut stdout = child.stdout.take().expect("piped");
        let (mut screen, mut buffer) = (Vec::new(), [0; 8192]);
        // The help line is drawn last.
        while !screen.windows(4).any(|part| part == b"quit" || part == b"help") {
            let count = stdout.read(&mut buffer).expect("it draws");
            assert!(count > 0, "no review: {}", String::from_utf8_lossy(&screen));
            screen.extend_from_slice(&buffer[..count]);
        }
        let took = begin.elapsed().as_secs_f64() * 1e3;
        // Its terminal is gone then, and it ends.
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        took
    }
}

/// The build: so many units, each a process of its own that reads a source, works, and writes an object. Prints how
/// long it took.
pub(crate) fn build(dir: &Path, units: usize) {
    let begin = Instant::now();
    let own = std::env::current_exe().expect("this program");
    for unit in 0..units {
        let source = dir.join(format!("part-0/module-{}/file-{}.c", unit / 100 % 100, unit % 2000));
        let status = Command::new(&own).arg("compile").arg(&source).status().expect("it starts");
        assert!(status.success(), "{}", source.display());
    }
    println!("{}", begin.elapsed().as_secs_f64() * 1e3);
}

pub(crate) fn compile(source: &Path) {
    use sha2::{Digest, Sha256};
    let bytes = fs::read(source).expect("a source");
    let mut state = Sha256::digest(&bytes);
    // Some milliseconds, as a small file takes a compiler.
    for _ in 0..200 {
        let mut hasher = Sha256::new();
        hasher.update(&bytes);
        hasher.update(state);
        state = hasher.finalize();
    }
    fs::write(source.with_extension("o"), state.repeat(64)).expect("an object");
}
