"""The agents: where each program is, how it is started, what it shows, and the names of its tools."""

import json
import pathlib
import shutil

from screen import Screen


def call(tool, **given):
    return {"tool": tool, "input": given}


def dialog(name, shows, *keys, **more):
    return {"name": name, "shows": shows, "keys": keys, **more}


class Agent:
    """What is common to all; each agent says what differs."""

    word = None  # what is typed after `nono`
    programs = ()
    env = {}
    ready = None
    dialogs = ()
    allow = ()
    resume = ()
    # What it shows again of the conversation.
    remembers = "done with edit"
    # What it asks at each start, wherever it runs.
    every_time = ()
    # What is typed for the list of checkpoints, where a hook answers it.
    rollback = None

    def __init__(self, folder):
        self.folder = folder

    def program(self):
        found = [path for path in (self.folder / name for name in self.programs) if path.exists()]
        return found[0] if found else shutil.which(self.word)

    def prepare(self, home):
        """What a person would have set before the first start."""

    def state(self, home):
        """Files of its own that an undo has to leave alone."""
        return []

    def use_bare(self, walk):
        """A first start and one conversation without nono, so that the home is one that was lived in."""
        socket = str(walk.world.dir / "screen-bare")
        screen = Screen(walk.world.person(), socket, [self.word], str(walk.project), walk.env)
        try:
            screen.walk(self.ready, self.dialogs)
            screen.type("hello there")
            screen.walk("hello from the model", ())
            self.quit(screen)
            screen.wait_ended()
        finally:
            screen.close()

    def look_back(self, screen):
        """Show what was said earlier, where the screen has only the end of it."""

    def type_rollback(self, screen):
        screen.type(self.rollback)

    def quit(self, screen):
        screen.keys("C-c")
        screen.keys("C-c")


class Claude(Agent):
    word = "claude"
    rollback = "/rollback"
    programs = ("node_modules/@anthropic-ai/claude-code-linux-x64/claude", "node_modules/.bin/claude")
    env = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "x" * 80, "DISABLE_AUTOUPDATER": "1"}
    ready = r"(?m)^\s*❯[^0-9]*$"
    dialogs = (
        dialog("theme", r"Choose the text style", "Enter"),
        dialog("key", r"Do you want to use this API key", "Up", "Enter"),
        dialog("notes", r"Press Enter to continue", "Enter"),
        dialog("terminal", r"Use Claude Code's terminal setup", "Down", "Enter"),
        dialog("trust", r"Yes, I trust this folder", "Enter"),
    )
    allow = (dialog("allow", r"Do you want to (proceed|make this edit|create)", "Enter"),)
    resume = ("--continue",)

    def cases(self, home, project):
        return {
            "edit": [call("Read", file_path=f"{project}/a.txt"),
                     call("Edit", file_path=f"{project}/a.txt", old_string="hello", new_string="bye"),
                     call("Write", file_path=f"{project}/new.txt", content="hi\n")],
            "shell": [call("Bash", command="rm b.txt; echo it ran", description="x")],
            "outside": [call("Read", file_path=f"{home}/secret.txt"),
                        call("Bash", command=f"cat {home}/secret.txt", description="x")],
            "outside_asked": [call("Bash", command=f"nono request --read {home}/wanted.txt --reason task", description="x")],
        }

    def change_setting(self, screen):
        screen.type("/theme")
        screen.wait("Light mode")
        screen.keys("3", "Enter")
        screen.wait("Theme set")

    def setting_saved(self, home):
        return '"light"' in (home / ".claude/settings.json").read_text()

    def state(self, home):
        return [path for path in (home / ".claude/projects").rglob("*") if path.is_file()]

    def quit(self, screen):
        screen.type("/exit")


