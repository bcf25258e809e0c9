//! Event loop's side of [`TerminalLeases`]: when the terminal is leased to a prompt, and how the command goes on after it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use nono_sys::terminal::{self as tty, TerminalSettings};

use crate::modes::{self, Modes};
use crate::pump::Pump;
use crate::screen::ScreenModel;
use crate::terminal_lease::{LeaseParts, Opened, TerminalLeases};

/// Terminal lease, for a run with prompts.
#[derive(Debug)]
pub(crate) struct TerminalLender {
    stage: TerminalLeases,
    opened: Option<Opened>,
    /// Terminal of the user; without one every request for a lease is refused.
    tty: Option<OwnedFd>,
    model: ScreenModel,
    wanted: bool,
    /// Whether the command's output before its request is still to be read.
    is_behind: bool,
    lent: Option<LentTerminal>,
    last_key: Option<Instant>,
}

#[derive(Debug)]
struct LentTerminal {
    before: TerminalSettings,
    full_screen: bool,
    /// Whether the window's size changed; the command is told when it has its terminal back.
    resized: bool,
}

impl TerminalLender {
    /// Opens the stage: from here on the terminal can be leased.
    pub(crate) fn new(stage: &TerminalLeases) -> TerminalLender {
        let tty = tty::controlling();
        let size = tty.as_ref().and_then(|tty| tty::size(tty.as_fd()).ok());
        let (rows, columns) = size.map_or((0, 0), |size| (size.ws_row, size.ws_col));
        TerminalLender {
            opened: Some(stage.open()),
            stage: stage.clone(),
            tty,
            model: ScreenModel::new(rows, columns),
            wanted: false,
            is_behind: false,
            lent: None,
            last_key: None,
        }
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.stage.bell()
    }

    /// Whether nothing passes between the command's terminal and the user's.
    pub(crate) fn pauses(&self) -> bool {
        self.wanted || self.is_lent()
    }

    pub(crate) fn is_lent(&self) -> bool {
        self.lent.is_some()
    }

    /// Follows what the command wrote to its terminal; returns how much of it must wait for the bytes after it.
    pub(crate) fn follow(&mut self, bytes: &[u8]) -> usize {
        self.model.follow(bytes);
        self.model.open()
    }

    pub(crate) fn typed(&mut self) {
        self.last_key = Some(Instant::now());
    }

    /// Notes a new window size. Returns whether the command may be told now.
    pub(crate) fn resize(&mut self) -> bool {
        self.stage.disturb();
        if let Some(lent) = &mut self.lent {
            lent.resized = true;
            return false;
        }
        self.follow_size();
        true
    }

    fn follow_size(&mut self) {
        // A terminal that is gone has no size; its end is noticed elsewhere.
        if let Some(size) = self.tty.as_ref().and_then(|tty| tty::size(tty.as_fd()).ok()) {
            self.model.resize(size.ws_row, size.ws_col);
        }
    }

    /// Handles a ring of the bell: checks whether a lease is wanted.
    pub(crate) fn listen(&mut self) {
        self.stage.hush();
        self.look();
    }

    fn look(&mut self) {
        let wanted = self.stage.is_wanted();
        self.is_behind |= wanted && !self.wanted;
        self.wanted = wanted;
    }

    /// Whether output that the command wrote before its request is still to be read. Said once for each request: a
    /// command that writes for ever delays no question.
    pub(crate) fn catches_up(&mut self) -> bool {
        !self.is_lent() && std::mem::take(&mut self.is_behind)
    }

    /// Ends all leases: no process is left that could use an answer.
    pub(crate) fn over(&mut self) {
        if self.wanted {
            self.refuse();
        }
        self.stage.revoke();
    }

    fn refuse(&mut self) {
        self.wanted = false;
        self.stage.offer(None);
    }

    /// Leases the terminal, once all output of the command is on it. `screen`: the pump that output passes through;
    /// `master`: the command's terminal.
    pub(crate) fn hand_over(&mut self, screen: Option<&Pump>, master: Option<BorrowedFd<'_>>) {
        if !self.wanted || screen.is_some_and(|screen| !screen.is_flushed()) {
            return;
        }
        match self.prepare(screen.is_some(), master) {
            // No terminal, another job's, or one that cannot be set: no prompt.
            None | Some(Err(_)) => self.refuse(),
            Some(Ok((lent, prop))) => {
                self.wanted = false;
                self.lent = Some(lent);
                self.stage.offer(Some(prop));
            }
        }
    }

