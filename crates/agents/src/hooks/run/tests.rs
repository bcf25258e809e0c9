use nono_checkpoint::{CheckpointManager, Config, Host};
use tempfile::TempDir;

use super::super::backend::{ErrorText, Local, Protected};
use super::*;

/// A home, a state folder and a project.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "state", "p/src", "q"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for name in ["p", "q"] {
            std::fs::write(dir.path().join(name).join("Makefile"), "all:\n").unwrap();
            std::fs::write(dir.path().join(name).join("a.txt"), "one\n").unwrap();
        }
        Place { dir }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(below)
    }

    fn backend(&self) -> Local {
        let host = Host { state_dir: self.path("state"), home: self.path("home") };
        Local::new(CheckpointManager::new(host, Config { enabled: true, ..Config::default() }))
    }

    fn context(&self) -> Context {
        Context {
            cwd: self.path("p"),
            home: self.path("home"),
            state_dir: Some(self.path("state")),
            enabled: true,
            always: false,
            sandbox: None,
        }
    }

    /// Handle an event as a separate process would.
    fn tell(&self, told: &HookPayload) -> Handled {
        handle(told, &mut self.backend(), &self.context())
    }

    fn reasons(&self, project: &str) -> Vec<String> {
        match self.backend().manager.list(&self.path(project)) {
            Ok(list) => list.into_iter().rev().map(|line| line.reason).collect(),
            Err(_) => Vec::new(),
        }
    }
}

fn prompt() -> HookEvent {
    HookEvent::Prompt { text: String::new() }
}

fn told(event: HookEvent) -> HookPayload {
    let origin =
        Origin { agent: Some("claude-code".to_owned()), session: Some("s1".to_owned()), ..Origin::default() };
    HookPayload { origin, cwd: None, event }
}

fn shell(command: &str) -> ToolCall {
    ToolCall::Shell { tool: "Bash".to_owned(), command: command.to_owned() }
}

fn ran(call: ToolCall) -> HookEvent {
    HookEvent::AfterTool { call, failed: Some(false), output: String::new() }
}

#[test]
fn once_a_turn_and_only_where_something_is_at_risk() {
    let place = Place::new();
    assert_eq!(place.tell(&told(prompt())), Handled::default());
    assert_eq!(place.tell(&told(HookEvent::BeforeTool { call: shell("ls") })), Handled::default());
    assert!(place.reasons("p").is_empty());
    let call = shell("rm a.txt");
    assert_eq!(place.tell(&told(HookEvent::BeforeTool { call: call.clone() })).taken.len(), 1);
    std::fs::remove_file(place.path("p/a.txt")).unwrap();
    assert_eq!(place.tell(&told(ran(call))), Handled::default());
    // The same turn.
    assert!(place.tell(&told(HookEvent::BeforeTool { call: shell("rm -rf src") })).taken.is_empty());
    assert_eq!(place.reasons("p"), ["before Bash: rm a.txt"]);
    // The next turn.
    place.tell(&told(prompt()));
    let files = ToolCall::Files { tool: "Write".to_owned(), paths: vec!["src/b".into()] };
    assert_eq!(place.tell(&told(HookEvent::BeforeTool { call: files })).taken.len(), 1);
    assert_eq!(place.reasons("p"), ["before Bash: rm a.txt", "before Write"]);
}

#[test]
fn the_project_of_the_target_is_kept() {
    let place = Place::new();
    let line = format!("cd {} && rm a.txt", place.path("q").display());
    assert_eq!(place.tell(&told(HookEvent::BeforeTool { call: shell(&line) })).taken.len(), 1);
    assert!(place.reasons("p").is_empty());
    assert_eq!(place.reasons("q").len(), 1);
}

