//! The terminal approver on a pty, with a user simulated at the other end.

use std::fs::File;
use std::io::{PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nono::AccessMode;
use nono::approval::{
    ApprovalAnswer, ApprovalBackend, ApprovalError, Asker, Object, Question, Scope, Subject, Verdict, Waiting,
};
use nono::terminal_lease::Lease;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{OptionalActions, Winsize};
use rustix::{fs, pty, termios};

use super::keys::KeyPress;
use super::layout::Choices;
use super::{TerminalBackend, verdict};

/// The user's end of a terminal.
struct Person {
    master: File,
    seen: Vec<u8>,
}

/// Stand-in for the supervisor's side of a request.
struct Fake {
    lease: Mutex<Option<Lease>>,
    wanted: AtomicBool,
}

impl Waiting for Fake {
    fn still_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }

    fn terminal(&self) -> Option<Lease> {
        self.lease.lock().unwrap().take()
    }
}

fn terminal(rows: u16, columns: u16) -> (OwnedFd, File) {
    let master = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&master).unwrap();
    pty::unlockpt(&master).unwrap();
    let name = pty::ptsname(&master, vec![]).unwrap();
    let slave = fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut settings = termios::tcgetattr(&slave).unwrap();
    settings.make_raw();
    termios::tcsetattr(&slave, OptionalActions::Now, &settings).unwrap();
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    termios::tcsetwinsize(slave.as_fd(), size).unwrap();
    (master, File::from(slave))
}

impl Person {
    /// Reads until this text appears after what was read before.
    fn wait_for(&mut self, part: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&self.seen).into_owned();
            if let Some(at) = text.find(part) {
                let through = text[..at + part.len()].to_owned();
                self.seen = text.as_bytes()[at + part.len()..].to_vec();
                return through;
            }
            let n = self.master.read(&mut bytes).unwrap();
            self.seen.extend(&bytes[..n]);
        }
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses a key repeatedly until this text appears: a key counts only after a pause.
    fn press_until(&mut self, key: &str, part: &str) {
        let patience = Timespec { tv_sec: 0, tv_nsec: 400_000_000 };
        loop {
            self.press(key);
            if rustix::event::poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&patience)).unwrap()
                > 0
            {
                self.wait_for(part);
                return;
            }
        }
    }
}

struct Scene {
    rows: u16,
    columns: u16,
    full_screen: bool,
    last_key: Option<Instant>,
    withdrawn: Option<Instant>,
}

const PLAIN: Scene = Scene { rows: 24, columns: 80, full_screen: false, last_key: None, withdrawn: None };
const PROMPT: &str = "? details)";

/// Shows a prompt; `person` answers it.
fn ask(
    scene: &Scene,
    question: &Question,
    person: impl FnOnce(&mut Person, &Fake, &mut Option<PipeWriter>),
) -> Result<ApprovalAnswer, ApprovalError> {
    let (master, slave) = terminal(scene.rows, scene.columns);
    let (mut lease, end) = Lease::of(slave, scene.full_screen, scene.last_key).unwrap();
    lease.last_withdrawn = scene.withdrawn;
    let fake = Fake { lease: Mutex::new(Some(lease)), wanted: AtomicBool::new(true) };
    let mut at = Person { master: master.into(), seen: vec![] };
    thread::scope(|scope| {
        let answer = scope.spawn(|| TerminalBackend::default().decide(question, &fake));
        let mut end = Some(end);
        person(&mut at, &fake, &mut end);
        answer.join().unwrap()
    })
}

fn question(path: &str, access: AccessMode, object: Object) -> Question {
    let path = PathBuf::from(path);
    let folder = path.parent().map(Into::into);
    let subject = Subject::Access { path, written: None, access, object, folder };
    Question { id: 1, subject, asker: Asker { program: "cat".into(), pid: 4242 }, reason: None }
}

fn todo() -> Question {
    question("/home/u/notes/todo.txt", AccessMode::Read, Object::File)
}

/// The verdict after one key.
fn after(keys: &str) -> Verdict {
    let answer = ask(&PLAIN, &todo(), |person, _, _end| {
        person.wait_for(PROMPT);
        person.press(keys);
    });
    answer.unwrap().verdict
}

#[test]
fn each_key_means_what_it_says() {
    assert_eq!(after("y"), Verdict::Allow(Scope::Once));
    assert_eq!(after("s"), Verdict::Allow(Scope::Session));
    assert_eq!(after("d"), Verdict::Allow(Scope::Directory));
    assert_eq!(after("p"), Verdict::Allow(Scope::Saved));
    assert_eq!(after("v"), Verdict::Never);
    for key in ["n", "\r", "\n", "\x1b", "\x03", "\x04"] {
        assert_eq!(after(key), Verdict::Deny, "{key:?}");
    }
}

