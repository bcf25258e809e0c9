use std::fs;
use std::path::{Path, PathBuf};

use nono_policy::resolved::{ClosedBy, ClosedHow, ClosedPath, PathKind};
use nono_policy::{HostContext, ResolvedPolicy};
use nono_sandbox::SessionPaths;
use serde_json::{Value, json};

use super::*;

struct World {
    dir: tempfile::TempDir,
    sessions: u32,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        for name in ["h/.claude", "state", "p", "q"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        World { dir, sessions: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, value: &Value) {
        fs::write(self.path(name), serde_json::to_string_pretty(value).unwrap()).unwrap();
    }

    fn read(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn host(&self, moved: bool) -> HostContext {
        let agent_folders = vec![("claude-code".to_owned(), self.path("h/.claude"))];
        HostContext {
            home: Some(self.path("h")),
            cwd: self.path("p"),
            state_dir: self.path("state"),
            agent_folders: if moved { agent_folders } else { vec![] },
            ..HostContext::default()
        }
    }

    /// A session in a project: its folder, its copies by the name of their file, and the variables.
    fn begin(&mut self, project: &str, moved: bool) -> Begun {
        self.sessions += 1;
        let session = self.path(&format!("session-{}", self.sessions));
        fs::create_dir(&session).unwrap();
        let closed = [".claude.json", "settings.json"].map(|name| ClosedPath {
            original: self.path("h/.claude").join(name),
            resolved: self.path("h/.claude").join(name),
            by: ClosedBy::Agent("claude-code".to_owned()),
            kind: PathKind::File,
            how: ClosedHow::Mask,
            keep_read: true,
            has_openings: false,
        });
        let mut policy = ResolvedPolicy {
            closed: closed.into(),
            workdir: self.path(project),
            ..nono_policy::CapabilitySet::builder().build().unwrap().to_policy().unwrap()
        };
        let paths = SessionPaths { dir: session.clone(), ..SessionPaths::default() };
        let variables = place(&mut policy, &paths, &self.host(moved), &[]).unwrap();
        assert!(policy.closed.iter().all(|closed| closed.how == ClosedHow::Copy));
        let copies = paths.copies(&policy).map(|(_, copy)| copy).collect();
        Begun { session, copies, variables }
    }
}

struct Begun {
    session: PathBuf,
    copies: Vec<PathBuf>,
    variables: Vec<(OsString, OsString)>,
}

impl Begun {
    fn read(&self, n: usize) -> Value {
        serde_json::from_slice(&fs::read(&self.copies[n]).unwrap()).unwrap()
    }

    fn write(&self, n: usize, value: &Value) {
        fs::write(&self.copies[n], value.to_string()).unwrap();
    }

    fn end(&self) -> Vec<SavedReport> {
        carry_out(&self.session)
    }
}

#[test]
fn what_is_harmless_is_saved_outside_and_the_rest_for_the_project() {
    let mut world = World::new();
    world.write("h/.claude.json", &json!({"numStartups": 1, "mine": true}));
    let first = world.begin("p", false);
    assert_eq!(first.read(1), json!({}), "an absent one says nothing");
    assert_eq!(first.variables, [("CLAUDE_CONFIG_DIR".into(), world.path("h/.claude").into())]);
    let project = world.path("p").display().to_string();
    let inside = json!({
        "numStartups": 2, "mine": true, "mcpServers": {"x": {"command": "sh"}},
        "projects": {project.as_str(): {"hasTrustDialogAccepted": true, "lastCost": 3}}
    });
    first.write(0, &inside);
    first.write(1, &json!({"model": "opus", "env": {"X": "1"}, "hooks": {"Stop": [{"command": "sh"}]}}));
    // Another process changes the same file meanwhile.
    world.write("h/.claude.json", &json!({"numStartups": 1, "mine": true, "theirs": 1}));
    let reports = first.end();
    let outside = json!({
        "numStartups": 2, "mine": true, "theirs": 1, "projects": {project.as_str(): {"lastCost": 3}}
    });
    assert_eq!(world.read("h/.claude.json"), outside);
    assert_eq!(world.read("h/.claude/settings.json"), json!({"model": "opus"}));
    assert_eq!(reports[1].inside, ["env.X"]);
    assert_eq!(reports[1].outside, ["model"]);
    assert!(first.end().is_empty(), "done once");

    // The next session in the project has all of it; another project has what was saved outside.
    let again = world.begin("p", false);
    let trusted = &again.read(0)["projects"][project.as_str()]["hasTrustDialogAccepted"];
    assert_eq!((trusted, &again.read(0)["mcpServers"]["x"]["command"]), (&json!(true), &json!("sh")));
    assert_eq!(again.read(1), json!({"model": "opus", "env": {"X": "1"}}), "hooks are nowhere");
    assert!(again.end().is_empty());
    assert_eq!(world.begin("q", false).read(0), outside);
}

#[test]
fn two_at_once_save_what_each_of_them_changed() {
    let mut world = World::new();
    world.write("h/.claude.json", &json!({"a": 1}));
    let (first, second) = (world.begin("p", false), world.begin("p", false));
    first.write(0, &json!({"a": 1, "b": 2}));
    second.write(0, &json!({"c": 3}));
    first.end();
    second.end();
    assert_eq!(world.read("h/.claude.json"), json!({"b": 2, "c": 3}));
}

#[test]
fn what_cannot_be_read_changes_nothing_and_is_said() {
    let mut world = World::new();
    world.write("h/.claude.json", &json!({"a": 1}));
    let session = world.begin("p", false);
    fs::write(&session.copies[0], "{\"a\": ").unwrap();
    let reports = session.end();
    assert!(matches!(&reports[..], [SavedReport { problem: Some(_), .. }]), "{reports:?}");
    assert_eq!(world.read("h/.claude.json"), json!({"a": 1}));
    // Nor is an invalid file outside changed.
    fs::write(world.path("h/.claude/settings.json"), "{ // mine\n}").unwrap();
    let session = world.begin("p", false);
    session.write(1, &json!({"model": "x"}));
    assert!(session.end()[0].problem.is_some());
    assert_eq!(fs::read_to_string(world.path("h/.claude/settings.json")).unwrap(), "{ // mine\n}");
}

#[test]
fn a_folder_that_the_person_moved_has_its_own_file() {
    let mut world = World::new();
    world.write("h/.claude.json", &json!({"elsewhere": 1}));
    world.write("h/.claude/.claude.json", &json!({"here": 1}));
    let session = world.begin("p", true);
    assert!(session.variables.is_empty());
    assert_eq!(session.read(0), json!({"here": 1}));
    session.write(0, &json!({"here": 2}));
    session.end();
    assert_eq!(
        (world.read("h/.claude/.claude.json"), world.read("h/.claude.json")),
        (json!({"here": 2}), json!({"elsewhere": 1}))
    );
}

#[test]
fn a_link_stays_one_and_a_mode_stays() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::new();
    world.write("dots.json", &json!({"a": 1}));
    fs::set_permissions(world.path("dots.json"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("../dots.json", world.path("h/.claude.json")).unwrap();
    let session = world.begin("p", false);
    session.write(0, &json!({"a": 2}));
    session.end();
    assert_eq!(world.read("dots.json"), json!({"a": 2}));
    assert_eq!(fs::read_link(world.path("h/.claude.json")).unwrap(), Path::new("../dots.json"));
    assert_eq!(fs::metadata(world.path("dots.json")).unwrap().permissions().mode() & 0o777, 0o640);
}
