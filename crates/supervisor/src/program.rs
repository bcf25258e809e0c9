//! Finding the command's program file, as a shell does.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nono_sys::process;
use thiserror::Error;

/// Reasons why there is nothing to execute. `is_found` distinguishes a shell's 126 from its 127.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    #[error("{}: command not found", .0.display())]
    NotFound(PathBuf),
    #[error("{}: no such file", .0.display())]
    NoSuchFile(PathBuf),
    #[error("{} is a directory, not a program", .0.display())]
    IsDirectory(PathBuf),
    #[error("{} is not executable", .0.display())]
    NotExecutable(PathBuf),
    #[error("the command is empty")]
    Empty,
}

impl ProgramError {
    pub fn is_found(&self) -> bool {
        matches!(self, ProgramError::IsDirectory(_) | ProgramError::NotExecutable(_))
    }
}

/// The file that `name` means: itself when it contains a slash, else the first executable of that name in `path`.
pub fn find(name: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, ProgramError> {
    let given = Path::new(name);
    if name.is_empty() {
        return Err(ProgramError::Empty);
    }
    if given.components().count() > 1 || name.as_encoded_bytes().contains(&b'/') {
        let file = cwd.join(given);
        if !file.exists() {
            return Err(ProgramError::NoSuchFile(given.to_owned()));
        }
        return check(file);
    }
    let mut refused = None;
    for dir in std::env::split_paths(path.unwrap_or_default()) {
        let file = cwd.join(dir).join(given);
        if file.exists() {
            match check(file) {
                Ok(file) => return Ok(file),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
    }
    Err(refused.unwrap_or_else(|| ProgramError::NotFound(given.to_owned())))
}

fn check(file: PathBuf) -> Result<PathBuf, ProgramError> {
    if file.is_dir() {
        Err(ProgramError::IsDirectory(file))
    } else if process::can_execute(&file) {
        Ok(file)
    } else {
        Err(ProgramError::NotExecutable(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(name: &str, path: &str) -> Result<PathBuf, ProgramError> {
        find(OsStr::new(name), Some(OsStr::new(path)), Path::new("/"))
    }

    #[test]
    fn the_first_executable_on_the_path_wins() {
        assert_eq!(find_in("sh", "/nowhere:/bin:/usr/bin"), Ok("/bin/sh".into()));
        assert_eq!(find_in("usr/bin/env", ""), Ok("/usr/bin/env".into()));
    }

    #[test]
    fn what_cannot_run_is_told_apart() {
        assert_eq!(find_in("no-such-thing", "/bin"), Err(ProgramError::NotFound("no-such-thing".into())));
        assert_eq!(find_in("/no/such", "/bin"), Err(ProgramError::NoSuchFile("/no/such".into())));
        assert_eq!(find_in("/usr", ""), Err(ProgramError::IsDirectory("/usr".into())));
        assert_eq!(find_in("/etc/passwd", ""), Err(ProgramError::NotExecutable("/etc/passwd".into())));
        assert_eq!(find_in("", "/bin"), Err(ProgramError::Empty));
    }
}
