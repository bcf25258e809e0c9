//! Git judges the ignore rules: random trees, random rules, random indexes; `git check-ignore` and `git ls-files` say
//! what is right. The same trees show that frozen rules keep their verdicts when everything on disk changes.
//!
//! Seeds are fixed, so a failure can be repeated; `NONO_ORACLE_CASES` runs more of them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step of a test ends it")]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nono_snapshot::exclusion::{
    ExclusionConfig, ExclusionNote, ExclusionVerdict, FrozenRules, RuleFiles, Rules,
};
use nono_snapshot::node::Reason;

type Bytes = Vec<u8>;
/// Every entry that is looked at, by its path, with what was said about it and whether it is a directory.
type Verdicts = BTreeMap<Bytes, (ExclusionVerdict, bool)>;

fn walk(rules: &Rules, root: &Path) -> Verdicts {
    let mut verdicts = Verdicts::new();
    let dir = File::open(root).unwrap();
    let mut stack = vec![(Bytes::new(), rules.root(dir.as_fd()))];
    while let Some((path, here)) = stack.pop() {
        let at = root.join(OsStr::from_bytes(&path));
        let entries: Vec<(Bytes, bool)> = list(&at);
        let beside = |name: &[u8]| fs::symlink_metadata(at.join(OsStr::from_bytes(name))).is_ok();
        for (name, is_dir) in entries {
            let child = join(&path, &name);
            let verdict = here.judge(&child, &name, is_dir, &beside);
            if is_dir && !matches!(verdict, ExclusionVerdict::Leave(_)) {
                let opened = root.join(OsStr::from_bytes(&child));
                let mut has = RuleFiles::default();
                for (name, _) in list(&opened) {
                    has.note(&name);
                }
                let searching = matches!(verdict, ExclusionVerdict::Search(_));
                let dir = File::open(&opened).unwrap();
                stack.push((child.clone(), here.enter(rules, &child, dir.as_fd(), has, searching)));
            }
            verdicts.insert(child, (verdict, is_dir));
        }
    }
    verdicts
}

fn list(dir: &Path) -> Vec<(Bytes, bool)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().as_bytes().to_vec(), entry.file_type().unwrap().is_dir())
    };
    fs::read_dir(dir).unwrap().map(entry).collect()
}

fn join(dir: &[u8], name: &[u8]) -> Bytes {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}

/// The reason why a path is left out: its own, or that of a directory it lies in.
fn left_out<'a>(verdicts: &'a Verdicts, path: &[u8]) -> Option<&'a Reason> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in ends.chain([path.len()]) {
        match verdicts.get(&path[..end]) {
            Some((ExclusionVerdict::Leave(reason), _)) => return Some(reason),
            Some((ExclusionVerdict::Search(reason), _)) if end == path.len() => return Some(reason),
            _ => {}
        }
    }
    None
}

fn in_git(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part == b".git")
}

/// All paths below a folder, `.git` aside.
fn all_paths(root: &Path) -> Vec<(Bytes, bool)> {
    let mut paths = Vec::new();
    let mut stack = vec![Bytes::new()];
    while let Some(dir) = stack.pop() {
        for (name, is_dir) in list(&root.join(OsStr::from_bytes(&dir))) {
            if name != b".git" {
                let path = join(&dir, &name);
                if is_dir {
                    stack.push(path.clone());
                }
                paths.push((path, is_dir));
            }
        }
    }
    paths.sort();
    paths
}

fn git(home: &Path, dir: &Path, args: &[&str], input: &[u8]) -> Bytes {
    let mut child = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git is needed for this test");
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    // check-ignore says 1 when nothing is ignored.
    let code = output.status.code();
    let fine = code == Some(0) || code == Some(1) && args[0] == "check-ignore";
    assert!(fine, "git {args:?} in {}: {}", dir.display(), String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn lines(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|line| !line.is_empty())
}

fn nul_joined(paths: &[Bytes]) -> Bytes {
    paths.iter().flat_map(|path| [path, &b"\0"[..]].concat()).collect()
}

/// Git's word on paths by rules alone: the rule and the file it stands in, for those it ignores.
fn check_ignore(home: &Path, top: &Path, paths: &[Bytes]) -> BTreeMap<Bytes, Option<(String, String)>> {
    let args = ["check-ignore", "--no-index", "-v", "-n", "-z", "--stdin"];
    let output = git(home, top, &args, &nul_joined(paths));
    let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    let word = |fields: &[&[u8]]| {
        let ignored = !fields[2].is_empty() && !fields[2].starts_with(b"!");
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        (fields[3].to_vec(), ignored.then(|| (text(fields[2]), text(fields[0]))))
    };
    fields.chunks_exact(4).map(word).collect()
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % sides
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    /// One of several, which are separated by bars.
    fn pick<'a>(&mut self, from: &'a [u8]) -> &'a [u8] {
        let all: Vec<&[u8]> = from.split(|byte| *byte == b'|').collect();
        all[self.roll(all.len())]
    }
}

