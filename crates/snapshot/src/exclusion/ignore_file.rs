//! One ignore file: its rules, and the last one that matches a path.
//!
//! Parsed exactly as git does (byte order mark, line ends, trailing and escaped spaces, NUL). Rules without wildcards
//! and rules of the form `*.end` are found by hash, so that a long ignore file costs little more than a short one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::wildmatch::CompiledPattern;

/// A parsed ignore file.
#[derive(Debug)]
pub(super) struct List {
    text: Arc<[u8]>,
    fold: bool,
    rules: Vec<IgnoreRule>,
    /// Rules without wildcards, by the last component of their path; later rules first.
    literal: ByHash,
    /// Rules like `*.o`, by the text from the last dot on; later rules first.
    endings: ByHash,
    /// All other rules, later ones first.
    others: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct IgnoreRule {
    pub(super) negative: bool,
    dir_only: bool,
    line: Range<usize>,
    matcher: Matcher,
}

#[derive(Debug)]
enum Matcher {
    Name(Range<usize>),
    NameEnd(Range<usize>),
    NameGlob(CompiledPattern),
    Path(Range<usize>),
    /// A literal prefix; the rest is matched as if it were the whole pattern, as git does.
    PathGlob(Range<usize>, CompiledPattern),
}

/// Name of an entry to be matched, hashed once for all ignore files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    name: &'a [u8],
    is_dir: bool,
    name_hash: u64,
    ending_hash: Option<u64>,
}

