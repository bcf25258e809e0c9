//! Globs on single names, as callers write them: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}` (nested too), `\` before anything.
//!
//! A leading `**/` is allowed and has no effect; with any other `/` a glob cannot match a name. Matching is by bytes,
//! not characters, and case-sensitive. They run on the engine of git's ignore rules; `nono_policy::glob`
//! matches whole paths, and is in a crate beside this one.

use super::wildmatch::{Class, CompiledPattern};

/// Maximum number of alternatives: nested braces multiply.
const MOST_ALTERNATIVES: usize = 1024;

#[derive(Debug)]
pub(super) struct Glob(Vec<CompiledPattern>);

impl Glob {
    /// Parse a glob; the error says what is wrong with it.
    pub(super) fn parse(glob: &str) -> Result<Glob, &'static str> {
        let mut glob = glob.as_bytes();
        while let Some(rest) = glob.strip_prefix(b"**/") {
            glob = rest;
        }
        expand(glob)?.iter().map(|glob| compile(glob)).collect::<Result<_, _>>().map(Glob)
    }

    pub(super) fn matches(&self, name: &[u8]) -> bool {
        self.0.iter().any(|program| program.matches(name))
    }
}

/// Whether a text has any character that is special in a glob.
pub(super) fn has_special(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// Expand the braces into alternatives.
fn expand(glob: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut done = Vec::new();
    let mut open = vec![glob.to_vec()];
    while let Some(glob) = open.pop() {
        let Some(Braces { start, end, commas }) = first_braces(&glob)? else {
            done.push(glob);
            continue;
        };
        let mut from = start + 1;
        for to in commas.into_iter().chain([end]) {
            open.push([&glob[..start], &glob[from..to], &glob[end + 1..]].concat());
            from = to + 1;
        }
        if open.len() + done.len() > MOST_ALTERNATIVES {
            return Err("it has too many alternatives");
        }
    }
    Ok(done)
}

/// Positions of a pair of braces and of the commas between its alternatives.
struct Braces {
    start: usize,
    end: usize,
    commas: Vec<usize>,
}

fn first_braces(glob: &[u8]) -> Result<Option<Braces>, &'static str> {
    let mut opened = Vec::new();
    let mut commas = Vec::new();
    let mut at = 0;
    while let Some(&byte) = glob.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => at = class(glob, at + 1)?.1 - 1,
            b'{' => opened.push(at),
            b',' if opened.len() == 1 => commas.push(at),
            b'}' => {
                let start = opened.pop().ok_or("it closes braces that are not open")?;
                if opened.is_empty() {
                    return Ok(Some(Braces { start, end: at, commas }));
                }
            }
            _ => {}
        }
        at += 1;
    }
    if opened.is_empty() { Ok(None) } else { Err("its braces are not closed") }
}

fn compile(glob: &[u8]) -> Result<CompiledPattern, &'static str> {
    let mut program = CompiledPattern::default();
    let mut at = 0;
    while let Some(&byte) = glob.get(at) {
        at += 1;
        match byte {
            b'*' => program.star(),
            b'?' => program.any(),
            b'[' => {
                let (class, end) = class(glob, at)?;
                program.class(class);
                at = end;
            }
            b'\\' => {
                program.byte(*glob.get(at).ok_or("it ends with a backslash")?);
                at += 1;
            }
            plain => program.byte(plain),
        }
    }
    program.finish();
    Ok(program)
}

/// Class after a bracket, and the offset after it.
fn class(glob: &[u8], at: usize) -> Result<(Class, usize), &'static str> {
    const OPEN: &str = "its brackets are not closed";
    let negated = matches!(glob.get(at), Some(b'!' | b'^'));
    let first = at + usize::from(negated);
    let inside =
        glob.get(first + 1..).and_then(|rest| rest.iter().position(|byte| *byte == b']')).ok_or(OPEN)?;
    let end = first + 1 + inside;
    let mut class = Class::default();
    let mut bytes = &glob[first..end];
    while let Some((&low, rest)) = bytes.split_first() {
        if let [b'-', high, rest @ ..] = rest {
            if low > *high {
                return Err("it has a range that runs backwards");
            }
            (low..=*high).for_each(|byte| class.add(byte));
            bytes = rest;
        } else {
            class.add(low);
            bytes = rest;
        }
    }
    Ok((if negated { class.negated() } else { class }, end + 1))
}
