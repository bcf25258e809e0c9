//! Renames of the copy of an agent's settings. A mount can neither be replaced by a rename nor be renamed itself, and
//! programs save files that way. So a rename onto the copy writes the file's content into it and removes the file; a
//! rename of the copy writes its content into a new file beside it, and the copy stays. Every other rename is left to
//! the kernel.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nono_policy::resolved::ClosedHow;
use nono_policy::{AccessMode, ResolvedPolicy, query_path};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};

use super::context::{CallContext, CallResponse, Handled, TrappedCall, errno_of, name_of};
use crate::mediate::pin_path::Identity;

/// Maximum size of a settings file.
const MOST: u64 = 64 << 20;

/// Copy of a settings file, in the command's view.
#[derive(Debug)]
pub(super) struct Copy {
    path: PathBuf,
    identity: Identity,
}

impl Copy {
    /// Copies of a policy. Must be called before the command can change anything.
    pub(super) fn all(policy: &ResolvedPolicy, pin: impl Fn(&Path) -> Result<OwnedFd, i32>) -> Vec<Copy> {
        let copied = policy.closed.iter().filter(|closed| closed.how == ClosedHow::Copy);
        let found = copied.filter_map(|closed| {
            let stat = rustix::fs::fstat(pin(&closed.resolved).ok()?).ok()?;
            Some(Copy { path: closed.resolved.clone(), identity: Identity::of_stat(&stat) })
        });
        found.collect()
    }

    fn is(&self, stat: &Stat) -> bool {
        Identity::of_stat(stat) == self.identity
    }
}

/// Directory and path of one side of a rename.
struct RenameEnd {
    folder: i32,
    path: PathBuf,
}

pub(crate) fn rename(scene: &CallContext, call: TrappedCall<'_>) -> Result<Handled, i32> {
    let done = carried_out(scene, call)?;
    Ok(if done { Handled::Now(CallResponse::Value(0)) } else { Handled::Continue })
}

/// Whether it was a rename of a copy, or onto one, within its directory, and has been done.
fn carried_out(scene: &CallContext, call: TrappedCall<'_>) -> Result<bool, i32> {
    let Some((from, onto)) = arguments(call)? else { return Ok(false) };
    // Most renames concern other names; nothing is looked up for them.
    let is_named =
        |place: &RenameEnd| scene.copies.iter().any(|copy| copy.path.file_name() == place.path.file_name());
    if !is_named(&from) && !is_named(&onto) {
        return Ok(false);
    }
    let Ok((folder, name)) = folder_of(scene, call, &onto) else { return Ok(false) };
    // Only a file beside it, as programs make it; everything else fails as it would without nono.
    let Ok((beside, source)) = folder_of(scene, call, &from) else { return Ok(false) };
    let place = name_of(&folder)?;
    if name_of(&beside)? != place || source == name {
        return Ok(false);
    }
    let copy_at = |name: &OsStr| scene.copies.iter().find(|copy| copy.path == place.join(name));
    match (copy_at(&source), copy_at(&name)) {
        (None, Some(copy)) => replaced(&folder, &source, &name, copy),
        // The name is removed and made anew, so the directory must be writable by the command too.
        (Some(copy), None) if may_write(scene, &place) && may_write(scene, &place.join(&name)) => {
            set_aside(&folder, &source, &name, copy)
        }
        _ => Ok(false),
    }
}

/// Writes the content of `source` into the copy and removes `source`; false if it is left to the kernel.
fn replaced(folder: &OwnedFd, source: &OsStr, name: &OsStr, copy: &Copy) -> Result<bool, i32> {
    let Some(content) = read(folder, source)? else { return Ok(false) };
    write(folder, name, copy, &content)?;
    rustix::fs::unlinkat(folder, source, AtFlags::empty()).map_err(rustix::io::Errno::raw_os_error)?;
    Ok(true)
}

/// Writes the content of the copy into a new file `name`; false if it is left to the kernel.
fn set_aside(folder: &OwnedFd, source: &OsStr, name: &OsStr, copy: &Copy) -> Result<bool, i32> {
    let numbered = rustix::io::Errno::raw_os_error;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let plain = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let file = rustix::fs::openat2(folder, source, flags, Mode::empty(), plain).map_err(numbered)?;
    if !copy.is(&rustix::fs::fstat(&file).map_err(numbered)?) {
        return Err(libc::EBUSY);
    }
    let Some(content) = content(file)? else { return Ok(false) };
    // A mount point cannot be removed, and this call does not remove directories.
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(_) => return Ok(false),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat2(folder, name, flags, mode, plain).map_err(numbered)?;
    std::fs::File::from(file).write_all(&content).map_err(|error| errno_of(&error))?;
    Ok(true)
}

/// Whether the command could change this itself.
fn may_write(scene: &CallContext, path: &Path) -> bool {
    query_path(&scene.policy, path, true, AccessMode::Write).is_allowed()
}

