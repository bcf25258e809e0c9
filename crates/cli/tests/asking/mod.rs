//! `nono run --ask` on a real terminal: a program wants more than it was granted, and the person answers.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod answers;
mod hostile;
mod modes;
mod parser;
mod raw;
mod saves;
mod screens;
mod switched;

use crate::world;

use nono_testkit::look::read;
use nono_testkit::screen::Screen;
use world::World;

const PROMPT: &str = "Allow? [y/N]";

/// Two files that are not granted, in a folder of their own.
fn world() -> World {
    let world = World::new();
    world.file("other/notes/secret", "it says hello\n", 0o644);
    world.file("other/notes/second", "it says more\n", 0o644);
    world
}

/// The file's path as the command line has it.
fn secret(world: &World, name: &str) -> String {
    world.path(&format!("other/notes/{name}")).display().to_string()
}

/// Starts a command that may ask.
fn start(screen: &Screen<'_>, command: &str) {
    screen.start(&format!("nono run --ask --allow-cwd -- {command}"));
}

fn settings(world: &World, screen: &Screen<'_>) -> String {
    assert_eq!(screen.run("stty -a > settings"), 0);
    read(world, "work/settings")
}

/// The question about this file stands there and waits.
fn wait_for_question(screen: &Screen<'_>, path: &str) {
    screen.look("a question", |text| {
        let (_, rest) = text.rsplit_once("wants to ")?;
        let waits = rest.contains(PROMPT) && rest.trim_end().ends_with("? details)");
        (rest.replace("\n[nono]   ", "").contains(path) && waits).then_some(())
    });
}

/// Answers it, and waits until that was heard.
fn answer(screen: &Screen<'_>, path: &str, key: &str) {
    // Every answer begins with one of these letters.
    let answered = |text: &str| ["y", "n"].map(|word| text.matches(&format!("? details) {word}")).count());
    wait_for_question(screen, path);
    let before = answered(&screen.text());
    screen.key(key);
    screen.look("the answer", |text| (answered(text) != before).then_some(()));
}
