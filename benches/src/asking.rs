//! Cost of answering trapped calls, compared with a program without a sandbox and with the minimum cost of trapping:
//! `reference/notify_loop.c`, which lets every open pass.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::measure::{Row, Table, median, time};
use crate::options::Options;
use crate::snapshot::ground::{Ground, Tools, has, run};
use crate::snapshot::tree::Source;
use crate::snapshot::{disk, helper_folder};

const LOOP: &str = include_str!("../reference/notify_loop.c");
/// C files of the build.
const UNITS: usize = 40;

pub(crate) fn rows(options: &Options, table: &mut Table) {
    if !has("cc") {
        eprintln!("skipped: answering trapped calls, because there is no C compiler for the reference");
        return;
    }
    let (_folder, helper) = helper_folder();
    let tools = Tools { helper, calm: false };
    let disk = disk();
    let source = Source::find(options, &disk);
    let bench = Bench { ground: Ground::below(&disk, &tools), options };
    fs::copy(&options.nono, bench.path("nono")).expect("the nono binary");
    fs::write(bench.path("loop.c"), LOOP).expect("the reference");
    run(Command::new("cc").args(["-O2", "-o"]).arg(bench.path("loop")).arg(bench.path("loop.c")));
    let tree = source.put(&bench.ground, "tree");
    bench.opens(&tree, table);
    if has("rg") {
        bench.program("`rg` over the tree", &tree, &["rg", "-c", "e"], table);
    } else {
        eprintln!("skipped: rg, which is not installed");
    }
    bench
        .ground
        .sh("cd tree && git init -q && git add -A && git -c user.name=b -c user.email=b@b commit -qm b");
    bench.program("`git status`", &tree, &["git", "status", "--short"], table);
    bench.question(table);
    bench.passes_through(table);
    let build = bench.sources();
    bench.program("a build of 40 C files", &build, &["make", "-s", "-B", "-j2"], table);
}

struct Bench<'a> {
    ground: Ground,
    options: &'a Options,
}

/// Way in which a program is run.
#[derive(Clone, Copy)]
enum Way {
    Bare,
    /// Under the reference loop.
    Loop,
    /// `nono run`: no open is trapped.
    Run,
    /// `nono run --ask`.
    Ask,
}

