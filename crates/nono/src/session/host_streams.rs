//! A run inside a host program's process, which keeps its own signals, threads and streams.
//!
//! Nothing about the process is changed. The command's output can be kept in memory, and the observer can end the
//! command; one thread beside the run does both. It stops at the end of the run, not at the end of the pipes: another
//! process may have inherited those.

use std::borrow::Cow;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use nono_supervisor::{Options, RunError, RunOutcome, Streams};

use super::observer::RunObserver;
pub use crate::streams::Captured;
use crate::streams::{CancelPipe, LOOK, RunEndSignal, StreamPipes};

/// The host program's settings for the command's streams.
#[derive(Clone, Debug, Default)]
pub struct HostStreams {
    /// Keep the output in memory instead of writing it to the host's streams. The command has no terminal then.
    pub capture: bool,
    /// Input of the command; `None`: the host's stdin.
    pub input: Option<Vec<u8>>,
    /// Maximum number of bytes kept of each stream. The rest is read and dropped, and the report says so.
    pub max_output: Option<u64>,
}

fn failed(source: io::Error) -> RunError {
    RunError::Supervise { what: "copy the command's input and output", source }
}

/// Run a command, with its streams captured where a host program asks for it.
pub(super) fn run(
    guest: Option<HostStreams>,
    observer: &dyn RunObserver,
    options: &Options,
    supervise: impl FnOnce(&Options) -> Result<RunOutcome, RunError>,
) -> (Option<Captured>, Result<RunOutcome, RunError>) {
    let Some(guest) = guest else { return (None, supervise(options)) };
    let (captured, mut outcome) = beside(guest, observer, |streams, cancel| {
        supervise(&Options { streams, cancel: Some(cancel), ..options.clone() })
    });
    if let (Ok(outcome), Some(captured)) = (&mut outcome, captured.as_ref().filter(|_| options.listen)) {
        outcome.complaints = nono_supervisor::complaints(&String::from_utf8_lossy(&captured.stderr));
    }
    (captured, outcome)
}

/// Run `work` with its streams and cancel signal, and serve both meanwhile. Signals must be blocked in the calling
/// thread, and so in the threads it starts: a command that does not read its input would end the process by SIGPIPE.
fn beside<T>(
    guest: HostStreams,
    observer: &dyn RunObserver,
    work: impl FnOnce(Option<Streams>, Arc<OwnedFd>) -> Result<T, RunError>,
) -> (Option<Captured>, Result<T, RunError>) {
    let attended = || -> io::Result<_> {
        let HostStreams { capture, input, max_output } = guest;
        let own = capture || input.is_some();
        let (wires, streams) = StreamPipes::new(input.map(Cow::Owned), capture, max_output)?;
        let streams = own.then_some(streams);
        let (cancel, bell) = CancelPipe::new()?;
        let (over, end) = RunEndSignal::new()?;
        thread::scope(|scope| {
            let attend = move || attend(wires, &over, bell, observer);
            let attending = thread::Builder::new().name("attend".to_owned()).spawn_scoped(scope, attend)?;
            let worked = work(streams, cancel);
            drop(end);
            let kept = attending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((kept, worked))
        })
    };
    match attended() {
        Ok((Ok(captured), worked)) => (captured, worked),
        Ok((Err(error), worked)) => (None, worked.and(Err(failed(error)))),
        Err(error) => (None, Err(failed(error))),
    }
}

/// Serve the streams until the run is over. Dropping `bell`, as on an error, ends the command at once.
fn attend(
    wires: StreamPipes<'_>,
    over: &PipeReader,
    mut bell: CancelPipe,
    observer: &dyn RunObserver,
) -> io::Result<Option<Captured>> {
    let mut rung = false;
    wires.attend(over, || {
        if !rung && observer.cancelled() {
            rung = true;
            bell.gently()?;
        }
        Ok((!rung).then_some(LOOK))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    /// Run `command` with its ends of the streams.
    fn with(guest: HostStreams, command: impl FnOnce(&Streams)) -> Captured {
        let (captured, done) = beside(guest, &(), |streams, _cancel| {
            command(&streams.unwrap());
            Ok(())
        });
        done.unwrap();
        captured.unwrap()
    }

    fn file(fd: Option<&Arc<OwnedFd>>) -> File {
        fd.unwrap().try_clone().unwrap().into()
    }

    #[test]
    fn big_input_and_output_do_not_wait_for_each_other() {
        let input: Vec<u8> = (0..3_000_000u32).map(|n| n.to_le_bytes()[0]).collect();
        let guest = HostStreams { capture: true, input: Some(input.clone()), max_output: None };
        let captured = with(guest, |streams| {
            let (mut from, mut to) = (file(streams.input.as_ref()), file(streams.output.as_ref()));
            let mut buffer = vec![0; 10_000];
            let mut left = 3_000_000;
            while left > 0 {
                let n = from.read(&mut buffer).unwrap();
                to.write_all(&buffer[..n]).unwrap();
                left -= n;
            }
        });
        assert_eq!(captured.stdout, input);
        assert!(captured.stderr.is_empty() && !captured.truncated);
    }

    #[test]
    fn a_process_that_keeps_a_pipe_open_is_not_waited_for() {
        let mut kept = None;
        let captured = with(HostStreams { capture: true, ..HostStreams::default() }, |streams| {
            file(streams.errors.as_ref()).write_all(b"bye").unwrap();
            kept = Some(streams.clone());
        });
        assert_eq!(captured.stderr, b"bye");
    }

    #[test]
    fn what_is_too_much_is_dropped_and_said() {
        let guest = HostStreams { capture: true, max_output: Some(3), ..HostStreams::default() };
        let captured =
            with(guest, |streams| file(streams.output.as_ref()).write_all(&vec![b'x'; 300_000]).unwrap());
        assert_eq!((captured.stdout.as_slice(), captured.truncated), (b"xxx".as_slice(), true));
    }

    #[test]
    fn a_wish_for_an_end_is_passed_on() {
        struct Impatient;
        impl RunObserver for Impatient {
            fn capturing(&self, _files: u64) {}
            fn baseline(&self, _baseline: &crate::rollback::Baseline<'_>) {}
            fn cancelled(&self) -> bool {
                true
            }
        }
        let (captured, heard) = beside(HostStreams::default(), &Impatient, |streams, cancel| {
            assert!(streams.is_none());
            let mut byte = [0];
            File::from(cancel.try_clone().unwrap()).read_exact(&mut byte).unwrap();
            Ok(byte)
        });
        assert_eq!((heard.unwrap(), captured.is_none()), (*b".", true));
    }
}
