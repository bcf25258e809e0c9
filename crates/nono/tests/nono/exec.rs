//! `exec::run`: a command under a set of grants, from a process that goes on afterwards.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends it")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nono::exec::{self, ExecError, ExecHost, ExecOutcome, ExecRequest, Input};
use nono::{AccessMode, CapabilitySet, NetworkPolicy};

struct World {
    dir: tempfile::TempDir,
    caps: CapabilitySet,
}

impl World {
    /// The system, and one folder to write in.
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("granted")).unwrap();
        let mut caps = CapabilitySet::new();
        for path in ["/usr", "/bin", "/lib", "/lib64"] {
            if Path::new(path).exists() {
                caps.allow_path(path, AccessMode::Read).unwrap();
            }
        }
        caps.allow_file("/dev/null", AccessMode::ReadWrite).unwrap();
        caps.allow_path(dir.path().join("granted"), AccessMode::ReadWrite).unwrap();
        World { dir, caps }
    }

    fn granted(&self) -> PathBuf {
        self.dir.path().join("granted")
    }

    fn host(&self) -> ExecHost {
        ExecHost {
            cwd: self.granted(),
            path: Some("/usr/bin:/bin".into()),
            session_base: self.dir.path().join("sessions"),
            state_dir: None,
            nested: false,
        }
    }

    fn run(&self, request: &ExecRequest<'_>) -> Result<ExecOutcome, ExecError> {
        exec::run(&self.caps, request, &self.host(), &|| false)
    }

    fn sh(&self, script: &str) -> ExecOutcome {
        self.run(&sh(script)).unwrap()
    }
}

fn sh(script: &str) -> ExecRequest<'static> {
    let env = vec![(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))];
    ExecRequest { command: vec!["sh".into(), "-c".into(), script.into()], env, ..ExecRequest::default() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a process with this among its arguments is left.
fn is_running(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes()))
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn output_exit_code_and_working_directory_are_returned() {
    let world = World::new();
    let outcome = world.sh("echo out; echo err >&2; exit 7");
    assert_eq!((text(&outcome.stdout), text(&outcome.stderr)), ("out\n".into(), "err\n".into()));
    assert_eq!((outcome.exit_code, outcome.was_run, outcome.truncated), (7, true, false));
    assert_eq!(world.sh("kill -TERM $$").exit_code, -15);
    let env = ExecRequest { command: vec!["env".into()], ..ExecRequest::default() };
    assert_eq!(text(&world.run(&env).unwrap().stdout), "", "nothing is inherited");
    assert_eq!(text(&world.sh("pwd").stdout).trim_end(), world.granted().to_str().unwrap());
    let below = ExecRequest { cwd: Some("/usr".into()), ..sh("pwd") };
    assert_eq!(text(&world.run(&below).unwrap().stdout), "/usr\n");
}

#[test]
fn only_what_was_granted() {
    let world = World::new();
    let secret = world.dir.path().join("secret");
    std::fs::write(&secret, "s").unwrap();
    let read = format!("cat {}", secret.display());
    assert_ne!(world.sh(&read).exit_code, 0);
    let open = World {
        caps: {
            let mut caps = world.caps.clone();
            caps.allow_file(&secret, AccessMode::Read).unwrap();
            caps
        },
        dir: world.dir,
    };
    assert_eq!(text(&open.sh(&read).stdout), "s", "granted, the same command reads it");
    assert_eq!(open.sh("echo x > made; cat made").exit_code, 0);
    assert_ne!(open.sh("echo x > ../made").exit_code, 0);
}

