//! What is marked goes back, and nothing else.

use super::stage::{changed, find, picture, restore, review, shell};
use nono_testkit::look::read;

#[test]
fn a_file() {
    let (world, _) = changed();
    let screen = review(&world, 80, 24);
    find(&screen, "a.rs", "│src/a.rs");
    screen.key("Space");
    screen.wait_for("1 marked");
    let after = picture(&world);
    let undo = restore(&screen);
    assert_eq!(read(&world, "work/src/a.rs"), "fn a() {}\n");
    assert_eq!(read(&world, "work/src/new.rs"), "new\n");
    assert!(read(&world, "work/long.txt").contains("line three"));
    shell(&world, &format!("nono rollback undo {undo} --yes"));
    assert_eq!(picture(&world), after);
}

#[test]
fn a_directory() {
    let (world, _) = changed();
    let screen = review(&world, 80, 24);
    find(&screen, "src/", "▾ src/");
    screen.key("Space");
    screen.wait_for("3 marked");
    restore(&screen);
    assert_eq!(read(&world, "work/src/a.rs"), "fn a() {}\n");
    assert_eq!(read(&world, "work/src/deep/gone.rs"), "fn gone() {}\n");
    assert!(!world.path("work/src/new.rs").exists());
    assert!(world.path("work/docs/after.md").exists());
}

#[test]
fn a_rename() {
    let (world, _) = changed();
    let screen = review(&world, 80, 24);
    find(&screen, "after.md", "renamed from docs/before.md");
    screen.key("Space");
    screen.wait_for("1 marked");
    restore(&screen);
    assert!(world.path("work/docs/before.md").exists());
    assert!(!world.path("work/docs/after.md").exists());
}

#[test]
fn a_hunk() {
    let (world, _) = changed();
    let screen = review(&world, 80, 24);
    find(&screen, "long.txt", "│long.txt");
    screen.wait_for("+line eighteen");
    screen.key("Tab");
    screen.wait_for("mark hunk");
    screen.type_text("]]");
    screen.key("Space");
    screen.wait_for("1 hunk marked");
    screen.wait_for("[x] @@ -15,6 +15,6 @@");
    let after = picture(&world);
    let undo = restore(&screen);
    let text = read(&world, "work/long.txt");
    assert!(text.contains("line three") && text.contains("line 18\n"), "{text}");
    assert_eq!(read(&world, "work/src/a.rs"), "changed\n");
    shell(&world, &format!("nono rollback undo {undo} --yes"));
    assert_eq!(picture(&world), after);
}

#[test]
fn everything() {
    let (world, before) = changed();
    let screen = review(&world, 80, 24);
    screen.type_text("a");
    screen.wait_for("8 marked");
    let after = picture(&world);
    assert_ne!(after, before);
    let undo = restore(&screen);
    assert_eq!(picture(&world), before);
    shell(&world, &format!("nono rollback undo {undo} --yes"));
    assert_eq!(picture(&world), after);
}

#[test]
fn a_hunk_of_one_file_and_all_of_the_others() {
    let (world, _) = changed();
    let screen = review(&world, 80, 24);
    screen.type_text("a");
    screen.wait_for("8 marked");
    find(&screen, "long.txt", "│long.txt");
    screen.key("Tab");
    screen.wait_for("mark hunk");
    // Take the first hunk out again.
    screen.type_text("] ");
    screen.wait_for("7 marked");
    restore(&screen);
    let text = read(&world, "work/long.txt");
    assert!(text.contains("line three") && text.contains("line 18\n"), "{text}");
    assert_eq!(read(&world, "work/src/a.rs"), "fn a() {}\n");
    assert!(!world.path("work/src/new.rs").exists());
}

/// Later changes of others are kept, and reported before and after.
#[test]
fn a_later_edit_is_kept() {
    let (world, _) = changed();
    shell(&world, "echo mine > src/a.rs");
    let screen = review(&world, 80, 24);
    screen.type_text("ar");
    screen.wait_for("src/a.rs: changed later");
    screen.type_text("y");
    screen.wait_for("kept: src/a.rs: changed later");
    screen.type_text("q");
    assert_eq!(screen.prompt(), 1);
    assert_eq!(read(&world, "work/src/a.rs"), "mine\n");
    assert!(!world.path("work/src/new.rs").exists());
}
