"""What a command under ``sandboxed_exec`` cannot do. Each attack succeeds without the sandbox, or it proves nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from exec_kit import PATH, sh, system
from nono_py import AccessMode, CapabilitySet, sandboxed_exec


def python(caps: CapabilitySet, code: str, *arguments: object, **rest: object) -> bytes:
    command = [sys.executable, "-I", "-c", code, *map(str, arguments)]
    result = sandboxed_exec(caps, command, env=PATH, **rest)  # type: ignore[arg-type]
    return result.stdout or result.stderr


def outside(code: str, *arguments: object) -> bytes:
    """The same without a sandbox."""
    return subprocess.run([sys.executable, "-I", "-c", code, *map(str, arguments)], stdout=-1).stdout


READ = "import sys\ntry: print(open(sys.argv[1]).read())\nexcept OSError as e: print('refused', e.errno)"
WRITE = "import sys\ntry: open(sys.argv[1], 'w'); print('yes')\nexcept OSError as e: print('refused')"


def test_files_that_were_not_granted(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    (tmp_path / "granted").mkdir()
    caps = system(tmp_path / "granted")
    assert outside(READ, secret) == b"s3cret\n"
    assert python(caps, READ, secret) == b"refused 13\n"
    assert python(caps, WRITE, secret) == b"refused\n"
    caps.allow_file(secret, AccessMode.READ)
    assert python(caps, READ, secret) == b"s3cret\n"
    assert python(caps, WRITE, secret) == b"refused\n"
    caps.allow_file(secret, AccessMode.WRITE)
    assert python(caps, WRITE, secret) == b"yes\n"


def test_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    granted = tmp_path / "granted"
    granted.mkdir()
    (granted / "link").symlink_to(tmp_path / "secret")
    assert outside(READ, granted / "link") == b"s3cret\n"
    assert python(system(granted), READ, granted / "link") == b"refused 13\n"
    assert python(system(granted), READ, f"{granted}/../secret") == b"refused 13\n"


PARENT = """
import ctypes, os, signal, sys
pid = int(sys.argv[1])
def attempt(what, do):
    try: print(what, 'yes' if do() else 'no')
    except OSError: print(what, 'no')
attempt('see', lambda: os.path.exists(f'/proc/{pid}/status') and str(pid) in open(f'/proc/{pid}/cmdline').read())
attempt('signal', lambda: os.kill(pid, 0) is None)
attempt('attach', lambda: ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0)
attempt('memory', lambda: open(f'/proc/{pid}/mem', 'rb') is not None)
"""


def test_the_process_that_started_it() -> None:
    caps = system()
    caps.allow_path("/proc", AccessMode.READ)
    # A victim process that prints its pid, and lets other processes of its user attach.
    code = "import ctypes, os, sys; ctypes.CDLL(None).prctl(0x59616d61, -1); print(os.getpid(), flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-I", "-c", code], stdin=-1, stdout=-1) as victim:
        assert victim.stdout is not None
        victim.stdout.readline()
        confined = python(caps, PARENT, victim.pid).decode().split()
        everything = outside(PARENT, victim.pid).decode().splitlines()
        # The process that attached leaves it stopped.
        victim.kill()
    assert {"signal yes", "attach yes", "memory yes"} <= set(everything)
    assert confined == ["see", "no", "signal", "no", "attach", "no", "memory", "no"]
    mine = python(caps, PARENT, os.getpid()).decode().split()
    assert mine == ["see", "no", "signal", "no", "attach", "no", "memory", "no"]


def test_descriptors_of_the_host(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    code = "import os\nfor fd in range(3, 4096):\n  try: print(fd, os.fstat(fd).st_ino)\n  except OSError: pass"
    descriptor = os.open(secret, os.O_RDONLY)
    try:
        os.set_inheritable(descriptor, True)
        inode = str(os.fstat(descriptor).st_ino)
        command = [sys.executable, "-I", "-c", code]
        assert inode in subprocess.run(command, stdout=-1, close_fds=False, text=True).stdout
        assert python(system(), code) == b""
    finally:
        os.close(descriptor)


SEND = """
import socket, sys
family, kind = (socket.AF_INET, {'tcp': socket.SOCK_STREAM, 'udp': socket.SOCK_DGRAM}[sys.argv[1]])
try:
    s = socket.socket(family, kind); s.settimeout(5)
    s.connect(('127.0.0.1', int(sys.argv[2]))); s.send(b'hello'); print('sent')
