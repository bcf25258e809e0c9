//! Patches in git's format, which `patch -p1` reads too.
//!
//! Applying a patch must yield the new tree or fail; what a patch cannot express is written as a comment. Lines that
//! begin with `#` between files are skipped by both programs.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nono_snapshot::SnapshotManager;
use nono_snapshot::diff::{FileKind, Version};

use super::{Hunk, binary, hunks, looks_binary, names, target, what};
use crate::rollback::changes::{ChangeSet, Item, ItemKind, similarity};
use crate::rollback::error::RollbackError;

/// Largest text written as hunks; a larger one is written as a whole, like a binary file.
const TEXT: usize = 16 << 20;
/// Largest content written to a patch; a larger file is only named.
const LITERAL: u64 = 64 << 20;
const CONTEXT: usize = 3;

/// Write a patch for `git apply` and `patch -p1`, relative to the root of the items. With several roots, their names are
/// the first path components: it applies to a folder that contains them all. What a patch cannot express, and what git
/// refuses to patch (its own `.git`), is written as a comment.
pub fn write_patch(
    manager: &SnapshotManager,
    set: &ChangeSet,
    items: &[&Item],
    out: &mut dyn Write,
) -> Result<(), RollbackError> {
    let mut items = items.to_vec();
    items.sort_by_key(|item| &item.path);
    for item in items {
        let writer = Writer { manager, set, item };
        let mut text = Vec::new();
        writer.item(&mut text)?;
        out.write_all(&text).map_err(RollbackError::io("the patch"))?;
    }
    Ok(())
}

struct Writer<'a> {
    manager: &'a SnapshotManager,
    set: &'a ChangeSet,
    item: &'a Item,
}

/// One side of a section: a regular file, or a symlink as a file that contains its target.
struct PatchSide<'a> {
    version: &'a Version,
    name: Vec<u8>,
    /// `None`: too large for a patch, only named.
    content: Option<Vec<u8>>,
}

impl PatchSide<'_> {
    fn is_link(&self) -> bool {
        self.version.kind == FileKind::Symlink
    }

    /// File mode as git stores it.
    fn mode(&self) -> &'static str {
        match self.version.mode & 0o100 {
            _ if self.is_link() => "120000",
            0 => "100644",
            _ => "100755",
        }
    }
}

impl Writer<'_> {
    fn item(&self, out: &mut Vec<u8>) -> Result<(), RollbackError> {
        let (old, new) = (self.item.old.as_ref(), self.item.new.as_ref());
        let sides = (self.side(old, self.item.old_path())?, self.side(new, &self.item.path)?);
        let written = match &sides {
            // A change of kind is a deletion and a creation in git's format.
            (Some(old), Some(new)) if old.is_link() != new.is_link() => {
                self.section(Some(old), None, out).and_then(|()| self.section(None, Some(new), out))
            }
            (None, None) => Ok(()),
            (old, new) => self.section(old.as_ref(), new.as_ref(), out),
        };
        written.and_then(|()| self.unsaid(old, new, &sides, out)).map_err(RollbackError::io(&self.item.path))
    }

    fn name(&self, path: &Path) -> Vec<u8> {
        self.set.shown(path).as_os_str().as_bytes().to_vec()
    }

    /// Content of this version for the patch; None for directories, FIFOs and the like.
    fn side<'a>(
        &self,
        version: Option<&'a Version>,
        path: &Path,
    ) -> Result<Option<PatchSide<'a>>, RollbackError> {
        let Some(version) = version else { return Ok(None) };
        let same = self.item.old.as_ref().zip(self.item.new.as_ref());
        let same = same.is_some_and(|(old, new)| old.hash == new.hash && old.hash.is_some());
        let content = match (version.kind, version.hash) {
            (FileKind::Symlink, _) => Some(target(version)),
            // Content not needed: only the name or the mode differs.
            (FileKind::File, _) if same => Some(Vec::new()),
            (FileKind::File, Some(hash)) => self.manager.content(hash, LITERAL)?,
            _ => return Ok(None),
        };
        Ok(Some(PatchSide { version, name: self.name(path), content }))
    }

    /// Write one file of the patch. git refuses a whole patch that touches `.git`: such a section is written as a
    /// comment.
    fn section(
        &self,
        old: Option<&PatchSide<'_>>,
        new: Option<&PatchSide<'_>>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let refused = |side: &&PatchSide<'_>| names::refused_by_git(&side.name, side.is_link());
        if ![old, new].iter().flatten().any(refused) {
            return section(&self.item.kind, old, new, out);
        }
        let mut text = Vec::new();
        section(&self.item.kind, old, new, &mut text)?;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if line == b"GIT binary patch\n" {
                return out.write_all(b"# a binary file\n");
            }
            out.write_all(b"# ")?;
            out.write_all(line)?;
        }
        Ok(())
    }

    /// Comment on changes that a patch cannot express.
    fn unsaid(
        &self,
        old: Option<&Version>,
        new: Option<&Version>,
        sides: &(Option<PatchSide<'_>>, Option<PatchSide<'_>>),
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let name = names::quoted("", &self.name(&self.item.path));
        let mut comment = |text: &str| {
            out.write_all(b"# ")?;
            out.write_all(&name)?;
            writeln!(out, ": {text}")
        };
        for line in self.item.history.iter().flatten() {
            comment(line)?;
        }
        if let (Some(old), Some(new)) = (old, new)
            && old.kind == new.kind
        {
            if old.mode != new.mode && (sides.0.is_none() || old.mode & 0o100 == new.mode & 0o100) {
                return comment(&format!("permissions {:04o}, now {:04o}", old.mode, new.mode));
            }
            if self.item.kind == ItemKind::PermissionsChanged && old.mode == new.mode {
                return comment("another owner, or other extended attributes");
            }
            return Ok(());
        }
        if let Some(old) = old.filter(|_| sides.0.is_none()) {
            comment(&format!("was {}", what(old)))?;
        }
        match new.filter(|_| sides.1.is_none()) {
            Some(new) => comment(&format!("is {} now", what(new))),
            None => Ok(()),
        }
    }
}

