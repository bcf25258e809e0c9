"""SupportInfo, is_supported, support_info, apply."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nono_py import is_supported, support_info


def test_support() -> None:
    info = support_info()
    assert is_supported() is info.is_supported
    assert info.platform == "linux"
    assert isinstance(info.details, str) and info.details
    shown = "true" if info.is_supported else "false"
    assert repr(info) == f"SupportInfo(supported={shown}, platform='linux')"
    with pytest.raises(AttributeError):
        setattr(info, "platform", "x")


def run(code: str, *arguments: object) -> str:
    """In a process of its own: `apply` cannot be undone."""
    command = [sys.executable, "-c", "import os, socket, sys, threading, nono_py as n\n" + code]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.integration
def test_apply(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").write_text("granted")
    (tmp_path / "out").write_text("secret")
    code = """
assert open(sys.argv[2]).read() == "secret"
caps = n.CapabilitySet()
caps.allow_path(sys.argv[1], n.AccessMode.READ)
assert n.apply(caps=caps) is None
print(open(sys.argv[1] + "/f").read())
for path, mode in ((sys.argv[2], "r"), (sys.argv[1] + "/f", "w")):
    try:
        open(path, mode)
    except PermissionError as error:
        print(error.errno)
n.apply(n.CapabilitySet())
try:
    open(sys.argv[1] + "/f")
except PermissionError:
    print("stacked")
"""
    assert run(code, tmp_path / "in", tmp_path / "out").split() == ["granted", "13", "13", "stacked"]


@pytest.mark.integration
def test_apply_with_other_threads_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("still open")
    code = """
end = threading.Event()
thread = threading.Thread(target=end.wait)
thread.start()
try:
    n.apply(n.CapabilitySet())
except RuntimeError as error:
    print(isinstance(error, n.NonoError), open(sys.argv[1]).read())
finally:
    end.set()
    thread.join()
"""
    assert run(code, tmp_path / "f") == "True still open"


@pytest.mark.integration
def test_apply_blocks_the_network() -> None:
    code = """
server = socket.create_server(("127.0.0.1", 0))
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", receiver.getsockname())
assert receiver.recv(1) == b"x"
caps = n.CapabilitySet()
caps.block_network()
n.apply(caps)
try:
    socket.create_connection(server.getsockname())
    print("connected")
except OSError:
    print("refused")
try:
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.sendto(b"x", receiver.getsockname())
except OSError:
    pass
receiver.setblocking(False)
try:
    print(receiver.recv(1))
except BlockingIOError:
    print("nothing")
"""
    assert run(code) == "refused\nnothing"
