//! Terminal of the review. It is restored on leaving, on an error, on a panic and on a signal.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};

use super::app::{App, StepResult};
use super::draw;
use super::watch::SignalWatch;
use crate::pager::is_dumb;

/// Interval of checks of the window's size: SIGWINCH may be blocked in a process that was a supervisor.
const LOOK: Duration = Duration::from_millis(250);
/// Interval while syntax colours are being computed.
const LOOK_OFTEN: Duration = Duration::from_millis(15);

/// Whether the review has the terminal. It is restored once, by the first of the ways to leave.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether there is a terminal that a full screen can be drawn on.
pub(super) fn is_capable() -> bool {
    !is_dumb() && io::stdin().is_terminal() && output().is_some()
}

/// Terminal to draw on: stdout may be a file.
fn output() -> Option<Box<dyn Write>> {
    if io::stderr().is_terminal() {
        return Some(Box::new(io::stderr()));
    }
    io::stdout().is_terminal().then(|| Box::new(io::stdout()) as Box<dyn Write>)
}

/// Discards keys that were typed before the question.
pub(super) fn forget_typed() -> io::Result<()> {
    let is_ours = IS_TAKEN.load(Ordering::SeqCst);
    if !is_ours {
        enable_raw_mode()?;
    }
    let result = drop_events();
    if !is_ours {
        disable_raw_mode()?;
    }
    result
}

fn drop_events() -> io::Result<()> {
    while event::poll(Duration::ZERO)? {
        event::read()?;
    }
    Ok(())
}

/// The terminal while it is taken.
struct Screen(Terminal<CrosstermBackend<BufWriter<Box<dyn Write>>>>);

impl Screen {
    fn take() -> io::Result<Screen> {
        let out = output().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::new(out)))?;
        give_back_on_panic();
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        let mut screen = Screen(terminal);
        execute!(screen.0.backend_mut(), EnterAlternateScreen, Clear(ClearType::All), cursor::Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

pub(super) fn give_back() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    if let Some(mut out) = output() {
        // The terminal may be gone.
        let _ = execute!(out, LeaveAlternateScreen, cursor::Show);
    }
    let _ = disable_raw_mode();
}

/// Restores the terminal before a panic's message is printed.
fn give_back_on_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}

/// Shows the review until the user leaves.
pub(super) fn show(app: &mut App) -> io::Result<()> {
    // In this order: signals are handled until the terminal is restored.
    let _watch = SignalWatch::start()?;
    let mut screen = Screen::take()?;
    drop_events()?;
    while !app.is_left {
        screen.0.draw(|frame| draw::draw(app, frame))?;
        wait(app)?;
        // Handles all pending keys before drawing again.
        while !app.is_left && event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                app.key(key);
            }
        }
    }
    Ok(())
}

/// Works while no key is waiting, until something has to be drawn.
fn wait(app: &mut App) -> io::Result<()> {
    while !event::poll(Duration::ZERO)? {
        match app.work() {
            StepResult::Changed => return Ok(()),
            StepResult::Asked => return drop_events(),
            StepResult::Nothing => {
                let patience = if app.is_waiting() { LOOK_OFTEN } else { LOOK };
                if event::poll(patience)? || patience == LOOK {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}
