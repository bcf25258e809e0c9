//! Limits: what ends the command, the code, and the message that names the limit.

use snapbox::str;

use super::world::World;

#[test]
fn time() {
    World::new().golden(
        &[
            "nono run --max-time 200ms -- sleep 1000",
            "nono run --monitor --max-time 0.2s -- sleep 1000",
            "nono run --max-time 200ms -- sh -c 'trap \"\" TERM INT HUP; sleep 1000 & wait; sleep 1000'",
            "nono run --max-time 1h -- true",
        ],
        str![[r#"
$ nono run --max-time 200ms -- sleep 1000
! [nono] the command was ended: it ran longer than --max-time 200ms
= exit 124
$ nono run --monitor --max-time 0.2s -- sleep 1000
! [nono] the command was ended: it ran longer than --max-time 200ms
= exit 124
$ nono run --max-time 200ms -- sh -c 'trap "" TERM INT HUP; sleep 1000 & wait; sleep 1000'
! [nono] the command was ended: it ran longer than --max-time 200ms
= exit 124
$ nono run --max-time 1h -- true

"#]],
    );
}

/// What watches the clock is out of reach: an init without descriptors could not be told to end anything.
#[test]
fn time_with_the_limits_of_init_attacked() {
    let world = World::new();
    let attack = "import resource as r, time
for pid in 1, __import__(\"os\").getppid():
    try: print(r.prlimit(pid, r.RLIMIT_NOFILE, (0, 0)))
    except PermissionError: print(\"refused\")
time.sleep(1000)";
    for way in ["run", "run --monitor"] {
        let outcome = world.sh(&format!("nono {way} --max-time 1s -- python3 -u -c '{attack}'"));
        assert_eq!(
            (outcome.out().as_str(), outcome.code()),
            ("refused\nrefused\n", Some(124)),
            "{outcome:?}"
        );
    }
    world.left_nothing();
}

/// The number of bytes seen differs from run to run.
fn without_numbers(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "#")
        .split("##")
        .collect::<Vec<_>>()
        .join("#")
        .replace("##", "#")
}

#[test]
fn memory_of_one() {
    let world = World::new();
    let slowly =
        "x = []\nfor _ in range(80): x.append(bytearray(b\"x\" * (4 << 20)))\nimport time; time.sleep(1000)";
    let outcome = world.sh(&format!("nono run --max-memory 100M -- python3 -c '{slowly}'"));
    assert_eq!(outcome.code(), Some(137), "{outcome:?}");
    assert!(outcome.err().contains("--max-memory allows 100 MiB"), "{outcome:?}");
    world.left_nothing();
}

#[test]
fn memory_while_monitored() {
    let world = World::new();
    let greedy = "x = [bytearray(b\"x\" * (4 << 20)) for _ in range(75)]\nimport time; time.sleep(1000)";
    let outcome = world.sh(&format!("nono run --monitor --max-memory 64M -- python3 -c '{greedy}'"));
    assert_eq!(outcome.code(), Some(137), "{outcome:?}");
    world.left_nothing();
}

#[test]
fn memory_of_all_together() {
    let world = World::new();
    let one = "python3 -c 'x = b\"x\" * (40 << 20); import time; time.sleep(1000)'";
    let outcome = world.sh(&format!(
        "nono run --max-memory 100M -- sh -c '{0} & {0} & {0} & {0} & wait'",
        one.replace('\'', "'\\''")
    ));
    assert_eq!(outcome.code(), Some(137), "{outcome:?}");
    let said = without_numbers(&outcome.err());
    let last = said.trim_end().lines().last().unwrap_or_default();
    // In a cgroup nothing is polled.
    let expected = "[nono] the command was ended: its processes used # MiB, --max-memory allows # MiB";
    assert!(last.starts_with(expected), "{outcome:?}");
    if last != expected {
        assert_eq!(last, format!("{expected}, polled every # ms"));
        assert!(said.contains("pipes, TCP buffers and open files are not counted"), "{said}");
    }
}

/// One request beyond anything fails inside the command; that it was the limit is still said.
#[test]
fn memory_at_once() {
    let world = World::new();
    let outcome = world.sh("nono run --max-memory 100M -- python3 -c 'bytearray(4 << 30)'");
    assert!(outcome.err().contains("--max-memory (100 MiB)"), "{outcome:?}");
}

#[test]
fn processes() {
    let world = World::new();
    let outcome =
        world.sh("nono run --max-procs 4 -- sh -c 'for i in 1 2 3 4 5 6; do sleep 1000 & done; exit 1'");
    assert!(outcome.err().contains("--max-procs"), "{outcome:?}");
    world.sh("nono run --max-procs 4 -- sh -c 'true & wait'").quiet(0);
    world.left_nothing();
}

#[test]
fn size_of_files() {
    let world = World::new();
    world.golden(
        &[
            "nono run --allow . --max-file-size 1M -- dd if=/dev/zero of=big bs=64K count=64 status=none",
            "stat -c %s big; rm big",
            "nono wrap --allow . --max-file-size 4K -- head -c 4K /dev/zero > whole; stat -c %s whole",
        ],
        str![[r#"
$ nono run --allow . --max-file-size 1M -- dd if=/dev/zero of=big bs=64K count=64 status=none
! [nono] the command was ended: it wrote a file beyond --max-file-size (1048576 bytes)
= exit 153
$ stat -c %s big; rm big
1048576
$ nono wrap --allow . --max-file-size 4K -- head -c 4K /dev/zero > whole; stat -c %s whole
4096

"#]],
    );
    let outcome = world.sh("nono run --allow . --max-file-size 1M -- sh -c 'head -c 2M /dev/zero > big'");
    assert!(outcome.err().contains("--max-file-size"), "behind a shell: {outcome:?}");
}

#[test]
fn values_that_mean_nothing() {
    World::new().golden(
        &[
            "nono run --max-time soon -- true",
            "nono run --max-time 0 -- true",
            "nono run --max-time 1y -- true",
            "nono run --max-memory much -- true",
            "nono run --max-memory 0 -- true",
            "nono run --max-procs none -- true",
            "nono run --max-procs 0 -- true",
            "nono run --max-file-size 5X -- true",
            "nono run --allow-connect-port 70000 -- true",
        ],
        str![[r#"
$ nono run --max-time soon -- true
! [nono] error: invalid value 'soon' for '--max-time <TIME>': "soon" is not a duration: write 30s, 10m or 2h
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --max-time 0 -- true
! [nono] error: invalid value '0' for '--max-time <TIME>': "0" is zero, negative or too long for a duration
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --max-time 1y -- true
! [nono] error: invalid value '1y' for '--max-time <TIME>': "y" is not a unit of time: use ms, s, m, h or d
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --max-memory much -- true
! [nono] error: invalid value 'much' for '--max-memory <SIZE>': "much" is not a size: write 512K, 200M or 2G
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --max-memory 0 -- true
! [nono] error: invalid value '0' for '--max-memory <SIZE>': "0" is not a usable size
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --max-procs none -- true
! [nono] error: invalid value 'none' for '--max-procs <N>': write a whole number from 1 on
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --max-procs 0 -- true
! [nono] error: invalid value '0' for '--max-procs <N>': write a whole number from 1 on
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --max-file-size 5X -- true
! [nono] error: invalid value '5X' for '--max-file-size <SIZE>': "X" is not a unit of size: use K, M, G or T
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --allow-connect-port 70000 -- true
! [nono] error: invalid value '70000' for '--allow-connect-port <PORT>': 70000 is not in 0..=65535
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}
