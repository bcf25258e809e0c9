"""Proofs that one event is in a log, without giving the others away."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

from .. import _nono_py as native


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
    return cast(AuditInclusionProofDict, native._build_proof(leaf_hashes, leaf_index))


def verify_inclusion_proof(
    proof: AuditInclusionProofDict | Mapping[str, Any], *, expected_root: str | bytes | None = None
) -> bool:
    """Whether a proof holds; a malformed one does not.

    Give ``expected_root``, from where you trust it: without it, a proof is only in agreement with itself, which
    proves nothing. The number of leaves is not proven: trees of several sizes share the path of one leaf.
    """
    try:
        return native._check_proof(json.dumps(dict(proof)), expected_root)
    except Exception:
        # A forged proof that raises proves nothing.
        return False
