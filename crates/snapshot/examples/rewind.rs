//! Take a snapshot of a folder, wait, show what changed, and put it back if wanted.
//!
//! `cargo run -p nono-snapshot --example rewind -- FOLDER`. The session lies in a temporary folder and goes with the
//! program, and with it the way back from the restore: a real program keeps it.

#![allow(clippy::unnecessary_debug_formatting, reason = "it escapes what a name may hold")]

use std::error::Error;
use std::io::{self, Write};

use nono_snapshot::{Change, ChangeType, ExclusionConfig, Limits, Manifest, Restored, SnapshotManager};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let [folder] = &args[..] else { return Err("usage: rewind FOLDER".into()) };
    let session = tempfile::tempdir()?;
    let mut manager =
        SnapshotManager::new(session.path(), [folder], ExclusionConfig::default(), Limits::default())?;
    let mut out = io::stdout().lock();

    let baseline = manager.create_baseline()?;
    show_coverage(&mut out, &baseline)?;
    ask(&mut out, "Now change something, and press Enter. ")?;

    let (_, changes) = manager.create_incremental()?;
    if changes.is_empty() {
        writeln!(out, "Nothing changed.")?;
        return Ok(());
    }
    show_changes(&mut out, &changes)?;
    if ask(&mut out, "Put it back? [y/N] ")? != "y" {
        writeln!(out, "Left as it is.")?;
        return Ok(());
    }
    let restored = manager.restore_to(0)?;
    show_restored(&mut out, &restored)?;
    if restored.failed.is_empty() { Ok(()) } else { Err("not everything could be put back".into()) }
}

fn show_coverage(out: &mut impl Write, snapshot: &Manifest) -> io::Result<()> {
    let coverage = &snapshot.coverage;
    writeln!(out, "{} files, {} bytes, in {} folders", coverage.files, coverage.bytes, coverage.directories)?;
    for left_out in &coverage.left_out {
        for example in &left_out.examples {
            writeln!(out, "  not protected: {:?}: {}", example.path, example.reason)?;
        }
        let more = left_out.entries - left_out.examples.len() as u64;
        if more > 0 {
            writeln!(out, "  not protected: {more} more, for reasons of the same kind")?;
        }
    }
    coverage.notes.iter().try_for_each(|note| writeln!(out, "  note: {note}"))
}

/// Names are quoted and escaped: a file's name may hold anything, and this goes to a terminal.
fn show_changes(out: &mut impl Write, changes: &[Change]) -> io::Result<()> {
    for change in changes {
        let sign = match change.change_type {
            ChangeType::Created => '+',
            ChangeType::Deleted => '-',
            ChangeType::Modified => '~',
            ChangeType::PermissionsChanged => '%',
        };
        writeln!(out, "  {sign} {:?} ({:+} bytes)", change.path, change.size_delta)?;
    }
    Ok(())
}

fn show_restored(out: &mut impl Write, restored: &Restored) -> io::Result<()> {
    writeln!(out, "{} steps done", restored.done)?;
    for skipped in &restored.skipped {
        writeln!(out, "  left alone: {:?}: {}", skipped.path, skipped.why)?;
    }
    for failed in &restored.failed {
        writeln!(out, "  failed: {:?}: {}", failed.path, failed.error)?;
    }
    Ok(())
}

fn ask(out: &mut impl Write, question: &str) -> io::Result<String> {
    write!(out, "{question}")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_lowercase())
}
