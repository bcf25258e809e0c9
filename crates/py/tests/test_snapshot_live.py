"""Snapshots while other things go on: threads, processes, Ctrl-C, cancelling, progress, many cycles."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from nono_py import Cancel, Cancelled, SnapshotManager

# Enough to take a while, in any way: many names, and bytes that have to be read.
FILES, SIZE = 6000, 16 << 10


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("big") / "root"
    for number in range(FILES):
        path = root / f"{number // 100}" / f"{number}"
        if number % 100 == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(number.to_bytes(8, "big") * (SIZE // 8))
    return root


class Counter:
    """Counts while something else works."""

    def __init__(self) -> None:
        self.count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.count += 1

    def __enter__(self) -> Counter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def test_other_threads_go_on(tmp_path: Path, big: Path) -> None:
    manager = SnapshotManager(tmp_path / "s", [big])

    def rate(work: Callable[[], object]) -> float:
        with Counter() as counter:
            begin, before = time.perf_counter(), counter.count
            work()
            return (counter.count - before) / (time.perf_counter() - begin)

    # Rate of a thread while no other uses the interpreter.
    free = rate(lambda: time.sleep(0.3))
    assert rate(manager.create_baseline) > free / 10
    (big / "0" / "0").write_text("changed")
    calls: list[Callable[[], object]] = [
        manager.create_incremental,
        lambda: manager.compute_restore_diff(0),
        lambda: manager.restore_to(0),
        manager.settle,
        manager.verify,
    ]
    for call in calls:
        assert rate(call) > free / 20


def test_progress(tmp_path: Path, big: Path) -> None:
    told: list[tuple[int, int]] = []
    thread = threading.get_ident()

    def progress(done: int, total: int) -> None:
        assert threading.get_ident() == thread
        told.append((done, total))

    manager = SnapshotManager(tmp_path / "s", [big])
    manager.create_baseline(progress=progress)
    assert told and told == sorted(told) and told[-1][0] >= FILES
    with pytest.raises(TypeError):
        manager.create_incremental(progress=5)  # type: ignore[arg-type]

    def refuse(done: int, total: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError):
        manager.create_incremental(progress=refuse)


def leftovers(session: Path) -> list[Path]:
    """What a capture leaves that came to nothing: temporary files, and contents that no snapshot needs."""
    temporary = [path for path in (session / "store" / "tmp").rglob("*") if path.is_file()]
    if (session / "record.json").exists():
        return temporary
    return temporary + [path for path in session.rglob("*") if path.is_file() and path.stat().st_size > 1024]


def test_cancelling(tmp_path: Path, big: Path) -> None:
    manager = SnapshotManager(tmp_path / "s", [big])
    cancel = Cancel()
    assert not cancel.is_cancelled
    cancel.cancel()
    with pytest.raises(Cancelled) as raised:
        manager.create_baseline(cancel=cancel)
    assert raised.value.kind == "cancelled" and cancel.is_cancelled
    assert manager.snapshot_count() == 0 and leftovers(tmp_path / "s") == []
    assert manager.create_baseline(cancel=Cancel()).coverage.files == FILES
    assert manager.snapshot_count() == 1 and manager.verify() == [] and leftovers(tmp_path / "s") == []


CHILD = """
import sys
from nono_py import SnapshotManager
session, root, operation = sys.argv[1:]
manager = SnapshotManager(session, [root])
def progress(done, total):
    # The work has begun: the parent may interrupt it now.
    print("working", flush=True)
try:
    print("begin", flush=True)
    getattr(manager, operation)(progress=progress)
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", manager.snapshot_count(), flush=True)
    getattr(manager, operation)()
    print(manager.load_manifest(manager.snapshot_count() - 1).coverage.files, manager.verify(), flush=True)
"""


@pytest.mark.parametrize("operation", ["create_baseline", "create_incremental"])
def test_ctrl_c_ends_a_capture(tmp_path: Path, operation: str) -> None:
    # How much is long enough depends on the machine: as long as it is over too soon, there is more to do.
    for round, files in enumerate([2000, 6000, 18000, 54000]):
        root, session = tmp_path / f"root-{round}", tmp_path / f"session-{round}"
        root.mkdir()
        before = 0
        if operation == "create_incremental":
            (root / "first").write_text("f")
            SnapshotManager(session, [root]).create_baseline()
            before = 1
        for number in range(files):
            (root / f"{number}").write_bytes(os.urandom(1 << 14))
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(session), str(root), operation], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None and child.stdout.readline() == "begin\n"
        if child.stdout.readline() == "working\n":
            child.send_signal(signal.SIGINT)
        rest = [line for line in child.stdout.read().splitlines() if line != "working"]
        child.wait()
        # Over too soon: without having heard of it, or just when it was heard.
        if rest[:1] in (["done"], [f"interrupted {before + 1}"], []):
            continue
        assert child.returncode == 0
        assert rest == [f"interrupted {before}", f"{files + before} []"]
        assert leftovers(session) == []
        return
    pytest.fail("no capture was long enough to be interrupted")


RESTORING = """
import sys
from nono_py import SnapshotManager
session, root = sys.argv[1:]
manager = SnapshotManager(session, [root])
def progress(done, total):
    if total:
        print("working", flush=True)
