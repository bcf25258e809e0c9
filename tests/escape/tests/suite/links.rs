//! Links left for later: the first run makes one where it may write, and the next run is given that path. What nono
//! does outside in between (`hooks install`) does not follow it either.

use std::process::Stdio;

use crate::harness::child::Verdict;
use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack, attacks, controls_only};

/// Targets of links that are in the way of the next grant.
fn planted(steps: &'static str) -> Attack {
    attack(steps)
        .before("symlink {out} {prj}/build , symlink {out}/secret {prj}/notes , symlink {prj}/build {prj}/sub/twice , \
             plant {prj}/mine x")
        .may_refuse()
}

attacks! {
    grants_through_planted_links:
        planted("read {prj}/build/secret").flags("--allow {prj}/build").leaks(),
        planted("read {prj}/build/secret").flags("--read {prj}/sub/../build").leaks(),
        planted("read {prj}/sub/twice/secret").flags("--read {prj}/sub/twice").leaks(),
        planted("read {prj}/notes").flags("--read-file {prj}/notes").leaks(),
        planted("read {prj}/build/secret").flags("--allow-file {prj}/build/secret").leaks(),
        planted("write {prj}/build/target").flags("--write {prj}/build").changes(),
        planted("create {prj}/build/dir/new").flags("--allow {prj}/build/dir").changes(),
        planted("read secret").flags("--workdir {prj}/build --allow-cwd").cwd("{prj}/build").leaks();
}

/// End to end: a command inside makes the link; the same step with the path typed by its own name works, so it is the
/// link that is refused.
#[test]
fn a_link_made_by_one_run_widens_no_later_one() {
    for mode in Mode::ALL.iter().filter(|_| !controls_only()) {
        let world = World::new("/var/tmp", false);
        let made = attack("symlink {out} {prj}/build").running(&world, Some(*mode)).finish();
        assert!(made.verdict() != Verdict::Blocked && made.status.success(), "{mode:?}: {made}");
        assert!(world.path("project/build").is_symlink(), "{mode:?}: {made}");
        let through = attack("read {prj}/build/secret").flags("--read {prj}/build");
        let outcome = through.running(&world, Some(*mode)).finish();
        assert!(outcome.verdict() == Verdict::Refused, "{mode:?}: {outcome}");
        assert!(outcome.errors.contains(&world.expand("leads to {out}")), "{mode:?}: {outcome}");
        assert!(outcome.errors.contains(&world.expand("use {out}")), "{mode:?}: {outcome}");
        let control = attack("read {prj}/build/secret").flags("--read {out}");
        let outcome = control.running(&world, Some(*mode)).finish();
        assert!(
            outcome.output.contains(&world.secret),
            "control failed: proves nothing: {mode:?}: {outcome}"
        );
    }
}

/// `CLAUDE.md` is a link to a key: neither is the key copied into the project nor is anything written to it.
#[test]
fn a_link_made_by_a_run_leads_an_install_nowhere() {
    let install = |world: &World| {
        let mut command = world.command(&world.program("nono"));
        command.args(["hooks", "install", "claude-code", "--scope", "project", "--yes"]);
        command.stdin(Stdio::null()).output().expect("nono")
    };
    if controls_only() {
        return;
    }
    let world = World::new("/var/tmp", false);
    let made = attack("symlink {out}/secret {prj}/CLAUDE.md").running(&world, Some(Mode::Run)).finish();
    assert!(world.path("project/CLAUDE.md").is_symlink(), "{made}");
    let before = world.state(&["{out}", "{prj}"]);
    let refused = install(&world);
    assert_eq!(refused.status.code(), Some(125), "{refused:?}");
    assert_eq!(world.state(&["{out}", "{prj}"]), before);
    // The control: with a file of the project's own it is installed.
    std::fs::remove_file(world.path("project/CLAUDE.md")).expect("remove");
    let installed = install(&world);
    assert!(installed.status.success(), "control failed: proves nothing: {installed:?}");
    assert!(world.path("project/CLAUDE.md").is_file());
}
