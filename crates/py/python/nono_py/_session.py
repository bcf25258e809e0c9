"""Supervised runs: ``run``, ``Session``, ``resolve``. Import from ``nono_py``."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ._history import HistoryChanges, RestoreResult
from ._nono_py import (
    Cancel,
    RollbackSession,
    SessionError,
    _ApprovalReply,
    _resolve,
    _run,
    open_session,
)
from ._reports import ApprovalRequest, SessionReport

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Unpack

    from ._nono_py import Conflicts, Progress, StrPath

Decision = Literal["once", "session", "always", "directory", "deny", "never"]
"""Answers of ``approve``, beside True (``"once"``) and False (``"deny"``).

``"once"``: this call. ``"session"`` (or ``"always"``): this object, until the run ends. ``"directory"``: its folder
(``request.folder``) and everything below it. ``"deny"``: the same question is not asked again. ``"never"``: nothing of
this object, whatever the access.
"""

Approve = Callable[[ApprovalRequest], "bool | Decision"]


class RunOptions(TypedDict, total=False):
    """The keywords of ``run`` and ``Session``: the flags of ``nono run``, with ``_`` for ``-``.

    Relative paths are relative to the current directory, ``~`` is the home folder. Times are in seconds, sizes in bytes.
    """

    allow: Sequence[StrPath]
    """Read and write these folders and everything in them."""
    read: Sequence[StrPath]
    """Read these folders and everything in them."""
    write: Sequence[StrPath]
    """Write these folders and everything in them."""
    allow_file: Sequence[StrPath]
    """Read and write these files."""
    read_file: Sequence[StrPath]
    """Read these files."""
    write_file: Sequence[StrPath]
    """Write these files."""
    allow_cwd: bool
    """Read and write the working directory."""
    deny: Sequence[StrPath]
    """Close these paths even inside a granted folder."""
    allow_unix_socket: Sequence[StrPath]
    """Connect to these unix sockets."""
    bypass_protection: Sequence[StrPath]
    """Open protected paths (keys, credentials, browser data, shell files); they need a grant, too."""
    allow_net: bool
    """Use the network."""
    block_net: bool
    """Do not use the network: the default, unless a profile opens it."""
    allow_domain: Sequence[str]
    """Reach only these hosts (``HOST``, ``*.HOST``, an address; with ``:PORT`` only there), through a filter."""
    allow_connect_port: Sequence[int]
    """Connect by TCP to these ports."""
    listen_port: Sequence[int]
    """Listen by TCP on these ports."""
    credential: Sequence[str]
    """``NAME[=SOURCE]``: insert this credential into requests to its service, and give the command a placeholder."""
    upstream_proxy: str | None
    """Reach hosts through this proxy, ``HOST:PORT``."""
    profile: StrPath | None
    """A profile's name, or its file."""
    extends: Sequence[str]
    """Build on these profiles, too."""
    no_project_profile: bool
    """Run without the project's own ``.nono/profile.json``. Otherwise what it closes is closed, and what it opens is open
    where a person agreed to exactly that, with ``nono profile trust`` for instance."""
    env: Mapping[str, str] | None
    """Variables to set."""
    pass_env: Sequence[str]
    """Names of variables to pass on."""
    env_all: bool
    """Pass all variables on, except those that inject code."""
    workdir: StrPath | None
    """The folder the command starts in."""
    rollback: bool | None
    """Snapshot everything writable before, while and after it runs. None: as the profile says."""
    rollback_exclude: Sequence[str]
    """Leave these out of the snapshots: a name, a part of a path, or a glob on names."""
    rollback_include: Sequence[str]
    """Include these in the snapshots whatever other rules say."""
    rollback_all: bool
    """Include everything: ignored files and build output, too."""
    rollback_best_effort: bool
    """Run also where not everything fits into the store; the report names what is not protected."""
    rollback_dest: StrPath | None
    """Keep the session here; must not be writable by the command."""
    snapshot_interval: float | None
    """The longest time between snapshots while something changes."""
    paranoid: bool
    """Read every file for every snapshot, whatever its time stamps say."""
    checkpoints: bool | None
    """Checkpoint the projects it may write before it starts, and when an agent's hook asks. None: as ``config.toml`` says."""
    approve: Approve | None
    """Called as ``approve(request)`` when the command wants more than it was granted; see ``Decision``.

    It runs in a thread of its own, one question at a time. Whatever is not a clear yes is a no: an exception (it is kept
    in ``report.approval_errors``, and a warning says so), an answer that means nothing, no answer in ``approve_timeout``.
    """
    approve_timeout: float | None
    """Maximum time for ``approve``; a call that takes longer is abandoned, and the next one may begin meanwhile."""
    approve_rules: Sequence[StrPath]
    """Files of rules that answer before ``approve`` does, as ``nono run --approve policy:FILE``."""
    accept_weaker: bool
    """Go on where this kernel cannot keep a guarantee of asking."""
    audit: bool
    """Keep an audit log of this run; True by default."""
    audit_integrity: bool | None
    """Seal the log at the end and enter it in the ledger; the default with ``rollback``."""
    audit_sign_key: StrPath | None
    """Sign the seal with the key in this file."""
    max_time: float | None
    """End it after this time: exit code 124, ``report.limit == "time"``."""
    max_memory: int | None
    """End it when all its processes together use this much: exit code 137."""
    max_procs: int | None
    """Maximum number of processes and threads."""
    max_file_size: int | None
    """Maximum size of a file."""
    name: str | None
    """A name for this session."""
    diagnostics: bool
    """Read its standard error, to explain failures; True by default."""
    capture_output: bool
    """Capture its output in the report, instead of passing it on to this process's own."""
    stdin: bytes | None
    """Its standard input; None: that of this process."""
    max_output: int | None
    """Maximum size of each captured output; the rest is dropped, and ``report.truncated`` says so."""
    progress: Progress | None
    """Called as ``progress(files, 0)`` while a snapshot is taken."""
    cancel: Cancel | None
    """Ends the run from another thread: TERM, a moment, KILL; the last snapshot is taken all the same."""


