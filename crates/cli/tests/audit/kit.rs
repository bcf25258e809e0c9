//! A world with files that are not granted and a policy that opens them, runs in it, and what their logs say.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

pub(crate) use super::said::Said;
use super::world::World;

pub(crate) struct Kit {
    pub(crate) world: World,
}

impl Kit {
    /// `other/notes` has two files; `home/policy.json` lets them be read.
    pub(crate) fn new() -> Kit {
        let world = World::new();
        world.file("other/notes/a", "first\n", 0o644);
        world.file("other/notes/b", "second\n", 0o644);
        let notes = world.path("other/notes");
        let rule = format!(
            r#"{{"rules": [{{"path": "{}/**", "access": "read", "action": "allow", "scope": "once"}}]}}"#,
            notes.display()
        );
        world.file("home/policy.json", &rule, 0o600);
        Kit { world }
    }

    /// A file that is not granted, as the command line has it.
    pub(crate) fn note(&self, name: &str) -> String {
        self.world.path(&format!("other/notes/{name}")).display().to_string()
    }

    /// What asks the policy file.
    pub(crate) fn asking(&self) -> [String; 3] {
        let policy = self.world.path("home/policy.json");
        ["--ask".to_owned(), "--approve".to_owned(), format!("policy:{}", policy.display())]
    }

    /// `nono` with these arguments.
    pub(crate) fn nono(&self, args: &[&str]) -> Said {
        wait(&mut self.command(args))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command("nono");
        command.args(args).stdin(Stdio::null());
        command
    }

    /// A line of shell, without nono around it.
    pub(crate) fn sh(&self, line: &str) -> Said {
        wait(self.world.command("bash").args(["-c", line]).stdin(Stdio::null()))
    }

    /// A supervised run of a script in the folder it may write.
    pub(crate) fn run(&self, flags: &[&str], script: &str) -> Said {
        wait(&mut self.started(flags, script))
    }

    fn started(&self, flags: &[&str], script: &str) -> Command {
        let mut command = self.command(&["run", "--silent", "--allow-cwd", "--max-time", "100s"]);
        command.args(flags).args(["--", "bash", "-c", script]);
        command
    }

    /// The same with a policy that is asked; the session's id.
    #[track_caller]
    pub(crate) fn session(&self, flags: &[&str], script: &str) -> String {
        let asking = self.asking();
        let flags: Vec<&str> = asking.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        let before = self.ids();
        self.run(&flags, script).ok();
        self.new_id(&before)
    }

    /// The one session that was not there before.
    #[track_caller]
    pub(crate) fn new_id(&self, before: &BTreeSet<String>) -> String {
        let new: Vec<String> = self.ids().difference(before).cloned().collect();
        assert_eq!(new.len(), 1, "{new:?}");
        new.into_iter().next().unwrap()
    }

    /// A run that reads the files it is told to.
    pub(crate) fn talk(&self, flags: &[&str]) -> Talk {
        let asking = self.asking();
        let flags: Vec<&str> = asking.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        let script = "while IFS= read -r path; do
            if IFS= read -r text < \"$path\"; then echo yes; else echo no; fi; done 2>/dev/null";
        let mut command = self.started(&flags, script);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Talk { child, input, output: BufReader::new(output) }
    }

    pub(crate) fn audit(&self) -> PathBuf {
        self.world.path("state/audit")
    }

    /// All sessions there are.
    pub(crate) fn ids(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.audit()).into_iter().flatten();
        let folders = entries.map(|entry| entry.unwrap()).filter(|entry| entry.file_type().unwrap().is_dir());
        folders.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    pub(crate) fn lines(&self, id: &str) -> Vec<String> {
        let text = fs::read_to_string(self.audit().join(id).join("events.ndjson")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn events(&self, id: &str) -> Vec<Value> {
        let event = |line: &String| serde_json::from_str::<Value>(line).unwrap()["event"].clone();
        self.lines(id).iter().map(event).collect()
    }

    /// Those of a kind.
    pub(crate) fn events_of(&self, id: &str, kind: &str) -> Vec<Value> {
        let mut events = self.events(id);
        events.retain(|event| event["type"] == kind);
        events
    }

    pub(crate) fn record(&self, id: &str) -> Value {
        read_json(self.audit().join(id).join("session.json"))
    }

    pub(crate) fn ledger(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.audit().join("ledger.ndjson")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Everything is as it was written.
    #[track_caller]
    pub(crate) fn good(&self) -> Value {
        let found = self.nono(&["audit", "verify", "--json"]).ok().json();
        assert_eq!(found["ok"], true);
        self.nono(&["audit", "verify"]).ok();
        found
    }
}

pub(crate) fn read_json(path: PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[track_caller]
pub(crate) fn wait(command: &mut Command) -> Said {
    Said::of(&command.output().unwrap())
}

/// A run that is told what to read, and says whether it could.
pub(crate) struct Talk {
    pub(crate) child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talk {
    #[track_caller]
    pub(crate) fn reads(&mut self, path: &str) -> bool {
        writeln!(self.input, "{path}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        match answer.as_str() {
            "yes\n" => true,
            "no\n" => false,
            other => panic!("it answers {other:?}"),
        }
    }

    pub(crate) fn end(self) -> Said {
        let Talk { child, input, output } = self;
        drop((input, output));
        Said::of(&child.wait_with_output().unwrap())
    }
}
