//! Settings and instructions of agents stay unchanged, also where an agent's whole folder is granted: a command that
//! could write there would have a program started outside, later. Under `run` a copy of settings may be written; what
//! counts is the file.

use crate::harness::child::Verdict;
use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack, attacks, controls_only};

const CLAUDE: &str = "plant {home}/.claude/settings.json x , plant {home}/.claude/hooks/run x , \
                      plant {home}/.claude/commands/a/b.md x , plant {home}/.claude/CLAUDE.md x , \
                      plant {home}/.claude/other x , plant {prj}/mine x";
const WATCHED: &[&str] = &[
    "{home}/.claude/settings.json",
    "{home}/.claude/CLAUDE.md",
    "{home}/.claude/hooks",
    "{home}/.claude/commands",
    "{home}/dots",
];

/// The agent's folder is granted whole.
fn claude(steps: &'static str) -> Attack {
    attack(steps).before(CLAUDE).flags("--allow {home}/.claude").watch(WATCHED).changes().has_copy()
}
/// A folder far above it is granted.
fn users(steps: &'static str) -> Attack {
    claude(steps).flags("--allow {users}").may_refuse()
}
/// Where namespaces are not available.
fn bare(steps: &'static str) -> Attack {
    claude(steps).bare().may_refuse()
}
/// The held path does not exist. Only a session that stays removes its placeholder, so only its place can be compared.
fn absent(steps: &'static str) -> Attack {
    attack(steps)
        .before("plant {home}/.claude/other x")
        .flags("--allow {home}/.claude")
        .watch(&[
            "{home}/.claude/settings.json",
            "{home}/.claude/settings.local.json",
            "{home}/.claude/commands",
        ])
        .judged_in(&[Mode::Run, Mode::Ask, Mode::Bare])
        .changes()
        .has_copy()
}
/// The settings are a link into a folder that is granted, too.
fn linked(steps: &'static str) -> Attack {
    attack(steps)
        .before("plant {home}/.claude/other x , symlink {home}/dots/s.json {home}/.claude/settings.json , plant {home}/dots/s.json x")
        .flags("--allow {home}/.claude --allow {home}/dots")
        .watch(&["{home}/.claude/settings.json", "{home}/dots"])
        .changes()
        .has_copy()
}
/// The home is also visible in the project.
fn mounted(steps: &'static str) -> Attack {
    claude(steps).mounted("{home} {prj}/sub").may_refuse()
}
fn project(steps: &'static str) -> Attack {
    attack(steps)
        .before("plant {prj}/.claude/settings.json x , plant {prj}/.claude/hooks/run x , plant {prj}/.codex/config.toml x")
        .watch(&["{prj}/.claude/settings.json", "{prj}/.claude/hooks", "{prj}/.codex/config.toml"])
        .changes()
}

