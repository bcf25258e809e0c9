//! What is granted opens, and nothing else does.

use snapbox::str;

use super::world::World;

#[test]
fn grants_open_and_nothing_else_does() {
    let world = World::new();
    world.file("work/in", "inside\n");
    world.file("home/out", "outside\n");
    world.golden(
        &[
            "nono run -s --read . -- cat in",
            "nono run -s --read . -- sh -c 'echo x > in'",
            "nono run -s --write . -- sh -c 'echo written > in'; cat in",
            "nono run -s --write . -- cat in",
            "nono run -s --allow . -- sh -c 'echo both > in; cat in ../home/out'",
            "nono run -s --read-file in -- cat in",
            "nono run -s --write-file in -- sh -c 'echo file > in'; cat in",
            "NONO_READ=/no/such nono run -- true",
            "NONO_ALLOW=../home,. nono run -s -- sh -c 'cat in ../home/out'",
            "NONO_READ=. NONO_WRITE=../home nono run -s -- sh -c 'cat in; echo new > ../home/out; cat ../home/out'",
        ],
        str![[r#"
$ nono run -s --read . -- cat in
inside
$ nono run -s --read . -- sh -c 'echo x > in'
! sh: 1: cannot create in: Read-only file system
= exit 2
$ nono run -s --write . -- sh -c 'echo written > in'; cat in
written
$ nono run -s --write . -- cat in
! cat: in: Permission denied
= exit 1
$ nono run -s --allow . -- sh -c 'echo both > in; cat in ../home/out'
both
! cat: ../home/out: Permission denied
= exit 1
$ nono run -s --read-file in -- cat in
both
$ nono run -s --write-file in -- sh -c 'echo file > in'; cat in
file
$ NONO_READ=/no/such nono run -- true
! [nono] error: /no/such does not exist (granted by you)
= exit 125
$ NONO_ALLOW=../home,. nono run -s -- sh -c 'cat in ../home/out'
file
outside
$ NONO_READ=. NONO_WRITE=../home nono run -s -- sh -c 'cat in; echo new > ../home/out; cat ../home/out'
file
! cat: ../home/out: Permission denied
= exit 1

"#]],
    );
}

#[test]
fn the_working_directory_is_kept_or_chosen() {
    let world = World::new();
    world.dir("work/sub", 0o755);
    world.golden(
        &[
            "nono run --allow-cwd -- pwd",
            "nono run --allow-cwd --workdir sub -- sh -c 'pwd; touch made; ls'",
            "nono run --workdir /no/such -- true",
            "nono run --workdir /etc/passwd -- true",
        ],
        str![[r#"
$ nono run --allow-cwd -- pwd
[TMP]/work
$ nono run --allow-cwd --workdir sub -- sh -c 'pwd; touch made; ls'
[TMP]/work/sub
made
$ nono run --workdir /no/such -- true
! [nono] error: --workdir /no/such: No such file or directory
= exit 125
$ nono run --workdir /etc/passwd -- true
! [nono] error: --workdir /etc/passwd: not a directory
= exit 125

"#]],
    );
}