    fn prepare(
        &self,
        drawn_on: bool,
        master: Option<BorrowedFd<'_>>,
    ) -> Option<io::Result<(LentTerminal, LeaseParts)>> {
        let tty = self.tty.as_ref().map(AsFd::as_fd).filter(|tty| tty::in_foreground(*tty))?;
        let by_line =
            master.and_then(|master| TerminalSettings::of(master).ok()).is_none_or(|now| now.by_line());
        let full_screen = drawn_on && (self.model.on_alternate_screen() || !by_line);
        let opening = if drawn_on {
            self.model.opening(full_screen)
        } else {
            [modes::others_reset().as_slice(), b"\r\x1b[K"].concat()
        };
        let take = || {
            let before = TerminalSettings::of(tty)?;
            let prop = LeaseParts {
                tty: File::from(tty.try_clone_to_owned()?),
                full_screen,
                last_key: self.last_key,
                opening,
            };
            before.raw().apply(tty)?;
            tty::discard_input(tty)?;
            Ok((LentTerminal { before, full_screen, resized: false }, prop))
        };
        Some(take())
    }

    /// Takes the terminal back if the prompt is over. Returns what the command's terminal needs then.
    pub(crate) fn go_on(&mut self, screen: Option<&mut Pump>) -> Option<AfterLease> {
        if !self.stage.is_back() {
            return None;
        }
        let lent = self.lent.take();
        self.put_back(lent.as_ref());
        let mut again = AfterLease::default();
        if let Some(lent) = lent {
            if let Some(screen) = screen {
                screen.insert(&self.model.closing(lent.full_screen));
                again.nudge = lent.full_screen && self.model.is_inexact();
            } else {
                self.write(Modes::level_back());
            }
            again.resize = lent.resized;
        }
        self.stage.free();
        if again.resize {
            self.follow_size();
        }
        self.look();
        Some(again)
    }

    fn put_back(&self, lent: Option<&LentTerminal>) {
        let ours = self.tty.as_ref().map(AsFd::as_fd).filter(|tty| tty::in_foreground(*tty));
        if let Some((lent, tty)) = lent.zip(ours) {
            // Keys typed for the prompt are not for the command. A terminal that is gone needs nothing back.
            let _ = tty::discard_input(tty).and_then(|()| lent.before.apply(tty));
        }
    }

    /// Writes straight to the terminal, where no output of the command is on its way.
    fn write(&self, bytes: &[u8]) {
        if let Some(tty) = &self.tty {
            // There is no other place to report a failure.
            let _ = tty.try_clone().map(File::from).and_then(|mut tty| tty.write_all(bytes));
        }
    }

    /// Restores the terminal before this job stops: a shell wants it as it was.
    pub(crate) fn set_aside(&self) {
        self.put_back(self.lent.as_ref());
    }

    /// Takes the terminal up again when this job continues.
    pub(crate) fn take_up(&self) {
        let ours = self.tty.as_ref().map(AsFd::as_fd).filter(|tty| tty::in_foreground(*tty));
        if let Some((lent, tty)) = self.lent.as_ref().zip(ours) {
            // A terminal that cannot be set gives the prompt no keys.
            let _ = lent.before.raw().apply(tty).and_then(|()| tty::discard_input(tty));
        }
        self.stage.disturb();
    }
}

/// Follow-up work on the command's terminal after a prompt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AfterLease {
    pub(crate) resize: bool,
    pub(crate) nudge: bool,
}

/// Makes a program redraw everything by changing the window's size and changing it back.
pub(crate) fn nudge(master: BorrowedFd<'_>) {
    // Only a change is signalled. Failing that, the program shows what it draws next. A larger size: when it shrinks,
    // some programs keep only what fits and have nothing to draw below it when it grows again.
    let _ = tty::size(master).and_then(|size| {
        let other = libc::winsize { ws_row: size.ws_row.saturating_add(1), ..size };
        tty::set_size(master, other)?;
        tty::set_size(master, size)
    });
}

impl Drop for TerminalLender {
    fn drop(&mut self) {
        // The current lease is revoked first, then the terminal is restored.
        drop(self.opened.take());
        let lent = self.lent.take();
        self.put_back(lent.as_ref());
        if let Some(lent) = lent {
            self.write(&self.model.ending(lent.full_screen));
        }
    }
}
