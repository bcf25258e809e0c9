//! Long answers on a terminal go through a pager; short ones, and all others, straight to stdout.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use nono::interrupt::Interrupts;
use ratatui::crossterm::terminal;

use crate::paint::Canvas;

/// Without a terminal that says how wide it is.
const WIDTH: usize = 80;
/// Nor how high.
const HEIGHT: usize = 24;

/// What stdout is drawn on.
pub(crate) fn canvas() -> Canvas {
    let is_terminal = io::stdout().is_terminal();
    let colours = is_terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb();
    let said = || env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    let size = terminal::size().ok().filter(|(columns, _)| is_terminal && *columns > 0);
    let width = size.map(|(columns, _)| usize::from(columns)).or_else(said).unwrap_or(WIDTH);
    Canvas { colours, width }
}

pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Takes the answer. The pager starts when there is more than a screen of it.
pub(crate) struct Pager {
    /// So many lines fit; none where no pager is wanted.
    screen: Option<usize>,
    held: Vec<u8>,
    child: Option<Child>,
    /// Ctrl-C is the pager's while it has the terminal.
    interrupts: Option<Interrupts>,
}

impl Pager {
    pub(crate) fn new() -> Pager {
        let wanted = io::stdout().is_terminal() && !is_dumb() && env::var_os("NO_PAGER").is_none();
        let rows = terminal::size().ok().map(|(_, rows)| usize::from(rows)).filter(|rows| *rows > 0);
        let rows = wanted.then(|| rows.unwrap_or(HEIGHT));
        // A line is for the prompt that follows.
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
        // A pager that cannot be started is no reason to show nothing.
        self.child = spawn().ok();
        if self.child.is_some() {
            // Where it cannot be kept from ending us, Ctrl-C ends both.
            self.interrupts = Interrupts::block().ok();
        }
        let held = std::mem::take(&mut self.held);
        self.out(&held)
    }

    /// The whole answer was given: wait until it was read. Whoever stops reading has read enough.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        let written = self.out(&held).and_then(|()| io::stdout().lock().flush());
        self.wait();
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    fn wait(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            // How a pager ends says nothing about the answer.
            let _ = child.wait();
        }
        // It was meant for the pager.
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
    /// The terminal belongs to the pager until it ends, also when something failed here.
    fn drop(&mut self) {
        self.wait();
    }
}

/// What the person wants; an empty one and `cat` are none.
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
