//! Limits: memory that no process shows, and a command that stops instead of ending. Each way holds three times as much
//! memory as the limit allows, for two seconds.

use crate::harness::child::{Child, Outcome, Verdict};
use crate::harness::world::World;
use crate::harness::{Mode, attack, controls_only};

const KILLED: i32 = 137;

/// Either the memory is not available, or everything is ended for it.
fn is_held(steps: &'static str, modes: &[Mode]) {
    let hoard = || attack(steps).flags("--max-memory 100M");
    let world = World::new("/var/tmp", false);
    let control = hoard().running(&world, None).finish();
    assert!(control.verdict() == Verdict::Escaped, "`{steps}`: control failed: proves nothing: {control}");
    for mode in modes.iter().filter(|_| !controls_only()) {
        let outcome = hoard().once(*mode);
        let ended = outcome.status.code() == Some(KILLED) && outcome.errors.contains("--max-memory allows");
        let held = outcome.verdict() == Verdict::Blocked || ended;
        assert!(held, "`{steps}`: {mode:?}: not held: {outcome}");
    }
}

macro_rules! held {
    ($modes:expr, $($name:ident: $steps:literal;)*) => { $(#[test] fn $name() { is_held($steps, $modes); })* };
}

held! {
    Mode::WITH_PARENT,
    memory_of_processes: "hoard heap 300";
    files_without_a_name: "hoard memfd 300";
    files_in_flight: "hoard flight 300";
    segments: "hoard segment 300";
    files_in_shared_memory: "hoard file 300";
    page_tables: "hoard tables 300";
    message_queues: "hoard queues 300";
}

// A parent that is confined itself cannot measure these, and says so before the start.
held! {
    &[Mode::Run],
    shared_pages_that_no_process_maps: "hoard dropped 300";
    buffers_of_sockets: "hoard sockets 300";
    buffers_of_closed_sockets: "hoard orphans 300";
}

/// Script without a terminal that starts a sibling, then the command, and reports the state of both.
fn after_stopping(runner: &str, step: &str) -> Outcome {
    const SCRIPT: &str = "sleep 60 & sibling=$!
        $1 $2 $3; code=$?
        read -r _ _ state _ < /proc/$sibling/stat; kill $sibling
        echo \"AFTER $code $state\"";
    let world = World::new("/var/tmp", false);
    let mut command = world.command("/bin/setsid".as_ref());
    let runner = world.expand(runner);
    let script = SCRIPT.replace("$1", &runner).replace("$2", "{bin}/attacks").replace("$3", step);
    command.args(["--wait", "/bin/sh", "-c", &world.expand(&script)]).current_dir(world.expand("{prj}"));
    Child::start(command, None).finish()
}

#[test]
fn a_command_that_stops_is_ended_in_time_and_stops_no_other_process() {
    for step in ["stop-itself", "keep-stopping"] {
        let control = after_stopping("timeout -s KILL 1", step);
        let stays = control.output.contains("AFTER 137 S");
        assert!(stays, "`{step}`: control failed: proves nothing: {control}");
        for mode in ["run", "run --monitor"].iter().filter(|_| !controls_only()) {
            let runner = format!("{{bin}}/nono {mode} --max-time 1s --allow {{prj}} --read {{bin}} --");
            let outcome = after_stopping(&runner, step);
            assert!(outcome.output.contains("AFTER 124 S"), "`{step}`: {mode}: {outcome}");
        }
    }
}