impl<'a> Subject<'a> {
    /// `fold` must be that of the lists it is matched against.
    pub(super) fn new(name: &'a [u8], is_dir: bool, fold: bool) -> Subject<'a> {
        Subject {
            name,
            is_dir,
            name_hash: hash(name, fold),
            ending_hash: ending(name).map(|end| hash(end, fold)),
        }
    }
}

/// Indexes of rules by the hash of a text. Hash collisions are harmless: each rule is matched against the name itself.
type ByHash = HashMap<u64, Vec<u32>, BuildHasherDefault<AsIs>>;

/// Hasher for keys that are hashes already.
#[derive(Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

fn hash(text: &[u8], fold: bool) -> u64 {
    if fold { xxh3_64(&text.to_ascii_lowercase()) } else { xxh3_64(text) }
}

impl List {
    pub(super) fn parse(text: Arc<[u8]>, fold: bool) -> List {
        let mut list = List {
            text,
            fold,
            rules: Vec::new(),
            literal: ByHash::default(),
            endings: ByHash::default(),
            others: Vec::new(),
        };
        let text = Arc::clone(&list.text);
        let mut from = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        while from < text.len() {
            let end =
                text[from..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |len| from + len);
            if text[from] != b'#' {
                let line = from..line_end(&text, from, end);
                list.add(line);
            }
            from = end + 1;
        }
        list.others.reverse();
        list.literal.values_mut().chain(list.endings.values_mut()).for_each(|numbers| numbers.reverse());
        list
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Text of a rule's line; a very long one is cut.
    pub(super) fn line(&self, rule: &IgnoreRule) -> String {
        const SHOWN: usize = 200;
        let line = &self.text[rule.line.clone()];
        let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
        if line.len() > SHOWN { format!("{shown}…") } else { shown.into_owned() }
    }

    fn add(&mut self, line: Range<usize>) {
        let negative = self.text.get(line.clone()).is_some_and(|line| line.starts_with(b"!"));
        let mut body = line.start + usize::from(negative)..line.end;
        let dir_only = self.text[body.clone()].ends_with(b"/");
        body.end -= usize::from(dir_only);
        if let Some((matcher, place)) = self.matcher(body) {
            let number = u32::try_from(self.rules.len()).unwrap_or(u32::MAX);
            match place {
                PatternBucket::Literal(key) => self.literal.entry(key).or_default().push(number),
                PatternBucket::Ending(key) => self.endings.entry(key).or_default().push(number),
                PatternBucket::Other => self.others.push(number),
            }
            self.rules.push(IgnoreRule { negative, dir_only, line, matcher });
        }
    }

    /// Matcher of a rule; `None` if it can never match.
    fn matcher(&self, mut body: Range<usize>) -> Option<(Matcher, PatternBucket)> {
        let pattern = &self.text[body.clone()];
        let plain = pattern.iter().take_while(|byte| !is_special(**byte)).count();
        if pattern.is_empty() {
            return None;
        }
        if !pattern.contains(&b'/') {
            return self.name_matcher(pattern, plain, body);
        }
        let rooted = usize::from(pattern.starts_with(b"/"));
        let prefix = body.start + rooted..body.start + plain.max(rooted);
        body.start += rooted;
        if plain == pattern.len() {
            let last = pattern.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            return Some((Matcher::Path(body), PatternBucket::Literal(hash(last, self.fold))));
        }
        let program = CompiledPattern::git(&self.text[prefix.end..body.end], self.fold)?;
        Some((Matcher::PathGlob(prefix, program), PatternBucket::Other))
    }

    fn name_matcher(
        &self,
        pattern: &[u8],
        plain: usize,
        body: Range<usize>,
    ) -> Option<(Matcher, PatternBucket)> {
        if plain == pattern.len() {
            return Some((Matcher::Name(body), PatternBucket::Literal(hash(pattern, self.fold))));
        }
        if pattern[0] == b'*' && !pattern[1..].iter().any(|byte| is_special(*byte)) {
            let end = &pattern[1..];
            let place =
                ending(end).map_or(PatternBucket::Other, |dot| PatternBucket::Ending(hash(dot, self.fold)));
            return Some((Matcher::NameEnd(body.start + 1..body.end), place));
        }
        Some((Matcher::NameGlob(CompiledPattern::git(pattern, self.fold)?), PatternBucket::Other))
    }

    /// The last rule that matches; `below` is the path relative to the directory of the ignore file.
    pub(super) fn last_match(&self, subject: &Subject<'_>, below: &[u8]) -> Option<&IgnoreRule> {
        let applies = |number: &u32| self.applies(*number, subject, below);
        let first = |numbers: &Vec<u32>| numbers.iter().copied().find(applies);
        let literal = self.literal.get(&subject.name_hash).and_then(first);
        let ending = subject.ending_hash.and_then(|hash| self.endings.get(&hash)).and_then(first);
        let best = literal.max(ending);
        let mut later =
            self.others.iter().copied().take_while(|number| best.is_none_or(|best| *number > best));
        self.rules.get(later.find(applies).or(best)? as usize)
    }

    fn applies(&self, number: u32, subject: &Subject<'_>, below: &[u8]) -> bool {
        let Some(rule) = self.rules.get(number as usize) else { return false };
        if rule.dir_only && !subject.is_dir {
            return false;
        }
        match &rule.matcher {
            Matcher::Name(plain) => self.same(plain, subject.name),
            Matcher::NameEnd(end) => {
                let from = subject.name.len().checked_sub(end.len());
                from.is_some_and(|from| self.same(end, &subject.name[from..]))
            }
            Matcher::NameGlob(program) => program.matches(subject.name),
            Matcher::Path(plain) => self.same(plain, below),
            Matcher::PathGlob(prefix, program) => below
                .split_at_checked(prefix.len())
                .is_some_and(|(start, rest)| self.same(prefix, start) && program.matches(rest)),
        }
    }

    fn same(&self, plain: &Range<usize>, text: &[u8]) -> bool {
        let plain = &self.text[plain.clone()];
        if self.fold { plain.eq_ignore_ascii_case(text) } else { plain == text }
    }
}

enum PatternBucket {
    Literal(u64),
    Ending(u64),
    Other,
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'*' | b'?' | b'[' | b'\\')
}

/// Text from the last dot on.
fn ending(name: &[u8]) -> Option<&[u8]> {
    name.iter().rposition(|byte| *byte == b'.').map(|dot| &name[dot..])
}

/// End of the rule on the line `from..end`: before a carriage return, a NUL, or trailing spaces that are not escaped.
fn line_end(text: &[u8], from: usize, end: usize) -> usize {
    let line = &text[from..end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.iter().position(|byte| *byte == 0).map_or(line, |nul| &line[..nul]);
    let mut spaces = None;
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        match byte {
            b' ' => spaces = spaces.or(Some(at)),
            b'\\' if at + 1 == line.len() => return from + line.len(),
            b'\\' => {
                spaces = None;
                at += 1;
            }
            _ => spaces = None,
        }
        at += 1;
    }
    from + spaces.unwrap_or(line.len())
}
