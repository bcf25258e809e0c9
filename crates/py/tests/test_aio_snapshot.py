"""The calls for asyncio: the loop goes on, and a cancelled task ends its work."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nono_py import SnapshotManager, aio


def test_each_has_its_namesake(tmp_path: Path, project: Path) -> None:
    async def main() -> None:
        manager = SnapshotManager(tmp_path / "s", [project])
        assert (await aio.create_baseline(manager)).number == 0
        (project / "README").write_text("changed")
        assert len(await aio.compute_changes(manager, 0)) == 1
        manifest, changes = await aio.create_incremental(manager)
        assert (manifest.number, len(changes)) == (1, 1)
        assert len(await aio.compute_restore_diff(manager, 0)) == 1
        assert len(await aio.restore_to(manager, 0)) == 1
        assert (project / "README").read_text() == "hello\n"
        await aio.undo_restore(manager)
        assert (project / "README").read_text() == "changed"
        await aio.settle(manager)
        assert await aio.verify(manager) == []

    asyncio.run(main())


def test_the_loop_goes_on_and_a_cancelled_task_ends_its_work(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "small").write_text("s")
    with open(root / "large", "wb") as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))

    async def main() -> None:
        manager = SnapshotManager(tmp_path / "s", [root])
        turns = 0
        work = asyncio.ensure_future(aio.create_baseline(manager))
        while not work.done():
            await asyncio.sleep(0)
            turns += 1
        assert (await work).coverage.files == 2
        assert turns > 100
        # A second process has the session: the call waits, and can be left.
        holder = await asyncio.create_subprocess_exec(
            *("flock", "-x", str(next(iter((tmp_path / "s").glob("*lock*")))), "sh", "-c", "echo; cat"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert holder.stdout is not None and holder.stdin is not None
        await holder.stdout.readline()
        waiting = asyncio.ensure_future(aio.create_incremental(manager))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        holder.stdin.close()
        await holder.wait()
        assert (await aio.create_incremental(manager))[0].number == 1

    asyncio.run(main())
