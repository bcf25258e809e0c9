"""apply(), for real: each test confines a process of its own, and looks what that can still do."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

# What the interpreter itself needs; the rest is up to each test. `attempt` gives "ok" or the name of the errno.
PRELUDE = """
import errno, json, os, socket, sys, threading
import nono_py
from nono_py import AccessMode, CapabilitySet, apply

READ, WRITE, READ_WRITE = AccessMode.READ, AccessMode.WRITE, AccessMode.READ_WRITE
root = sys.argv[1]
seen = {}

def system(caps):
    for path in ("/usr", "/lib", "/lib64", sys.prefix):
        if os.path.isdir(path):
            caps.allow_path(path, READ)
    return caps

def attempt(name, work):
    try:
        work()
        seen[name] = "ok"
    except OSError as error:
        seen[name] = errno.errorcode[error.errno]

def read(path):
    with open(path, "rb") as file:
        file.read()

def write(path):
    with open(path, "wb") as file:
        file.write(b"x")

def tcp(port, host="127.0.0.1"):
    socket.create_connection((host, port), timeout=10).close()

def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", 9))

def bind():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

assert nono_py.is_supported()
"""


def confined(script: str, *arguments: object) -> Any:
    """Run a script that fills `seen`, in a process of its own."""
    code = PRELUDE + textwrap.dedent(script) + "\nprint(json.dumps(seen))\n"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture()
def world(tmp_path: Path) -> Path:
    """`in/` and `out/`, with a file each."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "in" / "link").symlink_to("../out/file")
    return tmp_path


ACCESS = """
    attempts = {
        "read in": lambda: read(root + "/in/file"),
        "write in": lambda: write(root + "/in/new"),
        "list in": lambda: os.listdir(root + "/in"),
        "remove in": lambda: os.unlink(root + "/in/new"),
        "read out": lambda: read(root + "/out/file"),
        "write out": lambda: write(root + "/out/new"),
        "list out": lambda: os.listdir(root + "/out"),
        "through link": lambda: read(root + "/in/link"),
        "through dots": lambda: read(root + "/in/../out/file"),
        "passwd": lambda: read("/etc/passwd"),
    }
    for name, work in attempts.items():
        attempt(name, work)
"""


def test_without_apply_everything_here_can_be_reached(world: Path) -> None:
    assert set(confined(ACCESS, world).values()) == {"ok"}


@pytest.mark.parametrize(
    ("mode", "possible"),
    [
        ("READ", {"read in", "list in"}),
        ("WRITE", {"write in", "remove in"}),
        ("READ_WRITE", {"read in", "list in", "write in", "remove in"}),
    ],
)
def test_only_what_is_granted_can_be_reached(world: Path, mode: str, possible: set[str]) -> None:
    script = f"""
    caps = system(CapabilitySet())
    caps.allow_path(root + "/in", {mode})
    assert apply(caps) is None
    """
    seen = confined(script + ACCESS, world)
    if mode == "READ":
        # It was never made.
        assert seen.pop("remove in") in ("EACCES", "ENOENT")
    assert seen == {name: "ok" if name in possible else "EACCES" for name in seen}


def test_one_file_is_one_file(world: Path) -> None:
    script = """
    caps = system(CapabilitySet())
    caps.allow_file(root + "/in/file", READ_WRITE)
    apply(caps)
    """
    seen = confined(script + ACCESS + '    attempt("write file", lambda: write(root + "/in/file"))', world)
    assert {name for name, result in seen.items() if result == "ok"} == {"read in", "write file"}


def test_a_denial_is_a_permission_error_and_children_inherit_it(world: Path) -> None:
    script = """
    import subprocess
    apply(system(CapabilitySet()))
    try:
        open(root + "/out/file")
    except PermissionError as error:
        seen["errno"] = error.errno
    seen["child"] = subprocess.run(["/usr/bin/cat", root + "/out/file"], stderr=subprocess.PIPE).returncode
    """
    assert confined(script, world) == {"errno": 13, "child": 1}


