"""The long calls for asyncio: the loop goes on, and cancelling a task ends its work.

Each runs in a thread of its own and gives what its namesake in ``nono_py`` gives. When the task is cancelled, the
work is told to stop, and the task ends once nothing is half done.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, Union

from . import _nono_py, _session
from ._checkpoints import CheckpointList, CheckpointNote, CheckpointResult, CheckpointStatus
from ._history import Checkpoint, HistoryChanges, PruneReport, RestoreResult, VerifyReport
from ._nono_py import Cancel, Cancelled, SnapshotManager, SnapshotManifest
from ._snapshots import ChangeList

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._nono_py import CapabilitySet, ExecResult, ProxyConfig, ProxyHandle
    from ._reports import SessionReport
    from ._session import RunOptions

StrPath = Union[str, "os.PathLike[str]"]
Progress = Callable[[int, int], object]
Which = Union[int, str, Checkpoint]

_T = TypeVar("_T")


async def run_in_thread(work: Callable[[Cancel], _T]) -> _T:
    """Run ``work(cancel)`` in a thread of its own; a cancelled task cancels it and waits for its end."""
    loop = asyncio.get_running_loop()
    cancel = Cancel()
    outcome: asyncio.Future[_T] = loop.create_future()

    def tell(value: Any, error: BaseException | None) -> None:
        if outcome.cancelled():
            return
        if error is None:
            outcome.set_result(value)
        else:
            outcome.set_exception(error)

    def body() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = work(cancel)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(tell, value, error)
        except RuntimeError:
            # The loop is closed, so no task waits any more.
            pass

    # The pool of asyncio is small and shared: long work in it would keep others waiting.
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(body,), name="nono").start()
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError as cancelled:
        cancel.cancel()
        while not outcome.done():
            # However often it is cancelled, the work first has to reach a safe point.
            try:
                await asyncio.wait([outcome])
            except asyncio.CancelledError:
                continue
        failure = outcome.exception()
        if failure is None or isinstance(failure, Cancelled):
            raise
        # The failure of the work is kept as the cause.
        raise cancelled from failure


# --- checkpoints


class CheckpointManager:
    """``nono_py.CheckpointManager`` for asyncio: what may take long, to be awaited; ``call`` is ``async with``.

    ``manager`` may be one that is there already; else one is made of the same arguments. What takes no time is called
    on ``manager`` itself.
    """

    def __init__(self, manager: _nono_py.CheckpointManager | StrPath | None = None, **settings: Any) -> None:
        if isinstance(manager, _nono_py.CheckpointManager):
            if settings:
                raise TypeError("an existing manager takes no settings")
            self.manager = manager
        else:
            self.manager = _nono_py.CheckpointManager(manager, **settings)

    async def new_turn(self, turn: str | None = None) -> str:
        """Begin a new turn; returns its name."""
        return await run_in_thread(lambda _: self.manager.new_turn(turn))

    async def ensure_checkpoint(
        self,
        dir: StrPath,
        reason: str = "checkpoint",
        *,
        turn: str | None = None,
        tool: str | None = None,
        call: str | None = None,
        progress: Progress | None = None,
    ) -> CheckpointResult:
        """Take a checkpoint unless this turn has one or nothing changed."""
        return await run_in_thread(
            lambda cancel: self.manager.ensure_checkpoint(
                dir, reason, turn=turn, tool=tool, call=call, progress=progress, cancel=cancel
            )
        )

    async def create(
        self, dir: StrPath, message: str = "by hand", *, turn: str | None = None, progress: Progress | None = None
    ) -> CheckpointResult:
        """Take a checkpoint now."""
        return await run_in_thread(
            lambda cancel: self.manager.create(dir, message, turn=turn, progress=progress, cancel=cancel)
        )

    @asynccontextmanager
    async def call(
        self,
        dir: StrPath,
        reason: str = "checkpoint",
        *,
        turn: str | None = None,
        tool: str | None = None,
        call: str | None = None,
        required: bool = False,
    ) -> AsyncIterator[_nono_py.CheckpointCall]:
        """Wrap a call of an agent's tool: a checkpoint before, and the state after it recorded."""
        begun = self.manager.call(dir, reason, turn=turn, tool=tool, call=call, required=required)
        try:
            await run_in_thread(lambda _: begun.__enter__())
            yield begun
        except BaseException as error:
            raised = error
            # A task that is cancelled while the call begins has one that began, or none.
            if begun.result is not None:
                await run_in_thread(lambda _: begun.__exit__(type(raised), raised, raised.__traceback__))
            raise
        await run_in_thread(lambda _: begun.__exit__(None, None, None))

    async def agent_begins(self, dir: StrPath, *, turn: str | None = None, call: str | None = None) -> None:
        """Begin a call that needs no checkpoint."""
        await run_in_thread(lambda _: self.manager.agent_begins(dir, turn=turn, call=call))

    async def agent_left(self, dir: StrPath, *, turn: str | None = None, call: str | None = None) -> None:
        """End a call."""
        await run_in_thread(lambda _: self.manager.agent_left(dir, turn=turn, call=call))

    async def agent_stopped(self, dir: StrPath, *, turn: str | None = None) -> None:
        """End all open calls, because the agent has stopped."""
        await run_in_thread(lambda _: self.manager.agent_stopped(dir, turn=turn))

    async def take_notes(self) -> list[CheckpointNote]:
        """Take the notes about restores for the agent."""
        return await run_in_thread(lambda _: self.manager.take_notes())

    async def list_checkpoints(self, dir: StrPath, *, progress: Progress | None = None) -> CheckpointList:
        """The checkpoints of a project, newest first."""
        return await run_in_thread(
            lambda cancel: self.manager.list_checkpoints(dir, progress=progress, cancel=cancel)
        )

    async def find(
        self, dir: StrPath, checkpoint: Which | None = None, *, turn: str | None = None
    ) -> Checkpoint:
        """Find a checkpoint."""
        return await run_in_thread(lambda _: self.manager.find(dir, checkpoint, turn=turn))

    async def diff(
        self,
        dir: StrPath,
        checkpoint: Which,
        path: StrPath | Sequence[StrPath] | None = None,
        *,
        glob: str | Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> HistoryChanges:
        """The changes since a checkpoint."""
        return await run_in_thread(
            lambda cancel: self.manager.diff(dir, checkpoint, path, glob=glob, progress=progress, cancel=cancel)
        )

    async def plan(
        self, dir: StrPath, checkpoint: Which | None = None, **choice: Any
    ) -> RestoreResult:
        """The plan of ``restore`` with the same arguments."""
        return await run_in_thread(lambda cancel: self.manager.plan(dir, checkpoint, **choice, cancel=cancel))

    async def restore(
        self, dir: StrPath, checkpoint: Which | None = None, **choice: Any
    ) -> RestoreResult:
        """Restore a checkpoint, with the arguments of ``nono_py.CheckpointManager.restore``."""
        return await run_in_thread(lambda cancel: self.manager.restore(dir, checkpoint, **choice, cancel=cancel))

    async def undo(
        self, dir: StrPath, dry_run: bool = False, *, progress: Progress | None = None
    ) -> RestoreResult:
        """Undo the last restore of the project."""
        return await run_in_thread(lambda cancel: self.manager.undo(dir, dry_run, progress=progress, cancel=cancel))

    async def status(self) -> CheckpointStatus:
        """Status of all projects, with the disk usage of their checkpoints."""
        return await run_in_thread(lambda _: self.manager.status())

    async def prune(self, **limits: Any) -> PruneReport:
        """Remove old or excess checkpoints, with the arguments of ``nono_py.CheckpointManager.prune``."""
        return await run_in_thread(lambda _: self.manager.prune(**limits))

    async def verify(
        self, dir: StrPath | None = None, *, progress: Progress | None = None
    ) -> VerifyReport:
        """Check that everything that checkpoints need is there and unaltered."""
        return await run_in_thread(lambda cancel: self.manager.verify(dir, progress=progress, cancel=cancel))

    async def settle(self, dir: StrPath) -> None:
        """Compress the checkpoints of a project, and make them survive a power loss."""
        await run_in_thread(lambda _: self.manager.settle(dir))


class AgentTurns:
    """``nono_py.AgentTurns`` for asyncio."""

    def __init__(self, manager: CheckpointManager) -> None:
        self._turns = _nono_py.AgentTurns(manager.manager)

    async def list_turns(self, dir: StrPath) -> list[dict[str, Any]]:
        """The turns of a project, newest first."""
        return await run_in_thread(lambda _: self._turns.list_turns(dir))

    async def plan(self, dir: StrPath, turn: int | str, **choice: Any) -> RestoreResult:
        """The plan of ``undo`` with the same arguments."""
        return await run_in_thread(
            lambda cancel: self._turns.undo(dir, turn, dry_run=True, **choice, cancel=cancel)
        )

    async def undo(self, dir: StrPath, turn: int | str, **choice: Any) -> RestoreResult:
        """Undo one turn, with the arguments of ``nono_py.AgentTurns.undo``."""
        return await run_in_thread(lambda cancel: self._turns.undo(dir, turn, **choice, cancel=cancel))


class FileVersions:
    """``nono_py.FileVersions`` for asyncio."""

    def __init__(self, manager: CheckpointManager) -> None:
        self._versions = _nono_py.FileVersions(manager.manager)

    async def list_versions(self, path: StrPath) -> list[dict[str, Any]]:
        """Every version of a file, newest first."""
        return await run_in_thread(lambda _: self._versions.list_versions(path))

    async def read(self, path: StrPath, version: str) -> bytes:
        """The bytes of a version of a file."""
        return await run_in_thread(lambda _: self._versions.read(path, version))


# --- sessions


async def run(command: Sequence[StrPath], **options: Unpack[RunOptions]) -> SessionReport:
    """``nono_py.run``. A cancelled task ends the command (TERM, a moment, KILL), and ends itself once that is gone and the
    last snapshot is taken."""
    if "cancel" in options:
        raise TypeError("cancel the task instead of passing cancel")

    def work(cancel: Cancel) -> SessionReport:
        options["cancel"] = cancel
        return _session.run(command, **options)

    return await run_in_thread(work)
# --- exec


async def sandboxed_exec(
    caps: CapabilitySet,
    command: Sequence[StrPath],
    cwd: StrPath | None = None,
    timeout_secs: float | None = None,
    env: Sequence[tuple[str, str]] | None = None,
    inherit_env: bool = False,
    *,
    stdin: bytes | bytearray | None = None,
    max_output: int | None = None,
) -> ExecResult:
    """``nono_py.sandboxed_exec``; when the task is cancelled, everything the command started is ended."""
    return await run_in_thread(
        lambda cancel: _nono_py.sandboxed_exec(
            caps,
            command,
            cwd,
            timeout_secs,
            env,
            inherit_env,
            stdin=stdin,
            max_output=max_output,
            cancel=cancel,
        )
    )
# --- snapshots


async def create_baseline(manager: SnapshotManager) -> SnapshotManifest:
    """``manager.create_baseline()``."""
    return await run_in_thread(lambda cancel: manager.create_baseline(cancel=cancel))


async def create_incremental(manager: SnapshotManager) -> tuple[SnapshotManifest, ChangeList]:
    """``manager.create_incremental()``."""
    return await run_in_thread(lambda cancel: manager.create_incremental(cancel=cancel))


async def compute_restore_diff(manager: SnapshotManager, snapshot_number: int) -> ChangeList:
    """``manager.compute_restore_diff(snapshot_number)``."""
    return await run_in_thread(lambda cancel: manager.compute_restore_diff(snapshot_number, cancel=cancel))


async def compute_changes(manager: SnapshotManager, snapshot_number: int) -> ChangeList:
    """``manager.compute_changes(snapshot_number)``."""
    return await run_in_thread(lambda cancel: manager.compute_changes(snapshot_number, cancel=cancel))


async def restore_to(manager: SnapshotManager, snapshot_number: int) -> ChangeList:
    """``manager.restore_to(snapshot_number)``."""
    return await run_in_thread(lambda cancel: manager.restore_to(snapshot_number, cancel=cancel))


async def undo_restore(manager: SnapshotManager) -> ChangeList:
    """``manager.undo_restore()``."""
    return await run_in_thread(lambda cancel: manager.undo_restore(cancel=cancel))


async def verify(manager: SnapshotManager) -> list[str]:
    """``manager.verify()``."""
    return await run_in_thread(lambda cancel: manager.verify(cancel=cancel))


async def settle(manager: SnapshotManager) -> None:
    """``manager.settle()``."""
    await run_in_thread(lambda cancel: manager.settle(cancel=cancel))


# --- proxy


async def start_proxy(config: ProxyConfig) -> ProxyHandle:
    """``nono_py.start_proxy``: fetching the secrets may take a while."""
    return await run_in_thread(lambda _cancel: _nono_py.start_proxy(config))
