use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// `{root,out}`: a key outside, and in `root` symlinks to it and within.
fn lab() -> (tempfile::TempDir, PathBuf, ConfinedDir) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let root = base.join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir(base.join("out")).unwrap();
    fs::write(base.join("out/key"), "KEY").unwrap();
    fs::write(root.join("own"), "own").unwrap();
    symlink("own", root.join("inner")).unwrap();
    symlink("../own", root.join("sub/up")).unwrap();
    symlink("../out/key", root.join("relative")).unwrap();
    symlink(base.join("out/key"), root.join("absolute")).unwrap();
    symlink("../out", root.join("folder")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    let beneath = ConfinedDir::open(&root).unwrap();
    (dir, root, beneath)
}

#[test]
fn links_lead_around_in_the_folder_and_not_out_of_it() {
    let (_dir, root, beneath) = lab();
    for inside in ["own", "inner", "sub/up"] {
        assert_eq!(beneath.read(&root.join(inside)).unwrap().unwrap(), b"own", "{inside}");
        assert_eq!(beneath.locate(&root.join(inside)).unwrap(), Some(root.join("own")), "{inside}");
    }
    for out in ["relative", "absolute", "folder/key", "magic/etc/passwd"] {
        let error = beneath.read(&root.join(out)).unwrap_err();
        assert!(matches!(error, InstallError::LeadsOut { .. }), "{out}: {error}");
        assert!(matches!(beneath.place(&root.join(out)), Err(InstallError::LeadsOut { .. })), "{out}");
        assert!(beneath.make_folders(&root.join(out).join("x/y")).is_err(), "{out}");
    }
    let error = beneath.read(&root.join("folder/key")).unwrap_err().to_string();
    assert!(error.contains("root/folder is a link to") && error.contains("/out,"), "{error}");
    assert!(beneath.remove_file(&root.join("folder/key")).is_err());
    assert!(beneath.remove_folder(&root.join("folder")).is_err());
    assert_eq!(fs::read(root.parent().unwrap().join("out/key")).unwrap(), b"KEY");
}

#[test]
fn what_is_absent_is_told_from_what_leads_nowhere() {
    let (_dir, root, beneath) = lab();
    assert_eq!(beneath.read(&root.join("absent")).unwrap(), None);
    assert_eq!(beneath.read(&root.join("absent/deeper")).unwrap(), None);
    assert!(beneath.is_dangling(&root.join("dangling")) && !beneath.is_dangling(&root.join("absent")));
    let made = beneath.make_folders(&root.join("a/b/file")).unwrap();
    assert_eq!(made, [root.join("a"), root.join("a/b")]);
    let (_, place) = beneath.place(&root.join("a/b/file")).unwrap();
    assert_eq!(place, root.join("a/b/file"));
    beneath.remove_folder(&root.join("a/b")).unwrap();
    assert!(!root.join("a/b").exists());
}

#[test]
fn only_regular_files_of_a_bearable_size_are_read() {
    let (_dir, root, beneath) = lab();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
    assert!(pipe.success());
    for special in ["socket", "pipe", "sub"] {
        let error = beneath.read(&root.join(special)).unwrap_err();
        assert!(matches!(error, InstallError::NotAFile { .. }), "{special}: {error}");
        assert!(read_anywhere(&root.join(special)).is_err(), "{special}");
    }
    File::create(root.join("large")).unwrap().set_len(MOST + 1).unwrap();
    assert!(matches!(beneath.read(&root.join("large")), Err(InstallError::TooLarge { .. })));
    assert!(matches!(read_anywhere(&root.join("large")), Err(InstallError::TooLarge { .. })));
    // Outside a project the user's own symlinks are followed.
    assert_eq!(read_anywhere(&root.join("relative")).unwrap().unwrap(), b"KEY");
}