fn section(
    kind: &ItemKind,
    old: Option<&PatchSide<'_>>,
    new: Option<&PatchSide<'_>>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let mut head = Vec::new();
    modes(old, new, &mut head)?;
    if let (ItemKind::Renamed { .. }, Some(old), Some(new)) = (kind, old, new) {
        rename(old, new, &mut head)?;
    }
    let mut body = Vec::new();
    content(old, new, &mut head, &mut body)?;
    if head.is_empty() && body.is_empty() {
        return Ok(());
    }
    let either = |first: Option<&'_ PatchSide<'_>>, second: Option<&'_ PatchSide<'_>>, prefix| {
        first.or(second).map(|side| names::in_first_line(prefix, &side.name)).unwrap_or_default()
    };
    let (old, new) = (either(old, new, "a/"), either(new, old, "b/"));
    out.extend([b"diff --git ", &*old, b" ", &*new, b"\n"].concat());
    out.extend(head);
    out.extend(body);
    Ok(())
}

fn modes(old: Option<&PatchSide<'_>>, new: Option<&PatchSide<'_>>, out: &mut Vec<u8>) -> io::Result<()> {
    match (old, new) {
        (Some(old), Some(new)) if old.mode() != new.mode() => {
            write!(out, "old mode {}\nnew mode {}\n", old.mode(), new.mode())
        }
        (Some(old), None) => {
            writeln!(out, "deleted file mode {}", old.mode())?;
            // `git apply -R` recreates a deleted file as a plain one, unless it finds a mode here.
            if old.mode() == "100644" { Ok(()) } else { writeln!(out, "new mode {}", old.mode()) }
        }
        (None, Some(new)) => writeln!(out, "new file mode {}", new.mode()),
        _ => Ok(()),
    }
}

fn rename(old: &PatchSide<'_>, new: &PatchSide<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    let bytes = |side: &PatchSide<'_>| side.content.clone().unwrap_or_default();
    let percent = similarity(&bytes(old), &bytes(new));
    writeln!(out, "similarity index {percent}%")?;
    for (word, side) in [("from", old), ("to", new)] {
        write!(out, "rename {word} ")?;
        out.extend(names::quoted("", &side.name));
        out.push(b'\n');
    }
    Ok(())
}

fn content(
    old: Option<&PatchSide<'_>>,
    new: Option<&PatchSide<'_>>,
    head: &mut Vec<u8>,
    body: &mut Vec<u8>,
) -> io::Result<()> {
    let bytes = |side: Option<&'_ PatchSide<'_>>| side.map_or(Some(Vec::new()), |side| side.content.clone());
    let header = |side: Option<&PatchSide<'_>>, prefix: &str| {
        side.map_or(b"/dev/null".to_vec(), |side| names::in_header(prefix, &side.name))
    };
    let (Some(before), Some(after)) = (bytes(old), bytes(new)) else {
        // git refuses this and names the file: better than a patch that does less than it says.
        let either = |side: Option<&PatchSide<'_>>, prefix: &str| {
            side.map_or(b"/dev/null".to_vec(), |side| names::quoted(prefix, &side.name))
        };
        let line = [b"Binary files ", &*either(old, "a/"), b" and ", &*either(new, "b/"), b" differ\n"];
        body.extend(line.concat());
        return Ok(());
    };
    let both = old.is_some() && new.is_some();
    if both && before == after {
        return Ok(());
    }
    let name = |side: Option<&PatchSide<'_>>, bytes: &[u8]| {
        side.map_or(binary::ABSENT.to_owned(), |_| binary::git_name(bytes))
    };
    write!(head, "index {}..{}", name(old, &before), name(new, &after))?;
    match (old, new) {
        (Some(old), Some(new)) if old.mode() == new.mode() => writeln!(head, " {}", new.mode())?,
        _ => writeln!(head)?,
    }
    if before.is_empty() && after.is_empty() {
        return Ok(());
    }
    let is_text = |bytes: &[u8]| bytes.len() <= TEXT && !looks_binary(bytes);
    if !is_text(&before) || !is_text(&after) {
        return binary::write_literals(&before, &after, body);
    }
    for (mark, side, prefix) in [("---", old, "a/"), ("+++", new, "b/")] {
        body.extend([mark.as_bytes(), b" ", &*header(side, prefix), b"\n"].concat());
    }
    hunks::hunks(&before, &after, CONTEXT).iter().try_for_each(|hunk| write_hunk(hunk, body))
}

pub(super) fn write_hunk(hunk: &Hunk, out: &mut Vec<u8>) -> io::Result<()> {
    let range = |start: usize, count: usize| match count {
        1 => start.to_string(),
        _ => format!("{start},{count}"),
    };
    let (old, new) = (range(hunk.old_start, hunk.old_count), range(hunk.new_start, hunk.new_count));
    writeln!(out, "@@ -{old} +{new} @@")?;
    for line in &hunk.lines {
        out.push(line.kind.sign() as u8);
        line.segments.iter().for_each(|segment| out.extend(&segment.text));
        out.push(b'\n');
        if line.unterminated {
            out.extend(b"\\ No newline at end of file\n");
        }
    }
    Ok(())
}
