//! Git's wildcards, compiled once and run over bytes.
//!
//! Matching takes at most time proportional to pattern times text, whatever the pattern: git's own backtracking doubles
//! with each `**/`, and an agent may write ignore files. A pattern with `**` is run as an automaton; any other needs to
//! backtrack only to its last star, because a star never crosses a slash. Git's behaviour with odd patterns is kept: a
//! class without an end, an unknown `[:name:]` or a backslash at the end never match, and under `core.ignorecase` only
//! the text is folded inside classes and after a backslash.

#[derive(Debug, Default)]
pub(super) struct CompiledPattern {
    ops: Vec<Op>,
    classes: Vec<Class>,
    /// Literal bytes at the pattern's start and end: most texts are rejected by them alone.
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Longest literal run in the pattern: every match contains it.
    needle: Vec<u8>,
    /// Whether the pattern has a `**`.
    crosses: bool,
    fold: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Byte(u8),
    /// Any byte but a slash.
    Any,
    /// A byte of the class with this number, never a slash.
    Class(u32),
    /// Any number of bytes but slashes.
    Star,
    /// Any number of bytes.
    StarAll,
    /// Before `StarAll`, `Byte(/)`: both may be skipped.
    Optional,
}

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Class([u64; 4]);

impl Class {
    pub(super) fn add(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    pub(super) fn negated(self) -> Class {
        Class(self.0.map(|word| !word))
    }
}

/// Maximum number of state words kept on the stack.
const ON_STACK: usize = 4;

impl CompiledPattern {
    /// Compile git's syntax; `None` if the pattern can match nothing.
    pub(super) fn git(pattern: &[u8], fold: bool) -> Option<CompiledPattern> {
        let mut program = CompiledPattern { fold, ..CompiledPattern::default() };
        let mut at = 0;
        while let Some(&byte) = pattern.get(at) {
            at = match byte {
                b'*' => program.stars(pattern, at),
                b'?' => program.push(Op::Any, at + 1),
                b'[' => {
                    let (class, end) = git_class(pattern, at + 1, fold)?;
                    program.class(class);
                    end
                }
                b'\\' => {
                    let escaped = *pattern.get(at + 1)?;
                    program.push(Op::Byte(escaped), at + 2)
                }
                plain => program.push(Op::Byte(lower(plain, fold)), at + 1),
            };
        }
        program.finish();
        Some(program)
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.ops.push(Op::Byte(byte));
    }

    pub(super) fn any(&mut self) {
        self.ops.push(Op::Any);
    }

    pub(super) fn star(&mut self) {
        self.ops.push(Op::Star);
    }

    pub(super) fn class(&mut self, class: Class) {
        let number = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        self.classes.push(class);
        self.ops.push(Op::Class(number));
    }

    /// Finish a program after its last part.
    pub(super) fn finish(&mut self) {
        self.crosses = self.ops.contains(&Op::StarAll);
        let plain = |op: &Op| if let Op::Byte(byte) = op { Some(*byte) } else { None };
        self.tail = self.ops.iter().rev().map_while(plain).collect();
        // The slash of a `**/` may be skipped together with it.
        let before = &self.ops[..self.ops.len() - self.tail.len()];
        if before.ends_with(&[Op::Optional, Op::StarAll]) {
            self.tail.pop();
        }
        self.tail.reverse();
        self.head = self.ops.iter().map_while(plain).collect();
        self.needle = self.longest_run();
    }

    fn longest_run(&self) -> Vec<u8> {
        if self.crosses {
            return Vec::new();
        }
        let runs = self.ops.split(|op| !matches!(op, Op::Byte(_)));
        let longest = runs.max_by_key(|run| run.len()).unwrap_or_default();
        longest.iter().filter_map(|op| if let Op::Byte(byte) = op { Some(*byte) } else { None }).collect()
    }

    fn push(&mut self, op: Op, next: usize) -> usize {
        self.ops.push(op);
        next
    }

    /// Compile the run of stars at `at`; returns the offset after it.
    fn stars(&mut self, pattern: &[u8], at: usize) -> usize {
        let run = pattern[at..].iter().take_while(|byte| **byte == b'*').count();
        let rest = &pattern[at + run..];
        let whole_component = (at == 0 || pattern[at - 1] == b'/')
            && (rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"\\/"));
        if run == 1 || !whole_component {
            return self.push(Op::Star, at + run);
        }
        if rest.starts_with(b"/") {
            self.ops.extend([Op::Optional, Op::StarAll, Op::Byte(b'/')]);
            return at + run + 1;
        }
        self.push(Op::StarAll, at + run)
    }

    pub(super) fn matches(&self, text: &[u8]) -> bool {
        if !self.could_match(text) {
            return false;
        }
        if !self.crosses {
            return self.run_simple(text);
        }
        self.run_automaton(text)
    }

    /// Correct for every pattern, but slower than [`CompiledPattern::run_simple`] without `**`.
    pub(super) fn run_automaton(&self, text: &[u8]) -> bool {
        let words = self.ops.len() / 64 + 1;
        if words <= ON_STACK {
            let (mut now, mut next) = ([0; ON_STACK], [0; ON_STACK]);
            self.run(text, &mut now[..words], &mut next[..words])
        } else {
            self.run(text, &mut vec![0; words], &mut vec![0; words])
        }
    }

    /// Quick check of the literal start and end.
    fn could_match(&self, text: &[u8]) -> bool {
        let same = |plain: &[u8], text: &[u8]| {
            plain.iter().zip(text).all(|(plain, byte)| *plain == lower(*byte, self.fold))
        };
        text.len() >= self.head.len().max(self.tail.len())
            && same(&self.head, text)
            && same(&self.tail, &text[text.len() - self.tail.len()..])
            && self.holds_needle(text)
    }

