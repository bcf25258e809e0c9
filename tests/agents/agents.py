"""The agents: where each program is, how it is started, what it shows, and the names of its tools."""

import json
import re
import shutil


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
    # What it asks at the first start with nono in a home where it was used without: the names of dialogs, each with a reason.
    comes_back = ()
    # Two values of the setting that is changed, and how many columns its frame leaves free on the right.
    settings = ()
    margin = 0
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

    def cases(self, home, project):
        """What the model has it do, by the name of the case."""
        return {
            "bare": [],
            "earlier": [],
            "edit": [self.read(f"{project}/a.txt"), self.edit(f"{project}/a.txt", "hello", "bye"),
                     self.write(f"{project}/new.txt", "hi\n")],
            "shell": [self.shell("rm b.txt; echo it ran")],
            "outside": [self.read(f"{home}/secret.txt"), self.shell(f"cat {home}/secret.txt")],
            "outside_asked": [self.shell(f"{self.nono(home)} request --read {home}/wanted.txt --reason task")],
            "first": [self.write(f"{project}/first.txt", "1\n")],
            "second": [self.write(f"{project}/second.txt", "2\n")],
        }

    def nono(self, home):
        """What its shell calls nono by."""
        return "nono"

    def use_bare(self, walk):
        """A first start and one conversation without nono, so that the home is one that was lived in."""
        screen = walk.open(self.word)
        try:
            screen.walk(self.ready, self.dialogs)
            screen.type("case bare")
            screen.walk("done with bare", ())
            self.quit(screen)
            screen.wait_ended()
        finally:
            screen.close()

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

    settings = ("light", "dark")

    def read(self, path):
        return call("Read", file_path=path)

    def edit(self, path, old, new):
        return call("Edit", file_path=path, old_string=old, new_string=new)

    def write(self, path, content):
        return call("Write", file_path=path, content=content)

    def shell(self, command):
        return call("Bash", command=command, description="x")

    def change_setting(self, screen, value):
        screen.type("/theme")
        screen.wait("Light mode")
        screen.keys({"dark": "2", "light": "3"}[value], "Enter")
        screen.wait("Theme set")

    def setting(self, home):
        return json.loads((home / ".claude/settings.json").read_text()).get("theme")

    def state(self, home):
        return [path for path in (home / ".claude/projects").rglob("*") if path.is_file()]


class Gemini(Agent):
    word = "gemini"
    rollback = "/rollback"
    programs = ("node_modules/@google/gemini-cli/bundle/gemini.js", "node_modules/.bin/gemini")
    env = {"GEMINI_API_KEY": "AIza" + "x" * 35}
    # The second is what it says in vim mode.
    ready = r"(Type your message|'Esc' for NORMAL mode)"
    dialogs = (
        # Trusted, it starts itself anew, so that hooks are run; not if it is answered while it still loads.
        dialog("trust", r"Do you trust (the files in )?this folder", "Enter", after=4),
        dialog("auth", r"How would you like to authenticate", "Enter"),
        dialog("key", r"Enter Gemini API Key", "Enter"),
    )
    allow = (dialog("allow", r"(Apply this change|Allow execution|Do you want to proceed)", "Enter"),)
    resume = ("--resume", "latest")
    # Vim's keys, on and off.
    settings = (True, False)
    folder_of_state, conversations = ".gemini", "tmp"

    def read(self, path):
        return call("read_file", file_path=path)

    def edit(self, path, old, new):
        return call("replace", file_path=path, instruction="x", old_string=old, new_string=new)

    def write(self, path, content):
        return call("write_file", file_path=path, content=content)

    def shell(self, command):
        return call("run_shell_command", command=command)

    def change_setting(self, screen, value):
        self.command(screen, "vim")
        screen.wait(r"(INSERT|'Esc' for NORMAL|[Vv]im mode)" if value else self.ready)

    def setting(self, home):
        return json.loads((home / self.folder_of_state / "settings.json").read_text()).get("general", {}).get("vimMode")

    def state(self, home):
        return [path for path in (home / self.folder_of_state / self.conversations).rglob("*") if path.is_file()]

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
        dialog("another way", r"Sign in another way", "1"),
        dialog("key", r"Press enter to save", "Enter"),
        dialog("hooks", r"Hooks need review", "2", "Enter"),
        dialog("trust", r"(Yes, (continue|allow)|Do you trust)", "Enter"),
    )
    allow = (dialog("allow", r"(Would you like to run|Would you like to make)", "Enter"),)
    resume = ("resume", "--last")
    # It has the whole screen to itself, and shows the end.
    remembers = "done with outside_asked"
    # Hooks that were not there before, nono's, are to be looked at.
    comes_back = ("hooks",)
    # Below its prompt something stands on the right.
    margin = 1

    settings = ("nord", "dracula")

    # Its one tool runs a script, which calls the others.
    def script(self, tool, given):
        return {"tool": "exec", "input": f"text(await tools.{tool}({json.dumps(given)}))"}

    def patch(self, change):
        return self.script("apply_patch", f"*** Begin Patch\n{change}*** End Patch\n")

    def read(self, path):
        return self.shell(f"cat '{path}'")

    def edit(self, path, old, new):
        return self.patch(f"*** Update File: {path}\n@@\n-{old}\n+{new}\n")

    def write(self, path, content):
        return self.patch(f"*** Add File: {path}\n+{content}")

    def shell(self, command):
        return self.script("exec_command", {"cmd": command, "yield_time_ms": 30000})

    def change_setting(self, screen, value):
        screen.type("/theme")
        screen.wait("Select Syntax Theme")
        screen.type(value, shows=f"› .*{value}")

    def setting(self, home):
        found = re.search(r'(?m)^theme = "(.*)"$', (home / ".codex/config.toml").read_text())
        return found and found[1]

    def state(self, home):
        return [path for path in (home / ".codex/sessions").rglob("*") if path.is_file()]

    def type_rollback(self, screen):
        # The first Enter takes the skill from the list.
        screen.type(self.rollback)
        screen.keys("Enter")

    def quit(self, screen):
        screen.type("/quit")


