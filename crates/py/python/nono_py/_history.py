"""What sessions, checkpoints and turns of agents have in common: changes, restores, removals, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from ._records import Field, Record, pairs, table


class HistoryChange(Record):
    """One path that differs."""

    __slots__ = ()
    _shown = ("path", "change_type")

    path = Field[str]("The absolute path where it is, or was if it is gone.")
    change_type = Field[Literal["created", "modified", "deleted", "permissions_changed", "renamed"]](
        "The kind of change; ``renamed`` only in a list of differences."
    )
    size_delta = Field[int]("Bytes of regular files: new less old.")
    renamed_from = Field[str | None]("The previous path, if it was renamed.")
    executes_later = Field[Any](
        "Reason why this will run outside the sandbox later, without a request of the user: a git hook, a shell's start "
        "file, a build script. None if it will not, and outside of a list of differences."
    )
    binary = Field[bool | None]("Whether its content is no text; None outside of a checkpoint's diff.")
    insertions = Field[int | None]("Number of lines added; None if lines are not counted.")
    deletions = Field[int | None]("Number of lines removed; None if lines are not counted.")
    patch = Field[str | None](
        "The change as a patch; None outside of a checkpoint's diff. Bytes that are not UTF-8 are surrogates."
    )

    def _cells(self) -> tuple[str, str]:
        path = self.path if self.renamed_from is None else f"{self.renamed_from} → {self.path}"
        return self.change_type, path

    def _row(self) -> tuple[str, ...]:
        lines = "" if self.insertions is None else f"+{self.insertions} -{self.deletions}"
        later = "" if self.executes_later is None else "yes"
        return *self._cells(), lines, f"{self.size_delta:+}", later


def _changes(record: Record) -> list[HistoryChange]:
    return [HistoryChange(one) for one in record._value("changes")]


class CheckpointStats(Record):
    """Changes after a checkpoint: up to the next one; for the newest, up to the end of the agent's last call."""

    __slots__ = ()
    _shown = ("files", "insertions", "deletions")

    files = Field[int]("Number of files that differ.")
    insertions = Field[int]("Number of lines added.")
    deletions = Field[int]("Number of lines removed.")


class Checkpoint(Record):
    """A stored state of a project. Checkpoints with the same id are equal."""

    __slots__ = ()
    _shown = ("id", "time", "reason")

    id = Field[str]("Its permanent id: twelve hexadecimal digits.")
    short_id = Field[str]("The beginning of its id, as lists show it.", lambda one: one.id[:8])
    number = Field[int | None](
        "Its place in the list that it comes from, counted from 1, the newest; None if it comes from elsewhere."
    )
    here = Field[bool](
        "Whether the project was restored to it and no work began since; False if it comes from no list.",
        lambda one: bool(one._value("here")),
    )
    time = Field[str]("The time it was taken: ISO 8601, UTC.")
    reason = Field[str]("The reason it was taken for. Untrusted text.")
    agent = Field[str | None]("The agent that it was taken for.")
    session = Field[str | None]("The agent's own id of the conversation.")
    turn = Field[str | None]("The turn of the agent that it was taken in.")
    tool = Field[str | None]("The tool that was about to run.")
    call = Field[str | None]("The agent's own id of the call.")
    run = Field[str | None]("The session of ``nono run`` around it.")
    name = Field[str | None]("Its name, if it was given one: then it is never removed by itself.")
    pinned = Field[bool]("Whether it is kept until it is unpinned.")
    imported_from = Field[str | None]("The other tool's name of it, if it was imported.")
    files = Field[int]("The number of files it holds.")
    not_covered = Field[int]("The number of paths it does not hold and a restore does not touch.")
    stats = Field[CheckpointStats | None](
        "The changes after it; None if it comes from no list.",
        lambda one: one._value("stats") and CheckpointStats(one._value("stats")),
    )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checkpoint) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


