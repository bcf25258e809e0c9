//! Paths that no approval opens: nono's own files and the groups of credentials. They are not even asked about.

use std::fs;
use std::os::unix::fs::symlink;

use super::{Asked, new_world, questions, ruled, without, write_rules};
use crate::harness::attack::{BARE, has_bwrap, skip};
use crate::harness::child::Verdict;
use crate::harness::fixture::{Maker, Nothing};
use crate::harness::world::World;
use crate::harness::{Attack, attacks, controls_only};

/// Closed files of the user, each with the secret in it, and other ways to them.
pub(super) fn furnish(world: &World) {
    for folder in [".ssh", ".nono", ".nono/profiles", ".config", ".config/nono", ".config/nono/profiles"] {
        let path = world.path("users/home").join(folder);
        fs::create_dir(&path).expect("mkdir");
        world.own(&path, 0o700);
    }
    for file in [".ssh/id_rsa", ".nono/state", ".config/nono/config.json", ".config/nono/profiles/mine.json"]
    {
        let path = world.path("users/home").join(file);
        fs::write(&path, &world.secret).expect("write");
        world.own(&path, 0o600);
    }
    let at = |name: &str| world.path("users/home").join(name);
    symlink(at(".ssh"), world.path("outside/keys")).expect("symlink");
    symlink(at(".ssh/id_rsa"), world.path("project/key")).expect("symlink");
    fs::hard_link(at(".ssh/id_rsa"), world.path("outside/alias")).expect("link");
    fs::hard_link(at(".nono/state"), world.path("outside/state-alias")).expect("link");
}

/// Without nono the steps work; with it they do not, though every request is allowed, and no request was about the
/// closed file.
fn closed(steps: &str) {
    closed_to(steps, Asked::start);
}

fn closed_to(steps: &str, start: impl Fn(&World, &str) -> Asked) {
    let world = new_world();
    furnish(&world);
    let control = without(&world, steps, |_| ());
    assert!(control.verdict() == Verdict::Escaped, "`{steps}`: control failed: proves nothing: {control}");
    if controls_only() {
        return;
    }
    let world = new_world();
    furnish(&world);
    let before = world.state(&["{home}/.ssh", "{home}/.config"]);
    let mut asked = start(&world, steps);
    for _ in 0..5 {
        asked.answer("session");
    }
    let outcome = asked.finish();
    assert!(outcome.verdict() == Verdict::Blocked, "`{steps}`: {outcome}");
    assert!(!outcome.output.contains(&world.secret), "`{steps}`: {outcome}");
    assert_eq!(before, world.state(&["{home}/.ssh", "{home}/.config"]), "`{steps}`: {outcome}");
    let about = |line: &&str| ["/.ssh/", "/.nono", "/nono/", "alias"].iter().any(|word| line.contains(word));
    let shown: Vec<_> =
        outcome.output.lines().filter(|line| line.starts_with("question:")).filter(about).collect();
    assert!(shown.is_empty(), "`{steps}`: it was asked about: {shown:?}");
}

#[test]
fn credentials_under_every_name() {
    closed("read {home}/.ssh/id_rsa");
    closed("read-how {home}/.ssh/id_rsa");
    closed("read {home}/../home/.ssh/./id_rsa");
    closed("read {prj}/../users/home/.ssh/id_rsa");
    closed("read {prj}/key");
    closed("read {out}/keys/id_rsa");
    closed("symlink {home} {prj}/h , read {prj}/h/.ssh/id_rsa");
    closed("chdir {home}/.ssh , read id_rsa");
    closed("hold {home} , read-held .ssh/id_rsa");
    closed("hold {home}/.ssh , read-held id_rsa");
    closed("hold {home}/.ssh/id_rsa , reopen-held read");
    closed("read /proc/self/root{home}/.ssh/id_rsa");
    closed("write {home}/.ssh/id_rsa");
    closed("create {home}/.ssh/authorized_keys");
    closed("create {out}/keys/authorized_keys");
    closed("open-trunc {home}/.ssh/id_rsa");
    closed("list {home}/.ssh");
}

/// A second name that the user made outside.
#[test]
fn credentials_by_a_hard_link() {
    closed("read {out}/alias");
    closed("write {out}/alias");
    closed("read {out}/state-alias");
}

