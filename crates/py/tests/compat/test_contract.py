"""What holds beyond single names: errors, plain values, threads, interruption, leaks, odd hosts."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nono_py
from nono_py import (
    AccessMode,
    CapabilitySet,
    ExclusionConfig,
    ExternalProxyConfig,
    ProxyConfig,
    RouteConfig,
    SandboxState,
    SessionMetadata,
    SnapshotManager,
    aio,
    load_policy,
    sandboxed_exec,
    support_info,
)

from .kit import SYSTEM, system_caps
from .kit import untyped as nono


@pytest.fixture()
def many(tmp_path: Path) -> Path:
    """A folder that takes a moment."""
    root = tmp_path / "many"
    root.mkdir()
    for number in range(3000):
        (root / f"{number}.txt").write_text(str(number) * 20)
    return root


# --- errors


def test_the_family_of_errors() -> None:
    family = "SandboxError ExecError PolicyError ProxyError SnapshotError CheckpointError SessionError Cancelled"
    assert issubclass(nono_py.NonoError, RuntimeError)
    for name in family.split():
        assert issubclass(getattr(nono, name), nono_py.NonoError), name
    plain = nono_py.NonoError("x")
    assert isinstance(plain.kind, str) and plain.path is None


def test_errors_have_a_kind_and_a_path(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(FileNotFoundError) as raised:
        CapabilitySet().allow_path(missing, AccessMode.READ)
    assert raised.value.filename == missing and raised.value.errno == 2
    untyped: Any = raised.value
    assert untyped.path == missing and isinstance(untyped.kind, str)
    with pytest.raises(nono_py.SnapshotError) as failed:
        SnapshotManager(tmp_path / "s", [tmp_path]).load_manifest(3)
    assert failed.value.kind and failed.value.kind != "error"
    with pytest.raises(nono_py.ExecError) as unknown:
        sandboxed_exec(CapabilitySet(), ["/no/such/program"])
    assert unknown.value.path == "/no/such/program"


def test_a_closed_folder_is_a_permission_error(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "in").mkdir(parents=True)
    closed.chmod(0)
    try:
        with pytest.raises(PermissionError):
            CapabilitySet().allow_path(closed / "in", AccessMode.READ)
    finally:
        closed.chmod(0o700)


# --- plain values


def assert_plain(value: object, where: str) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            assert type(key) is str, where
            assert_plain(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for inner in value:
            assert_plain(inner, where)
    else:
        assert value is None or type(value) in (str, int, float, bool, bytes), f"{where}: {value!r}"


def test_to_dict_is_plain(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("a")
    (root / "skip.log").write_text("a")
    (root / "link").symlink_to("a")
    manager = SnapshotManager(tmp_path / "s", [root], ExclusionConfig(exclude_globs=["*.log"]))
    manifest = manager.create_baseline()
    (root / "b").write_text("b")
    _, changes = manager.create_incremental()
    caps = system_caps()
    policy = load_policy(json.dumps({"groups": {"g": {"description": ""}}}))
    meta = SessionMetadata("s", ["c"], [root])
    meta.add_merkle_root(manifest.merkle_root)
    meta.set_network_events([{"timestamp_unix_ms": 1, "mode": "connect", "decision": "deny", "target": "x"}])
    values: list[Any] = [
        manifest,
        manifest.files[str(root / "a")],
        manifest.coverage,
        changes[0],
        meta,
        caps.fs_capabilities()[0],
        caps.fs_capabilities()[0].source,
        SandboxState.from_caps(caps),
        support_info(),
        ExclusionConfig(),
        RouteConfig("p", "https://u.example"),
        ExternalProxyConfig("a:1"),
        ProxyConfig(),
        policy.resolve_groups(["g"], caps),
        sandboxed_exec(caps, ["/bin/true"]),
    ]
    for value in values:
        shown = value.to_dict()
        assert isinstance(shown, dict) and shown, value
        assert_plain(shown, type(value).__name__)


def test_html_is_escaped(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    manager = SnapshotManager(tmp_path / "s", [root], ExclusionConfig(exclude_globs=["*.skip"]))
    (root / "keep").write_text("")
    (root / "<i>.skip").write_text("")
    manifest = manager.create_baseline()
    (root / "<script>alert(1)<&").write_text("x")
    changes: Any = manager.create_incremental()[1]
    coverage: Any = manifest.coverage
    for shown in (changes._repr_html_(), coverage._repr_html_()):
        assert "<table" in shown and "<script>" not in shown and "<i>" not in shown
    assert "&lt;script&gt;" in changes._repr_html_()


# --- threads and interruption


def counted(work: Callable[[], object]) -> int:
    """How far another thread counts meanwhile."""
    count = 0
    end = threading.Event()
    started = threading.Event()

    def counting() -> None:
        nonlocal count
        started.set()
        while not end.is_set():
            count += 1

    thread = threading.Thread(target=counting)
    thread.start()
    started.wait()
    try:
        before = count
        work()
        return count - before
    finally:
        end.set()
        thread.join()


def test_other_threads_go_on_while_snapshots_are_taken(many: Path, tmp_path: Path) -> None:
    manager = SnapshotManager(tmp_path / "s", [many])
    assert counted(manager.create_baseline) > 1000
    for path in list(many.iterdir())[:1500]:
        path.unlink()
    assert counted(manager.create_incremental) > 100
    assert counted(lambda: manager.restore_to(0)) > 1000


def test_progress_and_cancel(many: Path, tmp_path: Path) -> None:
    manager = SnapshotManager(tmp_path / "s", [many])
    cancel = nono_py.Cancel()
    cancel.cancel()
    assert cancel.is_cancelled
    try:
        manager.create_baseline(cancel=cancel)
    except nono_py.Cancelled:
        # Nothing half done is left: it begins anew.
        assert manager.snapshot_count() == 0
        manager.create_baseline()
    told: list[tuple[int, int]] = []
    for path in list(many.iterdir())[:100]:
        path.write_text("changed")
    manager.create_incremental(progress=lambda done, total: told.append((done, total)))
    assert told and all(isinstance(number, int) for pair in told for number in pair)
    with pytest.raises(TypeError):
        nono.SnapshotManager(tmp_path / "s", [many]).create_incremental(progress=3)


def test_ctrl_c_ends_a_capture(many: Path, tmp_path: Path) -> None:
    code = """
