//! Checks of a request before anything is created, always in the same order.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nono_supervisor::{CommandSpec, command_env};

use super::{ExecError, ExecHost, ExecRequest};
use nono_supervisor::program::{self, ProgramError};

/// The command as it will be executed, and its working directory.
pub(super) struct Checked {
    pub(super) command: CommandSpec,
    pub(super) workdir: PathBuf,
}

pub(super) fn check(request: &ExecRequest<'_>, host: &ExecHost) -> Result<Checked, ExecError> {
    let name = request.command.first().ok_or(ExecError::Empty)?;
    let cwd = request.cwd.as_ref().map_or_else(|| host.cwd.clone(), |cwd| host.cwd.join(cwd));
    let program = find(name, host, &cwd)?;
    if request.command.iter().any(|argument| command_env::has_nul(argument)) {
        return Err(ExecError::Nul);
    }
    let env = command_env::sorted(&request.env)?;
    let workdir = cwd.canonicalize().map_err(|source| ExecError::Cwd { path: cwd, source })?;
    Ok(Checked { command: CommandSpec { program, argv: request.command.clone(), env }, workdir })
}

/// A timeout in seconds for [`ExecRequest::timeout`]. A value too large for a `Duration` means no limit.
pub fn seconds(seconds: f64) -> Result<Option<Duration>, ExecError> {
    if seconds.is_nan() || seconds < 0.0 {
        return Err(ExecError::Timeout(seconds));
    }
    Ok(Duration::try_from_secs_f64(seconds).ok())
}

/// Find the program. A file that exists and is not executable is left to the kernel to refuse.
fn find(name: &OsStr, host: &ExecHost, cwd: &Path) -> Result<PathBuf, ExecError> {
    let has_slash = name.as_bytes().contains(&b'/');
    // Relative entries of PATH are relative to this process's directory, not the command's.
    let from = if has_slash { cwd } else { &host.cwd };
    if !has_slash && host.path.as_ref().is_none_or(|path| path.is_empty()) {
        // An empty PATH would count as one empty entry, which means the current directory.
        return Err(ExecError::NotOnPath(name.into()));
    }
    match program::find(name, host.path.as_deref(), from) {
        Ok(program) | Err(ProgramError::NotExecutable(program)) => Ok(program),
        Err(ProgramError::IsDirectory(program)) if has_slash => Ok(program),
        Err(_) if has_slash => Err(ExecError::NotFound(name.into())),
        Err(_) => Err(ExecError::NotOnPath(name.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> ExecHost {
        ExecHost {
            cwd: "/".into(),
            path: Some("/nowhere:usr/bin".into()),
            session_base: "/nowhere".into(),
            state_dir: None,
            nested: false,
        }
    }

    fn asked(command: &[&str], cwd: Option<&str>) -> Result<PathBuf, ExecError> {
        let command = command.iter().map(Into::into).collect();
        let request = ExecRequest { command, cwd: cwd.map(Into::into), ..ExecRequest::default() };
        check(&request, &host()).map(|checked| checked.command.program)
    }

    #[test]
    fn a_program_is_found_where_it_will_be_executed() {
        assert_eq!(asked(&["env"], Some("/etc")).unwrap(), Path::new("/usr/bin/env"), "PATH is the caller's");
        assert_eq!(asked(&["./env"], Some("/usr/bin")).unwrap(), Path::new("/usr/bin/./env"));
        assert_eq!(asked(&["./env"], Some("usr/bin")).unwrap(), Path::new("/usr/bin/./env"));
        assert!(matches!(asked(&["./env"], None), Err(ExecError::NotFound(_))));
        assert!(matches!(asked(&["no-such-thing"], None), Err(ExecError::NotOnPath(_))));
        assert!(matches!(asked(&[""], None), Err(ExecError::NotOnPath(_))));
        assert_eq!(asked(&["/etc/passwd"], None).unwrap(), Path::new("/etc/passwd"), "the kernel refuses it");
    }

    #[test]
    fn the_order_of_the_checks() {
        assert!(matches!(asked(&[], Some("/nowhere")), Err(ExecError::Empty)));
        assert!(matches!(asked(&["no-such-thing", "\0"], Some("/nowhere")), Err(ExecError::NotOnPath(_))));
        assert!(matches!(asked(&["env", "\0"], Some("/nowhere")), Err(ExecError::Nul)));
        assert!(matches!(asked(&["env"], Some("/nowhere")), Err(ExecError::Cwd { .. })));
    }

    #[test]
    fn times() {
        assert_eq!(seconds(1.5).unwrap(), Some(Duration::from_millis(1500)));
        assert_eq!(seconds(-0.0).unwrap(), Some(Duration::ZERO));
        for endless in [f64::INFINITY, 1e300] {
            assert_eq!(seconds(endless).unwrap(), None);
        }
        for wrong in [-1.0, f64::NAN, f64::NEG_INFINITY] {
            let error = seconds(wrong).unwrap_err().to_string();
            assert!(error.contains("timeout_secs must be non-negative"), "{error}");
        }
    }
}
