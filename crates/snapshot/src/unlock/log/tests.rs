//! Logs after a kill, and forged logs.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

struct Lab {
    base: tempfile::TempDir,
    root: PathBuf,
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn set(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The current state: changed, according to the log, from `old`.
fn opened(path: &Path, old: u32) -> Opened {
    let meta = std::fs::metadata(path).unwrap();
    Opened { inode: meta.ino(), uid: meta.uid(), old, new: meta.mode() & 0o7777 }
}

impl Lab {
    fn new() -> Lab {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(root.parent().unwrap().join("outside/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "x").unwrap();
        Lab { base, root }
    }

    fn log(&self) -> PathBuf {
        self.base.path().join("log")
    }

    fn outside(&self) -> PathBuf {
        self.root.parent().unwrap().join("outside")
    }

    fn close_again(&self) {
        close_again(&self.log(), std::slice::from_ref(&self.root)).unwrap();
        assert!(!self.log().exists());
    }
}

/// A log with these records: root, directories, directory, name, change.
type Line<'a> = (&'a Path, &'a [(DirId, DirId, &'a str)], DirId, &'a str, Opened);

fn write(lab: &Lab, lines: &[Line<'_>]) {
    let log = UnlockLog::new(lab.log());
    for (root, dirs, dir, name, opened) in lines {
        let dirs: Vec<_> =
            dirs.iter().map(|(id, above, name)| (*id, *above, name.as_bytes().into())).collect();
        log.note(root, 1, &dirs, *dir, name.as_bytes(), *opened).unwrap();
    }
}

#[test]
fn what_was_opened_is_closed() {
    let lab = Lab::new();
    let (a, b, file) = (lab.root.join("a"), lab.root.join("a/b"), lab.root.join("a/b/file"));
    for (path, opened) in [(&file, 0o400), (&b, 0o500), (&a, 0o711), (&lab.root, 0o511)] {
        set(path, opened);
    }
    let lines: &[Line<'_>] = &[
        (&lab.root, &[], 0, "", opened(&lab.root, 0o011)),
        (&lab.root, &[], 0, "a", opened(&a, 0o211)),
        (&lab.root, &[(7, 0, "a")], 7, "b", opened(&b, 0)),
        (&lab.root, &[(9, 7, "b")], 9, "file", opened(&file, 0)),
    ];
    write(&lab, lines);
    // A torn end, and everything after it, was not acted on.
    let mut bytes = std::fs::read(lab.log()).unwrap();
    let whole = bytes.len();
    bytes.extend_from_within(whole - 40..);
    std::fs::write(lab.log(), &bytes).unwrap();
    lab.close_again();
    assert_eq!([mode(&lab.root), mode(&a), mode(&b), mode(&file)], [0o011, 0o211, 0, 0]);
    set(&lab.root, 0o700);
    set(&a, 0o700);
    set(&b, 0o700);
}

#[test]
fn only_what_is_as_the_log_left_it() {
    let lab = Lab::new();
    let (a, b) = (lab.root.join("a"), lab.root.join("a/b"));
    let said = opened(&b, 0o255);
    let others = [
        Opened { inode: said.inode + 1, ..said },
        Opened { uid: said.uid + 1, ..said },
        Opened { old: 0o211, new: 0o711, ..said },
        // A log adds or removes no other permissions than these.
        Opened { old: 0o055, ..said },
        Opened { old: 0o4255, ..said },
        Opened { old: said.new, ..said },
    ];
    for other in others {
        write(&lab, &[(&lab.root, &[(1, 0, "a")], 1, "b", other)]);
        lab.close_again();
        assert_eq!((mode(&a), mode(&b)), (0o755, 0o755), "{other:?}");
    }
    write(&lab, &[(&lab.root, &[(1, 0, "a")], 1, "b", said)]);
    lab.close_again();
    assert_eq!(mode(&b), 0o255, "the same log with the truth in it does close it");
}

#[test]
fn nothing_outside_and_nothing_through_links() {
    let lab = Lab::new();
    let outside = lab.outside();
    symlink("../outside", lab.root.join("link")).unwrap();
    symlink("../../outside/b", lab.root.join("a/link")).unwrap();
    let elsewhere = outside.parent().unwrap().join("elsewhere");
    symlink("root", &elsewhere).unwrap();
    let said = opened(&outside.join("b"), 0o255);
    let itself = opened(&outside, 0o255);
    let lines: [Line<'_>; 8] = [
        (&outside, &[], 0, "b", said),
        (&outside, &[], 0, "", itself),
        (&elsewhere, &[], 0, "a", opened(&lab.root.join("a"), 0o255)),
        (&lab.root, &[(1, 0, "link")], 1, "b", said),
        (&lab.root, &[(1, 0, "a")], 1, "link", said),
        (&lab.root, &[(1, 0, ".."), (2, 1, "outside")], 2, "b", said),
        (&lab.root, &[], 0, "../outside/b", said),
        (&lab.root, &[(1, 5, "a")], 1, "b", said),
    ];
    for line in lines {
        write(&lab, &[line]);
        lab.close_again();
        let modes = [outside.join("b"), outside.clone(), lab.root.join("a")].map(|path| mode(&path));
        assert_eq!(modes, [0o755; 3], "{line:?}");
    }
    // The root itself became a link.
    std::fs::rename(&lab.root, lab.base.path().join("moved")).unwrap();
    symlink("outside", &lab.root).unwrap();
    write(&lab, &[(&lab.root, &[], 0, "b", said), (&lab.root, &[], 0, "", itself)]);
    lab.close_again();
    assert_eq!((mode(&outside), mode(&outside.join("b"))), (0o755, 0o755));
    // The log as a link.
    std::fs::write(lab.base.path().join("else"), "").unwrap();
    symlink("else", lab.log()).unwrap();
    assert!(close_again(&lab.log(), std::slice::from_ref(&lab.root)).is_err());
}

#[test]
fn nothing_is_opened_without_a_log() {
    let lab = Lab::new();
    let path = lab.root.join("a/b");
    set(&path, 0o000);
    let log = UnlockLog::new(lab.base.path().join("no/such/folder"));
    let parent = open_dir(rustix::fs::CWD, paths::bytes(&lab.root.join("a"))).unwrap();
    assert!(super::super::Unlocked::root(&log, &path, parent.as_fd(), b"b", 0o500).is_err());
    assert_eq!(mode(&path), 0);
    // With a log it is, and is restored.
    let log = UnlockLog::new(lab.log());
    let unlocked = super::super::Unlocked::root(&log, &path, parent.as_fd(), b"b", 0o500).unwrap();
    assert_eq!(mode(&path), 0o500);
    drop(unlocked);
    assert_eq!(mode(&path), 0);
    assert!(lab.log().exists());
    log.finish().unwrap();
    assert!(!lab.log().exists());
    set(&path, 0o700);
}
