//! Install and remove on typical settings files.

mod hermes;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::agents::Agent;
use super::*;

struct Desk {
    dir: tempfile::TempDir,
    request: InstallRequest,
}

impl Desk {
    fn new(agent: Agent) -> Desk {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        let binary = dir.path().join("it's a/bin folder/nono");
        fs::create_dir_all(binary.parent().unwrap()).unwrap();
        fs::write(&binary, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        let request = InstallRequest {
            agent,
            scope: Scope::User,
            places: Places { home: home.clone(), ..Places::default() },
            binary,
            nono_home: None,
            state_dir: home.join(".nono"),
        };
        Desk { dir, request }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.request.places.home.join(name)
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn install(&self) -> Applied {
        apply(&plan_install(&self.request).unwrap()).unwrap()
    }

    fn remove(&self) -> Applied {
        apply(&plan_remove(&self.request).unwrap()).unwrap()
    }

    fn state(&self) -> HookState {
        status(&self.request).unwrap().state
    }

    /// Every file and folder except nono's own and backups, with contents and modes.
    fn tree(&self) -> Vec<(PathBuf, u32, Option<Vec<u8>>)> {
        fn walk(dir: &Path, out: &mut Vec<(PathBuf, u32, Option<Vec<u8>>)>) {
            let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
            entries.sort();
            for path in entries {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if name == ".nono" || name.contains(".nono-backup-") {
                    continue;
                }
                let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
                if path.is_dir() {
                    out.push((path.clone(), mode, None));
                    walk(&path, out);
                } else {
                    out.push((path.clone(), mode, Some(fs::read(&path).unwrap())));
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.request.places.home, &mut out);
        out
    }
}

fn agent(name: &str) -> Agent {
    name.parse().unwrap()
}

/// Agents whose hooks go into the user's own settings.
fn agents() -> Vec<Agent> {
    let can =
        |agent: &Agent| agent.adapter().install.hooks.is_some() && agent.adapter().install.user.is_some();
    Agent::all().into_iter().filter(can).collect()
}

fn hooks_file(agent: Agent) -> String {
    let install = &agent.adapter().install;
    format!("{}/{}", install.user.as_ref().unwrap(), install.hooks.as_ref().unwrap().file)
}

#[test]
fn nothing_there_before_and_nothing_after() {
    for agent in agents() {
        let desk = Desk::new(agent);
        assert_eq!(desk.state(), HookState::NotInstalled, "{agent:?}");
        let before = desk.tree();
        let applied = desk.install();
        assert!(applied.backups.is_empty(), "nothing to back up: {applied:?}");
        assert_eq!(desk.state(), HookState::Installed, "{agent:?}");
        assert!(desk.path(&hooks_file(agent)).exists());
        assert_eq!(fs::metadata(desk.path(".nono/config.toml")).unwrap().permissions().mode() & 0o777, 0o600);
        let installed = desk.tree();
        assert!(
            plan_install(&desk.request).unwrap().changes.is_empty(),
            "{agent:?}: a second time changes nothing"
        );
        desk.install();
        assert_eq!(desk.tree(), installed);
        desk.remove();
        assert_eq!(desk.tree(), before, "{agent:?}");
        assert_eq!(desk.state(), HookState::NotInstalled);
        assert!(plan_remove(&desk.request).unwrap().changes.is_empty());
    }
}

const SETTINGS: [&str; 7] = [
    "{}",
    "{ }\n",
    "{\n  \"model\": \"x\",\n  \"hooks\": {}\n}\n",
    "{\"permissions\":{\"allow\":[\"Bash\"]},\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]}]}}",
    "// a comment\n{\n\t\"hooks\": {\n\t\t\"PreToolUse\": [], // none yet\n\t\t\"BeforeTool\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n\t\t]\n\t}\n}\n",
    "{\r\n    \"z\": 1,\r\n    \"a\": {\"hooks\": \"not these\"}\r\n}",
    "\n",
];

/// Only Gemini CLI reads comments.
fn is_read(agent: Agent, settings: &str) -> bool {
    agent == self::agent("gemini") || !settings.contains("//")
}

#[test]
fn what_the_agent_does_not_read_is_refused() {
    let comment = "{\n  \"é\": 1, // mine\n  \"b\": 2\n}\n";
    let comma = "{\n  \"a\": [1],\n}\n";
    for (agent, text, place) in [
        (agent("claude-code"), comment, Some(":2:")),
        (agent("claude-code"), comma, Some(":3:")),
        (agent("codex"), comment, Some(":2:")),
        (agent("codex"), comma, Some(":3:")),
        (agent("gemini"), comment, None),
        (agent("gemini"), comma, Some(":2:11:")),
        (agent("gemini"), "{\"a\": [1, /* two */ ]}", Some(":1:9:")),
    ] {
        let desk = Desk::new(agent);
        desk.put(&hooks_file(agent), text);
        let before = desk.tree();
        let Some(place) = place else {
            desk.install();
            assert!(desk.get(&hooks_file(agent)).contains("// mine"));
            continue;
        };
        let error = plan_install(&desk.request).unwrap_err().to_string();
        assert!(error.contains(&format!(".json{place}")), "{agent:?} {text}: {error}");
        assert!(matches!(desk.state(), HookState::Broken { .. }), "{agent:?} {text}");
        assert!(plan_remove(&desk.request).unwrap().changes.is_empty(), "{agent:?} {text}");
        assert_eq!(desk.tree(), before);
    }
}

#[test]
fn settings_come_back_byte_for_byte() {
    for agent in [agent("claude-code"), agent("codex"), agent("gemini")] {
        for settings in SETTINGS.into_iter().filter(|settings| is_read(agent, settings)) {
            let desk = Desk::new(agent);
            let file = desk.put(&hooks_file(agent), settings);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            let before = desk.tree();
            let applied = desk.install();
            assert_eq!(applied.backups.len(), 1);
            assert_eq!(fs::read_to_string(&applied.backups[0]).unwrap(), settings);
            assert_eq!(desk.state(), HookState::Installed, "{settings}");
            assert!(!settings.contains("mine") || desk.get(&hooks_file(agent)).contains("\"mine\""));
            assert!(plan_install(&desk.request).unwrap().changes.is_empty(), "{settings}");
            desk.remove();
            assert_eq!(desk.tree(), before, "{agent:?} {settings}");
        }
    }
}

/// Without the record nono's parts are removed and everything else stays.
#[test]
fn changed_since_the_install() {
    for agent in [agent("claude-code"), agent("codex"), agent("gemini")] {
        for settings in SETTINGS[2..6].iter().filter(|settings| is_read(agent, settings)) {
            let desk = Desk::new(agent);
            desk.put(&hooks_file(agent), settings);
            desk.install();
            let file = desk.path(&hooks_file(agent));
            let text = fs::read_to_string(&file).unwrap();
            // The user adds a key.
            let text = text.replacen('{', "{ \"later\": [1], ", 1);
            fs::write(&file, &text).unwrap();
            desk.remove();
            let left = fs::read_to_string(&file).unwrap();
            assert!(left.contains("\"later\": [1]"), "{left}");
            assert!(!left.contains(" hook "), "{left}");
            assert_eq!(left.contains("mine"), settings.contains("mine"), "{left}");
            assert_eq!(left.matches("//").count(), settings.matches("//").count(), "{left}");
            super::jsonc::parse(&left).unwrap_or_else(|wrong| panic!("{left}: {wrong:?}"));
        }
    }
}

#[test]
fn a_byte_order_mark_stays() {
    let desk = Desk::new(agent("gemini"));
    let text = "\u{feff}{\n \"a\": null\n}";
    let file = desk.put(&hooks_file(desk.request.agent), text);
    desk.install();
    assert_eq!(desk.state(), HookState::Installed);
    let changed = fs::read_to_string(&file).unwrap().replace("null", "1");
    assert!(changed.starts_with('\u{feff}'));
    fs::write(&file, changed).unwrap();
    desk.remove();
    assert_eq!(fs::read_to_string(&file).unwrap(), text.replace("null", "1"));
}

#[test]
fn what_the_hooks_say() {
    let mut desk = Desk::new(agent("claude-code"));
    desk.request.nono_home = Some(PathBuf::from("/tmp/no no"));
    desk.install();
    let settings: Value = serde_json::from_str(&desk.get(".claude/settings.json")).unwrap();
    let hooks = settings["hooks"].as_object().unwrap();
    let events: Vec<&str> = hooks.keys().map(String::as_str).collect();
    assert_eq!(
        events,
        ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"]
    );
    let group = &hooks["PreToolUse"][0];
    assert!(group.get("matcher").is_none(), "of every tool");
    // The command line, as a shell parses it.
    let command = group["hooks"][0]["command"].as_str().unwrap();
    fs::write(&desk.request.binary, "#!/bin/sh\nprintf '%s|' \"$NONO_HOME\" \"$@\"\n").unwrap();
    let said = std::process::Command::new("sh").arg("-c").arg(command).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), "/tmp/no no|hook|claude-code|PreToolUse|");

    // An earlier version registered some tools only.
    let old = desk.get(".claude/settings.json").replacen(
        "\"hooks\": [\n",
        "\"matcher\": \"Bash\", \"hooks\": [\n",
        1,
    );
    desk.put(".claude/settings.json", &old);
    assert!(matches!(desk.state(), HookState::Outdated { .. }), "{old}");
    desk.install();
    assert_eq!(serde_json::from_str::<Value>(&desk.get(".claude/settings.json")).unwrap(), settings);
}

#[test]
fn another_nono_is_outdated_and_one_that_is_gone_is_broken() {
    for agent in agents() {
        let mut desk = Desk::new(agent);
        desk.install();
        let old = desk.request.binary.clone();
        let new = desk.dir.path().join("nono");
        fs::copy(&old, &new).unwrap();
        desk.request.binary = new;
        let status = super::status(&desk.request).unwrap();
        assert!(matches!(status.state, HookState::Outdated { .. }), "{agent:?} {status:?}");
        assert_eq!(status.binary, Some((old.clone(), true)), "{agent:?}");
        fs::remove_file(&old).unwrap();
        assert!(matches!(desk.state(), HookState::Broken { .. }), "{agent:?}");
        desk.install();
        assert_eq!(desk.state(), HookState::Installed, "{agent:?}");
        assert!(!desk.get(&hooks_file(agent)).contains("bin folder"), "the old one is gone");
    }
}

#[test]
fn malformed_settings_are_refused_and_left_alone() {
    for (text, place) in [
        ("{\n  \"hooks\": {\n    \"PreToolUse\": [\n  }\n}\n", ":4:3:"),
        ("{\"hooks\": []}", ":1:11:"),
        ("[]", ":1:1:"),
        ("{\n \"hooks\": {\"PreToolUse\": {}}}", ":2:26:"),
    ] {
        let desk = Desk::new(agent("claude-code"));
        desk.put(".claude/settings.json", text);
        let before = desk.tree();
        let error = plan_install(&desk.request).unwrap_err().to_string();
        assert!(error.contains(&format!("settings.json{place}")), "{error}");
        assert_eq!(desk.tree(), before);
    }
    let desk = Desk::new(agent("claude-code"));
    desk.put(".claude/settings.json", "{\"a\": 1");
    assert!(matches!(desk.state(), HookState::Broken { .. }));
    assert!(matches!(plan_remove(&desk.request), Err(InstallError::Malformed { .. })));
    fs::write(desk.path(".claude/settings.json"), b"{\"\xff\": 1}").unwrap();
    assert!(matches!(plan_install(&desk.request), Err(InstallError::NotText { .. })));
}

#[test]
fn links_stay_and_their_targets_are_written() {
    let desk = Desk::new(agent("claude-code"));
    let real = desk.put("dotfiles/claude.json", "{\"a\": 1}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(desk.path(".claude")).unwrap();
    let link = desk.path(".claude/settings.json");
    symlink("../dotfiles/claude.json", &link).unwrap();
    let before = desk.tree();
    desk.install();
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains(" hook claude-code PreToolUse"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    desk.remove();
    assert!(link.is_symlink());
    assert_eq!(desk.tree(), before);
    fs::remove_file(&real).unwrap();
    assert!(matches!(plan_install(&desk.request), Err(InstallError::Dangling { .. })));
}

#[test]
fn a_command_of_the_users_own_stays() {
    let desk = Desk::new(agent("claude-code"));
    desk.put(".claude/commands/rollback.md", "mine\n");
    let plan = plan_install(&desk.request).unwrap();
    assert!(plan.notes.iter().any(|note| note.contains("rollback.md is yours")), "{:?}", plan.notes);
    desk.install();
    assert_eq!(desk.get(".claude/commands/rollback.md"), "mine\n");
    assert_eq!(desk.state(), HookState::Installed);
    desk.remove();
    assert_eq!(desk.get(".claude/commands/rollback.md"), "mine\n");
}

#[test]
fn instructions_are_a_part_of_the_file() {
    for text in ["# Mine\n", "# Mine", "a\r\nb\r\n", "", "\n\n"] {
        let desk = Desk::new(agent("claude-code"));
        desk.put(".claude/CLAUDE.md", text);
        desk.install();
        let with = desk.get(".claude/CLAUDE.md");
        assert!(with.starts_with(text) && with.contains("nono:begin claude-code"), "{with}");
        assert_eq!(with.contains("\r\n"), text.contains("\r\n"));
        assert!(!with.replace("\r\n", "").contains('\r'));
        // The user adds text below it.
        fs::write(desk.path(".claude/CLAUDE.md"), format!("{with}after\n")).unwrap();
        assert_eq!(desk.state(), HookState::Installed);
        desk.remove();
        let left = desk.get(".claude/CLAUDE.md");
        assert!(left.ends_with("after\n") && !left.contains("nono"), "{left:?}");
    }
    let desk = Desk::new(agent("claude-code"));
    desk.put(".claude/CLAUDE.md", "a\n<!-- nono:begin claude-code: x -->\nb\n");
    let error = plan_install(&desk.request).unwrap_err();
    assert!(matches!(error, InstallError::Section { line: 2, .. }), "{error}");
}

#[test]
fn two_agents_in_one_file_do_not_mind_each_other() {
    let desk = Desk::new(agent("codex"));
    let project = desk.path("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("AGENTS.md"), "# Ours\n").unwrap();
    let codex = InstallRequest { scope: Scope::Project(project.clone()), ..desk.request.clone() };
    let opencode = InstallRequest { agent: agent("opencode"), ..codex.clone() };
    let before = desk.tree();
    for request in [&codex, &opencode] {
        apply(&plan_install(request).unwrap()).unwrap();
        assert_eq!(status(request).unwrap().state, HookState::Installed);
    }
    apply(&plan_remove(&codex).unwrap()).unwrap();
    assert_eq!(status(&opencode).unwrap().state, HookState::Installed);
    assert_eq!(status(&codex).unwrap().state, HookState::NotInstalled);
    apply(&plan_remove(&opencode).unwrap()).unwrap();
    assert_eq!(desk.tree(), before);
    let hermes = InstallRequest { agent: agent("hermes"), ..codex };
    assert!(matches!(plan_install(&hermes), Err(InstallError::NoProject { .. })));
}

/// Hooks without groups, in a file of nono's own or in a shared one.
#[test]
fn entries_without_groups() {
    let desk = Desk::new(agent("cursor"));
    let mine = "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [{\"command\": \"mine\"}]\n  }\n}\n";
    desk.put(".cursor/hooks.json", mine);
    desk.install();
    let file: Value = serde_json::from_str(&desk.get(".cursor/hooks.json")).unwrap();
    assert_eq!(file["hooks"]["stop"][0]["command"], "mine");
    assert!(file["hooks"]["preToolUse"][0]["command"].as_str().unwrap().ends_with(" hook cursor preToolUse"));
    desk.remove();
    assert_eq!(desk.get(".cursor/hooks.json"), mine);

    let copilot = Desk::new(agent("copilot"));
    assert!(matches!(plan_install(&copilot.request), Err(InstallError::OnlyProject { .. })));
    fs::create_dir(copilot.path("project")).unwrap();
    let project =
        InstallRequest { scope: Scope::Project(copilot.path("project")), ..copilot.request.clone() };
    apply(&plan_install(&project).unwrap()).unwrap();
    let file: Value = serde_json::from_str(&copilot.get("project/.github/hooks/nono.json")).unwrap();
    assert_eq!(file["version"], 1);
    let hook = &file["hooks"]["preToolUse"][0];
    assert_eq!((hook["type"].as_str(), hook["timeoutSec"].as_u64()), (Some("command"), Some(60)));
    assert!(hook["bash"].as_str().unwrap().ends_with(" hook copilot preToolUse"));
    assert_eq!(status(&project).unwrap().state, HookState::Installed);
    apply(&plan_remove(&project).unwrap()).unwrap();
    assert!(!copilot.path("project/.github/hooks/nono.json").exists());
}

#[test]
fn what_nono_cannot_do_is_said_with_what_a_person_can() {
    for name in ["kiro", "cline"] {
        let error = plan_install(&Desk::new(agent(name)).request).unwrap_err();
        assert!(error.hint().unwrap().contains(&format!("nono hook {name} EVENT")), "{error}");
    }
}

#[test]
fn a_file_changed_between_plan_and_apply_is_left_alone() {
    let desk = Desk::new(agent("claude-code"));
    let file = desk.put(".claude/settings.json", "{}");
    let plan = plan_install(&desk.request).unwrap();
    fs::write(&file, "{\"new\": 1}").unwrap();
    let before = desk.tree();
    assert!(matches!(apply(&plan), Err(InstallError::Changed { .. })));
    assert_eq!(desk.tree(), before);
}

#[test]
fn backups_do_not_overwrite_each_other() {
    let mut desk = Desk::new(agent("claude-code"));
    desk.put(".claude/settings.json", "{}");
    let first = desk.install().backups;
    desk.request.nono_home = Some(PathBuf::from("/elsewhere"));
    let second = desk.install().backups;
    assert!(first.iter().all(|path| !second.contains(path)), "{first:?} {second:?}");
    assert_eq!(fs::read_to_string(&first[0]).unwrap(), "{}");
    desk.remove();
    assert_eq!(desk.get(".claude/settings.json"), "{}", "what was there before the first install");
}

#[test]
fn settings_that_turn_hooks_off_are_told() {
    for (agent, file, text) in [
        (agent("claude-code"), ".claude/settings.json", "{\"disableAllHooks\": true}"),
        (agent("gemini"), ".gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}"),
        (agent("codex"), ".codex/config.toml", "[features]\nhooks = false\n"),
    ] {
        let desk = Desk::new(agent);
        desk.put(file, text);
        let plan = plan_install(&desk.request).unwrap();
        assert!(plan.notes.iter().any(|note| note.contains("no hook runs")), "{:?}", plan.notes);
        desk.install();
        assert!(matches!(desk.state(), HookState::Broken { .. }), "{agent:?}");
    }
}

#[test]
fn folders_that_variables_name() {
    let desk = Desk::new(agent("claude-code"));
    let other = desk.path("other");
    let moved = [
        ("CLAUDE_CONFIG_DIR", "c"),
        ("CODEX_HOME", "x"),
        ("GEMINI_CLI_HOME", "g"),
        ("XDG_CONFIG_HOME", "xdg"),
        ("HERMES_HOME", "h"),
    ];
    let moved = moved.map(|(name, folder)| (name.to_owned(), other.join(folder)));
    let places = Places { home: desk.path(""), moved: moved.into() };
    let file = |name: &str| {
        let agent = agent(name);
        let request = InstallRequest { agent, places: places.clone(), ..desk.request.clone() };
        let file = status(&request).unwrap().file;
        file.strip_prefix(&other).unwrap().to_owned()
    };
    let expected = [
        "c/settings.json",
        "x/hooks.json",
        "g/.gemini/settings.json",
        "xdg/opencode/plugins/nono.js",
        "h/config.yaml",
    ];
    assert_eq!(
        ["claude-code", "codex", "gemini", "opencode", "hermes"].map(file),
        expected.map(PathBuf::from)
    );
}
