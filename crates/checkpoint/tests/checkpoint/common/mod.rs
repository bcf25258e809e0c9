//! What all tests share: a home, a state folder and a project in a temporary folder, never the real ones.

use std::path::{Path, PathBuf};

use nono_testkit::sh;

use nono_checkpoint::{
    Checkpoint, CheckpointChoice, CheckpointManager, CheckpointTarget, Config, Ensured, Host, Origin,
    ProjectOutcome, Skip,
};

pub(crate) struct World {
    dir: Option<tempfile::TempDir>,
    pub(crate) base: PathBuf,
    pub(crate) host: Host,
    pub(crate) tree: PathBuf,
}

impl World {
    pub(crate) fn new() -> World {
        World::within(&std::env::temp_dir())
    }

    /// In a temporary folder below another one.
    pub(crate) fn within(base: &Path) -> World {
        let dir = tempfile::Builder::new().prefix("checkpoint-").tempdir_in(base).unwrap();
        let mut world = World::at(&dir.path().canonicalize().unwrap());
        world.dir = Some(dir);
        world
    }

    /// In a folder that is there.
    pub(crate) fn at(base: &Path) -> World {
        let home = base.join("home");
        let tree = home.join("work/project");
        std::fs::create_dir_all(&tree).unwrap();
        let host = Host { state_dir: home.join(".nono"), home };
        World { dir: None, base: base.to_owned(), host, tree }
    }

    pub(crate) fn manager(&self) -> CheckpointManager {
        self.manager_with(&Config::default())
    }

    pub(crate) fn manager_with(&self, config: &Config) -> CheckpointManager {
        let config = Config { enabled: true, ..config.clone() };
        CheckpointManager::new(self.host.clone(), config)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.tree.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(name)).unwrap()).into_owned()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Create one by hand.
    pub(crate) fn create(&self) -> Checkpoint {
        taken(self.manager().create(&self.tree, "asked", &Origin::default()))
    }

    /// A whole call of an agent's, each half in a process of its own as it were.
    pub(crate) fn call(&self, turn: &str, work: impl FnOnce()) -> Ensured {
        let origin = origin("s1", turn, "c");
        let ensured = self.manager().ensure_checkpoint(&self.tree, "before edit", &origin);
        work();
        self.manager().agent_left(&self.tree, &origin).unwrap();
        ensured
    }

    pub(crate) fn restore(&self, target: &str) -> ProjectOutcome {
        self.restore_with(target, &CheckpointChoice::default())
    }

    pub(crate) fn restore_with(&self, target: &str, choice: &CheckpointChoice) -> ProjectOutcome {
        let outcome = self.manager().restore(&self.tree, &text(target), choice).unwrap();
        assert!(outcome.failed.is_empty(), "{outcome:?}");
        outcome
    }

    pub(crate) fn sh(&self, script: &str) {
        sh(&self.tree, script);
    }
}

pub(crate) fn origin(session: &str, turn: &str, call: &str) -> Origin {
    Origin {
        agent: Some("claude-code".to_owned()),
        session: Some(session.to_owned()),
        turn: Some(turn.to_owned()),
        tool: Some("Edit".to_owned()),
        call: Some(call.to_owned()),
        run: None,
        prompt: None,
    }
}

pub(crate) fn text(target: &str) -> CheckpointTarget {
    CheckpointTarget::Text(target.to_owned())
}

pub(crate) fn taken(ensured: Ensured) -> Checkpoint {
    match ensured {
        Ensured::Taken { checkpoint, .. } => checkpoint,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn skipped(ensured: Ensured) -> Skip {
    match ensured {
        Ensured::Skipped { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn kept(outcome: &ProjectOutcome) -> Vec<PathBuf> {
    outcome.kept.iter().map(|skipped| skipped.path.clone()).collect()
}
