"""The log of one session: read it, follow it, verify it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from json import JSONDecodeError
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypedDict

from . import hashing, text
from .hashing import VerificationError, digest_of

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
    written, native = folder / hashing.AUDIT_EVENTS_FILENAME, folder / _NATIVE
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
    summary = _Stored(stored if stored is not None else _stored_summary(path.parent))
    checked = _Checked()
    try:
        _check_all(path, checked)
    except (JSONDecodeError, OSError) as error:
        if isinstance(error, (FileNotFoundError, PermissionError)):
            raise
        raise VerificationError(f"{path}: {error}") from None
    summary.compare(checked)
    return {
        "hash_algorithm": hashing.HASH_ALGORITHM_ALPHA,
        "merkle_scheme": hashing.MERKLE_SCHEME_ALPHA,
        "event_count": checked.tree.leaves,
        "computed_chain_head": _hex(checked.head),
        "computed_merkle_root": _hex(checked.tree.root()),
        "stored_event_count": summary.event_count,
        "stored_chain_head": _hex(summary.chain_head),
        "stored_merkle_root": _hex(summary.merkle_root),
        "event_count_matches": summary.event_count in (None, checked.tree.leaves),
        "records_verified": True,
        "missing_canonical_event_json": checked.missing,
    }


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()


def _check_all(path: Path, checked: _Checked) -> None:
    other = path.parent / _NATIVE
    if path != other and os.path.lexists(other):
        # Two programs would each verify another one.
        raise VerificationError(f"{path.parent}: has two logs, {path.name} and {_NATIVE}")
    with text.open_regular(path) as file:
        for number, line in text.lines(file):
            try:
                checked.add(text.parse_object(line))
            except (JSONDecodeError, VerificationError) as error:
                raise VerificationError(f"{path}: line {number}: {error}") from None


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


class _Checked:
    """State of the chain: digests over all records so far."""

    def __init__(self) -> None:
        self.head: bytes | None = None
        self.tree = hashing.Merkle()
        self.missing = False

    def add(self, record: dict[str, Any]) -> None:
        sequence = record.get("sequence")
        if type(sequence) is not int or sequence != self.tree.leaves:
            raise VerificationError(f"sequence is {sequence!r:.40}, and should be {self.tree.leaves}")
        if hashing.before(record) != self.head:
            raise VerificationError("prev_chain is not the chain hash of the record before it")
        leaf = digest_of(record.get("leaf_hash"), "leaf hash")
        if leaf not in self._leaves(record):
            raise VerificationError("leaf hash mismatch: the event is not the one that was hashed")
        chain = digest_of(record.get("chain_hash"), "chain hash")
        if chain != hashing.chain(self.head, leaf):
            raise VerificationError("chain hash mismatch")
        self.head = chain
        self.tree.push(leaf)

    def _leaves(self, record: dict[str, Any]) -> list[bytes]:
        """Possible leaf hashes: of the hashed text or, without it, of the event as each writer serialises it."""
        event, event_json = record.get("event"), record.get("event_json")
        if not isinstance(event, dict):
            raise VerificationError("the record has no event")
        try:
            if event_json is None:
                self.missing = True
                return [hashing.leaf(text.compact(event, ascii_only=only)) for only in (True, False)]
            if not isinstance(event_json, str):
                raise VerificationError("event_json is not a string")
            data = event_json.encode("utf-8")
            if not text.same(text.parse(data), event):
                raise VerificationError("event is not what event_json says")
        except JSONDecodeError as error:
            raise VerificationError(f"event_json: {error}") from None
        except RecursionError:
            raise VerificationError("the event is nested too deep") from None
        except UnicodeEncodeError:
            raise VerificationError("the event holds half a character (a lone surrogate)") from None
        return [hashing.leaf(data)]


class _Stored:
    """Stored summary of the whole log. Missing values are None."""

    def __init__(self, summary: Mapping[str, Any] | None) -> None:
        self.given = summary is not None
        given: Mapping[str, Any] = {} if summary is None else summary
        if not isinstance(given, Mapping):
            raise VerificationError("the stored summary is not a mapping")
        algorithm = given.get("hash_algorithm", hashing.HASH_ALGORITHM_ALPHA)
        if algorithm != hashing.HASH_ALGORITHM_ALPHA:
            raise VerificationError(f"the stored hash algorithm is {algorithm!r:.40}")
        count, head, root = (given.get(key) for key in ("event_count", "chain_head", "merkle_root"))
        if count is not None and type(count) is not int:
            raise VerificationError("the stored event count is not a number")
        self.event_count: int | None = count
        self.chain_head = None if head is None else digest_of(head, "the stored chain head")
        self.merkle_root = None if root is None else digest_of(root, "the stored Merkle root")

    def compare(self, checked: _Checked) -> None:
        if self.given and checked.missing:
            raise VerificationError("records without event_json, but a stored summary: they cannot be compared")
        if self.chain_head is not None and self.chain_head != checked.head:
            raise VerificationError("the stored chain head is not the one of the log")
        if self.merkle_root is not None and self.merkle_root != checked.tree.root():
            raise VerificationError("the stored Merkle root is not the one of the log")
