//! Saving a file that is not granted, the ways programs do: through another file that is renamed to it, or in place.

use std::path::Path;

use super::world::World;
use super::{PROMPT, answer, secret, start, wait_for_question, world};
use nono_testkit::look::read;
use nono_testkit::screen::Screen;

/// Writes a program into the working directory.
fn program(world: &World, name: &str, text: &str) {
    world.file(&format!("work/{name}"), text, 0o755);
}

/// Saves `$1` through a temporary file with another name each time, as many times as `$2` says.
const ATOMIC: &str = "#!/usr/bin/python3
import os, sys, tempfile
for n in range(int(sys.argv[2])):
    handle, name = tempfile.mkstemp(prefix=os.path.basename(sys.argv[1]) + '.tmp.', dir=os.path.dirname(sys.argv[1]))
    try:
        with os.fdopen(handle, 'w') as file:
            file.write(f'saved {n}\\n')
        os.chmod(name, 0o4640)
        os.replace(name, sys.argv[1])
    except OSError as error:
        print('failed:', error)
        os.unlink(name)
";

/// What lies in the folder of the file.
fn names(world: &World) -> Vec<String> {
    let folder = world.path("other/notes");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_save_through_a_temporary_file_is_one_question_about_the_file() {
    let world = world();
    let screen = Screen::new(&world);
    program(&world, "save", ATOMIC);
    let path = secret(&world, "secret");
    start(&screen, &format!("./save {path} 1"));
    wait_for_question(&screen, &path);
    let text = screen.text();
    assert!(text.contains("WRITE") && text.contains("secret.tmp."), "{text}");
    answer(&screen, &path, "y");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    assert_eq!(screen.text().matches(PROMPT).count(), 1, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/secret"), "saved 0\n");
    assert_eq!(mode(Path::new(&path)), 0o640, "its permissions stay as they were");
    assert_eq!(names(&world), ["second", "secret"], "nothing is left behind");
}

#[test]
fn a_session_is_one_answer_for_all_saves_and_a_no_is_remembered() {
    let world = world();
    let screen = Screen::new(&world);
    program(&world, "save", ATOMIC);
    let path = secret(&world, "secret");
    start(&screen, &format!("./save {path} 5"));
    answer(&screen, &path, "s");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    assert_eq!(screen.text().matches(PROMPT).count(), 1, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/secret"), "saved 4\n");
    assert_eq!(names(&world), ["second", "secret"]);
    screen.clear();
    start(&screen, &format!("sh -c './save {path} 1; ./save {path} 1; ./save {path} 1'"));
    answer(&screen, &path, "n");
    assert_eq!(screen.prompt(), 1);
    let text = screen.text();
    assert!(text.contains("by python3") && text.contains("(3 times): denied by you"), "{text}");
    assert_eq!(read(&world, "other/notes/secret"), "saved 4\n");
    assert_eq!(names(&world), ["second", "secret"]);
}

#[test]
fn an_answer_for_a_file_opens_no_other_name_in_its_folder() {
    let world = world();
    let screen = Screen::new(&world);
    program(
        &world,
        "attack",
        "#!/usr/bin/python3
import os, sys
path, folder = sys.argv[1], os.path.dirname(sys.argv[1])
def draft():
    return os.open(path + '.tmp.x', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
os.write(draft(), b'first')
os.replace(path + '.tmp.x', path)
for work in (
    lambda: os.link(path + '.tmp.x', folder + '/planted'),
    lambda: os.symlink('/etc/passwd', folder + '/planted'),
    lambda: os.mkdir(folder + '/planted'),
    lambda: os.rename(path, folder + '/planted'),
    lambda: os.unlink(folder + '/second'),
    lambda: os.chmod(folder + '/second', 0o777),
    lambda: os.replace(path + '.tmp.x', folder + '/dir'),
):
    fd = draft()
    os.write(fd, b'planted')
    try:
        work()
        print('ESCAPED')
    except OSError as error:
        print('refused')
    os.close(fd)
    os.unlink(path + '.tmp.x')
draft()
",
    );
    std::fs::create_dir(world.path("other/notes/dir")).unwrap();
    let path = secret(&world, "secret");
    let before = mode(&world.path("other/notes/second"));
    start(&screen, &format!("./attack {path}"));
    answer(&screen, &path, "s");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    let text = screen.text();
    assert_eq!((text.matches("refused\n").count(), text.matches("ESCAPED").count()), (7, 0), "{text}");
    assert!(text.contains("secret.tmp.x"), "what was never put in place is told: {text}");
    assert_eq!(names(&world), ["dir", "second", "secret"]);
    assert_eq!(read(&world, "other/notes/secret"), "first");
    assert_eq!(mode(&world.path("other/notes/second")), before);
}

#[test]
fn a_rename_to_another_file_is_another_question() {
    let world = world();
    let screen = Screen::new(&world);
    program(
        &world,
        "mix",
        "#!/usr/bin/python3
import os, sys
path, other = sys.argv[1:]
with open(path + '.tmp', 'w') as file:
    file.write('mixed')
try:
    os.replace(path + '.tmp', other)
except OSError as error:
    print('refused:', error.strerror)
",
    );
    let (path, other) = (secret(&world, "secret"), secret(&world, "second"));
    for (key, kept) in [("n", "it says more\n"), ("y", "mixed")] {
        screen.clear();
        start(&screen, &format!("./mix {path} {other}"));
        answer(&screen, &path, "y");
        answer(&screen, &other, key);
        assert_eq!(screen.prompt(), 0, "{}", screen.text());
        assert_eq!(read(&world, "other/notes/second"), kept);
        assert_eq!(read(&world, "other/notes/secret"), "it says hello\n");
        assert_eq!(names(&world), ["second", "secret"]);
    }
}

#[test]
fn a_file_that_is_not_there_yet_is_saved_through_another() {
    let world = world();
    let screen = Screen::new(&world);
    program(&world, "save", ATOMIC);
    let path = secret(&world, "fresh");
    start(&screen, &format!("./save {path} 1"));
    wait_for_question(&screen, &path);
    assert!(screen.text().contains("CREATE"), "{}", screen.text());
    answer(&screen, &path, "y");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/fresh"), "saved 0\n");
    assert_eq!(names(&world), ["fresh", "second", "secret"]);
}

#[test]
fn what_is_made_under_a_name_of_its_own_can_be_renamed_and_removed() {
    let world = world();
    let screen = Screen::new(&world);
    let (path, second) = (secret(&world, "secret"), secret(&world, "second"));
    // sed's name says nothing about the file, so both are asked about.
    start(&screen, &format!("sed -i s/hello/bye/ {path}"));
    answer(&screen, &path, "s");
    answer(&screen, &secret(&world, "sed"), "y");
    answer(&screen, &path, "y");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/secret"), "it says bye\n");
    assert_eq!(names(&world), ["second", "secret"]);
    screen.clear();
    start(&screen, &format!("sed -i s/more/less/ {second}"));
    answer(&screen, &second, "s");
    answer(&screen, &secret(&world, "sed"), "y");
    answer(&screen, &second, "n");
    assert_eq!(screen.prompt(), 4, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/second"), "it says more\n");
    assert_eq!(names(&world), ["second", "secret"], "what it made it removes");
}

#[test]
fn a_folder_that_was_allowed_takes_saves_too() {
    let world = world();
    let screen = Screen::new(&world);
    program(&world, "save", ATOMIC);
    let (path, second) = (secret(&world, "secret"), secret(&world, "second"));
    start(&screen, &format!("sh -c './save {path} 2; ./save {second} 2'"));
    answer(&screen, &path, "d");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    assert_eq!(screen.text().matches(PROMPT).count(), 1, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/secret"), "saved 1\n");
    assert_eq!(read(&world, "other/notes/second"), "saved 1\n");
    assert_eq!(names(&world), ["second", "secret"]);
}

#[test]
fn git_saves_its_configuration() {
    let world = world();
    let screen = Screen::new(&world);
    world.file("other/notes/config", "[user]\n\tname = a\n", 0o644);
    let path = secret(&world, "config");
    start(&screen, &format!("env HOME=/nowhere git config -f {path} user.name b"));
    answer(&screen, &path, "y");
    // Reading and writing are two things, and it reads twice.
    answer(&screen, &path, "s");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/config"), "[user]\n\tname = b\n");
    assert_eq!(names(&world), ["config", "second", "secret"]);
}

#[test]
fn what_was_there_before_a_save_comes_back_with_an_undo() {
    let world = world();
    let screen = Screen::new(&world);
    program(&world, "save", ATOMIC);
    let path = secret(&world, "secret");
    screen.start(&format!("nono run --ask --rollback --no-rollback-prompt --allow-cwd -- ./save {path} 1"));
    answer(&screen, &path, "y");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/secret"), "saved 0\n");
    assert_eq!(screen.run("nono undo --yes"), 0, "{}", screen.text());
    assert_eq!(read(&world, "other/notes/secret"), "it says hello\n");
}
