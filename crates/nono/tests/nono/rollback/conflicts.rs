//! What was changed after the session ended: kept, forced, merged, and never lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nono::rollback::{Conflicts, Done, Item, Merge, RestoreChoice, RollbackSession};
use nono::snapshot::restore::Why;

use super::world::{Running, World, names};

fn with(conflicts: Conflicts) -> RestoreChoice {
    RestoreChoice { conflicts, ..RestoreChoice::everything() }
}

/// The paths that were kept because they were changed since; nothing else was kept, and nothing failed.
fn kept(world: &World, done: &Done) -> Vec<String> {
    assert!(done.failed.is_empty(), "{done:?}");
    assert!(done.kept.iter().all(|skipped| skipped.why == Why::ChangedSince), "{done:?}");
    names(world, done.kept.iter().map(|skipped| &skipped.path))
}

#[test]
fn edits_after_the_end_survive_and_when_forced_come_back_exactly() {
    let world = World::new();
    for name in ["both", "command", "untouched", "removed"] {
        world.write(name, "at first");
    }
    let before = world.tree();
    let id = world.session(1, || {
        world.write("both", "by the command");
        world.write("command", "by the command");
        world.write("made", "by the command");
    });
    // The person works on.
    world.write("both", "by the person");
    world.write("untouched", "by the person");
    world.write("made", "by the person, over what the command made");
    world.write("own/new", "by the person");
    fs::remove_file(world.path("removed")).unwrap();
    fs::set_permissions(world.path("both"), fs::Permissions::from_mode(0o751)).unwrap();
    let edited = world.tree();
    let mut session = world.open(&id);

    let plan = session.plan(&RestoreChoice::everything()).unwrap();
    let conflicts = names(&world, plan.kept.iter().map(|skipped| &skipped.path));
    assert_eq!(conflicts, ["both", "made", "own", "removed", "untouched"]);
    assert_eq!(names(&world, plan.changes.to_vec().iter().map(|change| &change.path)), ["command"]);
    assert_eq!(world.tree(), edited);

    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(kept(&world, &done), conflicts);
    assert_eq!(world.read("command"), "at first");
    assert_eq!(world.read("both"), "by the person");
    session.undo(None).unwrap();
    assert_eq!(world.tree(), edited);

    let done = session.restore(&with(Conflicts::Force)).unwrap();
    assert!(done.kept.is_empty() && done.failed.is_empty(), "{done:?}");
    assert_eq!(world.tree(), before);
    session.undo(None).unwrap();
    assert_eq!(world.tree(), edited);
    // What the undo brought back is still the person's.
    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(kept(&world, &done), conflicts);
}

#[test]
fn edits_after_a_restore_survive_its_undo() {
    let world = World::new();
    world.write("a", "at first");
    world.write("b", "at first");
    let id = world.session(1, || {
        world.write("a", "by the command");
        world.write("b", "by the command");
    });
    let mut session = world.open(&id);
    session.restore(&RestoreChoice::everything()).unwrap();
    world.write("a", "by the person");
    let plan = session.plan_undo(None).unwrap();
    assert_eq!(names(&world, plan.kept.iter().map(|skipped| &skipped.path)), ["a"]);
    let done = session.undo(None).unwrap();
    assert_eq!(kept(&world, &done), ["a"]);
    assert_eq!(world.read("a"), "by the person");
    assert_eq!(world.read("b"), "by the command");
}

/// Its supervisor was killed, or the final snapshot failed: what the watcher took last is no end.
#[test]
fn without_a_final_snapshot_everything_is_restored_and_can_be_undone() {
    for end in [Running::killed, Running::close] {
        let world = World::new();
        world.write("a", "at first");
        let before = world.tree();
        let mut running = world.begin(1);
        world.write("a", "half way");
        running.manager.create_incremental().unwrap();
        world.write("a", "by the command");
        let id = end(running);
        world.write("b", "by somebody");
        let edited = world.tree();
        let mut session = world.open(&id);
        assert!(session.plan(&RestoreChoice::everything()).unwrap().cannot_tell_conflicts);
        let done = session.restore(&RestoreChoice::everything()).unwrap();
        assert!(done.kept.is_empty(), "{done:?}");
        assert_eq!(world.tree(), before);
        session.undo(None).unwrap();
        assert_eq!(world.tree(), edited);
    }
}

