//! Paths that stay closed inside a broad grant: nono's own state, protected files of the home, denied paths.

use crate::harness::child::Verdict;
use crate::harness::fixture::{Fixture, Helper, installed};
use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack, attacks, controls_only};

const STATE: &str = "plant {home}/.nono/marker {secret}";
const KEYS: &str = "plant {home}/.ssh/id_rsa {secret}";

/// The whole home is granted, nono's state is in it.
fn state(steps: &'static str) -> Attack {
    attack(steps).before(STATE).flags("--allow {home}").watch(&["{home}/.nono/marker"])
}
/// The folder above the home is granted.
fn above(steps: &'static str) -> Attack {
    state(steps).flags("--allow {users}").may_refuse()
}
fn protected(steps: &'static str) -> Attack {
    attack(steps).flags("--allow {home}").watch(&["{home}/.ssh", "{home}/.bashrc"])
}
/// nono's state was put where the child may write.
fn in_project(steps: &'static str) -> Attack {
    attack(steps)
        .before("plant {prj}/state/marker {secret}")
        .env(&[("NONO_HOME", "{prj}/state")])
        .watch(&["{prj}/state/marker"])
        .may_refuse()
}
/// A folder of the home that is open, with closed paths in it.
fn config(steps: &'static str) -> Attack {
    attack(steps)
        .before("plant {home}/.config/other/x x")
        .flags("--allow {home}")
        .watch(&[
            "{home}/.config/nono",
            "{home}/.config/autostart",
            "{home}/.config/systemd",
            "{home}/.config/fish",
        ])
        .may_refuse()
}
/// `project/no` is denied inside the granted project.
fn denied(steps: &'static str) -> Attack {
    attack(steps)
        .before("plant {prj}/no/key {secret} , plant {prj}/a/no/key {secret} , plant {prj}/no.txt {secret}")
        .flags("--deny {prj}/no --deny {prj}/a/no --deny {prj}/no.txt")
        .watch(&["{prj}/no/key", "{prj}/no.txt"])
        .may_refuse()
}

/// The real binary lies in a granted folder.
fn binary(steps: &'static str) -> Attack {
    attack(steps)
        .before("plant {home}/bin/other x")
        .against(installed("nono", "{home}/bin/nono"))
        .nono_at("{home}/bin/nono")
        .flags("--allow {home}")
        .watch(&["{home}/bin/nono"])
        .changes()
        .may_refuse()
}

