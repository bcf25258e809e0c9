//! Pager for answers longer than the terminal. All others go straight to stdout.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use nono::interrupt::Interrupts;
use ratatui::crossterm::terminal;

use crate::failure::Failure;
use crate::paint::Canvas;

/// Width if the terminal's is unknown.
const WIDTH: usize = 80;
/// Height if the terminal's is unknown.
const HEIGHT: usize = 24;

/// Width and colours of stdout.
pub(crate) fn canvas() -> Canvas {
    let is_terminal = io::stdout().is_terminal();
    let colours = is_terminal && wants_colours();
    let said = || env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    let size = terminal::size().ok().filter(|(columns, _)| is_terminal && *columns > 0);
    let width = size.map(|(columns, _)| usize::from(columns)).or_else(said).unwrap_or(WIDTH);
    Canvas { colours, width }
}

/// Whether colours are wanted on a terminal.
pub(crate) fn wants_colours() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb()
}

pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Writer that starts the pager once there is more than a screen of text.
pub(crate) struct Pager {
    /// Number of lines that fit; none if no pager is wanted.
    screen: Option<usize>,
    held: Vec<u8>,
    child: Option<Child>,
    /// Blocks Ctrl-C while the pager has the terminal.
    interrupts: Option<Interrupts>,
}

impl Pager {
    pub(crate) fn new() -> Pager {
        let wanted = io::stdout().is_terminal() && !is_dumb() && env::var_os("NO_PAGER").is_none();
        let rows = terminal::size().ok().map(|(_, rows)| usize::from(rows)).filter(|rows| *rows > 0);
        let rows = wanted.then(|| rows.unwrap_or(HEIGHT));
        // One line is left for the shell's prompt.
        let screen = rows.filter(|_| program() != Some(String::new())).map(|rows| rows.saturating_sub(1));
        Pager { screen, held: Vec::new(), child: None, interrupts: None }
    }

    fn out(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(pager) => pager.write_all(bytes),
            None => io::stdout().lock().write_all(bytes),
        }
    }

    fn start(&mut self) -> io::Result<()> {
        self.screen = None;
        // Without a pager the text goes to stdout.
        self.child = spawn().ok();
        if self.child.is_some() {
            // If that fails, Ctrl-C ends both.
            self.interrupts = Interrupts::block().ok();
        }
        let held = std::mem::take(&mut self.held);
        self.out(&held)
    }

    /// Writes the rest and waits for the pager. A pager that was quit early is no error.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let held = std::mem::take(&mut self.held);
        let written = self.out(&held).and_then(|()| io::stdout().lock().flush());
        self.wait();
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::stdout(&error)),
            _ => Ok(()),
        }
    }

    fn wait(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            // The pager's exit code does not matter.
            let _ = child.wait();
        }
        // Ctrl-C was meant for the pager.
        let _ = self.interrupts.take().map(|interrupts| interrupts.requested());
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.screen {
            None => self.out(bytes)?,
            Some(screen) => {
                self.held.extend_from_slice(bytes);
                if self.held.split(|byte| *byte == b'\n').count() > screen {
                    self.start()?;
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Pager {
    /// Waits for the pager, which has the terminal until it ends, also after an error.
    fn drop(&mut self) {
        self.wait();
    }
}

/// Value of `PAGER`; empty for `cat`, which means no pager.
fn program() -> Option<String> {
    let program = env::var("PAGER").ok()?;
    Some(if program.trim() == "cat" { String::new() } else { program.trim().to_owned() })
}

fn spawn() -> io::Result<Child> {
    let line = program().unwrap_or_else(|| "less -R".to_owned());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &line]);
    if env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    command.stdin(Stdio::piped()).spawn()
}
