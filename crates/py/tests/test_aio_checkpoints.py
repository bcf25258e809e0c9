"""Checkpoints for asyncio: the loop goes on, cancelling ends the work."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from checkpoint_tools import manager_in, tree

import nono_py
from nono_py import aio


def test_a_round_trip(tmp_path: Path, project: Path) -> None:
    async def main() -> None:
        manager = aio.CheckpointManager(manager_in(tmp_path, agent="a", session="s"))
        before = tree(project)
        await manager.new_turn("one")
        async with manager.call(project, "before edit") as call:
            assert call.result is not None and call.result.taken
            (project / "README").write_text("damage\n")
        assert [one.reason for one in await manager.list_checkpoints(project)] == ["before edit"]
        assert len(await manager.diff(project, 1)) == 1
        assert len((await manager.plan(project, 1)).changes) == 1
        outcome = await manager.restore(project, turn="one")
        assert tree(project) == before and outcome.turns_undone == ["one"]
        assert [note.turns_undone for note in await manager.take_notes()] == [["one"]]
        await manager.undo(project)
        assert (project / "README").read_text() == "damage\n"
        assert (await manager.create(project, "x")).taken
        assert (await manager.ensure_checkpoint(project, "y")).is_protected
        assert (await manager.find(project, 1)).reason == "x"
        await manager.agent_begins(project)
        await manager.agent_left(project)
        await manager.agent_stopped(project)
        await manager.settle(project)
        assert (await manager.verify()).good and len((await manager.status()).projects) == 1
        assert (await manager.prune(dry_run=True)).dry_run
        with pytest.raises(nono_py.CheckpointError):
            await manager.find(project, 99)
        assert (await manager.restore(project, 1, dry_run=True)).dry_run
        with pytest.raises(ZeroDivisionError):
            async with manager.call(project, "z"):
                raise ZeroDivisionError

    asyncio.run(main())


def test_the_loop_goes_on(tmp_path: Path, project: Path) -> None:
    for number in range(3000):
        (project / f"file {number}").write_text(str(number))

    async def main() -> int:
        manager = aio.CheckpointManager(manager_in(tmp_path))
        ticks = 0
        task = asyncio.ensure_future(manager.create(project))
        while not task.done():
            await asyncio.sleep(0)
            ticks += 1
        assert (await task).taken
        return ticks

    assert asyncio.run(main()) > 100


def test_a_cancelled_task_ends_its_work(tmp_path: Path, project: Path) -> None:
    for number in range(3000):
        (project / f"file {number}").write_text(str(number))

    async def main() -> None:
        native = manager_in(tmp_path)
        manager = aio.CheckpointManager(native)
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        told = lambda done, total: loop.call_soon_threadsafe(begun.set)  # noqa: E731
        task = asyncio.ensure_future(manager.create(project, progress=told))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Nothing is half done, and the manager is free again.
        assert native.create(project).is_protected and native.verify().good

    asyncio.run(main())
