//! Forgery: objects, trees, manifests, records and journals with every checksum correct that an outsider can compute.
//! Refused before use, and nothing is written outside the roots.

use std::fs;
use std::path::{Path, PathBuf};

use nono_snapshot::hash::content_hash;
use nono_snapshot::node::{Entry, Kind, Meta, Name, Node, tree_id};
use nono_snapshot::store::{ObjectKey, Store, WriteOptions};
use sha2::Digest as _;

use super::lab::{Lab, files, scratch};
use super::trees::{Listing, list, write};

/// JSON without the spaces between its parts.
fn compact(pretty: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::new(), false, false);
    for letter in pretty.chars() {
        if quoted || !letter.is_whitespace() {
            out.push(letter);
        }
        quoted ^= letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
    }
    out
}

/// The text with a correct checksum.
fn sealed(text: &str) -> String {
    let start = text.find("\"checksum\": \"").unwrap() + "\"checksum\": \"".len();
    let end = start + text[start..].find('"').unwrap();
    let blank = format!("{}{}", &text[..start], &text[end..]);
    format!("{}{}{}", &text[..start], content_hash(compact(&blank).as_bytes()).hex(), &text[end..])
}

fn edit(path: &Path, change: impl FnOnce(&str) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let changed = change(&text);
    assert_ne!(text, changed, "{}: nothing was forged", path.display());
    fs::write(path, changed).unwrap();
}

fn value(path: &Path, key: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    json[key].as_str().unwrap().to_owned()
}

/// Update the record to name the manifest that is there now.
fn record_again(lab: &Lab) {
    let manifest = lab.session().join("snapshots/000.json");
    let record = lab.session().join("record.json");
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    let old = &json["snapshots"][0];
    let hash = content_hash(&fs::read(&manifest).unwrap()).hex();
    edit(&record, |text| {
        let text = text.replace(old["manifest"].as_str().unwrap(), &hash);
        let text = text.replace(old["merkle_root"].as_str().unwrap(), &value(&manifest, "merkle_root"));
        sealed(&text.replace(old["state_root"].as_str().unwrap(), &value(&manifest, "state_root")))
    });
}

struct Scene {
    lab: Lab,
    outside: PathBuf,
    untouched: Listing,
    _dir: tempfile::TempDir,
}

/// A session with one snapshot, a tree that differs from it, and files outside that must stay as they are.
fn scene() -> Scene {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let outside = lab.base.join("outside");
    write(&outside.join("precious"), "outside");
    write(&lab.tree().join("a"), "first");
    write(&lab.tree().join("sub/xx"), "the name that is forged");
    lab.manager().unwrap().create_baseline().unwrap();
    write(&lab.tree().join("a"), "second");
    let untouched = list(&outside);
    Scene { lab, outside, untouched, _dir: dir }
}

impl Scene {
    /// Assert that opening, restoring or reading it is refused, with an error about `named`; verify reports it.
    #[track_caller]
    fn assert_refused(&self, what: &str, named: &str) {
        let before = list(&self.lab.tree());
        let restored = self.lab.manager().and_then(|mut manager| manager.restore_to(0));
        let said = match restored {
            Ok(restored) => {
                let failed = restored.failed.iter();
                let failed = failed.map(|failed| format!("{}: {}", failed.path.display(), failed.error));
                failed.collect::<Vec<_>>().join("\n")
            }
            Err(error) => {
                assert_eq!(list(&self.lab.tree()), before, "{what}: refused, and the tree was touched");
                error.to_string()
            }
        };
        assert!(said.contains(named), "{what}: it should say something of {named:?}: {said:?}");
        let clean = self.lab.manager().and_then(|mut manager| manager.verify());
        if let Ok(report) = clean {
            assert!(!report.is_clean(), "{what}: verify finds nothing");
        }
        assert_eq!(list(&self.outside), self.untouched, "{what}: written outside");
        assert!(!self.lab.base.join("now/escaped").exists(), "{what}: escaped");
    }
}

