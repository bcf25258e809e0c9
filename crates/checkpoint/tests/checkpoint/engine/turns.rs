//! Turns: what each did, and taking one back while later ones stay.

use std::path::PathBuf;

use nono_checkpoint::history::TurnLink;
use nono_checkpoint::{ChangedBy, CheckpointChoice, Conflicts, Origin, ProjectOutcome, WorkedTurn};

use crate::common::{World, origin};

fn turns(world: &World) -> Vec<WorkedTurn> {
    world.manager().turns(&world.tree).unwrap()
}

fn find(world: &World, turn: &str) -> TurnLink {
    world.manager().find_turn(&world.tree, turn).unwrap()
}

fn undo(world: &World, turn: &str) -> ProjectOutcome {
    undo_with(world, turn, &CheckpointChoice::default())
}

fn undo_with(world: &World, turn: &str, choice: &CheckpointChoice) -> ProjectOutcome {
    let link = find(world, turn);
    let plan = world.manager().plan_turn(&world.tree, &link, choice).unwrap();
    let outcome = world.manager().undo_turn(&world.tree, &link, choice).unwrap();
    assert!(outcome.failed.is_empty(), "{outcome:?}");
    let paths = |kept: &[nono_snapshot::restore::Skipped]| {
        kept.iter().map(|kept| kept.path.clone()).collect::<Vec<PathBuf>>()
    };
    assert_eq!(paths(&plan.kept), paths(&outcome.kept), "the plan said something else");
    outcome
}

fn kept(world: &World, outcome: &ProjectOutcome) -> Vec<String> {
    let below = |path: &PathBuf| path.strip_prefix(&world.tree).unwrap().to_string_lossy().into_owned();
    outcome.kept.iter().map(|kept| below(&kept.path)).collect()
}

fn files(world: &World, turn: &WorkedTurn) -> Vec<String> {
    let below = |path: &PathBuf| path.strip_prefix(&world.tree).unwrap().to_string_lossy().into_owned();
    turn.files.iter().map(|(path, _)| below(path)).collect()
}

const POEM: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

#[test]
fn a_turn_has_its_prompt_its_calls_and_its_files_alone() {
    let world = World::new();
    world.write("a", "1\n");
    world.write("b", "1\n");
    let said = |turn: &str, call: &str, prompt: &str| Origin {
        prompt: Some(prompt.to_owned()),
        ..origin("s1", turn, call)
    };
    let call = |origin: Origin, reason: &str, work: &dyn Fn()| {
        world.manager().ensure_checkpoint(&world.tree, reason, &origin);
        work();
        world.manager().agent_left(&world.tree, &origin).unwrap();
    };
    call(said("t1", "1", "fix the first"), "before edit", &|| world.write("a", "2\n"));
    call(said("t1", "2", "fix the first"), "before terminal: sed", &|| world.write("a", "2\n3\n"));
    // A person, between two turns.
    world.write("mine", "x\n");
    call(said("t2", "1", "then the second"), "before edit", &|| world.write("b", "2\n"));
    let all = turns(&world);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].link.prompt.as_deref(), Some("then the second"));
    assert_eq!(files(&world, &all[0]), ["b"], "what a person did is not the turn's");
    assert_eq!(files(&world, &all[1]), ["a"]);
    let stats = all[1].stats.unwrap();
    assert_eq!((stats.files, stats.insertions, stats.deletions), (1, 2, 1));
    let reasons: Vec<_> = all[1].calls.iter().map(|call| call.reason.as_deref().unwrap()).collect();
    assert_eq!(reasons, ["before edit", "before terminal: sed"]);
    assert!(!all[0].link.undone && !all[1].link.undone);
}

#[test]
fn one_turn_is_taken_back_and_later_ones_stay() {
    let world = World::new();
    world.write("a", "1\n");
    world.write("gone", "x\n");
    world.call("t1", || {
        world.write("a", "2\n");
        world.write("new/deep/file", "x\n");
        std::fs::remove_file(world.path("gone")).unwrap();
    });
    world.call("t2", || world.write("b", "later\n"));
    world.write("mine", "x\n");
    let outcome = undo(&world, "t1");
    assert!(outcome.is_whole(), "{outcome:?}");
    assert_eq!(outcome.turns_undone, ["t1"]);
    assert_eq!(world.read("a"), "1\n");
    assert_eq!(world.read("gone"), "x\n");
    assert!(!world.exists("new"), "what it made is gone, its folders too");
    assert_eq!((world.read("b"), world.read("mine")), ("later\n".to_owned(), "x\n".to_owned()));
    assert!(find(&world, "t1").undone && !find(&world, "t2").undone);
    // And the way back from there.
    world.manager().undo(&world.tree).unwrap();
    assert_eq!(
        (world.read("a"), world.exists("gone"), world.exists("new/deep/file")),
        ("2\n".to_owned(), false, true)
    );
    assert!(!find(&world, "t1").undone);
}