def run(command: Sequence[StrPath], **options: Unpack[RunOptions]) -> SessionReport:
    """Run a command in a sandbox under supervision, as ``nono run`` does, and return its report.

        report = nono.run(["make", "test"], allow=["."], rollback=True, capture_output=True)
        if not report.ok:
            print(report.explain())
            nono.open_session(report.session_id).restore()

    The keywords are listed in ``RunOptions``. Nothing is open but what programs need to start, what the profile says and
    what is granted here. A command that fails is no exception: look at ``report.exit_code``. A command that cannot be run
    is one (``FileNotFoundError``, ``PermissionError``, ``ValueError``, a ``NonoError``), and nothing is left behind then.

    Ctrl-C ends the command (TERM, a moment, KILL) and raises ``KeyboardInterrupt`` once the last snapshot is taken; what
    happened is in the exception's ``report``. Signals and their handlers stay this process's own. Where the command has
    this process's terminal (no ``capture_output``, no ``stdin``), keys typed there are the command's, Ctrl-C as well.
    ``cancel`` ends it in the same way: ``report.cancelled`` is True then, or ``Cancelled`` is raised if it was not started.
    """
    given, progress, cancel = _checked("run", options)
    report = _run(command, given, progress, cancel)
    for error in report.approval_errors:
        message = f"approve failed, so the request was refused: {type(error).__name__}: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return report


def resolve(command: Sequence[StrPath], **options: Unpack[RunOptions]) -> dict[str, Any]:
    """The policy that ``run`` would hold the command to, as ``nono run --dry-run`` shows it. Nothing is made or started."""
    given, _, _ = _checked("resolve", options)
    return _resolve(command, given)


class Session:
    """A supervised run as an object: started by ``run()``, and afterwards able to restore what it changed.

        with nono.Session(["agent"], allow=["."], rollback=True) as session:
            report = session.run()
            if not report.ok:
                session.restore()

    As a context manager: an exception in the block after the run puts everything back that the run changed, if it was
    tracked; changes by others since then are kept.
    """

    def __init__(self, command: Sequence[StrPath], **options: Unpack[RunOptions]) -> None:
        _checked("Session", options)
        self._command = command
        self._options = options
        self._report: SessionReport | None = None

    def run(self) -> SessionReport:
        """Run it to its end; once only."""
        if self._report is not None:
            raise RuntimeError("this session has run already")
        try:
            self._report = run(self._command, **self._options)
        except BaseException as error:
            self._report = getattr(error, "report", None)
            raise
        return self._report

    @property
    def report(self) -> SessionReport:
        """The report of the run; also after a ``KeyboardInterrupt``."""
        if self._report is None:
            raise SessionError("this session has not run")
        return self._report

    def resolve(self) -> dict[str, Any]:
        """The policy that the command is held to."""
        return resolve(self._command, **self._options)

    @property
    def rollback(self) -> RollbackSession:
        """The session as it is stored, where the run was tracked."""
        if self.report.changes is None:
            raise SessionError("this run was not tracked, so there is nothing to restore: run it with rollback=True")
        dest = self._options.get("rollback_dest")
        session_id = self.report.session_id
        if dest is None:
            return open_session(session_id)
        import os.path

        return open_session(os.path.join(os.path.expanduser(dest), session_id))

    def changes(self, paths: Sequence[StrPath] | None = None) -> HistoryChanges:
        """The changes of the run."""
        return self.rollback.changes(paths)

    def diff(self, paths: Sequence[StrPath] | None = None) -> bytes:
        """The changes as a patch for ``git apply``."""
        return self.rollback.diff(paths)

    def restore(
        self, paths: Sequence[StrPath] | None = None, *, conflicts: Conflicts = "keep", dry_run: bool = False
    ) -> RestoreResult:
        """Restore the state before it ran: all of it, or only ``paths``."""
        return self.rollback.restore(paths, conflicts=conflicts, dry_run=dry_run)

    def undo(self, *, dry_run: bool = False) -> RestoreResult:
        """Undo the last ``restore``."""
        return self.rollback.undo(dry_run=dry_run)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tracked = self._report is not None and self._report.snapshot_count > 0
        if kind is not None and tracked:
            self.restore()

    def __repr__(self) -> str:
        state = "not run" if self._report is None else repr(self._report)
        return f"Session({list(map(str, self._command))!r}, {state})"


_KEYWORDS = frozenset(RunOptions.__annotations__)


def _checked(
    function: str, options: RunOptions
) -> tuple[dict[str, object], Progress | None, Cancel | None]:
    for name in options:
        if name not in _KEYWORDS:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    given: dict[str, object] = {**options}
    progress, cancel = options.get("progress"), options.get("cancel")
    given.pop("progress", None)
    given.pop("cancel", None)
    return given, progress, cancel


def _ask(approve: Approve, request: ApprovalRequest, reply: _ApprovalReply) -> None:
    """Called by the native module: start ``approve`` for a request, without waiting for the answer."""

    def put() -> None:
        try:
            answer = approve(request)
        except BaseException as error:  # noqa: BLE001: whatever it is, it is no yes, and is told of in the report
            reply.fail(error)
        else:
            reply.answer(answer)

    threading.Thread(target=put, name="nono-approve", daemon=True).start()
