use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::super::testing::{CallOutcome, HandlerTest, address, c_path, call, word};
use super::*;

const HERE: i32 = libc::AT_FDCWD;

struct Changed {
    lab: HandlerTest,
    scene: std::sync::Arc<CallContext>,
}

impl Changed {
    fn new() -> Changed {
        let lab = HandlerTest::new();
        for place in ["own", "read", "outside"] {
            std::fs::write(lab.path(place).join("file"), "x").unwrap();
            std::fs::set_permissions(lab.path(place).join("file"), PermissionsExt::from_mode(0o600)).unwrap();
        }
        Changed { scene: lab.scene(), lab }
    }

    fn call(&self, nr: i64, args: &[u64]) -> CallOutcome {
        call(nr, args, |call| change(&self.scene, call))
    }

    fn mode(&self, name: &str) -> u32 {
        std::fs::symlink_metadata(self.lab.path(name)).unwrap().mode() & 0o7777
    }

    fn chmod(&self, name: &str, mode: u64) -> CallOutcome {
        let path = c_path(&self.lab.path(name));
        self.call(libc::SYS_fchmodat, &[word(HERE), address(&path), mode])
    }
}

#[test]
fn modes_change_in_write_grants_alone() {
    let it = Changed::new();
    assert_eq!(it.chmod("own/file", 0o640), CallOutcome::Value(0));
    assert_eq!(it.mode("own/file"), 0o640);
    for place in ["read", "outside"] {
        let path = it.lab.path(place).join("file");
        symlink(&path, it.lab.path("own").join(place)).unwrap();
        let refused =
            CallOutcome::Refused(DeniedAttempt::Metadata { path: path.clone(), call: "chmod".into() });
        assert_eq!(it.chmod(&format!("{place}/file"), 0o777), refused);
        assert_eq!(it.chmod(&format!("own/../{place}/file"), 0o777), refused);
        assert_eq!(it.chmod(&format!("own/{place}"), 0o777), refused, "through a link");
        let open = File::open(&path).unwrap();
        assert_eq!(it.call(libc::SYS_fchmod, &[word(open.as_raw_fd()), 0o777]), refused, "read only");
        assert_eq!(it.mode(&format!("{place}/file")), 0o600);
    }
    assert_eq!(it.chmod("own/none", 0o600), CallOutcome::Errno(libc::ENOENT));
    assert_eq!(it.call(libc::SYS_fchmodat, &[word(HERE), 8, 0]), CallOutcome::Errno(libc::EFAULT));
}

#[test]
fn descriptors_are_judged_by_what_they_lead_to() {
    let it = Changed::new();
    let path = it.lab.path("own/file");
    let reading = File::open(&path).unwrap();
    let writing = File::options().write(true).open(&path).unwrap();
    let fchmod = |fd: &File, mode| it.call(libc::SYS_fchmod, &[word(fd.as_raw_fd()), mode]);
    assert_eq!(fchmod(&reading, 0o604), CallOutcome::Value(0));
    assert_eq!(it.mode("own/file"), 0o604);
    let named = nono_sys::fs::open_path(&path).unwrap();
    let of_named = it.call(libc::SYS_fchmod, &[word(named.as_raw_fd()), 0o777]);
    assert_eq!(of_named, CallOutcome::Errno(libc::EBADF));
    std::fs::remove_file(&path).unwrap();
    assert!(fchmod(&reading, 0o777).is_refused(), "without a name");
    assert_eq!(fchmod(&writing, 0o606), CallOutcome::Value(0));
    assert_eq!(reading.metadata().unwrap().mode() & 0o7777, 0o606);
    assert_eq!(it.call(libc::SYS_fchmod, &[word(-1), 0]), CallOutcome::Errno(libc::EBADF));
}

#[test]
fn times_and_owners_are_set_as_asked() {
    let it = Changed::new();
    let (own, out) = (c_path(&it.lab.path("own/file")), c_path(&it.lab.path("outside/file")));
    let stat = |name: &str| std::fs::symlink_metadata(it.lab.path(name)).unwrap();
    let times = [1i64, 5, 2, 7];
    let set = |path: &[u8], flags| {
        it.call(libc::SYS_utimensat, &[word(HERE), address(path), address(&times), flags])
    };
    assert_eq!(set(&own, 0), CallOutcome::Value(0));
    let meta = stat("own/file");
    assert_eq!((meta.atime(), meta.atime_nsec(), meta.mtime(), meta.mtime_nsec()), (1, 5, 2, 7));
    assert!(set(&out, 0).is_refused());
    assert_eq!(set(&own, 0x1), CallOutcome::Errno(libc::EINVAL));
    let folder = File::open(it.lab.path("own")).unwrap();
    let now = it.call(libc::SYS_utimensat, &[word(folder.as_raw_fd()), 0, 0, 0]);
    assert_eq!(now, CallOutcome::Value(0), "a descriptor without a path");
    // A link that is not followed is changed itself, and judged by its own path.
    symlink(it.lab.path("outside/file"), it.lab.path("own/link")).unwrap();
    let link = c_path(&it.lab.path("own/link"));
    assert!(set(&link, 0).is_refused());
    assert_eq!(set(&link, libc::AT_SYMLINK_NOFOLLOW as u64), CallOutcome::Value(0));
    assert_eq!((stat("own/link").mtime(), stat("outside/file").mtime() > 2), (2, true));
    let (uid, gid) = (meta.uid(), meta.gid());
    let chown = |folder: i32, path: &[u8], flags: i32| {
        let ids = [u64::from(uid), u64::from(gid)];
        it.call(libc::SYS_fchownat, &[word(folder), address(path), ids[0], ids[1], word(flags)])
    };
    assert_eq!(chown(HERE, &own, 0), CallOutcome::Value(0));
    assert!(chown(HERE, &out, 0).is_refused());
    assert_eq!(chown(HERE, &link, libc::AT_SYMLINK_NOFOLLOW), CallOutcome::Value(0));
    assert_eq!(chown(folder.as_raw_fd(), b"file\0", 0), CallOutcome::Value(0));
    assert!(chown(folder.as_raw_fd(), b"../outside/file\0", 0).is_refused());
    assert_eq!(chown(folder.as_raw_fd(), b"\0", libc::AT_EMPTY_PATH), CallOutcome::Value(0));
    assert_eq!(chown(folder.as_raw_fd(), b"\0", 0), CallOutcome::Errno(libc::ENOENT));
    let outside = nono_sys::fs::open_path(&it.lab.path("outside/file")).unwrap();
    assert!(chown(outside.as_raw_fd(), b"\0", libc::AT_EMPTY_PATH).is_refused());
}

