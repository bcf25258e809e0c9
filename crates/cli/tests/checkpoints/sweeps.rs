//! What goes, and what must not.

use std::fs;
use std::path::Path;

use super::kit::Kit;
use super::settled::settled;
use nono_testkit::oracle::same;

#[test]
fn never_more_than_the_most() {
    let kit = Kit::project();
    kit.bare("printf '[checkpoints]\\nmax_snapshots = 3\\n' > $NONO_HOME/config.toml; echo 0 > file");
    let first = kit.take();
    kit.checkpoints(&["pin", "1"]).ok();
    let mut ids = vec![first.clone()];
    for round in 1..9 {
        kit.bare(&format!("echo {round} > file"));
        ids.push(kit.take());
    }
    let list = kit.list();
    let listed: Vec<&str> = list.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert!(listed.len() <= 4, "three, and a pinned one: {listed:?}");
    assert_eq!((listed[0], listed[listed.len() - 1]), (&*ids[8], &*first));
    assert!(listed.iter().all(|id| ids.iter().any(|known| known == id)), "ids never change");
    kit.checkpoints(&["prune", "--yes"]).ok();
    assert_eq!(kit.list().len(), listed.len());
    kit.restore(&[&first]).ok();
    assert_eq!(kit.read("file"), "0\n");
}

#[test]
fn stale_projects_go_and_named_ones_stay() {
    let kit = Kit::project();
    kit.take();
    kit.bare("echo more > more");
    kit.take();
    kit.checkpoints(&["name", "2", "kept"]).ok();
    // As if the project had not been touched for long.
    let project = projects(&kit);
    let file = project.join("project.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["last_touch"] = "2020-01-01T00:00:00Z".into();
    fs::write(&file, value.to_string()).unwrap();
    let plan = kit.checkpoints(&["prune", "--dry-run", "--json"]).ok().json();
    assert_eq!(plan["removed"][0]["checkpoints"].as_array().unwrap().len(), 1, "{plan}");
    assert_eq!(kit.list().len(), 2);
}

#[test]
fn a_secret_is_forgotten_to_the_last_byte() {
    let kit = Kit::project();
    let secret = "f3b1c0de-not-to-be-kept-anywhere";
    kit.bare(&format!("for n in $(seq 200); do echo {secret}; done > secret.env; echo {secret} > other"));
    kit.take();
    kit.bare("echo changed >> secret.env");
    kit.take();
    let before = kit.look();
    let plan = kit.checkpoints(&["forget", "secret.env", "--dry-run", "--json"]).ok().json();
    assert_eq!(plan["checkpoints"].as_array().unwrap().len(), 2, "{plan}");
    kit.checkpoints(&["forget", "secret.env"]).code(1);
    assert!(holds(&kit.world.path("state"), secret.as_bytes()), "it is looked for where it is");
    kit.checkpoints(&["forget", "secret.env", "--yes"]).ok();
    kit.checkpoints(&["forget", "other", "--yes"]).ok();
    same(&before, &kit.look());
    kit.checkpoints(&["verify"]).ok();
    assert!(!holds(&kit.world.path("state"), secret.as_bytes()));
    // Whatever it holds now, no checkpoint does.
    kit.bare("rm secret.env");
    let said = kit.restore(&["1"]);
    assert!(!kit.tree().join("secret.env").exists(), "{said:?}");
}

/// In plain bytes; compressed ones would have to be looked for by the engine's own tests.
fn holds(dir: &Path, secret: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, secret);
        }
        fs::read(&path).is_ok_and(|bytes| bytes.windows(secret.len()).any(|part| part == secret))
    })
}

fn projects(kit: &Kit) -> std::path::PathBuf {
    let entries = fs::read_dir(kit.world.path("state/projects")).unwrap();
    let mut dirs: Vec<_> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    dirs.retain(|dir| dir.join("project.json").exists());
    assert_eq!(dirs.len(), 1, "{dirs:?}");
    dirs.remove(0)
}

#[test]
fn damage_is_named_and_the_rest_is_served() {
    let kit = Kit::project();
    kit.take();
    settled(&kit.world.path("bin/nono"));
    // As long as this is held, packs stay as they are written.
    let next = fs::File::open(kit.world.path("state/store/settler.next")).unwrap();
    next.lock().unwrap();
    kit.bare("head -c 400000 /dev/urandom > first");
    let first = kit.take();
    kit.bare("rm first; head -c 400000 /dev/urandom > second");
    let second = kit.take();
    kit.checkpoints(&["verify"]).ok();
    // A byte of what only the first has.
    let mut packs = Vec::new();
    files(&kit.world.path("state/store"), &mut packs);
    let is_pack = |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "pack");
    packs.retain(|path| is_pack(path) && fs::metadata(path).unwrap().len() >= 400_000);
    packs.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let oldest = packs.first().expect("a pack of the first");
    let mut bytes = fs::read(oldest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    kit.bare(&format!("chmod u+w {}", oldest.display()));
    fs::write(oldest, bytes).unwrap();
    let said = kit.checkpoints(&["verify", "--json"]).code(1);
    let found = said.json();
    assert_eq!(found["good"], false);
    let lost: Vec<&str> = found["lost"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["checkpoint"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(lost, [first.as_str()], "{found}");
    let text = kit.checkpoints(&["verify"]).code(1);
    assert!(text.out.contains("BAD (") && text.out.contains("lost: "), "{}", text.out);
    // The other one is whole.
    let before = kit.look();
    kit.bare("rm second Makefile");
    kit.restore(&[&second]).ok();
    same(&before, &kit.look());
}

fn files(dir: &Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, all) } else { all.push(path) }
    }
}