const NAMES: &[u8] =
    b"a|b|ab|ba|foo|bar|Foo|A|foo.o|a.o|b.O|a.tar.gz|#c|!n|x y|sp |sp|[z]|z|-|a\\b|*|\xc3\xa9|\
    \xff|]|0|build|a-b|^|.o|.hidden|tab\t";
const PARTS: &[u8] =
    b"a|b|foo|bar|o|.|.o|*|*|?|**|[ab]|[!a]|[^b]|[a-f]|[[:alpha:]]|[[:upper:]x]|[[:punct:]]|[]a]|\
    [a-]|[\\]a]|\\a|\\*|\\#|\\!|\\ |[|[[:nope:]]|[[:alpha]|A|Foo|\\A|[A-Z]|[B]| |z|\xc3|\xff|\
    ***|-|[[-a]|[a-\\z]|\\|build|[!-]|[/]|[[:space:]]|[[:digit:][:lower:]]|\t";

fn pattern(dice: &mut Dice) -> Bytes {
    let mut line = Bytes::new();
    if dice.one_in(4) {
        line.push(b'!');
    }
    if dice.one_in(5) {
        line.push(b'/');
    }
    for component in 0..=[0, 0, 0, 1, 1, 2][dice.roll(6)] {
        if component > 0 {
            line.extend(if dice.one_in(12) { &b"\\/"[..] } else { b"/" });
        }
        if dice.one_in(2) {
            line.extend(dice.pick(NAMES));
        } else if dice.one_in(4) {
            line.extend(b"**");
        } else {
            for _ in 0..=dice.roll(3) {
                line.extend(dice.pick(PARTS));
            }
        }
    }
    if dice.one_in(4) {
        line.push(b'/');
    }
    if dice.one_in(10) {
        line.extend(dice.pick(b" |  |\\ |\t|\0x|\r"));
    }
    line
}

fn ignore_text(dice: &mut Dice) -> Bytes {
    let mut text = Bytes::new();
    if dice.one_in(12) {
        text.extend(b"\xef\xbb\xbf");
    }
    let end: &[u8] = if dice.one_in(8) { b"\r\n" } else { b"\n" };
    for _ in 0..dice.roll(12) {
        if dice.one_in(8) {
            text.extend(dice.pick(b"# comment||/|!|#| |\r"));
        } else {
            text.extend(pattern(dice));
        }
        text.extend(end);
    }
    if dice.one_in(4) {
        text.extend(pattern(dice));
    }
    text
}

/// Make a tree; gives its directories, the top among them.
fn grow(dice: &mut Dice, top: &Path) -> Vec<Bytes> {
    let mut dirs = vec![Bytes::new()];
    for _ in 0..10 + dice.roll(25) {
        let dir = dirs[dice.roll(dirs.len())].clone();
        let path = join(&dir, dice.pick(NAMES));
        let at = top.join(OsStr::from_bytes(&path));
        if fs::symlink_metadata(&at).is_ok() {
            continue;
        }
        match dice.roll(8) {
            0..=2 if path.split(|byte| *byte == b'/').count() < 5 => {
                fs::create_dir(&at).unwrap();
                dirs.push(path);
            }
            3 => std::os::unix::fs::symlink("a", &at).unwrap(),
            _ => fs::write(&at, b"x").unwrap(),
        }
    }
    dirs
}

struct Case {
    _temp: tempfile::TempDir,
    home: PathBuf,
    top: PathBuf,
    dirs: Vec<Bytes>,
    fold: bool,
    seed: u64,
}

