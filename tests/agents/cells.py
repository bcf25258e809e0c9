"""What has to hold for each agent, one cell after the other, as a person would go through a day with it."""

import json
import pathlib
import subprocess
import time

import served
from agents import dialog
from screen import Screen

AGREE = dialog("nono", r"like this from now on\? \[y/N\]\s*\Z", "y", "Enter")
# The question of the sandbox about a file, which a person answers with no, unless a cell says otherwise.
ASKED = r"\[nono\] Allow\? \[y/N\]"


class Walk:
    """One agent in one home; in a used one it was at work without nono before."""

    def __init__(self, agent, world, nono, used):
        self.agent, self.world, self.used = agent, world, used
        self.home, self.project = world.home("home")
        self.log = world.dir / "model.log"
        world.serve({**agent.cases(self.home, self.project), **served.cases(agent)}, self.log)
        programs = world.dir / "bin"
        programs.mkdir()
        (programs / "nono").symlink_to(nono)
        (programs / agent.word).symlink_to(agent.program())
        trusted = "/etc/ssl/certs/ca-certificates.crt"
        self.env = {
            "HOME": str(self.home), "USER": "walker", "LOGNAME": "walker", "SHELL": "/bin/bash", "TERM": "xterm-256color",
            "LANG": "C.UTF-8", "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "NODE_EXTRA_CA_CERTS": trusted,
            "SSL_CERT_FILE": trusted, "REQUESTS_CA_BUNDLE": trusted, **agent.env,
        }
        self.screens, self.opened, self.screen, self.came = 0, [], None, []
        agent.prepare(self.home)
        world.give(self.home)
        # Screens have their sockets there.
        world.dir.chmod(0o777)
        if used:
            agent.use_bare(self)

    def open(self, *words):
        """A screen of its own for a command."""
        self.screens += 1
        socket = str(self.world.dir / f"screen-{self.screens}")
        screen = Screen(self.world.person(), socket, words, str(self.project), self.env)
        self.opened.append(screen)
        return screen

    def start(self, *arguments):
        self.screen = self.open("nono", self.agent.word, *arguments)
        self.came = self.screen.walk(self.agent.ready, (AGREE, NO, *self.agent.dialogs))
        return self.screen

    def start_unasked(self, *arguments):
        screen = self.start(*arguments)
        asked = [name for name in self.came if name not in self.agent.every_time]
        assert asked == [], f"asked again: {asked}"
        return screen

    def say(self, case):
        self.screen.type(f"case {case}")
        self.hear(self.screen, case)

    def hear(self, screen, case):
        screen.walk(f"done with {case}", (NO, *self.agent.allow))

    def end(self, screen=None):
        screen = screen or self.screen
        self.agent.quit(screen)
        said = screen.wait_ended()
        screen.close()
        self.opened.remove(screen)
        return said

    def nono(self, *words):
        variables = [f"{name}={value}" for name, value in self.env.items()]
        words = [*self.world.person(), "env", "-i", *variables, "nono", *words]
        return subprocess.run(words, cwd=self.project, text=True, capture_output=True)

    def read(self, name):
        path = self.project / name
        return path.read_text() if path.exists() else None

    def close(self):
        for screen in self.opened:
            screen.close()


NO = dialog("question", ASKED, "n", after=0.8)


def starts(walk):
    walk.start()
    assert walk.came.count("nono") == 1, f"asked {walk.came}"
    assert "question" not in walk.came, f"asked before the first screen: {walk.came}"
    if walk.used:
        own = [name for name in walk.came if name not in ("nono", *walk.agent.comes_back, *walk.agent.every_time)]
        assert own == [], f"asked what was answered before: {own}"


def resumes_earlier(walk):
    """The conversation from before nono, which goes on."""
    if not walk.used:
        return "-"
    walk.end()
    walk.start_unasked(*walk.agent.resume)
    walk.screen.wait("done with bare", text=walk.screen.text)
    walk.say("earlier")
    walk.end()
    walk.start_unasked()
    return "ok"


def resizes(walk):
    """Drawn anew in the new size: it learned the width, or its frame would end elsewhere."""
    for columns, rows in ((80, 30), (137, 44), (151, 40), (120, 44)):
        walk.screen.resize(columns, rows)
        walk.screen.wait_width(columns - walk.agent.margin)
        walk.screen.wait(walk.agent.ready)


def answers(walk):
    walk.screen.type("hello there")
    walk.screen.walk("hello from the model", (NO,))


def edits(walk):
    walk.say("edit")
    assert (walk.read("a.txt"), walk.read("new.txt")) == ("bye\n", "hi\n"), "the files are not what was asked for"


def runs_shell(walk):
    walk.say("shell")
    assert walk.read("b.txt") is None, "b.txt is still there"


def is_refused(walk):
    walk.say("outside")
    log = walk.log.read_text(errors="replace")
    assert "xyzzy" not in log, "the file outside reached the model"