/// Masks are not possible on a machine without namespaces.
#[test]
fn without_namespaces() {
    if !has_bwrap() {
        assert!(skip("without namespaces", "bwrap is not installed").is_empty());
        return;
    }
    let bare: Vec<_> = BARE.split(' ').map(str::to_owned).collect();
    for steps in [
        "read {home}/.ssh/id_rsa",
        "read {prj}/key",
        "read {out}/alias",
        "hold {home} , read-held .ssh/id_rsa",
        "create {home}/.ssh/authorized_keys",
        "read {home}/.nono/state",
        "write {home}/.config/nono/profiles/mine.json",
    ] {
        closed_to(steps, |world, steps| Asked::start_through(world, &bare, steps));
    }
}

#[test]
fn nonos_own_files() {
    closed("read {home}/.nono/state");
    closed("write {home}/.nono/state");
    closed("create {home}/.nono/profiles/new.json");
    closed("write {home}/.config/nono/config.json");
    closed("write {home}/.config/nono/profiles/mine.json");
    closed("create {home}/.config/nono/profiles/new.json");
    closed("symlink {home}/.config {prj}/c , write {prj}/c/nono/profiles/mine.json");
}

/// nono's own program: a copy that the user could write to.
#[test]
fn nonos_program() {
    let world = new_world();
    let own = world.path("users/home/approver");
    if controls_only() {
        return;
    }
    fs::copy(world.program("approver"), &own).expect("copy");
    world.own(&own, 0o755);
    let control = without(&world, "write {home}/approver", |_| ());
    assert!(control.verdict() == Verdict::Escaped, "control failed: proves nothing: {control}");
    let mut asked = Asked::start_by(&world, &own, "write {home}/approver");
    asked.answer("session");
    let outcome = asked.finish();
    assert!(outcome.verdict() == Verdict::Blocked, "{outcome}");
    assert_eq!(questions(&outcome), 0, "{outcome}");
}

/// Rules that allow everything; they are kept in the user's home.
fn furnished() -> Maker {
    Box::new(|world| {
        furnish(world);
        write_rules(world, &[r#""path": "/**", "action": "allow""#]);
        Box::new(Nothing)
    })
}

fn by_rules(steps: &'static str) -> Attack {
    ruled(steps, &[]).against(furnished())
}

/// A service that does not run: nothing gets to it, but its secret is there to be taken.
const WEBHOOK: &str = "--ask --approve policy:{home}/rules.json --approve webhook:http://127.0.0.1:9/ \
                       --approve-secret {home}/webhook-secret";

fn with_secret(steps: &'static str) -> Attack {
    let furnished: Maker = Box::new(|world| {
        furnish(world);
        write_rules(world, &[r#""path": "/**", "action": "allow""#]);
        let path = world.path("users/home/webhook-secret");
        fs::write(&path, &world.secret).expect("secret");
        world.own(&path, 0o600);
        Box::new(Nothing)
    });
    ruled(steps, &[]).flags(WEBHOOK).against(furnished)
}

attacks! {
    rules_open_no_credentials:
        by_rules("read {home}/.ssh/id_rsa").leaks(),
        by_rules("read {prj}/key").leaks(),
        by_rules("hold {home} , read-held .ssh/id_rsa").leaks();
    rules_open_no_state:
        by_rules("read {home}/.nono/state").leaks(),
        by_rules("write {home}/.config/nono/profiles/mine.json").changes().watch(&["{home}/.config"]);
    rules_do_not_open_the_webhooks_secret:
        with_secret("read {home}/webhook-secret").leaks(),
        with_secret("write {home}/webhook-secret").changes().watch(&["{home}/webhook-secret"]);
    // They are read at the start; what is written to them is for the next run.
    rules_do_not_open_themselves:
        by_rules("write {home}/rules.json").changes().watch(&["{home}/rules.json"]),
        by_rules("overwrite {home}/rules.json").changes().watch(&["{home}/rules.json"]),
        by_rules("symlink {home}/rules.json {prj}/r , open-trunc {prj}/r").changes().watch(&["{home}/rules.json"]);
}