#[test]
fn manifest_of_other_roots() {
    let scene = scene();
    let elsewhere = Lab::at(&scene.outside);
    let mut options = nono_snapshot::ManagerOptions { settle_by_hand: true, ..Default::default() };
    options.store = Some(scene.lab.store());
    let other = scene.lab.base.join("other-session");
    let mut other = nono_snapshot::SnapshotManager::with_options(
        &other,
        [elsewhere.base.join("now")],
        super::lab::plain(),
        nono_snapshot::Limits::NONE,
        options,
    )
    .unwrap();
    write(&scene.outside.join("now/victim"), "captured");
    other.create_baseline().unwrap();
    write(&scene.outside.join("now/victim"), "must not be restored over");
    let scene = Scene { untouched: list(&scene.outside), ..scene };
    let manifest = scene.lab.session().join("snapshots/000.json");
    fs::copy(other.session().dir().join("snapshots/000.json"), &manifest).unwrap();
    scene.assert_refused("a manifest of another session", "000.json");
    record_again(&scene.lab);
    scene.assert_refused("a manifest of another session, and the record names it", "000.json");
}

#[test]
fn record_without_its_checksum_or_with_other_roots() {
    let scene = scene();
    let record = scene.lab.session().join("record.json");
    let original = fs::read_to_string(&record).unwrap();
    edit(&record, |text| text.replace("\"durable\": false", "\"durable\": true"));
    // It is set aside and rebuilt from the manifests: the captured state is restored.
    scene.lab.manager().unwrap().restore_to(0).unwrap();
    assert_eq!(list(&scene.outside), scene.untouched, "an edited record: written outside");
    let aside = super::lab::files(&scene.lab.session());
    let aside = aside.iter().filter(|path| path.to_string_lossy().contains("record.json.damaged-"));
    assert_eq!(aside.count(), 1);
    fs::write(&record, &original).unwrap();
    let (tree, outside) = (scene.lab.tree().display().to_string(), scene.outside.display().to_string());
    edit(&record, |text| sealed(&text.replace(&tree, &outside)));
    scene.assert_refused("a record of other roots", "session");
    for root in ["/", "relative", &format!("{tree}/../../outside")] {
        fs::write(&record, &original).unwrap();
        edit(&record, |text| sealed(&text.replace(&format!("\"{tree}\""), &format!("\"{root}\""))));
        scene.assert_refused(&format!("a record of the root {root}"), "");
    }
}