/// A read-only call between two others neither takes the change of another process for the agent's nor ends a call.
#[test]
fn a_read_only_call_changes_no_attribution() {
    let place = Place::new();
    place.tell(&told(prompt()));
    let call = shell("rm a.txt");
    place.tell(&told(HookEvent::BeforeTool { call: call.clone() }));
    std::fs::remove_file(place.path("p/a.txt")).unwrap();
    place.tell(&told(ran(call)));
    place.tell(&told(HookEvent::BeforeTool { call: shell("git status | head") }));
    std::fs::write(place.path("p/mine"), "the user's").unwrap();
    assert_eq!(place.tell(&told(ran(shell("git status | head")))), Handled::default());
    place.tell(&told(HookEvent::BeforeTool { call: shell("make") }));
    std::fs::write(place.path("p/built"), "the agent's").unwrap();
    place.tell(&told(ran(shell("make"))));
    let target = nono_checkpoint::CheckpointTarget::Text("1".to_owned());
    let mut manager = place.backend().manager;
    manager.restore(&place.path("p"), &target, &nono_checkpoint::CheckpointChoice::default()).unwrap();
    assert!(place.path("p/a.txt").exists() && place.path("p/mine").exists());
    assert!(!place.path("p/built").exists());
}

#[test]
fn always_means_before_every_tool() {
    let place = Place::new();
    let context = Context { always: true, ..place.context() };
    let other = HookEvent::BeforeTool { call: ToolCall::Reads { tool: "WebSearch".to_owned(), path: None } };
    assert_eq!(handle(&told(other), &mut place.backend(), &context).taken, [place.path("p")]);
    assert_eq!(place.reasons("p"), ["before WebSearch"]);
}

#[test]
fn nothing_happens_while_it_is_off() {
    let place = Place::new();
    let context = Context { enabled: false, ..place.context() };
    let event = HookEvent::BeforeTool { call: shell("rm a.txt") };
    assert_eq!(handle(&told(event), &mut place.backend(), &context), Handled::default());
    assert!(!place.path("state/projects").exists());
}

#[test]
fn a_missing_protection_is_told_and_blocks_nothing() {
    let place = Place::new();
    let event = HookEvent::BeforeTool { call: shell("rm -rf ~") };
    let handled = place.tell(&told(event));
    let message = handled.reply.message.unwrap();
    assert!(message.starts_with("nono: no checkpoint of ") && message.contains("too broad"), "{message}");
    // A state folder that is a file.
    std::fs::remove_dir_all(place.path("state")).unwrap();
    std::fs::write(place.path("state"), "").unwrap();
    for event in [
        prompt(),
        HookEvent::BeforeTool { call: shell("rm a.txt") },
        ran(shell("make")),
        HookEvent::SessionStart,
    ] {
        let handled = place.tell(&told(event.clone()));
        assert!(handled.taken.is_empty());
        assert!(event == HookEvent::SessionStart || handled.reply.message.is_some(), "{event:?}");
    }
}

#[test]
fn the_model_hears_of_a_restore_once() {
    let place = Place::new();
    place.tell(&told(prompt()));
    let call = shell("rm a.txt");
    place.tell(&told(HookEvent::BeforeTool { call: call.clone() }));
    std::fs::remove_file(place.path("p/a.txt")).unwrap();
    place.tell(&told(ran(call)));
    let mut backend = place.backend();
    let target = nono_checkpoint::CheckpointTarget::Text("1".to_owned());
    let outcome = backend
        .manager
        .restore(&place.path("p"), &target, &nono_checkpoint::CheckpointChoice::default())
        .unwrap();
    assert_eq!(outcome.turns_undone.len(), 1);
    let context = place.tell(&told(prompt())).reply.context.unwrap();
    assert!(context.contains("your edits to them since then are gone"), "{context}");
    let json: serde_json::Value = serde_json::from_str(context.lines().last().unwrap()).unwrap();
    assert_eq!(json["nono_restore"]["turns_undone"][0], outcome.turns_undone[0].as_str());
    assert!(json["nono_restore"]["files"].to_string().contains("a.txt"), "{json}");
    assert_eq!(place.tell(&told(prompt())).reply, HookReply::default());
    // Other conversations are not affected.
    let other = HookPayload {
        origin: Origin { session: Some("s2".to_owned()), ..told(prompt()).origin },
        ..told(prompt())
    };
    assert_eq!(place.tell(&other).reply, HookReply::default());
}