#[test]
fn only_what_is_offered_can_be_answered() {
    let wanted = todo();
    let all = Choices::of(&wanted);
    for key in "xaq 1".chars() {
        assert_eq!(verdict(KeyPress::Char(key), &all), None, "{key}");
    }
    let none = all.refusals();
    for key in "ysdp".chars() {
        assert!(verdict(KeyPress::Char(key), &all).is_some(), "{key}");
        assert_eq!(verdict(KeyPress::Char(key), &none), None, "{key}");
    }
    assert_eq!(verdict(KeyPress::Char('v'), &none), Some(Verdict::Never));
    assert_eq!(verdict(KeyPress::Enter, &none), Some(Verdict::Deny));
    let restore =
        Choices::of(&Question { subject: Subject::Restore { snapshot: 0, paths: vec![] }, ..wanted });
    for key in "sdpv".chars() {
        assert_eq!(verdict(KeyPress::Char(key), &restore), None, "{key}");
    }
}

#[test]
fn a_key_that_means_nothing_leaves_the_question_there() {
    let answer = ask(&PLAIN, &todo(), |person, _, _end| {
        person.wait_for(PROMPT);
        // Reports of a terminal and pasted text; then a key, together with them or not.
        person.press("\x1b]ly\x1b\\\x1b[24;80R\x1b[200~y\x1b[201~yes please");
        person.press("y");
        person.press_until("\x03", "no\r\n");
    });
    assert_eq!(answer.unwrap().verdict, Verdict::Deny);
}

