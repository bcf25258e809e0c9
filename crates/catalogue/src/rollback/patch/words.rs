//! Word-level comparison of replaced lines with their replacements.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::Segment;

/// Largest block compared, in bytes; a longer one is shown without marks.
const COMPARED: usize = 32 << 10;
/// Smallest share of common words, in percent; below it the lines are unrelated and marks would be noise.
const COMMON: usize = 30;

/// Segments of each line, with the differing words marked.
pub(super) fn compare(old: &[&[u8]], new: &[&[u8]]) -> (Vec<Vec<Segment>>, Vec<Vec<Segment>>) {
    let size = |lines: &[&[u8]]| lines.iter().map(|line| line.len()).sum::<usize>();
    if old.is_empty() || new.is_empty() || size(old).max(size(new)) > COMPARED {
        let plain = |lines: &[&[u8]]| lines.iter().map(|line| whole(line)).collect();
        return (plain(old), plain(new));
    }
    let (mut old, mut new) = (Block::new(old), Block::new(new));
    for op in capture_diff_slices(Algorithm::Myers, &old.tokens, &new.tokens) {
        if !matches!(op, DiffOp::Equal { .. }) {
            old.mark(op.old_range());
            new.mark(op.new_range());
        }
    }
    (old.lines(), new.lines())
}

fn without_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// A line without marks.
pub(super) fn whole(line: &[u8]) -> Vec<Segment> {
    segments(&[(without_end(line), false)])
}

struct Block<'a> {
    tokens: Vec<&'a [u8]>,
    differs: Vec<bool>,
    /// Token range of each line, without the token for its end.
    lines: Vec<Range<usize>>,
}

impl<'a> Block<'a> {
    fn new(lines: &[&'a [u8]]) -> Block<'a> {
        let mut block = Block { tokens: Vec::new(), differs: Vec::new(), lines: Vec::new() };
        for line in lines {
            let start = block.tokens.len();
            block.tokens.extend(without_end(line).chunk_by(|a, b| together(*a, *b)));
            block.lines.push(start..block.tokens.len());
            // Words match across lines only where the line breaks match too.
            block.tokens.push(b"\n");
        }
        block.differs = vec![false; block.tokens.len()];
        block
    }

    fn mark(&mut self, tokens: Range<usize>) {
        self.differs[tokens].fill(true);
    }

    fn lines(&self) -> Vec<Vec<Segment>> {
        self.lines.iter().map(|line| self.line(line.clone())).collect()
    }

    fn line(&self, range: Range<usize>) -> Vec<Segment> {
        let tokens = &self.tokens[range.clone()];
        let mut differs = self.differs[range].to_vec();
        let inked = |only: &dyn Fn(usize) -> bool| -> usize {
            let tokens = tokens.iter().enumerate().filter(|(index, token)| only(*index) && !is_blank(token));
            tokens.map(|(_, token)| token.len()).sum()
        };
        let all = inked(&|_| true);
        if inked(&|index| !differs[index]) * 100 < all * COMMON {
            differs.fill(false);
        }
        // A blank between two words that differ belongs to them.
        for index in 1..tokens.len().saturating_sub(1) {
            if is_blank(tokens[index]) && differs[index - 1] && differs[index + 1] {
                differs[index] = true;
            }
        }
        let parts: Vec<(&[u8], bool)> = tokens.iter().copied().zip(differs).collect();
        segments(&parts)
    }
}

/// Join neighbours of the same kind into one segment.
fn segments(parts: &[(&[u8], bool)]) -> Vec<Segment> {
    let runs = parts.chunk_by(|a, b| a.1 == b.1);
    let runs = runs.map(|run| Segment {
        text: run.iter().flat_map(|part| part.0).copied().collect(),
        differs: run[0].1,
    });
    runs.filter(|segment| !segment.text.is_empty()).collect()
}

fn is_blank(token: &[u8]) -> bool {
    token.iter().all(u8::is_ascii_whitespace)
}

/// Whether two bytes belong to one token: words and blanks hold together, punctuation stands alone. Bytes of multi-byte
/// characters count as word bytes, so that no character is cut.
fn together(a: u8, b: u8) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    (word(a) && word(b)) || (a.is_ascii_whitespace() && b.is_ascii_whitespace())
}
