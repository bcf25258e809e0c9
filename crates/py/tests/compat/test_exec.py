"""sandboxed_exec and ExecResult."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from nono_py import AccessMode, CapabilitySet, ExecResult, sandboxed_exec

from .kit import system_caps
from .kit import untyped as nono

pytestmark = pytest.mark.integration

LINUX_PATH = ("PATH", "/usr/bin:/bin")


def sh(script: str, caps: CapabilitySet | None = None, **more: Any) -> ExecResult:
    result: ExecResult = sandboxed_exec(caps or system_caps(), ["/bin/sh", "-c", script], **more)
    return result


def python(code: str, caps: CapabilitySet | None = None, **more: Any) -> ExecResult:
    result: ExecResult = sandboxed_exec(caps or system_caps(), [sys.executable, "-c", code], **more)
    return result


def test_result() -> None:
    result = sh("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 3)
    assert type(result.stdout) is bytes and type(result.stderr) is bytes
    assert repr(result) == "ExecResult(exit_code=3, stdout_len=4, stderr_len=4)"
    with pytest.raises(AttributeError):
        setattr(result, "exit_code", 0)
    shown = result.to_dict()
    assert (shown["exit_code"], shown["stdout"]) == (3, b"out\n")


def test_positions_and_keywords() -> None:
    caps = system_caps()
    positional = sandboxed_exec(caps, ["/bin/sh", "-c", "pwd; echo $A"], "/usr", 20, [("A", "b")], False)
    assert positional.stdout == b"/usr\nb\n"
    named = sandboxed_exec(
        caps=caps,
        command=("/bin/sh", "-c", "pwd; echo $A"),
        cwd=Path("/usr"),
        timeout_secs=20.5,
        env=[("A", "b")],
        inherit_env=False,
    )
    assert named.stdout == positional.stdout


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"command": []}, ValueError, "command must not be empty"),
        ({"timeout_secs": -1}, ValueError, "timeout_secs must be non-negative"),
        ({"timeout_secs": float("nan")}, ValueError, "timeout_secs must be non-negative"),
        ({"timeout_secs": float("-inf")}, ValueError, "timeout_secs must be non-negative"),
        ({"command": ["no-such-program-anywhere"]}, RuntimeError, "Program not found in PATH"),
        ({"command": ["/no/such/program"]}, RuntimeError, "^Program not found:"),
        ({"command": ["/bin/sh", "a\0b"]}, RuntimeError, None),
        ({"cwd": "/no/such/folder"}, RuntimeError, None),
        ({"command": "ls"}, TypeError, None),
        ({"command": [1]}, TypeError, None),
        ({"env": {"A": "b"}}, TypeError, None),
        ({"inherit_env": 1}, TypeError, None),
    ],
)
def test_refused(arguments: dict[str, Any], error: type[Exception], text: str | None) -> None:
    with pytest.raises(error, match=text):
        nono.sandboxed_exec(**{"caps": system_caps(), "command": ["/bin/true"], **arguments})


def test_the_checks_have_an_order() -> None:
    with pytest.raises(ValueError, match="command must not be empty"):
        sandboxed_exec(CapabilitySet(), [], timeout_secs=-1)
    with pytest.raises(ValueError, match="timeout_secs"):
        sandboxed_exec(CapabilitySet(), ["/no/such/program"], timeout_secs=-1)
    with pytest.raises(RuntimeError, match="Program not found"):
        sandboxed_exec(CapabilitySet(), ["/no/such/program"], env=[("LD_PRELOAD", "x")])
    with pytest.raises(ValueError, match="LD_PRELOAD"):
        sandboxed_exec(CapabilitySet(), ["/bin/true"], env=[("LD_PRELOAD", "x")], cwd="/no/such/folder")


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_X", "DYLD_INSERT_LIBRARIES", "LIBPATH", "SHLIB_PATH"],
)
def test_loader_variables_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=name):
        sh("true", env=[(name, "x")])
    monkeypatch.setenv(name, "")
    with pytest.raises(ValueError, match=name):
        sh("true", inherit_env=True)
    assert sh("true").exit_code == 0


@pytest.mark.parametrize("pair", [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")])
def test_bad_variables_are_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ValueError):
        sh("true", env=[pair])


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NONO_COMPAT", "parent")
    program = ["/usr/bin/env"]
    assert sandboxed_exec(system_caps(), program).stdout == b""
    given = sandboxed_exec(system_caps(), program, env=[("B", "1"), ("A", "2"), ("B", "3")])
    assert given.stdout == b"A=2\nB=3\n"
    inherited = sandboxed_exec(system_caps(), program, env=[("A", "2")], inherit_env=True).stdout.split(b"\n")
    assert b"NONO_COMPAT=parent" in inherited and b"A=2" in inherited
    over = sandboxed_exec(system_caps(), program, env=[("NONO_COMPAT", "mine")], inherit_env=True)
    assert b"NONO_COMPAT=mine" in over.stdout and b"NONO_COMPAT=parent" not in over.stdout


def test_lookup_uses_the_path_of_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "my-program"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    caps = system_caps()
    caps.allow_path(tmp_path, AccessMode.READ)
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}:/usr/bin")
    assert sandboxed_exec(caps, ["my-program"], env=[("PATH", "/usr/bin")]).stdout == b"mine\n"


def test_argv_0_stays() -> None:
    assert sandboxed_exec(system_caps(), ["sh", "-c", "echo $0"]).stdout == b"sh\n"


@pytest.mark.parametrize(("script", "code"), [("exit 255", 255), ("kill -9 $$", -9), ("kill -15 $$", -15)])
def test_exit_codes(script: str, code: int) -> None:
    assert sh(script).exit_code == code


def test_127_when_the_program_is_not_covered(tmp_path: Path) -> None:
    result = sandboxed_exec(CapabilitySet(), ["/bin/true"])
    assert result.exit_code == 127
    plain = tmp_path / "plain"
    plain.write_text("no program")
    assert sandboxed_exec(system_caps(), [str(plain)]).exit_code == 127


def test_cwd_need_not_be_granted(tmp_path: Path) -> None:
    result = sandboxed_exec(system_caps(), ["/bin/pwd"], cwd=str(tmp_path))
    assert result.stdout == os.fsencode(tmp_path.resolve()) + b"\n"


def test_only_what_is_granted(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (inside / "f").write_text("granted")
    caps = system_caps()
    caps.allow_path(inside, AccessMode.READ)
    assert sh(f"cat {inside}/f", caps).stdout == b"granted"
    assert sh(f"cat {outside}/secret", caps).exit_code != 0
    assert sh(f"echo x > {inside}/new", caps).exit_code != 0
    assert sh(f"echo x > {outside}/new", caps).exit_code != 0
    caps.allow_path(outside, AccessMode.WRITE)
    assert sh(f"echo x > {outside}/new", caps).exit_code == 0
    assert sh(f"cat {outside}/new", caps).exit_code != 0
    # The caller itself stays free.
    assert (outside / "new").read_text() == "x\n"


def test_timeout() -> None:
    assert sh("sleep 100", timeout_secs=0).exit_code == 124
    late = sh("echo early; sleep 100", timeout_secs=1)
    assert (late.exit_code, late.stdout) == (124, b"early\n")
    for never in (float("inf"), 1e300, 1e9):
        assert sh("exit 5", timeout_secs=never).exit_code == 5


def test_a_timeout_ends_the_whole_tree(tmp_path: Path) -> None:
    caps = system_caps()
    caps.allow_path(tmp_path, AccessMode.READ_WRITE)
    script = f"(sleep 20; touch {tmp_path}/late) & setsid sh -c 'sleep 20; touch {tmp_path}/later' & sleep 30"
    result = sh(script, caps, timeout_secs=0.5, env=[LINUX_PATH])
    assert result.exit_code == 124
    # If it had waited for them, they would have written.
    assert list(tmp_path.iterdir()) == []


def test_large_output() -> None:
    result = python("import sys; sys.stdout.write('o' * 3_000_000); sys.stderr.write('e' * 3_000_000)")
    assert (len(result.stdout), len(result.stderr), result.exit_code) == (3_000_000, 3_000_000, 0)


def test_stdin_is_the_one_of_the_parent() -> None:
    code = (
        "import nono_py as n\n"
        "caps = n.CapabilitySet()\n"
        f"for path in {['/usr', '/bin', '/lib', '/lib64']!r}:\n"
        "    try: caps.allow_path(path, n.AccessMode.READ)\n"
        "    except FileNotFoundError: pass\n"
        "print(n.sandboxed_exec(caps, ['/bin/cat']).stdout)"
    )
    done = subprocess.run([sys.executable, "-c", code], input="hello", capture_output=True, text=True, check=True)
    assert done.stdout == "b'hello'\n"


def test_other_descriptors_are_closed() -> None:
    read, write = os.pipe()
    try:
        os.set_inheritable(write, True)
        code = f"import os\ntry: os.fstat({write}); print('open')\nexcept OSError: print('closed')"
        assert python(code).stdout == b"closed\n"
    finally:
        os.close(read)
        os.close(write)


CONNECT = """
import socket
for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)):
    try:
        with socket.socket(family, kind) as client:
            client.connect(("127.0.0.1", {port}))
            client.send(b"hello")
    except OSError:
        pass
