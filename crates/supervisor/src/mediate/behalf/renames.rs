//! A file that is renamed onto the copy of an agent's settings. A mount cannot be replaced by a rename, and programs save that
//! way; so the copy gets the content of the file, and the file goes. Every other rename is the kernel's to judge.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nono_policy::ResolvedPolicy;
use nono_policy::resolved::ClosedHow;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};

use super::scene::{Call, Handled, Response, Scene, errno_of, name_of};

/// Larger than any file of settings.
const MOST: u64 = 64 << 20;

/// A copy, as it stands in the command's view.
#[derive(Debug)]
pub(super) struct Copy {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Copy {
    /// The copies of a policy. To be made before the command can change anything.
    pub(super) fn all(policy: &ResolvedPolicy, pin: impl Fn(&Path) -> Result<OwnedFd, i32>) -> Vec<Copy> {
        let copied = policy.closed.iter().filter(|closed| closed.how == ClosedHow::Copy);
        let found = copied.filter_map(|closed| {
            let stat = rustix::fs::fstat(pin(&closed.resolved).ok()?).ok()?;
            Some(Copy { path: closed.resolved.clone(), device: stat.st_dev, inode: stat.st_ino })
        });
        found.collect()
    }

    fn is(&self, stat: &Stat) -> bool {
        (stat.st_dev, stat.st_ino) == (self.device, self.inode)
    }
}

/// Where something is, or is to be.
struct Place {
    folder: i32,
    path: PathBuf,
}

pub(crate) fn rename(scene: &Scene, call: Call<'_>) -> Handled {
    match replaced(scene, call) {
        Ok(true) => Handled::Now(Response::Value(0)),
        Ok(false) => Handled::Continue,
        Err(errno) => Handled::from(errno),
    }
}

/// Whether it was a rename onto a copy, which has the content then.
fn replaced(scene: &Scene, call: Call<'_>) -> Result<bool, i32> {
    let Some((from, onto)) = arguments(call)? else { return Ok(false) };
    // Most renames are about other names; nothing is looked up for them.
    if !scene.copies.iter().any(|copy| copy.path.file_name() == onto.path.file_name()) {
        return Ok(false);
    }
    let Ok((folder, name)) = folder_of(scene, call, &onto) else { return Ok(false) };
    let whole = name_of(&folder)?.join(&name);
    let Some(copy) = scene.copies.iter().find(|copy| copy.path == whole) else { return Ok(false) };
    // A file beside it, as programs make it; everything else fails as it does without us.
    let Ok((beside, source)) = folder_of(scene, call, &from) else { return Ok(false) };
    if name_of(&beside)? != name_of(&folder)? || source == name {
        return Ok(false);
    }
    let content = read(&folder, &source)?;
    let Some(content) = content else { return Ok(false) };
    write(&folder, &name, copy, &content)?;
    rustix::fs::unlinkat(&folder, &source, AtFlags::empty()).map_err(rustix::io::Errno::raw_os_error)?;
    Ok(true)
}

/// From where to where; none where it asks for more than that.
fn arguments(call: Call<'_>) -> Result<Option<(Place, Place)>, i32> {
    let place = |folder, index| Ok::<_, i32>(Place { folder, path: call.string(call.word(index))?.into() });
    Ok(match call.notification.nr {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => Some((place(libc::AT_FDCWD, 0)?, place(libc::AT_FDCWD, 1)?)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_renameat => Some((place(call.int(0), 1)?, place(call.int(2), 3)?)),
        libc::SYS_renameat2 if call.int(4) == 0 => Some((place(call.int(0), 1)?, place(call.int(2), 3)?)),
        _ => None,
    })
}

/// The folder that a path's last name is in, pinned, and that name.
fn folder_of(scene: &Scene, call: Call<'_>, place: &Place) -> Result<(OwnedFd, OsString), i32> {
    let whole = call.absolute(place.folder, &place.path)?;
    let (Some(folder), Some(name)) = (whole.parent(), whole.file_name()) else { return Err(libc::EINVAL) };
    Ok((scene.pin(folder, true)?, name.to_owned()))
}

/// The content of a plain file in a folder; none where it is something else, or too much.
fn read(folder: &OwnedFd, name: &OsStr) -> Result<Option<Vec<u8>>, i32> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    // No link, and nothing that is mounted there: it is the command's own file.
    let plain = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let opened = rustix::fs::openat2(folder, name, flags, Mode::empty(), plain);
    let Ok(file) = opened else { return Ok(None) };
    let stat = rustix::fs::fstat(&file).map_err(rustix::io::Errno::raw_os_error)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size.unsigned_abs() > MOST {
        return Ok(None);
    }
    let mut content = Vec::new();
    let read = std::fs::File::from(file).take(MOST).read_to_end(&mut content);
    read.map_err(|error| errno_of(&error))?;
    Ok(Some(content))
}

/// Give a copy this content. What stands there has to be the copy: for moments it may be the file itself.
fn write(folder: &OwnedFd, name: &OsStr, copy: &Copy, content: &[u8]) -> Result<(), i32> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let plain = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let file = rustix::fs::openat2(folder, name, flags, Mode::empty(), plain);
    let file = file.map_err(rustix::io::Errno::raw_os_error)?;
    if !copy.is(&rustix::fs::fstat(&file).map_err(rustix::io::Errno::raw_os_error)?) {
        return Err(libc::EBUSY);
    }
    let mut file = std::fs::File::from(file);
    let written = file.write_all(content).and_then(|()| file.set_len(content.len() as u64));
    written.map_err(|error: io::Error| errno_of(&error))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use nono_policy::resolved::{ClosedBy, ClosedPath, PathKind};

