//! Running git and patch in directories of their own, without the user's settings.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::rollback::changes::Item;
use crate::rollback::changes::testing::{Sample, TestTree, read, write};
use crate::rollback::patch::git;

pub(super) fn patch_of(sample: &Sample) -> Vec<u8> {
    let set = sample.changes();
    let items: Vec<&Item> = set.items.iter().collect();
    let mut out = Vec::new();
    git::write_patch(&sample.manager, &set, &items, &mut out).unwrap();
    out
}

fn command(program: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).env("HOME", dir).env("LC_ALL", "C").env("GIT_CONFIG_NOSYSTEM", "1");
    // Not the repository that these tests may run in.
    command.env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap());
    command.env_remove("GIT_DIR").env_remove("XDG_CONFIG_HOME");
    command
}

pub(super) fn git(dir: &Path, args: &[&str]) -> Output {
    command("git", dir).args(args).output().unwrap()
}

fn feed(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that refuses a patch early closes its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Result of applying the patch to `tree` with `program args`, or the error output.
pub(super) fn applied(
    program: &str,
    args: &[&str],
    tree: &TestTree,
    patch: &[u8],
) -> Result<TestTree, String> {
    let dir = tempfile::tempdir().unwrap();
    let root: PathBuf = dir.path().join("tree");
    write(&root, tree);
    let mut command = command(program, &root);
    command.args(args);
    let output = feed(command, patch);
    if output.status.success() {
        Ok(read(&root))
    } else {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Err(format!("{program}: {out}{err}"))
    }
}

pub(super) const GIT: (&str, &[&str]) = ("git", &["apply", "--whitespace=nowarn"]);
pub(super) const GIT_BACK: (&str, &[&str]) = ("git", &["apply", "--whitespace=nowarn", "-R"]);
pub(super) const PATCH: (&str, &[&str]) = ("patch", &["-p1", "-s", "--no-backup-if-mismatch"]);

/// Check that the patch from `old` to `new` yields `new` with each of these programs.
#[track_caller]
pub(super) fn leads(old: &TestTree, new: &TestTree, by: &[(&str, &[&str])]) {
    let patch = patch_of(&Sample::new(old, new));
    for (program, args) in by {
        let back = args.contains(&"-R");
        let (from, to) = if back { (new, old) } else { (old, new) };
        let text = String::from_utf8_lossy(&patch);
        match applied(program, args, from, &patch) {
            Ok(result) => {
                let other = |tree: &TestTree| -> Vec<String> {
                    let differs = |name: &&Vec<u8>| result.get(*name) != to.get(*name);
                    tree.keys()
                        .filter(differs)
                        .map(|name| String::from_utf8_lossy(name).into_owned())
                        .collect()
                };
                assert!(result == *to, "{program} {args:?}: {:?}, {:?}\n{text}", other(&result), other(to));
            }
            Err(complaint) => panic!("{complaint}\n{text}"),
        }
    }
}
