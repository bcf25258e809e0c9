"""Writing a log: each record is tied to all before it."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from typing import IO, Any

from .. import _nono_py as native
from . import events, text


class AlphaRecorder:
    """Makes the records of one log, in order. Safe to use from several threads; it does not go on with an old file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sequence = 0
        self._head: str | None = None

    @property
    def sequence(self) -> int:
        """The number of the next record."""
        return self._sequence

    @property
    def chain_head(self) -> str | None:
        """The chain hash of the last record; None before the first."""
        return self._head

    def record(self, event: Mapping[str, Any] | events._Payload) -> dict[str, Any]:
        """The record of an event, which is a dict (see the builders) or a model; the next one follows it.

        ``pydantic.ValidationError`` if it is no event, ValueError if it is too long for a line.
        """
        with self._lock:
            record, head, _ = self._next(event)
            self._advance(head)
            return record

    def write(self, fh: IO[Any], event: Mapping[str, Any] | events._Payload) -> dict[str, Any]:
        """Make the record of an event, append its line to ``fh``, a text or binary file, and flush it.

        If that fails, the record was not made: the same number is free again.
        """
        with self._lock:
            record, head, line = self._next(event)
            _write(fh, line)
            self._advance(head)
            return record

    def _next(self, event: Mapping[str, Any] | events._Payload) -> tuple[dict[str, Any], str, bytes]:
        wire = events.event_wire(event)
        event_json = text.compact(wire)
        leaf, head = native._audit_link(event_json, self._head)
        record = {
            "sequence": self._sequence,
            "prev_chain": self._head,
            "leaf_hash": leaf,
            "chain_hash": head,
            "event_json": event_json.decode("ascii"),
            "event": wire,
        }
        line = text.compact(record) + b"\n"
        if len(line) > text.MAX_BYTES:
            raise ValueError(f"the event is too long: its line would have {len(line)} bytes")
        return record, head, line

    def _advance(self, head: str) -> None:
        self._head = head
        self._sequence += 1


def _write(fh: IO[Any], line: bytes) -> None:
    if isinstance(fh, (io.RawIOBase, io.BufferedIOBase)) or "b" in str(getattr(fh, "mode", "")):
        rest = memoryview(line)
        while rest:
            # Only a file without a buffer writes less than it is given.
            rest = rest[fh.write(rest) or len(rest) :]
    else:
        fh.write(line.decode("ascii"))
    fh.flush()
