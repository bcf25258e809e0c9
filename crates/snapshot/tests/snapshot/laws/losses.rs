//! Laws 1, 2 and 5 together, over random trees and random damage: whatever a command did, after a restore each path is
//! as before, or is named. The oracle is a copy made by `cp -a`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_snapshot::exclusion::LargePacks;
use nono_snapshot::store::{Owner, Quota};
use nono_snapshot::{
    ExclusionConfig, Gaps, Limits, ManagerOptions, RestoreOptions, SnapshotId, SnapshotManager,
};

use crate::common::{World, sh};
use nono_testkit::oracle::{Oracle, look};

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
    }
}

/// Parts of a tree, each with changes that an agent might make.
const PARTS: &[(&str, &[&str])] = &[
    (
        "mkdir src; echo code > src/main.c; ln src/main.c src/hard; ln -s main.c src/link",
        &[
            "rm -r src",
            "echo more >> src/main.c",
            "rm src/main.c; mkdir src/main.c; echo x > src/main.c/in",
            "chmod 600 src/link",
        ],
    ),
    (
        "echo .env >> .gitignore; echo KEY=1 > .env; chmod 600 .env",
        &["rm .env", "echo KEY=2 > .env", "mv .env env"],
    ),
    (
        "echo data/ >> .gitignore; mkdir -p data/deep; head -c 20000 /dev/urandom > data/deep/rows; mkfifo data/pipe",
        &["rm -rf data", "truncate -s 3 data/deep/rows", "rm data/pipe; echo x > data/pipe"],
    ),
    (
        "echo huge/ >> .gitignore; mkdir huge; head -c 200000 /dev/urandom > huge/blob; echo x > huge/other",
        &["rm -rf huge", "rm huge/other", "echo more >> huge/blob"],
    ),
    (
        "mkdir -p web/node_modules/pad; echo {} > web/package-lock.json; echo 1 > web/node_modules/pad/index.js",
        &[
            "rm -rf web",
            "rm -rf web/node_modules",
            "echo 2 > web/node_modules/pad/index.js",
            "rm web/package-lock.json",
        ],
    ),
    (
        "mkdir -p app/target/data; touch app/Cargo.toml; echo mine > app/target/data/only",
        &["rm -rf app/target", "rm -rf app"],
    ),
    (
        "mkdir app2; mkdir app2/target; echo '{}' > app2/target/.rustc_info.json; echo built > app2/target/out",
        &["rm -rf app2/target", "rm -rf app2", "echo again > app2/target/out"],
    ),
    (
        "head -c 5000000 /dev/urandom > big; truncate -s 8M sparse; echo end >> sparse",
        &[
            "rm big sparse",
            "printf x | dd of=big bs=1 seek=4000000 conv=notrunc status=none",
            "echo more >> sparse",
        ],
    ),
    (
        "mkdir repo; cd repo; git init -q -b main .; echo one > f; git add f; git commit -qm one; echo two > f; git commit -qam two",
        &[
            "rm -rf repo/.git",
            "cd repo; git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now",
            "cd repo; echo three > f; git commit -qam three; git gc -q",
            "rm -rf repo",
            "cd repo; git checkout -q -b other; git branch -D main",
        ],
    ),
    (
        "mkdir closed; echo x > closed/file; chmod 500 closed; mkdir shut; echo y > shut/in; chmod 700 shut",
        &["chmod 700 closed; rm -r closed", "echo z > shut/new", "rm -r shut"],
    ),
];

const GIT: &str = "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";

fn manager(world: &World, budget: Option<u64>) -> SnapshotManager {
    let exclusion = ExclusionConfig {
        use_gitignore: false,
        artifacts: true,
        max_ignored_folder: Some(100_000),
        large_git_packs: LargePacks::Take,
        ..ExclusionConfig::default()
    };
    let quota =
        budget.map(|total| Quota { owner: Owner::Session, total, checkpoints: 0, beside: Vec::new() });
    let options = ManagerOptions { settle_by_hand: true, quota, ..ManagerOptions::default() };
    let roots = [&world.tree];
    let mut manager =
        SnapshotManager::with_options(&world.session, roots, exclusion, Limits::NONE, options).unwrap();
    manager.set_gaps(Gaps::Allow);
    manager
}