#[test]
fn a_program_that_is_not_granted_is_not_executed() {
    let world = World::new();
    let program = world.dir.path().join("outside.sh");
    std::fs::copy("/bin/true", &program).unwrap();
    let outcome =
        world.run(&ExecRequest { command: vec![program.clone().into()], ..ExecRequest::default() }).unwrap();
    assert_eq!((outcome.exit_code, outcome.was_run), (127, false));
    let said = text(&outcome.stderr);
    assert!(said.starts_with("nono: cannot execute") && said.contains("granted"), "{said}");
    let bad_folder = ExecRequest { cwd: Some("/usr/bin/env".into()), ..sh("true") };
    let outcome = world.run(&bad_folder).unwrap();
    assert_eq!((outcome.exit_code, outcome.was_run), (126, false), "{}", text(&outcome.stderr));
    assert!(outcome.stderr.starts_with(b"nono: "));
}

#[test]
fn input_and_output_do_not_wait_for_each_other() {
    let world = World::new();
    let bytes: Vec<u8> = (0..16u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let through = ExecRequest { input: Input::Given(&bytes), ..sh("tee /dev/stderr") };
    let outcome = world.run(&through).unwrap();
    assert_eq!(outcome.exit_code, 0);
    assert!(outcome.stdout == bytes && outcome.stderr == bytes);
    let unread = ExecRequest { input: Input::Given(&bytes), ..sh("exit 3") };
    assert_eq!(world.run(&unread).unwrap().exit_code, 3);
    let closed = ExecRequest { input: Input::Given(&bytes), ..sh("exec <&-; echo on") };
    assert_eq!(text(&world.run(&closed).unwrap().stdout), "on\n");
    let none = ExecRequest { input: Input::Given(b""), ..sh("wc -c") };
    assert_eq!(text(&world.run(&none).unwrap().stdout).trim(), "0");
}

#[test]
fn more_output_than_is_kept_is_told() {
    let world = World::new();
    let little =
        ExecRequest { max_output: Some(5), ..sh("head -c 3000000 /dev/zero | tr '\\0' x; echo >&2 done") };
    let mut world = world;
    world.caps.allow_file("/dev/zero", AccessMode::Read).unwrap();
    let outcome = world.run(&little).unwrap();
    assert_eq!((text(&outcome.stdout), text(&outcome.stderr)), ("xxxxx".into(), "done\n".into()));
    assert!(outcome.truncated);
    assert_eq!(outcome.exit_code, 0, "the command goes on");
    let exact = ExecRequest { max_output: Some(5), ..sh("printf 12345") };
    assert!(!world.run(&exact).unwrap().truncated);
}

#[test]
fn time_runs_out_for_the_whole_tree() {
    let world = World::new();
    let marker = format!("3{}.5", std::process::id());
    // One that left its session and its parents, holds the pipes, and does not want to end.
    let script = format!(
        "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep {marker}; sleep {marker}' &); echo up; sleep {marker}"
    );
    let timed = ExecRequest { timeout: Some(Duration::from_millis(600)), ..sh(&script) };
    let outcome = world.run(&timed).unwrap();
    assert_eq!((outcome.exit_code, outcome.timed_out), (124, true));
    assert_eq!(text(&outcome.stdout), "up\n");
    assert!(!is_running(&marker));
    let at_once = ExecRequest { timeout: Some(Duration::ZERO), ..sh("echo x > made") };
    assert_eq!(world.run(&at_once).unwrap().exit_code, 124);
    assert!(!world.granted().join("made").exists());
    let huge = ExecRequest { timeout: Some(Duration::MAX), ..sh("exit 4") };
    assert_eq!(world.run(&huge).unwrap().exit_code, 4);
    // A command that stops itself stops no other process.
    let stops = ExecRequest { timeout: Some(Duration::from_millis(300)), ..sh("kill -STOP $$") };
    assert_eq!(world.run(&stops).unwrap().exit_code, 124);
}

#[test]
fn cancelled_in_the_middle() {
    let world = World::new();
    let marker = format!("2{}.5", std::process::id());
    let (cancel, started) = (AtomicBool::new(false), world.granted().join("started"));
    let script = format!("(setsid sleep {marker} &); echo > started; sleep {marker}");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            exec::run(&world.caps, &sh(&script), &world.host(), &|| cancel.load(Ordering::Relaxed))
        });
        while !started.exists() {
            assert!(!running.is_finished());
            std::thread::yield_now();
        }
        cancel.store(true, Ordering::Relaxed);
        assert!(matches!(running.join().unwrap(), Err(ExecError::Cancelled)));
    });
    assert!(!is_running(&marker));
}

