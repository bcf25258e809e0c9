//! `nono` on a real terminal: keys, job control, window size, full-screen programs, pipelines, hang-ups. Everything is
//! done with the bare command first, which shows what a terminal does without us.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod ends;
mod flow;
mod jobs;
mod restore;
mod show;

use crate::world;

use nono_testkit::look::read;
use nono_testkit::screen::Screen;
use world::World;

/// How a command is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Without nono: the control.
    Bare,
    /// On a pty of its own.
    Pty,
    /// On the caller's terminal (`interactive` in a profile).
    Shared,
    /// On a pty, by a parent that is sandboxed too.
    Monitor,
}

impl Way {
    const ALL: [Way; 4] = [Way::Bare, Way::Pty, Way::Shared, Way::Monitor];
    /// A sandboxed parent may not signal the other processes of its job, so it cannot stop and continue them.
    const WITH_ITS_JOB: [Way; 3] = [Way::Bare, Way::Pty, Way::Shared];

    fn prefix(self) -> &'static str {
        match self {
            Way::Bare => "",
            Way::Pty => "nono run --allow-cwd -- ",
            Way::Shared => "nono run -p shared --allow-cwd -- ",
            Way::Monitor => "nono run --monitor --allow-cwd -- ",
        }
    }
}

const SHARED: &str = r#"{ "name": "shared", "extends": "default", "interactive": true }"#;
/// Says that it is there and then repeats what it reads.
const REPEAT: &str = "#!/bin/sh\necho up; exec cat\n";
/// Says each interrupt on a line of its own, and after three how many there were.
const COUNT: &str = r#"#!/bin/sh
n=0
trap 'n=$((n+1)); printf "\nint %s\n" $n' INT
echo up
while [ $n -lt 3 ]; do sleep 0.05; done
for pause in 1 2 3 4 5 6; do sleep 0.05; done
echo "total $n"
"#;
/// Says its terminal's size whenever it is told of a change, and whenever it sees one. It forks nothing, because a shell
/// that is stopped in the middle of a fork is not seen to stop.
const SIZE: &str = r#"#!/usr/bin/perl
sub size { my $size = "\0" x 8; ioctl(STDIN, 0x5413, $size); join " ", unpack("S2", $size) }
$| = 1;
$SIG{WINCH} = sub { print "told ", size(), "\n" };
print "up\n";
my $old = "";
while (1) {
    my $new = size();
    print "size $new\n" if $new ne $old;
    $old = $new;
    select(undef, undef, undef, 0.05);
}
"#;
/// Stays, with a child in a session of its own that stays too.
const HOLD: &str = r#"#!/bin/sh
setsid sh "$0-child" "$0-child" &
echo up
while :; do sleep 0.1; done
"#;
const HOLD_CHILD: &str = "trap '' HUP TERM; while :; do sleep 0.1; done";

fn world() -> World {
    let world = World::new();
    world.file("home/.config/nono/profiles/shared.json", SHARED, 0o644);
    let scripts =
        [("repeat", REPEAT), ("count", COUNT), ("size", SIZE), ("hold", HOLD), ("hold-child", HOLD_CHILD)];
    for (name, text) in scripts {
        world.file(&format!("work/{name}"), text, 0o755);
    }
    world
}

/// Does the same in every way, each on a fresh screen, and says which one failed.
fn each(ways: &[Way], test: impl Fn(&World, &Screen<'_>, Way)) {
    for way in ways {
        println!("{way:?}");
        let world = world();
        let screen = Screen::new(&world);
        test(&world, &screen, *way);
    }
}

/// The command line that runs a script of this world in that way.
fn script(world: &World, way: Way, name: &str) -> String {
    format!("{}{}", way.prefix(), world.path(&format!("work/{name}")).display())
}

/// The terminal's settings, as the shell sees them.
fn settings(world: &World, screen: &Screen<'_>) -> String {
    assert_eq!(screen.run("stty -a > settings"), 0);
    read(world, "work/settings")
}