class Gemini(Agent):
    word = "gemini"
    rollback = "/rollback"
    programs = ("node_modules/@google/gemini-cli/bundle/gemini.js", "node_modules/.bin/gemini")
    env = {"GEMINI_API_KEY": "AIza" + "x" * 35}
    # The second is what it says in vim mode.
    ready = r"(Type your message|'Esc' for NORMAL mode)"
    dialogs = (
        dialog("trust", r"Do you trust (the files in )?this folder", "Enter"),
        dialog("auth", r"How would you like to authenticate", "Enter"),
        dialog("key", r"Enter Gemini API Key", "Enter"),
    )
    allow = (dialog("allow", r"(Apply this change|Allow execution|Do you want to proceed)", "Enter"),)
    resume = ("--resume", "latest")

    def cases(self, home, project):
        return {
            "edit": [call("read_file", file_path=f"{project}/a.txt"),
                     call("replace", file_path=f"{project}/a.txt", instruction="x", old_string="hello", new_string="bye"),
                     call("write_file", file_path=f"{project}/new.txt", content="hi\n")],
            "shell": [call("run_shell_command", command="rm b.txt; echo it ran")],
            "outside": [call("run_shell_command", command=f"cat {home}/secret.txt")],
            "outside_asked": [call("run_shell_command", command=f"nono request --read {home}/wanted.txt --reason task")],
        }

    def change_setting(self, screen):
        self.command(screen, "vim")
        screen.wait("Vim mode|vim mode|NORMAL|INSERT")

    def setting_saved(self, home):
        return '"vimMode"' in (home / ".gemini/settings.json").read_text()

    def state(self, home):
        return [path for path in (home / ".gemini/tmp").rglob("*") if path.is_file()]

    def quit(self, screen):
        self.command(screen, "quit")

    def command(self, screen, name):
        """It runs the first command of its list, so the list has to come down to this one."""
        screen.type(f"/{name}", shows=rf"/{name}\s+{name} ")


class Codex(Agent):
    word = "codex"
    rollback = "$rollback"
    programs = ("node_modules/.bin/codex",)
    env = {"OPENAI_API_KEY": "sk-" + "x" * 45}
    ready = r"(?m)^› (?!\d|\[|\w+ +\d)"
    dialogs = (
        dialog("login", r"Choose how you want to use Codex", "3"),
        dialog("key", r"Press enter to save", "Enter"),
        dialog("hooks", r"Hooks need review", "2", "Enter"),
        dialog("trust", r"(Yes, (continue|allow)|Do you trust)", "Enter"),
    )
    allow = (dialog("allow", r"(Would you like to run|Would you like to make)", "Enter"),)
    resume = ("resume", "--last")
    # It has the whole screen to itself, and shows the end.
    remembers = "done with outside_asked"

    def cases(self, home, project):
        patch = ("*** Begin Patch\n*** Update File: a.txt\n@@\n-hello\n+bye\n*** Add File: new.txt\n+hi\n"
                 "*** End Patch\n")

        # Its one tool runs a script, which calls the others.
        def script(tool, given):
            return {"tool": "exec", "input": f"text(await tools.{tool}({json.dumps(given)}))"}

        def shell(command):
            return script("exec_command", {"cmd": command, "yield_time_ms": 30000})

        return {
            "edit": [script("apply_patch", patch)],
            "shell": [shell("rm b.txt; echo it ran")],
            "outside": [shell(f"cat {home}/secret.txt")],
            "outside_asked": [shell(f"nono request --read {home}/wanted.txt --reason task")],
        }

    def change_setting(self, screen):
        screen.type("/theme")
        screen.wait("Select Syntax Theme")
        screen.keys("Up", "Enter")

    def setting_saved(self, home):
        return "theme" in (home / ".codex/config.toml").read_text()

    def state(self, home):
        return [path for path in (home / ".codex/sessions").rglob("*") if path.is_file()]

    def type_rollback(self, screen):
        # The first Enter takes the skill from the list.
        screen.type(self.rollback)
        screen.keys("Enter")

    def quit(self, screen):
        screen.type("/quit")