def test_applied_twice_both_hold(world: Path) -> None:
    script = """
    first = system(CapabilitySet())
    first.allow_path(root + "/in", READ_WRITE)
    apply(first)
    wider = system(CapabilitySet())
    wider.allow_path(root + "/in", READ)
    wider.allow_path(root, READ_WRITE)
    apply(wider)
    attempt("second cannot widen", lambda: read(root + "/out/file"))
    attempt("both allow", lambda: write(root + "/in/new"))
    narrower = system(CapabilitySet())
    narrower.allow_path(root + "/in", READ)
    apply(narrower)
    attempt("read stays", lambda: read(root + "/in/file"))
    attempt("write is gone", lambda: write(root + "/in/new"))
    """
    assert confined(script, world) == {
        "second cannot widen": "EACCES",
        "both allow": "ok",
        "read stays": "ok",
        "write is gone": "EACCES",
    }


NETWORK = """
    port = int(sys.argv[2])
    other = int(sys.argv[3])
    attempt("tcp", lambda: tcp(port))
    attempt("other", lambda: tcp(other))
    attempt("udp", udp)
    attempt("bind", bind)
"""


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@pytest.mark.parametrize("blocked", [False, True])
def test_a_blocked_network_has_neither_tcp_nor_udp(world: Path, blocked: bool) -> None:
    script = f"""
    caps = system(CapabilitySet())
    if {blocked}:
        caps.block_network()
    apply(caps)
    """
    with listening() as one, listening() as two:
        seen = confined(script + NETWORK, world, one.getsockname()[1], two.getsockname()[1])
    if blocked:
        assert set(seen) == {"tcp", "other", "udp", "bind"}
        assert set(seen.values()) <= {"EACCES", "EPERM", "EAFNOSUPPORT"}
    else:
        assert set(seen.values()) == {"ok"}


THREADS = """
    seen["abi"] = int(nono_py.support_info().details.split(":")[0].removeprefix("Landlock V"))
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        apply(system(CapabilitySet()))
        seen["error"] = None
    except nono_py.SandboxError as error:
        seen["error"] = [error.kind, str(error), isinstance(error, RuntimeError)]
    finally:
        release.set()
        thread.join()
    attempt("after refusal", lambda: read(root + "/out/file"))
    apply(system(CapabilitySet()))
    attempt("alone", lambda: read(root + "/out/file"))
"""


def test_other_threads_refuse_it_unless_the_kernel_confines_them_too(world: Path) -> None:
    seen = confined(THREADS, world)
    if seen["abi"] >= 8:
        assert seen["error"] is None and seen["after refusal"] == "EACCES"
        return
    kind, message, is_runtime_error = seen["error"]
    assert kind == "threads" and is_runtime_error
    assert "sandboxed_exec" in message and "before other threads start" in message
    # Nothing was applied half.
    assert seen["after refusal"] == "ok"
    assert seen["alone"] == "EACCES"


def test_what_needs_namespaces_is_refused_and_nothing_applied(world: Path) -> None:
    script = """
    caps = system(CapabilitySet())
    caps.allow_path(root, READ)
    caps.deny_path(root + "/out")
    try:
        apply(caps)
    except nono_py.SandboxError as error:
        seen["kind"], seen["path"] = error.kind, error.path
    attempt("after refusal", lambda: read("/etc/passwd"))
    """
    assert confined(script, world) == {
        "kind": "cannot_mask",
        "path": str(world / "out"),
        "after refusal": "ok",
    }


def test_a_path_replaced_by_a_link_is_refused(world: Path) -> None:
    script = """
    caps = system(CapabilitySet())
    caps.allow_path(root + "/in", READ)
    os.rename(root + "/in", root + "/moved")
    os.symlink("out", root + "/in")
    try:
        apply(caps)
    except nono_py.SandboxError as error:
        seen["kind"] = error.kind
    """
    assert confined(script, world)["kind"] in ("changed", "rule")


