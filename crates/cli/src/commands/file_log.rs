//! `nono log` and `nono cat`: list and print the versions of one file.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nono::checkpoints::ChangedBy;
use nono::diagnostic::{escape, shown};
use nono::file_log::{FileLog, FileLogError, LoggedVersion, VersionAuthor, json};

use super::checkpoints::{cut, manager};
use super::rollback::{place, resolved};
use crate::age::local;
use crate::args::{CatArgs, LogArgs};
use crate::failure::Failure;
use crate::host::host;
use crate::message;
use crate::units::grouped;

/// Maximum number of characters of a prompt or command.
const WORDS: usize = 72;

pub(crate) fn log(args: &LogArgs) -> Result<u8, Failure> {
    refuse_inside()?;
    let path = absolute(&args.path)?;
    if path.is_dir() {
        return Err(Failure::usage(format!("{} is a directory; name a file", shown(&path)))
            .hint("`nono turns` and `nono status` show what happened in a directory"));
    }
    let (sessions, checkpoints) = (place()?, manager(host(None)?.context)?);
    let log = FileLog { catalogue: &sessions.catalogue, checkpoints: &checkpoints };
    let versions = log.versions(&path)?;
    if args.json {
        message::answer_json(&json(&path, &versions))
    } else if versions.is_empty() {
        Err(Failure::refused(format!("no session or checkpoint has a version of {}", shown(&path)))
            .hint("`nono status` shows what is protected here"))
    } else {
        let mut lines = vec![format!("Versions of {}:", shown(&path))];
        lines.extend(versions.iter().flat_map(version));
        let shown = args.path.display();
        lines.extend([String::new(), format!("print one:  nono cat VERSION:{}", escape(&shown.to_string()))]);
        message::answer(&lines.join("\n"))
    }
}

pub(crate) fn cat(args: &CatArgs) -> Result<u8, Failure> {
    refuse_inside()?;
    let (id, path) = split(&args.version)?;
    let path = absolute(&path)?;
    let (sessions, checkpoints) = (place()?, manager(host(None)?.context)?);
    let log = FileLog { catalogue: &sessions.catalogue, checkpoints: &checkpoints };
    let bytes = log.content(&id, &path)?;
    print(&bytes).map_err(|error| Failure::stdout(&error))?;
    Ok(0)
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        // The file may contain control sequences.
        let text = String::from_utf8_lossy(bytes);
        for line in text.split_inclusive('\n') {
            let end = if line.ends_with('\n') { "\n" } else { "" };
            write!(stdout, "{}{end}", escape(line.trim_end_matches('\n')).replace("\\u{9}", "\t"))?;
        }
    } else {
        stdout.write_all(bytes)?;
    }
    stdout.flush()
}

fn refuse_inside() -> Result<(), Failure> {
    if host(None)?.nested {
        let why = "file versions cannot be read inside a sandbox";
        return Err(
            Failure::new(why).hint("run this command outside; inside there is `nono checkpoints diff`")
        );
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    Ok(resolved(&host(None)?.context.cwd.join(path)))
}

fn split(version: &OsStr) -> Result<(String, PathBuf), Failure> {
    let bytes = version.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b':').filter(|at| *at > 0 && at + 1 < bytes.len());
    let Some(at) = at else {
        return Err(Failure::usage("write it as ID:FILE, for example: nono cat 2:src/main.rs"));
    };
    let id = String::from_utf8_lossy(&bytes[..at]).into_owned();
    Ok((id, PathBuf::from(OsStr::from_bytes(&bytes[at + 1..]))))
}

/// Lines of a version: `  1f3a9c20  2026-11-15 18:22:03 +01:00  (+1/-0)  claude-code: Bash: sed -i …`, and the prompt.
fn version(one: &LoggedVersion) -> Vec<String> {
    let id = one.new.map_or_else(|| "gone    ".to_owned(), |new| new.hex().chars().take(8).collect());
    let began = matches!(one.by, VersionAuthor::Project(ChangedBy::Beginning));
    let counts = match (one.old, one.new, one.lines) {
        (_, Some(_), Some((lines, _))) if began => format!("{} lines", grouped(lines)),
        (_, None, _) => "deleted".to_owned(),
        (None, Some(_), Some((lines, _))) => format!("created, +{}", grouped(lines)),
        (None, Some(_), None) => "created".to_owned(),
        (Some(_), Some(_), Some((new, old))) => format!("+{}/-{}", grouped(new), grouped(old)),
        (Some(_), Some(_), None) => "changed".to_owned(),
    };
    let mut lines = vec![format!("  {id}  {}  ({counts})  {}", local(&one.time), author(&one.by))];
    if let VersionAuthor::Project(ChangedBy::Turn { prompt: Some(prompt), .. }) = &one.by {
        lines.push(format!("            \u{201c}{}\u{201d}", cut(prompt, WORDS)));
    }
    lines
}

fn author(by: &VersionAuthor) -> String {
    match by {
        VersionAuthor::Session { id, command } => {
            format!("session {}: {}", escape(id), cut(&command.join(" "), WORDS))
        }
        VersionAuthor::Project(ChangedBy::Turn { key, tool, reason, at_once, .. }) => {
            let who = key.agent.as_deref().or(key.run.as_deref()).unwrap_or("an agent");
            let what = reason.as_deref().map(|reason| reason.strip_prefix("before ").unwrap_or(reason));
            let what = what.or(tool.as_deref()).unwrap_or("a call");
            let beside =
                if *at_once > 1 { format!(", or another of {at_once} calls at once") } else { String::new() };
            format!("{}: {}{beside}", cut(who, 40), cut(what, WORDS))
        }
        VersionAuthor::Project(ChangedBy::Restore) => "restored by nono".to_owned(),
        VersionAuthor::Project(ChangedBy::Others) => "you or another program".to_owned(),
        VersionAuthor::Project(ChangedBy::Beginning) => "as it was when the history began".to_owned(),
    }
}

impl From<FileLogError> for Failure {
    fn from(error: FileLogError) -> Failure {
        let text = escape(&error.to_string());
        match error {
            FileLogError::Rollback(error) => error.into(),
            FileLogError::Checkpoint(error) => error.into(),
            FileLogError::NoVersion { path, .. } | FileLogError::Absent { path } => {
                Failure::refused(text).hint(format!("`nono log {}` shows its versions", shown(&path)))
            }
            FileLogError::NotKept { .. } => Failure::refused(text),
        }
    }
}