/// Old and new path; `None` if the call has flags.
fn arguments(call: TrappedCall<'_>) -> Result<Option<(RenameEnd, RenameEnd)>, i32> {
    let place =
        |folder, index| Ok::<_, i32>(RenameEnd { folder, path: call.string(call.word(index))?.into() });
    Ok(match call.notification.nr {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => Some((place(libc::AT_FDCWD, 0)?, place(libc::AT_FDCWD, 1)?)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_renameat => Some((place(call.int(0), 1)?, place(call.int(2), 3)?)),
        libc::SYS_renameat2 if call.int(4) == 0 => Some((place(call.int(0), 1)?, place(call.int(2), 3)?)),
        _ => None,
    })
}

/// Pinned directory that contains a path's last component, and that component.
fn folder_of(
    scene: &CallContext,
    call: TrappedCall<'_>,
    place: &RenameEnd,
) -> Result<(OwnedFd, OsString), i32> {
    let whole = call.absolute(place.folder, &place.path)?;
    let (Some(folder), Some(name)) = (whole.parent(), whole.file_name()) else { return Err(libc::EINVAL) };
    Ok((scene.pin(folder, true)?, name.to_owned()))
}

/// Content of a file of the command's in a directory.
fn read(folder: &OwnedFd, name: &OsStr) -> Result<Option<Vec<u8>>, i32> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    // No link and no mount: it is the command's own file.
    let plain = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let opened = rustix::fs::openat2(folder, name, flags, Mode::empty(), plain);
    opened.map_or(Ok(None), content)
}

/// Content of a file; `None` if it is not a regular file or too large.
fn content(file: OwnedFd) -> Result<Option<Vec<u8>>, i32> {
    let stat = rustix::fs::fstat(&file).map_err(rustix::io::Errno::raw_os_error)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size.unsigned_abs() > MOST {
        return Ok(None);
    }
    let mut content = Vec::new();
    let read = std::fs::File::from(file).take(MOST).read_to_end(&mut content);
    read.map_err(|error| errno_of(&error))?;
    Ok(Some(content))
}

/// Replaces the content of a copy. The object must be the copy: for moments the original file may be there.
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

    use super::super::testing::{HandlerTest, address, c_path};
    use super::*;
    use nono_sys::notify::Notification;

    fn lab() -> (HandlerTest, Arc<CallContext>) {
        let mut lab = HandlerTest::new();
        fs::write(lab.path("own/settings.json"), "old").unwrap();
        let (path, by) = (lab.path("own/settings.json"), ClosedBy::Agent("a".to_owned()));
        let closed = ClosedPath::new(path, by, PathKind::File, ClosedHow::Copy);
        lab.policy.closed.push(ClosedPath { keep_read: true, ..closed });
        let scene = lab.scene();
        (lab, scene)
    }

    /// Result of a rename by this thread: whether it was emulated.
    fn try_rename(scene: &CallContext, from: &Path, onto: &Path, flags: u64) -> Result<bool, i32> {
        let (from, onto) = (c_path(from), c_path(onto));
        let here = u64::from(libc::AT_FDCWD.cast_unsigned());
        let tid = fs::read_link("/proc/thread-self").unwrap();
        let tid = tid.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let args = [here, address(&from), here, address(&onto), flags, 0];
        let notification = Notification { id: 1, tid, nr: libc::SYS_renameat2, args };
        carried_out(scene, TrappedCall { notification: &notification, waits: &|| true })
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
    fn a_copy_that_is_renamed_stays_and_is_beside() {
        let (lab, scene) = lab();
        let (aside, settings) = (lab.path("own/settings.json.orig"), lab.path("own/settings.json"));
        assert_eq!(try_rename(&scene, &settings, &aside, 0), Ok(true));
        fs::write(&settings, "new").unwrap();
        assert_eq!(fs::read_to_string(&aside).unwrap(), "old");
        // An existing entry is replaced; a link is not followed.
        fs::remove_file(&aside).unwrap();
        fs::write(lab.path("outside/x"), "x").unwrap();
        std::os::unix::fs::symlink(lab.path("outside/x"), &aside).unwrap();
        assert_eq!(try_rename(&scene, &settings, &aside, 0), Ok(true));
        assert_eq!(fs::read_to_string(&aside).unwrap(), "new");
        assert_eq!(fs::read_to_string(lab.path("outside/x")).unwrap(), "x");
        assert!(fs::symlink_metadata(&aside).unwrap().is_file() && settings.exists());
    }

    #[test]
    fn a_copy_is_not_renamed_to_what_is_closed() {
        let (mut lab, _) = lab();
        let hooks = lab.path("own/hooks.json");
        let closed = ClosedPath {
            original: hooks.clone(),
            resolved: hooks.clone(),
            how: ClosedHow::Mask,
            ..lab.policy.closed[0].clone()
        };
        lab.policy.closed.push(closed);
        let scene = lab.scene();
        let settings = lab.path("own/settings.json");
        fs::create_dir(lab.path("own/dir")).unwrap();
        for onto in ["own/hooks.json", "own/dir", "read/settings.json", "outside/new"] {
            assert_eq!(try_rename(&scene, &settings, &lab.path(onto), 0), Ok(false), "{onto}");
        }
        assert!(!hooks.exists() && !lab.path("outside/new").exists());
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
        // If another file than the copy is there, nothing is written.
        fs::rename(&settings, lab.path("own/moved")).unwrap();
        fs::write(&settings, "the file itself").unwrap();
        assert_eq!(try_rename(&scene, &lab.path("own/x"), &settings, 0), Err(libc::EBUSY));
        assert_eq!(fs::read_to_string(&settings).unwrap(), "the file itself");
        assert!(lab.path("own/x").exists());
    }
}
