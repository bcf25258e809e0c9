//! The trees that are captured: the Linux source, or generated files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::ground::{Ground, is_root, run};
use crate::options::Options;

const PACKAGE: &str = "linux-source-6.1";
const ARCHIVE: &str = "/usr/src/linux-source-6.1.tar.xz";

/// Source of copies of the tree.
pub(crate) enum Source {
    Linux { dir: PathBuf, _unpacked: Option<tempfile::TempDir> },
    Generated { files: usize },
}

impl Source {
    pub(crate) fn find(options: &Options, disk: &Path) -> Source {
        if options.quick {
            return Source::Generated { files: 500 };
        }
        if let Some(dir) = &options.tree {
            return Source::Linux { dir: dir.clone(), _unpacked: None };
        }
        if !Path::new(ARCHIVE).exists() {
            assert!(is_root(), "please install {PACKAGE}, or name the unpacked source with --tree");
            run(Command::new("apt-get").args(["-qq", "install", "-y", "--no-install-recommends", PACKAGE]));
        }
        let unpacked =
            tempfile::Builder::new().prefix("nono-bench-linux-").tempdir_in(disk).expect("a folder");
        // For the ordinary user, who copies it.
        run(Command::new("chmod").arg("755").arg(unpacked.path()));
        run(Command::new("tar").args(["-xf", ARCHIVE, "-C"]).arg(unpacked.path()));
        Source::Linux { dir: unpacked.path().join(PACKAGE), _unpacked: Some(unpacked) }
    }

    /// A copy, read once.
    pub(crate) fn put(&self, ground: &Ground, name: &str) -> PathBuf {
        let tree = ground.path(name);
        match self {
            Source::Linux { dir, .. } => {
                run(ground.command("cp").arg("-a").arg(dir).arg(&tree));
                without_debian_rules(&tree.join(".gitignore"));
            }
            Source::Generated { files } => generate(ground, &tree, *files, 8000),
        }
        ground.sh(&format!("find {name} -type f -print0 | xargs -0 cat > /dev/null"));
        tree
    }

    /// Whether git tracks what was expected.
    pub(crate) fn check(&self, tracked: usize) {
        match self {
            Source::Linux { .. } => {
                assert!(tracked.abs_diff(78_354) < 400, "git tracks {tracked} files, not about 78,354");
            }
            Source::Generated { files } => assert_eq!(tracked, *files),
        }
    }
}

/// Debian's last two lines make git ignore nearly everything.
fn without_debian_rules(path: &Path) {
    let text = fs::read_to_string(path).expect("the source has a .gitignore");
    let kept = text.lines().filter(|line| !matches!(*line, "/*" | "!/debian/"));
    fs::write(path, kept.flat_map(|line| [line, "\n"]).collect::<String>()).expect("a copy can be changed");
}

/// Small files in one directory.
pub(crate) fn generate_flat(ground: &Ground, tree: &Path, files: usize) {
    fs::create_dir(tree).expect("a folder");
    for index in 0..files {
        fs::write(tree.join(format!("file-{index}.c")), format!("content {index} ").repeat(10))
            .expect("a file");
    }
    if is_root() {
        let owner = crate::world::UID;
        run(Command::new("chown").arg("-R").arg(format!("{owner}:{owner}")).arg(tree));
    }
    ground.calm();
}

/// Generates text files of up to twice the mean size, a hundred to a folder.
pub(crate) fn generate(ground: &Ground, tree: &Path, files: usize, mean: u64) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut text = Vec::new();
    for index in 0..files {
        let dir = tree.join(format!("part-{}", index / 10_000)).join(format!("module-{}", index / 100 % 100));
        if index % 100 == 0 {
            fs::create_dir_all(&dir).expect("a folder");
        }
        text.clear();
        let size = 16 + numbers.next() % (2 * mean - 16);
        while (text.len() as u64) < size {
            numbers.word(&mut text);
        }
        fs::write(dir.join(format!("file-{index}.c")), &text).expect("a file");
    }
    if is_root() {
        let owner = crate::world::UID;
        run(Command::new("chown").arg("-R").arg(format!("{owner}:{owner}")).arg(tree));
    }
    ground.calm();
}

/// A file that does not compress.
pub(crate) fn generate_large(ground: &Ground, path: &Path, megabytes: usize) {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut file = fs::File::create(path).expect("a file");
    let mut block = vec![0; 1_000_000];
    for _ in 0..megabytes {
        for eight in block.chunks_exact_mut(8) {
            eight.copy_from_slice(&numbers.next().to_le_bytes());
        }
        file.write_all(&block).expect("space");
    }
    ground.give(&[path]);
    ground.calm();
}

/// Numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Compresses about as source does: mostly some hundred words, now and then a new one.
    fn word(&mut self, text: &mut Vec<u8>) {
        let number = self.next();
        let word = if number.is_multiple_of(5) { number >> 3 & 0xff_ffff } else { number >> 3 & 0xff };
        let end = if (number >> 40).is_multiple_of(9) { "\n" } else { " " };
        write!(text, "word_{word:x}{end}").expect("memory");
    }
}

/// The files of a tree that are changed now and then.
pub(crate) struct Victims {
    files: Vec<PathBuf>,
}

impl Victims {
    /// Chooses files among all tracked ones, evenly spread.
    pub(crate) fn choose(tree: &Path, tracked: &[String], count: usize) -> Victims {
        let regular = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        let files: Vec<PathBuf> = tracked.iter().map(|name| tree.join(name)).filter(regular).collect();
        let step = (files.len() / count).max(1);
        Victims { files: files.into_iter().step_by(step).take(count).collect() }
    }

    /// Append to each of the first so many; how many bytes these have now.
    pub(crate) fn change(&self, count: usize, mark: &str) -> u64 {
        let change = |path: &PathBuf| {
            let mut file = fs::OpenOptions::new().append(true).open(path).expect("a file of the tree");
            writeln!(file, "/* changed: {mark} */").expect("space");
            file.metadata().expect("it is open").len()
        };
        self.files.iter().take(count).map(change).sum()
    }
}
