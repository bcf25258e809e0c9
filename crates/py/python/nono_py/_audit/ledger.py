"""The ledger of a user's sessions, and the digest of a session in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Protocol, TypedDict

from . import hashing, text
from .hashing import VerificationError, digest_of

_HEX_BYTES = re.compile(r"([0-9a-fA-F]{2})*")
_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

# Fields that the digest covers, in order.
_PROTECTED = (
    "session_id",
    "started",
    "ended",
    "command",
    "executable_identity",
    "tracked_paths",
    "snapshot_count",
    "exit_code",
    "merkle_roots",
    "network_events",
    "audit_event_count",
    "audit_integrity",
    "audit_attestation",
)
_INTEGRITY = ("hash_algorithm", "event_count", "chain_head", "merkle_root")
_ATTESTATION = ("predicate_type", "key_id", "public_key", "bundle_filename")
_EVENT_HEAD = ("timestamp_unix_ms", "mode", "decision")
_EVENT_OPTIONAL = (
    "route_id",
    "auth_mechanism",
    "auth_outcome",
    "managed_credential_active",
    "injection_mode",
    "denial_category",
)
_EVENT_TAIL = ("port", "method", "path", "status", "reason")


class LedgerRecordDict(TypedDict):
    """One line of the ledger."""

    sequence: int
    prev_chain: str | None
    session_id: str
    session_digest: str
    completed_at: str
    chain_hash: str


class LedgerVerificationResultDict(TypedDict):
    """Result of ``verify_session_in_ledger``."""

    hash_algorithm: str
    entry_count: int
    session_digest: str
    session_found: bool
    session_digest_matches: bool
    ledger_chain_verified: bool
    ledger_head: str | None


class HasJson(Protocol):
    """Protocol of ``nono_py.SessionMetadata``."""

    def to_json(self) -> str:
        """The metadata as JSON."""
        ...


Metadata = Mapping[str, Any] | HasJson


def validate_ledger_session_id(session_id: str) -> None:
    """VerificationError unless it is 1 to 64 ASCII letters, digits, ``-`` and ``_``."""
    if not isinstance(session_id, str) or not _SESSION_ID.fullmatch(session_id):
        raise VerificationError(f"invalid audit session id: {session_id!r:.100}")


def compute_session_digest(metadata: Metadata) -> str:
    """The digest over the protected fields of a session's record, hexadecimal.

    Takes ``SessionMetadata``, or its JSON as a mapping; all 13 keys have to be there. Other keys are not covered.
    """
    return _digest(_as_mapping(metadata))


def build_ledger_record(
    metadata: Metadata, *, sequence: int, previous_chain: str | bytes | None
) -> LedgerRecordDict:
    """The line of the ledger for a session, after the one whose chain hash is ``previous_chain`` (None: the first)."""
    session = _as_mapping(metadata)
    session_digest = _digest(session)
    validate_ledger_session_id(session["session_id"])
    if type(sequence) is not int or not 0 <= sequence < 1 << 64:
        raise VerificationError(f"sequence {sequence!r:.40} is not a number of a line")
    before = None if previous_chain is None else digest_of(previous_chain, "previous chain")
    completed_at = session["ended"] or session["started"]
    payload = _line_payload(sequence, session["session_id"], session_digest, completed_at)
    return {
        "sequence": sequence,
        "prev_chain": None if before is None else before.hex(),
        "session_id": session["session_id"],
        "session_digest": session_digest,
        "completed_at": completed_at,
        "chain_hash": hashing.ledger_chain(before, payload).hex(),
    }


def iter_ledger(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The lines of a ledger, one after another, unverified. Blank lines are skipped.

    FileNotFoundError without a ledger; ``json.JSONDecodeError`` at a line that is no JSON object.
    """
    yield from text.objects(Path(os.path.expanduser(path)))


