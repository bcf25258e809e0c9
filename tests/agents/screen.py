"""A program on a screen of its own, driven as a person would: wait for what it shows, then type."""

import re
import subprocess
import time


class NotShown(Exception):
    """What was waited for never came; the message has the last screen."""


class Screen:
    """One tmux server with one window. `prefix` is what runs a command as the person whose program it is."""

    SETTLED = 1.5

    def __init__(self, prefix, socket, command, cwd, env, size=(110, 40)):
        self.prefix, self.socket = prefix, socket
        variables = [f"{name}={value}" for name, value in env.items()]
        start = ["env", "-i", *variables, "tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d",
                 "-x", str(size[0]), "-y", str(size[1]), "-c", cwd, "--", *command]
        subprocess.run([*prefix, *start], check=True, cwd=cwd)
        # A program that ended leaves its last words.
        self._tmux("set-option", "-g", "remain-on-exit", "on")

    def _tmux(self, *words):
        done = subprocess.run([*self.prefix, "tmux", "-S", self.socket, *words], text=True, capture_output=True, cwd="/")
        return done.stdout

    def text(self):
        return self._tmux("capture-pane", "-p", "-S", "-200")

    def visible(self):
        return self._tmux("capture-pane", "-p")

    def ended(self):
        return self._tmux("display-message", "-p", "#{pane_dead}").strip() != "0"

    def keys(self, *keys):
        for key in keys:
            self._tmux("send-keys", key)
            time.sleep(0.15)

    def type(self, line, shows=None):
        """Type a line; with `shows` its end only when that is shown."""
        for _ in range(3):
            self._tmux("send-keys", "-l", line)
            # A program that takes a burst for a paste would not take the Enter with it for one.
            time.sleep(0.6)
            # One that shows its prompt may not read yet, and throw away what was typed.
            if self._shows(line[-8:]):
                break
        if shows:
            self.wait(shows)
        self.keys("Enter")

    def _shows(self, text, seconds=5):
        until = time.monotonic() + seconds
        while not (shown := text in self.visible()) and time.monotonic() < until:
            time.sleep(0.2)
        return shown

    def resize(self, columns, rows):
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def wait(self, pattern, seconds=60, text=None):
        """Wait until the screen shows `pattern`; returns the screen."""
        text = text or self.visible
        until = time.monotonic() + seconds
        while True:
            shown = text()
            if re.search(pattern, shown):
                return shown
            if time.monotonic() > until:
                raise NotShown(f"never showed {pattern!r}; at the end:\n{shown}")
            time.sleep(0.2)

    def wait_width(self, columns):
        """Wait until a line of what is shown ends in the given column, and none goes beyond it."""
        until = time.monotonic() + 20
        while (width := max(map(len, self.visible().splitlines()), default=0)) != columns:
            if time.monotonic() > until:
                raise NotShown(f"never {columns} columns wide but {width}; at the end:\n{self.visible()}")
            time.sleep(0.2)

    def walk(self, ready, dialogs, seconds=90):
        """Answer each dialog as it comes until `ready` is shown. Returns the dialogs that came, by name."""
        came, until, since = [], time.monotonic() + seconds, None
        while True:
            shown = self.visible()
            dialog = self._dialog(dialogs, shown)
            # Some show their prompt for a moment, and then what they have to ask first.
            is_ready = not dialog and re.search(ready, shown)
            since = (since or time.monotonic()) if is_ready else None
            if dialog and time.monotonic() < until:
                time.sleep(dialog.get("after", 0.5))
                # One that was answered may stand there for a moment, and the keys would be another's by now.
                if self._dialog(dialogs, self.visible()) is dialog:
                    came.append(dialog["name"])
                    self.keys(*dialog["keys"])
                    self._changed(shown)
                    self._gone(dialog["shows"])
            elif is_ready and time.monotonic() - since > self.SETTLED:
                return came
            elif dialog or self.ended() or time.monotonic() > until:
                raise NotShown(f"never became ready ({ready!r}, after {came}); at the end:\n{self.text()}")
            else:
                time.sleep(0.3)

    @staticmethod
    def _dialog(dialogs, shown):
        return next((one for one in dialogs if re.search(one["shows"], shown)), None)

    def _changed(self, before, seconds=10):
        until = time.monotonic() + seconds
        while self.visible() == before and time.monotonic() < until:
            time.sleep(0.2)

    def _gone(self, pattern, seconds=3):
        """Give a dialog that was answered time to go: the same keys would mean something else then."""
        until = time.monotonic() + seconds
        while re.search(pattern, self.visible()) and time.monotonic() < until:
            time.sleep(0.2)

    def wait_ended(self, seconds=60):
        until = time.monotonic() + seconds
        while not self.ended():
            if time.monotonic() > until:
                raise NotShown(f"did not end; at the end:\n{self.text()}")
            time.sleep(0.2)
        return self.text()

    def close(self):
        self._tmux("kill-server")