/// Bytes with their length before them, as in nodes and digests.
fn counted(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut length) = (Vec::new(), bytes.len());
    while length >= 0x80 {
        out.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    out.push(length.to_le_bytes()[0]);
    out.extend_from_slice(bytes);
    out
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Replace the snapshot's root by another tree, with all digests corrected but the Merkle digest of the tree.
fn root_tree(scene: &Scene, node: &[u8]) {
    let store = Store::open(&scene.lab.store()).unwrap();
    let writer = store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    let id = tree_id(node);
    appender.put(ObjectKey::from(id), node).unwrap();
    appender.finish().unwrap();
    drop(writer.publish().unwrap());
    let manifest = scene.lab.session().join("snapshots/000.json");
    let old = {
        let manager = scene.lab.manager().unwrap();
        let state = manager.load_manifest(0).unwrap().state;
        match &state.roots[0].content.entry().unwrap().kind {
            Kind::Dir { tree, .. } => tree.to_string(),
            other => panic!("{other:?}"),
        }
    };
    edit(&manifest, |text| reseal_manifest(&scene.lab, &text.replace(&old, &id.to_string())));
    record_again(&scene.lab);
}

fn reseal_manifest(lab: &Lab, text: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    let root = &json["roots"][0];
    let path = lab.tree();
    let mut state = counted(path.as_os_str().as_encoded_bytes());
    let entry = [vec![1], unhex(root["entry"].as_str().unwrap())].concat();
    state.extend(counted(&entry));
    state.extend(counted(&unhex(root["rules"].as_str().unwrap())));
    let small = compact(text);
    let coverage = &small[small.find("\"coverage\":").unwrap() + 11..small.find(",\"checksum\"").unwrap()];
    let digest =
        sha2::Sha256::new().chain_update(b"nono state v1\0").chain_update(&state).chain_update(coverage);
    let digest = nono_snapshot::StateRoot::from_bytes(digest.finalize().into()).to_string();
    sealed(&text.replace(json["state_root"].as_str().unwrap(), &digest))
}

fn entry(name: &[u8], kind: Kind) -> Entry {
    Entry { name: Name::new(name).unwrap(), meta: Meta { mode: 0o644, ..Meta::default() }, kind }
}

fn file(name: &[u8], content: &[u8]) -> Entry {
    let kind = Kind::File { hash: content_hash(content), size: content.len() as u64, sparse: false };
    entry(name, kind)
}

/// Control: the same forging with the original tree is accepted.
#[test]
fn manifest_made_right_again_is_taken() {
    let scene = scene();
    let manifest = scene.lab.session().join("snapshots/000.json");
    let text = fs::read_to_string(&manifest).unwrap();
    assert_eq!(reseal_manifest(&scene.lab, &text), text);
}

/// Nodes with names that lead out of the root. The forged bytes are a valid node's with a name replaced.
#[test]
fn trees_with_names_that_lead_out() {
    for bad in [&b".."[..], b"./", b"/x", b"a\0", b"x/"] {
        let scene = scene();
        let node = Node { entries: vec![file(b"QQ", b"first")], ..Node::default() }.encode();
        let at = node.windows(2).position(|two| two == b"QQ").unwrap();
        let mut forged = node;
        forged[at..at + 2].copy_from_slice(bad);
        root_tree(&scene, &forged);
        scene.assert_refused(&format!("a node with the name {:?}", String::from_utf8_lossy(bad)), "");
    }
    for bad in ["../escaped", "../../x/y"] {
        let scene = scene();
        let right = "Q".repeat(bad.len());
        let node = Node { entries: vec![file(right.as_bytes(), b"first")], ..Node::default() }.encode();
        let at = node.windows(bad.len()).position(|part| part == right.as_bytes()).unwrap();
        let mut forged = node;
        forged[at..at + bad.len()].copy_from_slice(bad.as_bytes());
        root_tree(&scene, &forged);
        scene.assert_refused(&format!("a node with the name {bad}"), "");
    }
}

/// A well-formed tree whose digest is not the recorded one.
#[test]
fn tree_with_another_digest() {
    let scene = scene();
    let node = Node { entries: vec![file(b"a", b"first"), file(b"planted", b"first")], ..Node::default() };
    root_tree(&scene, &node.encode());
    scene.assert_refused("a tree with another Merkle digest", "");
    assert!(!scene.lab.tree().join("planted").exists(), "restored what was never captured");
}

/// A node that names itself, or is malformed.
#[test]
fn trees_that_are_no_trees() {
    let garbage = [b"".to_vec(), vec![0xff; 40], b"{}".to_vec(), vec![0x80; 4096], {
        let mut node = Node { entries: vec![file(b"a", b"first")], ..Node::default() }.encode();
        node.push(0);
        node
    }];
    for bytes in garbage {
        let scene = scene();
        root_tree(&scene, &bytes);
        scene.assert_refused(&format!("{} bytes that are no node", bytes.len()), "");
    }
}

/// A content whose record in the pack has correct checksums and other bytes.
#[test]
fn content_with_other_bytes() {
    let scene = scene();
    let mut forged = 0;
    for path in files(&scene.lab.store().join("packs")) {
        let mut bytes = fs::read(&path).unwrap();
        let Some(at) = bytes.windows(5).position(|part| part == b"first") else { continue };
        bytes[at..at + 5].copy_from_slice(b"wrong");
        let sum = xxhash_rust::xxh3::xxh3_64(b"wrong").to_le_bytes();
        bytes[at - 16..at - 8].copy_from_slice(&sum);
        let head = xxhash_rust::xxh3::xxh3_64(&bytes[at - 64..at - 8]).to_le_bytes();
        bytes[at - 8..at].copy_from_slice(&head);
        fs::write(&path, bytes).unwrap();
        forged += 1;
    }
    assert_eq!(forged, 1, "no pack with the content");
    scene.assert_refused("a content with other bytes", "tree/a");
    assert_eq!(fs::read(scene.lab.tree().join("a")).unwrap(), b"second");
}

/// A journal with a correct checksum.
fn journal(id: [u8; 8], target: &str, safety: &str, roots: &[&[u8]], selection: Option<&[&[u8]]>) -> Vec<u8> {
    let mut bytes = b"nono restore v1\0".to_vec();
    bytes.extend(id);
    bytes.extend(counted(target.as_bytes()));
    bytes.extend(counted(safety.as_bytes()));
    bytes.extend([0, 0]);
    let paths = |paths: &[&[u8]]| -> Vec<u8> {
        let mut out = vec![u8::try_from(paths.len()).unwrap()];
        for path in paths {
            out.extend(counted(path));
        }
        out
    };
    bytes.extend(paths(roots));
    match selection {
        None => bytes.push(0),
        Some(selection) => {
            bytes.push(1);
            bytes.extend(paths(selection));
        }
    }
    let sum = sha2::Sha256::new().chain_update(b"nono journal\0").chain_update(&bytes).finalize();
    bytes.extend(sum);
    bytes
}

/// Journals that lead elsewhere: the next command refuses them, and the tree stays.
#[test]
fn journals() {
    let scene = scene();
    let path = scene.lab.session().join("restore.journal");
    let (tree, outside) = (scene.lab.tree(), scene.outside.clone());
    let tree = tree.as_os_str().as_encoded_bytes();
    let outside = outside.as_os_str().as_encoded_bytes();
    let up = [tree, b"/../../outside"].concat();
    let damaged = {
        let mut bytes = journal([1; 8], "0", "0", &[tree], None);
        bytes[20] ^= 1;
        bytes
    };
    let forged: [(&str, Vec<u8>); 9] = [
        ("other roots", journal([1; 8], "0", "0", &[outside], None)),
        ("a further root", journal([1; 8], "0", "0", &[outside, tree], None)),
        ("no roots", journal([1; 8], "0", "0", &[], None)),
        ("a way up", journal([1; 8], "0", "0", &[tree], Some(&[&up]))),
        ("an unknown target", journal([1; 8], "7", "0", &[tree], None)),
        ("a path as target", journal([1; 8], "../../outside/precious", "0", &[tree], None)),
        ("an unknown safety snapshot", journal([1; 8], "0", "../safety/x", &[tree], None)),
        ("a wrong checksum", damaged),
        ("nothing", Vec::new()),
    ];
    let before = list(&scene.lab.tree());
    for (what, bytes) in forged {
        fs::write(&path, bytes).unwrap();
        for next in ["recover", "incremental", "restore", "gc", "baseline"] {
            let result = super::child::operate(&scene.lab, next);
            assert!(result.is_err(), "a journal with {what}: {next} goes on");
            assert_eq!(list(&scene.lab.tree()), before, "a journal with {what}: the tree after {next}");
        }
        assert_eq!(list(&scene.outside), scene.untouched, "a journal with {what}: written outside");
    }
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(scene.outside.join("precious"), &path).unwrap();
    assert!(super::child::operate(&scene.lab, "recover").is_err(), "a link as journal");
    assert_eq!(list(&scene.outside), scene.untouched);
    // A selection outside: either refused, or nothing of it happens.
    fs::remove_file(&path).unwrap();
    fs::write(&path, journal([1; 8], "0", "0", &[tree], Some(&[outside]))).unwrap();
    let _ = super::child::operate(&scene.lab, "recover");
    assert_eq!(list(&scene.outside), scene.untouched, "a journal that selects what is outside");
}

/// Folders of the store that are links.
#[test]
fn store_folders_that_are_links() {
    for name in ["packs", "large", "tmp", "cache", "sessions"] {
        let scene = scene();
        let store = scene.lab.store();
        let moved = scene.lab.base.join("moved");
        fs::rename(store.join(name), &moved).unwrap();
        std::os::unix::fs::symlink(&scene.outside, store.join(name)).unwrap();
        let _ = super::child::operate(&scene.lab, "incremental");
        let _ = super::child::operate(&scene.lab, "settle");
        let _ = super::child::operate(&scene.lab, "gc");
        assert_eq!(list(&scene.outside), scene.untouched, "{name} is a link: written outside");
    }
}
