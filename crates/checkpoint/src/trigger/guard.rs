//! The shell parser, held within bounds: what it is given was written by a model, or by whoever speaks to the model.
//!
//! It descends recursively (deep nesting overflows its stack) and backtracks (an unclosed `((((` takes exponential time).
//! So it runs on a thread with a large stack, on text with no more openings than that stack holds, for a limited time.
//! Whatever it cannot do in these bounds, and a panic in it, makes the call destructive.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::forgets;
use super::state::normal;
use super::walk;

/// The longest line that is parsed.
const LENGTH: usize = 64 << 10;
/// Openings (anything that may nest) in a line. An unoptimised parser was seen to need 64 MiB for somewhat over 3,000.
const OPENINGS: usize = 2_500;
const STACK: usize = 128 << 20;
const TIME: Duration = Duration::from_millis(500);

/// What a line comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    /// What it may lose: `None` if nothing.
    pub(super) targets: Option<Vec<PathBuf>>,
    /// It removes what could bring that back.
    pub(super) forgets: bool,
}

pub(super) fn judge(line: &str, cwd: &Path, home: &Path) -> Judged {
    let unread = || Judged { targets: Some(crude(line, cwd, home)), forgets: forgets::crude(line) };
    if line.len() > LENGTH || openings(line) > OPENINGS {
        return unread();
    }
    let (send, receive) = mpsc::sync_channel(1);
    let (own, from, to) = (line.to_owned(), cwd.to_owned(), home.to_owned());
    let judge = move || {
        // Nobody waits any more if this fails: it took too long.
        let _ = send.send(walk::line(&own, &from, &to));
    };
    // The thread is left to itself when it takes too long: it ends with the process, which has an answer to give.
    match thread::Builder::new().name("judge".to_owned()).stack_size(STACK).spawn(judge) {
        Ok(_) => match receive.recv_timeout(TIME) {
            Ok(walk::Found::Nothing) => Judged { targets: None, forgets: false },
            Ok(walk::Found::Targets { targets, forgets }) => Judged { targets: Some(targets), forgets },
            // Not a line of this language, too slow, or a panic.
            Ok(walk::Found::Unreadable) | Err(_) => unread(),
        },
        Err(_) => unread(),
    }
}

/// How much in it may open something that nests. Never less than the depth that the parser goes to.
pub(super) fn openings(line: &str) -> usize {
    const WORDS: [&str; 8] = ["if", "while", "until", "for", "case", "coproc", "select", "function"];
    let signs = line.bytes().filter(|byte| b"({[`!$&|".contains(byte)).count();
    let words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| WORDS.contains(word)).count();
    signs + words
}

/// Of a line that cannot be read: the working directory, and whatever in it looks like an absolute path.
fn crude(line: &str, cwd: &Path, home: &Path) -> Vec<PathBuf> {
    const MOST: usize = 16;
    let mut targets = vec![cwd.to_owned()];
    let breaks = |c: char| c.is_whitespace() || c.is_control() || "'\"`()<>|&;=,{}$".contains(c);
    for word in line.split(breaks) {
        let path = match word.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None if word.starts_with('/') && word.len() > 1 && word.len() < 4096 => PathBuf::from(word),
            None => continue,
        };
        if targets.len() >= MOST {
            break;
        }
        if normal(&path) && !targets.contains(&path) {
            targets.push(path);
        }
    }
    targets
}
