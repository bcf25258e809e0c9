//! Grants that cannot be given.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use snapbox::str;

use super::world::World;

#[test]
fn paths_of_the_wrong_kind() {
    let world = World::new();
    world.file("work/file", "");
    world.dir("work/dir", 0o755);
    symlink("/no/such", world.path("work/dangling")).unwrap();
    symlink("loop", world.path("work/loop")).unwrap();
    let _socket = UnixListener::bind(world.path("work/socket")).unwrap();
    world.sh("mkfifo pipe").quiet(0);
    world.golden(
        &[
            "nono run --allow /no/such -- true",
            "nono run --read no-such -- true",
            "nono run --write-file no-such -- true",
            "nono run --allow dangling -- true",
            "nono run --read loop -- true",
            "nono run --allow file -- true",
            "nono run --read file -- true",
            "nono run --read-file dir -- true",
            "nono run --allow-file /dev/null -- true",
            "nono run --allow /dev/null -- true",
            "nono run --allow-file socket -- true",
            "nono run --read-file pipe -- true",
            "nono run --allow-unix-socket file -- true",
            "nono run --allow-unix-socket no-such -- true",
            "nono run --allow-unix-socket socket -- true",
            "nono run --allow file/below -- true",
            "nono run --read '' -- true",
        ],
        str![[r#"
$ nono run --allow /no/such -- true
! [nono] error: /no/such does not exist (granted by you)
= exit 125
$ nono run --read no-such -- true
! [nono] error: [TMP]/work/no-such does not exist (granted by you)
= exit 125
$ nono run --write-file no-such -- true
! [nono] error: [TMP]/work/no-such does not exist (granted by you)
= exit 125
$ nono run --allow dangling -- true
! [nono] error: [TMP]/work/dangling is a link that leads nowhere (granted by you)
= exit 125
$ nono run --read loop -- true
! [nono] error: [TMP]/work/loop cannot be resolved: Too many levels of symbolic links
= exit 125
$ nono run --allow file -- true
! [nono] error: [TMP]/work/file is a file, but a directory was granted
! [nono] hint: use --allow-file [TMP]/work/file
= exit 125
$ nono run --read file -- true
! [nono] error: [TMP]/work/file is a file, but a directory was granted
! [nono] hint: use --read-file [TMP]/work/file
= exit 125
$ nono run --read-file dir -- true
! [nono] error: [TMP]/work/dir is a directory, but a file was granted
! [nono] hint: use --read [TMP]/work/dir
= exit 125
$ nono run --allow-file /dev/null -- true
! [nono] error: /dev/null is a device and cannot be granted
= exit 125
$ nono run --allow /dev/null -- true
! [nono] error: /dev/null is a device and cannot be granted
= exit 125
$ nono run --allow-file socket -- true
! [nono] error: [TMP]/work/socket is a socket; a file grant does not open it
! [nono] hint: --allow-unix-socket opens a socket; the process listening there acts outside the sandbox
= exit 125
$ nono run --read-file pipe -- true
! [nono] error: [TMP]/work/pipe is a named pipe and cannot be granted on its own
= exit 125
$ nono run --allow-unix-socket file -- true
! [nono] error: [TMP]/work/file is not a unix socket
= exit 125
$ nono run --allow-unix-socket no-such -- true
! [nono] error: [TMP]/work/no-such does not exist (granted by you)
= exit 125
$ nono run --allow-unix-socket socket -- true
$ nono run --allow file/below -- true
! [nono] error: [TMP]/work/file/below cannot be resolved: Not a directory
= exit 125
$ nono run --read '' -- true
! [nono] error: a value is required for '--read <DIR>' but none was supplied
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}

#[test]
fn what_this_user_may_not_reach() {
    let world = World::new();
    world.dir("work/shut/inner", 0o755);
    world.dir("work/shut", 0o000);
    world.golden(
        &["nono run --read shut -- ls shut", "nono run --read shut/inner -- true"],
        str![[r#"
$ nono run --read shut -- ls shut
! ls: cannot open directory 'shut': Permission denied
! [nono] exit 2; no refusal was seen (-v shows the policy)
= exit 2
$ nono run --read shut/inner -- true
! [nono] error: [TMP]/work/shut/inner cannot be resolved: Permission denied
= exit 125

"#]],
    );
    world.dir("work/shut", 0o755);
}

#[test]
fn links_are_followed_once_and_widen_nothing() {
    let world = World::new();
    world.file("home/data/file", "data\n");
    world.file("home/other", "other\n");
    // In the home folder, where no command makes links; and where one may have.
    symlink(world.path("home/data"), world.path("home/link")).unwrap();
    symlink(world.path("home/data"), world.path("work/planted")).unwrap();
    symlink(world.path("home/other"), world.path("home/data/out")).unwrap();
    world.golden(
        &[
            "nono run -s --read ~/link -- cat ~/link/file ../home/data/file",
            "nono run -s --read ~/link -- cat ~/link/out",
            "nono run -s --read ~/link/../data -- cat ../home/data/file",
            "nono run -s --read ~/link -- cat ~/link/../other",
            "nono run -s --read planted -- cat planted/file",
        ],
        str![[r#"
$ nono run -s --read ~/link -- cat ~/link/file ../home/data/file
data
data
$ nono run -s --read ~/link -- cat ~/link/out
! cat: [TMP]/home/link/out: Permission denied
= exit 1
$ nono run -s --read ~/link/../data -- cat ../home/data/file
data
$ nono run -s --read ~/link -- cat ~/link/../other
! cat: [TMP]/home/link/../other: Permission denied
= exit 1
$ nono run -s --read planted -- cat planted/file
! [nono] error: [TMP]/work/planted is a link that leads to [TMP]/home/data, out of its folder; a command could have made it (given by user)
! [nono] hint: use [TMP]/home/data instead if that is meant, or confirm the link once on a terminal
= exit 125

"#]],
    );
}
