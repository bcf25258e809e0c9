//! Stores of Hermes become checkpoints. The fixtures are made by git itself, as Hermes makes them; the import has no git.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nono::checkpoints::import::{ImportError, Imported, import};
use nono::checkpoints::{CheckpointChoice, CheckpointManager, CheckpointTarget, Config, Host, Origin};

struct World {
    _dir: tempfile::TempDir,
    base: PathBuf,
    host: Host,
    tree: PathBuf,
    hermes: PathBuf,
}

impl World {
    fn new() -> World {
        let dir = tempfile::Builder::new().prefix("import-").tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = base.join("home");
        let (tree, hermes) = (home.join("work/project"), home.join(".hermes/checkpoints"));
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::create_dir_all(&hermes).unwrap();
        World { _dir: dir, host: Host { state_dir: home.join(".nono"), home }, base, tree, hermes }
    }

    fn manager(&self) -> CheckpointManager {
        CheckpointManager::new(self.host.clone(), Config { enabled: true, ..Config::default() })
    }

    /// The shared store of the newer layout.
    fn store(&self) -> PathBuf {
        let store = self.hermes.join("store");
        if !store.exists() {
            run(&self.base, &format!("git init -q --bare '{}'", store.display()));
            std::fs::create_dir_all(store.join("projects")).unwrap();
            std::fs::create_dir_all(store.join("indexes")).unwrap();
        }
        store
    }

    /// Take a checkpoint as Hermes does.
    fn hermes_takes(&self, tree: &Path, hash: &str, message: &str, time: u64) -> String {
        let store = self.store();
        let meta = format!(
            "{{\"workdir\": {}, \"created_at\": 1.5, \"last_touch\": 2.5}}",
            serde_json::to_string(tree.to_str().unwrap()).unwrap()
        );
        std::fs::write(store.join(format!("projects/{hash}.json")), meta).unwrap();
        let script = format!(
            "export GIT_DIR='{store}' GIT_WORK_TREE='{tree}' GIT_INDEX_FILE='{store}/indexes/{hash}'
             export GIT_AUTHOR_DATE='{time} +0200' GIT_COMMITTER_DATE='{time} +0200'
             git add -A
             parent=$(git rev-parse -q --verify refs/hermes/{hash} || true)
             commit=$(git commit-tree $(git write-tree) ${{parent:+-p $parent}} -m '{message}')
             git update-ref refs/hermes/{hash} $commit; echo $commit",
            store = store.display(),
            tree = tree.display(),
        );
        run(tree, &script).trim().to_owned()
    }

    fn import(&self) -> Imported {
        import(&self.hermes, &mut self.manager()).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.tree.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.tree.join(name)).unwrap()
    }

    fn restore(&self, target: &str, paths: &[&str]) {
        let choice = CheckpointChoice {
            paths: paths.iter().map(|path| self.tree.join(path)).collect(),
            ..CheckpointChoice::default()
        };
        let target = CheckpointTarget::Text(target.to_owned());
        let outcome = self.manager().restore(&self.tree, &target, &choice).unwrap();
        assert!(outcome.failed.is_empty(), "{outcome:?}");
    }
}