class Qwen(Agent):
    word = "qwen"
    rollback = "/rollback"
    programs = ("node_modules/@qwen-code/qwen-code/cli.js", "node_modules/.bin/qwen")
    env = {"OPENAI_API_KEY": "sk-" + "x" * 45, "OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_MODEL": "gpt-4o"}
    # Below its prompt, once it has initialized: before, it takes what is typed and not the Enter. The second is with vim's keys.
    ready = r"(?m)^ *(\? for shortcuts|-- INSERT --)"
    dialogs = ()
    allow = (dialog("allow", r"(Apply this change|Allow execution|Do you want to proceed)", "Enter"),)
    resume = ("--continue",)

    def cases(self, home, project):
        return {
            "edit": [call("read_file", file_path=f"{project}/a.txt"),
                     call("edit", file_path=f"{project}/a.txt", old_string="hello", new_string="bye"),
                     call("write_file", file_path=f"{project}/new.txt", content="hi\n")],
            "shell": [call("run_shell_command", command="rm b.txt; echo it ran", is_background=False)],
            "outside": [call("run_shell_command", command=f"cat {home}/secret.txt", is_background=False)],
            "outside_asked": [call("run_shell_command", is_background=False,
                                   command=f"nono request --read {home}/wanted.txt --reason task")],
        }

    def change_setting(self, screen):
        screen.type("/vim")
        screen.wait("INSERT")

    def setting_saved(self, home):
        return '"vimMode"' in (home / ".qwen/settings.json").read_text()

    def state(self, home):
        return [path for path in (home / ".qwen/projects").rglob("*") if path.is_file()]


class OpenCode(Agent):
    word = "opencode"
    programs = ("node_modules/opencode-linux-x64/bin/opencode", "node_modules/.bin/opencode")
    env = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "x" * 80}
    ready = r"ctrl\+p commands"
    allow = (dialog("allow", r"Permission required", "Enter"),)
    resume = ("--continue",)

    def cases(self, home, project):
        return {
            "edit": [call("read", filePath=f"{project}/a.txt"),
                     call("edit", filePath=f"{project}/a.txt", oldString="hello", newString="bye"),
                     call("write", filePath=f"{project}/new.txt", content="hi\n")],
            "shell": [call("bash", command="rm b.txt; echo it ran", description="x")],
            "outside": [call("read", filePath=f"{home}/secret.txt"),
                        call("bash", command=f"cat {home}/secret.txt", description="x")],
            "outside_asked": [call("bash", command=f"nono request --read {home}/wanted.txt --reason task", description="x")],
        }

    def change_setting(self, screen):
        screen.type("/themes")
        screen.wait("Search")
        screen.type("nightowl")
        screen.wait(self.ready)

    def setting_saved(self, home):
        return '"nightowl"' in (home / ".local/state/opencode/kv.json").read_text()

    def state(self, home):
        return [path for path in (home / ".local/share/opencode").rglob("*") if path.is_file()]

    def look_back(self, screen):
        screen.keys("PageUp", "PageUp")

    def quit(self, screen):
        screen.type("/exit")


class Hermes(Agent):
    word = "hermes"
    programs = ("venv/bin/hermes",)
    env = {"OPENROUTER_API_KEY": "sk-or-v1-" + "x" * 64}
    ready = r"(?m)^❯"
    allow = (dialog("allow", r"Allow once", "Enter"),)
    resume = ("--continue",)

    def cases(self, home, project):
        # Its terminal begins with what a login shell has: the system's PATH, without the person's.
        nono = home.parent / "bin/nono"
        return {
            "edit": [call("read_file", path=f"{project}/a.txt"),
                     call("patch", mode="replace", path=f"{project}/a.txt", old_string="hello", new_string="bye"),
                     call("write_file", path=f"{project}/new.txt", content="hi\n")],
            "shell": [call("terminal", command="rm b.txt; echo it ran")],
            "outside": [call("read_file", path=f"{home}/secret.txt"), call("terminal", command=f"cat {home}/secret.txt")],
            "outside_asked": [call("terminal", command=f"{nono} request --read {home}/wanted.txt --reason task")],
        }

    def change_setting(self, screen):
        screen.type("/skin mono")
        screen.wait("Skin set to: mono")

    def setting_saved(self, home):
        return 'skin: "mono"' in (home / ".hermes/config.yaml").read_text()

    def state(self, home):
        return [path for path in (home / ".hermes").glob("state.db*")]

    def quit(self, screen):
        screen.type("/exit")


AGENTS = {"claude": Claude, "codex": Codex, "gemini": Gemini, "opencode": OpenCode, "qwen": Qwen, "hermes": Hermes}