AGREEMENT = """
    import random

    random.seed(7)
    paths = ["a", "a/f", "a/b", "a/b/f", "a/b/c", "a/b/c/f", "a/new", "a/b/new", "o", "o/f", "o/new", "a/link", "a/out",
             "a/out/f", "a/dangling", "a/b/../f", "a/out/../o/f", "a/none/../../o/f", "a/../o/f"]
    missing = {"a/new", "a/b/new", "o/new", "a/dangling"}
    seen["cases"] = seen["allowed"] = 0
    seen["wrong"] = []

    def kernel(path, mode):
        full = os.path.join(root, path)
        try:
            if os.path.isdir(full):
                if mode is READ:
                    os.listdir(full)
                else:
                    made = os.path.join(full, "probe")
                    os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                    os.unlink(made)
            elif mode is READ:
                os.close(os.open(full, os.O_RDONLY))
            else:
                os.close(os.open(full, os.O_WRONLY | (os.O_CREAT if path in missing else 0)))
                if path in missing:
                    os.unlink(os.path.realpath(full))
        except PermissionError:
            return "denied"
        return "allowed"

    def one(caps):
        context = nono_py.QueryContext(caps)
        apply(caps)
        answers = []
        for path in paths:
            for mode in (READ, WRITE):
                if "none" in path or (path in missing and mode is READ):
                    continue  # the kernel says that there is no such file, whatever is granted
                said = context.query_path(os.path.join(root, path), mode)["status"]
                answers.append([path, str(mode), said, kernel(path, mode)])
        return answers

    for case in range(80):
        caps = system(CapabilitySet())
        for _ in range(random.randint(1, 4)):
            grant = os.path.join(root, random.choice(["a", "a/b", "a/b/c", "o", "a/f", "a/b/f", "o/f", "a/link"]))
            allow = caps.allow_path if os.path.isdir(grant) else caps.allow_file
            allow(grant, random.choice([READ, WRITE, READ_WRITE]))
        if case % 2:
            caps.deduplicate()
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writable, json.dumps(one(caps)).encode())
            finally:
                os._exit(0)
        os.close(writable)
        with os.fdopen(readable) as file:
            answers = json.load(file)
        os.waitpid(child, 0)
        seen["cases"] += len(answers)
        seen["allowed"] += sum(said == "allowed" for _, _, said, _ in answers)
        shown = [str(grant) for grant in caps.fs_capabilities() if grant.resolved.startswith(root)]
        seen["wrong"] += [[shown, *answer] for answer in answers if answer[2] != answer[3]]
"""


def test_what_is_said_is_what_the_kernel_does(tmp_path: Path) -> None:
    for folder in ("a/b/c", "o"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("a/f", "a/b/f", "a/b/c/f", "o/f"):
        (tmp_path / file).write_text("x")
    (tmp_path / "a/link").symlink_to("../o/f")
    (tmp_path / "a/out").symlink_to("../o")
    (tmp_path / "a/dangling").symlink_to(tmp_path / "o" / "later")
    seen = confined(AGREEMENT, tmp_path)
    assert seen["wrong"] == []
    # Enough of both kinds to mean something.
    assert seen["cases"] > 2000
    assert seen["cases"] // 10 < seen["allowed"] < seen["cases"] * 9 // 10


def test_a_confined_process_can_still_ask(world: Path) -> None:
    script = """
    caps = system(CapabilitySet())
    caps.allow_path(root + "/in", READ)
    caps.block_network()
    state = nono_py.SandboxState.from_caps(caps)
    apply(caps)
    seen["supported"] = nono_py.is_supported()
    seen["info"] = nono_py.support_info().is_supported
    again = state.to_caps()
    seen["in"] = nono_py.QueryContext(again).query_path(root + "/in/file", READ)["status"]
    seen["out"] = nono_py.QueryContext(again).query_path(root + "/out/file", READ)["status"]
    """
    assert confined(script, world) == {"supported": True, "info": True, "in": "allowed", "out": "denied"}


def test_apply_takes_a_set_and_nothing_else() -> None:
    import nono_py

    wrong: Any = "caps"
    with pytest.raises(TypeError):
        nono_py.apply(wrong)