#[test]
fn the_host_stays_as_it_was_with_many_at_once() {
    let world = World::new();
    world.sh("true");
    let status = || {
        let text = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        text.lines()
            .filter(|line| line.starts_with("Sig") && !line.starts_with("SigQ"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let limits = || std::fs::read_to_string("/proc/self/limits").unwrap();
    let before = (status(), limits());
    std::thread::scope(|scope| {
        let world = &world;
        for thread in 0..16 {
            scope.spawn(move || {
                for round in 0..4 {
                    let outcome = world.sh(&format!("echo {thread} {round}"));
                    assert_eq!(
                        text(&outcome.stdout),
                        format!("{thread} {round}\n"),
                        "{}",
                        text(&outcome.stderr)
                    );
                }
            });
        }
    });
    assert_eq!((status(), limits()), before);
    assert!(nono_sys::process::set_dumpable(true).unwrap(), "still dumpable");
    // Without namespaces there are no folders at all.
    let entries = std::fs::read_dir(world.host().session_base).into_iter().flatten().flatten();
    let left: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains('.')), "{left:?}");
}

#[test]
fn nothing_is_inherited_but_the_streams() {
    let mut world = World::new();
    world.caps.allow_path("/proc", AccessMode::Read).unwrap();
    let file = std::fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let count = descriptors();
    let outcome = world.sh("for fd in /proc/self/fd/*; do echo ${fd##*/}; done");
    // The shell's own for the listing of the folder.
    let open: Vec<u32> =
        text(&outcome.stdout).split_ascii_whitespace().map(|fd| fd.parse().unwrap()).collect();
    assert!(open.starts_with(&[0, 1, 2]) && open.len() <= 4, "{open:?}");
    drop(file);
    assert!(descriptors() <= count + 64, "the other tests have theirs, too");
}

#[test]
fn a_network_that_is_blocked_is_blocked_for_datagrams() {
    let mut world = World::new();
    let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let port = server.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/udp/127.0.0.1/{port} && echo hello >&3");
    let send =
        ExecRequest { command: vec!["bash".into(), "-c".into(), script.into()], ..ExecRequest::default() };
    world.run(&send).unwrap();
    let mut buffer = [0; 16];
    assert!(server.recv(&mut buffer).is_err(), "nothing arrives");
    world.caps.set_network(NetworkPolicy::Allowed);
    let started = Instant::now();
    let outcome = world.run(&send).unwrap();
    assert_eq!(outcome.exit_code, 0, "{}", text(&outcome.stderr));
    assert!(
        server.recv(&mut buffer).is_ok(),
        "with an open network the same command is heard ({:?})",
        started.elapsed()
    );
}

#[test]
fn nonos_own_state_is_out_of_reach() {
    let world = World::new();
    let state = world.granted().join(".nono");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("secret"), "s").unwrap();
    let host = ExecHost { state_dir: Some(state.clone()), ..world.host() };
    let read = sh("cat .nono/secret");
    assert_eq!(text(&world.run(&read).unwrap().stdout), "s", "an ordinary folder can be read");
    let outcome = exec::run(&world.caps, &read, &host, &|| false).unwrap();
    assert_ne!(outcome.exit_code, 0);
    assert_eq!(text(&outcome.stdout), "");
    let mut caps = world.caps.clone();
    caps.allow_path(&state, AccessMode::Read).unwrap();
    let outcome = exec::run(&caps, &read, &host, &|| false).unwrap();
    assert_eq!((outcome.exit_code, outcome.was_run), (126, false));
}
