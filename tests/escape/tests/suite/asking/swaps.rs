//! The object of a request is exchanged before the answer. What was shown is granted, or nothing.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Asked, new_world, without};
use crate::harness::child::Verdict;
use crate::harness::controls_only;
use crate::harness::world::World;

/// Without nono the exchange leaks the secret; with it, the request was about `shown`, and the secret stays.
fn reading(steps: &str, shown: &str, prepare: fn(&World), exchange: fn(&World)) {
    let world = new_world();
    prepare(&world);
    let control = without(&world, steps, exchange);
    assert!(control.output.contains(&world.secret), "`{steps}`: control failed: proves nothing: {control}");
    for answer in ["once", "session", "folder"].iter().filter(|_| !controls_only()) {
        let world = new_world();
        prepare(&world);
        let mut asked = Asked::start(&world, steps);
        let question = asked.question();
        let path = format!("path: \"{}\"", world.expand(shown));
        assert!(question.contains(&path), "`{steps}`: {question}");
        exchange(&world);
        asked.answer(answer);
        let outcome = asked.finish();
        assert!(!outcome.output.contains(&world.secret), "`{steps}`, {answer}: {outcome}");
        let kept = matches!(outcome.verdict(), Verdict::Escaped) && outcome.output.contains("harmless");
        assert!(kept || outcome.verdict() == Verdict::Blocked, "`{steps}`, {answer}: {outcome}");
    }
}

fn nothing(_: &World) {}

fn link_to(world: &World, to: &str, link: &str) {
    let link = world.path(link);
    // It may not exist yet.
    let _ = fs::remove_file(&link);
    symlink(world.path(to), link).expect("symlink");
}

fn retarget(world: &World) {
    link_to(world, "outside/secret", "project/link");
}

fn replace(world: &World) {
    fs::rename(world.path("outside/secret"), world.path("outside/target")).expect("rename");
}

#[test]
fn a_link_that_leads_elsewhere() {
    let prepare = |world: &World| link_to(world, "outside/target", "project/link");
    reading("read {prj}/link", "{out}/target", prepare, retarget);
    reading("read-how {prj}/link", "{out}/target", prepare, retarget);
    reading("hold {prj} , read-held link", "{out}/target", prepare, retarget);
}

#[test]
fn a_link_on_the_way() {
    let prepare = |world: &World| link_to(world, "outside/dir", "project/link");
    reading("read {prj}/link/target", "{out}/dir/target", prepare, |world| {
        fs::create_dir(world.path("outside/other")).expect("mkdir");
        fs::rename(world.path("outside/secret"), world.path("outside/other/target")).expect("rename");
        link_to(world, "outside/other", "project/link");
    });
}

#[test]
fn a_file_that_is_replaced() {
    reading("read {out}/target", "{out}/target", nothing, replace);
    reading("chdir {out} , read target", "{out}/target", nothing, replace);
}

#[test]
fn a_folder_that_is_replaced() {
    reading("read {out}/dir/target", "{out}/dir/target", nothing, |world| {
        fs::rename(world.path("outside/dir"), world.path("outside/away")).expect("rename");
        fs::create_dir(world.path("outside/dir")).expect("mkdir");
        fs::rename(world.path("outside/secret"), world.path("outside/dir/target")).expect("rename");
    });
    reading("read {out}/dir/target", "{out}/dir/target", nothing, |world| {
        fs::rename(world.path("outside/dir"), world.path("outside/away")).expect("rename");
        fs::create_dir(world.path("outside/instead")).expect("mkdir");
        fs::rename(world.path("outside/secret"), world.path("outside/instead/target")).expect("rename");
        symlink("instead", world.path("outside/dir")).expect("symlink");
    });
}

/// Whether `steps`, answered with yes, changed the file at `victim` after the exchange.
fn writing(steps: &str, shown: &str, exchange: fn(&World)) {
    let spoilt =
        |world: &World| fs::read(world.path("outside/secret")).unwrap_or_default() != world.secret.as_bytes();
    let world = new_world();
    let control = without(&world, steps, exchange);
    assert!(spoilt(&world), "`{steps}`: control failed: proves nothing: {control}");
    // A yes for the session or the folder covers the path or all paths in it, whatever is there later.
    for answer in ["once"].iter().filter(|_| !controls_only()) {
        let world = new_world();
        let mut asked = Asked::start(&world, steps);
        let question = asked.question();
        assert!(question.contains(&format!("path: \"{}\"", world.expand(shown))), "`{steps}`: {question}");
        exchange(&world);
        asked.answer(answer);
        // What was made meanwhile is another object, and another request.
        asked.answer("deny");
        let outcome = asked.finish();
        assert!(!spoilt(&world), "`{steps}`, {answer}: {outcome}");
        assert!(outcome.verdict() != Verdict::Broken, "`{steps}`, {answer}: {outcome}");
    }
}

