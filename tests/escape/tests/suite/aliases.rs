//! Closed paths stay closed under their other names: through another mount, below a moved parent, after a process
//! outside has put something of another kind in their place.

use crate::harness::child::Verdict;
use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack, attacks, controls_only};

/// `project/no` and `project/no.txt` are denied; `folders` says where else the project is visible.
fn aliased(steps: &'static str, folders: &'static str) -> Attack {
    attack(steps)
        .before("plant {prj}/no/key {secret} , plant {prj}/no.txt {secret}")
        .flags("--deny {prj}/no --deny {prj}/no.txt")
        .mounted(folders)
        .leaks()
        .may_refuse()
}
/// The same with the home, for paths that are closed there by default.
fn home(steps: &'static str, before: &'static str) -> Attack {
    attack(steps).before(before).flags("--allow {home}").mounted("{home} {ro}/dir").leaks().may_refuse()
}
/// The denied file is below folders that the child may otherwise change.
fn below(steps: &'static str) -> Attack {
    attack(steps)
        .before("plant {prj}/sub/no.txt {secret} , plant {prj}/a/b/no.txt {secret}")
        .flags("--deny {prj}/sub/no.txt --deny {prj}/a/b/no.txt")
        .watch(&["{prj}/sub/no.txt", "{prj}/a/b/no.txt"])
        .changes()
        .may_refuse()
}

attacks! {
    another_mount:
        aliased("read {ro}/dir/no.txt", "{prj} {ro}/dir"),
        aliased("read {ro}/dir/no/key", "{prj} {ro}/dir"),
        aliased("read {prj}/sub/no.txt", "{prj} {prj}/sub"),
        aliased("read {prj}/sub/no/key", "{prj} {prj}/sub");
    another_mount_of_a_folder_above:
        aliased("read {ro}/dir/project/no.txt", "{w} {ro}/dir"),
        aliased("read {ro}/dir/project/no/key", "{w} {ro}/dir");
    another_mount_of_the_denied_folder_itself: aliased("read {ro}/dir/key", "{prj}/no {ro}/dir");
    another_mount_of_the_home:
        home("read {ro}/dir/.ssh/id_rsa", "plant {home}/.ssh/id_rsa {secret}"),
        home("read {ro}/dir/.netrc", "plant {home}/.netrc {secret}"),
        home("read {ro}/dir/.nono/marker", "plant {home}/.nono/marker {secret}");

    parents_moved:
        below("rename {prj}/sub {prj}/moved"),
        below("rename {prj}/a/b {prj}/a/moved"),
        below("rename {prj}/a {prj}/moved"),
        below("mkdir {prj}/x , exchange {prj}/x {prj}/sub"),
        below("rename {prj}/sub {prj}/moved , mkdir {prj}/sub , create {prj}/sub/no.txt");
}

/// A process outside puts a folder where the denied file was: its content must be closed too, after a window that
/// SECURITY.md states.
#[test]
fn a_folder_in_place_of_a_denied_file() {
    let replaced = |mode| {
        let world = World::new("/var/tmp", false);
        let spy = attack("read-until-closed {prj}/no.txt/secret")
            .before("plant {prj}/no.txt x")
            .flags("--deny {prj}/no.txt");
        spy.prepare(&world);
        let mut child = spy.running(&world, mode);
        child.hear(&["WAITING"]);
        std::fs::remove_file(world.path("project/no.txt")).expect("remove");
        std::fs::rename(world.path("outside"), world.path("project/no.txt")).expect("replace");
        child.say("");
        (child.finish(), world.secret.clone())
    };
    let (control, secret) = replaced(None);
    let read = control.verdict() == Verdict::Escaped && control.output.contains(&secret);
    assert!(read, "control failed: proves nothing: {control}");
    // `wrap` has no process to notice the replacement, as SECURITY.md says.
    for mode in Mode::WITH_PARENT.iter().filter(|_| !controls_only()) {
        let (outcome, secret) = replaced(Some(*mode));
        let held = outcome.verdict() == Verdict::Blocked && !outcome.output.contains(&secret);
        assert!(held, "{mode:?}: {outcome}");
    }
}
