//! Header lines of a file's diff.

use nono::rollback::patch::Blob;
use nono::rollback::{Body, ChangeSet, FileDiff, Item, ItemKind};

use super::{Span, Style};
use crate::review::text;
use crate::units::bytes;

/// Mark of a change, shown before the name.
pub(crate) fn mark(kind: &ItemKind) -> char {
    match kind {
        ItemKind::Created => '+',
        ItemKind::Modified => '~',
        ItemKind::Deleted => '-',
        ItemKind::PermissionsChanged => 'M',
        ItemKind::Renamed { .. } => 'R',
    }
}

/// Name of the file; both names of a rename.
pub(crate) fn title(set: &ChangeSet, item: &Item) -> String {
    let path = text::name(&set.shown(&item.path));
    match &item.kind {
        ItemKind::Renamed { from } => format!("{} -> {path}", text::name(&set.shown(from))),
        _ => path,
    }
}

/// Lines with the mark and the name, the reason why it will execute later, and a description of content without lines.
pub(crate) fn header(set: &ChangeSet, item: &Item, diff: &FileDiff) -> Vec<Vec<Span>> {
    let title = format!("{} {}", mark(&item.kind), title(set, item));
    let mut first = vec![Span::new(title, Style::Title)];
    match (diff.old_mode, diff.new_mode) {
        (Some(old), Some(new)) => first.push(Span::new(format!("  {old:04o} -> {new:04o}"), Style::Faint)),
        (None, Some(mode)) | (Some(mode), None) if mode & 0o111 != 0 && !is_link(diff) => {
            first.push(Span::new(format!("  {mode:04o}"), Style::Faint));
        }
        _ => {}
    }
    let mut lines = vec![first];
    lines.extend(item.executes_later.map(|later| {
        vec![Span::new(format!("  will execute later ({}): {}", later.what, later.why), Style::Warning)]
    }));
    lines.extend(words(&diff.body).into_iter().map(|text| vec![Span::plain(format!("  {text}"))]));
    lines
}

fn is_link(diff: &FileDiff) -> bool {
    matches!(diff.body, Body::Symlink { .. })
}

/// Description of content that is not compared by lines.
fn words(body: &Body) -> Vec<String> {
    let pair = |what: &str, old: Option<&Blob>, new: Option<&Blob>| {
        let side = |word: &str, blob: Option<&Blob>| {
            blob.map(|blob| format!("{what}, {word}: {}, sha256 {}", bytes(blob.size), blob.hash))
        };
        [side("before", old), side("now", new)].into_iter().flatten().collect()
    };
    match body {
        Body::Text(_) => Vec::new(),
        Body::Binary { old, new } => pair("binary", old.as_ref(), new.as_ref()),
        Body::Large { old, new } => pair("too large to compare", old.as_ref(), new.as_ref()),
        Body::Symlink { old, new } => {
            let side = |word: &str, target: &Option<Vec<u8>>| {
                let target = target.as_ref()?;
                Some(format!("link, {word}: {}", text::content(target, 0)))
            };
            [side("before", old), side("now", new)].into_iter().flatten().collect()
        }
        Body::Other(text) => vec![nono::diagnostic::escape(text)],
    }
}