fn run(dir: &Path, script: &str) -> String {
    let script = format!(
        "git() {{ command git -c user.name=n -c user.email=n@n -c core.autocrlf=false \"$@\"; }}; {script}"
    );
    let out = Command::new("bash")
        .args(["-euc", &script])
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// All files below a folder, with their bytes and times: nothing may change in what is only read.
fn picture(dir: &Path) -> String {
    run(
        dir,
        "find . -printf '%p %y %m %s %T@ %l\\n' | sort; find . -type f -print0 | sort -z | xargs -0r sha256sum",
    )
}

const T: u64 = 1_700_000_000;

#[test]
fn a_store_of_hermes_becomes_checkpoints() {
    let world = World::new();
    let odd = std::ffi::OsStr::new("caf\u{e9} \u{1f600}");
    world.write("src/main.rs", "one");
    world.write("run", "#!/bin/sh\n");
    std::fs::set_permissions(world.tree.join("run"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("src/main.rs", world.tree.join("link")).unwrap();
    std::fs::write(world.tree.join(odd), "odd").unwrap();
    std::fs::write(world.tree.join(bytes(b"raw-\xff\xfe")), "raw").unwrap();
    world.write("crlf", "a\r\nb\r\n");
    let first = world.hermes_takes(&world.tree, "0011223344556677", "before write_file", T);
    world.write("src/main.rs", "two");
    std::fs::remove_file(world.tree.join("run")).unwrap();
    let second = world.hermes_takes(&world.tree, "0011223344556677", "before patch", T + 7200);
    world.write("src/main.rs", "three");
    world.write("later", "made later");
    let other = world.base.join("home/work/gone");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("file"), "of a folder that is gone").unwrap();
    world.hermes_takes(&other, "8899aabbccddeeff", "before terminal: rm -rf .", T);
    std::fs::remove_dir_all(&other).unwrap();

    let (source, tree) = (picture(&world.hermes), picture(&world.tree));
    let imported = world.import();
    assert_eq!(imported.skipped, []);
    assert_eq!(imported.projects, [(world.tree.clone(), 2), (other.clone(), 1)]);
    assert_eq!((imported.checkpoints.len(), imported.known), (3, 0));
    assert_eq!(picture(&world.hermes), source, "the source is left alone");
    assert_eq!(picture(&world.tree), tree, "and so is the folder");

    let list = world.manager().list(&world.tree).unwrap();
    let shown: Vec<_> = list.iter().map(|one| (one.time.as_str(), one.reason.as_str(), one.files)).collect();
    assert_eq!(
        shown,
        [("2023-11-15T00:13:20Z", "before patch", 4), ("2023-11-14T22:13:20Z", "before write_file", 5)]
    );
    let from: Vec<_> = list.iter().map(|one| one.imported_from.clone().unwrap()).collect();
    assert_eq!(from, [format!("hermes:{second}"), format!("hermes:{first}")]);
    assert_eq!(list[0].stats.map(|stats| stats.files), Some(2), "src/main.rs and what is new since");

    // Once is enough, also after some went.
    let again = world.import();
    assert_eq!((again.checkpoints.len(), again.known), (0, 3));
    assert_eq!(world.manager().list(&world.tree).unwrap(), list);

    // One file, then all that it holds; what it does not name stays.
    world.restore("1", &["src/main.rs"]);
    assert_eq!(world.read("src/main.rs"), "two");
    world.restore("2", &[]);
    assert_eq!(world.read("src/main.rs"), "one");
    assert_eq!(world.read("later"), "made later");
    assert_eq!(world.read("crlf"), "a\r\nb\r\n");
    let mode = world.tree.join("run").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(std::fs::read(world.tree.join(bytes(b"raw-\xff\xfe"))).unwrap(), b"raw");
    assert!(world.manager().verify(None).unwrap().is_good());

    // The folder that is gone comes back.
    let outcome = world
        .manager()
        .restore(&other, &CheckpointTarget::Text("1".to_owned()), &CheckpointChoice::default())
        .unwrap();
    assert!(outcome.failed.is_empty(), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(other.join("file")).unwrap(), "of a folder that is gone");
}

fn bytes(name: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(name)
}

/// Packed objects, packed refs, and checkpoints of our own before and after.
#[test]
fn packed_or_loose_is_the_same_and_time_orders_them() {
    let world = World::new();
    for number in 0..5u64 {
        world.write("file", &format!("number {number}\n").repeat(200));
        world.write(&format!("dir{number}/file"), "x");
        world.hermes_takes(&world.tree, "0011223344556677", &format!("step {number}"), T + number);
    }
    run(
        &world.store(),
        "git --git-dir=. repack -q -a -d -f; git --git-dir=. pack-refs --all; git --git-dir=. prune-packed",
    );
    assert!(!world.store().join("refs/hermes/0011223344556677").exists());
    world.write("file", "ours");
    let ensured = world.manager().create(&world.tree, "ours", &Origin::default());
    assert!(matches!(ensured, nono::checkpoints::Ensured::Taken { .. }));
    assert_eq!(world.import().checkpoints.len(), 5);
    let reasons = || -> Vec<String> {
        world.manager().list(&world.tree).unwrap().into_iter().map(|one| one.reason).collect()
    };
    assert_eq!(reasons(), ["ours", "step 4", "step 3", "step 2", "step 1", "step 0"]);
    world.write("file", "more");
    world.manager().create(&world.tree, "more", &Origin::default());
    assert_eq!(reasons()[..3], ["more", "ours", "step 4"]);
    world.restore("4", &[]);
    assert_eq!(world.read("file"), "number 3\n".repeat(200));
    assert!(world.tree.join("dir4/file").exists(), "what it does not hold stays");
}

/// One repository for each folder, as it was first, and as Hermes sets those aside.
#[test]
fn the_older_layout_and_what_was_set_aside() {
    let world = World::new();
    world.write("file", "one");
    for (place, text) in [("aaaabbbbccccdddd", "one"), ("legacy-20250101-000000/eeeeffff00001111", "two")] {
        world.write("file", text);
        let repository = world.hermes.join(place);
        run(
            &world.tree,
            &format!(
                "export GIT_DIR='{0}' GIT_WORK_TREE=.; mkdir -p '{0}'; git init -q; git add -A; git commit -qm 'in {text}'",
                repository.display()
            ),
        );
        std::fs::write(repository.join("HERMES_WORKDIR"), format!("{}\n", world.tree.display())).unwrap();
    }
    std::fs::write(world.hermes.join(".last_prune"), "x").unwrap();
    let imported = world.import();
    assert_eq!(imported.skipped, []);
    assert_eq!(imported.checkpoints.len(), 2);
    // One repository alone can be named, too.
    let again = import(&world.hermes.join("aaaabbbbccccdddd"), &mut world.manager()).unwrap();
    assert_eq!((again.checkpoints.len(), again.known), (0, 1));
    let nothing = import(&world.tree, &mut world.manager());
    assert!(matches!(nothing, Err(ImportError::Nothing { .. })), "{nothing:?}");
    assert!(matches!(import(Path::new("/nowhere"), &mut world.manager()), Err(ImportError::Io { .. })));
}

/// A damaged object is named for its commit; everything else is taken.
#[test]
fn damage_is_named_and_the_rest_goes_on() {
    let world = World::new();
    world.write("good", "good");
    world.write("sub/bad", "damaged soon");
    let first = world.hermes_takes(&world.tree, "0011223344556677", "first", T);
    world.write("sub/bad", "fine again");
    world.hermes_takes(&world.tree, "0011223344556677", "second", T + 1);
    let store = world.store();
    let blob = run(&store, &format!("git --git-dir=. rev-parse {first}:sub/bad"));
    let object = store.join("objects").join(&blob[..2]).join(blob[2..].trim());
    // Whole, but of another content: only its digest tells.
    let other = run(&store, "echo other | git --git-dir=. hash-object -w --stdin");
    std::fs::remove_file(&object).unwrap();
    std::fs::copy(store.join("objects").join(&other[..2]).join(other[2..].trim()), &object).unwrap();
    // A ref that leads nowhere, a project without a folder, one that is too broad, one of a file that is nonsense.
    run(&store, &format!("git --git-dir=. update-ref refs/hermes/1111111111111111 {first}"));
    for (hash, meta) in [
        ("2222222222222222", "{\"workdir\": \"/\"}"),
        ("3333333333333333", "nonsense"),
        ("4444444444444444", "{\"workdir\": \"relative\"}"),
        ("5555555555555555", "{\"workdir\": \"/a/../etc\"}"),
    ] {
        run(&store, &format!("git --git-dir=. update-ref refs/hermes/{hash} {first}"));
        std::fs::write(store.join(format!("projects/{hash}.json")), meta).unwrap();
    }
    std::fs::write(store.join("refs/hermes/6666666666666666"), "not a ref\n").unwrap();
    let imported = world.import();
    assert_eq!((imported.checkpoints.len(), imported.projects.len()), (2, 1), "{imported:?}");
    assert!(imported.skipped.iter().any(|one| one.what.ends_with("sub/bad") && one.why.contains("damaged")));
    for hash in ["1111", "2222", "3333", "4444", "5555"] {
        assert!(imported.skipped.iter().any(|one| one.what.contains(hash)), "{hash}: {imported:?}");
    }
    // What is damaged is left out of the checkpoint: a restore does not touch it.
    world.write("sub/bad", "as it is now");
    world.write("good", "changed");
    world.restore("2", &[]);
    assert_eq!((world.read("sub/bad").as_str(), world.read("good").as_str()), ("as it is now", "good"));
    assert_eq!(world.import().checkpoints.len(), 0);
}

/// Trees that git itself would refuse.
#[test]
fn hostile_trees_lead_nowhere() {
    let world = World::new();
    world.write("file", "text");
    world.hermes_takes(&world.tree, "0011223344556677", "fine", T);
    let store = world.store();
    let script = "
        blob=$(echo evil | git --git-dir=. hash-object -w --stdin)
        raw() { printf \"$1 $2\\\\0\"; echo -n $3 | xxd -r -p; }
        tree() { git --git-dir=. hash-object -t tree -w --stdin --literally; }
        inner=$(raw 100644 config $blob | tree)
        up=$(raw 100644 passwd $blob | tree)
        top=$({ raw 40000 .. $up; raw 40000 .git $inner; raw 100644 /etc/passwd $blob; raw 160000 module $blob;
                raw 100644 fine $blob; raw 40000 loop $up; } | tree)
        commit=$(git --git-dir=. commit-tree $top -m \"$(printf 'evil\\033[2Jtitle\\n\\nbody')\")
        git --git-dir=. update-ref refs/hermes/0011223344556677 $commit
        # A small tree that stands for billions of paths.
        bomb=$(raw 100644 x $blob | tree)
        for i in $(seq 12); do
            bomb=$(for name in a b c d e f g h i j; do raw 40000 $name $bomb; done | tree)
        done
        commit=$(git --git-dir=. commit-tree $bomb -p $commit -m bomb)
        git --git-dir=. update-ref refs/hermes/0011223344556677 $commit
        # And one that never seems to end.
        deep=$(raw 100644 x $blob | tree)
        for i in $(seq 400); do deep=$(raw 40000 d $deep | tree); done
        commit=$(git --git-dir=. commit-tree $deep -p $commit -m deep)
        git --git-dir=. update-ref refs/hermes/0011223344556677 $commit";
    run(&store, script);
    let imported = world.import();
    let why =
        |what: &str| imported.skipped.iter().any(|one| one.what.contains(what) || one.why.contains(what));
    for what in ["..", ".git", "module", "more than", "too deep"] {
        assert!(why(what), "{what}: {:?}", imported.skipped);
    }
    let list = world.manager().list(&world.tree).unwrap();
    let reasons: Vec<&str> = list.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["deep", "evil\u{1b}[2Jtitle"], "the first line, for the edge to escape");
    world.restore("2", &[]);
    assert_eq!(world.read("fine"), "evil\n");
    assert_eq!(world.read("loop/passwd"), "evil\n");
    assert!(!world.tree.join(".git").exists() && !world.tree.join("../passwd").exists());
}

/// What does not fit the bound of all checkpoints is not taken, and said.
#[test]
fn the_bound_holds_for_what_is_imported() {
    let world = World::new();
    let mut seed = 1u64;
    for number in 0..6u64 {
        let noise: Vec<u8> = (0..400_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 56) as u8
            })
            .collect();
        std::fs::write(world.tree.join("noise"), noise).unwrap();
        world.hermes_takes(&world.tree, "0011223344556677", &format!("step {number}"), T + number);
    }
    let config = Config { max_total_size_mb: 1, ..Config::default() };
    let mut manager = CheckpointManager::new(world.host.clone(), config);
    let imported = import(&world.hermes, &mut manager).unwrap();
    assert!((1..3).contains(&imported.checkpoints.len()), "{imported:?}");
    assert!(
        imported.skipped.iter().any(|one| one.why.contains("step") || one.why.contains("commit")),
        "{imported:?}"
    );
    assert!(nono_sys_bytes(&world.host.state_dir) <= 1 << 20);
    // With more room the rest comes.
    let rest = world.import();
    assert_eq!(rest.checkpoints.len() + imported.checkpoints.len(), 6);
}

fn nono_sys_bytes(dir: &Path) -> u64 {
    run(dir, "du -s -B1 .").split_whitespace().next().unwrap().parse().unwrap()
}
