//! A disk that can lose its power: ext4 on a loop device, put back for each cut.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nono_snapshot::failpoint::LostWrites;

use crate::faults::lab::{Lab, run, scratch, skip};

/// The image that each cut begins with.
const START: &str = "start";

const JOB: &str = "NONO_POWER_JOB";
const BASE: &str = "NONO_POWER_BASE";
const SWEEP: &str = "NONO_POWER_SWEEP";
/// Cut points of an operation, unless all are asked for.
const POINTS: u64 = 12;
/// No writes by the clock: what is on the disk depends on the operation alone. `noauto_da_alloc`: a rename does not
/// write the data of the renamed file, as on xfs.
const OPTIONS: &str = "loop,noauto_da_alloc,commit=300";

/// Moment of the power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    None,
    Step(u64, LostWrites),
    End(LostWrites),
}

/// Operation of a child.
pub(crate) struct Job {
    pub(crate) operation: String,
    pub(crate) check: bool,
    pub(crate) point: Point,
    pub(crate) base: PathBuf,
}

pub(crate) fn job() -> Option<Job> {
    let text = std::env::var(JOB).ok()?;
    let base = PathBuf::from(std::env::var(BASE).unwrap());
    let words: Vec<&str> = text.split(' ').collect();
    let cut = if words[3] == "names" { LostWrites::Names } else { LostWrites::Nothing };
    let point = match words[2] {
        "none" => Point::None,
        "end" => Point::End(cut),
        step => Point::Step(step.parse().unwrap(), cut),
    };
    Some(Job { operation: words[1].to_owned(), check: words[0] == "check", point, base })
}

fn encode(check: bool, operation: &str, point: Point) -> String {
    let name = |cut| if cut == LostWrites::Names { "names" } else { "nothing" };
    let (at, cut) = match point {
        Point::None => ("none".to_owned(), ""),
        Point::End(cut) => ("end".to_owned(), name(cut)),
        Point::Step(at, cut) => (at.to_string(), name(cut)),
    };
    format!("{} {operation} {at} {cut}", if check { "check" } else { "do" })
}

pub(crate) struct Disk {
    dir: tempfile::TempDir,
    copies: std::cell::Cell<u64>,
}

/// A mount, unmounted on drop.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.0).status();
        if !done.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted for now", self.0.display());
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }
}

impl Disk {
    /// A disk with what `prepare` leaves there, synced.
    pub(crate) fn new(prepare: impl FnOnce(&Lab)) -> Option<Disk> {
        if !rustix::process::geteuid().is_root() {
            skip("mounting needs root");
            return None;
        }
        let disk = Disk { dir: scratch(), copies: std::cell::Cell::new(0) };
        std::fs::create_dir(disk.at_path()).unwrap();
        let image = disk.image(START);
        std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let made = Command::new("mkfs.ext4").args(["-q", "-F", "-J", "size=4"]).arg(&image).output();
        match made {
            Ok(made) if made.status.success() => {}
            other => {
                skip(&format!("mkfs.ext4: {other:?}"));
                return None;
            }
        }
        let tried = disk.mount_command(START).output().unwrap();
        if !tried.status.success() {
            skip(&format!("mount: {}", String::from_utf8_lossy(&tried.stderr)));
            return None;
        }
        let mounted = Mounted(disk.at_path());
        prepare(&Lab::at(&disk.at_path()));
        drop(mounted);
        Some(disk)
    }

    fn at_path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("disk")
    }

    fn image(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.img"))
    }

    /// A copy of an image, as a file of its own: a sandbox elsewhere on the machine may have the other one mounted still, as
    /// it was when its namespace was made, and the kernel would give that one again for the same file.
    fn copy(&self, of: &str) -> String {
        let copy = format!("copy-{}", self.copies.replace(self.copies.get() + 1));
        run(Command::new("cp").arg("--sparse=always").arg(self.image(of)).arg(self.image(&copy)));
        if of != START {
            std::fs::remove_file(self.image(of)).unwrap();
        }
        copy
    }

    fn mount_command(&self, image: &str) -> Command {
        let mut command = Command::new("mount");
        command.args(["-o", OPTIONS]).arg(self.image(image)).arg(self.at_path());
        command
    }

    fn mount(&self, image: &str) -> Mounted {
        run(&mut self.mount_command(image));
        Mounted(self.at_path())
    }

    fn child(&self, check: bool, operation: &str, point: Point) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["power::entry", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(JOB, encode(check, operation, point)).env(BASE, self.at_path());
        command.output().unwrap()
    }

    /// Run the operation, cut the power at this point, check after the reboot. Returns whether there was such a point,
    /// or what is wrong.
    pub(crate) fn cut(&self, operation: &str, point: Point) -> Result<bool, String> {
        let now = self.copy(START);
        let mounted = self.mount(&now);
        let output = self.child(false, operation, point);
        if matches!(point, Point::Step(..)) && output.status.success() {
            // Threads share the work differently each time, and it was done in fewer steps.
            return Ok(false);
        }
        if output.status.signal() != Some(9) {
            return Err(format!("{operation}, {point:?}: the power was not cut: {}", text(&output)));
        }
        drop(mounted);
        let now = self.copy(&now);
        let mounted = self.mount(&now);
        let output = self.child(true, operation, point);
        drop(mounted);
        std::fs::remove_file(self.image(&now)).unwrap();
        let fine = output.status.success();
        if fine { Ok(true) } else { Err(format!("{operation}, {point:?}:\n{}", text(&output))) }
    }

    /// The same; panics if something is wrong.
    #[track_caller]
    pub(crate) fn at(&self, operation: &str, point: Point) {
        if let Err(what) = self.cut(operation, point) {
            panic!("{what}");
        }
    }

    fn steps(&self, operation: &str) -> u64 {
        let _mounted = self.mount(&self.copy(START));
        let output = self.child(false, operation, Point::None);
        assert!(output.status.success(), "{operation}: {}", text(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let steps = text.lines().find_map(|line| line.rsplit_once("steps: ")).expect("a number of steps");
        steps.1.trim().parse().unwrap()
    }

    /// Cut at many points.
    #[track_caller]
    pub(crate) fn sweep(&self, operation: &str) {
        let steps = self.steps(operation);
        let all = std::env::var(SWEEP).is_ok_and(|wish| wish == "all");
        let stride = if all { 1 } else { (steps / POINTS).max(1) };
        let mut wrong = Vec::new();
        let mut points = 0;
        for (at, cut) in [LostWrites::Names, LostWrites::Nothing].into_iter().enumerate() {
            // The two kinds of cuts at different steps.
            let first = if all { 0 } else { (at as u64 * stride / 2).min(steps) };
            let steps = (first..steps).step_by(usize::try_from(stride).unwrap());
            let all = steps.map(|at| Point::Step(at, cut)).chain([Point::End(cut)]);
            for point in all {
                match self.cut(operation, point) {
                    Ok(cut) => points += u64::from(cut),
                    Err(what) => wrong.push(what),
                }
            }
        }
        println!("{operation}: {steps} steps, {points} cuts right, {} wrong", wrong.len());
        assert!(points + wrong.len() as u64 > 6, "{operation}: only {points} cuts");
        let few: Vec<&str> = wrong.iter().take(4).map(String::as_str).collect();
        assert!(
            wrong.is_empty(),
            "{operation}: {} wrong, {points} right, e.g.\n{}",
            wrong.len(),
            few.join("\n")
        );
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Whether a path exists.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
