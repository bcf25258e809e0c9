"""What attackers and sceptical users found: once, and never again."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

import nono_py as nono
from nono_py import AccessMode, Cancel, Cancelled, CapabilitySet, SnapshotManager, sandboxed_exec


@pytest.fixture()
def caps() -> CapabilitySet:
    caps = CapabilitySet()
    for folder in ("/usr", "/bin", "/lib", "/lib64"):
        if os.path.exists(folder):
            caps.allow_path(folder, AccessMode.READ)
    return caps


def child(code: str, *words: object) -> str:
    shown = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, timeout=120
    )
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


FORKED = """
import os, sys, threading
import nono_py as nono
caps = nono.CapabilitySet()
for folder in ("/usr", "/bin", "/lib", "/lib64"):
    if os.path.exists(folder):
        caps.allow_path(folder, nono.AccessMode.READ)
started, goes_on = os.pipe()
def fork():
    # It has copies of every descriptor there is while the command runs, and outlives the call.
    if os.fork() == 0:
        os.read(started, 1)
        os._exit(0)
    print("forked", flush=True)
timer = threading.Timer(0.3, fork)
timer.start()
if sys.argv[1] == "exec":
    print(nono.sandboxed_exec(caps, ["/bin/sleep", "1000"], timeout_secs=1).exit_code)
else:
    print(nono.run(["/bin/sleep", "1000"], max_time=1, capture_output=True).exit_code)
os.write(goes_on, b".")
timer.join()
"""


@pytest.mark.parametrize("way", ["exec", "run"])
def test_a_host_that_forks_meanwhile_does_not_hold_it_up(way: str) -> None:
    assert child(FORKED, way).split() == ["forked", "124"]


def test_what_is_cancelled_already_does_not_begin(caps: CapabilitySet, project: Path, tmp_path: Path) -> None:
    cancel = Cancel()
    cancel.cancel()
    caps.allow_path(project, AccessMode.READ_WRITE)
    with pytest.raises(Cancelled):
        sandboxed_exec(caps, ["/bin/sh", "-c", "echo x > made"], cwd=project, cancel=cancel)
    with pytest.raises(Cancelled):
        nono.run(["sh", "-c", "echo x > made"], allow=[project], workdir=project, cancel=cancel)
    assert not (project / "made").exists()
    manager = SnapshotManager(tmp_path / "session", [project])
    manager.create_baseline()
    (project / "README").write_text("edited\n")
    with pytest.raises(Cancelled):
        manager.restore_to(0, cancel=cancel)
    assert (project / "README").read_text() == "edited\n"


def test_a_restore_is_not_given_up_half_way(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for number in range(3000):
        (root / f"{number}").write_text("old")
    manager = SnapshotManager(tmp_path / "session", [root])
    manager.create_baseline()
    for number in range(3000):
        (root / f"{number}").write_text("new")
    cancel = Cancel()

    def progress(done: int, total: int) -> None:
        # There is a total once files are changed.
        if total:
            cancel.cancel()

    try:
        manager.restore_to(0, progress=progress, cancel=cancel)
    except Cancelled:
        assert {path.read_text() for path in root.iterdir()} == {"new"}
    else:
        assert {path.read_text() for path in root.iterdir()} == {"old"}
    seen = {path.name: path.read_text() for path in root.iterdir()}
    manager.compute_restore_diff(0)
    assert {path.name: path.read_text() for path in root.iterdir()} == seen


def test_restore_and_run_again_at_once(project: Path) -> None:
    for _ in range(3):
        report = nono.run(["rm", "README"], allow=[project], workdir=project, rollback=True, capture_output=True)
        nono.open_session(report.session_id).restore()
        assert (project / "README").exists()


def test_restore_right_after_a_run_of_a_host_that_forks(project: Path) -> None:
    # A child of the host has copies of the run's locks until it executes its program.
    done = threading.Event()

    def fork() -> None:
        while not done.is_set():
            pid = os.fork()
            if pid == 0:
                time.sleep(0.05)
                os._exit(0)
            os.waitpid(pid, 0)

    forking = threading.Thread(target=fork)
    forking.start()
    try:
        for _ in range(5):
            report = nono.run(["rm", "README"], allow=[project], workdir=project, rollback=True, capture_output=True)
            nono.open_session(report.session_id).restore()
            assert (project / "README").exists()
    finally:
        done.set()
        forking.join()


def test_what_runs_does_not_push_out_what_has_just_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NONO_HOME", str(tmp_path / "state"))
    cancel = Cancel()
    others = []
    for number in range(11):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        work = lambda folder=folder: nono.run(  # noqa: E731
            ["sh", "-c", "echo > started; exec sleep 1000"],
            allow=[folder], workdir=folder, rollback=True, capture_output=True, cancel=cancel,
        )
        others.append(threading.Thread(target=work))
        others[-1].start()
    try:
        for number in range(11):
            while not (tmp_path / f"{number}" / "started").exists():
                os.sched_yield()
        mine = tmp_path / "mine"
        mine.mkdir()
        (mine / "f").write_text("before")
        report = nono.run(["sh", "-c", "echo x > f"], allow=[mine], workdir=mine, rollback=True, capture_output=True)
        nono.run(["true"], allow=[mine], workdir=mine, rollback=True, capture_output=True)
        nono.open_session(report.session_id).restore()
        assert (mine / "f").read_text() == "before"
    finally:
        cancel.cancel()
        for thread in others:
            thread.join()


def test_a_task_that_is_cancelled_while_it_goes_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for number in range(2000):
        (root / f"{number}").write_text("whole")

    async def job() -> None:
        async with nono.Snapshot(root):
            for number in range(2000):
                (root / f"{number}").write_text("broken")
            asyncio.get_running_loop().call_soon(task.cancel)
            raise ValueError

    async def main() -> None:
        global task
        task = asyncio.create_task(job())
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert {path.read_text() for path in root.iterdir()} == {"whole"}


task: asyncio.Task[None]


def test_a_task_that_is_cancelled_while_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = tmp_path / "places"
    places.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(places))
    root = tmp_path / "root"
    root.mkdir()
    (root / "f").write_text("x")

    async def job() -> None:
        async with nono.Snapshot(root):
            pytest.fail("it was cancelled before")

    async def main() -> None:
        for _ in range(10):
            task = asyncio.create_task(job())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert list(places.iterdir()) == []


def test_the_snapshot_of_a_block_lies_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "f").write_text("x")
    monkeypatch.setattr(tempfile, "tempdir", str(root / "tmp"))
    with pytest.raises(ValueError), nono.Snapshot(root) as snapshot:
        assert snapshot.session_dir is not None and not snapshot.session_dir.startswith(str(root))
        (root / "f").unlink()
        (root / "tmp").rmdir()
        raise ValueError
    assert (root / "f").read_text() == "x" and (root / "tmp").is_dir()


NO_THREADS = """
import resource, sys
import nono_py as nono
caps = nono.CapabilitySet()
caps.allow_path("/usr", nono.AccessMode.READ)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    nono.sandboxed_exec(caps, ["/usr/bin/true"])
except nono.NonoError as error:
    print(error.kind)
