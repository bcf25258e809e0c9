//! Law 3: a round trip is exact, and so is its undo.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nono_snapshot::ChangeType;

use crate::common::{World, bytes, clean, go_back, is_root, no_debris, skip};
use nono_testkit::oracle::{inodes, look, same};

/// A tree with some of everything.
fn make(world: &World) {
    for n in 0..40 {
        world.write(format!("src/{n}.rs"), format!("fn f{n}() {{}}\n"));
        world.write(format!("untouched/{n}.txt"), format!("never touched {n}\n"));
    }
    world.write(bytes(b"names/new\nline"), "n");
    world.write(bytes(b"names/\xff\xfe\x80"), "ff");
    world.write(bytes(b"names/-rf *"), "star");
    world.write(bytes(b"names/.nono-mine"), "not debris");
    world.write(bytes(&[b"names/".as_slice(), &[b'x'; 255]].concat()), "255");
    world.write(bytes(&[b"names/".as_slice(), &[0xfe; 255]].concat()), "255 bytes");
    world.write("big", vec![7u8; 3_000_000]);
    world.write("empty-file", "");
    world.write("same-size", "aaaa");
    world.sh(
        "mkdir -p empty/deeper/still modes links d1 d2
         ln -s nowhere links/dangling; ln -s ../src links/to-dir; ln -s ../big links/to-file
         ln -s loop links/loop; ln -s /etc/passwd links/absolute; ln -s . links/self
         for m in 0000 0400 0644 0755 1755 2755 4755 6711 7777; do echo $m > modes/f$m; chmod $m modes/f$m; done
         for m in 0700 0555 1777 2775 3777; do mkdir modes/d$m; echo $m > modes/d$m/in; chmod $m modes/d$m; done
         ln src/1.rs hard-1; ln src/1.rs src/hard-2; ln big d1/big-too
         ln -P links/dangling links/dangling-too
         setfattr -n user.one -v 1 src/2.rs; setfattr -n user.two -v 0x00ff0a src/2.rs; setfattr -n user.dir -v d d1
         setfattr -n user.large -v 0x$(head -c 3000 /dev/zero | od -An -v -tx1 | tr -d ' \\n') src/4.rs
         touch -d '1969-12-31 23:59:58.123456789' src/5.rs; touch -d '2040-01-01 00:00:00.000000001' src/6.rs
         touch -h -d '2001-02-03 04:05:06.070809010' links/dangling
         mkfifo -m 0622 fifo
         truncate -s 10M sparse; echo x | dd of=sparse bs=1 seek=5000000 conv=notrunc status=none
         touch -d '2011-11-11 11:11:11.111111111' d1 d2 empty/deeper/still modes/d0555",
    );
}

/// Whether access control lists work on that filesystem.
fn acls(world: &World) -> bool {
    let probe = world.dir.path().join("probe");
    std::fs::write(&probe, "").unwrap();
    let set = |args: &[&str]| std::process::Command::new("setfacl").args(args).arg(&probe).status();
    set(&["-m", "u:1:r"]).is_ok_and(|status| status.success())
}