const LINES: [&str; 9] = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/// The lines, with some of them replaced.
fn lines(replaced: &[(usize, &'static str)]) -> String {
    let mut lines = LINES;
    for (at, text) in replaced {
        lines[*at] = text;
    }
    lines.join("\n") + "\n"
}

/// `clean` and `same` were changed by the command in line 1, and by the person in line 7 or 1; the rest is no text, or
/// is not there to be merged.
fn to_merge(world: &World) -> RollbackSession {
    for name in ["clean", "same", "only-person"] {
        world.write(name, lines(&[]));
    }
    world.write("binary", b"a\0b");
    world.write("removed", lines(&[]));
    let id = world.session(1, || {
        world.write("clean", lines(&[(1, "command")]));
        world.write("same", lines(&[(1, "command")]));
        world.write("binary", b"c\0d");
        world.write("removed", lines(&[(1, "command")]));
    });
    world.write("clean", lines(&[(1, "command"), (7, "person")]));
    world.write("same", lines(&[(1, "person")]));
    world.write("only-person", lines(&[(7, "person")]));
    world.write("binary", b"e\0f");
    fs::remove_file(world.path("removed")).unwrap();
    fs::set_permissions(world.path("clean"), fs::Permissions::from_mode(0o640)).unwrap();
    world.open(&id)
}

#[test]
fn texts_are_merged_and_what_does_not_merge_is_kept() {
    let world = World::new();
    let mut session = to_merge(&world);
    let edited = world.tree();
    let choice = with(Conflicts::Merge { markers: false });
    let merges: Vec<Merge> = [("clean", true), ("only-person", true), ("same", false)]
        .map(|(name, clean)| Merge { path: world.path(name), clean })
        .into();
    let plan = session.plan(&choice).unwrap();
    assert_eq!(plan.merges, merges);
    assert_eq!(world.tree(), edited);

    let done = session.restore(&choice).unwrap();
    assert_eq!(done.merged, merges);
    assert_eq!(kept(&world, &done), ["binary", "removed", "same"]);
    assert_eq!(world.read("clean"), lines(&[(7, "person")]));
    assert_eq!(fs::metadata(world.path("clean")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(world.read("only-person"), lines(&[(7, "person")]));
    assert_eq!(world.read("same"), lines(&[(1, "person")]));

    // It holds what the person wrote, so it is still theirs.
    let again = session.restore(&RestoreChoice::everything()).unwrap();
    assert!(kept(&world, &again).contains(&"clean".to_owned()));
    let plan = session.plan_undo(None).unwrap();
    assert_eq!(names(&world, plan.changes.to_vec().iter().map(|change| &change.path)), ["clean"]);
    assert!(plan.kept.is_empty(), "{plan:?}");
    let undone = session.undo(None).unwrap();
    assert!(undone.kept.is_empty(), "{undone:?}");
    assert_eq!(world.tree(), edited);
    session.undo(undone.undo.as_deref()).unwrap();
    assert_eq!(world.read("clean"), lines(&[(7, "person")]));
}

#[test]
fn markers_are_written_only_with_consent() {
    let world = World::new();
    let mut session = to_merge(&world);
    let edited = world.tree();
    let done = session.restore(&with(Conflicts::Merge { markers: true })).unwrap();
    assert_eq!(kept(&world, &done), ["binary", "removed"]);
    let text = world.read("same");
    let conflict =
        "<<<<<<< now\nperson\n||||||| what the session left\ncommand\n=======\ntwo\n>>>>>>> snapshot 0\n";
    assert!(text.contains(conflict), "{text}");
    session.undo(None).unwrap();
    assert_eq!(world.tree(), edited);
}

#[test]
fn git_is_restored_whole_or_kept_whole() {
    let world = World::new();
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    world.write(".git/refs/heads/main", "1111\n");
    world.write("file", "at first");
    let before = world.tree();
    let id = world.session(1, || {
        world.write(".git/refs/heads/main", "2222\n");
        world.write(".git/hooks/pre-commit", "#!/bin/sh\n");
        world.write("file", "by the command");
    });
    world.write(".git/HEAD", "ref: refs/heads/other\n");
    let edited = world.tree();
    let mut session = world.open(&id);
    let merge = with(Conflicts::Merge { markers: true });
    for choice in [RestoreChoice::everything(), merge] {
        let done = session.restore(&choice).unwrap();
        assert_eq!(kept(&world, &done), [".git"]);
        assert_eq!(world.read("file"), "at first");
        assert_eq!(world.read(".git/refs/heads/main"), "2222\n");
        assert!(world.path(".git/hooks/pre-commit").exists());
        session.undo(None).unwrap();
        assert_eq!(world.tree(), edited);
    }
    session.restore(&with(Conflicts::Force)).unwrap();
    assert_eq!(world.tree(), before);
    session.undo(None).unwrap();
    assert_eq!(world.tree(), edited);
}

/// Three hunks: lines 1, 12 and 23 of 25.
fn long(replaced: &[(usize, &str)]) -> String {
    let line = |at: usize| {
        let new = replaced.iter().find(|(line, _)| *line == at);
        new.map_or_else(|| format!("line {at}"), |(_, text)| (*text).to_owned()) + "\n"
    };
    (0..25).map(line).collect()
}

fn item(session: &RollbackSession, name: &str) -> Item {
    let changes = session.changes(&0.into(), &session.last().unwrap()).unwrap();
    changes.items.into_iter().find(|item| item.path.ends_with(name)).unwrap()
}

#[test]
fn hunks_are_taken_back_one_by_one() {
    let world = World::new();
    world.write("text", long(&[]));
    world.write("other", "at first");
    let before = world.tree();
    let all = [(1, "A"), (12, "B"), (23, "C")];
    let id = world.session(1, || {
        world.write("text", long(&all));
        world.write("other", "by the command");
    });
    let after = world.tree();
    let mut session = world.open(&id);
    let text = item(&session, "text");
    let hunk = |hunk: usize| RestoreChoice {
        hunks: vec![(text.clone(), vec![hunk])],
        ..RestoreChoice::everything()
    };

    let plan = session.plan(&hunk(1)).unwrap();
    assert_eq!(names(&world, plan.changes.to_vec().iter().map(|change| &change.path)), ["text"]);
    assert_eq!(world.tree(), after);
    let done = session.restore(&hunk(1)).unwrap();
    assert!(kept(&world, &done).is_empty());
    assert_eq!(world.read("text"), long(&[all[0], all[2]]));
    assert_eq!(world.read("other"), "by the command", "only the hunk was chosen");

    // One more, of what we wrote ourselves; and then the whole file, which only the session changed.
    let done = session.restore(&hunk(0)).unwrap();
    assert!(kept(&world, &done).is_empty());
    assert_eq!(world.read("text"), long(&[all[2]]));
    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert!(kept(&world, &done).is_empty());
    assert_eq!(world.tree(), before);

    for expected in [long(&[all[2]]), long(&[all[0], all[2]]), long(&all)] {
        let done = session.undo(None).unwrap();
        assert!(kept(&world, &done).is_empty());
        assert_eq!(world.read("text"), expected);
    }
    assert_eq!(world.tree(), after);
}

#[test]
fn hunks_of_a_file_that_was_changed_since() {
    let world = World::new();
    world.write("text", long(&[]));
    let all = [(1, "A"), (12, "B"), (23, "C")];
    let id = world.session(1, || world.write("text", long(&all)));
    let mine = [all[0], all[1], (18, "mine"), all[2]];
    world.write("text", long(&mine));
    let edited = world.tree();
    let mut session = world.open(&id);
    let hunks = vec![(item(&session, "text"), vec![1])];
    let with = |conflicts| RestoreChoice { hunks: hunks.clone(), conflicts, ..RestoreChoice::everything() };

    let done = session.restore(&with(Conflicts::Keep)).unwrap();
    assert_eq!((kept(&world, &done), done.undo), (vec!["text".to_owned()], None));
    assert_eq!(world.tree(), edited);

    let done = session.restore(&with(Conflicts::Merge { markers: false })).unwrap();
    assert!(kept(&world, &done).is_empty());
    assert_eq!(world.read("text"), long(&[all[0], (18, "mine"), all[2]]));
    session.undo(None).unwrap();
    assert_eq!(world.tree(), edited);

    session.restore(&with(Conflicts::Force)).unwrap();
    assert_eq!(world.read("text"), long(&[all[0], all[2]]));
    session.undo(None).unwrap();
    assert_eq!(world.tree(), edited);
}
