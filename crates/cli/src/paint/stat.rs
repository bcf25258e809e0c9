//! Number of changed lines per file, with a bar.

use nono::rollback::patch::{Blob, line_counts};
use nono::rollback::{Body, ChangeSet, FileDiff, Item};

use super::{Span, Style, mark, title};
use crate::review::text;
use crate::units::{bytes, some};

/// Maximum length of a bar.
const BAR: usize = 40;

/// Counts of one file.
#[derive(Clone, Debug)]
pub(crate) struct Stat {
    title: String,
    added: usize,
    removed: usize,
    /// Description instead of line counts.
    words: Option<String>,
}

impl Stat {
    pub(crate) fn new(set: &ChangeSet, item: &Item, diff: &FileDiff) -> Stat {
        let title = format!("{} {}", mark(&item.kind), title(set, item));
        let size = |blob: &Option<Blob>| blob.map_or("nothing".to_owned(), |blob| bytes(blob.size));
        let sizes = |what: &str, old, new| Some(format!("{what}, {} -> {}", size(old), size(new)));
        let (added, removed, words) = match &diff.body {
            Body::Text(hunks) => {
                let (added, removed) = line_counts(hunks);
                (added, removed, None)
            }
            Body::Binary { old, new } => (0, 0, sizes("binary", old, new)),
            Body::Large { old, new } => (0, 0, sizes("large", old, new)),
            Body::Symlink { .. } => (0, 0, Some("link".to_owned())),
            Body::Other(text) => (0, 0, Some(nono::diagnostic::escape(text))),
        };
        Stat { title, added, removed, words }
    }
}

/// Lines for all files, and the sum.
pub(crate) fn stat(stats: &[Stat], width: usize) -> Vec<Vec<Span>> {
    // Long names are cut at their beginning: the end tells them apart.
    let room = width.saturating_sub(BAR + 12).max(20);
    let names: Vec<String> = stats.iter().map(|one| text::keep_end(&one.title, room)).collect();
    let name_width = names.iter().map(|name| text::columns(name)).max().unwrap_or(0);
    let most = stats.iter().map(|one| one.added + one.removed).max().unwrap_or(0);
    let digits = most.to_string().len();
    let mut lines: Vec<Vec<Span>> = stats
        .iter()
        .zip(names)
        .map(|(one, name)| {
            let filled = " ".repeat(name_width - text::columns(&name));
            let mut line = vec![Span::plain(format!("{name}{filled} | "))];
            line.extend(bar(one, most, digits));
            line
        })
        .collect();
    lines.push(vec![Span::plain(sum(stats))]);
    lines
}

fn bar(stat: &Stat, most: usize, digits: usize) -> Vec<Span> {
    if let Some(words) = &stat.words {
        return vec![Span::plain(words.clone())];
    }
    let scaled = |count: usize| if most <= BAR { count } else { (count * BAR).div_ceil(most) };
    vec![
        Span::plain(format!("{:>digits$} ", stat.added + stat.removed)),
        Span::new("+".repeat(scaled(stat.added)), Style::Added),
        Span::new("-".repeat(scaled(stat.removed)), Style::Removed),
    ]
}

fn sum(stats: &[Stat]) -> String {
    let (added, removed) = stats.iter().fold((0, 0), |sum, one| (sum.0 + one.added, sum.1 + one.removed));
    let (added, removed) = (some(added, "line"), some(removed, "line"));
    format!("{}, {added} added, {removed} removed", some(stats.len(), "path"))
}