#[test]
fn a_change_of_another_process_between_calls_is_kept() {
    let place = Place::new();
    place.tell(&told(prompt()));
    let call = shell("rm a.txt");
    place.tell(&told(HookEvent::BeforeTool { call: call.clone() }));
    std::fs::remove_file(place.path("p/a.txt")).unwrap();
    place.tell(&told(ran(call)));
    std::fs::write(place.path("p/mine"), "a person's").unwrap();
    // Another call comes after it, and ends.
    place.tell(&told(HookEvent::BeforeTool { call: shell("make") }));
    std::fs::write(place.path("p/built"), "the agent's").unwrap();
    place.tell(&told(ran(shell("make"))));
    let mut backend = place.backend();
    let target = nono_checkpoint::CheckpointTarget::Text("1".to_owned());
    backend
        .manager
        .restore(&place.path("p"), &target, &nono_checkpoint::CheckpointChoice::default())
        .unwrap();
    assert!(place.path("p/a.txt").exists() && place.path("p/mine").exists());
    assert!(!place.path("p/built").exists());
}

#[test]
fn a_call_whose_end_is_not_told_ends_with_the_turn() {
    let place = Place::new();
    place.tell(&told(prompt()));
    place.tell(&told(HookEvent::BeforeTool { call: shell("sed -i s/one/two/ a.txt") }));
    std::fs::write(place.path("p/a.txt"), "two\n").unwrap();
    assert_eq!(place.tell(&told(HookEvent::Stop)), Handled::default());
    // A change by the user afterwards.
    std::fs::write(place.path("p/Makefile"), "mine:\n").unwrap();
    assert_eq!(place.tell(&told(HookEvent::Stop)), Handled::default());
    let mut manager = place.backend().manager;
    let target = nono_checkpoint::CheckpointTarget::Text("1".to_owned());
    let outcome =
        manager.restore(&place.path("p"), &target, &nono_checkpoint::CheckpointChoice::default()).unwrap();
    assert_eq!(std::fs::read_to_string(place.path("p/a.txt")).unwrap(), "one\n");
    let kept: Vec<_> = outcome.kept.iter().map(|skipped| skipped.path.clone()).collect();
    assert_eq!(kept, [place.path("p/Makefile")]);
    assert_eq!(std::fs::read_to_string(place.path("p/Makefile")).unwrap(), "mine:\n");
}

/// A backend that fails in every way it can.
struct Broken;

impl Backend for Broken {
    fn prompt(&mut self, _: &Origin, _: &str) -> Result<(), ErrorText> {
        Err("\x1b[2Jbroken".to_owned())
    }
    fn begins(&mut self, _: &Origin, _: Option<&str>) -> Result<(), ErrorText> {
        Err("broken".to_owned())
    }
    fn before(&mut self, _: &Origin, _: &str, _: Option<&str>, targets: &[PathBuf]) -> Protected {
        let unprotected = targets.iter().map(|path| (path.clone(), "\x1b]0;broken".to_owned())).collect();
        Protected { unprotected, ..Protected::default() }
    }
    fn after(&mut self, _: &Origin, _: &[PathBuf]) -> Result<(), ErrorText> {
        Err("broken".to_owned())
    }
    fn stopped(&mut self, _: &Origin, _: &[PathBuf]) -> Result<(), ErrorText> {
        Err("broken \x1b[31m".to_owned())
    }
    fn notes(&mut self, _: &Origin) -> Result<Vec<RestoreNote>, ErrorText> {
        Err("broken".to_owned())
    }
}

#[test]
fn every_failure_is_told_and_harmless_on_a_terminal() {
    let place = Place::new();
    let events = [
        prompt(),
        HookEvent::BeforeTool { call: shell("ls") },
        HookEvent::BeforeTool { call: shell("rm 'a\x1b[31m'") },
        ran(shell("make")),
    ];
    for event in events {
        let message = handle(&told(event), &mut Broken, &place.context()).reply.message.unwrap();
        assert!(message.contains("broken") && !message.contains('\x1b'), "{message:?}");
    }
}