    fn holds_needle(&self, text: &[u8]) -> bool {
        let Some((first, rest)) = self.needle.split_first().filter(|_| !self.fold) else { return true };
        let starts = text.iter().enumerate().filter(|(_, byte)| *byte == first);
        starts.map(|(at, _)| &text[at + 1..]).any(|behind| behind.starts_with(rest))
    }

    /// Match a pattern without `**`.
    fn run_simple(&self, text: &[u8]) -> bool {
        let (mut op, mut at) = (0, 0);
        // The last star, and the text that it may still take.
        let mut star = None;
        loop {
            let byte = text.get(at).map(|byte| lower(*byte, self.fold));
            match (self.ops.get(op), byte) {
                (None, None) => return true,
                (Some(Op::Star), _) => {
                    star = Some((op, at));
                    op += 1;
                    continue;
                }
                (Some(wanted), Some(byte)) if self.takes(*wanted, byte) => {
                    op += 1;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            match star {
                Some((star_op, star_at)) if text.get(star_at).is_some_and(|byte| *byte != b'/') => {
                    star = Some((star_op, star_at + 1));
                    (op, at) = (star_op + 1, star_at + 1);
                }
                _ => return false,
            }
        }
    }

    /// Whether one byte matches an operation that takes exactly one.
    fn takes(&self, op: Op, byte: u8) -> bool {
        match op {
            Op::Byte(wanted) => wanted == byte,
            Op::Any => byte != b'/',
            Op::Class(number) => byte != b'/' && self.in_class(number, byte),
            Op::Star | Op::StarAll | Op::Optional => false,
        }
    }

    fn run<'a>(&self, text: &[u8], mut now: &'a mut [u64], mut next: &'a mut [u64]) -> bool {
        self.reach(0, now);
        for &byte in text {
            let byte = lower(byte, self.fold);
            next.fill(0);
            for (number, word) in now.iter().enumerate() {
                let mut bits = *word;
                while bits != 0 {
                    self.advance(number * 64 + bits.trailing_zeros() as usize, byte, next);
                    bits &= bits - 1;
                }
            }
            std::mem::swap(&mut now, &mut next);
            if now.iter().all(|word| *word == 0) {
                return false;
            }
        }
        let end = self.ops.len();
        now[end / 64] >> (end % 64) & 1 == 1
    }

    fn advance(&self, at: usize, byte: u8, next: &mut [u64]) {
        match self.ops.get(at) {
            Some(Op::Star) if byte != b'/' => self.reach(at, next),
            Some(Op::StarAll) => self.reach(at, next),
            Some(op) if self.takes(*op, byte) => self.reach(at + 1, next),
            _ => {}
        }
    }

    fn in_class(&self, number: u32, byte: u8) -> bool {
        self.classes.get(number as usize).is_some_and(|class| class.has(byte))
    }

    /// Mark a state and those reached from it without a byte.
    fn reach(&self, mut at: usize, states: &mut [u64]) {
        loop {
            let bit = 1 << (at % 64);
            if states[at / 64] & bit != 0 {
                return;
            }
            states[at / 64] |= bit;
            match self.ops.get(at) {
                Some(Op::Star | Op::StarAll) => at += 1,
                Some(Op::Optional) => {
                    for inner in [at + 1, at + 2] {
                        states[inner / 64] |= 1 << (inner % 64);
                    }
                    at += 3;
                }
                _ => return,
            }
        }
    }
}

pub(super) fn lower(byte: u8, fold: bool) -> u8 {
    if fold { byte.to_ascii_lowercase() } else { byte }
}

/// Class that begins after the bracket at `at - 1`, and the offset after it.
fn git_class(pattern: &[u8], mut at: usize, fold: bool) -> Option<(Class, usize)> {
    let negated = matches!(pattern.get(at), Some(b'!' | b'^'));
    at += usize::from(negated);
    let mut class = Class::default();
    // Byte that a range may start with; `None` after a range or a named class.
    let mut before = None;
    let first = at;
    loop {
        let byte = *pattern.get(at)?;
        match byte {
            b']' if at > first => break,
            b'\\' => {
                let escaped = *pattern.get(at + 1)?;
                class.add(escaped);
                before = Some(escaped);
                at += 2;
            }
            b'-' if before.is_some() && pattern.get(at + 1).is_some_and(|next| *next != b']') => {
                let escaped = usize::from(pattern[at + 1] == b'\\');
                let last = *pattern.get(at + 1 + escaped)?;
                add_range(&mut class, before.take()?, last, fold);
                at += 2 + escaped;
            }
            b'[' if pattern.get(at + 1) == Some(&b':') => {
                let length = pattern[at + 2..].iter().position(|byte| *byte == b']')?;
                if let Some((b':', name)) = pattern[at + 2..at + 2 + length].split_last() {
                    add_named(&mut class, name, fold)?;
                    before = None;
                    at += 3 + length;
                } else {
                    class.add(b'[');
                    before = Some(b'[');
                    at += 1;
                }
            }
            plain => {
                class.add(plain);
                before = Some(plain);
                at += 1;
            }
        }
    }
    Some((if negated { class.negated() } else { class }, at + 1))
}

fn add_range(class: &mut Class, first: u8, last: u8, fold: bool) {
    for byte in first..=last {
        class.add(byte);
        if fold && byte.is_ascii_uppercase() {
            class.add(byte.to_ascii_lowercase());
        }
    }
}

/// Add a named class; `None` for an unknown name.
fn add_named(class: &mut Class, name: &[u8], fold: bool) -> Option<()> {
    let member: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" if fold => u8::is_ascii_alphabetic,
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    (0..=u8::MAX).filter(member).for_each(|byte| class.add(byte));
    Some(())
}
