"""``sandboxed_exec``: what goes in, what comes out."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import nono_py
from exec_kit import PATH, left_folders, marker, running, sh, system
from nono_py import AccessMode, Cancel, CapabilitySet, ExecResult, sandboxed_exec


@pytest.fixture()
def caps(tmp_path: Path) -> CapabilitySet:
    return system(tmp_path)


@pytest.mark.smoke
def test_output_and_code(caps: CapabilitySet) -> None:
    result = sh(caps, "echo out; echo err >&2; exit 7")
    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 7)
    assert type(result.stdout) is bytes and type(result.stderr) is bytes
    assert not result.timed_out and not result.truncated
    assert repr(result) == "ExecResult(exit_code=7, stdout_len=4, stderr_len=4)"
    assert result.to_dict() == {
        "stdout": b"out\n",
        "stderr": b"err\n",
        "exit_code": 7,
        "timed_out": False,
        "truncated": False,
    }
    assert sh(caps, "true").exit_code == 0


def test_the_result_has_no_constructor_and_no_attributes_of_its_own(caps: CapabilitySet) -> None:
    with pytest.raises(TypeError):
        ExecResult()
    result = sh(caps, "true")
    with pytest.raises(AttributeError):
        result.exit_code = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        result.other = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        type("Sub", (ExecResult,), {})


def test_a_signal_is_negative(caps: CapabilitySet) -> None:
    assert sh(caps, "kill -KILL $$").exit_code == -signal.SIGKILL
    assert sh(caps, "kill -TERM $$").exit_code == -signal.SIGTERM


def test_signals_are_as_a_command_expects_them(caps: CapabilitySet) -> None:
    # Python ignores SIGPIPE and SIGXFSZ for itself.
    caps.allow_path("/proc", AccessMode.READ)
    status = sh(caps, "cat /proc/self/status").stdout.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["SigIgn"], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0
    assert int(fields["SigBlk"], 16) == 0


def test_wrong_calls_in_order(caps: CapabilitySet, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="command must not be empty"):
        sandboxed_exec(caps, [], cwd=nowhere, timeout_secs=-1, env=[("LD_PRELOAD", "x")])
    for wrong in (-1, -0.001, math.nan, -math.inf):
        with pytest.raises(ValueError, match="timeout_secs must be non-negative"):
            sandboxed_exec(caps, ["no-such-thing"], timeout_secs=wrong)
    with pytest.raises(RuntimeError, match="Program not found in PATH") as raised:
        sandboxed_exec(caps, ["no-such-thing", "\0"], cwd=nowhere, env=[("LD_PRELOAD", "x")])
    assert isinstance(raised.value, nono_py.ExecError)
    assert (raised.value.kind, raised.value.path) == ("program_not_found", "no-such-thing")
    with pytest.raises(nono_py.ExecError, match="^Program not found: "):
        sandboxed_exec(caps, ["./no-such-thing"])
    with pytest.raises(RuntimeError, match="NUL"):
        sandboxed_exec(caps, ["env", "a\0b"], cwd=nowhere, env=[("LD_PRELOAD", "x")])
    with pytest.raises(ValueError, match="LD_PRELOAD"):
        sandboxed_exec(caps, ["env"], cwd=nowhere, env=[("LD_PRELOAD", "x")])
    with pytest.raises(RuntimeError, match="nowhere") as gone:
        sandboxed_exec(caps, ["env"], cwd=nowhere)
    assert isinstance(gone.value, nono_py.ExecError) and gone.value.path == nowhere


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "true"},
        {"command": ["true"], "env": {"A": "B"}},
        {"command": ["true"], "env": [("A", 1)]},
        {"command": ["true"], "inherit_env": 1},
        {"command": ["true"], "timeout_secs": "1"},
        {"command": ["true"], "stdin": "text"},
        {"command": [1]},
        {"command": None},
    ],
)
def test_wrong_types(caps: CapabilitySet, arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        sandboxed_exec(caps, **arguments)


def test_what_is_ours_is_by_keyword_only(caps: CapabilitySet) -> None:
    with pytest.raises(TypeError):
        sandboxed_exec(caps, ["true"], None, None, None, False, b"")  # type: ignore[call-arg]
    with pytest.raises(OverflowError):
        sandboxed_exec(caps, ["true"], max_output=-1)


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "LIBPATH", "SHLIB_PATH", "", "A=B", "A\0B"]
)
def test_variables_that_no_command_gets(caps: CapabilitySet, name: str) -> None:
    with pytest.raises(ValueError) as raised:
        sandboxed_exec(caps, ["env"], env=[("FINE", "1"), (name, "x")])
    assert name.replace("\0", "\\0") in str(raised.value)


def test_a_value_with_nul_names_its_variable(caps: CapabilitySet) -> None:
    with pytest.raises(ValueError, match="NAME"):
        sandboxed_exec(caps, ["env"], env=[("NAME", "a\0b")])


def test_the_environment(caps: CapabilitySet, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sandboxed_exec(caps, ["env"]).stdout == b""
    env = [("B", "1"), ("A", "x y"), ("B", "2"), ("EMPTY", "")]
    assert sandboxed_exec(caps, ["env"], env=env).stdout == b"A=x y\nB=2\nEMPTY=\n"
    monkeypatch.setenv("NONO_TEST_VARIABLE", "here")
    inherited = sandboxed_exec(caps, ["env"], inherit_env=True, env=[("HOME", "/other")]).stdout.splitlines()
    assert b"NONO_TEST_VARIABLE=here" in inherited and b"HOME=/other" in inherited
    assert inherited == sorted(inherited)
    monkeypatch.setenv("LD_AUDIT", "x")
    with pytest.raises(ValueError, match="LD_AUDIT"):
        sandboxed_exec(caps, ["env"], inherit_env=True)
    assert sandboxed_exec(caps, ["env"]).exit_code == 0


def test_bytes_that_are_no_text(caps: CapabilitySet, tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff\xfe")
    result = sandboxed_exec(caps, ["printf", "%s", odd], env=[("ODD", odd)])
    assert result.stdout == b"\xff\xfe"
    assert sandboxed_exec(caps, ["env"], env=[("ODD", odd)]).stdout == b"ODD=\xff\xfe\n"
    folder = tmp_path / odd
    folder.mkdir()
    assert sandboxed_exec(caps, ["pwd"], cwd=folder).stdout == os.fsencode(folder) + b"\n"


def test_where_it_runs(caps: CapabilitySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert sandboxed_exec(caps, ["pwd"], cwd=str(folder)).stdout == bytes(folder) + b"\n"
    monkeypatch.chdir(tmp_path)
    assert sandboxed_exec(caps, ["pwd"]).stdout == bytes(tmp_path) + b"\n"
    assert sandboxed_exec(caps, ["pwd"], cwd="folder").stdout == bytes(folder) + b"\n"
    (tmp_path / "link").symlink_to("folder")
    assert sandboxed_exec(caps, ["pwd"], cwd="link").stdout == bytes(folder) + b"\n"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sandboxed_exec(caps, ["pwd"], cwd="~/folder").stdout == bytes(folder) + b"\n"
    file = tmp_path / "file"
    file.touch()
    result = sandboxed_exec(caps, ["pwd"], cwd=file)
    assert (result.exit_code, result.stdout) == (126, b"")
    assert result.stderr.startswith(b"nono: ")


def test_which_program(caps: CapabilitySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "s.sh").write_text(f"#!/bin/sh\necho {folder.name} $0\n")
        (folder / "s.sh").chmod(0o755)
    (here / "only-here").symlink_to("s.sh")
    monkeypatch.chdir(here)
    assert sandboxed_exec(caps, ["./s.sh"]).stdout.startswith(b"here ")
    # Found where it is executed.
    assert sandboxed_exec(caps, ["./s.sh"], cwd=there).stdout.startswith(b"there ")
    with pytest.raises(nono_py.ExecError, match="Program not found: "):
        sandboxed_exec(caps, ["./only-here"], cwd=there)
    # The parent's PATH counts, not the command's.
    monkeypatch.setenv("PATH", f"{there}:{os.environ['PATH']}")
    assert sandboxed_exec(caps, ["s.sh"], env=[("PATH", str(here))]).stdout.startswith(b"there ")
    monkeypatch.delenv("PATH")
    with pytest.raises(nono_py.ExecError, match="Program not found in PATH"):
        sandboxed_exec(caps, ["s.sh"])


def test_the_first_word_is_as_given(caps: CapabilitySet) -> None:
    caps.allow_path("/proc", AccessMode.READ)
    result = sandboxed_exec(caps, ["cat", "/proc/self/cmdline"])
    assert result.stdout == b"cat\0/proc/self/cmdline\0"
    assert sandboxed_exec(caps, [Path("/usr/bin/env")]).exit_code == 0


def test_what_cannot_be_executed_is_127(caps: CapabilitySet, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    for command in ([str(plain)], [str(tmp_path)]):
        result = sandboxed_exec(caps, command)
        assert result.exit_code == 127
        assert result.stderr.startswith(b"nono: cannot execute ")
    # Not granted.
    result = sandboxed_exec(CapabilitySet(), ["/usr/bin/env"])
    assert (result.exit_code, result.stdout) == (127, b"")
    assert b"granted" in result.stderr
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    assert sandboxed_exec(caps, [tmp_path / "script"]).exit_code == 127


def test_times(caps: CapabilitySet, tmp_path: Path) -> None:
    result = sh(caps, "echo x > made", timeout_secs=0, cwd=tmp_path)
    assert (result.exit_code, result.timed_out) == (124, True)
    assert not (tmp_path / "made").exists()
    for endless in (math.inf, 1e300, None, 1e10):
        assert sh(caps, "exit 3", timeout_secs=endless).exit_code == 3
    assert sh(caps, "exit 3", timeout_secs=3600).exit_code == 3


def test_time_runs_out_for_the_whole_tree(caps: CapabilitySet) -> None:
    nap = marker()
    # It left its session and its parent, ignores what can be ignored, and holds both pipes.
    stubborn = f"trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM HUP; sleep {nap}; sleep {nap}' &) ; echo up; sleep {nap}"
    result = sh(caps, stubborn, timeout_secs=1)
    assert (result.exit_code, result.timed_out, result.stdout) == (124, True, b"up\n")
    assert running(nap) == []


def test_no_process_is_left_when_the_command_ends(caps: CapabilitySet) -> None:
    nap = marker()
    result = sh(caps, f"(setsid sleep {nap} &); (sleep {nap} &); echo up")
    assert (result.exit_code, result.stdout) == (0, b"up\n")
    assert running(nap) == []


def test_a_command_that_stops_itself_stops_no_other_process(caps: CapabilitySet) -> None:
    assert sh(caps, "kill -STOP $$", timeout_secs=0.5).exit_code == 124


def test_input(caps: CapabilitySet) -> None:
    assert sh(caps, "cat", stdin=b"hello\0there").stdout == b"hello\0there"
    assert sh(caps, "cat", stdin=bytearray(b"array")).stdout == b"array"
    assert sh(caps, "cat", stdin=b"").stdout == b""
    many = os.urandom(1 << 20)
    assert sh(caps, "exec cat >&2", stdin=many).stderr == many
    # Those who do not want it end as they like.
    assert sh(caps, "exit 5", stdin=many * 8).exit_code == 5
    assert sh(caps, "head -c 3", stdin=many * 8).stdout == many[:3]
    assert sh(caps, "exec <&-; echo on", stdin=many * 8).stdout == b"on\n"


def test_more_than_is_kept(caps: CapabilitySet) -> None:
    result = sh(caps, "head -c 5000000 /dev/zero; echo >&2 done; exit 2", max_output=1000)
    assert (result.stdout, result.stderr, result.exit_code) == (bytes(1000), b"done\n", 2)
    assert result.truncated
    exact = sh(caps, "printf 12345; printf 1234 >&2", max_output=5)
    assert (exact.stdout, exact.stderr, exact.truncated) == (b"12345", b"1234", False)
    none = sh(caps, "echo", max_output=0)
    assert (none.stdout, none.truncated) == (b"", True)
    assert sh(caps, "echo", max_output=2**63).stdout == b"\n"


def test_a_gigabyte(caps: CapabilitySet) -> None:
    result = sh(caps, "head -c 1073741824 /dev/zero", max_output=1 << 20)
    assert (len(result.stdout), result.truncated, result.exit_code) == (1 << 20, True, 0)
    assert sh(caps, "wc -c", stdin=bytes(1 << 30)).stdout.strip() == b"1073741824"
    result = sh(caps, "cat", stdin=bytes(1 << 30), max_output=1 << 20)
    assert (len(result.stdout), result.truncated, result.exit_code) == (1 << 20, True, 0)


def test_a_round_trip_of_256_megabytes(caps: CapabilitySet) -> None:
    block = os.urandom(1 << 20)
    many = block * 256
    result = sh(caps, "tee /dev/null", stdin=many)
    assert result.exit_code == 0
    assert result.stdout == many


def test_cancelled_before_and_in_the_middle(caps: CapabilitySet, tmp_path: Path) -> None:
    import threading

    nap, cancel = marker(), Cancel()
    started = tmp_path / "started"

    def end() -> None:
        while not started.exists():
            time.sleep(0.005)
        cancel.cancel()

    ender = threading.Thread(target=end)
    ender.start()
    with pytest.raises(nono_py.Cancelled):
        sh(caps, f"(setsid sleep {nap} &); echo > started; sleep {nap}", cwd=tmp_path, cancel=cancel)
    ender.join()
    assert running(nap) == []
    with pytest.raises(nono_py.Cancelled):
        sh(caps, f"sleep {nap}", cancel=cancel)
    assert running(nap) == []
    assert left_folders() == []


def test_a_caught_interpreter(caps: CapabilitySet) -> None:
    code = "import sys; print(sys.stdin.read().upper(), end='')"
    result = sandboxed_exec(caps, [sys.executable, "-I", "-c", code], env=PATH, stdin=b"python\n")
    assert (result.stdout, result.stderr) == (b"PYTHON\n", b"")