attacks! {
    state_read:
        state("read {home}/.nono/marker").leaks(),
        state("list {home}/.nono"),
        state("symlink {home}/.nono {prj}/s , read {prj}/s/marker").leaks(),
        state("read /proc/self/root{home}/.nono/marker").leaks(),
        state("chdir {home}/.nono , read marker").leaks();
    state_write:
        state("write {home}/.nono/marker").changes(),
        state("overwrite {home}/.nono/marker").changes(),
        state("unlink {home}/.nono/marker").changes(),
        state("create {home}/.nono/planted"),
        state("mkdir {home}/.nono/planted"),
        state("truncate {home}/.nono/marker").changes();
    state_moved:
        state("rename {home}/.nono {home}/.moved").changes(),
        state("rename {home}/.nono {home}/.moved , read {home}/.moved/marker").leaks(),
        state("rename {home}/.nono {home}/.moved , mkdir {home}/.nono"),
        state("mkdir {home}/.other , exchange {home}/.nono {home}/.other").changes();
    state_mode:
        state("meta chmod path {home}/.nono/marker").changes(),
        state("meta chmod path {home}/.nono"),
        state("meta utimes new {home}/.nono/marker").changes();
    state_linked:
        state("link {home}/.nono/marker {home}/.got , read {home}/.got").leaks(),
        state("link-fd {home}/.nono/marker {prj}/got , read {prj}/got").leaks();
    state_mounts:
        state("umount {home}/.nono , read {home}/.nono/marker").leaks(),
        state("unshare user+mnt , umount {home}/.nono , read {home}/.nono/marker").leaks();
    state_below_a_broader_grant:
        above("read {home}/.nono/marker").leaks(),
        above("rename {home} {users}/moved , read {users}/moved/.nono/marker").leaks(),
        above("rename {home} {users}/moved , mkdir {home} , mkdir {home}/.nono"),
        above("mkdir {users}/x , exchange {users}/x {home} , read {users}/x/.nono/marker").leaks(),
        above("write {home}/.nono/marker").changes();

    keys:
        protected("read {home}/.ssh/id_rsa").leaks().before(KEYS),
        protected("write {home}/.ssh/id_rsa").changes().before(KEYS),
        protected("rename {home}/.ssh {home}/s , read {home}/s/id_rsa").leaks().before(KEYS),
        protected("create {home}/.ssh/authorized_keys").changes().before(KEYS),
        protected("link {home}/.ssh/id_rsa {home}/k , read {home}/k").leaks().before(KEYS),
        protected("symlink {home}/.ssh {prj}/s , read {prj}/s/id_rsa").leaks().before(KEYS),
        protected("umount {home}/.ssh , read {home}/.ssh/id_rsa").leaks().before(KEYS);
    other_credentials:
        protected("read {home}/.aws/credentials").leaks().before("plant {home}/.aws/credentials {secret}"),
        protected("read {home}/.netrc").leaks().before("plant {home}/.netrc {secret}"),
        protected("read {home}/.npmrc").leaks().before("plant {home}/.npmrc {secret}"),
        protected("read {home}/.gnupg/key").leaks().before("plant {home}/.gnupg/key {secret}"),
        protected("read {home}/.kube/config").leaks().before("plant {home}/.kube/config {secret}"),
        protected("read {home}/.bash_history").leaks().before("plant {home}/.bash_history {secret}"),
        protected("read {home}/.config/gcloud/credentials.db").leaks()
            .before("plant {home}/.config/gcloud/credentials.db {secret}"),
        protected("read {home}/.docker/config.json").leaks()
            .before("plant {home}/.docker/config.json {secret}"),
        protected("read {home}/.mozilla/firefox/key4.db").leaks()
            .before("plant {home}/.mozilla/firefox/key4.db {secret}"),
        protected("read {home}/.password-store/a.gpg").leaks()
            .before("plant {home}/.password-store/a.gpg {secret}");
    shell_startup:
        protected("write {home}/.bashrc").changes().before("plant {home}/.bashrc x"),
        protected("rename {home}/.bashrc {home}/b").changes().before("plant {home}/.bashrc x"),
        protected("create {home}/.x , rename {home}/.x {home}/.bashrc").changes()
            .before("plant {home}/.bashrc x");
    absent_names_stay_absent:
        protected("create {home}/.bashrc").changes(),
        protected("mkdir {home}/.ssh").changes(),
        protected("symlink {prj} {home}/.ssh").changes(),
        protected("create {prj}/rc , rename {prj}/rc {home}/.bashrc").changes(),
        protected("mkdir {prj}/s , rename {prj}/s {home}/.ssh").changes(),
        protected("create {prj}/rc , link {prj}/rc {home}/.bashrc").changes();

    state_inside_the_project:
        in_project("read {prj}/state/marker").leaks(),
        in_project("write {prj}/state/marker").changes(),
        in_project("rename {prj}/state {prj}/moved , read {prj}/moved/marker").leaks();
    state_granted_by_name:
        state("read {home}/.nono/marker").leaks().flags("--allow {home}/.nono").may_refuse(),
        state("read {home}/.nono/marker").leaks().flags("--read-file {home}/.nono/marker").may_refuse(),
        state("write {home}/.nono/marker").changes().flags("--allow-file {home}/.nono/marker").may_refuse(),
        state("read {home}/.nono/marker").leaks().flags("--read /").may_refuse(),
        state("write {home}/.nono/marker").changes().flags("--allow /").may_refuse();
    profiles_of_nono:
        config("create {home}/.config/nono/profiles/evil.json").before("plant {home}/.config/nono/profiles/x x"),
        config("write {home}/.config/nono/profiles/x").before("plant {home}/.config/nono/profiles/x x"),
        config("rename {home}/.config/nono {home}/.config/moved").before("plant {home}/.config/nono/profiles/x x"),
        config("mkdir {home}/.config/nono"),
        config("rename {home}/.config/other {home}/.config/nono");
    startup_files_in_subfolders:
        config("mkdir {home}/.config/autostart"),
        config("rename {home}/.config/other {home}/.config/autostart"),
        config("mkdir {home}/.config/systemd"),
        config("symlink {prj} {home}/.config/fish"),
        config("rename {home}/.config {home}/.other");

    key_metadata:
        protected("meta chmod path {home}/.ssh/id_rsa").changes().before(KEYS),
        protected("meta chmod new {home}/.ssh").changes().before(KEYS),
        protected("meta utimes path {home}/.ssh/id_rsa").changes().before(KEYS),
        protected("meta chmod path {home}/.bashrc").changes().before("plant {home}/.bashrc x"),
        protected("meta setxattr path {home}/.bashrc").changes().before("plant {home}/.bashrc x");
    keys_granted_without_bypass:
        protected("read {home}/.ssh/id_rsa").leaks().before(KEYS).flags("--allow {home}/.ssh").may_refuse(),
        protected("read {home}/.ssh/id_rsa").leaks().before(KEYS).flags("--read-file {home}/.ssh/id_rsa").may_refuse(),
        protected("read {home}/.ssh/id_rsa").leaks().before(KEYS).flags("--read /").may_refuse(),
        protected("read {prj}/link/id_rsa").leaks()
            .before("symlink {home}/.ssh {prj}/link , plant {home}/.ssh/id_rsa {secret}")
            .flags("--allow {prj}/link").may_refuse();
    keys_of_a_home_behind_a_symlink:
        protected("read {home}/.ssh/id_rsa").leaks().env(&[("HOME", "{w}/alias")])
            .before("symlink {home} {w}/alias , plant {home}/.ssh/id_rsa {secret}"),
        protected("read {w}/alias/.ssh/id_rsa").leaks().env(&[("HOME", "{w}/alias")]).flags("--allow {w}/alias")
            .before("symlink {home} {w}/alias , plant {home}/.ssh/id_rsa {secret}");
    protected_names_from_inside_the_home:
        protected("rename {home}/work {home}/.ssh").changes().before("plant {home}/work/file x"),
        protected("link {home}/work/file {home}/.bashrc").changes().before("plant {home}/work/file x"),
        protected("exchange {home}/work {home}/.ssh").changes().before("plant {home}/work/file x , plant {home}/.ssh/id_rsa x");

    denied_read:
        denied("read {prj}/no/key").leaks(),
        denied("read {prj}/no.txt").leaks(),
        denied("list {prj}/no"),
        denied("read {prj}/a/no/key").leaks(),
        denied("symlink no {prj}/link , read {prj}/link/key").leaks(),
        denied("chdir {prj}/no , read key").leaks(),
        denied("hold {prj}/no , read-held key").leaks();
    denied_write:
        denied("write {prj}/no/key").changes(),
        denied("write {prj}/no.txt").changes(),
        denied("create {prj}/no/new"),
        denied("meta chmod path {prj}/no.txt").changes(),
        denied("truncate {prj}/no.txt").changes();
    denied_moved:
        denied("rename {prj}/no {prj}/yes , read {prj}/yes/key").leaks(),
        denied("rename {prj}/no.txt {prj}/yes.txt , read {prj}/yes.txt").leaks(),
        denied("rename {prj}/a {prj}/b , read {prj}/b/no/key").leaks(),
        denied("exchange {prj}/no {prj}/sub , read {prj}/sub/key").leaks();
    denied_replaced:
        denied("unlink {prj}/no.txt").changes(),
        denied("create {prj}/x , rename {prj}/x {prj}/no.txt").changes(),
        denied("unlink {prj}/no/key , rmdir {prj}/no , mkdir {prj}/no").watch(&["{prj}/no"]).changes();
    denied_linked:
        denied("link {prj}/no.txt {prj}/got , read {prj}/got").leaks(),
        denied("link-fd {prj}/no/key {prj}/got , read {prj}/got").leaks();
    denied_unmasked:
        denied("umount {prj}/no , read {prj}/no/key").leaks(),
        denied("umount {prj}/no.txt , read {prj}/no.txt").leaks(),
        denied("unshare user+mnt , umount {prj}/no , read {prj}/no/key").leaks(),
        denied("unshare user+mnt , bind {prj} {prj}/sub , read {prj}/sub/no/key").leaks();
    denied_by_a_symlink:
        attack("read {prj}/no/key").leaks()
            .before("plant {prj}/no/key {secret} , symlink {prj}/no {ro}/alias , plant {prj}/x x")
            .flags("--deny {ro}/alias").may_refuse();
    denied_in_a_read_grant:
        attack("read {ro}/no/key").leaks().before("plant {ro}/no/key {secret}").flags("--deny {ro}/no")
            .may_refuse();
    denied_before_it_exists:
        attack("create {prj}/later").flags("--deny {prj}/later").watch(&["{prj}/later"]).changes()
            .may_refuse(),
        attack("mkdir {prj}/x , rename {prj}/x {prj}/later").flags("--deny {prj}/later")
            .watch(&["{prj}/later"]).changes().may_refuse();

    policy_file:
        attack("cap-file chmod").env(CAP_FILE),
        attack("cap-file write").env(CAP_FILE),
        attack("cap-file unlink").env(CAP_FILE),
        attack("cap-file replace").env(CAP_FILE);
    own_binary:
        binary("unlink {home}/bin/nono"),
        binary("rename {home}/bin/nono {home}/bin/old"),
        binary("meta chmod path {home}/bin/nono"),
        binary("create {home}/bin/new , rename {home}/bin/new {home}/bin/nono"),
        binary("rename {home}/bin {home}/old");
}

