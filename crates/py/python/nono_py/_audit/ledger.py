"""The ledger of a user's sessions, and the digest of a session in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypedDict, cast

from .. import _nono_py as native
from .._nono_py import VerificationError
from . import HASH_ALGORITHM_ALPHA, text


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
    native._check_session_id(session_id)


def compute_session_digest(metadata: Metadata) -> str:
    """The digest over the protected fields of a session's record, hexadecimal.

    Takes ``SessionMetadata``, or its JSON as a mapping; all 13 keys have to be there. Other keys are not covered.
    """
    return native._session_digest(_json(metadata))[1]


def build_ledger_record(
    metadata: Metadata, *, sequence: int, previous_chain: str | bytes | None
) -> LedgerRecordDict:
    """The line of the ledger for a session, after the one whose chain hash is ``previous_chain`` (None: the first)."""
    return cast(LedgerRecordDict, native._ledger_record(_json(metadata), sequence, previous_chain))


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
    session_id, session_digest = native._session_digest(_json(metadata))
    validate_ledger_session_id(session_id)
    entries = native._LedgerCheck(session_id)
    found_ledger = True
    try:
        text.check_lines(Path(os.path.expanduser(path)), entries.add)
    except FileNotFoundError:
        found_ledger = False
    return {
        "hash_algorithm": HASH_ALGORITHM_ALPHA,
        "entry_count": entries.count,
        "session_digest": session_digest,
        "session_found": entries.found is not None,
        "session_digest_matches": entries.found == session_digest,
        "ledger_chain_verified": found_ledger,
        "ledger_head": entries.head,
    }


def _json(metadata: Metadata) -> str:
    try:
        if isinstance(metadata, Mapping):
            return json.dumps(_record(metadata), allow_nan=False, default=_plain)
        to_json = getattr(metadata, "to_json", None)
        written = to_json() if callable(to_json) else None
        if isinstance(written, str):
            return written.encode("utf-8").decode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        # NaN, lone surrogates, objects that are not JSON.
        raise VerificationError(f"cannot serialise to JSON: {error}") from None
    raise TypeError("metadata has to be a mapping, or have to_json() that gives a str")


def _record(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The record as ``nono run`` writes it: paths that are no text by their bytes, and its name of ``oauth2``."""
    record = dict(metadata)
    if isinstance(paths := record.get("tracked_paths"), (list, tuple)):
        record["tracked_paths"] = [_path(path) for path in paths]
    if isinstance(identity := record.get("executable_identity"), Mapping) and "resolved_path" in identity:
        record["executable_identity"] = {**identity, "resolved_path": _path(identity["resolved_path"])}
    if isinstance(events := record.get("network_events"), (list, tuple)):
        record["network_events"] = [_network_event(event) for event in events]
    return record


def _path(path: object) -> object:
    return {"bytes": list(os.fsencode(path))} if isinstance(path, (str, os.PathLike)) else path


def _network_event(event: object) -> object:
    if isinstance(event, Mapping) and event.get("injection_mode") == "oauth2":
        return {**event, "injection_mode": "o_auth2"}
    return event


def _plain(value: object) -> object:
    """A digest as text, a mapping as a dict."""
    to_hex = getattr(value, "hex", None)
    if callable(to_hex):
        return to_hex()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
