"""asyncio: commands and snapshots beside each other, while the loop goes on."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import nono_py as nono
from nono_py import aio


def programs() -> nono.CapabilitySet:
    """The grants that programs need to start."""
    caps = nono.CapabilitySet()
    for path in ("/usr", "/bin", "/lib", "/lib64"):
        if Path(path).is_dir():
            caps.allow_path(path, nono.AccessMode.READ)
    return caps


async def ticking() -> int:
    """Counts until it is cancelled."""
    ticks = 0
    try:
        while True:
            await asyncio.sleep(0.01)
            ticks += 1
    except asyncio.CancelledError:
        return ticks


async def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary, "project")
        project.mkdir()
        for number in range(200):
            (project / f"file-{number}").write_text(str(number))
        manager = nono.SnapshotManager(Path(temporary, "session"), [project])

        ticker = asyncio.create_task(ticking())
        caps = programs()
        commands = [aio.sandboxed_exec(caps, ["/bin/sh", "-c", f"sleep 0.2; echo {n}"]) for n in range(3)]
        manifest, results = await asyncio.gather(aio.create_baseline(manager), asyncio.gather(*commands))
        print(f"snapshot {manifest.number} of {len(manifest.files)} files")
        print([result.stdout for result in results])

        # Cancelling a task ends everything its command started.
        endless = asyncio.create_task(aio.sandboxed_exec(caps, ["/bin/sleep", "1000"]))
        await asyncio.sleep(0.1)
        endless.cancel()
        try:
            await endless
        except asyncio.CancelledError:
            print("cancelled")
        ticker.cancel()
        ticks = await ticker
        print(f"the loop ticked {ticks} times meanwhile")
        assert ticks > 0


if __name__ == "__main__":
    asyncio.run(main())
