//! `--dry-run`: the resolved policy on stdout, and nothing made or started.

use snapbox::str;

use super::world::{World, golden};

/// The transcript without what differs from machine to machine, or is only long.
fn dry(world: &World, line: &str) -> String {
    let text = world.transcript(&[line]);
    let system = |line: &&str| {
        line.contains("[group:")
            || line.contains(", does not exist now)")
            || line.starts_with("environment: PATH HOME")
    };
    text.lines().filter(|line| !system(line)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_policy_is_shown_with_its_sources() {
    let world = World::new();
    world.file("work/.env", "");
    world.file("home/notes", "");
    world.dir("home/.ssh", 0o700);
    std::os::unix::fs::symlink(world.path("home/notes"), world.path("work/link")).unwrap();
    world.profile(
        "mine",
        r#"{"extends": "rust-dev", "filesystem": {"read": ["~/.ssh"], "bypass_protection": ["~/.ssh"]}}"#,
    );
    let lines = [
        "nono run --dry-run -- true",
        "nono run --dry-run --allow . --deny .env --read-file link -- make 'a b'",
        "nono wrap --dry-run --read ~ -- true",
        "nono run --monitor --dry-run -p mine --allow-net -- true",
        "nono run --dry-run --max-time 90s --max-memory 1G --max-procs 9 --max-file-size 2M -- true",
        "nono run --dry-run --env-all --env KEY=secret --allow-connect-port 80,443 --listen-port 8080 -- true",
    ];
    golden(
        lines.iter().map(|line| dry(&world, line)).collect(),
        str![[r#"
$ nono run --dry-run -- true
command: true
mode: supervised
profile: default
working directory: [TMP]/work
grants:
network: blocked
$ nono run --dry-run --allow . --deny .env --read-file link -- make 'a b'
command: make 'a b'
mode: supervised
profile: default
working directory: [TMP]/work
grants:
  [TMP]/work (read+write) dir [user]
  [TMP]/home/notes (read) file [user] (given as [TMP]/work/link)
asks before it is granted: [TMP]/work/link is a link that leads to [TMP]/home/notes, out of its folder; a command could have made it (given by user)
closed inside the grants:
  [TMP]/work/.env [closed by --deny] (masked)
network: blocked
$ nono wrap --dry-run --read ~ -- true
command: true
mode: direct
profile: default
working directory: [TMP]/work
grants:
  [TMP]/home (read) dir [user]
closed inside the grants:
  [TMP]/home/.config/nono [nono's own] (not granted)
  [TMP]/home/.ssh [protected: ssh] (not granted)
  and [N] protected names that do not exist now
network: blocked
note: new entries cannot be created directly in [TMP]/home, because [TMP]/home/.config/nono in it is closed
note: new entries cannot be created directly in [TMP]/home/.config, because [TMP]/home/.config/nono in it is closed
$ nono run --monitor --dry-run -p mine --allow-net -- true
command: true
mode: monitor
profile: default < rust-dev < mine
working directory: [TMP]/work
grants:
  [TMP]/home/.ssh (read) dir [profile:mine] (given as ~/.ssh)
  [TMP]/work (read+write) dir [profile:rust-dev]
network: allowed
$ nono run --dry-run --max-time 90s --max-memory 1G --max-procs 9 --max-file-size 2M -- true
command: true
mode: supervised
profile: default
working directory: [TMP]/work
grants:
network: blocked
limits: time 90s, memory 1073741824 bytes, 9 processes, file size 2097152 bytes
$ nono run --dry-run --env-all --env KEY=secret --allow-connect-port 80,443 --listen-port 8080 -- true
command: true
mode: supervised
profile: default
working directory: [TMP]/work
grants:
network: connect to TCP ports 80, 443; listen on TCP port 8080
environment: all variables except those that inject code KEY=…

"#]],
    );
}

#[test]
fn nothing_is_made_or_started() {
    let world = World::new();
    world.sh("nono run --dry-run --allow . -- touch made").quiet(0);
    assert!(!world.path("work/made").exists());
    assert_eq!(std::fs::read_dir(world.path("state")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(world.path("tmp")).unwrap().count(), 0);
}

#[test]
fn every_grant_has_its_source() {
    let world = World::new();
    let outcome = world.sh("nono run --dry-run --read . -- true");
    let grants: Vec<String> =
        outcome.out().lines().filter(|line| line.starts_with("  ")).map(str::to_owned).collect();
    assert!(grants.len() > 5, "{grants:?}");
    for grant in grants {
        assert!(grant.contains(" [group:") || grant.contains(" [user]"), "{grant}");
    }
}

/// What a run would refuse, its rehearsal refuses too.
#[test]
fn errors_are_the_same_as_in_a_run() {
    World::new().golden(
        &[
            "nono run --dry-run --allow /no/such -- true",
            "nono run --dry-run -p no-such-profile -- true",
            "nono run --dry-run -- no-such-program",
        ],
        str![[r#"
$ nono run --dry-run --allow /no/such -- true
! [nono] error: /no/such does not exist (granted by you)
= exit 125
$ nono run --dry-run -p no-such-profile -- true
! [nono] error: there is no profile "no-such-profile"
! [nono] hint: nono profile list shows the profiles there are
= exit 125
$ nono run --dry-run -- no-such-program
! [nono] error: no-such-program: command not found
= exit 127

"#]],
    );
}
