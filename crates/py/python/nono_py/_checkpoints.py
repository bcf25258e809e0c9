"""Lists of checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from ._nono_py import Checkpoint


class CheckpointList(list[Checkpoint]):
    """The checkpoints of one project, newest first: a list that knows its project and shows itself in notebooks."""

    project: str
    """The project's folder."""

    def __init__(self, project: str, checkpoints: Iterable[Checkpoint] = ()) -> None:
        super().__init__(checkpoints)
        self.project = project

    def to_dict(self) -> dict[str, Any]:
        """The data of ``nono checkpoints list --json``."""
        return {"project": self.project, "checkpoints": [one.to_dict() for one in self]}

    def _repr_html_(self) -> str:
        head = ("number", "id", "time", "reason", "name", "files", "changes")
        rows = [
            (one.number, one.short_id, one.time, one.reason, one.name, one.files, _changes(one)) for one in self
        ]
        cells = ["".join(f"<td>{_cell(cell)}</td>" for cell in row) for row in rows]
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        titles = "".join(f"<th>{title}</th>" for title in head)
        return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _changes(checkpoint: Checkpoint) -> str:
    stats = checkpoint.stats
    return "" if stats is None else f"{stats.files} files, +{stats.insertions} -{stats.deletions}"


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    # Control and formatting characters are shown as escapes.
    return escape("".join(char if char.isprintable() else ascii(char)[1:-1] for char in text))
