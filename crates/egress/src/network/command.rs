//! Running a program that prints a secret, outside the sandbox: bounded in time and output.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use thiserror::Error;

use nono_policy::text::escape;

/// Time limit: the user may have to unlock something.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const MOST: usize = 64 << 10;
/// Maximum length of the error output that is quoted.
const WORDS: usize = 1000;

#[derive(Debug, Error)]
pub enum CommandError {
    #[error("it cannot be run: {}", nono_sys::errno::describe(.0))]
    Run(#[from] io::Error),
    #[error("it did not end within {} s", .0.as_secs())]
    Late(Duration),
    #[error("it printed more than {MOST} bytes")]
    TooMuch,
    #[error("it failed ({status}){}", said(.words))]
    Failed { status: ExitStatus, words: String },
    #[error("its output is not text")]
    NotText,
}

fn said(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

/// Run the program with this environment, and return its output.
pub(super) fn output(
    program: &Path,
    args: &[OsString],
    env: &[(OsString, OsString)],
    cwd: &Path,
    patience: Duration,
) -> Result<String, CommandError> {
    let deadline = Instant::now() + patience;
    let child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd)
        // A process group, so that all of it can be killed.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut running = Running(child);
    let (said, words) = running.listen(deadline)?.ok_or(CommandError::Late(patience))?;
    let status = running.wait(deadline)?.ok_or(CommandError::Late(patience))?;
    if said.len() > MOST {
        return Err(CommandError::TooMuch);
    }
    if !status.success() {
        let words = String::from_utf8_lossy(&words);
        let words = escape(words.trim().chars().take(WORDS).collect::<String>().as_str());
        return Err(CommandError::Failed { status, words });
    }
    String::from_utf8(said).map_err(|_| CommandError::NotText)
}

struct Running(Child);

impl Running {
    /// Read both outputs to their ends; None after the deadline. Excess output is read and discarded.
    fn listen(&mut self, deadline: Instant) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        let (mut output, mut errors) = (self.0.stdout.take(), self.0.stderr.take());
        let (mut said, mut words) = (Vec::new(), Vec::new());
        while output.is_some() || errors.is_some() {
            let fds = [
                output.as_ref().map(|pipe| (pipe.as_fd(), false)),
                errors.as_ref().map(|pipe| (pipe.as_fd(), false)),
            ];
            let Some(left) = left(deadline) else { return Ok(None) };
            let ready = nono_sys::wait::poll(&fds, Some(left))?;
            if ready[0] {
                take(&mut output, &mut said)?;
            }
            if ready[1] {
                take(&mut errors, &mut words)?;
            }
        }
        Ok(Some((said, words)))
    }

    fn wait(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        let Some(pid) = Pid::from_raw(self.0.id().cast_signed()) else { return Ok(None) };
        let handle = pidfd_open(pid, PidfdFlags::empty())?;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            let Some(left) = left(deadline) else { return Ok(None) };
            nono_sys::wait::poll(&[Some((handle.as_fd(), false))], Some(left))?;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Once waited for, its process id may belong to another process.
        if matches!(self.0.try_wait(), Ok(None)) {
            if let Some(group) = Pid::from_raw(self.0.id().cast_signed()) {
                // It may have ended meanwhile.
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = self.0.wait();
        }
    }
}

fn left(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

fn take<R: Read>(pipe: &mut Option<R>, into: &mut Vec<u8>) -> io::Result<()> {
    let Some(reader) = pipe else { return Ok(()) };
    let mut chunk = [0; 4096];
    match reader.read(&mut chunk) {
        Ok(0) => *pipe = None,
        Ok(got) if into.len() <= MOST => into.extend_from_slice(&chunk[..got]),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> Result<String, CommandError> {
        let env = [("PATH".into(), "/usr/bin:/bin".into()), ("X".into(), "value".into())];
        output(Path::new("/bin/sh"), &["-c".into(), script.into()], &env, Path::new("/"), patience)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn stdout_of_the_command_is_the_secret() {
        assert_eq!(shell("echo $X; pwd; echo not this >&2", LONG).unwrap(), "value\n/\n");
    }

    #[test]
    fn its_last_words_are_shown_when_it_fails() {
        let error = shell("echo secret; printf 'no\\033key' >&2; exit 3", LONG).unwrap_err().to_string();
        assert!(
            error.contains("no\\u{1b}key") && error.contains('3') && !error.contains("secret"),
            "{error}"
        );
    }

    #[test]
    fn it_is_ended_with_all_it_started() {
        let before = Instant::now();
        let short = Duration::from_millis(300);
        // The second sleep keeps the pipe open when the shell is gone.
        assert!(matches!(shell("sleep 1000 & sleep 1000", short), Err(CommandError::Late(_))));
        assert!(before.elapsed() >= short);
    }

    #[test]
    fn too_much_is_refused_without_a_hang() {
        assert!(matches!(shell("head -c 10000000 /dev/zero", LONG), Err(CommandError::TooMuch)));
        let long = shell("head -c 10000000 /dev/zero >&2; exit 1", LONG).unwrap_err().to_string();
        assert!(long.len() < 20_000, "{}", long.len());
    }
}
