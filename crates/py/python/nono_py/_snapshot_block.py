"""``with Snapshot(path): ...``: what an exception leaves behind is undone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._nono_py import Cancel, ExclusionConfig, SnapshotError, SnapshotManager, SnapshotManifest
from ._snapshots import ChangeList, Coverage

if TYPE_CHECKING:
    from types import TracebackType

    from ._nono_py import StrPath

__all__ = ["Snapshot"]


class Snapshot:
    """Takes a snapshot at the start of a block, and restores it if the block ends by an exception.

        with Snapshot("project"):
            rewrite_everything("project")  # raises: the folder is as it was

    An exception of any kind counts, ``KeyboardInterrupt`` too, and is raised on. After a block that ends well everything
    stays as it is; ``restore()`` goes back at any time inside of it. ``async with`` does the same without blocking the
    loop.

    The snapshot is kept in ``session_dir``; without one, in a temporary folder outside of ``paths`` that is removed at
    the end. It is not removed when going back failed: ``session_dir`` says where it is, and so does the exception.
    """

    def __init__(
        self,
        *paths: StrPath,
        session_dir: StrPath | None = None,
        exclusion: ExclusionConfig | None = None,
        max_entries: int = 300_000,
        max_bytes: int = 2_147_483_648,
        restore_on_error: bool = True,
    ) -> None:
        if not paths:
            raise TypeError("Snapshot needs a path")
        self._paths = [os.path.expanduser(os.fspath(path)) for path in paths]
        self._given = None if session_dir is None else os.path.expanduser(os.fspath(session_dir))
        self._exclusion = exclusion
        self._limits = (max_entries, max_bytes)
        self._restore_on_error = restore_on_error
        self._manager: SnapshotManager | None = None
        self._manifest: SnapshotManifest | None = None
        self._dir: str | None = self._given

    # --- inside the block

    @property
    def manager(self) -> SnapshotManager:
        """The manager that holds the snapshot, inside the block."""
        if self._manager is None:
            raise SnapshotError("the snapshot exists only inside its with block")
        return self._manager

    @property
    def manifest(self) -> SnapshotManifest:
        """The snapshot."""
        if self._manifest is None:
            raise SnapshotError("the snapshot exists only inside its with block")
        return self._manifest

    @property
    def coverage(self) -> Coverage:
        """The coverage of the snapshot."""
        return self.manifest.coverage

    @property
    def session_dir(self) -> str | None:
        """The folder of the snapshot; None before the block, and after it when the folder was temporary and is gone."""
        return self._dir

    def changes(self) -> ChangeList:
        """The changes since the block began, sorted by path."""
        return self.manager.compute_changes(self.manifest.number)

    def restore(self) -> ChangeList:
        """Restore the state at the start of the block, and stay in it. Returns the changes."""
        return self.manager.restore_to(self.manifest.number)

    # --- start and end

    def _begin(self, cancel: Cancel | None = None) -> None:
        if self._manager is not None:
            raise SnapshotError("this snapshot is in use already: create one for each block")
        import errno
        import tempfile

        for path in self._paths:
            if not os.path.lexists(path):
                raise FileNotFoundError(errno.ENOENT, "no such file or directory to snapshot", path)
        self._dir = self._given or tempfile.mkdtemp(prefix="nono-snapshot-", dir=self._outside())
        try:
            max_entries, max_bytes = self._limits
            manager = SnapshotManager(self._dir, self._paths, self._exclusion, max_entries, max_bytes)
            if manager.snapshot_count() == 0:
                self._manifest = manager.create_baseline(cancel=cancel)
            else:
                self._manifest = manager.create_incremental(cancel=cancel)[0]
            self._manager = manager
        except BaseException:
            self._end()
            raise

    def _outside(self) -> str:
        """A place for temporary folders that is in none of the paths: what empties them must not empty the snapshot."""
        import tempfile

        inside = [os.path.join(os.path.realpath(path), "") for path in self._paths]
        for place in (tempfile.gettempdir(), "/var/tmp", "/tmp", "/dev/shm"):
            real = os.path.join(os.path.realpath(place), "")
            if os.access(place, os.W_OK | os.X_OK) and not any(real.startswith(path) for path in inside):
                return place
        raise SnapshotError(
            f"every place for temporary files lies in {', '.join(map(repr, self._paths))}: say where the snapshot is to be"
            " kept, with session_dir="
        )

    def _end(self) -> None:
        """End the block, and remove the snapshot."""
        manager, self._manager, self._manifest = self._manager, None, None
        if manager is not None:
            manager.close(settle=self._given is not None)
        if self._given is None and self._dir is not None:
            import shutil

            shutil.rmtree(self._dir, ignore_errors=True)
            self._dir = None

    def _leave(self, error: BaseException | None) -> None:
        if error is None or not self._restore_on_error:
            self._end()
            return
        try:
            self.manager.restore_to(self.manifest.number)
        except BaseException as failure:
            self._keep(failure, error)
            raise
        self._end()

    def _keep(self, failure: BaseException, error: BaseException) -> None:
        """Keep the snapshot after a failed restore, and name its folder in the exception."""
        manager, self._manager, self._manifest = self._manager, None, None
        if manager is not None:
            try:
                manager.close(settle=False)
            except SnapshotError:
                # The first failure is the one to report.
                pass
        where = f"the snapshot is kept in {self._dir}"
        if not isinstance(failure, Exception):
            # An interrupt stays what it is, with a note; Python 3.10 has no notes.
            if hasattr(failure, "add_note"):
                failure.add_note(f"[nono] not everything was restored; {where}")
            return
        told = SnapshotError(f"cannot restore {', '.join(map(repr, self._paths))}: {failure}; {where}")
        told.kind = getattr(failure, "kind", "error")
        told.path = getattr(failure, "path", None)
        told.report = getattr(failure, "report", None)
        raise told from error

    def __enter__(self) -> Snapshot:
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(error)

    async def __aenter__(self) -> Snapshot:
        from .aio import run_in_thread

        try:
            await run_in_thread(self._begin)
        except BaseException:
            if self._manager is not None:
                # The snapshot was taken although the block is not entered.
                await run_in_thread(lambda _: self._end())
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from .aio import run_in_thread

        # A restore is not stopped half-way: a task that is cancelled meanwhile ends after it.
        await run_in_thread(lambda _: self._leave(error))

    def __repr__(self) -> str:
        return f"Snapshot({', '.join(map(repr, self._paths))})"