class Qwen(Gemini):
    """Made from Gemini CLI."""

    word = "qwen"
    programs = ("node_modules/@qwen-code/qwen-code/cli.js", "node_modules/.bin/qwen")
    env = {"OPENAI_API_KEY": "sk-" + "x" * 45, "OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_MODEL": "gpt-4o"}
    # Below its prompt, once it has initialized: before, it takes what is typed and not the Enter.
    ready = r"(?m)^ *\? for shortcuts"
    dialogs = ()
    resume = ("--continue",)
    # With vim's keys nothing would tell that it has initialized.
    settings = ("Dracula", "Shades Of Purple")
    folder_of_state, conversations = ".qwen", "projects"

    def edit(self, path, old, new):
        return call("edit", file_path=path, old_string=old, new_string=new)

    def shell(self, command):
        return call("run_shell_command", command=command, is_background=False)

    def change_setting(self, screen, value):
        screen.type("/theme")
        screen.wait("Select Theme")
        while not re.search(rf"› +\d+\. {value} ", screen.visible()):
            screen.keys("Down")
        screen.keys("Enter")
        screen.wait(self.ready)

    def setting(self, home):
        return json.loads((home / self.folder_of_state / "settings.json").read_text()).get("ui", {}).get("theme")

    quit = Agent.quit


class OpenCode(Agent):
    word = "opencode"
    programs = ("node_modules/opencode-linux-x64/bin/opencode", "node_modules/.bin/opencode")
    env = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "x" * 80}
    ready = r"ctrl\+p commands"
    allow = (dialog("allow", r"Permission required", "Enter"),)
    resume = ("--continue",)

    settings = ("nightowl", "dracula")
    # Its version stands on the right of the last line.
    margin = 2
    # It has the whole screen to itself, and shows the end.
    remembers = "done with outside_asked"

    def read(self, path):
        return call("read", filePath=path)

    def edit(self, path, old, new):
        return call("edit", filePath=path, oldString=old, newString=new)

    def write(self, path, content):
        return call("write", filePath=path, content=content)

    def shell(self, command):
        return call("bash", command=command, description="x")

    def change_setting(self, screen, value):
        screen.type("/themes")
        screen.wait("Search")
        screen.type(value)
        screen.wait(self.ready)

    def setting(self, home):
        return json.loads((home / ".local/state/opencode/kv.json").read_text()).get("theme")

    def state(self, home):
        return [path for path in (home / ".local/share/opencode").rglob("*") if path.is_file()]

    def quit(self, screen):
        screen.type("/exit")


class Hermes(Agent):
    word = "hermes"
    programs = ("venv/bin/hermes",)
    env = {"OPENROUTER_API_KEY": "sk-or-v1-" + "x" * 64}
    ready = r"(?m)^❯"
    allow = (dialog("allow", r"Allow once", "Enter"),)
    resume = ("--continue",)

    settings = ("mono", "slate")

    def nono(self, home):
        # Its terminal begins with what a login shell has: the system's PATH, without the person's.
        return home.parent / "bin/nono"

    def read(self, path):
        return call("read_file", path=path)

    def edit(self, path, old, new):
        return call("patch", mode="replace", path=path, old_string=old, new_string=new)

    def write(self, path, content):
        return call("write_file", path=path, content=content)

    def shell(self, command):
        return call("terminal", command=command)

    def change_setting(self, screen, value):
        screen.type(f"/skin {value}")
        screen.wait(f"Skin set to: {value}")

    def setting(self, home):
        found = re.search(r'(?m)^ *skin: "?(\w+)', (home / ".hermes/config.yaml").read_text())
        return found and found[1]

    def state(self, home):
        return [path for path in (home / ".hermes").glob("state.db*")]

    def quit(self, screen):
        screen.type("/exit")


AGENTS = {"claude": Claude, "codex": Codex, "gemini": Gemini, "opencode": OpenCode, "qwen": Qwen, "hermes": Hermes}
