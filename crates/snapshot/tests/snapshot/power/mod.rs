//! Loss of power. A file system on a loop device is shut down, without its log or with the log and without the data that
//! was not written yet, right before the n-th step of an operation and after its end; then it is mounted again, and a
//! new process ("after the reboot") has to find everything that was called durable, and no half of anything.
//!
//! All cut points: `NONO_POWER_SWEEP=all`. Otherwise some of them, spread over the operation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it counted"
)]

mod check;
mod kit;

use std::fs;
use std::path::Path;

use nono_snapshot::failpoint::{self, LostWrites};
use nono_snapshot::{SnapshotError, SnapshotManager};

use self::kit::{Disk, Point};
use crate::faults::lab::{self, Lab, copy};
use crate::faults::trees::{self, make_new, make_old, make_small_old};

/// One operation, or the check after the reboot, in a process of its own. As a test of the suite it does nothing.
#[test]
fn entry() {
    let Some(job) = kit::job() else { return };
    let lab = Lab::at(&job.base);
    if job.check {
        failpoint::reboot();
        return check::after(&lab, &job.operation, &job.point);
    }
    match job.point {
        Point::Step(at, cut) => failpoint::cut_power_at(at, &job.base, cut),
        Point::End(_) | Point::None => failpoint::disarm(),
    }
    let done = operate(&lab, &job.operation);
    let steps = failpoint::steps();
    failpoint::disarm();
    done.unwrap_or_else(|error| panic!("{}: {error}", job.operation));
    println!("steps: {steps}");
    if let Point::End(cut) = job.point {
        failpoint::cut_power_at(0, &job.base, cut);
        let _ = nono_snapshot::file::remove(Path::new("/nowhere"));
    }
}

fn operate(lab: &Lab, operation: &str) -> Result<(), SnapshotError> {
    let mut manager = lab.manager()?;
    match operation {
        "baseline" => manager.create_baseline().map(drop),
        "baseline-in-background" => {
            let mut manager =
                SnapshotManager::new(lab.session(), [lab.tree()], lab::plain(), nono_snapshot::Limits::NONE)?;
            manager.create_baseline()?;
            manager.wait_settled().transpose().map(drop)
        }
        "incremental" => manager.create_incremental().map(drop),
        "incremental-settled" => {
            manager.create_incremental()?;
            manager.settle().map(drop)
        }
        "restore" => manager.restore_to(0).map(|restored| assert!(restored.failed.is_empty())),
        "thin" => manager.thin(&[1]),
        other => panic!("no such operation: {other}"),
    }
}

/// The two states of the tree lie beside it, to compare with.
fn old_and_new(lab: &Lab, make: fn(&Path), between: impl FnOnce()) {
    make(&lab.tree());
    for at in 0..20 {
        trees::write(&lab.tree().join(format!("many/{at}")), format!("content {at}\n").repeat(at));
    }
    copy(&lab.tree(), &lab.base.join("old"));
    between();
    make_new(&lab.tree());
    fs::remove_dir_all(lab.tree().join("many")).unwrap();
    copy(&lab.tree(), &lab.base.join("new"));
}

fn settled_baseline(lab: &Lab) {
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    manager.settle().unwrap();
}

#[test]
fn baseline() {
    let Some(disk) = Disk::new(|lab| old_and_new(lab, make_small_old, || {})) else { return };
    disk.sweep("baseline");
    disk.sweep("baseline-in-background");
}

#[test]
fn incremental() {
    let Some(disk) = Disk::new(|lab| old_and_new(lab, make_small_old, || settled_baseline(lab))) else {
        return;
    };
    disk.sweep("incremental");
    disk.sweep("incremental-settled");
}

#[test]
fn restore() {
    let Some(disk) = Disk::new(|lab| old_and_new(lab, make_small_old, || settled_baseline(lab))) else {
        return;
    };
    disk.sweep("restore");
}

#[test]
fn restore_with_a_large_file() {
    let Some(disk) = Disk::new(|lab| old_and_new(lab, make_old, || settled_baseline(lab))) else { return };
    disk.at("restore", Point::End(LostWrites::Names));
    disk.at("restore", Point::End(LostWrites::Nothing));
}

#[test]
fn thin() {
    let prepare = |lab: &Lab| {
        old_and_new(lab, make_small_old, || settled_baseline(lab));
        for _ in 0..3 {
            lab.manager().unwrap().create_incremental().unwrap();
        }
        lab.manager().unwrap().settle().unwrap();
    };
    let Some(disk) = Disk::new(prepare) else { return };
    disk.sweep("thin");
}