def verify_session_in_ledger(path: str | os.PathLike[str], metadata: Metadata) -> LedgerVerificationResultDict:
    """Whether the ledger is unbroken, and has this session as it is now. The last line of a session counts.

    VerificationError, with the number of the line, if the ledger is not what was written. Without a ledger, nothing is
    found. A ledger that was cut at the end of a line is unbroken: keep its head elsewhere to see that.
    """
    session = _as_mapping(metadata)
    session_digest = _digest(session)
    validate_ledger_session_id(session["session_id"])
    where = Path(os.path.expanduser(path))
    entries = _Entries(session["session_id"])
    found_ledger = True
    try:
        _check_all(where, entries)
    except FileNotFoundError:
        found_ledger = False
    except PermissionError:
        raise
    except (JSONDecodeError, OSError) as error:
        raise VerificationError(f"{where}: {error}") from None
    last = entries.last_digest
    return {
        "hash_algorithm": hashing.HASH_ALGORITHM_ALPHA,
        "entry_count": entries.count,
        "session_digest": session_digest,
        "session_found": last is not None,
        "session_digest_matches": last == bytes.fromhex(session_digest),
        "ledger_chain_verified": found_ledger,
        "ledger_head": None if entries.head is None else entries.head.hex(),
    }


def _check_all(path: Path, entries: _Entries) -> None:
    with text.open_regular(path) as file:
        for number, line in text.lines(file):
            try:
                entries.add(text.parse_object(line))
            except (JSONDecodeError, VerificationError) as error:
                raise VerificationError(f"{path}: line {number}: {error}") from None


class _Entries:
    """All lines so far, and the last one of one session."""

    def __init__(self, session_id: str) -> None:
        self._wanted = session_id
        self.count = 0
        self.head: bytes | None = None
        self.last_digest: bytes | None = None

    def add(self, entry: dict[str, Any]) -> None:
        sequence = entry.get("sequence")
        if type(sequence) is not int or sequence != self.count:
            raise VerificationError(f"sequence is {sequence!r:.40}, and should be {self.count}")
        if hashing.before(entry) != self.head:
            raise VerificationError("prev_chain is not the chain hash of the line before it")
        session_id, completed_at = entry.get("session_id"), entry.get("completed_at")
        if not isinstance(session_id, str) or not isinstance(completed_at, str):
            raise VerificationError("session_id and completed_at have to be strings")
        validate_ledger_session_id(session_id)
        session_digest = digest_of(entry.get("session_digest"), "session digest")
        chain = digest_of(entry.get("chain_hash"), "chain hash")
        payload = _line_payload(sequence, session_id, entry["session_digest"], completed_at)
        if chain != hashing.ledger_chain(self.head, payload):
            raise VerificationError("chain hash mismatch")
        self.head = chain
        self.count += 1
        if session_id == self._wanted:
            self.last_digest = session_digest


def _line_payload(sequence: int, session_id: str, session_digest: str, completed_at: str) -> bytes:
    return _canonical(
        {
            "sequence": sequence,
            "session_id": session_id,
            "session_digest": session_digest,
            "completed_at": completed_at,
        }
    )


def _canonical(value: object) -> bytes:
    try:
        return text.compact(value)
    except (TypeError, ValueError, RecursionError) as error:
        # NaN, lone surrogates, objects that are not JSON.
        raise VerificationError(f"cannot serialise to JSON: {error}") from None


def _as_mapping(metadata: Metadata) -> Mapping[str, Any]:
    if isinstance(metadata, Mapping):
        return metadata
    to_json = getattr(metadata, "to_json", None)
    if not callable(to_json):
        raise TypeError("metadata has to be a mapping, or have to_json()")
    written = to_json()
    if not isinstance(written, str):
        raise TypeError("to_json() has to give a str")
    try:
        return text.parse_object(written.encode("utf-8", "surrogatepass"))
    except JSONDecodeError as error:
        raise VerificationError(f"to_json() gives no JSON object: {error}") from None


