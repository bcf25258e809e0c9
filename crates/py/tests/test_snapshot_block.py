"""``with Snapshot(path)``."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from nono_py import ExclusionConfig, Snapshot, SnapshotError, SnapshotManager


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """So that what is left over is seen."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def left_over(tmp_path: Path) -> list[str]:
    return os.listdir(tmp_path / "tmp")


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_goes_back(tmp_path: Path, project: Path, kind: type[BaseException]) -> None:
    with pytest.raises(kind), Snapshot(project) as snapshot:
        assert snapshot.session_dir is not None and os.path.isdir(snapshot.session_dir)
        (project / "README").write_text("broken")
        (project / "new").mkdir()
        raise kind("on purpose")
    assert (project / "README").read_text() == "hello\n" and not (project / "new").exists()
    assert left_over(tmp_path) == [] and snapshot.session_dir is None


def test_success_stays(tmp_path: Path, project: Path) -> None:
    with Snapshot(str(project)) as snapshot:
        assert snapshot.coverage.files == 3 and snapshot.manifest.number == 0
        (project / "README").write_text("better")
        for _ in range(2):
            assert [change.path for change in snapshot.changes()] == [str(project / "README")]
    assert (project / "README").read_text() == "better" and left_over(tmp_path) == []
    with pytest.raises(SnapshotError):
        snapshot.changes()


def test_going_back_inside(project: Path) -> None:
    with Snapshot(project) as snapshot:
        (project / "README").write_text("one")
        assert len(snapshot.restore()) == 1
        assert (project / "README").read_text() == "hello\n" and snapshot.changes() == []
        (project / "README").write_text("two")
    assert (project / "README").read_text() == "two"


def test_without_restoring(project: Path) -> None:
    with pytest.raises(ValueError), Snapshot(project, restore_on_error=False):
        (project / "README").write_text("stays")
        raise ValueError
    assert (project / "README").read_text() == "stays"


def test_a_session_folder_is_kept(tmp_path: Path, project: Path) -> None:
    for number in range(3):
        with pytest.raises(ValueError), Snapshot(project, session_dir=tmp_path / "s") as snapshot:
            assert snapshot.manifest.number == number
            (project / "README").write_text("broken")
            raise ValueError
        assert (project / "README").read_text() == "hello\n"
    assert SnapshotManager(tmp_path / "s", [project]).snapshot_count() == 3
    assert snapshot.session_dir == str(tmp_path / "s")


def test_a_failing_start_leaves_nothing(tmp_path: Path, project: Path) -> None:
    with pytest.raises(SnapshotError), Snapshot(project, max_entries=1):
        raise AssertionError("the block must not run")
    with pytest.raises(FileNotFoundError), Snapshot(project, tmp_path / "none"):
        raise AssertionError("the block must not run")
    with pytest.raises(ValueError), Snapshot(project, exclusion=ExclusionConfig(exclude_globs=["["])):
        raise AssertionError("the block must not run")
    assert left_over(tmp_path) == []
    with pytest.raises(TypeError):
        Snapshot()
    with Snapshot(project) as snapshot, pytest.raises(SnapshotError), snapshot:
        raise AssertionError("the block must not run")


def test_a_failing_restore_keeps_the_snapshot(tmp_path: Path, project: Path) -> None:
    file = project / "run.sh"
    with pytest.raises(SnapshotError) as raised, Snapshot(file) as snapshot:
        file.unlink()
        project.chmod(0o500)
        raise ValueError("the first")
    project.chmod(0o755)
    assert isinstance(raised.value.__cause__, ValueError)
    assert snapshot.session_dir is not None and snapshot.session_dir in str(raised.value)
    assert raised.value.kind == "incomplete" and raised.value.report is not None
    # And it is good for something.
    SnapshotManager(snapshot.session_dir, []).restore_to(0)
    assert file.read_text() == "#!/bin/sh\n"


def test_several_paths(tmp_path: Path, project: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ValueError), Snapshot(project, other):
        (other / "new").write_text("x")
        (project / "README").unlink()
        raise ValueError
    assert os.listdir(other) == [] and (project / "README").exists()


def test_async(tmp_path: Path, project: Path) -> None:
    async def main() -> None:
        async with Snapshot(project) as snapshot:
            (project / "README").write_text("better")
            assert len(snapshot.changes()) == 1
        with pytest.raises(ValueError):
            async with Snapshot(project):
                (project / "README").write_text("broken")
                raise ValueError

        started = asyncio.Event()

        async def work() -> None:
            async with Snapshot(project):
                (project / "README").write_text("broken")
                started.set()
                await asyncio.Event().wait()

        task = asyncio.ensure_future(work())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (project / "README").read_text() == "better" and left_over(tmp_path) == []