class HistoryChanges(Record, Sequence[HistoryChange]):
    """Differences between two states: a sequence, what will run later first."""

    __slots__ = ("_all",)

    def __init__(self, data: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, more)
        lines = self._value("lines") or [None] * len(data["changes"])
        counted = [{} if one is None else {"insertions": one[0], "deletions": one[1]} for one in lines]
        self._all = [HistoryChange(one, count) for one, count in zip(data["changes"], counted)]

    checkpoint = Field[Checkpoint | None](
        "The checkpoint it was compared with; None for a session.",
        lambda all: all._value("checkpoint") and Checkpoint(all._value("checkpoint")),
    )
    changes = Field[list[HistoryChange]]("One for each path, as a list.", lambda all: list(all._all))
    counts = Field[dict[str, int]]("The number of changes of each kind.")

    @property
    def patch_bytes(self) -> bytes:
        """The patch as bytes."""
        patch = self._value("patch")
        if not isinstance(patch, bytes):
            raise AttributeError("changes of a session have no patch: diff() of the session returns it")
        return patch

    @property
    def patch(self) -> str:
        """The changes since a checkpoint as one patch for ``git apply`` and ``patch -p1``.

        Bytes that are not UTF-8 are surrogates. Changes of a session have none: its ``diff()`` returns it.
        """
        return self.patch_bytes.decode("utf-8", "surrogateescape")

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> HistoryChange: ...
    @overload
    def __getitem__(self, index: slice) -> list[HistoryChange]: ...
    def __getitem__(self, index: int | slice) -> HistoryChange | list[HistoryChange]:
        return self._all[index]

    def __repr__(self) -> str:
        counts = self.counts
        return f"HistoryChanges(+{counts['created']} ~{counts['modified']} -{counts['deleted']})"

    def _repr_html_(self) -> str:
        return table(("change", "path", "lines", "bytes", "runs later"), (one._row() for one in self))


class RestoreResult(Record):
    """Result of a restore or an undo; with ``dry_run``, its plan."""

    __slots__ = ()
    _shown = ("changes", "kept", "failed", "dry_run")

    dry_run = Field[bool]("Whether this is only a plan, and nothing was done.")
    ok = Field[bool](
        "Whether it is complete: nothing was kept or lost, nothing failed, and it was not interrupted.",
        lambda one: not (one.kept or one.lost or one.failed or one.interrupted),
    )
    changes = Field[list[HistoryChange]]("The changes that were made.", _changes)
    kept = Field[list[tuple[str, str]]](
        "Paths that were kept, as (path, reason): changed later, for example.", pairs("kept", "path", "reason")
    )
    lost = Field[list[tuple[str, str]]](
        "Paths that are in no snapshot and that are gone or changed, as (path, what became of it).",
        pairs("lost", "path", "text"),
    )
    failed = Field[list[tuple[str, str]]](
        "Paths that could not be restored, as (path, error).", pairs("failed", "path", "error")
    )
    merged = Field[list[str]]("Files that were merged with changes by others.", lambda one: _merged(one))
    notes = Field[list[str]]("Other information about it.")
    interrupted = Field[bool](
        "Whether it was interrupted: ``recover()`` of the session or the next call on the project completes it.",
        lambda one: bool(one._value("interrupted")),
    )
    undo_id = Field[str | None](
        "The id of this restore, which ``undo()`` reverts; None if nothing was changed, or if it is an undo in a project.",
        lambda one: one._value("undo"),
    )
    cannot_tell_conflicts = Field[bool](
        "Whether the owner's changes could not be told from others: all of them were reverted."
    )
    left_alone = Field[list[str]]("Repositories that differ and were left alone.")
    unrecorded = Field[str | None]("Reason why it is not in the audit log; None if it is.")
    session = Field[str | None]("The id of the session; None for a project.", lambda one: one._value("session_id"))
    project = Field[str | None]("The project's folder; None for a session.")
    checkpoint = Field[str | None](
        "The id of the checkpoint that was gone back to; of an undo, the one that the undone restore had gone back to. "
        "None in a plan, for a session, and if the log of restores lost it."
    )
    turns_undone = Field[list[str]](
        "Turns of agents that were undone, oldest first.", lambda one: list(one._value("turns_undone") or ())
    )
    not_covered = Field[int | None](
        "Number of paths of the project that the checkpoint does not hold and a restore does not touch; None if unknown."
    )

    def _repr_html_(self) -> str:
        rows = [(*change._cells(), "") for change in self.changes]
        for outcome, all in (("kept", self.kept), ("lost", self.lost), ("failed", self.failed)):
            rows += [(outcome, path, why) for path, why in all]
        return table(("outcome", "path", "why"), rows)