def asks_and_gets(walk):
    walk.screen.type("case outside_asked")
    yes = dialog("question", ASKED, "y", after=1.0)
    walk.screen.walk("done with outside_asked", (yes, *walk.agent.allow))
    assert "plugh" in walk.log.read_text(errors="replace"), "what was granted did not arrive"


def answers_rollback(walk):
    """Answered by the hook, word for word; the model is not asked."""
    if not walk.agent.rollback:
        return "-"
    walk.agent.type_rollback(walk.screen)
    walk.screen.walk(r"Checkpoints for (.|\n)*go back to one: +/rollback N", (NO,))
    # Of its own accord an agent may ask its model something meanwhile; not this.
    log = walk.log.read_text(errors="replace")
    assert "nono answers /rollback itself" not in log and f'"{walk.agent.rollback}"' not in log, "the model was asked"
    return "ok"


def saves_settings(walk):
    wanted = walk.agent.settings[0]
    walk.agent.change_setting(walk.screen, wanted)
    time.sleep(1)
    walk.end()
    saved = walk.agent.setting(walk.home)
    assert saved == wanted, f"outside the setting is {saved!r}, not {wanted!r}"


def starts_again(walk):
    walk.start_unasked(*walk.agent.resume)


def resumes(walk):
    walk.screen.wait(walk.agent.remembers, text=walk.screen.text)
    walk.end()


def undoes_one_turn(walk):
    """The turn that ran the shell goes back alone, and comes again; the edits of the turn before it stay."""
    turns = json.loads(walk.nono("turns", "--json").stdout)["turns"]
    shell = [turn for turn in turns if "case shell" in (turn["prompt"] or "")]
    assert shell, f"no turn was asked for that: {[turn['prompt'] for turn in turns]}"
    files = [pathlib.Path(file["path"]).name for file in shell[0]["files"]]
    assert files == ["b.txt"], f"not its files alone: {files}"
    done = walk.nono("undo", "--turn", shell[0]["turn"], "--yes")
    assert done.returncode == 0, done.stderr
    assert (walk.read("a.txt"), walk.read("b.txt")) == ("bye\n", "x\n"), done.stderr
    log = walk.nono("log", "a.txt").stdout
    assert "case edit" in log, f"nothing tells who changed a.txt: {log}"
    back = walk.nono("redo", "--yes")
    assert back.returncode == 0 and walk.read("b.txt") is None, back.stderr


def undoes(walk):
    state = walk.agent.state(walk.home)
    before = {path: path.read_bytes() for path in state}
    assert before, "there is no state to look at"
    done = walk.nono("undo", "--yes")
    assert done.returncode == 0, done.stderr
    now = (walk.read("a.txt"), walk.read("b.txt"), walk.read("new.txt"))
    assert now == ("hello\n", "x\n", None), f"not everything came back: {now}; {done.stderr}"
    changed = [path for path, content in before.items() if not path.exists() or path.read_bytes() != content]
    assert not changed, f"the agent's own state was changed: {changed}"


def works_beside_another(walk):
    """Two in one project: each does its work, and what one saves the other does not undo."""
    first, second = walk.start_unasked(), walk.start_unasked()
    first.type("case first")
    second.type("case second")
    walk.hear(first, "first")
    walk.hear(second, "second")
    assert (walk.read("first.txt"), walk.read("second.txt")) == ("1\n", "2\n"), "not both wrote their file"
    wanted = walk.agent.settings[1]
    walk.agent.change_setting(second, wanted)
    time.sleep(1)
    walk.end(second)
    walk.end(first)
    saved = walk.agent.setting(walk.home)
    assert saved == wanted, f"outside the setting is {saved!r}, not {wanted!r}"
    state = b"".join(path.read_bytes() for path in walk.agent.state(walk.home))
    assert b"done with first" in state and b"done with second" in state, "a conversation is missing"


def undoes_one_of_two(walk):
    """Back to before the one that began last; what the other changed meanwhile goes with it, and that is said."""
    done = walk.nono("undo", "--yes")
    assert done.returncode == 0, done.stderr
    now = (walk.read("first.txt"), walk.read("second.txt"))
    assert now == (None, None), f"not everything came back: {now}; {done.stderr}"
    said = all(word in done.stderr for word in ("first.txt", "second.txt", "ran here at the same time"))
    assert said, f"it was not said: {done.stderr}"


CELLS = [
    ("starts", starts), ("earlier", resumes_earlier), ("resizes", resizes), ("answers", answers), ("edits", edits), ("shell", runs_shell),
    ("refused", is_refused), ("asks", asks_and_gets), ("rollback", answers_rollback), ("saves", saves_settings), ("again", starts_again),
    ("resumes", resumes), ("turn", undoes_one_turn), ("undo", undoes), ("two", works_beside_another), ("undo two", undoes_one_of_two),
    ("mcp", served.serves),
]