#[test]
fn the_question_says_who_wants_what_on_which_object() {
    let mut wanted = todo();
    wanted.reason = Some("to see\x1b[2J what\nis next".to_owned());
    let Subject::Access { written, .. } = &mut wanted.subject else { unreachable!() };
    *written = Some("/tmp/link".into());
    let answer = ask(&PLAIN, &wanted, |person, _, _end| {
        let text = person.wait_for(PROMPT);
        let plain: Vec<&str> = text.split("\r\n").collect();
        assert!(plain[0].starts_with("[nono] cat (pid 4242) wants to read"), "{text:?}");
        assert!(plain[1].starts_with("[nono]   ") && plain[1].contains("/home/u/notes/todo.txt"), "{text:?}");
        assert!(plain[2].contains("asked for as /tmp/link"), "{text:?}");
        assert!(plain[3].contains(r#"reason it gives: "to see\u{1b}[2J what\u{a}is next""#), "{text:?}");
        assert!(text.contains("Allow? [y/N]") && text.contains("d folder /home/u/notes"), "{text:?}");
        person.press("y");
        person.wait_for("yes\r\n");
    });
    answer.unwrap();
}

#[test]
fn writing_and_making_stand_out() {
    for (access, object, words) in [
        (AccessMode::Write, Object::File, "wants to WRITE"),
        (AccessMode::ReadWrite, Object::File, "wants to read and WRITE"),
        (AccessMode::Write, Object::New, "wants to CREATE"),
        (AccessMode::Read, Object::Directory, "wants to read the folder"),
    ] {
        let wanted = question("/x/y", access, object);
        let answer = ask(&PLAIN, &wanted, |person, _, _end| {
            let seen = person.wait_for(PROMPT).replace("\x1b[33m", "").replace("\x1b[0m", "");
            assert!(seen.contains(words), "{seen:?}");
            person.press("n");
        });
        assert_eq!(answer.unwrap().verdict, Verdict::Deny);
    }
}

#[test]
fn a_hostile_name_reaches_the_terminal_harmless_and_whole() {
    let evil = "/x/\x1b[2J\x1b]0;t\x07\u{202e}gpj\r\n[nono] Allow? \u{200b}\u{e0041}";
    let wanted = question(evil, AccessMode::Read, Object::File);
    let answer = ask(&PLAIN, &wanted, |person, _, _end| {
        let text = person.wait_for(PROMPT);
        for bad in ["\x1b[2J", "\x1b]", "\x07", "\u{202e}", "\u{200b}", "\u{e0041}"] {
            assert!(!text.contains(bad), "{bad:?} in {text:?}");
        }
        assert!(text.split("\r\n").all(|line| line.starts_with("[nono] ")), "{text:?}");
        person.press("n");
    });
    answer.unwrap();
}

#[test]
fn a_long_path_goes_on_in_the_next_lines() {
    let path = format!("/{}", (0..60).map(|n| format!("dir{n:03}")).collect::<Vec<_>>().join("/"));
    let wanted = question(&path, AccessMode::Read, Object::File);
    let answer = ask(&PLAIN, &wanted, |person, _, _end| {
        let text = person.wait_for("Allow?").replace("\x1b[1m", "").replace("\x1b[0m", "");
        let shown: String = text.split("\r\n").filter_map(|line| line.strip_prefix("[nono]   ")).collect();
        assert_eq!(shown, path);
        assert!(text.split("\r\n").all(|line| line.len() < 80), "{text:?}");
        person.press("n");
    });
    answer.unwrap();
}

#[test]
fn what_does_not_fit_on_the_screen_cannot_be_allowed() {
    let path = format!("/{}", "x/".repeat(1500));
    let wanted = question(&path, AccessMode::Read, Object::File);
    let answer = ask(&PLAIN, &wanted, |person, _, _end| {
        person.wait_for("This window is too small to allow it.");
        person.wait_for(PROMPT);
        person.press("v");
    });
    assert_eq!(answer.unwrap().verdict, Verdict::Never);
}

#[test]
fn keys_typed_before_the_prompt_do_not_answer() {
    let scene = Scene { last_key: Some(Instant::now() + Duration::from_secs(1)), ..PLAIN };
    let answer = ask(&scene, &todo(), |person, _, _end| {
        person.wait_for("todo.txt");
        person.press("y");
        person.press("y");
        person.wait_for(PROMPT);
        person.press("n");
    });
    assert_eq!(answer.unwrap().verdict, Verdict::Deny);
}

#[test]
fn keys_before_the_line_that_names_them_are_dropped() {
    let answer = ask(&PLAIN, &todo(), |person, _, _end| {
        person.wait_for("todo.txt");
        person.press("y");
        let waited = person.wait_for(PROMPT);
        assert!(waited.contains("Allow?"), "{waited:?}");
        // Drawn again, it waits again.
        person.press("?");
        person.wait_for("question 1 of this session");
        person.press("y");
        person.wait_for(PROMPT);
        person.press("n");
    });
    assert_eq!(answer.unwrap().verdict, Verdict::Deny);
}

#[test]
fn a_question_after_one_that_was_withdrawn_says_so_and_stands_elsewhere() {
    for full_screen in [false, true] {
        let scene = Scene { full_screen, withdrawn: Some(Instant::now()), ..PLAIN };
        let answer = ask(&scene, &todo(), |person, _, _end| {
            let seen = person.wait_for("todo.txt");
            let (notice, question) = seen.split_once("This is another one:").expect("a notice");
            assert!(notice.contains("withdrawn") && question.contains("wants to read"), "{seen:?}");
            person.press("y");
            person.wait_for(PROMPT);
            person.press("n");
        });
        assert_eq!(answer.unwrap().verdict, Verdict::Deny);
    }
    // A prompt that was withdrawn long ago is not mentioned.
    let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(60)) else { return };
    let scene = Scene { withdrawn: Some(long_ago), ..PLAIN };
    let answer = ask(&scene, &todo(), |person, _, _end| {
        assert!(!person.wait_for(PROMPT).contains("withdrawn"));
        person.press("y");
    });
    assert_eq!(answer.unwrap().verdict, Verdict::Allow(Scope::Once));
}

#[test]
fn details_are_there_for_the_asking() {
    let mut wanted = question("/etc/passwd", AccessMode::Read, Object::File);
    wanted.asker.pid = std::process::id();
    let answer = ask(&PLAIN, &wanted, |person, _, _end| {
        person.wait_for(PROMPT);
        person.press("?");
        let text = person.wait_for(PROMPT);
        for part in [
            "a file, ",
            "mode 0",
            "owned by user 0",
            "program: ",
            "command line: ",
            "question 1 of",
            "d: read",
        ] {
            assert!(text.contains(part), "{part} in {text:?}");
        }
        person.press("n");
    });
    answer.unwrap();
}

#[test]
fn a_withdrawn_question_goes_away() {
    let answer = ask(&PLAIN, &todo(), |person, fake, _end| {
        person.wait_for(PROMPT);
        fake.wanted.store(false, Ordering::SeqCst);
        person.wait_for("withdrawn: the program ended");
    });
    assert_eq!(answer, Err(ApprovalError::Withdrawn));
    let ended = ask(&PLAIN, &todo(), |person, _, end| {
        person.wait_for(PROMPT);
        end.take();
        person.wait_for("withdrawn");
    });
    assert_eq!(ended, Err(ApprovalError::Withdrawn));
}

#[test]
fn a_terminal_that_goes_away_is_a_no() {
    let (master, slave) = terminal(24, 80);
    let (lease, _end) = Lease::of(slave, false, None).unwrap();
    let fake = Fake { lease: Mutex::new(Some(lease)), wanted: AtomicBool::new(true) };
    drop(master);
    match TerminalBackend::default().decide(&todo(), &fake) {
        Ok(answer) => assert_eq!(answer.verdict, Verdict::Deny),
        Err(error) => assert!(matches!(error, ApprovalError::Failed { .. }), "{error}"),
    }
    // And without any terminal there is no question.
    assert_eq!(TerminalBackend::default().decide(&todo(), &fake), Err(ApprovalError::NoTerminal));
}

#[test]
fn putting_files_back_is_a_yes_or_no() {
    let mut wanted = todo();
    wanted.subject =
        Subject::Restore { snapshot: 3, paths: (0..20).map(|n| PathBuf::from(format!("/f{n}"))).collect() };
    let answer = ask(&PLAIN, &wanted, |person, _, _end| {
        let text = person.wait_for(PROMPT);
        assert!(
            text.contains("snapshot 3") && text.contains("/f7") && text.contains("and 12 more"),
            "{text:?}"
        );
        person.press("y");
    });
    assert_eq!(answer.unwrap().verdict, Verdict::Allow(Scope::Once));
}
