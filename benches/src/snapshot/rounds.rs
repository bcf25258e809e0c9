//! The rows for one tree on one filesystem.

use std::collections::BTreeMap;
use std::fs;

use super::ground::{Ground, Report, Session};
use super::trace;
use super::tree::{Source, Victims};
use crate::measure::{Row, Table, bytes, median, time};
use crate::options::Options;

/// Number of files changed in rounds with some changes.
const SOME: usize = 100;

/// A tree, and what was found out about it so far.
pub(crate) struct Rounds<'a> {
    options: &'a Options,
    source: &'a Source,
    ground: &'a Ground,
    session: Session<'a>,
    git: String,
    victims: Victims,
    /// Times of the first capture.
    first: Vec<f64>,
    disk: f64,
    files: f64,
    directories: f64,
    unchanged: f64,
    /// The highest of each operation.
    memory: BTreeMap<String, f64>,
    table: &'a mut Table,
}

impl<'a> Rounds<'a> {
    pub(crate) fn new(
        options: &'a Options,
        source: &'a Source,
        ground: &'a Ground,
        table: &'a mut Table,
    ) -> Rounds<'a> {
        eprintln!("{}: copying the tree", ground.fs);
        let tree = source.put(ground, "tree");
        let session = ground.session("main", &tree);
        let git =
            format!("GIT_DIR='{}' GIT_WORK_TREE='{}' git", ground.path("git").display(), tree.display());
        Rounds {
            options,
            source,
            ground,
            session,
            git,
            victims: Victims::choose(&tree, &[], 1),
            first: Vec::new(),
            disk: 0.0,
            files: 0.0,
            directories: 0.0,
            unchanged: 0.0,
            memory: BTreeMap::new(),
            table,
        }
    }

    pub(crate) fn all(&mut self, goal_of_the_first: &'static str) {
        self.first_capture(goal_of_the_first);
        self.first_git();
        self.settle();
        self.verify();
        self.again();
        self.compare();
        self.further_sessions();
        self.restore();
        self.peak_memory("120 MB");
    }

    fn progress(&self, stage: &str) {
        eprintln!("{}: {stage}", self.ground.fs);
    }

    fn run(&mut self, operation: &str) -> Report {
        let report = self.session.run(operation);
        self.remember(operation, &report);
        report
    }

    fn remember(&mut self, operation: &str, report: &Report) {
        let peak = self.memory.entry(operation.to_owned()).or_default();
        *peak = peak.max(report.peak());
    }

    fn what(&self, what: &str) -> String {
        format!("{}: {what}", self.ground.fs)
    }

    fn first_capture(&mut self, goal: &'static str) {
        self.progress("first capture");
        let (mut copy, mut read) = (Vec::new(), Vec::new());
        let rounds = self.options.rounds();
        for round in 0..rounds {
            read.push(self.ground.time("find tree -type f -print0 | xargs -0 cat > /dev/null"));
            copy.push(self.ground.time("cp -a tree copy"));
            self.ground.sh("rm -rf copy");
            let report = self.run("baseline");
            self.first.push(report.ms());
            (self.files, self.directories) = (report.get("files"), report.get("directories"));
            if round + 1 < rounds {
                self.session.remove();
            }
        }
        let first = median(self.first.clone());
        let what = self.what("first capture, to `cp -a`");
        self.table.push(Row::times(&what, median(copy), first, goal));
        let what = self.what("first capture, to reading every file");
        self.table.push(Row::times(&what, median(read), first, "-"));
    }

    /// Measures git once, since it takes long.
    fn first_git(&mut self) {
        self.progress("git, for the first time");
        self.ground.sh("git init --quiet --bare git");
        let took = self.ground.time(&format!("{} add -A", self.git));
        let tracked = self.ground.sh(&format!("cd tree && {} ls-files", self.git));
        let tracked: Vec<String> = tracked.lines().map(str::to_owned).collect();
        self.source.check(tracked.len());
        self.victims = Victims::choose(&self.session.tree, &tracked, SOME);
        let what = self.what("first capture, to `git add -A` into a fresh repository");
        self.table.push(Row::times(&what, took, median(self.first.clone()), "-"));
    }

    fn settle(&mut self) {
        self.progress("settling");
        let before = self.session.disk();
        let report = self.run("settle");
        self.disk = self.session.disk();
        let size =
            self.ground.sh("find tree -type f -printf '%s\\n' | awk '{ sum += $1 } END { print sum }'");
        let size: f64 = size.trim().parse().expect("a sum");
        let what = self.what("disk once settled, to the tree's bytes");
        self.table.push(Row::bytes(&what, size, self.disk, "0.30"));
        let what = self.what("settling after the first capture");
        let took = format!("{} ({} before)", time(report.ms()), bytes(before));
        self.table.push(Row::fact(&what, took, "-"));
    }

    fn verify(&mut self) {
        self.progress("verify");
        let helper = self.ground.helper().display().to_string();
        self.ground.sh(&format!("'{helper}' compress tree reference"));
        let (mut reference, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..self.options.rounds() {
            self.ground.calm();
            let took = self.ground.sh(&format!("'{helper}' decompress reference"));
            reference.push(took.trim().parse().expect("a time"));
            ours.push(self.run("verify").ms());
        }
        self.ground.sh("rm -rf reference");
        let what =
            self.what("verify everything, to `zstd -d` and SHA-256 of the same bytes on all processors");
        self.table.push(Row::times(&what, median(reference), median(ours), "1.5"));
    }

    /// Unchanged, with some files changed, and these restored.
    fn again(&mut self) {
        self.progress("unchanged, and some files changed");
        let add = format!("{} add -A", self.git);
        let (mut git, mut find) = (Vec::new(), Vec::new());
        let (mut unchanged, mut changed, mut restored) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.options.short_rounds() {
            // What the last round restored is new to both.
            self.ground.sh(&add);
            self.session.run("incremental");
            git.push(self.ground.time(&add));
            find.push(self.ground.time("find tree -printf '%p %s %T@ %m %i\\n' > /dev/null"));
            let report = self.run("incremental");
            assert_eq!(report.changes(), 0, "nothing was changed");
            unchanged.push(report.ms());
            self.victims.change(SOME, &format!("captured {round}"));
            let report = self.run("incremental");
            assert_eq!(report.changes(), SOME, "this many were changed");
            changed.push(report.ms());
            self.session.run("restore");
            self.session.run("incremental");
            self.victims.change(SOME, &format!("restored {round}"));
            let report = self.run("restore");
            assert_eq!(report.changes(), SOME, "this many were changed");
            restored.push(report.ms());
        }
        self.unchanged = median(unchanged);
        let mut row = |what: &str, reference, ours, goal| {
            self.table.push(Row::times(&format!("{}: {what}", self.ground.fs), reference, ours, goal));
        };
        row("capture again unchanged, to `git add -A` unchanged", median(git), self.unchanged, "1.0");
        row("capture again unchanged, to `find -printf`", median(find), self.unchanged, "-");
        row("capture after 100 changed files, to the unchanged one", self.unchanged, median(changed), "1.2");
        row("restore of 100 changed files, to an unchanged capture", self.unchanged, median(restored), "1.5");
    }

    fn compare(&mut self) {
        self.progress("comparing");
        self.session.run("incremental");
        self.victims.change(1, "compared");
        let number: u32 = self.run("incremental").get("number");
        let (mut first, mut again) = (Vec::new(), Vec::new());
        for _ in 0..self.options.short_rounds() {
            let report = self.session.run_on("compare", number);
            assert_eq!(report.changes(), 1, "one file differs");
            first.push(report.ms());
            again.push(report.get("again"));
        }
        self.session.run("restore");
        let what = self.what("compare two snapshots that differ in one file");
        let ours = format!("{} (the first time {})", time(median(again)), time(median(first)));
        self.table.push(Row::fact(&what, ours, "1 ms"));
    }

    /// Measures further sessions on the same store: one of the unchanged tree, one with some files changed.
    fn further_sessions(&mut self) {
        self.progress("further sessions");
        self.session.run("settle");
        let unchanged = self.further_session("second");
        let changed = self.victims.change(SOME, "further") as f64;
        let some = self.further_session("third");
        self.session.run("restore");
        let what = self.what("disk of a further session, nothing changed, to the first");
        self.table.push(Row::bytes(&what, self.disk, unchanged, "0.01"));
        let what = self.what("disk of a further session, to 100 changed files and 1 % of the first");
        self.table.push(Row::bytes(&what, changed + self.disk / 100.0, some, "1.0"));
    }

    /// Disk space that a further session on the same store takes.
    fn further_session(&self, name: &str) -> f64 {
        let main = &self.session;
        let (tree, store) = (main.tree.clone(), main.store.clone());
        let session = Session { ground: self.ground, tree, store, dir: self.ground.path(name) };
        fs::create_dir(&session.dir).expect("a folder");
        self.ground.give(&[&session.dir]);
        let before = session.disk();
        session.run("baseline");
        session.run("settle");
        session.disk() - before
    }

    fn restore(&mut self) {
        self.progress("restore");
        let add = format!("{} add -A && {} write-tree", self.git, self.git);
        let before = self.ground.sh(&add);
        self.ground.sh("cp -a tree copy");
        let (mut copy, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..self.options.rounds() {
            self.ground.sh("cd copy && rm -rf -- *");
            copy.push(self.ground.time("cp -a tree/. copy/"));
            self.ground.sh("cd tree && rm -rf -- *");
            ours.push(self.run("restore").ms());
        }
        self.ground.sh("rm -rf copy");
        assert_eq!(self.ground.sh(&add), before, "git sees the same tree");
        let what = self.what("restore of the whole tree after `rm -rf *`, to `cp -a` after the same");
        self.table.push(Row::times(&what, median(copy), median(ours), "0.8"));
    }

    fn peak_memory(&mut self, goal: &'static str) {
        let what = self.what(&format!("peak memory, {} files", self.files));
        self.table.push(Row::fact(&what, peaks(&self.memory), goal));
    }

    /// Counts the calls that make data durable, and the cost of an unchanged file.
    pub(crate) fn trace(&mut self) {
        self.progress("counting system calls");
        // A session of its own: files that a restore wrote are younger than the others' sessions, and read each time.
        let counted = self.ground.session("counted", &self.session.tree);
        counted.run("baseline");
        counted.run("incremental");
        let calls = trace::count(&counted, "incremental", &[]);
        let total: u64 = calls.values().sum();
        let stats: u64 = ["statx", "newfstatat", "fstat", "lstat", "stat"]
            .iter()
            .filter_map(|name| calls.get(*name))
            .sum();
        let (opens, rules) = trace::opens(&counted, "incremental");
        let per_file = |count: u64| count as f64 / self.files;
        let ours = format!("{:.2} ({:.2} stat)", per_file(total), per_file(stats));
        let what =
            format!("system calls per unchanged file ({} in {} folders)", self.files, self.directories);
        self.table.push(Row::fact(&what, ours, "1"));
        let ours = format!("{opens} ({rules} are `.gitignore`)");
        self.table.push(Row::fact("opens of unchanged files, in all", ours, "0"));
        self.durability();
        let syncs = self.syncs();
        self.table.push(Row::fact("fsyncs", syncs, "-"));
    }

    /// Cost of durability: restored files on disk before the restore is done, and manifests before records.
    fn durability(&mut self) {
        self.progress("waiting for the disk");
        let tree = self.session.tree.display().to_string();
        let of_tree = |line: &str| line.contains("syncfs") || line.contains(&tree);
        for count in [1, SOME, 100 * SOME] {
            let (mut without, mut with) = (Vec::new(), Vec::new());
            for round in 0..self.options.short_rounds() {
                self.victims.change(count, &format!("made durable {round}"));
                let (total, waited) = trace::waits(&self.session, "restore", of_tree);
                without.push(total - waited);
                with.push(total);
            }
            let what =
                self.what(&format!("restore of {count} changed files, to the same without syncing them"));
            self.table.push(Row::times(&what, median(without), median(with), "-"));
        }
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for round in 0..self.options.short_rounds() {
            self.victims.change(SOME, &format!("captured and synced {round}"));
            let (total, waited) = trace::waits(&self.session, "incremental", |_| true);
            without.push(total - waited);
            with.push(total);
        }
        self.session.run("restore");
        let what = self.what("capture after 100 changed files, to the same without any sync");
        self.table.push(Row::times(&what, median(without), median(with), "-"));
    }

    fn syncs(&self) -> String {
        let syncs = |session: &Session<'_>, operation: &str| -> u64 {
            trace::count(session, operation, &trace::SYNCS).values().sum()
        };
        let main = &self.session;
        let fresh = self.ground.session("fresh", &main.tree);
        let mut parts = Vec::new();
        let mut add = |what: &str, count: u64| parts.push(format!("{what} {count}"));
        add("first capture", syncs(&fresh, "baseline"));
        add("settling it", syncs(&fresh, "settle"));
        add("unchanged", syncs(main, "incremental"));
        self.victims.change(SOME, "counted");
        add("100 changed", syncs(main, "incremental"));
        add("settling these", syncs(main, "settle"));
        self.victims.change(SOME, "counted again");
        add("restore of 100", syncs(main, "restore"));
        self.ground.sh("cd tree && rm -rf -- *");
        add("restore of all", syncs(main, "restore"));
        add("verify", syncs(main, "verify"));
        add("gc", syncs(main, "gc"));
        fresh.remove();
        parts.join(", ")
    }
}

/// The highest peak, and all of them.
pub(crate) fn peaks(memory: &BTreeMap<String, f64>) -> String {
    let highest = memory.values().copied().fold(0.0, f64::max);
    let parts: Vec<String> = memory.iter().map(|(name, peak)| format!("{name} {:.0}", peak / 1e6)).collect();
    format!("{} ({})", bytes(highest), parts.join(", "))
}
