//! Line-based scanner for the `hooks:` block of a YAML file, for the subset of YAML found there in practice.
//!
//! A parser says whether the file is YAML at all ([`check`]), but not which lines an edit may touch. Anything unknown
//! in the block is refused, so that an edit is never a guess; the rest of the file is not read, except to find where
//! its keys begin.

use saphyr_parser::{Event as Parsed, Marker, Parser};

use super::jsonc::HookFileProblem;

fn malformed(place: &Marker, what: String) -> HookFileProblem {
    HookFileProblem { line: place.line().max(1), column: place.col() + 1, what }
}

/// Check that the text is YAML, and a mapping or empty.
pub(super) fn check(text: &str) -> Result<(), HookFileProblem> {
    let mut is_top = false;
    for event in Parser::new_from_str(text.trim_start_matches('\u{feff}')) {
        let (event, span) = event
            .map_err(|error| malformed(error.marker(), format!("this is not YAML: {}", error.info())))?;
        let fits = match &event {
            Parsed::SequenceStart(..) | Parsed::Alias(_) => false,
            Parsed::Scalar(text, ..) => text.is_empty() && span.is_empty(),
            _ => true,
        };
        if is_top && !fits {
            return Err(malformed(&span.start, "settings should be keys and values".to_owned()));
        }
        is_top = matches!(event, Parsed::DocumentStart(_));
    }
    Ok(())
}

/// A line with its end, and its number in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct YamlLine<'a> {
    pub(super) text: &'a str,
    pub(super) number: usize,
}

impl YamlLine<'_> {
    pub(super) fn indent(&self) -> usize {
        self.text.len() - self.text.trim_start_matches(' ').len()
    }

    fn body(&self) -> &str {
        self.text.trim()
    }

    /// Whether the line is empty or a comment.
    fn is_blank(&self) -> bool {
        self.body().is_empty() || self.body().starts_with('#')
    }

    fn is_item(&self) -> bool {
        self.body() == "-" || self.body().starts_with("- ")
    }
}

/// Line number, and the construct there that nono cannot extend.
pub(super) type Unsure = (usize, &'static str);

/// The `hooks:` block. Line numbers are from 0 here.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Line with `hooks:`.
    pub(super) key: usize,
    /// `hooks: {}`, `hooks: null` or nothing below it.
    pub(super) is_empty: bool,
    /// Line after the last one of the block.
    pub(super) end: usize,
    /// Indentation of the events.
    pub(super) indent: usize,
    pub(super) events: Vec<YamlEvent>,
}

#[derive(Debug)]
pub(super) struct YamlEvent {
    pub(super) name: String,
    pub(super) key: usize,
    /// `event: []` or `event:` with nothing below it.
    pub(super) is_empty: bool,
    /// Line after its last item.
    pub(super) end: usize,
    /// Indentation of the dashes.
    pub(super) indent: usize,
    /// Lines of each item.
    pub(super) items: Vec<std::ops::Range<usize>>,
}

pub(super) fn lines(text: &str) -> Vec<YamlLine<'_>> {
    text.split_inclusive('\n').enumerate().map(|(at, text)| YamlLine { text, number: at + 1 }).collect()
}

/// Key of a line and the text after it, without a comment.
fn key<'a>(line: &YamlLine<'a>) -> Option<(&'a str, &'a str)> {
    let text = line.text.trim();
    let (name, rest) = text.split_once(':')?;
    if !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let rest =
        if rest.trim_start().starts_with('#') { "" } else { rest.split(" #").next().unwrap_or_default() };
    let unquoted = ['"', '\''].iter().find_map(|quote| name.strip_prefix(*quote)?.strip_suffix(*quote));
    Some((unquoted.unwrap_or(name.trim_end()), rest.trim()))
}

fn is_nothing(rest: &str, empty: &str) -> bool {
    matches!(rest, "" | "~" | "null") || rest.replace(' ', "") == empty
}

/// Find the `hooks:` block of the file, if it has one.
pub(super) fn block(lines: &[YamlLine<'_>]) -> Result<Option<Block>, Unsure> {
    let mut found: Option<usize> = None;
    let mut content = 0;
    for (at, line) in lines.iter().enumerate() {
        if line.is_blank() || line.indent() > 0 || line.text.starts_with('\t') {
            continue;
        }
        let text = line.text.trim_start_matches('\u{feff}');
        if (text.starts_with("---") && content > 0) || text.starts_with("...") {
            return Err((line.number, "the file has several YAML documents"));
        }
        if text.starts_with("---") {
            continue;
        }
        content += 1;
        if text.starts_with(['{', '[']) && found.is_none() && content == 1 {
            return Err((line.number, "settings in braces"));
        }
        if key(&YamlLine { text, number: line.number }).is_some_and(|(name, _)| name == "hooks") {
            if found.is_some() {
                return Err((line.number, "duplicate key `hooks`"));
            }
            found = Some(at);
        }
    }
    let Some(at) = found else { return Ok(None) };
    read_block(lines, at).map(Some)
}

fn read_block(lines: &[YamlLine<'_>], at: usize) -> Result<Block, Unsure> {
    let rest = key(&lines[at]).map(|(_, rest)| rest).unwrap_or_default();
    if !is_nothing(rest, "{}") {
        return Err((lines[at].number, "nono cannot extend `hooks` in this form"));
    }
    let mut block = Block { key: at, is_empty: true, end: at + 1, ..Block::default() };
    let below = lines.iter().enumerate().skip(at + 1);
    for (at, line) in below {
        if line.is_blank() {
            continue;
        }
        if line.text.starts_with('\t') || line.text.trim_start_matches(' ').starts_with('\t') {
            return Err((line.number, "tabs before a key"));
        }
        if line.indent() == 0 {
            break;
        }
        if !rest.is_empty() {
            return Err((line.number, "nono cannot extend `hooks` in this form"));
        }
        if block.is_empty {
            block.indent = line.indent();
            block.is_empty = false;
        }
        read_line(&mut block, lines, at)?;
        block.end = at + 1;
    }
    Ok(block)
}

/// Read one line of the block: an event, an item of one, or the continuation of an item.
fn read_line(block: &mut Block, lines: &[YamlLine<'_>], at: usize) -> Result<(), Unsure> {
    let line = &lines[at];
    let unsure = |what| Err((line.number, what));
    if line.indent() < block.indent {
        return unsure("an indentation that nono does not follow");
    }
    if line.indent() == block.indent && !line.is_item() {
        let Some((name, rest)) = key(line) else { return unsure("a line that is not a key") };
        let is_empty = is_nothing(rest, "[]");
        // Settings that are not a list of hooks, as Hermes has some; nono adds nothing to them.
        let name = if is_empty { name.to_owned() } else { String::new() };
        let indent = block.indent + 2;
        block.events.push(YamlEvent {
            name,
            key: at,
            is_empty: true,
            end: at + 1,
            indent,
            items: Vec::new(),
        });
        return Ok(());
    }
    let Some(event) = block.events.last_mut() else { return unsure("an item without an event") };
    event.end = at + 1;
    if event.is_empty {
        event.is_empty = false;
        event.indent = line.indent();
    }
    if line.indent() == event.indent && line.is_item() {
        event.items.push(at..at + 1);
    } else if let Some(item) = event.items.last_mut() {
        item.end = at + 1;
    }
    Ok(())
}

/// Item as one line: programs that write YAML break long texts anywhere.
pub(super) fn flattened(lines: &[YamlLine<'_>]) -> String {
    let words = lines.iter().filter(|line| !line.is_blank()).flat_map(|line| line.body().split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}
