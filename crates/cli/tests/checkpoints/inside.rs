//! From inside a sandbox: the same history, asked of the supervisor; nothing is restored unless a person agrees.

use super::kit::Kit;
use nono_testkit::oracle::same;

#[test]
fn the_same_history_is_seen() {
    let kit = Kit::project();
    kit.take();
    kit.bare("echo changed > src/main.rs");
    let inside =
        |script: &str| kit.nono(&["run", "-s", "--checkpoints", "--allow", ".", "--", "sh", "-c", script]);
    let said = inside("nono checkpoints list").ok();
    assert!(said.out.starts_with("Checkpoints for ") && said.out.contains("by hand"), "{said:?}");
    let said = inside("nono checkpoints diff 2 src/main.rs").ok();
    assert!(said.out.contains("-fn main() {}\n+changed"), "{said:?}");
    let said = inside("echo more > more && nono checkpoints create -m mine --json").ok();
    assert!(said.json()["taken"].is_string(), "{said:?}");
    assert!(kit.list().iter().any(|one| one["reason"] == "mine" && one["run"].is_string()));
    let before = kit.look();
    let said = inside("nono checkpoints restore 1 --yes").code(1);
    assert!(said.err.contains("error: "), "{said:?}");
    same(&before, &kit.look());
    for line in ["undo --yes", "clear --yes", "prune --yes", "forget src/main.rs --yes", "pin 1", "status"] {
        let said = inside(&format!("nono checkpoints {line}")).code(125);
        assert!(said.err.contains("only checkpoints list, create, diff and restore"), "{line}: {said:?}");
    }
    let said = inside("cd / && nono checkpoints list").code(1);
    assert!(said.err.contains("not writable in this sandbox"), "{said:?}");
}