impl Bench<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.ground.path(name)
    }

    fn command(&self, way: Way, dir: &Path, words: &[&str]) -> Command {
        let nono: &[&str] = match way {
            Way::Bare | Way::Loop => &[],
            Way::Run => &["run", "--allow", "."],
            Way::Ask => &["run", "--ask", "--approve", "deny", "--allow", "."],
        };
        let helper = self.ground.helper().display().to_string();
        let program = match way {
            Way::Bare => words[0].into(),
            Way::Loop => self.path("loop").into_os_string(),
            Way::Run | Way::Ask => self.path("nono").into_os_string(),
        };
        let mut command = self.ground.command(program);
        command.args(nono);
        match way {
            Way::Bare => command.args(&words[1..]),
            Way::Loop => command.args(words),
            Way::Run | Way::Ask => command.args(["--read-file", &helper, "--"]).args(words),
        };
        command.current_dir(dir).env("NONO_HOME", self.path("state")).env("TMPDIR", self.path("home"));
        command.stdin(Stdio::null());
        command
    }

    /// One open and close of a granted file. The loop tells its own time.
    fn opens(&self, tree: &Path, table: &mut Table) {
        let helper = self.ground.helper().display().to_string();
        let dir = tree.display().to_string();
        let words = [helper.as_str(), "open-loop", &dir];
        let number =
            |way| -> f64 { run(&mut self.command(way, tree, &words)).trim().parse().expect("its own time") };
        fs::write(tree.join("file"), "content").expect("a file");
        let mut times = [Way::Bare, Way::Loop, Way::Ask].map(|way| (way, Vec::new()));
        for _ in 0..self.options.short_rounds() {
            for (way, times) in &mut times {
                times.push(number(*way));
            }
        }
        let [bare, reference, ours] = times.map(|(_, times)| median(times));
        table.push(Row::nanoseconds("a trapped and granted open, to the reference", reference, ours, "1.5"));
        table.push(Row::nanoseconds("the same, to an open without a sandbox", bare, ours, "-"));
    }

    fn program(&self, what: &str, dir: &Path, words: &[&str], table: &mut Table) {
        let mut times = [Way::Bare, Way::Loop, Way::Run, Way::Ask].map(|way| (way, Vec::new()));
        for round in 0..=self.options.rounds() {
            for (way, times) in &mut times {
                let mut command = self.command(*way, dir, words);
                let begin = Instant::now();
                run(&mut command);
                // The first fills caches.
                if round > 0 {
                    times.push(begin.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        let [bare, reference, inside, asked] = times.map(|(_, times)| median(times));
        table.push(Row::times(&format!("{what} under --ask, to the reference"), reference, asked, "1.15"));
        table.push(Row::times(&format!("{what} without --ask, to no sandbox"), bare, inside, "1.06"));
    }

    /// Time from a call to the prompt on the screen, with a program that notes when it calls.
    fn question(&self, table: &mut Table) {
        let (inside, outside) = (self.path("project"), self.path("home").join("letter"));
        fs::create_dir(&inside).expect("a folder");
        fs::write(&outside, "Dear Bob").expect("a letter");
        self.ground.give(&[&inside, &outside]);
        let helper = self.ground.helper().display();
        let line = format!(
            "stty rows 24 cols 120; {} run --ask --allow . --read-file {helper} -- {helper} call-at stamp {}",
            self.path("nono").display(),
            outside.display()
        );
        let mut times = Vec::new();
        for _ in 0..self.options.rounds() {
            let mut terminal = self.terminal(&inside, &line);
            // The keys are named below it later, when they count.
            terminal.until(b" wants to ");
            let now = monotonic_ms();
            let stamp: f64 =
                fs::read_to_string(inside.join("stamp")).expect("a note").parse().expect("a time");
            times.push(now - stamp);
        }
        table.push(Row::fact("a question appears, after the call", time(median(times)), "50 ms"));
    }

    /// Output through the command's own terminal, with and without a screen that is kept for questions.
    fn passes_through(&self, table: &mut Table) {
        let dir = self.path("project");
        let megabytes = if self.options.quick { 1 } else { 100 };
        let helper = self.ground.helper().display();
        let nono = self.path("nono");
        let mut times = ["", "--ask"].map(|ask| (ask, Vec::new()));
        for _ in 0..self.options.rounds() {
            for (ask, times) in &mut times {
                let line = format!(
                    "{} run {ask} --allow . --read-file {helper} -- {helper} spew {megabytes}",
                    nono.display()
                );
                let begin = Instant::now();
                self.terminal(&dir, &line).until(b"that was all");
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
        let [plain, asking] = times.map(|(_, times)| median(times));
        let what = format!("{megabytes} MB through the command's terminal under --ask, to without");
        table.push(Row::times(&what, plain, asking, "-"));
        let rate = format!("{:.0} MB/s", f64::from(megabytes) / (asking / 1e3));
        table.push(Row::fact("that is, under --ask", rate, "10 MB/s"));
    }

    /// A command on a terminal of its own.
    fn terminal(&self, dir: &Path, line: &str) -> Terminal {
        let mut command = self.ground.command("script");
        command.args(["-qefc", line, "/dev/null"]).current_dir(dir).env("TERM", "xterm-256color");
        command.env("NONO_HOME", self.path("state")).env("TMPDIR", self.path("home"));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script starts");
        Terminal(child)
    }

    /// Something small to build, with the headers that C programs usually have.
    fn sources(&self) -> PathBuf {
        let dir = self.path("build");
        fs::create_dir(&dir).expect("a folder");
        let headers =
            ["stdio", "stdlib", "string", "unistd", "sys/stat", "sys/socket", "time", "math", "pthread"];
        let includes = headers.map(|name| format!("#include <{name}.h>")).join("\n");
        let objects: Vec<String> = (0..UNITS).map(|unit| format!("unit{unit}.o")).collect();
        for unit in 0..UNITS {
            let text =
                format!("{includes}\nint unit_{unit}(int x) {{ return printf(\"%d\", x + {unit}); }}\n");
            fs::write(dir.join(format!("unit{unit}.c")), text).expect("a source");
        }
        fs::write(dir.join("Makefile"), format!("all: {}\n", objects.join(" "))).expect("a makefile");
        self.ground.give(&[&dir]);
        dir
    }
}

/// Ended when dropped.
struct Terminal(Child);

impl Terminal {
    /// Reads until these bytes have come.
    fn until(&mut self, wanted: &[u8]) {
        let stdout = self.0.stdout.as_mut().expect("piped");
        let (mut last, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            let count = stdout.read(&mut buffer).expect("it draws");
            assert!(
                count > 0,
                "no {:?}: {}",
                String::from_utf8_lossy(wanted),
                String::from_utf8_lossy(&last)
            );
            last.extend_from_slice(&buffer[..count]);
            if last.windows(wanted.len()).any(|part| part == wanted) {
                return;
            }
            let keep = last.len().min(4096);
            last.drain(..last.len() - keep);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Its terminal is gone then, and the command ends.
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

/// Time of a clock that all processes share, in milliseconds.
fn monotonic_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Note the time, and open what was not granted.
pub(crate) fn call_at(note: &Path, wanted: &Path) {
    fs::write(note, monotonic_ms().to_string()).expect("a note");
    // It is refused or the terminal goes: both are fine.
    let _ = fs::File::open(wanted);
}

/// Prints this many megabytes of text.
pub(crate) fn spew(megabytes: usize) {
    let line = [b"0123456789 abcdefghijklmnopqrstuvwxyz".repeat(2), b"\r\n".to_vec()].concat();
    let block = line.repeat(1 + 65536 / line.len());
    let mut out = std::io::stdout().lock();
    let mut left = megabytes * 1_000_000;
    while left > 0 {
        let part = &block[..block.len().min(left)];
        out.write_all(part).expect("the output is read");
        left -= part.len();
    }
    out.write_all(b"\r\nthat was all\r\n").expect("the output is read");
    out.flush().expect("the output is read");
}
