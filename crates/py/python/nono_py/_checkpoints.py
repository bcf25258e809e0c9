"""Values of checkpoints and hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._history import Checkpoint
from ._records import Field, Record, pairs, table
from ._snapshots import Coverage


class CheckpointList(list[Checkpoint]):
    """The checkpoints of one project, newest first: a list that knows its project and shows itself in notebooks."""

    project: str
    """The project's folder."""

    def __init__(self, project: str, checkpoints: Iterable[Checkpoint] = ()) -> None:
        super().__init__(checkpoints)
        self.project = project

    @classmethod
    def _read(cls, data: dict[str, Any]) -> CheckpointList:
        return cls(data["project"], map(Checkpoint, data["checkpoints"]))

    def to_dict(self) -> dict[str, Any]:
        """The data of ``nono checkpoints list --json``."""
        return {"project": self.project, "checkpoints": [one.to_dict() for one in self]}

    def _repr_html_(self) -> str:
        head = ("number", "id", "time", "reason", "name", "files", "changes")
        rows = (
            (one.number, one.short_id, one.time, one.reason, one.name, one.files, _changes(one)) for one in self
        )
        return table(head, rows)


def _changes(checkpoint: Checkpoint) -> str:
    stats = checkpoint.stats
    return "" if stats is None else f"{stats.files} files, +{stats.insertions} -{stats.deletions}"


class CheckpointResult(Record):
    """Result of requesting a checkpoint. A failure is one of them: an agent's work goes on."""

    __slots__ = ()
    _shown = ("result", "checkpoint_id", "why")

    result = Field[str]("One of ``taken``, ``skipped`` and ``failed``.")
    taken = Field[bool]("Whether one was taken now.", lambda one: one.result == "taken")
    skipped = Field[bool](
        "Whether none was needed; ``why`` has the reason.", lambda one: one.result == "skipped"
    )
    failed = Field[bool](
        "Whether it failed, so that there is no protection; ``why`` and ``error`` have the reason.",
        lambda one: one.result == "failed",
    )
    is_protected = Field[bool](
        "Whether a checkpoint shows the project as it was before: one taken now, or one that was there already.",
        lambda one: one.checkpoint_id is not None,
    )
    project = Field[str]("The project's folder; of a failure, the folder that was asked about.")
    checkpoint = Field[Checkpoint | None](
        "The checkpoint, if one was taken now.", lambda one: one.taken and Checkpoint(one._value("checkpoint")) or None
    )
    checkpoint_id = Field[str | None](
        "The id of the checkpoint that protects: taken now, or there already.",
        lambda one: one.checkpoint.id if one.taken else _skipped(one)[1],
    )
    why = Field[str | None](
        "``disabled``, ``this_turn`` or ``unchanged``; of a failure, what went wrong.", lambda one: _skipped(one)[0]
    )
    error = Field[Exception | None]("The exception of a failure, which was not raised.")
    coverage = Field[Coverage | None]("The coverage of the checkpoint, if one was taken now.")

    def raise_if_failed(self) -> None:
        """Raise the failure, if it is one."""
        if self.error is not None:
            raise self.error


def _skipped(result: CheckpointResult) -> tuple[str | None, str | None]:
    """The reason, and the checkpoint that is there already: ``"disabled"`` or ``{"this_turn": id}``."""
    why = result._value("why")
    return next(iter(why.items())) if isinstance(why, dict) else (why, None)


class CheckpointNote(Record):
    """Note to an agent about a restore since its last query."""

    __slots__ = ()
    _shown = ("checkpoint", "files")

    project = Field[str]("The project's folder.")
    checkpoint = Field[str]("The id of the checkpoint that was gone back to.")
    turns_undone = Field[list[str]]("The agent's turns that were undone; with ``came_back``, brought back.")
    files = Field[list[str]]("Restored files, relative to the project; at most a hundred.")
    restore = Field[str]("The id of the restore.")
    came_back = Field[bool](
        "Whether an undo brought these turns back, after the agent had the note that they are gone."
    )


class CheckpointProject(Record):
    """One project that has checkpoints."""

    __slots__ = ()
    _shown = ("workdir", "checkpoints")

    hash = Field[str]("The name of its folder below ``projects/`` in nono's state.")
    workdir = Field[str]("The project's folder.")
    checkpoints = Field[int]("Number of its checkpoints.")
    last_touch = Field[str]("Time of the last work in it: ISO 8601, UTC.")
    state = Field[str]("``live``, or ``orphan`` if its folder is gone.")
    unprotected = Field[str | None](
        "Reason why the last checkpoint failed, so that nothing protects the project; None if it is protected."
    )


