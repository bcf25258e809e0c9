"""A network of its own, where the names of the agents' services lead to a model on this machine, over TLS.

The process enters a new network and mount namespace: nothing of the machine is changed, and nothing gets out. There the
services' names stand in /etc/hosts with an address of the public kind, so that a filter treats them as it would the real
ones; a certificate authority made for the run is among those the system trusts; and there is a person of its own.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ADDRESS = "20.42.0.10"
UID = 47111
NAMES = [
    "api.anthropic.com", "platform.claude.com", "console.anthropic.com", "claude.ai", "mcp-proxy.anthropic.com",
    "api.openai.com", "chatgpt.com", "auth.openai.com", "ab.chatgpt.com",
    "generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "play.googleapis.com",
    "dashscope.aliyuncs.com", "portal.qwen.ai", "chat.qwen.ai",
    "openrouter.ai", "models.dev", "opencode.ai", "registry.npmjs.org",
    "inference-api.nousresearch.com", "portal.nousresearch.com",
]


def enter():
    """Begin again in namespaces of our own."""
    if os.geteuid() != 0:
        sys.exit("run this as root: it makes a network of its own, and a person in it")
    if os.environ.pop("NONO_AGENTS_WORLD", None):
        return
    for tool in ("unshare", "tmux", "openssl", "ip", "setpriv"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing")
    # With process ids of its own everything that was started ends with it.
    inside = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    os.execvpe("unshare", [*inside, sys.executable, *sys.argv], {**os.environ, "NONO_AGENTS_WORLD": "inside"})


class World:
    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nono-agents-"))
        self.dir.chmod(0o755)
        self.servers, self.mounts = [], []
        self._network()
        self._certificates()
        self._files()

    def _run(self, *words, **more):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)

    def _network(self):
        self._run("ip", "link", "set", "lo", "up")
        # One world after the other has it.
        self._run("ip", "addr", "replace", f"{ADDRESS}/32", "dev", "lo")

    def _certificates(self):
        names = ",".join(f"DNS:{name}" for name in NAMES)
        (self.dir / "names").write_text(f"subjectAltName={names}\n")
        in_dir = {"cwd": self.dir}
        self._run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
                  "-days", "2", "-subj", "/CN=an authority for one run", **in_dir)
        self._run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "model.key", "-out", "model.csr",
                  "-subj", "/CN=model", **in_dir)
        self._run("openssl", "x509", "-req", "-in", "model.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                  "-days", "2", "-extfile", "names", "-out", "model.pem", **in_dir)

    def _files(self):
        """What the system says about names, authorities and people, here alone."""
        trusted = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
        replaced = {
            "/etc/hosts": "127.0.0.1 localhost\n" + "".join(f"{ADDRESS} {name}\n" for name in NAMES),
            "/etc/resolv.conf": "nameserver 127.0.0.1\n",
            "/etc/passwd": pathlib.Path("/etc/passwd").read_text() + f"walker:x:{UID}:{UID}::/nowhere:/bin/bash\n",
            "/etc/group": pathlib.Path("/etc/group").read_text() + f"walker:x:{UID}:\n",
            str(trusted): trusted.read_text() + (self.dir / "ca.pem").read_text(),
        }
        for number, (path, text) in enumerate(replaced.items()):
            file = self.dir / f"etc-{number}"
            file.write_text(text)
            file.chmod(0o644)
            place = str(pathlib.Path(path).resolve())
            self._run("mount", "--bind", str(file), place)
            self.mounts.append(place)

    def person(self):
        """What runs a command as the person."""
        return ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups"]

    def serve(self, cases, log):
        """Start the model, with what it is to do in each case; at the services' own port."""
        script, port = self.dir / "cases.json", self.dir / "port"
        script.write_text(json.dumps(cases))
        port.unlink(missing_ok=True)
        words = [sys.executable, str(HERE / "model.py"), str(script), str(port), "--listen", f"{ADDRESS}:443",
                 "--tls", str(self.dir / "model.pem"), str(self.dir / "model.key")]
        server = subprocess.Popen(words, env={**os.environ, "MODEL_LOG": str(log)})
        self.servers.append(server)
        while not port.exists():
            if server.poll() is not None:
                sys.exit("the model did not start")
            time.sleep(0.05)
        return server

    def home(self, name):
        """A home that nobody has lived in, with a project in it."""
        home = self.dir / name
        project = home / "my project"
        project.mkdir(parents=True)
        (project / "Makefile").write_text("")
        (project / "a.txt").write_text("hello\n")
        (project / "b.txt").write_text("x\n")
        (home / "secret.txt").write_text("a word that only this file has: xyzzy\n")
        (home / "wanted.txt").write_text("a word that only this file has: plugh\n")
        self.give(home)
        return home, project

    def give(self, folder):
        """Make everything in a folder the person's."""
        self._run("chown", "-R", f"{UID}:{UID}", str(folder))

    def close(self):
        for server in self.servers:
            server.terminate()
            server.wait()
        # The next one mounts its own.
        for place in reversed(self.mounts):
            self._run("umount", "--lazy", place)
        shutil.rmtree(self.dir, ignore_errors=True)
