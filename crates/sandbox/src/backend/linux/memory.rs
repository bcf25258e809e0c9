//! Choice of how a memory limit is enforced: by the kernel, in a cgroup of the user's own, or by polling.
//!
//! A cgroup counts everything charged to its processes: pages in unnamed files, shared memory, buffers of sockets and
//! pipes, page tables. Only version 2 is used: there a manager delegates part of the tree (`user@.service` of systemd
//! does), and a process may move from one place of that part to another.

use std::path::{Path, PathBuf};

use nono_sys::process;

use crate::strategy::ExecStrategy;

/// Method of enforcing a memory limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryHold {
    /// By the kernel, in a cgroup made in this directory.
    Cgroup { parent: PathBuf },
    /// By adding up the visible memory; kinds that are not visible are closed where they can be.
    Polled,
}

/// Chooses the method. A parent that is confined itself could not remove a cgroup, so it does not make one.
pub(super) fn hold(strategy: ExecStrategy) -> MemoryHold {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let places = || candidates(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
    let parent = (strategy == ExecStrategy::Supervised)
        .then(places)
        .and_then(|places| places.into_iter().find(|dir| is_ours(dir)));
    parent.map_or(MemoryHold::Polled, |parent| MemoryHold::Cgroup { parent })
}

/// Directories above this process's own cgroup, nearest first: moving needs permission on the common ancestor.
fn candidates(own: &str, mounts: &str) -> Vec<PathBuf> {
    let Some(own) = own.lines().find_map(|line| line.strip_prefix("0::")) else { return Vec::new() };
    let Some((root, mount)) = mounts.lines().find_map(unified) else { return Vec::new() };
    let Ok(below) = Path::new(own).strip_prefix(root) else { return Vec::new() };
    let place = mount.join(below);
    place.ancestors().skip(1).take_while(|dir| dir.starts_with(mount)).map(Path::to_owned).collect()
}

/// Root and mount point of a cgroup mount, if it is one of version 2.
fn unified(line: &str) -> Option<(&Path, &Path)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut words = mount.split(' ').skip(3);
    let place = (Path::new(words.next()?), Path::new(words.next()?));
    (kind.split(' ').next() == Some("cgroup2")).then_some(place)
}

/// Whether a cgroup can be made in there, has a memory limit, and can be moved into.
fn is_ours(dir: &Path) -> bool {
    let passed_on = std::fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    passed_on.split_ascii_whitespace().any(|controller| controller == "memory")
        && process::can_access(dir, false, true)
        && process::can_access(&dir.join("cgroup.procs"), false, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNT: &str = "24 30 0:22 / /proc rw,nosuid - proc proc rw\n35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn folders_above_the_own_cgroup_are_tried_from_the_nearest() {
        let own = "1:name=systemd:/x\n0::/user.slice/user@1000.service/app.slice/term.scope\n";
        let below =
            ["user.slice/user@1000.service/app.slice", "user.slice/user@1000.service", "user.slice", ""];
        let expected: Vec<PathBuf> = below.iter().map(|dir| Path::new("/sys/fs/cgroup").join(dir)).collect();
        assert_eq!(candidates(own, MOUNT), expected);
        assert!(candidates("0::/\n", MOUNT).is_empty(), "the top has nothing above it");
    }

    #[test]
    fn a_mount_of_a_part_shows_what_is_below_it() {
        let mount = "35 24 0:30 /lxc/one /cg rw - cgroup2 cgroup2 rw\n";
        assert_eq!(candidates("0::/lxc/one/job/leaf\n", mount), [Path::new("/cg/job"), Path::new("/cg")]);
        assert!(candidates("0::/elsewhere\n", mount).is_empty());
    }

    #[test]
    fn version_1_has_none() {
        assert!(candidates("4:memory:/a\n", MOUNT).is_empty());
        assert!(candidates("0::/a/b\n", "31 24 0:27 / /cg rw - cgroup cgroup rw,memory\n").is_empty());
    }
}