def _merged(result: RestoreResult) -> list[str]:
    # A file that does not merge is kept.
    kept = {path for path, _ in result.kept}
    return [merge["path"] for merge in result._value("merges") if merge["path"] not in kept]


class PruneReport(Record):
    """Result of removing sessions or checkpoints, or with ``dry_run`` its preview."""

    __slots__ = ()
    _shown = ("removed", "sessions", "bytes_freed", "dry_run")

    dry_run = Field[bool]("Whether nothing was changed.")
    removed = Field[list[tuple[str, list[Checkpoint]]]](
        "Projects, each with the checkpoints that were removed; empty for sessions.",
        lambda one: [
            (project["project"], [Checkpoint(checkpoint) for checkpoint in project["checkpoints"]])
            for project in one._value("removed")
            if "checkpoints" in project
        ],
    )
    sessions = Field[list[dict[str, Any]]](
        "Sessions that were removed, as ``nono rollback list --json`` has them; empty for checkpoints.",
        lambda one: [session for session in one.to_dict()["removed"] if "session_id" in session],
    )
    projects_removed = Field[list[str]](
        "Projects that were removed completely.", lambda one: list(one._value("projects_removed") or ())
    )
    legacy = Field[list[tuple[str, int]]](
        "Archives of superseded formats that were removed, as (name, bytes).", pairs("legacy", "name", "bytes")
    )
    bytes_before = Field[int]("Disk usage before: of checkpoints, or of sessions with their store.")
    bytes_after = Field[int]("Disk usage now.")
    bytes_freed = Field[int]("The difference.", lambda one: max(0, one.bytes_before - one.bytes_after))
    over_budget = Field[bool](
        "Whether the size still exceeds the limit: what is left runs, is pinned, named, or the newest of its project."
    )
    problems = Field[list[str]]("Errors for what could not be removed.")


class VerifyReport(Record):
    """Result of verifying sessions or checkpoints: everything that is stored, down to the last file."""

    __slots__ = ()
    _shown = ("good", "lost", "problems")

    good = Field[bool]("Whether everything is intact.")
    projects = Field[int | None]("Number of projects checked; None for sessions.")
    checkpoints = Field[int | None]("Number of checkpoints checked; None for sessions.")
    snapshots = Field[int | None]("Number of snapshots of the session checked; None for anything else.")
    objects = Field[int]("Number of contents read.", lambda one: _sum(one, "objects"))
    bytes = Field[int]("Number of bytes read.", lambda one: _sum(one, "bytes"))
    lost = Field[list[tuple[str, Any, list[str]]]](
        "What cannot be restored as a whole: (project, ``Checkpoint``, paths that are lost), or (id of the session, its "
        "snapshot, paths that are lost).",
        lambda one: [
            (lost["project"], Checkpoint(lost["checkpoint"]), list(lost["paths"]))
            if "project" in lost
            else (one.session, lost["snapshot"], list(lost["paths"]))
            for lost in one._value("lost") or ()
        ]
        + [lost for session in one.sessions for lost in session.lost],
    )
    problems = Field[list[str]](
        "Other problems.",
        lambda one: [*(one._value("problems") or ()), *(text for each in one.sessions for text in each.problems)],
    )
    session = Field[str | None](
        "The id of the session; None for anything else, and for a folder that cannot be read.",
        lambda one: one._value("session_id"),
    )
    sealed = Field[bool | None]("Whether the session matches the seal it was given when it ended.")
    interrupted = Field[bool | None]("Whether the session was killed and has no seal: only its own digests were checked.")
    removed = Field[bool | None]("Whether the session was removed during the check.")
    forgotten = Field[list[str]](
        "Paths that were purged from the session's snapshots: they are not missing.",
        lambda one: list(one._value("forgotten") or ()),
    )
    sessions = Field[list["VerifyReport"]](
        "Of all sessions: each of them, newest first.",
        lambda one: [VerifyReport(session) for session in one._value("sessions") or ()],
    )
    running = Field[list[str]](
        "Ids of running sessions, which are not checked.", lambda one: list(one._value("running") or ())
    )


def _sum(report: VerifyReport, name: str) -> int:
    total: int = report._value(name) or 0
    for session in report.sessions:
        total += session._value(name) or 0
    return total
