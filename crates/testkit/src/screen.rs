//! A shell in a terminal of its own: a tmux server on a private socket, typed into and looked at.

use std::cell::Cell;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::World;
use crate::look::eventually;

static SERVERS: AtomicU32 = AtomicU32::new(0);

/// The shell's prompt is `[n status]$`, n counting the lines it was given.
#[derive(Debug)]
pub struct Screen<'w> {
    world: &'w World,
    socket: String,
    lines: Cell<u32>,
}

impl<'w> Screen<'w> {
    pub fn new(world: &'w World) -> Screen<'w> {
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let socket = format!("nono-test-{}-{number}", std::process::id());
        let screen = Screen { world, socket, lines: Cell::new(0) };
        // Without a history that it would still write when the folder is being removed.
        world.file("home/rc", "export HISTFILE=\nPS1='[\\# $?]$ '\n", 0o644);
        let shell = format!("exec bash --noprofile --rcfile {}", world.path("home/rc").display());
        screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", &shell]);
        assert_eq!(screen.prompt(), 0);
        screen
    }

    fn try_tmux(&self, args: &[&str]) -> Output {
        let mut command = self.world.command("tmux");
        command.args(["-L", &self.socket]).args(args).stdin(Stdio::null());
        command.output().expect("tmux is installed")
    }

    pub fn tmux(&self, args: &[&str]) -> String {
        let output = self.try_tmux(args);
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What can be seen, without the empty lines at the end.
    pub fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J"]).trim_end().to_owned()
    }

    /// A key by its name.
    pub fn key(&self, name: &str) {
        self.tmux(&["send-keys", name]);
    }

    pub fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// A line for a program that reads.
    pub fn enter(&self, text: &str) {
        self.type_text(text);
        self.key("Enter");
    }

    /// A line for the shell.
    pub fn start(&self, line: &str) {
        self.lines.set(self.lines.get() + 1);
        self.enter(line);
    }

    /// Waits for the prompt after the last line, and returns that line's exit status.
    pub fn prompt(&self) -> i32 {
        let prompt = format!("[{} ", self.lines.get() + 1);
        self.look(&prompt, |text| {
            text.lines().last()?.split_once(&prompt)?.1.trim_end().strip_suffix("]$")?.parse().ok()
        })
    }

    /// A line for the shell, to its end, from an empty screen; returns its status.
    pub fn run(&self, line: &str) -> i32 {
        self.start(line);
        self.prompt()
    }

    pub fn clear(&self) {
        assert_eq!(self.run("clear"), 0);
    }

    pub fn look<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let describe = || format!("waiting for `{what}` on this screen:\n{}\n", self.text());
        eventually(describe, || find(&self.text()))
    }

    /// Waits for a line that is exactly this, as the echo of a command is not.
    pub fn wait_line(&self, line: &str) {
        self.look(line, |text| text.lines().any(|seen| seen.trim_end() == line).then_some(()));
    }

    pub fn wait_for(&self, part: &str) {
        self.look(part, |text| text.contains(part).then_some(()));
    }

    /// Waits until the last line is this prompt of a program's.
    pub fn wait_last(&self, prompt: &str) {
        self.look(prompt, |text| (text.lines().last()?.trim_end() == prompt).then_some(()));
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        // A server whose last pane is gone has ended already.
        self.try_tmux(&["kill-server"]);
    }
}