print("begin", flush=True)
try:
    manager.restore_to(0, progress=progress)
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", len(manager.compute_restore_diff(0)), flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_restore_is_never_left_half_done(tmp_path: Path, how: signal.Signals) -> None:
    """Interrupted, it goes on to its end; killed, the next call completes it, and says so."""
    for round, files in enumerate([1000, 4000, 16000]):
        root, session = tmp_path / f"root-{round}", tmp_path / f"session-{round}"
        root.mkdir()
        for number in range(files):
            (root / f"{number}").write_text("old")
        SnapshotManager(session, [root]).create_baseline()
        for number in range(files):
            (root / f"{number}").write_text("new!")
        child = subprocess.Popen(
            [sys.executable, "-c", RESTORING, str(session), str(root)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None and child.stdout.readline() == "begin\n"
        if child.stdout.readline() == "working\n":
            child.send_signal(how)
        rest = [line for line in child.stdout.read().splitlines() if line != "working"]
        child.wait()
        if rest[:1] == ["done"]:
            # Over too soon.
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            left = SnapshotManager(session, [root]).compute_restore_diff(0)
        told = [str(one.message).split(":")[0] for one in caught]
        if how == signal.SIGINT:
            assert rest == ["interrupted 0"] and child.returncode == 0 and told == []
        elif told == []:
            continue
        else:
            assert rest == [] and told == ["completed an interrupted restore"]
        assert left == []
        assert {(root / f"{number}").read_text() for number in range(files)} == {"old"}
        return
    pytest.fail("no restore was long enough to be interrupted")


def test_threads_take_turns(tmp_path: Path, project: Path) -> None:
    manager = SnapshotManager(tmp_path / "s", [project])
    manager.create_baseline()
    numbers: list[int] = []
    problems: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                numbers.append(manager.create_incremental()[0].number)
                manager.compute_restore_diff(0)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == [] and sorted(numbers) == list(range(1, 31))
    assert manager.snapshot_count() == 31


def test_processes_take_turns(tmp_path: Path, project: Path) -> None:
    SnapshotManager(tmp_path / "s", [project]).create_baseline()
    code = """
import sys
from nono_py import SnapshotManager
manager = SnapshotManager(sys.argv[1], [sys.argv[2]])
print([manager.create_incremental()[0].number for _ in range(5)])
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "s"), str(project)]
    children = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    shown = [child.communicate()[0] for child in children]
    numbers = sorted(int(word) for line in shown for word in line.strip("[]\n").split(", "))
    assert numbers == list(range(1, 16))


def test_a_forked_process_has_an_engine_of_its_own(tmp_path: Path, project: Path) -> None:
    code = """
import os, sys, threading
from nono_py import SnapshotManager
manager = SnapshotManager(sys.argv[1], [sys.argv[2]])
manager.create_baseline()
# Another thread has the engine at the moment of the fork.
stop = threading.Event()
def work():
    while not stop.is_set():
        manager.compute_restore_diff(0)
thread = threading.Thread(target=work)
thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        number = manager.create_incremental()[0].number
        del manager
        os._exit(0 if number else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
print(manager.snapshot_count())
"""
    arguments = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "s"), str(project)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("11\n", 0), done.stderr


def status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise AssertionError(name)


def test_nothing_leaks_over_many_cycles(tmp_path: Path, project: Path) -> None:
    import gc
    import shutil

    def cycle() -> None:
        session = tmp_path / "cycle"
        manager = SnapshotManager(session, [project])
        manifest = manager.create_baseline()
        assert len(manifest.files) == 3 and manifest.to_dict() and manifest.coverage._repr_html_()
        (project / "README").write_text("changed")
        manager.create_incremental()
        manager.restore_to(0)
        try:
            manager.load_manifest(9)
        except RuntimeError:
            pass
        manager.close()
        shutil.rmtree(session)

    for _ in range(50):
        cycle()
    gc.collect()
    memory, files, threads = status("VmRSS"), len(os.listdir("/proc/self/fd")), status("Threads")
    for _ in range(200):
        cycle()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= files and status("Threads") <= threads
    # A leak of a few kilobytes in each cycle would be above this.
    assert status("VmRSS") < memory + 2048, "kilobytes"
