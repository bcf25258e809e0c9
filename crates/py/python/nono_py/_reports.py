"""What a run reports and asks for: ``SessionReport``, ``Denial``, ``ApprovalRequest``."""

from __future__ import annotations

from typing import Any, Literal

from ._history import HistoryChanges
from ._records import Field, Record, table


class ApprovalRequest(Record):
    """Request of a command for access beyond its grants.

    ``path`` is without links, and is what a yes opens; ``reason`` and ``program`` are untrusted text of the command.
    """

    __slots__ = ()

    id = Field[int]("Counts up within one run.")
    kind = Field[Literal["access", "restore", "restore_checkpoint", "open_url"]]("What is requested.")
    path = Field[str | None](
        "The requested path, resolved; of a checkpoint: its project. None if the request is about no path."
    )
    written = Field[str | None]("The path as the command wrote it, if that differs from ``path``.")
    access = Field[Literal["read", "write", "read+write"] | None]("The requested access.")
    object = Field[Literal["file", "directory", "new"] | None]("Kind of ``path``; ``new`` if it does not exist yet.")
    folder = Field[str | None]("The folder that the answer ``directory`` opens; None if that would be too much.")
    snapshot = Field[str | None]("The snapshot, or the id of the checkpoint, to be restored.")
    paths = Field[list[str]]("The paths to be restored; empty means all of them.")
    url = Field[str | None]("The web address to be opened.")
    program = Field[str]("The program that asks.")
    pid = Field[int]("The process that asks.")
    reason = Field[str | None]("The reason given by the command, if any. Untrusted text.")

    def __repr__(self) -> str:
        about = next((text for text in (self.path, self.url, self.snapshot) if text is not None), "")
        access = "" if self.access is None else f", access={self.access!r}"
        return f"ApprovalRequest({self.kind} {about!r}{access})"


class Denial(Record):
    """A denial by the sandbox, and what would open it."""

    __slots__ = ()

    kind = Field[Literal["open", "metadata", "socket", "network", "host", "other"]]("What was denied.")
    path = Field[str | None]("The path it is about, or None.")
    operation = Field[str]("Description of the denied operation.")
    reason = Field[str]("Reason of the denial.")
    hint = Field[str | None]("The keyword of ``run`` that opens exactly this, or None where none does.")
    program = Field[str | None]("The first program that was denied, if the supervisor saw it.")
    count = Field[int]("Number of times; 0 if it is known only from the command's output.")
    probe = Field[bool]("Whether it is an ordinary probe at the start of programs, which they do without.")

    def __repr__(self) -> str:
        hint = "" if self.hint is None else f"; hint: {self.hint}"
        return f"Denial({self.operation}: {self.reason}{hint})"


class SessionReport(Record):
    """Report of a run."""

    __slots__ = ()

    session_id = Field[str]("The id by which ``open_session``, ``nono rollback`` and ``nono audit`` know it.")
    exit_code = Field[int](
        "The command's own; 124 when ``max_time`` was over, 137 when it used more than ``max_memory``, 128+n when signal "
        "n ended it."
    )
    signal = Field[int | None]("The signal that ended it, or None.")
    ok = Field[bool]("Whether it ended by itself, with code 0.", lambda one: one.exit_code == 0)
    limit = Field[Literal["time", "memory", "file_size"] | None]("The limit that ended it.")
    stopped = Field[bool]("Whether ``stop_session`` or ``nono stop`` ended it.")
    cancelled = Field[bool]("Whether ``cancel``, Ctrl-C or an exception of ``progress`` ended it.")
    stdout = Field[bytes | None]("Its standard output, with ``capture_output=True``; else None.")
    stderr = Field[bytes | None]("Its standard error, with ``capture_output=True``; else None.")
    truncated = Field[bool]("Whether its output exceeded ``max_output``.")
    changes = Field[HistoryChanges | None](
        "The changes of the run, if it was tracked and the final snapshot could be taken; else None.",
        lambda one: one._value("list_changes") and one._value("list_changes")(),
    )
    coverage = Field[dict[str, Any] | None]("The coverage of the baseline, if the run was tracked.")
    made_uncovered = Field[list[dict[str, Any]]](
        "Examples of paths it created that are in no snapshot, so that a restore leaves them, with the reasons."
    )
    lost = Field[list[dict[str, Any]]](
        "Paths not in the baseline that were gone or changed at the end: no restore brings them back."
    )
    snapshot_count = Field[int]("Number of snapshots taken.")
    denials = Field[list[Denial]]("Denials of the run.", lambda one: list(map(Denial, one._value("denials"))))
    expansions = Field[list[dict[str, Any]]]("Grants that were added while it ran.")
    asked = Field[int]("Number of approval requests.")
    approval_errors = Field[list[BaseException]](
        "Exceptions and invalid answers of ``approve``; these requests were denied.",
        lambda one: list(one._value("approval_errors")),
    )
    network = Field[dict[str, Any] | None]("The network events, if the network was filtered.")
    audit_dir = Field[str | None]("The folder of its audit log, or None.")
    audit = Field[dict[str, Any] | None]("The record of its audit log, as in its ``session.json``.")
    checkpoints = Field[dict[str, Any] | None]("The checkpoints that were taken, and what is not protected.")
    policy = Field[dict[str, Any]]("The policy it ran under.")
    warnings = Field[list[str]]("Problems that did not end the run.")

    def explain(self) -> str:
        """A readable explanation of a failure, as ``nono run`` prints it."""
        return str(self._value("explained"))

    def to_dict(self) -> dict[str, Any]:
        """All values as a plain dict; fields that ``--diagnostics-json`` has too have the same names."""
        return {
            **super().to_dict(),
            "stdout": self.stdout,
            "stderr": self.stderr,
            "changes": None if self.changes is None else self.changes.to_dict(),
            "approval_errors": list(map(str, self.approval_errors)),
        }

    def __repr__(self) -> str:
        limit = "" if self.limit is None else f", limit={self.limit!r}"
        changed = self._value("changed")
        changes = "" if changed is None else f", changes={changed}"
        return f"SessionReport(session_id={self.session_id!r}, exit_code={self.exit_code}{limit}{changes})"

    def _repr_html_(self) -> str:
        rows = [("session", self.session_id), ("exit code", str(self.exit_code))]
        if self.limit is not None:
            rows.append(("limit", self.limit))
        for denial in self.denials:
            if not denial.probe:
                hint = "" if denial.hint is None else f" — {denial.hint}"
                rows.append(("denied", f"{denial.operation}: {denial.reason}{hint}"))
        rows += [("warning", warning) for warning in self.warnings]
        return table(("", "what"), rows) + ("" if self.changes is None else self.changes._repr_html_())
