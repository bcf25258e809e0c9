"""Checkpoints: taken, listed, compared, restored, undone, kept within bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from checkpoint_tools import manager_in, tree

import nono_py
from nono_py import Cancel, Cancelled, Checkpoint, CheckpointError, CheckpointManager


@pytest.fixture()
def manager(tmp_path: Path) -> CheckpointManager:
    return manager_in(tmp_path)


def plain(value: object) -> object:
    """Only what JSON knows."""
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value)
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    assert value is None or type(value) in (str, int, float, bool), value
    return value


def test_a_round_trip_is_exact(manager: CheckpointManager, project: Path) -> None:
    odd = os.fsdecode(b"odd \xff name\n")
    (project / odd).write_bytes(b"\x00\x01")
    os.utime(project / "README", ns=(1, 123456789))
    before = tree(project)
    taken = manager.create(project, "before the damage")
    assert taken.taken and taken.checkpoint is not None and taken.is_protected
    assert taken.project == str(project) and taken.checkpoint.reason == "before the damage"

    (project / "README").write_text("damaged\n")
    (project / odd).unlink()
    (project / "run.sh").chmod(0o600)
    (project / "link").unlink()
    (project / "link").symlink_to("elsewhere")
    (project / "empty").rmdir()
    (project / "new").write_text("new\n")
    damaged = tree(project)

    plan = manager.plan(project, 1)
    assert tree(project) == damaged
    outcome = manager.restore(project, taken.checkpoint)
    assert tree(project) == before
    assert outcome.ok and not outcome.kept and not outcome.failed and outcome.unrecorded is None
    assert sorted(one.path for one in outcome.changes) == sorted(one.path for one in plan.changes)
    assert str(project / odd) in [one.path for one in outcome.changes]
    assert taken.checkpoint is not None and outcome.checkpoint == taken.checkpoint.id

    back = manager.undo(project)
    assert tree(project) == damaged and back.undo_id is None and len(back.changes) == len(outcome.changes)
    plain(back.to_dict())
    with pytest.raises(CheckpointError) as raised:
        manager.create(project)
        manager.undo(project / "src", dry_run=False)
        manager.undo(project)
    assert raised.value.kind == "nothing_to_undo" and raised.value.path == str(project)


def test_lists_are_newest_first_and_know_what_changed(manager: CheckpointManager, project: Path) -> None:
    assert manager.list_checkpoints(project) == []
    first = manager.create(project, "first").checkpoint
    (project / "README").write_text("one\ntwo\n")
    second = manager.create(project / "src" / "main.py", "second <b>").checkpoint
    assert manager.create(project).why == "unchanged"
    all = manager.list_checkpoints(project / "src")
    assert isinstance(all, list) and all == [second, first] and all.project == str(project)
    assert [one.number for one in all] == [1, 2] and [one.reason for one in all] == ["second <b>", "first"]
    stats = all[1].stats
    assert stats is not None and (stats.files, stats.insertions, stats.deletions) == (1, 2, 1)
    assert stats.to_dict() == {"files": 1, "insertions": 2, "deletions": 1}
    assert all[0].files == 3 and all[0].not_covered == 0
    assert len({first, second, all[0]}) == 2
    html = all._repr_html_()
    assert "second &lt;b&gt;" in html and "<b>" not in html
    shown = plain(all.to_dict())
    assert isinstance(shown, dict) and shown["project"] == str(project)


def test_what_names_a_checkpoint(manager: CheckpointManager, project: Path) -> None:
    first = manager.create(project, "first").checkpoint
    assert first is not None
    (project / "README").write_text("more\n")
    second = manager.create(project, "second").checkpoint
    assert second is not None
    named = manager.set_name(project, 2, "good state")
    assert named == first and named.name == "good state"
    which: list[int | str | Checkpoint] = [2, "2", first.id, first.id[:6], "good state", first]
    for one in which:
        assert manager.find(project, one) == first
    for wrong in (3, "nothing like it", "abcdef"):
        with pytest.raises(CheckpointError) as raised:
            manager.find(project, wrong)
        assert raised.value.kind == "no_such_checkpoint" and raised.value.path == str(project)
    for bad in (0, -1, ""):
        with pytest.raises(ValueError):
            manager.find(project, bad)
    strange: Any = [True, 1.5, b"abc", None]
    for one in strange[:3]:
        with pytest.raises(TypeError):
            manager.find(project, one)
    with pytest.raises(ValueError):
        manager.find(project)
    with pytest.raises(ValueError):
        manager.set_name(project, 1, "good state")
    with pytest.raises(ValueError):
        manager.set_name(project, 1, "7")
    assert manager.set_name(project, first, "").name is None
    assert manager.pin(project, 1).pinned and not manager.unpin(project, second).pinned


def test_a_diff_is_a_patch_that_git_takes(manager: CheckpointManager, project: Path) -> None:
    manager.create(project)
    before = tree(project)
    (project / "README").write_text("hello\nworld\n")
    (project / "src" / "new.py").write_bytes(b"latin \xe9\n")
    (project / "src" / "<script>").write_text("x\n")
    os.rename(project / "run.sh", project / "go.sh")
    diff = manager.diff(project, 1)
    assert len(diff) == 4 and diff.checkpoint == manager.find(project, 1)
    kinds = {Path(one.path).name: one.change_type for one in diff}
    assert kinds == {"README": "modified", "new.py": "created", "<script>": "created", "go.sh": "renamed"}
    assert {one.renamed_from for one in diff.changes} == {None, str(project / "run.sh")}
    readme = next(one for one in diff if one.path.endswith("README"))
    assert (readme.insertions, readme.deletions, readme.size_delta, readme.binary) == (1, 0, 6, False)
    assert "+world" in (readme.patch or "")
    assert diff.counts["created"] == 2 and diff.counts["renamed"] == 1
    assert diff.patch.encode("utf-8", "surrogateescape") == diff.patch_bytes and b"latin \xe9" in diff.patch_bytes
    assert "&lt;script&gt;" in diff._repr_html_() and "<script>" not in diff._repr_html_()
    plain(diff.to_dict())
    subprocess.run(["patch", "-p1", "-R", "-s"], cwd=project, input=diff.patch_bytes, check=True)
    after = tree(project)
    assert {path: what[2] for path, what in after.items()} == {path: what[2] for path, what in before.items()}


def test_parts_are_named_from_the_folder(manager: CheckpointManager, project: Path) -> None:
    manager.create(project)
    for name in ("README", "src/main.py", "src/a.txt", "src/b.txt"):
        (project / name).write_text("changed\n")
    assert {Path(one.path).name for one in manager.diff(project, 1, "src")} == {"main.py", "a.txt", "b.txt"}
    assert {Path(one.path).name for one in manager.diff(project, 1, glob="src/*.txt")} == {"a.txt", "b.txt"}
    assert {Path(one.path).name for one in manager.diff(project / "src", 1, Path("main.py"))} == {"main.py"}
    outcome = manager.restore(project, 1, ["src/main.py"], glob="*/a.txt")
    assert {Path(one.path).name for one in outcome.changes} == {"main.py", "a.txt"}
    assert (project / "README").read_text() == "changed\n" and (project / "src" / "b.txt").exists()
    changed = tree(project)
    # A list that came out empty never means everything.
    with pytest.raises(ValueError):
        manager.restore(project, 1, [])
    with pytest.raises(ValueError):
        manager.restore(project, 1, glob=[])
    with pytest.raises(FileNotFoundError):
        manager.restore(project, 1, "nothing")
    with pytest.raises(FileNotFoundError):
        manager.restore(project, 1, glob="*.nothing")
    with pytest.raises((ValueError, FileNotFoundError)):
        manager.restore(project, 1, project.parent / "state")
    assert tree(project) == changed


def test_arguments_that_contradict_each_other(manager: CheckpointManager, project: Path) -> None:
    manager.create(project)
    with pytest.raises(ValueError):
        manager.restore(project, 1, turn="1")
    with pytest.raises(ValueError):
        manager.restore(project)
    with pytest.raises(ValueError):
        manager.clear()
    with pytest.raises(ValueError):
        manager.clear(project, all=True)
    with pytest.raises(ValueError):
        manager.create("")


def test_what_is_missing(manager: CheckpointManager, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "folder"
    with pytest.raises(FileNotFoundError) as raised:
        manager.create(missing)
    assert raised.value.filename == str(missing)
    assert getattr(raised.value, "kind") == "not_found" and getattr(raised.value, "path") == str(missing)
    with pytest.raises(FileNotFoundError):
        manager.list_checkpoints(missing)
    result = manager.ensure_checkpoint(missing, "x")
    assert result.failed and isinstance(result.error, FileNotFoundError) and not result.is_protected
    with pytest.raises(FileNotFoundError):
        result.raise_if_failed()
    plain(result.to_dict())
    # Not even a folder of nono's own came of it.
    assert not (tmp_path / "state").exists()
    there = tmp_path / "there"
    there.mkdir()
    with pytest.raises(CheckpointError) as none:
        manager.diff(there, 1)
    assert none.value.kind == "no_project" and none.value.path == str(there)
    with pytest.raises(CheckpointError) as broad:
        manager.create(tmp_path / "home")
    assert broad.value.kind == "too_broad"


def test_settings(tmp_path: Path, project: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "config.toml").write_text("[checkpoints]\nmax_snapshots = 7\nretention_days = 3\n")
    manager = manager_in(tmp_path, retention_days=9)
    assert manager.config["max_snapshots"] == 7 and manager.config["retention_days"] == 9
    assert manager.config["enabled"] is True and manager.state_dir == str(state)
    off = manager_in(tmp_path, enabled=False)
    result = off.ensure_checkpoint(project, "x")
    assert result.skipped and result.why == "disabled" and not result.is_protected
    with off.call(project, "x") as call:
        assert call.result is not None and call.result.why == "disabled"
    assert off.list_checkpoints(project) == []
    with pytest.raises(ValueError, match="max_snapshots"):
        manager_in(tmp_path, max_snapshots=0)
    with pytest.raises(TypeError):
        manager_in(tmp_path, nothing=1)
    with pytest.raises(TypeError):
        manager_in(tmp_path, delete_orphans=1)
    (state / "config.toml").write_text("[checkpoints]\nmax_snapshot = 7\n")
    with pytest.raises(ValueError, match="max_snapshot"):
        manager_in(tmp_path)
    (state / "config.toml").unlink()
    state.chmod(0o777)
    with pytest.raises(CheckpointError) as raised:
        manager_in(tmp_path)
    assert raised.value.kind == "untrusted_state_dir" and raised.value.path == str(state)


def test_where_the_state_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NONO_HOME", raising=False)
    assert CheckpointManager().state_dir == str(tmp_path / ".nono")
    monkeypatch.setenv("NONO_HOME", str(tmp_path / "own"))
    assert CheckpointManager().state_dir == str(tmp_path / "own")
    assert CheckpointManager("~/other").state_dir == str(tmp_path / "other")
    monkeypatch.setenv("NONO_REQUEST_SOCK", str(tmp_path / "socket"))
    with pytest.raises(CheckpointError) as raised:
        CheckpointManager()
    assert raised.value.kind == "inside_sandbox" and "nono checkpoints" in str(raised.value)
    monkeypatch.delenv("NONO_REQUEST_SOCK")
    monkeypatch.delenv("HOME")
    with pytest.raises(CheckpointError) as homeless:
        CheckpointManager()
    assert homeless.value.kind == "no_home"
    assert not (tmp_path / ".nono").exists() and not (tmp_path / "own").exists()


def test_pruning_clearing_and_what_it_takes(tmp_path: Path, project: Path) -> None:
    manager = manager_in(tmp_path, max_snapshots=50)
    for number in range(6):
        (project / "README").write_bytes(os.urandom(20_000))
        manager.create(project, f"number {number}")
    manager.set_name(project, 6, "the first")
    before = manager.status()
    assert [(one.workdir, one.checkpoints, one.state) for one in before.projects] == [(str(project), 6, "live")]
    assert before.total_bytes >= manager.usage() >= 100_000 and before.base == str(tmp_path / "state")
    assert str(project) in before._repr_html_()
    plain(before.to_dict())
    planned = manager.prune(max_snapshots=2, dry_run=True)
    assert planned.dry_run and len(manager.list_checkpoints(project)) == 6
    done = manager.prune(max_snapshots=2)
    assert [len(gone) for _, gone in done.removed] == [len(gone) for _, gone in planned.removed] == [3]
    assert done.bytes_after < done.bytes_before and not done.problems
    left = [one.reason for one in manager.list_checkpoints(project)]
    assert left == ["number 5", "number 4", "number 0"]
    plain(done.to_dict())
    assert manager.free_room() is None
    assert manager.auto_prune() is not None and manager.auto_prune() is None
    assert manager.verify().good
    files = tree(project)
    assert manager.clear(project, dry_run=True).projects_removed == [str(project)]
    assert len(manager.list_checkpoints(project)) == 3
    cleared = manager.clear(all=True)
    assert cleared.projects_removed == [str(project)] and manager.list_checkpoints(project) == []
    assert tree(project) == files and manager.status().projects == [] and manager.clear_legacy() == []


def test_a_forgotten_path_is_gone_from_everything(tmp_path: Path, project: Path) -> None:
    manager = manager_in(tmp_path)
    (project / "secret").write_text("token")
    manager.create(project)
    planned = manager.forget(project / "secret", dry_run=True)
    assert planned.dry_run and len(planned.checkpoints) == 1 and planned.contents == 0
    done = manager.forget(project / "secret")
    assert not done.dry_run and done.contents == 1 and done.snapshots >= 1 and done.held_by == []
    assert (project / "secret").read_text() == "token"
    plain(done.to_dict()), plain(planned.to_dict())
    covered = manager.uncovered(project, 1, ["secret", "README"])
    assert [path for path, _ in covered] == [str(project / "secret")] and "forgotten" in covered[0][1]
    (project / "secret").unlink()
    manager.restore(project, 1)
    assert not (project / "secret").exists()


def test_verify_finds_what_is_damaged(tmp_path: Path, project: Path) -> None:
    manager = manager_in(tmp_path)
    (project / "big").write_bytes(os.urandom(100_000))
    manager.create(project)
    seen: list[tuple[int, int]] = []
    good = manager.verify(project, progress=lambda done, total: seen.append((done, total)))
    assert good.good and good.checkpoints == 1 and good.projects == 1 and good.bytes > 100_000 and seen
    plain(good.to_dict())
    packs = [path for path in (tmp_path / "state" / "store").rglob("*") if path.is_file()]
    largest = max(packs, key=lambda path: path.stat().st_size)
    largest.chmod(0o600)
    damaged = bytearray(largest.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    largest.write_bytes(damaged)
    found = manager.verify()
    assert not found.good and [paths for _, _, paths in found.lost] == [[str(project / "big")]]
    plain(found.to_dict())


def test_cancelling_before_and_while(tmp_path: Path, project: Path) -> None:
    manager = manager_in(tmp_path)
    for number in range(3000):
        (project / f"file {number}").write_text(str(number))
    cancel = Cancel()

    def progress(done: int, total: int) -> None:
        raise OverflowError("enough")

    with pytest.raises(OverflowError, match="enough"):
        manager.create(project, progress=progress)
    cancel.cancel()
    (project / "again").write_text("x")
    # It is ended, or was over before it heard of it; it never hangs, and never leaves half of one.
    try:
        result = manager.ensure_checkpoint(project, "x", cancel=cancel)
        assert result.is_protected
    except Cancelled:
        pass
    assert manager.create(project).is_protected and manager.verify().good
    before = tree(project)
    (project / "README").write_text("damage")
    manager.restore(project, 1)
    assert tree(project) == before
    with pytest.raises(TypeError):
        manager.create(project, progress=1)  # type: ignore[arg-type]


def test_a_cancelled_restore_leaves_old_or_new(tmp_path: Path, project: Path) -> None:
    manager = manager_in(tmp_path)
    files = [project / f"file {number}" for number in range(3000)]
    for file in files:
        file.write_text("old")
    manager.create(project)
    before = tree(project)
    for file in files:
        file.write_text("damage")
    damaged = tree(project)
    cancel = Cancel()
    try:
        manager.restore(project, 1, progress=lambda done, total: cancel.cancel(), cancel=cancel)
    except Cancelled:
        pass
    manager.list_checkpoints(project)
    after = tree(project)
    assert after in (before, damaged)
    for completed in manager.take_completed():
        assert after == before and completed.project == str(project) and completed.changes
        plain(completed.to_dict())
    if after == before:
        manager.undo(project)
        assert tree(project) == damaged


def test_ctrl_c_ends_it_and_the_next_one_works(tmp_path: Path, project: Path) -> None:
    for number in range(3000):
        (project / f"file {number}").write_text(str(number))
    script = f"""