except OSError: print('refused')
"""


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_a_blocked_network(kind: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        port = server.getsockname()[1]
        if kind == "tcp":
            server.listen()
        assert outside(SEND, kind, port) == b"sent\n"
        if kind == "udp":
            assert server.recv(10) == b"hello"
        python(system(), SEND, kind, port)
        server.setblocking(False)
        if kind == "tcp":
            server.accept()[0].close()
            with pytest.raises(BlockingIOError):
                server.accept()
        else:
            with pytest.raises(BlockingIOError):
                server.recv(10)
        opened = CapabilitySet()
        for path in ["/usr", "/bin", "/lib", "/lib64", os.path.realpath(sys.base_prefix), sys.prefix]:
            if os.path.isdir(path):
                opened.allow_path(path, AccessMode.READ)
        assert python(opened, SEND, kind, port) == b"sent\n", "an open network is open"


def test_abstract_sockets_of_the_host() -> None:
    name = f"\0nono-test-{os.getpid()}"
    code = (
        "import socket, sys\ns = socket.socket(socket.AF_UNIX)\n"
        "try: s.connect('\\0' + sys.argv[1]); print('yes')\nexcept OSError: print('refused')"
    )
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        assert outside(code, name[1:]) == b"yes\n"
        assert python(system(), code, name[1:]) == b"refused\n"


def test_nonos_own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "home" / ".nono"
    state.mkdir(parents=True)
    (state / "secret").write_text("s3cret")
    monkeypatch.setenv("NONO_HOME", str(tmp_path / "elsewhere"))
    caps = system(tmp_path)
    assert python(caps, READ, state / "secret") == b"s3cret\n"
    monkeypatch.setenv("NONO_HOME", str(state))
    # Without a mount namespace the whole command is refused.
    assert python(caps, READ, state / "secret").startswith((b"refused", b"nono: "))
    assert python(caps, WRITE, state / "made").startswith((b"refused", b"nono: "))


def test_the_folders_of_sessions(tmp_path: Path) -> None:
    base = Path(os.environ["TMPDIR"]).resolve()
    caps = system(base)
    attack = f"cd {base}/nono-{os.geteuid()} && for f in closed closed-file empty; do chmod 777 $f && echo changed; mv $f x-$f && echo moved; done; echo x > made && echo made"
    assert sh(caps, attack).stdout == b""
    assert sh(caps, f"echo x > {tmp_path}/made && echo made").stdout == b"made\n"


def test_privileges_cannot_be_regained() -> None:
    caps = system()
    caps.allow_path("/proc", AccessMode.READ)
    status = sh(caps, "cat /proc/self/status").stdout.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
    assert int(fields["CapEff"], 16) == 0 and int(fields["CapPrm"], 16) == 0


def test_the_terminal_is_not_typed_into() -> None:
    # A terminal of ours as the command's input: it must not be able to put words into it.
    code = (
        "import fcntl, termios\n"
        "try: fcntl.ioctl(0, termios.TIOCSTI, b'x'); print('typed')\nexcept OSError: print('refused')"
    )
    master, slave = os.openpty()
    saved = os.dup(0)
    try:
        os.dup2(slave, 0)
        assert python(system(), code) == b"refused\n"
    finally:
        os.dup2(saved, 0)
        for descriptor in (saved, master, slave):
            os.close(descriptor)