    use super::super::testing::{Lab, address, c_path};
    use super::*;
    use nono_sys::notify::Notification;

    fn lab() -> (Lab, Arc<Scene>) {
        let mut lab = Lab::new();
        fs::write(lab.path("own/settings.json"), "old").unwrap();
        let path = lab.path("own/settings.json");
        lab.policy.closed.push(ClosedPath {
            original: path.clone(),
            resolved: path,
            by: ClosedBy::Agent("a".to_owned()),
            kind: PathKind::File,
            how: ClosedHow::Copy,
            keep_read: true,
            has_openings: false,
        });
        let scene = lab.scene();
        (lab, scene)
    }

    /// What comes of a rename of this thread's: whether it was done here.
    fn try_rename(scene: &Scene, from: &Path, onto: &Path, flags: u64) -> Result<bool, i32> {
        let (from, onto) = (c_path(from), c_path(onto));
        let here = u64::from(libc::AT_FDCWD.cast_unsigned());
        let tid = fs::read_link("/proc/thread-self").unwrap();
        let tid = tid.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let args = [here, address(&from), here, address(&onto), flags, 0];
        let notification = Notification { id: 1, tid, nr: libc::SYS_renameat2, args };
        replaced(scene, Call { notification: &notification, waits: &|| true })
    }

    #[test]
    fn a_file_beside_a_copy_becomes_its_content() {
        let (lab, scene) = lab();
        let (new, settings) = (lab.path("own/.tmp"), lab.path("own/settings.json"));
        fs::write(&new, "a longer text than before").unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&settings).unwrap());
        assert_eq!(try_rename(&scene, &new, &settings, 0), Ok(true));
        assert_eq!(fs::read_to_string(&settings).unwrap(), "a longer text than before");
        assert_eq!(std::os::unix::fs::MetadataExt::ino(&fs::metadata(&settings).unwrap()), inode);
        assert!(!new.exists());
        fs::write(&new, "short").unwrap();
        assert_eq!(try_rename(&scene, &new, &settings, 0), Ok(true));
        assert_eq!(fs::read_to_string(&settings).unwrap(), "short");
    }

    #[test]
    fn everything_else_is_the_kernels() {
        let (lab, scene) = lab();
        let settings = lab.path("own/settings.json");
        for name in ["own/x", "outside/x", "read/settings.json"] {
            fs::write(lab.path(name), "x").unwrap();
        }
        fs::create_dir(lab.path("own/dir")).unwrap();
        std::os::unix::fs::symlink(lab.path("outside/x"), lab.path("own/link")).unwrap();
        for (from, onto, flags) in [
            ("own/x", "own/other", 0),
            ("own/x", "read/settings.json", 0),
            ("outside/x", "own/settings.json", 0),
            ("own/link", "own/settings.json", 0),
            ("own/dir", "own/settings.json", 0),
            ("own/settings.json", "own/settings.json", 0),
            ("own/none", "own/settings.json", 0),
            ("own/x", "own/settings.json", u64::from(libc::RENAME_EXCHANGE)),
        ] {
            assert_eq!(
                try_rename(&scene, &lab.path(from), &lab.path(onto), flags),
                Ok(false),
                "{from} {onto}"
            );
        }
        assert_eq!(fs::read_to_string(&settings).unwrap(), "old");
        // Where another file stands than the copy, nothing is written.
        fs::rename(&settings, lab.path("own/moved")).unwrap();
        fs::write(&settings, "the file itself").unwrap();
        assert_eq!(try_rename(&scene, &lab.path("own/x"), &settings, 0), Err(libc::EBUSY));
        assert_eq!(fs::read_to_string(&settings).unwrap(), "the file itself");
        assert!(lab.path("own/x").exists());
    }
}
