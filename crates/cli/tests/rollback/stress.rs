//! Everything at once on one store: runs that are undone or killed, checkpoints of many projects, cleanups, checks.
//! A few seconds of a few by default; `NONO_STRESS_SECONDS=600` is ten minutes of 16 runs and 64 projects at once.
//!
//! What must hold: an undo brings back exactly what was there, no checkpoint is refused, nothing that is left is damaged,
//! the limit holds on the disk at every moment, and no command fails but one that was killed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::kit::{Kit, end};
use super::said::Said;

/// How much at once: runs, and threads that take checkpoints of eight projects each.
struct Load {
    seconds: u64,
    runs: u64,
    threads: u64,
}

impl Load {
    fn wanted() -> Load {
        let seconds = std::env::var("NONO_STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
        match seconds {
            Some(seconds) => Load { seconds, runs: 16, threads: 8 },
            None => Load { seconds: 5, runs: 3, threads: 2 },
        }
    }
}

const EACH: u64 = 8;
const LIMIT: u64 = 400 << 20;

/// Numbers that look random, the same in each run of the test.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn bytes(&mut self, len: u64) -> Vec<u8> {
        (0..len).map(|_| self.next(256).to_le_bytes()[0]).collect()
    }
}

struct Stress {
    kit: Kit,
    load: Load,
    until: Instant,
    runs: AtomicU64,
    killed: AtomicU64,
    checkpoints: AtomicU64,
    peak: AtomicU64,
    done: AtomicBool,
}

impl Stress {
    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    fn nono(&self, dir: &Path, args: &[&str]) -> Said {
        let mut command = self.kit.command(args);
        command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        end(command.spawn().unwrap())
    }

    /// Runs in a tree of its own; some are killed, the others are undone.
    fn run(&self, number: u64) {
        let dir = self.kit.world.path(&format!("work/run{number}"));
        let mut dice = Dice(number + 1);
        while self.goes_on() {
            let bytes = dice.bytes(20_000);
            self.write(&dir.join("data"), &bytes);
            let script = "rm data; head -c 3000 /dev/urandom > made; mkdir -p deep; echo x > deep/x";
            let mut command = self.kit.command(&["run", "--rollback", "--no-audit", "-s", "--allow", "."]);
            command.args(["--", "bash", "-c", script]).current_dir(&dir);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            if dice.next(4) == 0 {
                // Anywhere in its life.
                std::thread::sleep(Duration::from_millis(dice.next(200)));
                child.kill().unwrap();
                let _ = child.wait().unwrap();
                self.killed.fetch_add(1, Ordering::SeqCst);
                self.kit.bare(&format!("rm -rf run{number}/made run{number}/deep"));
                continue;
            }
            end(child).ok();
            assert!(!dir.join("data").exists());
            self.nono(&dir, &["undo", "--yes"]).ok();
            assert!(fs::read(dir.join("data")).unwrap() == bytes, "run {number}: another file came back");
            assert!(!dir.join("made").exists() && !dir.join("deep").exists());
            self.runs.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Files belong to the user that nono runs as.
    fn write(&self, path: &Path, bytes: &[u8]) {
        fs::write(path, bytes).unwrap();
        let owner = self.kit.tree().metadata().unwrap();
        std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }

    fn checkpoint(&self, thread: u64) {
        let mut dice = Dice(1000 + thread);
        while self.goes_on() {
            let number = thread + self.load.threads * dice.next(EACH);
            let dir = self.kit.world.path(&format!("work/project{number}"));
            let bytes = dice.bytes(5_000);
            self.write(&dir.join("file"), &bytes);
            self.nono(&dir, &["checkpoints", "create", "-m", "stress"]).ok();
            self.checkpoints.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn tend(&self) {
        let work = self.kit.tree();
        while self.goes_on() {
            self.nono(&work, &["rollback", "cleanup", "--keep", "60", "--yes"]).ok();
            self.nono(&work, &["rollback", "verify"]).ok();
            self.nono(&work, &["checkpoints", "verify"]).ok();
        }
    }

    fn watch(&self) {
        while !self.done.load(Ordering::SeqCst) {
            self.peak.fetch_max(super::budget::taken(&self.kit.world.path("state")), Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn everything_at_once_on_one_store() {
    let load = Load::wanted();
    let kit = Kit::new();
    kit.world.file(
        "state/config.toml",
        "[rollback]\nmax_sessions = 100000\nmax_storage_gb = 0.390625\n[checkpoints]\nmax_snapshots = 20\n",
        0o600,
    );
    kit.bare(&format!(
        "for n in $(seq 0 {}); do mkdir run$n; done; for n in $(seq 0 {}); do mkdir -p project$n/.git; done",
        load.runs - 1,
        load.threads * EACH - 1
    ));
    let stress = Stress {
        kit,
        until: Instant::now() + Duration::from_secs(load.seconds),
        load,
        runs: AtomicU64::new(0),
        killed: AtomicU64::new(0),
        checkpoints: AtomicU64::new(0),
        peak: AtomicU64::new(0),
        done: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let stress = &stress;
        scope.spawn(|| stress.watch());
        let mut workers = Vec::new();
        for number in 0..stress.load.runs {
            workers.push(scope.spawn(move || stress.run(number)));
        }
        for thread in 0..stress.load.threads {
            workers.push(scope.spawn(move || stress.checkpoint(thread)));
        }
        workers.push(scope.spawn(move || stress.tend()));
        let results: Vec<_> = workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        stress.done.store(true, Ordering::SeqCst);
        for result in results {
            if let Err(panic) = result {
                std::panic::resume_unwind(panic);
            }
        }
    });
    let work = stress.kit.tree();
    stress.nono(&work, &["rollback", "verify"]).ok();
    stress.nono(&work, &["checkpoints", "verify"]).ok();
    let peak = stress.peak.load(Ordering::SeqCst);
    assert!(peak <= LIMIT, "{peak} bytes at the peak, {LIMIT} allowed");
    let (runs, killed) = (stress.runs.load(Ordering::SeqCst), stress.killed.load(Ordering::SeqCst));
    let checkpoints = stress.checkpoints.load(Ordering::SeqCst);
    assert!(runs > 0 && checkpoints > 0, "{runs} runs, {killed} killed, {checkpoints} checkpoints");
}