impl Case {
    fn new(seed: u64, dice: &mut Dice) -> Case {
        let temp = tempfile::tempdir().unwrap();
        let (home, top) = (temp.path().join("home"), temp.path().join("top"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&top).unwrap();
        let top = top.canonicalize().unwrap();
        git(&home, &top, &["init", "-q"], b"");
        let dirs = grow(dice, &top);
        for dir in &dirs {
            if dir.is_empty() || dice.one_in(4) {
                let file = top.join(OsStr::from_bytes(dir)).join(".gitignore");
                if dice.one_in(15) {
                    fs::write(home.join("rules"), b"*\n").unwrap();
                    std::os::unix::fs::symlink(home.join("rules"), file).unwrap();
                } else {
                    fs::write(file, ignore_text(dice)).unwrap();
                }
            }
        }
        if dice.one_in(2) {
            fs::create_dir_all(top.join(".git/info")).unwrap();
            fs::write(top.join(".git/info/exclude"), ignore_text(dice)).unwrap();
        }
        let fold = dice.one_in(5);
        if fold {
            git(&home, &top, &["config", "core.ignorecase", "true"], b"");
        }
        Case { _temp: temp, home, top, dirs, fold, seed }
    }

    /// Put some files into the index, whatever the rules say, and take some of them off the disk again.
    fn track(&self, dice: &mut Dice) {
        let files = all_paths(&self.top).into_iter().filter(|(_, is_dir)| !is_dir).map(|(path, _)| path);
        let some: Vec<Bytes> = files.filter(|_| dice.one_in(4)).collect();
        if some.is_empty() {
            return;
        }
        let version = ["2", "4"][dice.roll(2)];
        let args = ["update-index", "--index-version", version, "--add", "-z", "--stdin"];
        git(&self.home, &self.top, &args, &nul_joined(&some));
        for path in some.iter().filter(|path| !path.ends_with(b".gitignore")) {
            if dice.one_in(6) {
                fs::remove_file(self.top.join(OsStr::from_bytes(path))).unwrap();
            }
        }
    }
}

fn each_case(default: u64, check: impl Fn(&Case, &mut Dice)) {
    let cases =
        std::env::var("NONO_ORACLE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(default);
    for seed in 1..=cases {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let case = Case::new(seed, &mut dice);
        check(&case, &mut dice);
    }
}

fn live(root: &Path) -> Rules {
    Rules::live(&ExclusionConfig::default(), root).unwrap()
}

/// With nothing in the index, each path has git's verdict, by git's rule and file.
#[test]
fn rules_say_what_git_says() {
    let (ignored, asked) = (Cell::new(0), Cell::new(0));
    each_case(300, |case, dice| {
        let deep = dice.one_in(3);
        let dir = if deep { case.dirs[dice.roll(case.dirs.len())].clone() } else { Bytes::new() };
        let root = case.top.join(OsStr::from_bytes(&dir));
        let paths: Vec<Bytes> = all_paths(&case.top).into_iter().map(|(path, _)| path).collect();
        let words = check_ignore(&case.home, &case.top, &paths);
        let rules = live(&root);
        let verdicts = walk(&rules, &root);
        if !dir.is_empty() && words[&dir].is_some() {
            // Asked for just this folder, we take it.
            assert!(matches!(rules.notes()[..], [ExclusionNote::RootIgnored { .. }]), "case {}", case.seed);
            return;
        }
        for path in &paths {
            let Some(below) = path.strip_prefix(&*join(&dir, b"")).filter(|below| !below.is_empty()) else {
                continue;
            };
            let ours = left_out(&verdicts, below).map(|reason| match reason {
                Reason::Ignored { rule, file } => (rule.clone(), file.clone()),
                other => panic!("{other:?}"),
            });
            let mut theirs = words[path].clone();
            asked.set(asked.get() + 1);
            ignored.set(ignored.get() + usize::from(theirs.is_some()));
            if let (Some((_, file)), false) = (&mut theirs, dir.is_empty()) {
                *file = seen_from(&dir, file);
            }
            assert_eq!(ours, theirs, "case {}: {:?}", case.seed, String::from_utf8_lossy(path));
        }
    });
    let share = 100 * ignored.get() / asked.get();
    assert!((10..90).contains(&share), "{share} % of the paths are ignored: that shows little");
}

/// An ignore file's path below the top, as it is called from a directory below the top.
fn seen_from(dir: &[u8], file: &str) -> String {
    let dir = String::from_utf8_lossy(dir);
    if let Some(below) = file.strip_prefix(&format!("{dir}/")) {
        return below.to_owned();
    }
    let (at, name) =
        if file.ends_with(".git/info/exclude") { ("", ".git/info/exclude") } else { (file, ".gitignore") };
    let depth = dir.split('/').count() - at.matches('/').count();
    format!("{}{name}", "../".repeat(depth))
}

/// With an index, the files taken are those git tracks and those it would add.
#[test]
fn what_git_tracks_is_taken() {
    each_case(200, |case, dice| {
        case.track(dice);
        let mut wanted: BTreeSet<Bytes> = BTreeSet::new();
        for args in [&["ls-files", "-z"][..], &["ls-files", "-z", "-o", "--exclude-standard"]] {
            wanted.extend(lines(&git(&case.home, &case.top, args, b"")).map(<[u8]>::to_vec));
        }
        wanted.retain(|path| fs::symlink_metadata(case.top.join(OsStr::from_bytes(path))).is_ok());
        let verdicts = walk(&live(&case.top), &case.top);
        let taken: BTreeSet<Bytes> = verdicts
            .iter()
            .filter(|(path, (verdict, is_dir))| {
                !is_dir
                    && !in_git(path)
                    && matches!(verdict, ExclusionVerdict::Take | ExclusionVerdict::TakeAnyway)
            })
            .map(|(path, _)| path.clone())
            .collect();
        if case.fold {
            // On a disk that tells cases apart git then hides a file whose name is tracked in another case.
            assert!(wanted.is_subset(&taken), "case {}", case.seed);
        } else {
            assert_eq!(taken, wanted, "case {}", case.seed);
        }
    });
}

/// Frozen rules give the verdicts of the moment they were frozen, for names that came later too, however ignore files,
/// the index and repositories change.
#[test]
fn frozen_rules_stay() {
    each_case(200, |case, dice| {
        case.track(dice);
        let config = ExclusionConfig {
            artifacts: dice.one_in(2),
            exclude_patterns: if dice.one_in(3) { vec!["ab".into(), "a/b".into()] } else { vec![] },
            exclude_globs: if dice.one_in(3) { vec!["*.{o,O}".into()] } else { vec![] },
            force_include: if dice.one_in(3) { vec!["bar".into(), "a*z".into()] } else { vec![] },
            ..ExclusionConfig::default()
        };
        let root = case.top.join(OsStr::from_bytes(&case.dirs[dice.roll(case.dirs.len())]));
        let rules = Rules::live(&config, &root).unwrap();
        let rules = if dice.one_in(6) { rules.set_aside() } else { rules };
        let before = walk(&rules, &root);
        let frozen = rules.freeze();
        let encoded = frozen.encode();
        let frozen = FrozenRules::decode(&encoded).unwrap();
        assert_eq!(frozen.encode(), encoded);
        assert_eq!(walk(&Rules::frozen(&frozen).unwrap(), &root), before, "case {}", case.seed);

        grow_more(dice, case);
        let again = Rules::live(&config, &root).unwrap();
        let again = if frozen.is_set_aside() { again.set_aside() } else { again };
        let wanted = walk(&again, &root);
        upset(dice, case);
        let found = walk(&Rules::frozen(&frozen).unwrap(), &root);
        for (path, word) in wanted.iter().filter(|(path, _)| !in_git(path)) {
            let exists = fs::symlink_metadata(root.join(OsStr::from_bytes(path))).is_ok();
            if exists {
                assert_eq!(
                    found.get(path),
                    Some(word),
                    "case {}: {}",
                    case.seed,
                    String::from_utf8_lossy(path)
                );
            }
        }
        assert_eq!(Rules::frozen(&frozen).unwrap().freeze(), frozen);
    });
}

/// New files and directories, tracked files that were missing among them; no ignore file.
fn grow_more(dice: &mut Dice, case: &Case) {
    for path in lines(&git(&case.home, &case.top, &["ls-files", "-z"], b"")) {
        let at = case.top.join(OsStr::from_bytes(path));
        if fs::symlink_metadata(&at).is_err() && at.parent().unwrap().is_dir() {
            fs::write(at, b"back").unwrap();
        }
    }
    grow(dice, &case.top);
}

/// Change everything rules are read from.
fn upset(dice: &mut Dice, case: &Case) {
    for dir in &case.dirs {
        let file = case.top.join(OsStr::from_bytes(dir)).join(".gitignore");
        drop(fs::remove_file(&file));
        if dice.one_in(2) {
            fs::write(&file, ignore_text(dice)).unwrap();
        }
        if dice.one_in(6) && !dir.is_empty() {
            git(&case.home, file.parent().unwrap(), &["init", "-q"], b"");
        }
    }
    fs::write(case.top.join(".git/info/exclude"), ignore_text(dice)).unwrap();
    drop(fs::remove_file(case.top.join(".git/index")));
}

/// In a repository inside another, only its own rules count; to the outer one it is a directory like any other.
#[test]
fn repositories_inside_repositories() {
    each_case(60, |case, dice| {
        let inner = case.top.join("inner");
        fs::create_dir(&inner).unwrap();
        git(&case.home, &inner, &["init", "-q"], b"");
        let dirs = grow(dice, &inner);
        for dir in dirs {
            if !dir.is_empty() && !dice.one_in(3) {
                continue;
            }
            fs::write(inner.join(OsStr::from_bytes(&dir)).join(".gitignore"), ignore_text(dice)).unwrap();
        }
        let outside = check_ignore(&case.home, &case.top, &[b"inner".to_vec()]);
        let verdicts = walk(&live(&case.top), &case.top);
        let ignored = outside[&b"inner"[..]].is_some();
        assert_eq!(left_out(&verdicts, b"inner").is_some(), ignored, "case {}", case.seed);
        if ignored {
            return;
        }
        let paths: Vec<Bytes> = all_paths(&inner).into_iter().map(|(path, _)| path).collect();
        for (path, word) in check_ignore(&case.home, &inner, &paths) {
            let ours = left_out(&verdicts, &join(b"inner", &path)).is_some();
            assert_eq!(ours, word.is_some(), "case {}: {}", case.seed, String::from_utf8_lossy(&path));
        }
    });
}