#[test]
fn later_work_in_the_same_file_is_merged_or_kept() {
    let world = World::new();
    world.write("poem", POEM);
    world.write("line", "1\n");
    world.call("t1", || {
        world.write("poem", POEM.replace("two", "TWO"));
        world.write("line", "2\n");
    });
    world.call("t2", || {
        world.write("poem", POEM.replace("two", "TWO").replace("nine", "NINE"));
        world.write("line", "3\n");
    });
    let outcome = undo(&world, "t1");
    assert_eq!(world.read("poem"), POEM.replace("nine", "NINE"));
    assert_eq!(
        (world.read("line").as_str(), kept(&world, &outcome).as_slice()),
        ("3\n", &["line".to_owned()][..])
    );
    // By force the file is as it was before the turn, and what came later is gone with it.
    let force = CheckpointChoice { conflicts: Conflicts::Force, ..CheckpointChoice::default() };
    undo_with(&world, "t1", &force);
    assert_eq!(world.read("line"), "1\n");
}

#[test]
fn what_people_did_between_the_calls_of_a_turn_stays() {
    let world = World::new();
    world.write("a", "1\n");
    world.write("mine", "1\n");
    world.write("both", "1\n");
    world.call("t1", || {
        world.write("a", "2\n");
        world.write("both", "2\n");
    });
    world.write("mine", "2\n");
    world.write("both", "3\n");
    world.call("t1", || {
        world.write("a", "3\n");
        world.write("both", "4\n");
    });
    assert_eq!(files(&world, &turns(&world)[0]), ["a", "both"]);
    let outcome = undo(&world, "t1");
    assert_eq!((world.read("a").as_str(), world.read("mine").as_str()), ("1\n", "2\n"));
    assert_eq!(
        (world.read("both").as_str(), kept(&world, &outcome).as_slice()),
        ("4\n", &["both".to_owned()][..])
    );
}

#[test]
fn two_conversations_at_once_do_not_take_each_others_work() {
    let world = World::new();
    world.write("a", "1\n");
    world.write("b", "1\n");
    let call = |session: &str, name: &str, text: &str| {
        let origin = origin(session, session, "c");
        world.manager().ensure_checkpoint(&world.tree, "before edit", &origin);
        world.write(name, text);
        world.manager().agent_left(&world.tree, &origin).unwrap();
    };
    call("one", "a", "2\n");
    call("two", "b", "2\n");
    call("one", "a", "3\n");
    call("two", "b", "3\n");
    assert_eq!(turns(&world).iter().map(|turn| files(&world, turn)).collect::<Vec<_>>(), [["b"], ["a"]]);
    undo(&world, "one");
    assert_eq!((world.read("a").as_str(), world.read("b").as_str()), ("1\n", "3\n"));
}

#[test]
fn a_part_of_a_turn_is_taken_back() {
    let world = World::new();
    world.write("a", "1\n");
    world.write("dir/b", "1\n");
    world.call("t1", || {
        world.write("a", "2\n");
        world.write("dir/b", "2\n");
    });
    undo_with(
        &world,
        "t1",
        &CheckpointChoice { paths: vec![world.path("dir")], ..CheckpointChoice::default() },
    );
    assert_eq!((world.read("a").as_str(), world.read("dir/b").as_str()), ("2\n", "1\n"));
    assert!(!find(&world, "t1").undone, "not all of it is");
}

#[test]
fn what_a_turn_did_is_known_after_many_more() {
    let world = World::new();
    world.write("a", "0\n");
    for turn in 0..13 {
        for call in 0..4 {
            let origin = origin("s1", &format!("t{turn}"), &format!("{call}"));
            world.manager().ensure_checkpoint(&world.tree, "before edit", &origin);
            world.write(&format!("file-{turn}"), format!("{call}\n"));
            world.manager().agent_left(&world.tree, &origin).unwrap();
        }
    }
    undo(&world, "t1");
    assert!(!world.exists("file-1") && world.exists("file-0") && world.exists("file-12"));
    let all = turns(&world);
    assert_eq!(all.len(), 13);
    assert!(
        all.iter().all(|turn| turn.stats.is_some_and(|stats| stats.files == 1) && turn.calls.len() == 4),
        "{all:?}"
    );
    // The states in the middle of turns are not kept: about three of each turn, not one of each call.
    let record = nono_snapshot::session::Session::new(project(&world)).record().unwrap().unwrap();
    assert!(record.snapshots.len() < 13 * 3 + 32, "{}", record.snapshots.len());
}

fn project(world: &World) -> PathBuf {
    let projects = std::fs::read_dir(world.host.state_dir.join("projects")).unwrap();
    projects.map(|entry| entry.unwrap().path()).find(|path| path.join("history.json").exists()).unwrap()
}