def _digest(session: Mapping[str, Any]) -> str:
    missing = [key for key in _PROTECTED if key not in session]
    if missing:
        raise VerificationError(f"missing protected digest fields: {', '.join(missing)}")
    if not isinstance(session["session_id"], str) or not isinstance(session["started"], str):
        raise VerificationError("session_id and started have to be strings")
    if session["ended"] is not None and not isinstance(session["ended"], str):
        raise VerificationError("ended has to be a string or null")
    payload = {key: session[key] for key in _PROTECTED}
    payload["command"] = _listed(session, "command")
    payload["tracked_paths"] = [_path_bytes(path) for path in _listed(session, "tracked_paths")]
    payload["executable_identity"] = _executable(session["executable_identity"])
    payload["merkle_roots"] = [_hash_text(root) for root in _listed(session, "merkle_roots")]
    payload["network_events"] = [_network_event(event) for event in _listed(session, "network_events")]
    payload["audit_integrity"] = _fields(session["audit_integrity"], "audit_integrity", _INTEGRITY)
    payload["audit_attestation"] = _fields(session["audit_attestation"], "audit_attestation", _ATTESTATION)
    return hashing.session_digest(_canonical(payload)).hex()


def _listed(session: Mapping[str, Any], key: str) -> list[Any]:
    value = session[key]
    if not isinstance(value, (list, tuple)):
        raise VerificationError(f"{key} is not a list")
    return list(value)


def _path_bytes(path: object) -> list[int]:
    """A path as the numbers of its bytes: text, a ``Path``, or as JSON has names that are no text."""
    if isinstance(path, Mapping):
        return _raw_bytes(path)
    if not isinstance(path, (str, os.PathLike)):
        raise VerificationError("a path is not a string")
    try:
        return list(os.fspath(path).encode("utf-8", "surrogateescape"))
    except (UnicodeEncodeError, AttributeError):
        raise VerificationError("a path is not text") from None


def _raw_bytes(path: Mapping[object, Any]) -> list[int]:
    """``{"bytes": [47, 255]}`` in the records of runs, ``{"hex": "2fff"}`` in those of snapshots."""
    if set(path) == {"bytes"} and isinstance(path["bytes"], (list, tuple)):
        if all(type(byte) is int and 0 <= byte <= 255 for byte in path["bytes"]):
            return list(path["bytes"])
    elif set(path) == {"hex"} and isinstance(path["hex"], str) and _HEX_BYTES.fullmatch(path["hex"]):
        return list(bytes.fromhex(path["hex"]))
    raise VerificationError("a path is not made of bytes")


def _executable(identity: object) -> dict[str, Any] | None:
    fields = _fields(identity, "executable_identity", ("resolved_path", "sha256"))
    if fields is not None:
        fields["resolved_path"] = _path_bytes(fields["resolved_path"])
    return fields


def _fields(value: object, name: str, keys: tuple[str, ...]) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise VerificationError(f"{name} is not an object")
    missing = [key for key in keys if key not in value]
    if missing:
        raise VerificationError(f"{name} lacks {', '.join(missing)}")
    return {key: _hash_text(value[key]) for key in keys}


def _hash_text(value: object) -> object:
    """A digest as text; other values as they are."""
    to_hex = None if isinstance(value, (str, int, float)) else getattr(value, "hex", None)
    return to_hex() if callable(to_hex) else value


def _network_event(event: object) -> dict[str, Any]:
    if not isinstance(event, Mapping):
        raise VerificationError("a network event is not an object")
    missing = [key for key in (*_EVENT_HEAD, "target") if key not in event]
    if missing:
        raise VerificationError(f"a network event lacks {', '.join(missing)}")
    ordered = {key: event[key] for key in _EVENT_HEAD}
    ordered.update({key: event[key] for key in _EVENT_OPTIONAL if event.get(key) is not None})
    if ordered.get("injection_mode") == "oauth2":
        # Its name in records; `SessionMetadata.network_events` has the other one.
        ordered["injection_mode"] = "o_auth2"
    ordered["target"] = event["target"]
    ordered.update({key: event.get(key) for key in _EVENT_TAIL})
    return ordered
