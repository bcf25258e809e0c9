"""Digests, each with a domain of its own, and the Merkle tree over all events.

The scheme is the one of the native log (``alpha``): SHA-256, a domain in front of what is hashed, an odd node at the
end of a level goes up as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

AUDIT_EVENTS_FILENAME = "audit-events.ndjson"
AUDIT_LEDGER_FILENAME = "ledger.ndjson"
HASH_ALGORITHM_ALPHA = "sha256"
MERKLE_SCHEME_ALPHA = "alpha"

EVENT_DOMAIN_ALPHA = b"nono.audit.event.alpha\n"
CHAIN_DOMAIN_ALPHA = b"nono.audit.chain.alpha\n"
MERKLE_DOMAIN_ALPHA = b"nono.audit.merkle.alpha\n"
SESSION_DIGEST_DOMAIN_ALPHA = b"nono.audit.session-digest.alpha\n"
LEDGER_CHAIN_DOMAIN_ALPHA = b"nono.audit.ledger.chain.alpha\n"

# Chain digest before the first record.
_ZERO = bytes(32)
_HEX = re.compile(r"[0-9a-fA-F]{64}")


class VerificationError(Exception):
    """A log, a ledger or a record is not what was written."""


def digest_of(value: object, name: str) -> bytes:
    """The 32 bytes of a digest given as 64 hexadecimal digits or as bytes."""
    if isinstance(value, str) and _HEX.fullmatch(value):
        return bytes.fromhex(value)
    if isinstance(value, bytes) and len(value) == 32:
        return value
    raise VerificationError(f"{name} is not a SHA-256 digest (64 hexadecimal digits)")


def before(line: Mapping[str, Any]) -> bytes | None:
    """The chain hash that a line names as its predecessor; None for the first one, which has to say so explicitly."""
    if "prev_chain" not in line:
        raise VerificationError("prev_chain is missing")
    chain_hash = line["prev_chain"]
    return None if chain_hash is None else digest_of(chain_hash, "prev_chain")


def leaf(event_json: bytes) -> bytes:
    """Digest of the exact bytes of one event."""
    return sha256(EVENT_DOMAIN_ALPHA + event_json).digest()


def chain(before: bytes | None, leaf_hash: bytes) -> bytes:
    """Digest of the chain so far and the next leaf."""
    return sha256(CHAIN_DOMAIN_ALPHA + (before or _ZERO) + leaf_hash).digest()


def node(left: bytes, right: bytes) -> bytes:
    """Digest of two nodes of the tree."""
    return sha256(MERKLE_DOMAIN_ALPHA + left + right).digest()


def session_digest(payload: bytes) -> bytes:
    """Digest of the protected fields of a session's record."""
    return sha256(SESSION_DIGEST_DOMAIN_ALPHA + payload).digest()


def ledger_chain(before: bytes | None, payload: bytes) -> bytes:
    """Digest of the ledger so far and its next line."""
    return sha256(LEDGER_CHAIN_DOMAIN_ALPHA + (before or _ZERO) + payload).digest()


class Merkle:
    """A tree that grows leaf by leaf and keeps one node for each bit of the number of leaves."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.leaves = 0

    def push(self, leaf_hash: bytes) -> None:
        """Add the next leaf."""
        grown, bits = leaf_hash, self.leaves
        while bits & 1:
            grown = node(self._parts.pop(), grown)
            bits >>= 1
        self._parts.append(grown)
        self.leaves += 1

    def root(self) -> bytes | None:
        """The root; None for an empty tree."""
        if not self._parts:
            return None
        root = self._parts[-1]
        for left in reversed(self._parts[:-1]):
            root = node(left, root)
        return root