#[test]
fn attributes_are_set_and_removed_where_writing_is_granted() {
    let it = Changed::new();
    let name = c"user.nono".to_bytes_with_nul();
    let value = vec![7u8; 65536];
    let set = |path: &std::path::Path, length: u64, follow: bool| {
        let path = c_path(path);
        let nr = if follow { libc::SYS_setxattr } else { libc::SYS_lsetxattr };
        it.call(nr, &[address(&path), address(name), address(&value), length, 0])
    };
    let remove = |path: &std::path::Path| {
        let path = c_path(path);
        it.call(libc::SYS_removexattr, &[address(&path), address(name)])
    };
    let own = it.lab.path("own/file");
    if set(&own, 3, true) == CallOutcome::Errno(libc::EOPNOTSUPP) {
        // A file system without attributes: nothing to test.
        return;
    }
    let mut got = [0; 8];
    assert_eq!(rustix::fs::getxattr(&own, c"user.nono", &mut got[..]), Ok(3));
    assert_eq!(set(&own, 65537, true), CallOutcome::Errno(libc::E2BIG));
    assert!(set(&it.lab.path("outside/file"), 3, true).is_refused());
    assert_eq!(remove(&own), CallOutcome::Value(0));
    assert_eq!(remove(&own), CallOutcome::Errno(libc::ENODATA));
    assert!(remove(&it.lab.path("read/file")).is_refused());
    // With a link that is not followed, the file it points to does not get the attribute.
    symlink(it.lab.path("outside/file"), it.lab.path("own/link")).unwrap();
    assert_eq!(set(&it.lab.path("own/link"), 3, false), CallOutcome::Errno(libc::EPERM));
    let outside = rustix::fs::getxattr(it.lab.path("outside/file"), c"user.nono", &mut got[..]);
    assert_eq!(outside, Err(Errno::NODATA));
    let long = [vec![b'x'; 256], vec![0]].concat();
    let path = c_path(&own);
    let too_long = it.call(libc::SYS_removexattr, &[address(&path), address(&long)]);
    assert_eq!(too_long, CallOutcome::Errno(libc::ERANGE));
}

#[test]
fn nothing_in_proc_is_changed() {
    let it = Changed::new();
    let path = c_path(std::path::Path::new("/proc/self/comm"));
    assert!(it.call(libc::SYS_fchmodat, &[word(HERE), address(&path), 0o777]).is_refused());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn old_calls_mean_the_same() {
    let it = Changed::new();
    let path = c_path(&it.lab.path("own/file"));
    let out = c_path(&it.lab.path("outside/file"));
    let mtime = || std::fs::metadata(it.lab.path("own/file")).unwrap().mtime();
    let micros = [3i64, 0, 4, 999_999];
    for path in [&path, &out] {
        let refused = path == &out;
        let is = |outcome: CallOutcome| {
            assert_eq!(outcome.is_refused(), refused, "{outcome:?}");
            assert!(refused || outcome == CallOutcome::Value(0), "{outcome:?}");
        };
        is(it.call(libc::SYS_utime, &[address(path), address(&[1i64, 2])]));
        assert_eq!(mtime(), if refused { 4 } else { 2 });
        is(it.call(libc::SYS_utimes, &[address(path), address(&micros)]));
        assert_eq!(mtime(), 4);
        is(it.call(libc::SYS_futimesat, &[word(HERE), address(path), address(&micros)]));
        is(it.call(libc::SYS_chmod, &[address(path), 0o600]));
        is(it.call(libc::SYS_chown, &[address(path), word(-1), word(-1)]));
        is(it.call(libc::SYS_lchown, &[address(path), word(-1), word(-1)]));
    }
    let wrong = [3i64, 0, 4, 1_000_000];
    assert_eq!(
        it.call(libc::SYS_utimes, &[address(&path), address(&wrong)]),
        CallOutcome::Errno(libc::EINVAL)
    );
}
