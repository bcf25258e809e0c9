//! Other processes of the same user: a bystander, the parent, the supervisor. None may be touched or read.

use crate::harness::attack::Mode;
use crate::harness::child::Verdict;
use crate::harness::fixture::{Fixture, Helper, helper, victim};
use crate::harness::world::World;
use crate::harness::{Attack, attack, attacks, controls_only};

const SECRET_ENV: &[(&str, &str)] = &[("SECRET_TOKEN", "{secret}")];

fn hurts(steps: &'static str) -> Attack {
    attack(steps).changes().against(victim())
}
fn reads(steps: &'static str) -> Attack {
    attack(steps).leaks().against(victim())
}
/// At the parent: nono itself, its init, or another process above the command.
fn at_parent(steps: &'static str) -> Attack {
    attack(steps).launched().env(SECRET_ENV)
}

attacks! {
    signals:
        hurts("signal kill {pid}"),
        hurts("signal stop {pid}"),
        hurts("signal tkill {pid}"),
        hurts("signal tgkill {pid}"),
        hurts("signal group {pid}");
    queued_signals:
        hurts("signal queue {pid}"),
        hurts("signal tgqueue {pid}");
    signals_by_pidfd:
        hurts("signal pidfd {pid}"),
        hurts("signal proc-dir {pid}");
    signals_by_the_owner_of_a_file:
        hurts("signal owner {pid}"),
        hurts("signal owner-tid {pid}"),
        hurts("signal owner-group {pid}");
    limits:
        hurts("limit cpu {pid}"),
        hurts("limit fsize {pid}"),
        hurts("limit nofile {pid}"),
        hurts("limit as {pid}");
    scheduling:
        hurts("affinity {pid}"),
        hurts("scheduler plain {pid}"),
        hurts("scheduler attr {pid}"),
        hurts("oom {pid}");
    priorities:
        hurts("priority process {pid}"),
        hurts("priority group {pid}");
    io_priorities:
        hurts("io-priority process {pid}"),
        hurts("io-priority group {pid}");
    tracing:
        attack("ptrace attach {pid}").against(victim()),
        attack("ptrace seize {pid}").against(victim());
    memory:
        reads("vm read {pid} {addr}"),
        hurts("vm write {pid} {addr}"),
        reads("mem read {pid} {addr}"),
        hurts("mem write {pid} {addr}");
    descriptors:
        reads("getfd {pid} {fd}"),
        reads("proc-read {pid} fd/{fd}");
    proc_files:
        reads("proc-grep {pid} environ {terces}"),
        reads("proc-read {pid} cwd/secret"),
        reads("proc-read {pid} root{out}/secret"),
        reads("proc-read {pid} task/{pid}/cwd/secret");
    kernel_objects:
        attack("kcmp {pid}").against(victim()),
        attack("move-pages {pid} {addr}").against(victim());
    seeing: attack("sees {pid}").against(victim()).modes(Mode::WITH_PARENT);
    command_lines:
        attack("proc-grep {pid} cmdline {terces}")
            .leaks()
            .against(helper("victim {secret} {out} loud"))
            .modes(Mode::WITH_PARENT);

    parent_files:
        at_parent("proc-grep parent environ {terces}").leaks(),
        at_parent("proc-read parent cwd/../outside/secret").leaks(),
        at_parent("proc-read parent root{out}/secret").leaks();
    parent_tracing:
        at_parent("ptrace attach parent"),
        at_parent("ptrace seize parent");
    parent_limits:
        at_parent("limit cpu parent"),
        at_parent("limit fsize parent"),
        at_parent("limit nofile parent"),
        at_parent("limit as parent");
    parent_descriptors:
        at_parent("getfd parent 7").leaks().descriptor("{out}/secret"),
        at_parent("proc-read parent fd/7").leaks().descriptor("{out}/secret");

    every_process_by_its_files:
        at_parent("sweep-files {terces} {out}/secret").leaks(),
        reads("sweep-files {terces} {out}/secret");
    every_process_by_its_memory:
        at_parent("sweep-memory {terces}").leaks(),
        reads("sweep-memory {terces}");
    every_process_by_tracing:
        at_parent("sweep-trace"),
        attack("sweep-trace").against(victim());
    every_process_by_descriptors:
        at_parent("sweep-descriptors"),
        attack("sweep-descriptors").against(victim());
}

// These reach every process of the user, so they need a user of their own: a harness that root started.
attacks! {
    everybody_by_signal: hurts("signal-all").prepared_by_root();
    everybody_by_priority:
        hurts("priority user").prepared_by_root(),
        hurts("io-priority user").prepared_by_root();
}

/// State of a process that others can change, as seen from outside.
fn observe(pid: u32) -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let [priority, nice, policy] = [15, 16, 38].map(|i| fields.get(i).copied().unwrap_or("gone"));
    let allowed = read("status")
        .lines()
        .filter(|l| l.starts_with("Cpus_allowed") || l.starts_with("Tracer"))
        .collect::<String>();
    format!("{priority} {nice} {policy} {allowed} {} {}", read("oom_score_adj"), read("limits"))
}

/// The attack reads the pid of its target on stdin, gives its verdict, and stays until it has been examined.
fn aim(steps: &'static str) {
    let attack = attack(steps);
    let world = World::new("/var/tmp", false);
    let mut bystander = Helper::start(&world, "victim {secret} {out} plain");
    let before = bystander.state();
    let mut control = attack.running(&world, None);
    control.say(&bystander.expand("{pid}"));
    control.hear(&["ESCAPED", "BLOCKED", "BROKEN"]);
    assert!(bystander.state() != before, "control failed: proves nothing: {}", control.finish());
    drop(control.finish());
    for mode in Mode::WITH_PARENT.iter().filter(|_| !controls_only()) {
        let world = World::new("/var/tmp", false);
        let mut run = attack.running(&world, Some(*mode));
        run.hear(&["TRYING"]);
        let (supervisor, before) = (run.id(), observe(run.id()));
        run.say(&supervisor.to_string());
        run.hear(&["ESCAPED", "BLOCKED", "BROKEN"]);
        let after = observe(supervisor);
        let outcome = run.finish();
        assert!(outcome.verdict() == Verdict::Blocked, "{mode:?}: {outcome}");
        assert!(before == after, "{mode:?}: the supervisor changed\n{before}\n{after}");
    }
}

#[test]
fn supervisor_signals() {
    aim("--linger signal kill -");
    aim("--linger signal pidfd -");
    aim("--linger signal queue -");
}

#[test]
fn supervisor_limits() {
    aim("--linger limit cpu -");
    aim("--linger limit fsize -");
    aim("--linger limit nofile -");
}

#[test]
fn supervisor_scheduling() {
    aim("--linger affinity -");
    aim("--linger scheduler plain -");
    aim("--linger priority process -");
    aim("--linger oom -");
}

/// The group of the command must not be the group of its supervisor: a signal to its own group stays inside.
#[test]
fn own_process_group() {
    const SIGUSR1: i32 = 10;
    use std::os::unix::process::ExitStatusExt;
    let attack = attack("signal-group").launched();
    let control = attack.running(&World::new("/var/tmp", false), None).finish();
    assert!(control.status.signal() == Some(SIGUSR1), "control failed: proves nothing: {control}");
    for mode in Mode::WITH_PARENT.iter().filter(|_| !controls_only()) {
        let outcome =
            self::attack("signal-group").running(&World::new("/var/tmp", false), Some(*mode)).finish();
        assert!(
            outcome.status.signal().is_none() && outcome.verdict() == Verdict::Tried,
            "{mode:?}: {outcome}"
        );
    }
}