fn relative(world: &World, paths: impl Iterator<Item = PathBuf>) -> BTreeSet<PathBuf> {
    paths.map(|path| path.strip_prefix(&world.tree).unwrap().to_owned()).collect()
}

/// Paths at which two trees differ.
fn differences(before: &Oracle, after: &Oracle) -> Vec<String> {
    let all: BTreeSet<&String> = before.0.keys().chain(after.0.keys()).collect();
    let differ = |path: &&&String| before.0.get(**path) != after.0.get(**path);
    // What getfattr and getfacl say has the path behind a word.
    let path = |text: &String| text.rsplit(' ').next().unwrap_or(text).trim_start_matches("./").to_owned();
    all.iter().filter(differ).map(|text| path(text)).collect()
}

/// One tree, one damage, one restore. Returns the number of lost paths.
fn round(seed: u64) -> usize {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let world = World::new();
    let mut damage = Vec::new();
    for (make, breaks) in PARTS {
        if dice.roll(3) > 0 {
            world.sh(&format!("{GIT}; {make}"));
            damage.push(*dice.pick(breaks));
        }
    }
    world.sh("echo always > file");
    let copy = world.dir.path().join("copy");
    sh(world.dir.path(), "cp -a tree copy");
    let before = look(&copy);
    let budget = (dice.roll(3) == 0).then(|| 50_000 + dice.roll(3_000_000));
    let mut manager = manager(&world, budget);
    let Ok(baseline) = manager.create_baseline() else {
        assert!(budget.is_some(), "seed {seed}");
        return 0;
    };
    for script in &damage {
        if dice.roll(4) > 0 {
            world.sh(&format!("{GIT}; {script}"));
        }
    }
    // Restoring must not fail for want of the budget that the baseline had.
    let restored = manager.restore(&SnapshotId::Number(0), &RestoreOptions::default()).unwrap();
    let after = look(&world.tree);
    let lost = relative(&world, restored.lost.iter().map(|lost| lost.path.clone()));
    let skipped = relative(&world, restored.skipped.iter().map(|skipped| skipped.path.clone()));
    let failed = relative(&world, restored.failed.iter().map(|failed| failed.path.clone()));
    assert!(failed.is_empty(), "seed {seed}: {:?}", restored.failed);
    let left_out = relative(&world, baseline.left_out().unwrap().into_iter().map(|(path, _)| path));
    let named: BTreeSet<&PathBuf> = lost.iter().chain(&skipped).collect();
    for path in differences(&before, &after) {
        let path = Path::new(&path);
        // Named itself, or with what it is in; or the time of a directory around something that is.
        let told = named.iter().any(|named| path.starts_with(named) || named.starts_with(path));
        // Output that can be made again changes all the time; what is told is whether it is there.
        let output = left_out.iter().any(|out| path.starts_with(out) || out.starts_with(path));
        assert!(
            told || output && world.exists(path),
            "seed {seed}: {} ({damage:?}): {restored:?}",
            path.display()
        );
    }
    // What is called lost is.
    for path in &lost {
        let (was, is) = (look_at(&copy, path), look_at(&world.tree, path));
        assert!(was != is, "seed {seed}: {} is called lost", path.display());
        assert!(left_out.contains(path), "seed {seed}: {}", path.display());
    }
    let git = Path::new("repo/.git");
    if copy.join(git).exists() && !named.iter().any(|named| named.starts_with(git) || git.starts_with(named))
    {
        world.sh("cd repo; git fsck --strict; git diff --quiet HEAD; test \"$(git log --format=%s | tr '\\n' ' ')\" = 'two one '");
    }
    lost.len()
}

/// Output of `ls` for a path and everything below it.
fn look_at(tree: &Path, path: &Path) -> String {
    let out = std::process::Command::new("ls")
        .args(["-lAR", "--time-style=full-iso", "--"])
        .arg(path)
        .current_dir(tree)
        .output()
        .unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn everything_is_what_it_was_or_is_named() {
    let lost: usize = (1..=40).map(round).sum();
    assert!(lost > 12, "the damage is worth the name: {lost}");
}