"""


def arrives(caps: CapabilitySet) -> list[bool]:
    """Whether a connection and a datagram of the command get through to us."""
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(tcp.getsockname())
        assert python(CONNECT.format(port=tcp.getsockname()[1]), caps).exit_code == 0
        got = []
        for server in (tcp, udp):
            server.setblocking(False)
            try:
                server.recv(10) if server is udp else server.accept()[0].close()
                got.append(True)
            except BlockingIOError:
                got.append(False)
        return got


def test_network() -> None:
    caps = system_caps()
    assert arrives(caps) == [True, True]
    caps.block_network()
    assert arrives(caps) == [False, False]


def test_any_number_of_threads() -> None:
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(60)]
    for thread in threads:
        thread.start()
    try:
        assert sh("echo fine").stdout == b"fine\n"
    finally:
        end.set()
        for thread in threads:
            thread.join()


def test_other_threads_go_on() -> None:
    count = 0
    end = threading.Event()

    def counting() -> None:
        nonlocal count
        while not end.is_set():
            count += 1

    thread = threading.Thread(target=counting)
    thread.start()
    try:
        before = count
        sh("sleep 0.5", env=[LINUX_PATH])
        assert count > before + 1000
    finally:
        end.set()
        thread.join()


def test_calls_can_be_repeated_and_run_side_by_side() -> None:
    results: list[bytes] = []

    def work(number: int) -> None:
        results.extend(sh(f"echo {number}").stdout for _ in range(5))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(f"{number}\n".encode() for number in range(6) for _ in range(5))