import os, signal, nono_py
manager = nono_py.CheckpointManager({str(tmp_path / "state")!r}, {str(tmp_path / "home")!r})
def progress(done, total):
    os.kill(os.getpid(), signal.SIGINT)
try:
    manager.create({str(project)!r}, progress=progress)
    print("nobody heard")
except KeyboardInterrupt:
    print("interrupted")
assert manager.create({str(project)!r}).is_protected and manager.verify().good
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_threads_wait_for_each_other_without_the_interpreter(tmp_path: Path, project: Path) -> None:
    manager = manager_in(tmp_path)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                (project / f"of {number}").write_text(str(step))
                assert manager.create(project, f"{number}.{step}").is_protected
                manager.list_checkpoints(project)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and manager.verify().good


def test_two_managers_of_one_state(tmp_path: Path, project: Path) -> None:
    one, other = manager_in(tmp_path), manager_in(tmp_path)
    one.create(project, "of one")
    (project / "README").write_text("more\n")
    assert other.create(project, "of the other").taken
    assert [line.reason for line in one.list_checkpoints(project)] == ["of the other", "of one"]
    failures: list[BaseException] = []

    def work(manager: CheckpointManager, name: str) -> None:
        try:
            for step in range(10):
                (project / name).write_text(str(step))
                assert manager.create(project, name).is_protected
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in ((one, "a"), (other, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    (project / "a").unlink()
    assert other.restore(project, 1).ok and (project / "a").exists()


def test_values_are_frozen_and_have_no_constructor(manager: CheckpointManager, project: Path) -> None:
    taken = manager.create(project)
    checkpoint = taken.checkpoint
    assert checkpoint is not None
    for value in (taken, checkpoint, manager.diff(project, 1), manager.plan(project, 1), manager.status()):
        kind: Any = type(value)
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(AttributeError):
            value.nothing = 1  # type: ignore[union-attr]
        assert repr(value).startswith(type(value).__name__ + "(")
    with pytest.raises(AttributeError):
        checkpoint.name = "x"  # type: ignore[assignment]
    assert "'by hand'" in repr(checkpoint)
    with pytest.raises(TypeError):
        type("Sub", (CheckpointManager,), {})
    json.dumps(taken.to_dict())
    coverage = taken.coverage
    assert coverage is not None and coverage.files == 3 and coverage.is_complete


def test_nothing_leaks(tmp_path: Path) -> None:
    project = tmp_path / "small"
    project.mkdir()
    (project / "file").write_text("0")

    def cycle(number: int) -> None:
        manager = manager_in(tmp_path, max_snapshots=3)
        manager.new_turn()
        with manager.call(project, "edit"):
            (project / "file").write_text(str(number))
        manager.diff(project, 1)
        manager.list_checkpoints(project)
        # It waits for the disk, several times.
        if number % 10 == 0:
            manager.restore(project, 1)

    def held() -> tuple[int, int, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * 4096, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    for number in range(30):
        cycle(number)
    memory, files, threads = held()
    for number in range(120):
        cycle(number)
    later = held()
    assert later[1] <= files and later[2] <= threads
    assert later[0] - memory < 24 << 20


def test_the_interpreter_goes_on(tmp_path: Path, project: Path) -> None:
    for number in range(4000):
        (project / f"file {number}").write_text(str(number))
    manager = manager_in(tmp_path)
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    manager.create(project)
    after = counted
    over.set()
    thread.join()
    assert after - before > 1000


def test_every_value_is_exported() -> None:
    assert issubclass(nono_py.CheckpointList, list)
    assert nono_py.CheckpointManager.__doc__ and nono_py.CheckpointManager.restore.__doc__