const CAP_FILE: &[(&str, &str)] = &[("NONO_CAP_FILE", "{out}/target")];

const NESTED: &str =
    "exec {bin}/nono run --allow {prj} --allow {out} --read {bin} -- {bin}/attacks read {out}/secret";

/// A process outside saves a denied file anew: the name must close again, after a window that SECURITY.md states.
#[test]
fn denied_after_a_replacement_from_outside() {
    let replaced = |mode| {
        let (world, spy) = (World::new("/var/tmp", false), denied("read-until-closed {prj}/no.txt"));
        spy.prepare(&world);
        let mut child = spy.running(&world, mode);
        child.hear(&["WAITING"]);
        std::fs::rename(world.path("outside/secret"), world.path("project/no.txt")).expect("replace");
        child.say("");
        child.finish()
    };
    let control = replaced(None);
    assert!(control.verdict() == Verdict::Escaped, "control failed: proves nothing: {control}");
    // `wrap` has no process to notice the replacement, as SECURITY.md says.
    let modes = Mode::WITH_PARENT.iter().filter(|_| !controls_only());
    let runs = modes.map(|mode| (mode, replaced(Some(*mode))));
    let open = runs.filter(|(_, outcome)| outcome.verdict() != Verdict::Blocked);
    let failures: Vec<_> = open.map(|(mode, outcome)| format!("{mode:?}: {outcome}")).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A nono that is started inside can widen nothing.
#[test]
fn nested_nono_stays_confined() {
    if controls_only() {
        return;
    }
    for mode in std::iter::once(None).chain(Mode::ALL.iter().copied().map(Some)) {
        let world = World::new("/var/tmp", false);
        let outcome = attack(NESTED).running(&world, mode).finish();
        let leaked = outcome.output.contains(&world.secret);
        assert!(leaked == mode.is_none(), "{mode:?}: leaked {leaked}: {outcome}");
    }
}

/// The private temporary folder of one session is closed to another.
#[test]
fn temporary_folder_of_another_session() {
    if controls_only() {
        return;
    }
    for mode in Mode::ALL {
        let world = World::new("/var/tmp", false);
        let other = Helper::adopt(attack("hold-temp {secret}").running(&world, Some(Mode::Run)));
        let path = other.expand("{path}");
        let spy: &'static str = Box::leak(format!("read {path}").into_boxed_str());
        let outcome = attack(spy).running(&world, Some(*mode)).finish();
        assert!(outcome.verdict() == Verdict::Blocked, "{mode:?}: {outcome}");
    }
}
