//! A process whose calls another program already listens to, as in some containers: the kernel allows only one, and nono uses it listener. The
//! reference of the benchmarks is that program.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::child::{Child, Outcome};
use crate::harness::world::World;

fn listener(world: &World) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/reference/notify_loop.c");
    let program = world.path("listens");
    let status = Command::new("cc").arg("-o").arg(&program).arg(source).status().expect("a C compiler");
    assert!(status.success());
    world.own(&program, 0o755);
    program
}

/// Runs `nono run flags -- true`, with another program listening or not.
fn run(world: &World, listened: Option<&Path>, flags: &[&str]) -> Outcome {
    let nono = world.program("nono");
    let mut command = world.command(listened.unwrap_or(&nono));
    if listened.is_some() {
        command.arg(&nono);
    }
    command.arg("run").args(flags).args(["--", "true"]);
    Child::start(command, None).finish()
}

#[test]
fn a_second_listener_is_refused_by_name() {
    let world = World::new("/var/tmp", false);
    let listener = listener(&world);
    let ask: &[&str] = &["--ask", "--approve", "deny"];
    let ports: &[&str] = &["--allow-connect-port", "80"];
    for flags in [ask, ports, &[]] {
        // Also records what this kernel supports, which must not be relied on below.
        let alone = run(&world, None, flags);
        assert_eq!(alone.status.code(), Some(0), "{flags:?}: {}", alone.errors);
    }
    for (flags, lost) in [(ask, "asking about files"), (ports, "keeping an opened port to loopback")] {
        let refused = run(&world, Some(&listener), flags);
        assert_eq!(refused.status.code(), Some(125), "{flags:?}: {}", refused.errors);
        let reason = "another program already listens to this one's system calls";
        assert!(refused.errors.contains(lost) && refused.errors.contains(reason), "{}", refused.errors);
    }
    let plain = run(&world, Some(&listener), &[]);
    assert_eq!(plain.status.code(), Some(0), "nothing is lost: {}", plain.errors);
    let weaker = run(&world, Some(&listener), &["--accept-weaker", "--allow-connect-port", "80"]);
    assert_eq!(weaker.status.code(), Some(0), "{}", weaker.errors);
}
