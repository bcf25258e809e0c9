"""What has to hold for each agent, one cell after the other, as a person would go through a day with it."""

import subprocess
import time

import served
from agents import dialog
from screen import Screen

AGREE = dialog("nono", r"like this from now on\? \[y/N\]\s*\Z", "y", "Enter")
# The question of the sandbox about a file, which a person answers with no, unless a cell says otherwise.
ASKED = r"\[nono\] Allow\? \[y/N\]"


class Walk:
    """One agent in one home."""

    def __init__(self, agent, world, nono):
        self.agent, self.world = agent, world
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
            "SSL_CERT_FILE": trusted, **agent.env,
        }
        self.screens, self.screen, self.came = 0, None, []
        agent.prepare(self.home)
        world.give(self.home)
        # Screens have their sockets there.
        world.dir.chmod(0o777)

    def start(self, *arguments):
        self.screens += 1
        socket = str(self.world.dir / f"screen-{self.screens}")
        words = ["nono", self.agent.word, *arguments]
        self.screen = Screen(self.world.person(), socket, words, str(self.project), self.env)
        self.came = self.screen.walk(self.agent.ready, (AGREE, NO, *self.agent.dialogs))

    def say(self, case):
        self.screen.type(f"case {case}")
        self.screen.walk(f"done with {case}", (NO, *self.agent.allow))

    def end(self):
        self.agent.quit(self.screen)
        said = self.screen.wait_ended()
        self.screen.close()
        self.screen = None
        return said

    def nono(self, *words):
        variables = [f"{name}={value}" for name, value in self.env.items()]
        words = [*self.world.person(), "env", "-i", *variables, "nono", *words]
        return subprocess.run(words, cwd=self.project, text=True, capture_output=True)

    def read(self, name):
        path = self.project / name
        return path.read_text() if path.exists() else None

    def close(self):
        if self.screen:
            self.screen.close()


NO = dialog("question", ASKED, "n", after=0.8)


def starts(walk):
    walk.start()
    assert walk.came.count("nono") == 1, f"asked {walk.came}"
    assert "question" not in walk.came, f"asked before the first screen: {walk.came}"


def resizes(walk):
    walk.screen.resize(80, 30)
    walk.screen.wait(walk.agent.ready)
    walk.screen.resize(120, 44)
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
    walk.agent.change_setting(walk.screen)
    time.sleep(1)
    walk.end()
    assert walk.agent.setting_saved(walk.home), "the setting is not saved outside"


def starts_again(walk):
    walk.start(*walk.agent.resume)
    walk.came = [name for name in walk.came if name not in walk.agent.every_time]
    assert walk.came == [], f"asked again: {walk.came}"


def resumes(walk):
    walk.agent.look_back(walk.screen)
    walk.screen.wait(walk.agent.remembers, text=walk.screen.text)
    walk.end()


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


CELLS = [
    ("starts", starts), ("resizes", resizes), ("answers", answers), ("edits", edits), ("shell", runs_shell),
    ("refused", is_refused), ("asks", asks_and_gets), ("rollback", answers_rollback), ("saves", saves_settings), ("again", starts_again),
    ("resumes", resumes), ("undo", undoes), ("mcp", served.serves),
]
