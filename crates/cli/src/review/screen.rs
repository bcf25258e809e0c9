//! The terminal as the review takes it, and gives it back: on leaving, on an error, on a panic, on a signal.

use std::env;
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

use super::app::{App, Worked};
use super::draw;
use super::watch::Watch;

/// How often the window's size is looked at by itself: the signal that tells of a change may be blocked in a process
/// that was a supervisor.
const LOOK: Duration = Duration::from_millis(250);
/// How often, while colours are on their way.
const LOOK_OFTEN: Duration = Duration::from_millis(15);

/// Whether the terminal is ours now: it is given back once, by whoever comes first.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether there is a terminal that a full screen can be drawn on.
pub(super) fn is_capable() -> bool {
    let term = env::var_os("TERM").unwrap_or_default();
    !term.is_empty() && term != "dumb" && io::stdin().is_terminal() && output().is_some()
}

/// Where to draw: stdout may be a file.
fn output() -> Option<Box<dyn Write>> {
    if io::stderr().is_terminal() {
        Some(Box::new(io::stderr()))
    } else if io::stdout().is_terminal() {
        Some(Box::new(io::stdout()))
    } else {
        None
    }
}

/// Throw away what was typed before anything was asked.
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
        // A terminal that is gone needs nothing back.
        let _ = execute!(out, LeaveAlternateScreen, cursor::Show);
    }
    let _ = disable_raw_mode();
}

/// A panic's message must be seen, on a terminal that works.
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

/// Show the review until it is left.
pub(super) fn show(app: &mut App) -> io::Result<()> {
    // In this order: signals are looked after until the terminal is given back.
    let _watch = Watch::start()?;
    let mut screen = Screen::take()?;
    drop_events()?;
    while !app.is_left {
        screen.0.draw(|frame| draw::draw(app, frame))?;
        wait(app)?;
        // Keys that came meanwhile are all done before the next picture.
        while !app.is_left && event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                app.key(key);
            }
        }
    }
    Ok(())
}

/// Work while no key waits, until something has to be drawn.
fn wait(app: &mut App) -> io::Result<()> {
    while !event::poll(Duration::ZERO)? {
        match app.work() {
            Worked::Changed => return Ok(()),
            Worked::Asked => return drop_events(),
            Worked::Nothing => {
                let patience = if app.is_waiting() { LOOK_OFTEN } else { LOOK };
                if event::poll(patience)? || patience == LOOK {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}