class CheckpointStatus(Record):
    """Status of all projects, with the disk usage of their checkpoints."""

    __slots__ = ()
    _shown = ("projects", "total_bytes")

    enabled = Field[bool]("Whether ``ensure_checkpoint`` takes any.")
    base = Field[str]("nono's own folder.")
    total_bytes = Field[int]("Disk usage of checkpoints and archives of superseded formats.")
    store_bytes = Field[int]("Disk usage of checkpoints.")
    legacy_bytes = Field[int]("Disk usage of archives of superseded formats.")
    exact = Field[bool](
        "Whether ``store_bytes`` was counted, and nothing was written since; else it is not less than it says."
    )
    projects = Field[list[CheckpointProject]](
        "The last one touched first.", lambda one: list(map(CheckpointProject, one._value("projects")))
    )
    legacy = Field[list[tuple[str, int]]](
        "Archives of superseded formats, as (name, bytes).", pairs("legacy", "name", "bytes")
    )
    unprotected = Field[list[tuple[str, str, str]]](
        "Folders whose first checkpoint failed, as (path, why, time).", pairs("unprotected", "path", "why", "time")
    )
    problems = Field[list[str]]("Projects that cannot be read.")

    def _repr_html_(self) -> str:
        head = ("project", "checkpoints", "last touch", "state", "unprotected")
        rows = ((one.workdir, one.checkpoints, one.last_touch, one.state, one.unprotected) for one in self.projects)
        return table(head, rows)


class ForgetReport(Record):
    """Result of forgetting a path, or with ``dry_run`` its preview."""

    __slots__ = ()
    _shown = ("path", "snapshots", "contents")

    dry_run = Field[bool]("Whether nothing was changed.")
    project = Field[str]("The project's folder.")
    path = Field[str]("The path, absolute.")
    checkpoints = Field[list[Checkpoint]](
        "Checkpoints that have it; only in a dry run.", lambda one: list(map(Checkpoint, one._value("checkpoints") or ()))
    )
    snapshots = Field[int]("Checkpoints, and other snapshots of the project, that had it.")
    contents = Field[int]("Contents that were removed.", lambda one: one._value("contents") or 0)
    held_by = Field[list[tuple[str, list[str]]]](
        "Others that have the same bytes, which stay there: (folder of a session or a project, paths).",
        pairs("held_by", "by", "paths"),
    )
    sessions = Field[list[tuple[str, int]]](
        "Sessions that had it, with the number of their snapshots that did.", pairs("sessions", "session_id", "snapshots")
    )
    held = Field[list[tuple[str, str]]](
        "Sessions that still have it, and why: one that runs, for example.", pairs("held", "session_id", "why")
    )


class ImportReport(Record):
    """Result of an import from another tool."""

    __slots__ = ()
    _shown = ("checkpoints", "known", "skipped")

    projects = Field[list[tuple[str, int]]](
        "Folders whose checkpoints were found, with how many are new.", pairs("projects", "project", "checkpoints")
    )
    checkpoints = Field[list[str]]("Ids of the imported checkpoints.")
    known = Field[int]("Number of checkpoints that were imported before.")
    skipped = Field[list[tuple[str, str]]](
        "Checkpoints that could not be imported, as (what, why).", pairs("skipped", "what", "why")
    )


class HookStatus(Record):
    """Whether one agent has nono's hooks, and whether they work."""

    __slots__ = ()
    _shown = ("agent", "state")

    agent = Field[str]("The agent, as it is typed: ``claude-code``, ``codex``, ``gemini``, ``opencode``, ``hermes``.")
    scope = Field[str]("The settings it is in: ``user`` or ``project``.")
    state = Field[str]("One of ``not installed``, ``installed``, ``outdated``, ``broken``.")
    why = Field[str | None]("The problem, if there is one.")
    file = Field[str]("The file with the hooks.")
    binary = Field[str | None]("The nono that they call.")
    binary_exists = Field[bool | None]("Whether it can be run.")


class HookChanges(Record):
    """Changes that installed or removed hooks, or with ``dry_run`` would."""

    __slots__ = ()
    _shown = ("agent", "changes", "applied")

    agent = Field[str]("The agent.")
    changes = Field[list[tuple[str, str]]](
        "Files, as (path, ``create``, ``edit`` or ``delete``); empty if nothing has to change.",
        pairs("changes", "path", "action"),
    )
    notes = Field[list[str]]("Notes for the user: what is left alone, what remains to be done in the agent.")
    applied = Field[bool]("Whether they were written.")
    backups = Field[list[str]]("Backups of the files.")
