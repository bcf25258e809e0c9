//! Unit tests for each rule; `tests/snapshot/ignore_oracle.rs` compares all of them with git.

mod artifacts;
mod caller;
mod hostile;
mod index;
mod layout;
mod limits;

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use super::{DirRules, Evidence, ExclusionConfig, ExclusionVerdict, RuleFiles, Rules};
use crate::node::Reason;

/// Folder of one test: `tree` in it is the root.
struct Place {
    temp: tempfile::TempDir,
    config: ExclusionConfig,
}

impl Place {
    fn new() -> Place {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("tree")).unwrap();
        Place { temp, config: ExclusionConfig::default() }
    }

    /// A place with these files in the root, each with its own name as content.
    fn with(files: &[&str]) -> Place {
        let place = Place::new();
        for file in files {
            place.write(file, file);
        }
        place
    }

    fn root(&self) -> PathBuf {
        self.temp.path().join("tree")
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Run git in a folder below the root.
    fn git(&self, dir: &str, args: &[&str]) -> Vec<u8> {
        let output = self.try_git(dir, args);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn try_git(&self, dir: &str, args: &[&str]) -> Output {
        Command::new("git")
            .args(["-c", "protocol.file.allow=always", "-c", "user.name=n", "-c", "user.email=e@example.com"])
            .args(args)
            .current_dir(self.root().join(dir))
            .env("HOME", self.temp.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git is needed for this test")
    }

    fn rules(&self) -> Rules {
        Rules::live(&self.config, &self.root()).unwrap()
    }

    fn ask(&self, path: &str) -> ExclusionVerdict {
        ask(&self.rules(), &self.root(), path)
    }

    fn ask_below(&self, root: &str, path: &str) -> ExclusionVerdict {
        let root = self.root().join(root);
        ask(&Rules::live(&self.config, &root).unwrap(), &root, path)
    }
}

/// Evidence in a directory on disk.
struct OnDisk<'a>(&'a Path);

impl OnDisk<'_> {
    fn at(&self, path: &[u8]) -> PathBuf {
        self.0.join(str::from_utf8(path).unwrap())
    }
}

impl Evidence for OnDisk<'_> {
    fn is_filled(&self, path: &[u8]) -> bool {
        fs::symlink_metadata(self.at(path)).is_ok_and(|meta| !meta.is_file() || meta.len() > 0)
    }

    fn any_ends_with(&self, end: &[u8]) -> bool {
        let mut names = fs::read_dir(self.0).unwrap().map(|entry| entry.unwrap().file_name());
        names.any(|name| name.as_encoded_bytes().ends_with(end))
    }

    fn begins_with(&self, path: &[u8], bytes: &[u8]) -> bool {
        fs::read(self.at(path)).is_ok_and(|found| found.starts_with(bytes))
    }

    fn is_larger(&self, name: &[u8], limit: u64) -> bool {
        let files =
            fs::read_dir(self.at(name)).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        files.sum::<u64>() > limit
    }
}

/// Verdict on a path, or on the excluded directory on the way to it.
fn ask(rules: &Rules, root: &Path, path: &str) -> ExclusionVerdict {
    go(rules, root, path).0
}

/// Verdict on a path, and the rules in its directory.
fn go(rules: &Rules, root: &Path, path: &str) -> (ExclusionVerdict, Arc<DirRules>) {
    let mut here = rules.root(File::open(root).unwrap().as_fd());
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    for end in ends {
        let at = root.join(&path[..end]);
        let is_dir = fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_dir());
        let name = at.file_name().unwrap().as_encoded_bytes();
        let verdict = here.judge(&path.as_bytes()[..end], name, is_dir, &OnDisk(at.parent().unwrap()));
        if end == path.len() || matches!(verdict, ExclusionVerdict::Leave(_)) {
            return (verdict, here);
        }
        let searching = matches!(verdict, ExclusionVerdict::Search(_));
        let exists = |name: &str| fs::symlink_metadata(at.join(name)).is_ok();
        let has = RuleFiles { gitignore: exists(".gitignore"), git: exists(".git") };
        here = here.enter(rules, &path.as_bytes()[..end], File::open(&at).unwrap().as_fd(), has, searching);
    }
    unreachable!("a path has an end")
}

fn ignored(rule: &str, file: &str) -> ExclusionVerdict {
    ExclusionVerdict::Leave(Reason::Ignored { rule: rule.into(), file: file.into() })
}
