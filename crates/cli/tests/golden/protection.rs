//! Protected paths, denied paths, and nono's own.

use std::fs;

use snapbox::str;

use super::world::World;

fn furnished() -> World {
    let world = World::new();
    world.file("home/.ssh/id", "key\n");
    world.file("home/.netrc", "password\n");
    world.file("home/notes", "note\n");
    world.file("work/.env", "token\n");
    world.file("work/sub/deep", "deep\n");
    world
}

#[test]
fn a_protected_path_is_not_granted_by_itself() {
    furnished().golden(
        &[
            "nono run --read ~/.ssh -- true",
            "nono run --read-file ~/.ssh/id -- true",
            "nono run --read-file ~/.netrc -- true",
            "nono run --bypass-protection ~/.ssh -- true",
            "nono run --read . --bypass-protection ~/.ssh -- true",
            "nono run --read . --bypass-protection . -- true",
            "nono run -s --read ~/.ssh --bypass-protection ~/.ssh -- cat ../home/.ssh/id",
            "nono run -s --read-file ~/.netrc --bypass-protection ~/.netrc -- cat ../home/.netrc",
            "nono run -s --read ~ --bypass-protection ~/.ssh -- cat ../home/.ssh/id ../home/.netrc",
        ],
        str![[r#"
$ nono run --read ~/.ssh -- true
! [nono] error: [TMP]/home/.ssh is protected (group ssh)
! [nono] hint: add --bypass-protection [TMP]/home/.ssh
= exit 125
$ nono run --read-file ~/.ssh/id -- true
! [nono] error: [TMP]/home/.ssh/id is protected (group ssh)
! [nono] hint: add --bypass-protection [TMP]/home/.ssh/id
= exit 125
$ nono run --read-file ~/.netrc -- true
! [nono] error: [TMP]/home/.netrc is protected (group tool_credentials)
! [nono] hint: add --bypass-protection [TMP]/home/.netrc
= exit 125
$ nono run --bypass-protection ~/.ssh -- true
! [nono] error: protection of [TMP]/home/.ssh is bypassed, but there is no matching grant
! [nono] hint: add --read [TMP]/home/.ssh or --read-file
= exit 125
$ nono run --read . --bypass-protection ~/.ssh -- true
! [nono] error: protection of [TMP]/home/.ssh is bypassed, but there is no matching grant
! [nono] hint: add --read [TMP]/home/.ssh or --read-file
= exit 125
$ nono run --read . --bypass-protection . -- true
! [nono] error: [TMP]/work is not protected, so there is nothing to bypass
! [nono] hint: drop --bypass-protection [TMP]/work; a grant alone opens it
= exit 125
$ nono run -s --read ~/.ssh --bypass-protection ~/.ssh -- cat ../home/.ssh/id
key
$ nono run -s --read-file ~/.netrc --bypass-protection ~/.netrc -- cat ../home/.netrc
password
$ nono run -s --read ~ --bypass-protection ~/.ssh -- cat ../home/.ssh/id ../home/.netrc
key
! cat: ../home/.netrc: Permission denied
= exit 1

"#]],
    );
}

/// `--allow ~` with nono's state where it is by default.
#[test]
fn a_granted_home_keeps_its_secrets() {
    let world = furnished().with("NONO_HOME", None);
    world.golden(
        &[
            "nono run -s --allow ~ -- sh -c 'cd; cat notes .ssh/id .netrc'",
            "nono run -s --allow ~ -- sh -c 'cd; ls .nono .ssh; echo x > .nono/x; echo x > .ssh/x; rm -rf .ssh'",
            "nono run -s --allow ~ -- sh -c 'cd; echo changed > notes; cat notes; mv .ssh moved; ln .netrc linked'",
            "nono wrap --allow ~ -- sh -c 'cd; cat notes .ssh/id; ls .nono'",
            "nono run --read ~/.nono -- true",
            "nono run --read ~/.nono --bypass-protection ~/.nono -- true",
        ],
        str![[r#"
$ nono run -s --allow ~ -- sh -c 'cd; cat notes .ssh/id .netrc'
note
! cat: .ssh/id: Permission denied
! cat: .netrc: Permission denied
= exit 1
$ nono run -s --allow ~ -- sh -c 'cd; ls .nono .ssh; echo x > .nono/x; echo x > .ssh/x; rm -rf .ssh'
! ls: cannot open directory '.nono': Permission denied
! ls: cannot open directory '.ssh': Permission denied
! sh: 1: cannot create .nono/x: Permission denied
! sh: 1: cannot create .ssh/x: Permission denied
! rm: cannot remove '.ssh': Permission denied
= exit 1
$ nono run -s --allow ~ -- sh -c 'cd; echo changed > notes; cat notes; mv .ssh moved; ln .netrc linked'
changed
! mv: cannot move '.ssh' to 'moved': Permission denied
! ln: failed to create hard link 'linked' => '.netrc': Invalid cross-device link
= exit 1
$ nono wrap --allow ~ -- sh -c 'cd; cat notes .ssh/id; ls .nono'
changed
! cat: .ssh/id: Permission denied
! ls: cannot open directory '.nono': Permission denied
= exit 2
$ nono run --read ~/.nono -- true
! [nono] error: [TMP]/home/.nono belongs to nono itself ([TMP]/home/.nono) and can never be granted
= exit 125
$ nono run --read ~/.nono --bypass-protection ~/.nono -- true
! [nono] error: [TMP]/home/.nono belongs to nono itself ([TMP]/home/.nono) and can never be granted
= exit 125

"#]],
    );
    assert_eq!(fs::read_to_string(world.path("home/.ssh/id")).unwrap(), "key\n");
    assert!(!world.path("home/.nono/x").exists() && !world.path("home/.ssh/x").exists());
}

#[test]
fn a_denied_path_is_closed_inside_a_grant() {
    furnished().golden(
        &[
            "nono run -s --allow . --deny .env -- sh -c 'cat .env; echo x > .env; cat sub/deep'",
            "nono run -s --allow . --deny sub -- sh -c 'ls sub; cat sub/deep; rm -rf sub; mv sub gone'",
            "nono wrap --allow . --deny .env -- cat .env",
            "nono run -s --monitor --allow . --deny .env -- cat .env",
            "cat .env sub/deep",
            "nono run --allow . --deny later -- true",
            "nono run --read sub --deny . -- true",
            "nono run --deny /no/such -- true",
        ],
        str![[r#"
$ nono run -s --allow . --deny .env -- sh -c 'cat .env; echo x > .env; cat sub/deep'
deep
! cat: .env: Permission denied
! sh: 1: cannot create .env: Read-only file system
$ nono run -s --allow . --deny sub -- sh -c 'ls sub; cat sub/deep; rm -rf sub; mv sub gone'
! ls: cannot open directory 'sub': Permission denied
! cat: sub/deep: Permission denied
! rm: cannot remove 'sub': Device or resource busy
! mv: cannot move 'sub' to 'gone': Device or resource busy
= exit 1
$ nono wrap --allow . --deny .env -- cat .env
! cat: .env: Permission denied
= exit 1
$ nono run -s --monitor --allow . --deny .env -- cat .env
! cat: .env: Permission denied
= exit 1
$ cat .env sub/deep
token
deep
$ nono run --allow . --deny later -- true
! [nono] error: [TMP]/work/later is denied but does not exist; nono cannot keep a name closed that is created later inside [TMP]/work, which is granted
! [nono] hint: create [TMP]/work/later first, or grant less than [TMP]/work
= exit 125
$ nono run --read sub --deny . -- true
! [nono] error: [TMP]/work/sub is granted but lies in [TMP]/work, which is denied by you
! [nono] hint: drop the grant, or the deny of [TMP]/work
= exit 125
$ nono run --deny /no/such -- true

"#]],
    );
}

#[test]
fn nono_itself_cannot_be_changed_from_inside() {
    let world = furnished();
    world.profile("mine", "{}");
    world.golden(
        &[
            "nono run -s --allow .. -- sh -c 'echo x > ../bin/nono'",
            "nono run -s --allow .. -- sh -c 'cd ../home/.config/nono/profiles && echo x > mine.json; echo x > new.json'",
            "nono run -s --allow .. -- sh -c 'ls ../state; rm -f ../tmp/nono-*/*/capabilities.json; echo x > $NONO_CAP_FILE'",
            "nono run --allow ../home/.config/nono -- true",
        ],
        str![[r#"
$ nono run -s --allow .. -- sh -c 'echo x > ../bin/nono'
! sh: 1: cannot create ../bin/nono: Read-only file system
= exit 2
$ nono run -s --allow .. -- sh -c 'cd ../home/.config/nono/profiles && echo x > mine.json; echo x > new.json'
! sh: 1: cd: can't cd to ../home/.config/nono/profiles
$ nono run -s --allow .. -- sh -c 'ls ../state; rm -f ../tmp/nono-*/*/capabilities.json; echo x > $NONO_CAP_FILE'
! ls: cannot open directory '../state': Permission denied
! rm: cannot remove '../tmp/nono-[UID]/[SESSION]/capabilities.json': Read-only file system
! sh: 1: cannot create [TMP]/tmp/nono-[UID]/[SESSION]/capabilities.json: Read-only file system
= exit 2
$ nono run --allow ../home/.config/nono -- true
! [nono] error: [TMP]/work/../home/.config/nono belongs to nono itself ([TMP]/home/.config/nono) and can never be granted
= exit 125

"#]],
    );
    world.sh("nono run -- true").quiet(0);
}