attacks! {
    agent_settings_written:
        claude("write {home}/.claude/settings.json"),
        claude("overwrite {home}/.claude/settings.json"),
        claude("truncate {home}/.claude/settings.json"),
        claude("open-trunc {home}/.claude/settings.json"),
        claude("write {home}/.claude/hooks/run"),
        claude("create {home}/.claude/hooks/new"),
        claude("create {home}/.claude/commands/a/new"),
        claude("mkdir {home}/.claude/commands/new"),
        claude("write /proc/self/root{home}/.claude/settings.json"),
        claude("symlink {home}/.claude/settings.json {prj}/s , write {prj}/s"),
        claude("symlink {home}/.claude {prj}/c , write {prj}/c/settings.json"),
        claude("chdir {home}/.claude , write settings.json"),
        claude("hold {home}/.claude/settings.json , reopen-held write"),
        claude("hold {home}/.claude/hooks , create-held new");
    agent_settings_replaced:
        claude("unlink {home}/.claude/settings.json"),
        claude("rename {home}/.claude/settings.json {home}/.claude/old"),
        claude("rename {home}/.claude/other {home}/.claude/settings.json"),
        claude("rename {prj}/mine {home}/.claude/settings.json"),
        claude("exchange {home}/.claude/other {home}/.claude/settings.json"),
        claude("unlink {home}/.claude/hooks/run"),
        claude("rename {home}/.claude/hooks {home}/.claude/old"),
        claude("mkdir {home}/.claude/x , exchange {home}/.claude/x {home}/.claude/hooks"),
        claude("rename {home}/.claude/commands/a {home}/.claude/a");
    agent_settings_linked:
        claude("link {home}/.claude/settings.json {home}/.claude/l , write {home}/.claude/l"),
        claude("link-fd {home}/.claude/settings.json {prj}/l , write {prj}/l"),
        claude("link-empty {home}/.claude/settings.json {prj}/l , write {prj}/l");
    agent_settings_metadata:
        claude("meta chmod path {home}/.claude/settings.json"),
        claude("meta utimes path {home}/.claude/hooks/run"),
        claude("meta setxattr path {home}/.claude/settings.json").lacks(&["ENOTSUP"]);
    agent_settings_unmounted:
        claude("umount {home}/.claude/settings.json , write {home}/.claude/settings.json"),
        claude("unshare user+mnt , umount {home}/.claude/hooks , create {home}/.claude/hooks/new"),
        claude("unshare user+mnt , bind {home}/.claude {prj}/sub , write {prj}/sub/settings.json"),
        claude("unshare user+mnt , remount {home}/.claude/settings.json , write {home}/.claude/settings.json");
    agent_folder_moved:
        claude("rename {home}/.claude {home}/old"),
        users("rename {home}/.claude {home}/old"),
        users("rename {home} {users}/old"),
        users("write {home}/.claude/settings.json"),
        users("mkdir {home}/x , exchange {home}/x {home}/.claude");
    agent_settings_that_are_absent:
        absent("create {home}/.claude/settings.json"),
        absent("create {home}/.claude/settings.local.json"),
        absent("overwrite {home}/.claude/settings.json"),
        absent("rename {home}/.claude/other {home}/.claude/settings.json"),
        absent("symlink {prj}/own {home}/.claude/settings.json"),
        absent("link {home}/.claude/other {home}/.claude/settings.json"),
        absent("mkdir {home}/.claude/commands"),
        absent("mkdir {home}/.claude/x , rename {home}/.claude/x {home}/.claude/commands"),
        absent("mkdir {home}/.claude/commands , create {home}/.claude/commands/new"),
        attack("overwrite {home}/.claude/CLAUDE.md").before("plant {home}/.claude/other x")
            .flags("--allow {home}/.claude").watch(&[]),
        attack("mkdir {home}/.claude/commands , create {home}/.claude/commands/new")
            .before("plant {home}/.claude/other x").flags("--allow {home}/.claude").watch(&[]);
    agent_settings_behind_a_link:
        linked("write {home}/.claude/settings.json"),
        linked("write {home}/dots/s.json"),
        linked("unlink {home}/.claude/settings.json"),
        linked("rename {home}/.claude/other {home}/.claude/settings.json"),
        // The new name belongs to the command, in a folder that is granted.
        linked("rename {home}/dots/s.json {home}/dots/t")
            .watch(&["{home}/.claude/settings.json", "{home}/dots/s.json"]),
        linked("rename {home}/.claude/settings.json {home}/.claude/t");
    agent_settings_through_another_mount:
        mounted("write {prj}/sub/.claude/settings.json"),
        mounted("create {prj}/sub/.claude/hooks/new"),
        mounted("unlink {prj}/sub/.claude/settings.json"),
        mounted("rename {prj}/sub/.claude {prj}/sub/old");
    agent_settings_without_namespaces:
        bare("write {home}/.claude/settings.json"),
        bare("unlink {home}/.claude/settings.json"),
        bare("rename {home}/.claude/other {home}/.claude/settings.json"),
        bare("create {home}/.claude/hooks/new"),
        bare("link {home}/.claude/settings.json {prj}/l , write {prj}/l"),
        bare("create {home}/.claude/settings.local.json").watch(&["{home}/.claude/settings.local.json"]);
    agent_settings_granted_by_name:
        claude("write {home}/.claude/settings.json").flags("--allow-file {home}/.claude/settings.json").may_refuse(),
        claude("create {home}/.claude/hooks/new").flags("--write {home}/.claude/hooks").may_refuse(),
        claude("write {home}/.claude/settings.json").may_refuse()
            .flags("--bypass-protection {home}/.claude/settings.json --allow {home}/.claude");
    agent_settings_elsewhere:
        attack("write {prj}/cfg/settings.json").before("plant {prj}/cfg/settings.json x")
            .env(&[("CLAUDE_CONFIG_DIR", "{prj}/cfg")]).watch(&["{prj}/cfg/settings.json"]).changes().has_copy(),
        attack("write {home}/.codex/config.toml").before("plant {home}/.codex/config.toml x")
            .flags("--allow {home}/.codex").watch(&["{home}/.codex/config.toml"]).changes().has_copy(),
        attack("create {home}/.gemini/commands/new").before("plant {home}/.gemini/commands/x x")
            .flags("--allow {home}/.gemini").watch(&["{home}/.gemini/commands"]).changes(),
        attack("create {home}/.config/opencode/plugin/new").before("plant {home}/.config/opencode/plugin/x x")
            .flags("--allow {home}/.config/opencode").watch(&["{home}/.config/opencode/plugin"]).changes(),
        attack("write {home}/.hermes/config.yaml").before("plant {home}/.hermes/config.yaml x")
            .flags("--allow {home}/.hermes").watch(&["{home}/.hermes/config.yaml"]).changes().has_copy();
    agent_settings_of_a_project:
        project("write {prj}/.claude/settings.json"),
        project("unlink {prj}/.claude/settings.json"),
        project("rename {prj}/own {prj}/.claude/settings.json"),
        project("create {prj}/.claude/hooks/new"),
        project("rename {prj}/.claude {prj}/old"),
        project("mkdir {prj}/x , exchange {prj}/x {prj}/.claude"),
        project("write {prj}/.codex/config.toml"),
        project("rename {prj}/.codex {prj}/old");
}

