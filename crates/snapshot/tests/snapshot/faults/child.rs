//! The child: one operation in a separate process, given by the environment. As a test of the suite it does nothing.

use nono_testkit::noise;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nono_snapshot::{Next, RestoreOptions, SnapshotError, SnapshotId, SnapshotManager, failpoint};

use super::lab::Lab;

const SCENARIO: &str = "NONO_FAULTS_SCENARIO";
const BASE: &str = "NONO_FAULTS_BASE";
const AT: &str = "NONO_FAULTS_AT";

#[test]
fn entry() {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    let base = std::env::var(BASE).unwrap();
    let lab = Lab::at(Path::new(&base));
    if let Some(errno) = scenario.strip_prefix("errors:") {
        let (operation, errno) = errno.split_once(':').unwrap();
        return super::errors::every_step(&lab, operation, errno.parse().unwrap());
    }
    if let Some(who) = scenario.strip_prefix("churn:") {
        return super::shared::churn(&lab, who.parse().unwrap());
    }
    if scenario == "collect" {
        return super::shared::collect(&lab, &|| lab.base.join("done").exists());
    }
    if let Ok(at) = std::env::var(AT) {
        failpoint::abort_at(at.parse().unwrap());
    }
    let done = operate(&lab, &scenario);
    failpoint::disarm();
    done.unwrap_or_else(|error| panic!("{scenario}: {error}"));
}

/// Open a manager and run one operation.
pub(crate) fn operate(lab: &Lab, operation: &str) -> Result<(), SnapshotError> {
    let mut manager = lab.manager()?;
    one(&mut manager, operation)
}

pub(crate) fn one(manager: &mut SnapshotManager, operation: &str) -> Result<(), SnapshotError> {
    match operation {
        "baseline" => manager.create_baseline().map(drop),
        "incremental" => manager.create_incremental().map(drop),
        "restore" => manager.restore_to(0).map(|restored| {
            assert!(!restored.cancelled);
            for failed in &restored.failed {
                println!("failed: {}: {}", failed.path.display(), failed.error);
            }
        }),
        "add-root" => manager.add_root(&super::late::root(manager)).map(drop),
        "thin" => manager.thin(&[1, 2]),
        "closed" => {
            manager.create_next(Next { open_closed: true, if_changed: false, first_rules: false }).map(drop)
        }
        "edit" => manager.edit(&edits(manager)).map(drop),
        "restore-some" => {
            let root = manager.roots()[0].clone();
            let options = RestoreOptions {
                except: vec![root.join("replace.txt"), root.join("newdir/a")],
                keep_changed_since: vec![SnapshotId::Number(1), SnapshotId::Number(2)],
                ..RestoreOptions::default()
            };
            manager.restore(&SnapshotId::Number(0), &options).map(drop)
        }
        "recover" => manager.recover().map(drop),
        "settle" => manager.settle().map(drop),
        "gc" => manager.gc().map(drop),
        "baseline+settle" => {
            manager.create_baseline()?;
            manager.settle().map(drop)
        }
        other => panic!("no such operation: {other}"),
    }
}

/// The files that get new bytes: a small one, a large one, one with two names, one in a directory without w.
pub(crate) const EDITED: [&str; 4] = ["replace.txt", "big.bin", "hard-1", "locked/in.txt"];

fn edits(manager: &SnapshotManager) -> Vec<(PathBuf, Vec<u8>)> {
    let bytes = |name: &str| noise(if name == "big.bin" { 5 << 20 } else { 3000 }, name.len() as u64);
    EDITED.iter().map(|name| (manager.roots()[0].join(name), bytes(name))).collect()
}

/// The command that runs this binary as a child.
pub(crate) fn command(lab: &Lab, scenario: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    prepare(&mut command, lab, scenario);
    command
}

/// The same under another program, e.g. strace with its arguments.
pub(crate) fn under(program: &str, arguments: &[&str], lab: &Lab, scenario: &str) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(std::env::current_exe().unwrap());
    prepare(&mut command, lab, scenario);
    command
}

fn prepare(command: &mut Command, lab: &Lab, scenario: &str) {
    command.args(["faults::child::entry", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(SCENARIO, scenario).env(BASE, &lab.base).env_remove(AT);
}

/// Run it, killed right before step `at`.
pub(crate) fn killed_at(lab: &Lab, operation: &str, at: u64) -> Output {
    command(lab, operation).env(AT, at.to_string()).output().unwrap()
}

/// The same as the user `nobody`, from a copy of this binary.
pub(crate) fn as_user(lab: &Lab, program: &Path, operation: &str, at: u64) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    prepare(&mut command, lab, operation);
    command.env(AT, at.to_string());
    command
}
