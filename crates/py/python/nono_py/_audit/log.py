"""The log of one session: read it, follow it, verify it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from json import JSONDecodeError
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypedDict

from .. import _nono_py as native
from .._nono_py import VerificationError
from . import AUDIT_EVENTS_FILENAME, HASH_ALGORITHM_ALPHA, MERKLE_SCHEME_ALPHA, text

_CHUNK = 1 << 16
# As `nono run` calls it.
_NATIVE = "events.ndjson"


class AuditVerificationResultDict(TypedDict):
    """Result of ``verify_log``."""

    hash_algorithm: str
    merkle_scheme: str
    event_count: int
    computed_chain_head: str | None
    computed_merkle_root: str | None
    stored_event_count: int | None
    stored_chain_head: str | None
    stored_merkle_root: str | None
    event_count_matches: bool
    records_verified: bool
    missing_canonical_event_json: bool


class StopEvent(Protocol):
    """The part of ``threading.Event`` that ``tail_session`` needs."""

    def is_set(self) -> bool:
        """Whether to stop."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it, but not longer than ``timeout`` seconds."""
        ...


def log_path(session_dir: str | os.PathLike[str]) -> Path:
    """The log in a session's folder: the file of this module's recorder, else the one of ``nono run``."""
    folder = Path(os.path.expanduser(session_dir))
    written, native = folder / AUDIT_EVENTS_FILENAME, folder / _NATIVE
    return native if not os.path.lexists(written) and os.path.lexists(native) else written


def iter_session(session_dir: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of a session, one after another, unverified. Blank lines are skipped.

    FileNotFoundError without a log; ``json.JSONDecodeError`` at a line that is no JSON object.
    """
    yield from text.objects(log_path(session_dir))


def tail_session(
    session_dir: str | os.PathLike[str],
    *,
    poll_interval_s: float = 0.1,
    stop_event: StopEvent | None = None,
) -> Iterator[dict[str, Any]]:
    """The records of a session, and then those that are still written, unverified, until ``stop_event`` is set.

    Waits for the log if it is not there yet. A line is given when it is complete. When another file takes the place of
    the log, or the log becomes shorter, it is read from its beginning.
    """
    if not poll_interval_s >= 0:
        raise ValueError("poll_interval_s must be non-negative")
    file: BinaryIO | None = None
    pending = b""
    try:
        while stop_event is None or not stop_event.is_set():
            path = log_path(session_dir)
            if file is None:
                file = _open_if_there(path)
            chunk = file.read(_CHUNK) if file is not None else b""
            if chunk:
                *whole, pending = (pending + chunk).split(b"\n")
                for line in whole:
                    if stop_event is not None and stop_event.is_set():
                        return
                    if line.strip():
                        yield text.parse_object(line)
                if len(pending) > text.MAX_BYTES:
                    raise JSONDecodeError(f"a line is longer than {text.MAX_BYTES} bytes", "", 0)
                continue
            if file is not None and _replaced(file, path):
                file.close()
                file, pending = None, b""
                continue
            _pause(poll_interval_s, stop_event)
    finally:
        if file is not None:
            file.close()


def _open_if_there(path: Path) -> BinaryIO | None:
    try:
        return text.open_regular(path)
    except FileNotFoundError:
        return None


def _replaced(file: BinaryIO, path: Path) -> bool:
    ours = os.fstat(file.fileno())
    if ours.st_size < file.tell():
        return True
    try:
        there = os.stat(path)
    except FileNotFoundError:
        # Perhaps being renamed. Bytes still written to it are read; a new file is found later.
        return False
    return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino)


def _pause(seconds: float, stop_event: StopEvent | None) -> None:
    if stop_event is None:
        time.sleep(seconds)
    else:
        stop_event.wait(seconds)


def verify_log(
    session_dir: str | os.PathLike[str], *, stored: Mapping[str, Any] | None = None
) -> AuditVerificationResultDict:
    """Whether the log of a session is what was written: each record against itself and all before it.

    The end of the log is known only from a summary: ``stored`` (``event_count``, ``chain_head``, ``merkle_root``), or
    ``audit_integrity`` in the session's ``session.json``. Without one, a log cut at the end of a line still verifies,
    and the ``stored_*`` keys are None. Logs of ``nono run`` verify as well; ``nono audit verify`` also checks what
    only those have: the seal, its signature, and every word of ``session.json``.

    VerificationError if not; FileNotFoundError without a log. Another number of events than stored is no error here:
    look at ``event_count_matches``.
    """
    path = log_path(session_dir)
    summary = stored if stored is not None else _stored_summary(path.parent)
    count, head, root = _summary_values({} if summary is None else summary)
    other = path.parent / _NATIVE
    if path != other and os.path.lexists(other):
        # Two programs would each verify another one.
        raise VerificationError(f"{path.parent}: has two logs, {path.name} and {_NATIVE}")
    checked = native._LogCheck()
    text.check_lines(path, checked.add)
    if summary is not None and checked.missing:
        raise VerificationError("records without event_json, but a stored summary: they cannot be compared")
    if head is not None and head != checked.head:
        raise VerificationError("the stored chain head is not the one of the log")
    if root is not None and root != checked.root:
        raise VerificationError("the stored Merkle root is not the one of the log")
    return {
        "hash_algorithm": HASH_ALGORITHM_ALPHA,
        "merkle_scheme": MERKLE_SCHEME_ALPHA,
        "event_count": checked.count,
        "computed_chain_head": checked.head,
        "computed_merkle_root": checked.root,
        "stored_event_count": count,
        "stored_chain_head": head,
        "stored_merkle_root": root,
        "event_count_matches": count in (None, checked.count),
        "records_verified": True,
        "missing_canonical_event_json": checked.missing,
    }


def _stored_summary(folder: Path) -> Mapping[str, Any] | None:
    path = folder / "session.json"
    try:
        with text.open_regular(path) as file:
            data = file.read(text.MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except PermissionError:
        raise
    except OSError as error:
        raise VerificationError(f"{path}: {error.strerror}") from None
    if len(data) > text.MAX_BYTES:
        raise VerificationError(f"{path}: longer than {text.MAX_BYTES} bytes")
    try:
        session = text.parse(data)
    except text.Ambiguous as error:
        raise VerificationError(f"{path}: {error}") from None
    except JSONDecodeError:
        # Not a summary of nono; only the log can be verified, and the result says so.
        return None
    if not isinstance(session, dict):
        raise VerificationError(f"{path}: not an object")
    integrity = session.get("audit_integrity")
    if integrity is not None and not isinstance(integrity, dict):
        raise VerificationError(f"{path}: audit_integrity is not an object")
    return integrity


def _summary_values(summary: Mapping[str, Any]) -> tuple[int | None, str | None, str | None]:
    """The number of events, the chain head and the Merkle root of a summary; None where it does not say."""
    if not isinstance(summary, Mapping):
        raise VerificationError("the stored summary is not a mapping")
    algorithm = summary.get("hash_algorithm", HASH_ALGORITHM_ALPHA)
    if algorithm != HASH_ALGORITHM_ALPHA:
        raise VerificationError(f"the stored hash algorithm is {algorithm!r:.40}")
    count, head, root = (summary.get(key) for key in ("event_count", "chain_head", "merkle_root"))
    if count is not None and type(count) is not int:
        raise VerificationError("the stored event count is not a number")
    return (
        count,
        native._digest_text(head, "the stored chain head"),
        native._digest_text(root, "the stored Merkle root"),
    )
