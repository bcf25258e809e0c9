//! `nono setup`: what holds on this machine, tried.

use serde_json::Value;
use snapbox::str;

use super::world::World;

#[test]
fn a_look_changes_nothing() {
    let world = World::new().with("NONO_HOME", None);
    let outcome = world.sh("nono setup --check-only");
    outcome.quiet(0);
    let out = world.clean(&outcome.out());
    for start in [
        "kernel: [KERNEL]\n",
        "landlock: ABI ",
        "  + ABI 3: truncating (needed)\n",
        "seccomp user notification: available\n",
        "namespaces: ",
        "ptrace scope: ",
        "canary: a sandboxed child tried to read and to write outside, and could do neither\n",
        "what `nono run` holds here:\n",
        "what `nono wrap` holds here:\n",
    ] {
        assert!(out.contains(start), "{start:?} is not in {out}");
    }
    assert!(!world.path("home/.nono").exists() && !world.path("home/.config").exists());
    world.left_nothing();
}

#[test]
fn the_same_as_json() {
    let world = World::new();
    let outcome = world.sh("nono setup --check-only --json");
    outcome.quiet(0);
    let value: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "kernel",
            "landlock_abi",
            "seccomp_notify",
            "notify",
            "notify_missing",
            "namespaces",
            "ptrace_scope",
            "canary_held",
            "canary",
            "run",
            "wrap",
            "monitor"
        ]
    );
    assert_eq!(value["canary_held"], true);
    for mode in ["run", "wrap"] {
        for guarantee in value[mode].as_array().unwrap() {
            let status = guarantee["status"].as_str().unwrap();
            assert!(["closed", "open", "refused"].contains(&status), "{guarantee}");
            assert!(
                !guarantee["what"].as_str().unwrap().is_empty()
                    && !guarantee["how"].as_str().unwrap().is_empty()
            );
        }
    }
}

#[test]
fn setting_up_makes_the_folders() {
    let world = World::new().with("NONO_HOME", None);
    world.golden(
        &["nono setup | tail -2", "stat -c '%a %n' ~/.nono", "ls ~/.nono ~/.config/nono"],
        str![[r#"
$ nono setup | tail -2
profiles: [TMP]/home/.config/nono/profiles
state: [TMP]/home/.nono
$ stat -c '%a %n' ~/.nono
700 [TMP]/home/.nono
$ ls ~/.nono ~/.config/nono
[TMP]/home/.config/nono:
profiles

[TMP]/home/.nono:
kernel-check.json

"#]],
    );
    let both = world.sh("nono setup --json");
    both.quiet(0);
    assert!(serde_json::from_slice::<Value>(&both.stdout).is_ok(), "--json is JSON only: {}", both.out());
}

#[test]
fn the_check_is_remembered() {
    let world = World::new();
    world.sh("nono run -- true").quiet(0);
    let record = std::fs::read(world.path("state/kernel-check.json")).unwrap();
    world.sh("nono run -- true").quiet(0);
    assert_eq!(std::fs::read(world.path("state/kernel-check.json")).unwrap(), record);
    for damaged in ["", "{", "{\"key\": \"other\"}"] {
        world.file("state/kernel-check.json", damaged);
        world.sh("nono run -- true").quiet(0);
    }
}
