"""Proofs that one event is in a log, without giving the others away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from . import hashing
from .hashing import VerificationError, digest_of

# More leaves than any log has; without a limit, a made-up count costs minutes.
_MAX_LEAVES = 1 << 64


class AuditProofNodeDict(TypedDict):
    """A sibling node on the path to the root, and its side."""

    direction: Literal["left", "right"]
    hash: str


class AuditInclusionProofDict(TypedDict):
    """The path from one leaf to the root."""

    leaf_index: int
    leaf_count: int
    leaf_hash: str
    merkle_root: str
    siblings: list[AuditProofNodeDict]


def build_inclusion_proof(leaf_hashes: Sequence[str | bytes], leaf_index: int) -> AuditInclusionProofDict:
    """Prove that the leaf at ``leaf_index`` is one of ``leaf_hashes`` (hexadecimal or bytes), in their order.

    VerificationError for an empty list, an index outside of it, or what is no digest.
    """
    try:
        level = [digest_of(leaf, f"leaf {at}") for at, leaf in enumerate(leaf_hashes)]
    except TypeError:
        raise VerificationError("the leaf hashes are not a list") from None
    if not level:
        raise VerificationError("no leaf hashes")
    if type(leaf_index) is not int or not 0 <= leaf_index < len(level):
        raise VerificationError(f"leaf index {leaf_index!r:.40} is not one of {len(level)} leaves")
    count, leaf = len(level), level[leaf_index]
    siblings: list[AuditProofNodeDict] = []
    at = leaf_index
    while len(level) > 1:
        if at ^ 1 < len(level):
            siblings.append({"direction": "left" if at & 1 else "right", "hash": level[at ^ 1].hex()})
        promoted = level[len(level) & ~1 :]
        level = [hashing.node(left, right) for left, right in zip(level[::2], level[1::2])] + promoted
        at //= 2
    return {
        "leaf_index": leaf_index,
        "leaf_count": count,
        "leaf_hash": leaf.hex(),
        "merkle_root": level[0].hex(),
        "siblings": siblings,
    }


def verify_inclusion_proof(
    proof: AuditInclusionProofDict | Mapping[str, Any], *, expected_root: str | bytes | None = None
) -> bool:
    """Whether a proof holds; a malformed one does not.

    Give ``expected_root``, from where you trust it: without it, a proof is only in agreement with itself, which
    proves nothing. The number of leaves is not proven: trees of several sizes share the path of one leaf.
    """
    try:
        root = digest_of(proof["merkle_root"], "root")
        if expected_root is not None and digest_of(expected_root, "expected root") != root:
            return False
        return _climb(proof) == root
    except Exception:
        # A forged proof that raises proves nothing.
        return False


def _climb(proof: AuditInclusionProofDict | Mapping[str, Any]) -> bytes | None:
    """The root the proof leads to; None if it is not a valid path."""
    at, width, siblings = proof["leaf_index"], proof["leaf_count"], proof["siblings"]
    if type(at) is not int or type(width) is not int or not isinstance(siblings, (list, tuple)):
        return None
    if not 0 <= at < width <= _MAX_LEAVES:
        return None
    here = digest_of(proof["leaf_hash"], "leaf")
    left = list(reversed(siblings))
    while width > 1:
        if at ^ 1 < width:
            sibling = left.pop()
            if sibling["direction"] != ("left" if at & 1 else "right"):
                return None
            beside = digest_of(sibling["hash"], "sibling")
            here = hashing.node(beside, here) if at & 1 else hashing.node(here, beside)
        at, width = at // 2, (width + 1) // 2
    return None if left else here
