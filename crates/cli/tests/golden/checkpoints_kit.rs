//! A project with checkpoints, and transcripts without what differs from run to run: ids are `[id1]`, `[id2]`, … in the
//! order in which they are seen, moments are `[TIME]`, ages `[AGE]`, sizes `[SIZE]`.

use std::path::PathBuf;

use snapbox::IntoData;

use super::sessions::mask_line;
use super::world::{World, golden};
use nono_testkit::process::Outcome;

pub(crate) struct Checkpoints {
    pub(crate) world: World,
}

impl Checkpoints {
    /// `work/project` has a marker and one file; commands start there.
    pub(crate) fn new() -> Checkpoints {
        let world = World::new();
        world.file("work/project/Makefile", "all:\n");
        Checkpoints { world }
    }

    /// With one checkpoint, and one change after it.
    pub(crate) fn changed() -> Checkpoints {
        let kit = Checkpoints::new();
        kit.world.file("work/project/main.c", "one\ntwo\nthree\n");
        kit.create("the beginning");
        kit.world.file("work/project/main.c", "one\n2\nthree\nfour\n");
        kit.world.file("work/project/new/file", "new\n");
        kit
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.world.path("work/project").join(below)
    }

    /// A line of shell in the project.
    pub(crate) fn sh(&self, line: &str) -> Outcome {
        self.world.sh(&format!("cd project && {line}"))
    }

    /// A checkpoint by hand; its id.
    #[track_caller]
    pub(crate) fn create(&self, why: &str) -> String {
        let made = self.json(&format!("nono checkpoints create --json -m '{why}'"), 0);
        assert_eq!(made["result"], "taken", "{made}");
        made["checkpoint"]["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self, line: &str, code: i32) -> serde_json::Value {
        let outcome = self.sh(line);
        assert_eq!(outcome.code(), Some(code), "{line}: {outcome:?}");
        serde_json::from_str(&outcome.out()).unwrap_or_else(|error| panic!("{line}: {error}: {outcome:?}"))
    }

    #[track_caller]
    pub(crate) fn golden(&self, lines: &[&str], expected: impl IntoData) {
        let show = |line: &&str| format!("$ {line}\n{}", self.world.show(&self.sh(line)));
        golden(mask(&lines.iter().map(show).collect::<String>()), expected);
    }

    /// The same, from the folder above.
    #[track_caller]
    pub(crate) fn golden_above(&self, lines: &[&str], expected: impl IntoData) {
        golden(mask(&self.world.transcript(lines)), expected);
    }
}

fn mask(text: &str) -> String {
    let text: String = text.lines().map(|line| mask_line(&moments(line)) + "\n").collect();
    ids(&text)
}

/// `2026-11-15 18:22:03 +00:00` and `2026-11-15T18:22:03Z`.
pub(crate) fn moments(line: &str) -> String {
    let is = |at: &[u8]| {
        at.len() >= 19
            && at.iter().take(19).zip(b"dddd-dd-ddTdd:dd:dd").all(|(byte, shape)| match shape {
                b'd' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b' '),
                other => byte == other,
            })
    };
    let bytes = line.as_bytes();
    let Some(at) = (0..bytes.len()).find(|at| is(&bytes[*at..])) else { return line.to_owned() };
    let rest = &line[at + 19..];
    let rest = rest.strip_prefix('Z').or(rest.strip_prefix(" +00:00")).unwrap_or(rest);
    format!("{}[TIME]{}", &line[..at], moments(rest))
}

/// Words of 12 hexadecimal digits, and of 8 that begin with a letter.
pub(crate) fn ids(text: &str) -> String {
    let mut known: Vec<String> = Vec::new();
    let mut masked = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        let begins = word.starts_with(|first: char| first.is_ascii_lowercase());
        let is_id = (word.len() == 12 || (word.len() == 8 && begins))
            && word.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        if is_id {
            let short = &word[..8];
            let at = known.iter().position(|one| one == short).unwrap_or_else(|| {
                known.push(short.to_owned());
                known.len() - 1
            });
            masked += &format!("[id{}]", at + 1);
        } else {
            masked += &word;
        }
        word.clear();
        masked.extend(Some(c).filter(|c| *c != '\0'));
    }
    masked
}