#[test]
fn what_is_written_to_is_what_was_shown() {
    let by_link = |world: &World| link_to(world, "outside/secret", "outside/target");
    let by_hard_link = |world: &World| {
        fs::remove_file(world.path("outside/target")).expect("remove");
        fs::hard_link(world.path("outside/secret"), world.path("outside/target")).expect("link");
    };
    for steps in ["write {out}/target", "overwrite {out}/target", "open-trunc {out}/target"] {
        writing(steps, "{out}/target", by_link);
        writing(steps, "{out}/target", by_hard_link);
    }
}

#[test]
fn what_is_made_is_new() {
    let by_link = |world: &World| link_to(world, "outside/secret", "outside/new");
    writing("overwrite {out}/new", "{out}/new", by_link);
    writing("overwrite {out}/new", "{out}/new", |world| {
        fs::hard_link(world.path("outside/secret"), world.path("outside/new")).expect("link");
    });
    writing("overwrite {out}/dir/secret", "{out}/dir/secret", |world| {
        fs::rename(world.path("outside/dir"), world.path("outside/away")).expect("rename");
        symlink(".", world.path("outside/dir")).expect("symlink");
    });
}

/// A file that is replaced by an object whose opening has side effects.
#[test]
fn a_file_that_becomes_something_else() {
    fn fifo(path: &Path) {
        fs::remove_file(path).expect("remove");
        let made = std::process::Command::new("mkfifo").arg("-m666").arg(path).status().expect("mkfifo");
        assert!(made.success() && fs::metadata(path).expect("fifo").file_type().is_fifo());
    }
    for steps in ["read {out}/target", "write {out}/target", "overwrite {out}/target"] {
        if controls_only() {
            continue;
        }
        let world = new_world();
        let mut asked = Asked::start(&world, steps);
        asked.question();
        fifo(&world.path("outside/target"));
        asked.answer("once");
        asked.answer("deny");
        let outcome = asked.finish();
        // A process that opens the pipe waits until the alarm ends it all: neither verdict comes then.
        assert!([Verdict::Escaped, Verdict::Blocked].contains(&outcome.verdict()), "`{steps}`: {outcome}");
    }
}

/// Pipes, devices and sockets are not asked about, whatever leads to them.
#[test]
fn what_is_no_file_is_not_asked_about() {
    for steps in ["read {out}/pipe", "read {prj}/link", "write {out}/pipe", "read {out}/door"] {
        let prepare = |world: &World| {
            let at = world.path("outside/pipe");
            assert!(std::process::Command::new("mkfifo").arg(&at).status().expect("mkfifo").success());
            world.own(&at, 0o600);
            symlink(&at, world.path("project/link")).expect("symlink");
            drop(std::os::unix::net::UnixListener::bind(world.path("outside/door")).expect("bind"));
            world.own(&world.path("outside/door"), 0o600);
        };
        if controls_only() {
            continue;
        }
        let world = new_world();
        prepare(&world);
        let mut asked = Asked::start(&world, steps);
        asked.answer("session");
        let outcome = asked.finish();
        assert!(outcome.verdict() == Verdict::Blocked, "`{steps}`: {outcome}");
        assert_eq!(super::questions(&outcome), 0, "`{steps}`: {outcome}");
    }
}

/// Two calls for the same path while a request waits share it only if they are one program and one object.
#[test]
fn who_was_shown_is_who_gets_it() {
    if controls_only() {
        return;
    }
    let world = new_world();
    let other = world.path("project/other");
    fs::copy(world.program("attacks"), &other).expect("copy");
    world.own(&other, 0o755);
    let mut asked = Asked::start(&world, "ask-beside {prj}/other {out}/secret");
    let question = asked.question();
    assert!(question.contains("project/attacks\""), "{question}");
    asked.child.say("");
    asked.child.hear(&["BESIDE"]);
    until_it_opens(&other);
    asked.answer("once");
    let second = asked.question();
    assert!(second.contains("project/other\""), "{second}");
    asked.answer("deny");
    let outcome = asked.finish();
    assert!(
        outcome.output.contains("FIRST: opened") && outcome.output.contains("SECOND: refused"),
        "{outcome}"
    );
}

/// Waits until a process that runs `program` is in an opening call.
fn until_it_opens(program: &Path) {
    let opens = |process: &Path| {
        let call = fs::read_to_string(process.join("syscall")).unwrap_or_default();
        let number = call.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(-1);
        fs::read_link(process.join("exe")).is_ok_and(|exe| exe == program) && number == SYS_OPENAT
    };
    let patience = Instant::now() + Duration::from_secs(10);
    while !fs::read_dir("/proc").expect("proc").flatten().any(|process| opens(&process.path())) {
        assert!(Instant::now() < patience, "it never opened anything");
        std::thread::yield_now();
    }
}

const SYS_OPENAT: i64 = if cfg!(target_arch = "x86_64") { 257 } else { 56 };
