//! A tree, a session that changed it, and the review of that session on a screen.

use std::fs;
use std::process::{Output, Stdio};

use super::world::World;
use nono_testkit::look::{eventually, read};
use nono_testkit::screen::Screen;

/// Twenty numbered lines.
fn long() -> String {
    let lines: Vec<_> = (1..=20).map(|line| format!("line {line}")).collect();
    lines.join("\n") + "\n"
}

/// What the command of the session does: every kind of change, in two places of one file.
pub(crate) const CHANGE: &str = "sed -i -e 's/^line 3$/line three/' -e 's/^line 18$/line eighteen/' long.txt
echo changed > src/a.rs; echo new > src/new.rs; rm src/deep/gone.rs
mv docs/before.md docs/after.md; chmod 700 tool.sh
mkdir -p .git/hooks; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
printf 'a\\0b' > data.bin";

pub(crate) fn world() -> World {
    let world = World::new();
    let files = [
        ("work/long.txt", long()),
        ("work/src/a.rs", "fn a() {}\n".to_owned()),
        ("work/src/b.rs", "fn b() {}\n".to_owned()),
        ("work/src/deep/gone.rs", "fn gone() {}\n".to_owned()),
        ("work/docs/before.md", long()),
        ("work/tool.sh", "#!/bin/sh\n".to_owned()),
    ];
    for (path, text) in files {
        world.file(path, &text, 0o644);
    }
    world
}

/// A line of shell in the tree, as the user; what it says.
pub(crate) fn shell(world: &World, line: &str) -> String {
    let output = output(world, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn output(world: &World, line: &str) -> Output {
    let mut command = world.command("bash");
    command.args(["-c", line]).stdin(Stdio::null()).output().expect("bash")
}

/// Everything about the tree that a restore brings back: kind, mode, time, size, link and content.
pub(crate) fn picture(world: &World) -> String {
    shell(
        world,
        r"find . -printf '%p %y %m %T@ %l\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum",
    )
}

/// A world where a session has run: the tree before it, and the world.
pub(crate) fn changed() -> (World, String) {
    let world = world();
    let before = picture(&world);
    run(&world, CHANGE);
    (world, before)
}

/// A tracked run without a terminal, so without a review.
pub(crate) fn run(world: &World, script: &str) {
    let mut command = world.command("nono");
    command.args(["run", "--rollback", "--allow", ".", "--", "bash", "-ec", script]);
    let output = command.stdin(Stdio::null()).output().expect("nono");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The review of the last session, opened.
pub(crate) fn review(world: &World, width: u16, height: u16) -> Screen<'_> {
    let screen = Screen::new(world);
    size(&screen, width, height);
    screen.start("nono rollback review last");
    screen.wait_for("? help");
    screen
}

pub(crate) fn size(screen: &Screen<'_>, width: u16, height: u16) {
    screen.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
}

/// Go to a name and wait until it is the one that is looked at.
pub(crate) fn find(screen: &Screen<'_>, name: &str, shown: &str) {
    screen.enter(&format!("/{name}"));
    screen.wait_for(shown);
}

/// See the plan, say yes, leave; returns the id that undoes it.
pub(crate) fn restore(screen: &Screen<'_>) -> String {
    screen.key("r");
    screen.wait_for("y restore");
    screen.key("y");
    screen.wait_for("q leave");
    screen.key("q");
    assert_eq!(screen.prompt(), 0);
    undo_id(screen)
}

/// From the line that was left on the ordinary screen.
pub(crate) fn undo_id(screen: &Screen<'_>) -> String {
    let start = "[nono] undo this with: nono rollback undo ";
    screen.look(start, |text| {
        text.lines().find_map(|line| Some(line.trim_end().strip_prefix(start)?.to_owned()))
    })
}

/// What tmux knows about the terminal.
pub(crate) fn fact(screen: &Screen<'_>, name: &str) -> String {
    screen.tmux(&["display-message", "-p", &format!("#{{{name}}}")]).trim().to_owned()
}

/// The ordinary screen, a cursor, and the settings from before.
pub(crate) fn given_back(screen: &Screen<'_>, world: &World, settings: &str) {
    eventually(|| "still full screen".to_owned(), || (fact(screen, "alternate_on") == "0").then_some(()));
    assert_eq!(fact(screen, "cursor_flag"), "1");
    assert_eq!(self::settings(screen, world), settings);
}

pub(crate) fn settings(screen: &Screen<'_>, world: &World) -> String {
    assert_eq!(screen.run("stty -a > ../tmp/settings"), 0);
    read(world, "tmp/settings")
}

/// The process that shows the review.
pub(crate) fn pid_of_nono(world: &World) -> i32 {
    let binary = world.path("bin/nono");
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let found = pids.filter_map(|entry| {
        let exe = fs::read_link(entry.path().join("exe")).ok()?;
        (exe == binary).then(|| entry.file_name().to_str()?.parse().ok())?
    });
    found.max().expect("the review runs")
}
