"""Values of snapshots."""

from __future__ import annotations

from typing import Any

from ._nono_py import Change
from ._records import Field, Record, pairs, table, visible

_SIGNS = {"created": "+", "modified": "~", "deleted": "-", "permissions_changed": "%"}
_SHOWN = 200


class ChangeList(list[Change]):
    """A list of changes, sorted by path, that a notebook shows as a table."""

    __slots__ = ()

    def to_dict(self) -> list[dict[str, Any]]:
        """The changes as plain dicts."""
        return [change.to_dict() for change in self]

    def _repr_html_(self) -> str:
        rows = (
            (f"{_SIGNS.get(one.change_type, '')} {one.change_type}", one.kind, one.path, f"{one.size_delta:+}")
            for one in self[:_SHOWN]
        )
        more = f"<p>and {len(self) - _SHOWN} more</p>" if len(self) > _SHOWN else ""
        return table(("change", "kind", "path", "bytes"), rows) + more


class Coverage(Record):
    """The coverage of a snapshot: what it holds and does not hold, in numbers and examples."""

    __slots__ = ()
    _shown = ("files", "bytes", "entries_left_out")

    files = Field[int]("Regular files in the snapshot.")
    bytes = Field[int]("Bytes in them.")
    directories = Field[int]("Directories in the snapshot.")
    others = Field[int]("Links, FIFOs, sockets and devices in the snapshot.")
    entries_left_out = Field[int](
        "Names that were left out; a directory counts once, with everything in it.",
        lambda one: sum(cause["entries"] for cause in one.left_out),
    )
    left_out = Field[list[dict[str, Any]]](
        "Excluded paths by cause: dicts of cause, entries, directories, examples (dicts of path and reason)."
    )
    notes = Field[list[str]](
        "Further notes: a tracked path that does not exist, ignore rules that were not applied."
    )
    is_complete = Field[bool]("Whether every tracked path is in it, and nothing but nono's own state was left out.")

    def __str__(self) -> str:
        text = f"{self.files} files ({self.bytes} bytes) in {self.directories} directories"
        left_out = [f"{self.entries_left_out} left out"] if self.entries_left_out else []
        return "; ".join([text, *left_out, *self.notes])

    def _repr_html_(self) -> str:
        def examples(cause: dict[str, Any]) -> str:
            return "; ".join(f"{one['path']}: {one['reason']}" for one in cause["examples"])

        rows = ((cause["cause"], cause["entries"], examples(cause)) for cause in self.left_out)
        return f"<p>{visible(self)}</p>{table(('left out', 'entries', 'for example'), rows)}"


class RestoreReport(Record):
    """Result of a restore by a ``SnapshotManager``. It can be undone: the state before it is in a safety snapshot."""

    __slots__ = ()
    _shown = ("applied", "skipped", "failed")

    applied = Field[ChangeList](
        "The changes in the tree, sorted by path.", lambda one: ChangeList(one._value("applied"))
    )
    skipped = Field[list[tuple[str, str]]](
        "The paths that were kept, as pairs of path and reason.", pairs("skipped", "path", "reason")
    )
    failed = Field[list[tuple[str, str]]](
        "The paths that could not be restored, or not completely, as pairs of path and reason.",
        pairs("failed", "path", "reason"),
    )
    kept = Field[list[str]](
        "Paths that others wrote during the restore; their contents were stored before they were replaced."
    )
    lost = Field[list[tuple[str, str]]](
        "Paths that the snapshot does not hold and that are gone or changed, as pairs of path and what became of it.",
        pairs("lost", "path", "reason"),
    )
    safety = Field[str]("The id of the snapshot that was taken before: ``undo_restore`` goes back to it.")
    is_complete = Field[bool]("Whether everything that the snapshot holds was restored.")

    def to_dict(self) -> dict[str, Any]:
        """The values as a plain dict."""
        return {"applied": self.applied.to_dict(), **super().to_dict()}
