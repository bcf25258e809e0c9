//! The plain path.

use nono_checkpoint::{CheckpointChoice, CheckpointTarget, Config, Ensured, Origin, Skip, Stats};

use crate::common::{World, origin, skipped, taken, text};

#[test]
fn taken_listed_compared_restored_undone() {
    let world = World::new();
    world.write("a", "one\n");
    let first = world.create();
    assert_eq!((first.snapshot, first.files, first.id.as_str().len()), (0, 1, 12));
    world.write("a", "one\ntwo\n");
    world.write("new", "x\n");
    let second = taken(world.manager().create(&world.path("a"), "by a file", &Origin::default()));
    world.write("a", "three\n");
    let list = world.manager().list(&world.tree).unwrap();
    let stats: Vec<_> = list.iter().map(|line| (line.id.clone(), line.stats.unwrap())).collect();
    let of = |files, insertions, deletions| Stats { files, insertions, deletions };
    assert_eq!(stats, [(second.id.clone(), of(1, 1, 2)), (first.id.clone(), of(2, 2, 0))]);
    let compared = world.manager().compare(&world.tree, &text("2")).unwrap();
    assert_eq!(compared.stats, of(2, 2, 1));
    assert_eq!(compared.manager.diff(&compared.from, &compared.to).unwrap(), compared.changes);
    compared.close().unwrap();
    let plan = world.manager().plan(&world.tree, &text("2"), &CheckpointChoice::default()).unwrap();
    assert_eq!((plan.changes.len(), plan.cannot_tell_conflicts), (2, true));
    let outcome = world.restore(first.id.short());
    assert_eq!((world.read("a").as_str(), world.exists("new")), ("one\n", false));
    assert_eq!(outcome.changes.len(), 2);
    let undone = world.manager().undo(&world.tree).unwrap();
    assert_eq!((world.read("a").as_str(), world.read("new").as_str()), ("three\n", "x\n"));
    assert_eq!((undone.changes.len(), undone.kept.len()), (2, 0));
    assert!(world.manager().undo(&world.tree).is_err());
    // Ids and numbers are what they were.
    let ids: Vec<_> = world.manager().list(&world.tree).unwrap().into_iter().map(|line| line.id).collect();
    assert_eq!(ids, [second.id, first.id]);
}

#[test]
fn once_in_a_turn_and_never_without_a_change() {
    let world = World::new();
    world.write("a", "1");
    let mut manager = world.manager();
    let none = Origin::default();
    manager.new_turn("t1");
    let first = taken(manager.ensure_checkpoint(&world.tree, "before write", &none));
    world.write("a", "2");
    assert_eq!(
        skipped(manager.ensure_checkpoint(&world.tree, "again", &none)),
        Skip::ThisTurn(first.id.clone())
    );
    manager.new_turn("t2");
    let second = taken(manager.ensure_checkpoint(&world.tree, "before write", &none));
    manager.new_turn("t3");
    let why = skipped(manager.ensure_checkpoint(&world.tree, "nothing new", &none));
    assert_eq!(why, Skip::Unchanged(second.id.clone()));
    world.write("a", "3");
    assert_eq!(
        skipped(manager.ensure_checkpoint(&world.tree, "again", &none)),
        Skip::ThisTurn(second.id.clone())
    );
    // The turn whose checkpoint was not needed leads to the one that shows the same.
    let found = manager.find(&world.tree, &CheckpointTarget::Turn("t3".to_owned())).unwrap();
    assert_eq!(found.id, second.id);
    let outcome = manager
        .restore(&world.tree, &CheckpointTarget::Turn("t2".to_owned()), &CheckpointChoice::default())
        .unwrap();
    assert_eq!(outcome.turns_undone, ["t2", "t3"]);
    assert_eq!(world.read("a"), "2");
}

#[test]
fn turns_of_conversations_are_remembered_between_processes() {
    let world = World::new();
    world.write("a", "1");
    let first = taken(world.manager().ensure_checkpoint(&world.tree, "r", &origin("s1", "1", "c1")));
    world.write("a", "2");
    let again = world.manager().ensure_checkpoint(&world.tree, "r", &origin("s1", "1", "c2"));
    assert_eq!(skipped(again), Skip::ThisTurn(first.id));
    // Another conversation counts its turns for itself, and so does one without an id.
    taken(world.manager().ensure_checkpoint(&world.tree, "r", &origin("s2", "1", "c1")));
    world.write("a", "3");
    let nameless = Origin { turn: Some("1".to_owned()), ..Origin::default() };
    taken(world.manager().ensure_checkpoint(&world.tree, "r", &nameless));
    world.write("a", "4");
    taken(world.manager().ensure_checkpoint(&world.tree, "r", &nameless));
}

#[test]
fn off_is_off_unless_a_checkpoint_is_requested() {
    let world = World::new();
    world.write("a", "1");
    let mut manager = nono_checkpoint::CheckpointManager::new(world.host.clone(), Config::default());
    assert_eq!(skipped(manager.ensure_checkpoint(&world.tree, "r", &Origin::default())), Skip::Disabled);
    assert!(!world.host.state_dir.exists());
    taken(manager.create(&world.tree, "r", &Origin::default()));
}

#[test]
fn a_failure_is_an_answer_that_stays_until_a_success() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    let few = || world.manager_with(&Config { max_files: 1, ..Config::default() });
    let mut manager = few();
    manager.new_turn("t1");
    let failed = manager.ensure_checkpoint(&world.tree, "r", &Origin::default());
    let Ensured::Failed { dir, error } = failed else { panic!("{failed:?}") };
    assert_eq!(dir, world.tree);
    assert!(error.to_string().contains("more than 1 files; raise max_files"), "{error}");
    let notes = nono_checkpoint::unprotected::without_project(&world.host);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(manager.list(&world.tree).is_err());
    // It did not use up the turn.
    std::fs::remove_file(world.path("b")).unwrap();
    taken(manager.ensure_checkpoint(&world.tree, "r", &Origin::default()));
    assert!(nono_checkpoint::unprotected::without_project(&world.host).is_empty());
    // The same where there is a project.
    world.write("b", "1");
    assert!(matches!(few().create(&world.tree, "r", &Origin::default()), Ensured::Failed { .. }));
    let folder = nono_checkpoint::project::folder_of(&world.host, &world.tree);
    assert!(nono_checkpoint::unprotected::of_project(&folder).is_some());
    world.create();
    assert!(nono_checkpoint::unprotected::of_project(&folder).is_none());
}
