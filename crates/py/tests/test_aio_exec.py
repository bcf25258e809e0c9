"""``nono_py.aio.sandboxed_exec``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import nono_py
from exec_kit import PATH, marker, running, system
from nono_py import aio


def test_the_loop_goes_on() -> None:
    async def main() -> tuple[nono_py.ExecResult, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.create_task(tick())
        command = ["sh", "-c", "cat; sleep 0.5; exit 3"]
        result = await aio.sandboxed_exec(system(), command, env=PATH, stdin=b"hello")
        ticking.cancel()
        return result, ticks

    result, ticks = asyncio.run(main())
    assert (result.stdout, result.exit_code) == (b"hello", 3)
    assert ticks > 10


def test_many_at_once() -> None:
    async def main() -> list[bytes]:
        caps = system()
        calls = [aio.sandboxed_exec(caps, ["echo", str(turn)]) for turn in range(40)]
        return [result.stdout for result in await asyncio.gather(*calls)]

    assert asyncio.run(main()) == [f"{turn}\n".encode() for turn in range(40)]


def test_a_cancelled_task_ends_the_tree(tmp_path: Path) -> None:
    nap = marker()

    async def main() -> None:
        script = f"(setsid sleep {nap} &); echo > started; sleep {nap}"
        call = aio.sandboxed_exec(system(tmp_path), ["sh", "-c", script], cwd=tmp_path, env=PATH)
        task = asyncio.create_task(call)
        while not (tmp_path / "started").exists():
            assert not task.done()
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert running(nap) == []

    asyncio.run(main())


def test_wait_for_ends_the_tree() -> None:
    nap = marker()

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(aio.sandboxed_exec(system(), ["sleep", nap]), 0.5)

    asyncio.run(main())
    assert running(nap) == []


def test_errors_are_those_of_the_namesake() -> None:
    with pytest.raises(ValueError, match="command must not be empty"):
        asyncio.run(aio.sandboxed_exec(system(), []))
    result = asyncio.run(aio.sandboxed_exec(system(), ["echo", "x"], max_output=0))
    assert result.truncated
    assert asyncio.run(aio.sandboxed_exec(system(), ["sleep", "9"], timeout_secs=0.2)).exit_code == 124