"""


def test_no_thread_is_no_panic() -> None:
    assert child(NO_THREADS).strip() == "no_thread"


def test_ends_with_the_interpreter(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for number in range(2000):
        (root / f"{number}").write_bytes(os.urandom(4096))
    code = """
import sys, threading
from nono_py import SnapshotManager
manager = SnapshotManager(sys.argv[1], [sys.argv[2]])
threading.Thread(target=manager.create_baseline, daemon=True).start()
"""
    shown = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "s"), str(root)], capture_output=True, text=True, timeout=120
    )
    assert "panicked" not in shown.stderr


def test_what_steers_the_eye_is_shown_as_what_it_is(tmp_path: Path) -> None:
    name = "a\u202ecod.exe"
    root = tmp_path / "root"
    root.mkdir()
    (root / name).write_text("x")
    (root / "kept").write_text("x")
    exclusion = nono.ExclusionConfig(exclude_patterns=[name])
    coverage = SnapshotManager(tmp_path / "session", [root], exclusion).create_baseline().coverage
    assert "cod.exe" in coverage._repr_html_() and "\u202e" not in coverage._repr_html_()


def test_a_closed_network_is_among_the_denials() -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)"
    report = nono.run([sys.executable, "-c", code], capture_output=True, read=[sys.prefix, sys.base_prefix])
    assert report.exit_code != 0
    [denial] = [denial for denial in report.denials if denial.kind == "network"]
    assert denial.hint is not None and "allow_net" in denial.hint
    json.dumps(denial.to_dict())


def test_everything_can_be_imported_without_pydantic() -> None:
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pydantic":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "pydantic" else real(name, package)
from nono_py import *
import nono_py
assert "audit" not in nono_py.__all__ and "aio" in dir(nono_py)
print(sandboxed_exec.__name__)
"""
    assert child(code).strip() == "sandboxed_exec"


@pytest.mark.parametrize("length", [2**40, 2**62])
def test_what_a_list_says_of_its_length_is_not_believed(caps: CapabilitySet, length: int, tmp_path: Path) -> None:
    class Liar(list[str]):
        def __len__(self) -> int:
            return length

    liar = Liar(["a"])
    assert nono.ExclusionConfig(exclude_globs=liar).exclude_globs == ["a"]
    assert nono.ProxyConfig(allowed_hosts=liar).allowed_hosts == ["a"]
    assert nono.SessionMetadata("id", liar, liar).command == ["a"]
    with pytest.raises(ValueError, match="a"):
        nono.load_embedded_policy().resolve_deny_paths(liar)
    numbers: list[str] = range(length)  # type: ignore[assignment]
    for call in (
        lambda: sandboxed_exec(caps, numbers),
        lambda: SnapshotManager(tmp_path / "session", numbers),
        lambda: nono.run(numbers),
        lambda: nono.run(["true"], allow=numbers),
        lambda: nono.validate_deny_overlaps(numbers, caps),
    ):
        with pytest.raises(TypeError):
            call()