import sys, nono_py
manager = nono_py.SnapshotManager(sys.argv[1], [sys.argv[2]])
number = 0
try:
    manager.create_baseline(progress=lambda done, total: print("working", flush=True))
    while True:
        manager.create_incremental()
        number += 1
except KeyboardInterrupt:
    again = nono_py.SnapshotManager(sys.argv[1], [sys.argv[2]])
    print(again.verify(), again.snapshot_count() >= number, flush=True)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "s"), str(many)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readlines()[-1] == "[] True\n"
    assert process.returncode == 0


def test_the_loop_goes_on(many: Path, tmp_path: Path) -> None:
    async def main() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        ticking = asyncio.create_task(tick())
        await aio.create_baseline(SnapshotManager(tmp_path / "s", [many]))
        await aio.sandboxed_exec(system_caps(), ["/bin/sleep", "0.1"])
        ticking.cancel()
        return ticks

    assert asyncio.run(main()) > 10


# --- hosts


def exec_in_child(queue: Any) -> None:
    queue.put(sandboxed_exec(system_caps(), ["/bin/echo", "child"]).stdout)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_in_other_processes(method: Any) -> None:
    # Something has run here before the fork, as it will have.
    assert sandboxed_exec(system_caps(), ["/bin/true"]).exit_code == 0
    context = multiprocessing.get_context(method)
    queue: Any = context.Queue()
    process: Any = context.Process(target=exec_in_child, args=(queue,))
    process.start()
    assert queue.get(timeout=60) == b"child\n"
    process.join(60)
    assert process.exitcode == 0


def test_under_gevent() -> None:
    code = f"""
from gevent import monkey; monkey.patch_all()
import gevent, os, nono_py as n
caps = n.CapabilitySet()
for path in {SYSTEM!r}:
    if os.path.isdir(path):
        caps.allow_path(path, n.AccessMode.READ)
jobs = [gevent.spawn(n.sandboxed_exec, caps, ["/bin/echo", str(k)]) for k in range(4)]
gevent.joinall(jobs, raise_error=True)
print([job.value.stdout for job in jobs])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[b'0\\n', b'1\\n', b'2\\n', b'3\\n']\n"


def test_nothing_is_left_open(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("a")

    def cycle(number: int) -> None:
        caps = system_caps()
        assert sandboxed_exec(caps, ["/bin/true"]).exit_code == 0
        manager = SnapshotManager(tmp_path / f"s{number}", [root])
        manager.create_baseline()
        manager.create_incremental()
        manager.close()

    def state() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    for number in range(3):
        cycle(number)
    before = state()
    for number in range(3, 40):
        cycle(number)
    files, threads = state()
    assert files <= before[0] + 2 and threads <= before[1] + 2


def test_memory_does_not_grow_with_cycles() -> None:
    code = """
import gc, nono_py as n
def size():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1])
def cycle():
    caps = n.CapabilitySet()
    caps.allow_path("/usr", n.AccessMode.READ)
    n.SandboxState.from_json(n.SandboxState.from_caps(caps).to_json()).to_caps().summary()
    n.QueryContext(caps).query_path("/usr/bin", n.AccessMode.READ)
    n.SessionMetadata.from_json(n.SessionMetadata("s", ["c"] * 50, ["/p"] * 50).to_json()).to_dict()
    try:
        n.SandboxState.from_json("{")
    except ValueError:
        pass
for _ in range(2000): cycle()
first = size()
for _ in range(10000): cycle()
print(size() / first)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1.2
