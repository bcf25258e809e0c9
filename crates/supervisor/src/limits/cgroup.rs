//! Cgroup for one run: made before the command starts, removed after its last process ended.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Cgroup `nono-<pid>-<n>`, in a directory where the kernel lets this user make one.
#[derive(Debug)]
pub(super) struct Cgroup {
    dir: PathBuf,
}

const NAME: &str = "nono-";
/// Time that killed processes may take to end.
const END: Duration = Duration::from_secs(2);

impl Cgroup {
    pub(super) fn new(parent: &Path, limit: u64) -> io::Result<Cgroup> {
        sweep(parent);
        let cgroup = Cgroup { dir: make(parent)? };
        cgroup.write("memory.max", &limit.to_string())?;
        // Where there is no swap, or it is not accounted, there is nothing to set.
        match cgroup.write("memory.swap.max", "0") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
        // The whole tree is killed, as with the polled limit: half a tree is no result.
        cgroup.write("memory.oom.group", "1")?;
        Ok(cgroup)
    }

    /// Moves a process in, with everything it starts from then on.
    pub(super) fn add(&self, pid: i32) -> io::Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Whether the kernel killed a process because of the limit.
    pub(super) fn struck(&self) -> bool {
        let events = fs::read_to_string(self.dir.join("memory.events")).unwrap_or_default();
        let count = events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse::<u64>().ok());
        count.is_some_and(|count| count > 0)
    }

    /// Peak memory use; kernels before 5.19 do not report it.
    pub(super) fn peak(&self) -> Option<u64> {
        fs::read_to_string(self.dir.join("memory.peak")).ok()?.trim().parse().ok()
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.dir.join(file), text)
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_dir(&self.dir) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            result => return result,
        }
        self.write("cgroup.kill", "1")?;
        let events = fs::File::open(self.dir.join("cgroup.events"))?;
        while fs::read_to_string(self.dir.join("cgroup.events"))?.contains("populated 1") {
            let timeout = Timespec::try_from(END).ok();
            if poll(&mut [PollFd::new(&events, PollFlags::PRI)], timeout.as_ref())? == 0 {
                break;
            }
        }
        fs::remove_dir(&self.dir)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // One that cannot be removed is empty and does nothing; the next run with a limit tries again.
        let _ = self.remove();
    }
}

/// Creates the cgroup under a name that is free: one process (a library's) may have several runs.
fn make(parent: &Path) -> io::Result<PathBuf> {
    for n in 0..1000 {
        let dir = parent.join(format!("{NAME}{}-{n}", std::process::id()));
        match fs::DirBuilder::new().mode(0o755).create(&dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| dir),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the cgroups of runs that were killed. `rmdir` removes empty ones only.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !nono_sys::process::exists(pid)) {
            // Still in use, or another user's: left alone.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
