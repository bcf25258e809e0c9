//! Growth with the number of files, and one large file.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::ground::{Ground, Report, Session, Tools, has, is_root, run};
use super::rounds::peaks;
use super::tree::{generate, generate_flat, generate_large};
use crate::measure::{Row, Table, bytes, median, time};
use crate::options::Options;

/// First and further captures of more and more small files, and the memory that the most of them take.
pub(crate) fn growth(options: &Options, ground: &Ground, table: &mut Table) {
    let steps: &[usize] = if options.quick { &[100, 1000] } else { &[10_000, 100_000, 1_000_000] };
    let names: Vec<String> = steps.iter().map(ToString::to_string).collect();
    let (mut first, mut again, mut memory) = (Vec::new(), Vec::new(), BTreeMap::new());
    for files in steps {
        eprintln!("{}: {files} small files", ground.fs);
        let (one, two);
        (one, two, memory) = captures(options, ground, *files);
        first.push(one / *files as f64);
        again.push(two / *files as f64);
    }
    let row = |what: &str, per_file: &[f64]| {
        let texts: Vec<String> = per_file.iter().map(|ms| format!("{:.1}", ms * 1e3)).collect();
        let (least, most) = (per_file[0], per_file[per_file.len() - 1]);
        let what = format!("{}: {what}, for each of {} small files", ground.fs, names.join(" / "));
        Row::new(
            &what,
            format!("{} µs", texts[0]),
            format!("{} µs", texts.join(" / ")),
            most / least,
            "linear",
        )
    };
    let what = format!("{}: peak memory, {} small files", ground.fs, names[names.len() - 1]);
    table.push(row("first capture", &first));
    table.push(row("capture again unchanged", &again));
    table.push(Row::fact(&what, peaks(&memory), "300 MB"));
    for (operation, called) in [
        ("baseline", "first capture"),
        ("incremental", "capture again unchanged"),
        ("restore", "restore of all"),
    ] {
        let peak = memory.get(operation).copied().unwrap_or_default();
        let what = format!(
            "{}: peak memory, {called}, {} small files, to the limit",
            ground.fs,
            names[names.len() - 1]
        );
        table.push(Row::new(&what, bytes(MEMORY), bytes(peak), peak / MEMORY, "1.0"));
    }
}

/// The limit on the memory of one operation on a million files.
const MEMORY: f64 = 300e6;

/// Restoring very many files in one directory of ext4, where each name costs a search of its own.
pub(crate) fn one_directory(options: &Options, ground: &Ground, tools: &Tools, table: &mut Table) {
    if options.quick {
        return;
    }
    if !is_root() || !has("mkfs.ext4") {
        eprintln!("skipped: many files in one directory of ext4, because that takes root and mkfs.ext4");
        return;
    }
    let device = Mounted::new(ground, "ext4");
    let ground = Ground::below(&device.dir(), tools);
    let files = 300_000;
    eprintln!("{}: {files} files in one directory", ground.fs);
    let tree = ground.path("flat");
    generate_flat(&ground, &tree, files);
    let session = ground.session("flat", &tree);
    session.run("baseline");
    session.run("settle");
    let (mut copies, mut restores) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds().min(3) {
        copies.push(ground.time("cp -a flat copy"));
        ground.sh("rm -rf copy; find flat -mindepth 1 -delete");
        ground.calm();
        restores.push(session.run("restore").ms());
    }
    let (copy, restore) = (median(copies), median(restores));
    let what = format!("{}: restore of {files} files in one directory, to `cp -a`", ground.fs);
    table.push(Row::new(&what, time(copy), time(restore), restore / copy, "1.5"));
}

/// Milliseconds of a first and of an unchanged capture; peaks of memory.
fn captures(options: &Options, ground: &Ground, files: usize) -> (f64, f64, BTreeMap<String, f64>) {
    let tree = ground.path("small");
    generate(ground, &tree, files, 200);
    let session = ground.session("small", &tree);
    let mut memory = BTreeMap::new();
    let mut measured = |operation: &str| {
        let report = session.run(operation);
        let peak: &mut f64 = memory.entry(operation.to_owned()).or_default();
        *peak = peak.max(report.peak());
        report.ms()
    };
    let rounds = options.rounds().min(3);
    let mut first = Vec::new();
    for round in 0..rounds {
        first.push(measured("baseline"));
        if round + 1 < rounds {
            session.remove();
        }
    }
    let again = (0..rounds).map(|_| measured("incremental")).collect();
    measured("settle");
    measured("verify");
    ground.sh("cd small && rm -rf -- *");
    measured("restore");
    ground.sh("rm -rf small");
    session.remove();
    (median(first), median(again), memory)
}