fn make_acls(world: &World) {
    world.sh("setfacl -m u:1234:rw,g:99:r src/3.rs
         mkdir acl-dir; setfacl -m d:u:1234:rwx acl-dir; echo inherits > acl-dir/file; mkdir acl-dir/sub
         echo none > acl-dir/plain; setfacl -b acl-dir/plain; chmod 640 acl-dir/plain; mkfifo acl-dir/fifo
         mkdir acl-dir/without; setfacl -b -k acl-dir/without");
}

fn make_as_root(world: &World) {
    world.sh("chown 1234:5678 src/7.rs d2; chown -h 1:2 links/loop
         echo suid > suid; chown 77:78 suid; chmod 6755 suid
         echo caps > caps; setfattr -n security.capability -v 0x0100000200040000000000000000000000000000 caps
         setfattr -n trusted.mine -v t src/8.rs; setfattr -h -n trusted.link -v l links/to-dir
         mknod null c 1 3; mknod -m 0660 block b 240 77; chown 5:6 block");
}

fn vandalise(world: &World) {
    world.sh(
        "rm -rf names empty
         for n in 10 11 12 13; do echo overwritten > src/$n.rs; done
         rm src/14.rs; mv src/15.rs src/renamed.rs; mv src/16.rs t; mv src/17.rs src/16.rs; mv t src/17.rs
         mv d1 d-moved; mv d2 d1
         touch -r same-size ref; printf bbbb > same-size; touch -r ref same-size; rm ref
         chmod 777 src/18.rs; chmod 4755 src/19.rs; chmod 0 src/20.rs; chmod 700 modes; chmod -R a-s,a-t modes
         touch src/21.rs
         setfattr -n user.one -v changed src/2.rs; setfattr -x user.two src/2.rs; setfattr -n user.new -v n src/22.rs
         setfattr -x user.large src/4.rs
         cp src/1.rs t; mv t src/1.rs; ln src/23.rs src/24-too; rm links/dangling-too; ln src/25.rs hard-3
         echo y | dd of=sparse bs=1 seek=100 conv=notrunc status=none
         truncate -s 5M big; rm fifo; mkfifo -m 0600 fifo
         rm links/to-dir; ln -s elsewhere links/to-dir; touch -h links/to-file
         mkdir -p junk/a/b/c; echo junk > junk/a/b/c/d; ln -s /etc junk/etc; mkfifo junk/p; chmod 555 junk/a/b/c junk
         echo grown >> src/26.rs; : > src/27.rs; truncate -s 3000000 empty-file",
    );
}

fn round_trip_on(place: &Path) {
    let world = World::on(place);
    make(&world);
    let acls = acls(&world);
    if acls {
        make_acls(&world);
    } else {
        skip("no access control lists here");
    }
    if is_root() {
        make_as_root(&world);
    }
    let (before, before_inodes) = (look(&world.tree), inodes(&world.tree));
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    same(&before, &look(&world.tree));
    vandalise(&world);
    if acls {
        world.sh("setfacl -b src/3.rs; setfacl -k acl-dir; rm -rf acl-dir/file acl-dir/plain acl-dir/fifo acl-dir/without; setfacl -m u:7:r src/30.rs");
    }
    if is_root() {
        world.sh("chown 0:0 src/7.rs; chown 9:9 src/31.rs; echo x > suid; rm caps null; chown 0:0 block; setfattr -x trusted.mine src/8.rs");
    }
    let vandalised = look(&world.tree);
    let planned = manager.compute_restore_diff(0).unwrap();
    same(&vandalised, &look(&world.tree));
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(&before, &look(&world.tree));
    no_debris(&world.path("src"));
    assert_eq!(planned, restored.changes, "the dry run tells what is done");
    let after_inodes = inodes(&world.tree);
    for (path, inode) in before_inodes.iter().filter(|(path, _)| path.starts_with("untouched")) {
        assert_eq!(inode, &after_inodes[path], "{path}");
    }
    // Only attributes were changed: the file itself stays.
    for path in ["src/18.rs", "src/21.rs", "src/22.rs", "src/20.rs"] {
        assert_eq!(before_inodes[path], after_inodes[path], "{path}");
    }
    clean(&go_back(&mut manager, &restored.safety));
    same(&vandalised, &look(&world.tree));
    clean(&manager.restore_to(0).unwrap());
    same(&before, &look(&world.tree));
    assert!(manager.verify().unwrap().is_clean());
}

#[test]
fn everything_comes_back_and_goes_again() {
    round_trip_on(&std::env::temp_dir());
}

#[test]
fn everything_comes_back_on_tmpfs() {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() {
        round_trip_on(shm);
    } else {
        skip("no /dev/shm");
    }
}

#[test]
fn everything_comes_back_after_rm_rf() {
    let world = World::new();
    make(&world);
    let before = look(&world.tree);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("chmod -R u+rwx .; rm -rf ./* ./.[!.]*");
    let empty = look(&world.tree);
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(&before, &look(&world.tree));
    assert!(restored.changes.iter().all(|change| change.change_type != ChangeType::Deleted));
    clean(&go_back(&mut manager, &restored.safety));
    same(&empty, &look(&world.tree));
}

/// Every kind becomes every other kind, and back.
#[test]
fn kinds_are_swapped_in_every_direction() {
    let kinds = [
        ("file", "echo file > $1"),
        ("big", "head -c 2000000 /dev/zero > $1"),
        ("dir", "mkdir -p $1/in/side; echo 1 > $1/in/one; ln -s x $1/l; chmod 555 $1/in"),
        ("emptydir", "mkdir $1"),
        ("dangling", "ln -s nowhere $1"),
        ("todir", "ln -s ../target $1"),
        ("tofile", "ln -s ../target/file $1"),
        ("fifo", "mkfifo $1"),
        ("socket", ":"),
        ("hardlink", "ln target/file $1"),
        ("absent", ":"),
    ];
    let world = World::new();
    world.sh("mkdir target swaps; echo in > target/file; echo witness > target/witness");
    let each = |which: usize| {
        for (from, make_from) in &kinds {
            for (to, make_to) in &kinds {
                let name = format!("swaps/{from}-{to}");
                let script = if which == 0 { make_from } else { make_to };
                world.sh(&format!("f() {{ rm -rf $1; {script}; }}; f {name}"));
                if [from, to][which] == &"socket" {
                    drop(std::os::unix::net::UnixListener::bind(world.path(&name)).unwrap());
                }
            }
        }
    };
    each(0);
    let before = look(&world.tree);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("chmod -R u+rwx swaps");
    each(1);
    let swapped = look(&world.tree);
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(&before, &look(&world.tree));
    clean(&go_back(&mut manager, &restored.safety));
    same(&swapped, &look(&world.tree));
    assert_eq!(world.read("target/witness"), "witness\n");
}

/// Any bytes but `/` and NUL may be in a name, each of them alone too.
#[test]
fn every_byte_can_be_a_name() {
    let world = World::new();
    let fine = |byte: &u8| *byte != b'/' && *byte != b'.';
    for byte in (1..=255u8).filter(fine) {
        world.write(bytes(&[byte]), [byte]);
        world.write(bytes(&[b'd', byte, b'/', byte, byte]), [byte]);
    }
    let before = look(&world.tree);
    let mut manager = world.manager();
    let manifest = manager.create_baseline().unwrap();
    assert_eq!(manifest.coverage.files, 2 * 253);
    let files = manifest.files().unwrap();
    assert!(files.keys().any(|path| path.as_os_str().as_bytes().ends_with(b"/\n")));
    world.sh("find . -mindepth 1 -delete");
    clean(&manager.restore_to(0).unwrap());
    same(&before, &look(&world.tree));
}

/// Same size and same time: `touch -r` hides an edit from a program that does not look at ctime.
#[test]
fn an_edit_with_the_old_size_and_time_is_seen() {
    let world = World::new();
    for n in 0..50 {
        world.write(format!("{n}"), "old!");
    }
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("for f in *; do touch -r $f /tmp/ref.$$; printf new! > $f; touch -r /tmp/ref.$$ $f; done; rm /tmp/ref.$$");
    let (_, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 50);
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("49"), "old!");
    clean(&manager.restore_to(1).unwrap());
    assert_eq!(world.read("0"), "new!");
}

/// A restore does not touch files that are unchanged, not even their ctime.
#[test]
fn restoring_what_is_there_touches_nothing() {
    let world = World::new();
    make(&world);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    let times = || {
        let out =
            std::process::Command::new("find").arg(&world.tree).args(["-printf", "%p %C@ %i\\n"]).output();
        out.unwrap().stdout
    };
    let before = times();
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    assert!(restored.changes.is_empty());
    // Root reads everything; an ordinary owner has to open what is closed to itself.
    if is_root() {
        assert_eq!(String::from_utf8_lossy(&before), String::from_utf8_lossy(&times()));
    }
}

/// A restore of some paths changes nothing else, and their parents keep their times.
#[test]
fn a_part_can_be_restored() {
    let world = World::new();
    make(&world);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("echo 1 > src/1.rs; echo 2 > src/2.rs; rm -rf empty; echo new > src/new.rs; rm links/to-dir");
    let changed = look(&world.tree);
    let options = nono_snapshot::RestoreOptions {
        paths: vec![world.path("src/2.rs"), world.path("empty/deeper"), world.path("src/new.rs")],
        ..Default::default()
    };
    let restored = manager.restore(&nono_snapshot::SnapshotId::Number(0), &options).unwrap();
    clean(&restored);
    assert_eq!(world.read("src/2.rs"), "fn f2() {}\n");
    assert!(world.exists("empty/deeper/still"));
    assert!(!world.exists("src/new.rs"));
    assert_eq!(world.read("src/1.rs"), "1\n");
    assert!(!world.exists("links/to-dir"));
    let ours = ["src/2.rs", "src/new.rs", "empty", "xattrs src/2.rs", "acl src/2.rs", "acl src/new.rs"];
    let acl = ["acl empty", "xattrs empty"];
    let names = [&ours[..], &acl[..]].concat();
    same(&changed.without(&names), &look(&world.tree).without(&names));
}