#[test]
fn turns_are_named_by_number_id_and_beginning() {
    let world = World::new();
    world.write("a", "1\n");
    world.call("0123abcd-1", || world.write("a", "2\n"));
    world.call("0123efgh-2", || world.write("a", "3\n"));
    assert_eq!(find(&world, "1").turn, "0123efgh-2");
    assert_eq!(find(&world, "2").turn, "0123abcd-1");
    assert_eq!(find(&world, "0123a").turn, "0123abcd-1");
    let manager = world.manager();
    for none in ["3", "0", "", "x", "0123"] {
        assert!(manager.find_turn(&world.tree, none).is_err(), "{none}");
    }
}

#[test]
fn a_turn_that_was_taken_back_leaves_the_other_points() {
    let world = World::new();
    world.write("a", "1\n");
    world.write("b", "1\n");
    world.call("t1", || world.write("a", "2\n"));
    world.call("t2", || world.write("b", "2\n"));
    undo(&world, "t1");
    let undoable = world.manager().undoable(&world.tree, &[]).unwrap().unwrap();
    assert_eq!(undoable.checkpoints.len(), 2, "{undoable:?}");
    assert!(undoable.last.is_some(), "it can be taken back");
    // To the first checkpoint: everything, as ever.
    world.restore("2");
    assert_eq!((world.read("a").as_str(), world.read("b").as_str()), ("1\n", "1\n"));
}

#[test]
fn a_call_whose_end_was_never_told_is_the_turns() {
    let world = World::new();
    world.write("a", "1\n");
    world.write("b", "1\n");
    world.manager().ensure_checkpoint(&world.tree, "before terminal: x", &origin("s1", "t1", "1"));
    world.write("a", "2\n");
    // Nothing says that it ended; the next one of another turn begins.
    world.call("t2", || world.write("b", "2\n"));
    assert_eq!(turns(&world).iter().map(|turn| files(&world, turn)).collect::<Vec<_>>(), [["b"], ["a"]]);
    undo(&world, "t1");
    assert_eq!((world.read("a").as_str(), world.read("b").as_str()), ("1\n", "2\n"));
}

#[test]
fn what_others_put_in_a_directory_that_a_turn_made_stays() {
    let world = World::new();
    world.write("a", "1\n");
    world.call("t1", || {
        world.write("made/one", "1\n");
        world.write("made/sub/two", "1\n");
    });
    world.call("t2", || world.write("made/later", "1\n"));
    world.write("made/mine", "1\n");
    let outcome = undo(&world, "t1");
    assert_eq!(kept(&world, &outcome), [] as [&str; 0]);
    assert!(!world.exists("made/one") && !world.exists("made/sub"));
    assert!(world.exists("made/later") && world.exists("made/mine"));
}

#[test]
fn a_file_that_two_turns_share_stays_theirs_after_one_was_taken_back() {
    let world = World::new();
    world.write("poem", POEM);
    world.call("t1", || world.write("poem", POEM.replace("two", "TWO")));
    world.call("t2", || world.write("poem", POEM.replace("two", "TWO").replace("nine", "NINE")));
    undo(&world, "t1");
    let outcome = world.restore("2");
    assert_eq!((outcome.kept.len(), world.read("poem").as_str()), (0, POEM));
    // Both ways back, and once more.
    world.manager().undo(&world.tree).unwrap();
    world.manager().undo(&world.tree).unwrap();
    assert_eq!(world.read("poem"), POEM.replace("two", "TWO").replace("nine", "NINE"));
    let outcome = world.restore("2");
    assert_eq!((outcome.kept.len(), world.read("poem").as_str()), (0, POEM));
    // With a person's lines in it, it is theirs as before.
    world.manager().undo(&world.tree).unwrap();
    world.write("poem", world.read("poem").replace("six", "SIX"));
    undo(&world, "t1");
    assert_eq!(world.read("poem"), POEM.replace("nine", "NINE").replace("six", "SIX"));
    let outcome = world.restore("2");
    assert_eq!(kept(&world, &outcome), ["poem"]);
}

#[test]
fn a_call_that_changed_more_than_a_line_names_is_told_for_each_file() {
    let world = World::new();
    world.write("a", "1\n");
    world.call("t1", || {
        for number in 0..1100 {
            world.write(&format!("many/{number:04}"), "x\n");
        }
    });
    world.call("t1", || world.write("a", "2\n"));
    world.call("t2", || world.write("a", "3\n"));
    for name in ["many/0001", "many/1099"] {
        let versions = world.manager().versions(&world.path(name)).unwrap();
        let by: Vec<_> = versions.iter().map(|version| &version.by).collect();
        assert!(matches!(by.as_slice(), [ChangedBy::Turn { .. }]), "{name}: {by:?}");
    }
    undo(&world, "t1");
    assert!(!world.exists("many"));
}

#[test]
fn half_a_line_takes_no_other_with_it() {
    let world = World::new();
    world.write("a", "1\n");
    world.call("t1", || world.write("a", "2\n"));
    let file = project(&world).join("work.ndjson");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    world.call("t2", || world.write("b", "1\n"));
    let all = turns(&world);
    assert_eq!((files(&world, &all[0]), all[1].calls.len()), (vec!["b".to_owned()], 0));
}
