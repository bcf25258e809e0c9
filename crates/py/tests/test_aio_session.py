"""Supervised runs in asyncio."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import nono_py as nono
from nono_py import aio

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NONO_HOME", str(tmp_path / "state"))


def test_the_loop_goes_on(project: Path) -> None:
    async def main() -> tuple[list[nono.SessionReport], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.005)

        ticking = asyncio.create_task(tick())
        runs = [aio.run(["sleep", "0.3"], allow=[project], capture_output=True) for _ in range(3)]
        reports = await asyncio.gather(*runs)
        ticking.cancel()
        return list(reports), ticks

    reports, ticks = asyncio.run(main())
    assert all(report.ok for report in reports) and ticks > 10


def test_a_cancelled_task_ends_the_command(project: Path) -> None:
    started = project / "started"

    async def main() -> None:
        command = ["/bin/sh", "-c", f"touch {started}; exec sleep 600"]
        task = asyncio.create_task(aio.run(command, allow=[project], rollback=True, capture_output=True))
        deadline = time.monotonic() + 60
        while not started.exists() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    past = nono.open_session()
    assert past.status == "finished" and [change.path for change in past.changes()] == [str(started)]
    assert nono.running_sessions() == []


def test_a_task_is_cancelled_by_itself() -> None:
    with pytest.raises(TypeError, match="task"):
        asyncio.run(aio.run(["true"], cancel=nono.Cancel()))
