//! Filesystems made for one test: unmounted when the value goes, also when the test fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::lab::{run, skip};

pub(crate) struct Mount {
    // Unmounted before the folder under it goes.
    mounted: Vec<PathBuf>,
    at: PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for Mount {
    fn drop(&mut self) {
        for path in self.mounted.iter().rev() {
            let done = Command::new("umount").arg(path).status();
            if !done.is_ok_and(|status| status.success()) {
                eprintln!("{} stays mounted for now", path.display());
                let _ = Command::new("umount").arg("-l").arg(path).status();
            }
        }
    }
}

fn allowed() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("mounting needs root");
    }
    root
}

impl Mount {
    pub(crate) fn path(&self) -> &Path {
        &self.at
    }

    /// Mounts a tmpfs of this size.
    pub(crate) fn tmpfs(megabytes: u64) -> Option<Mount> {
        if !allowed() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        let size = format!("size={megabytes}m");
        mount(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(&at))?;
        Some(Mount { mounted: vec![at.clone()], at, _dir: dir })
    }

    /// A filesystem of this kind in a sparse file.
    pub(crate) fn image(kind: &str, megabytes: u64) -> Option<Mount> {
        if !allowed() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let (image, at) = (dir.path().join("image"), dir.path().join("mounted"));
        fs::create_dir(&at).unwrap();
        fs::File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
        let mut make = Command::new(format!("mkfs.{kind}"));
        match kind {
            "ext4" => make.arg("-q").arg("-F"),
            "xfs" => make.args(["-q", "-m", "reflink=1"]),
            _ => make.arg("-q"),
        };
        if let Err(error) = make.arg(&image).output() {
            skip(&format!("mkfs.{kind}: {error}"));
            return None;
        }
        mount(Command::new("mount").args(["-o", "loop", "-t", kind]).arg(&image).arg(&at))?;
        let at = at.canonicalize().unwrap();
        Some(Mount { mounted: vec![at.clone()], at, _dir: dir })
    }

    /// A folder seen through FUSE, by a program on libfuse 2: no flags for renames, times only in pairs.
    pub(crate) fn fuse() -> Option<Mount> {
        if !allowed() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let (below, at) = (dir.path().join("below"), dir.path().join("mounted"));
        fs::create_dir(&below).unwrap();
        fs::create_dir(&at).unwrap();
        mount(Command::new("bindfs").arg(&below).arg(&at))?;
        let at = at.canonicalize().unwrap();
        Some(Mount { mounted: vec![at.clone()], at, _dir: dir })
    }

    /// An overlay on the disk's own filesystem; `lower` is filled before it is mounted.
    pub(crate) fn overlay(lower: impl FnOnce(&Path)) -> Option<Mount> {
        if !allowed() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["lower", "upper", "work", "merged"] {
            fs::create_dir(base.join(name)).unwrap();
        }
        lower(&base.join("lower"));
        let path = |name: &str| base.join(name).display().to_string();
        let options =
            format!("lowerdir={},upperdir={},workdir={}", path("lower"), path("upper"), path("work"));
        let at = base.join("merged");
        mount(Command::new("mount").args(["-t", "overlay", "overlay", "-o", &options]).arg(&at))?;
        Some(Mount { mounted: vec![at.clone()], at, _dir: dir })
    }
}

fn mount(command: &mut Command) -> Option<()> {
    let why = match command.output() {
        Ok(output) if output.status.success() => return Some(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    skip(&format!("{command:?}: {why}"));
    None
}

/// The filesystem as the kernel has it, written to the disk.
pub(crate) fn sync(path: &Path) {
    run(Command::new("sync").arg("-f").arg(path));
}