/// What is not held stays the agent's own.
#[test]
fn the_rest_of_an_agents_folder_stays_writable() {
    if controls_only() {
        return;
    }
    for mode in Mode::ALL {
        for steps in [
            "write {home}/.claude/other",
            "create {home}/.claude/new",
            "mkdir {home}/.claude/todos",
            "rename {home}/.claude/other {home}/.claude/moved",
        ] {
            let outcome = claude(steps).once(*mode);
            assert!(outcome.verdict() == Verdict::Escaped, "{mode:?} `{steps}`: {outcome}");
        }
        let outcome = claude("read {home}/.claude/settings.json").once(*mode);
        assert!(outcome.verdict() == Verdict::Escaped, "{mode:?}: {outcome}");
    }
}

/// The user saves the settings anew, by renaming, while the command runs: they must be held again, after a window that
/// SECURITY.md states.
#[test]
fn agent_settings_replaced_from_outside() {
    let replaced = |mode| {
        let (world, spy) =
            (World::new("/var/tmp", false), claude("write-until-closed {home}/.claude/CLAUDE.md"));
        spy.prepare(&world);
        let mut child = spy.running(&world, mode);
        child.hear(&["WAITING"]);
        std::fs::rename(world.path("outside/target"), world.path("users/home/.claude/CLAUDE.md"))
            .expect("replace");
        child.say("");
        child.finish()
    };
    let control = replaced(None);
    assert!(control.verdict() == Verdict::Escaped, "control failed: proves nothing: {control}");
    // `wrap` has no process to notice the replacement, as SECURITY.md says.
    for mode in Mode::WITH_PARENT.iter().filter(|_| !controls_only()) {
        let outcome = replaced(Some(*mode));
        assert!(outcome.verdict() == Verdict::Blocked, "{mode:?}: {outcome}");
    }
}

/// Placeholders of absent files are gone when the last session is over, and not before.
#[test]
fn nothing_is_left_that_only_stood_there() {
    if controls_only() {
        return;
    }
    let world = World::new("/var/tmp", false);
    let first = absent("write-until-closed {home}/.claude/CLAUDE.md");
    first.prepare(&world);
    let folder = world.path("users/home/.claude");
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&folder).expect("list").map(|e| e.expect("entry").file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["other"]);
    let mut waiting = first.running(&world, Some(Mode::Run));
    waiting.hear(&["WAITING"]);
    let during = names();
    assert!(during.len() > 5, "{during:?}");
    let second = absent("overwrite {home}/.claude/CLAUDE.md").running(&world, Some(Mode::Run)).finish();
    assert!(second.verdict() == Verdict::Blocked, "{second}");
    assert_eq!(names(), during, "a session that ended took what another one needs");
    waiting.say("");
    let outcome = waiting.finish();
    assert!(outcome.verdict() == Verdict::Blocked, "{outcome}");
    assert_eq!(names(), ["other"]);
}