/// One large file where bytes have to be copied, and, with loop devices, where they are shared.
pub(crate) fn large_file(options: &Options, ground: &Ground, tools: &Tools, table: &mut Table) {
    let megabytes = if options.quick { 32 } else { 5000 };
    large_file_on(ground, megabytes, table);
    for kind in ["btrfs", "xfs"] {
        if options.quick {
            break;
        }
        if !is_root() || !has(&format!("mkfs.{kind}")) {
            eprintln!("skipped: a large file on {kind}, because that takes root and mkfs.{kind}");
            continue;
        }
        let device = Mounted::new(ground, kind);
        large_file_on(&Ground::below(&device.dir(), tools), megabytes, table);
    }
}

fn large_file_on(ground: &Ground, megabytes: usize, table: &mut Table) {
    eprintln!("{}: a file of {megabytes} MB", ground.fs);
    let tree = ground.path("large");
    fs::create_dir(&tree).expect("a folder");
    ground.give(&[&tree]);
    generate_large(ground, &tree.join("file"), megabytes);
    let session = ground.session("large", &tree);
    let copy = ground.time("cp -a --reflink=never large copy");
    ground.sh("rm -rf copy");
    let before = ground.used();
    let report = session.run("baseline");
    let copied = ground.used() - before;
    let changed = four_bytes(ground, &session, megabytes);
    let settled = session.run("settle");
    fs::remove_file(tree.join("file")).expect("it is ours");
    let restored = session.run("restore");
    let peak = [&report, &settled, &restored].map(Report::peak).into_iter().fold(0.0, f64::max);
    ground.sh("rm -rf large");
    session.remove();
    let what = format!("{}: a file of {megabytes} MB, first capture, to `cp -a --reflink=never`", ground.fs);
    let took = format!("{}, {} of disk, peak memory {}", time(report.ms()), bytes(copied), bytes(peak));
    let goal = match ground.fs.as_str() {
        "btrfs" | "xfs" => "no bytes, constant memory",
        _ => "constant memory",
    };
    table.push(Row::new(&what, time(copy), took, report.ms() / copy, goal));
    for row in changed {
        table.push(row);
    }
}

/// Cost of the next capture when four bytes of the file changed.
fn four_bytes(ground: &Ground, session: &Session<'_>, megabytes: usize) -> [Row; 2] {
    let place = megabytes * 600_000;
    ground.sh(&format!(
        "printf nono | dd of=large/file bs=1 seek={place} conv=notrunc status=none; sync large/file"
    ));
    let reading = ground.time("cat large/file > /dev/null");
    let before = ground.used();
    let report = session.run("incremental");
    let grown = (ground.used() - before).max(0.0);
    let what = |what: &str| format!("{}: four bytes of {megabytes} MB changed, {what}", ground.fs);
    let goal = match ground.fs.as_str() {
        "btrfs" | "xfs" => "no full read over 1 GiB",
        _ => "one read",
    };
    [
        Row::bytes(&what("disk of the next capture, to the file's"), megabytes as f64 * 1e6, grown, "10 MB"),
        Row::times(&what("next capture, to `cat`"), reading, report.ms(), goal),
    ]
}

/// A filesystem in a file, mounted as long as this is there.
struct Mounted<'a> {
    ground: &'a Ground,
    kind: &'static str,
}

impl<'a> Mounted<'a> {
    fn new(ground: &'a Ground, kind: &'static str) -> Mounted<'a> {
        let mounted = Mounted { ground, kind };
        let image = mounted.image();
        fs::File::create(&image).and_then(|file| file.set_len(12 << 30)).expect("a sparse file");
        run(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image));
        fs::create_dir(mounted.dir()).expect("a folder");
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(mounted.dir()));
        mounted
    }

    fn image(&self) -> PathBuf {
        self.ground.path(&format!("{}.image", self.kind))
    }

    fn dir(&self) -> PathBuf {
        self.ground.path(self.kind)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(self.dir()).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.dir().display());
            return;
        }
        if let Err(error) = fs::remove_file(self.image()) {
            eprintln!("{}: {error}", self.image().display());
        }
    }
}
