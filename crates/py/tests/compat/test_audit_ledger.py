"""Inclusion proofs, the digest of a session, and the ledger."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from nono_py import audit

from .audit_kit import CHAIN, DIGEST, GOLDEN, LEAF, LEDGER_CHAIN, Change

# --- proofs


def test_golden_proof() -> None:
    leaves: list[str | bytes] = [bytes([byte]) * 32 for byte in range(1, 6)]
    proof = audit.build_inclusion_proof(leaves, 2)
    assert list(proof) == ["leaf_index", "leaf_count", "leaf_hash", "merkle_root", "siblings"]
    root = "87f9319b8dbb3d3fd55d419aabf3c218aafd2dfd82d5e30fb22e8e89c10c0160"
    assert proof["merkle_root"] == root
    assert (proof["leaf_index"], proof["leaf_count"], proof["leaf_hash"]) == (2, 5, "03" * 32)
    inner = "85fb11ff61817c3aa118af30f054a3ea63c042902722cf8ae35e704fff9624fe"
    expected = [("right", "04" * 32), ("left", inner), ("right", "05" * 32)]
    assert [(sibling["direction"], sibling["hash"]) for sibling in proof["siblings"]] == expected
    assert all(list(sibling) == ["direction", "hash"] for sibling in proof["siblings"])
    assert audit.verify_inclusion_proof(proof)
    assert audit.verify_inclusion_proof(proof, expected_root=root)
    assert audit.verify_inclusion_proof(proof, expected_root=bytes.fromhex(root))
    assert not audit.verify_inclusion_proof(proof, expected_root=LEAF)
    # The last leaf goes up two levels without a sibling.
    assert [s["direction"] for s in audit.build_inclusion_proof(leaves, 4)["siblings"]] == ["left"]


def test_one_leaf_proves_itself() -> None:
    proof = audit.build_inclusion_proof([LEAF], 0)
    assert (proof["merkle_root"], proof["siblings"]) == (LEAF, [])
    assert audit.verify_inclusion_proof(proof)


@pytest.mark.parametrize(
    ("leaves", "index"),
    [([], 0), ([LEAF], 1), ([LEAF], -1), ([LEAF], True), ([LEAF], "0"), ([LEAF[1:]], 0), (["g" * 64], 0), ([b"x"], 0)]
    + [([3], 0), (None, 0), (LEAF, 0)],
)
def test_no_proof_of_what_is_not_there(leaves: Any, index: Any) -> None:
    with pytest.raises(audit.VerificationError):
        audit.build_inclusion_proof(leaves, index)


@pytest.mark.parametrize(
    "change",
    [
        lambda proof: proof.update(leaf_index=1),
        lambda proof: proof.update(leaf_index=5),
        lambda proof: proof.update(leaf_index=-1),
        lambda proof: proof.update(leaf_index=2.0),
        lambda proof: proof.update(leaf_count=3),
        lambda proof: proof.update(leaf_count=9),
        lambda proof: proof.update(leaf_count=0),
        lambda proof: proof.update(leaf_count=1 << 100_000, leaf_index=(1 << 100_000) - 1),
        lambda proof: proof.update(leaf_hash="04" * 32),
        lambda proof: proof.update(merkle_root=None),
        lambda proof: proof.update(siblings=None),
        lambda proof: proof["siblings"].pop(),
        lambda proof: proof["siblings"].append(proof["siblings"][0]),
        lambda proof: proof["siblings"][0].update(direction="left"),
        lambda proof: proof["siblings"][0].update(hash="x"),
        lambda proof: proof["siblings"].__setitem__(0, 3),
        lambda proof: proof.clear(),
    ],
)
def test_a_changed_proof_is_false(change: Change) -> None:
    proof: Any = audit.build_inclusion_proof([bytes([byte]) * 32 for byte in range(1, 6)], 2)
    change(proof)
    assert audit.verify_inclusion_proof(proof) is False


@pytest.mark.parametrize("proof", [None, 3, [], "proof", {}, {"siblings": []}])
def test_no_proof_at_all_is_false(proof: Any) -> None:
    assert audit.verify_inclusion_proof(proof) is False


# --- digest and ledger


class Written:
    def __init__(self, text: str) -> None:
        self._text = text

    def to_json(self) -> str:
        return self._text


def test_golden_digest_and_ledger_line() -> None:
    assert audit.compute_session_digest(GOLDEN) == DIGEST
    assert audit.compute_session_digest(Written(json.dumps(GOLDEN))) == DIGEST
    payload = json.dumps({**GOLDEN, "tracked_paths": [list(b"/tmp/work")]}, separators=(",", ":"))
    assert payload.startswith('{"session_id":') and "[[47,116,109,112,47,119,111,114,107]]" in payload
    assert sha256(audit.SESSION_DIGEST_DOMAIN_ALPHA + payload.encode()).hexdigest() == DIGEST
    record = audit.build_ledger_record(GOLDEN, sequence=0, previous_chain=None)
    assert list(record) == ["sequence", "prev_chain", "session_id", "session_digest", "completed_at", "chain_hash"]
    assert record["chain_hash"] == LEDGER_CHAIN
    assert record["completed_at"] == GOLDEN["ended"]
    assert (record["sequence"], record["prev_chain"], record["session_digest"]) == (0, None, DIGEST)


def test_completed_at_is_the_start_without_an_end() -> None:
    for none in (None, ""):
        record = audit.build_ledger_record({**GOLDEN, "ended": none}, sequence=1, previous_chain=LEDGER_CHAIN)
        assert record["completed_at"] == GOLDEN["started"]
        assert record["prev_chain"] == LEDGER_CHAIN


def test_what_the_digest_covers() -> None:
    event = {"timestamp_unix_ms": 1, "mode": "connect", "decision": "deny", "target": "é"}
    full = {
        **GOLDEN,
        "executable_identity": {"sha256": LEAF, "resolved_path": "/bin/pwd"},
        "network_events": [{**event, "port": 443, "injection_mode": "o_auth2", "route_id": None}],
        "merkle_roots": [LEAF],
        "audit_integrity": {
            "merkle_root": LEAF,
            "chain_head": CHAIN,
            "event_count": 2,
            "hash_algorithm": "sha256",
        },
        "more": "not covered",
    }
    expected = {
        **GOLDEN,
        "tracked_paths": [list(b"/tmp/work")],
        "executable_identity": {"resolved_path": list(b"/bin/pwd"), "sha256": LEAF},
        "merkle_roots": [LEAF],
        "network_events": [
            {
                "timestamp_unix_ms": 1,
                "mode": "connect",
                "decision": "deny",
                "injection_mode": "o_auth2",
                "target": "é",
                "port": 443,
                "method": None,
                "path": None,
                "status": None,
                "reason": None,
            }
        ],
        "audit_integrity": {
            "hash_algorithm": "sha256",
            "event_count": 2,
            "chain_head": CHAIN,
            "merkle_root": LEAF,
        },
    }
    payload = json.dumps(expected, separators=(",", ":"), ensure_ascii=False).encode()
    assert audit.compute_session_digest(full) == sha256(audit.SESSION_DIGEST_DOMAIN_ALPHA + payload).hexdigest()


def test_paths_that_are_no_text_have_one_digest() -> None:
    forms: list[Any] = ["/\udcff", Path("/\udcff"), {"bytes": [47, 255]}, {"hex": "2fff"}]
    assert len({audit.compute_session_digest({**GOLDEN, "tracked_paths": [form]}) for form in forms}) == 1


def test_digest_of_what_is_no_session() -> None:
    with pytest.raises(TypeError):
        audit.compute_session_digest(3)  # type: ignore[arg-type]
    short = {key: value for key, value in GOLDEN.items() if key not in ("ended", "exit_code")}
    with pytest.raises(audit.VerificationError, match="missing protected digest fields: ended, exit_code"):
        audit.compute_session_digest(short)
    for text in ("no json", "[]", "3", "[" * 100_000, "\ud800"):
        with pytest.raises(audit.VerificationError):
            audit.compute_session_digest(Written(text))
    for key, value in [
        ("tracked_paths", 3),
        ("tracked_paths", [3]),
        ("tracked_paths", [{"bytes": [256]}]),
        ("tracked_paths", [{"bytes": "x"}]),
        ("tracked_paths", [{"hex": "2f "}]),
        ("tracked_paths", [{"hex": "2"}]),
        ("tracked_paths", [{"hex": "2f", "bytes": [47]}]),
        ("tracked_paths", ["\ud800"]),
        ("command", "ls"),
        ("command", ["\ud800"]),
        ("executable_identity", []),
        ("executable_identity", {"sha256": LEAF}),
        ("network_events", [3]),
        ("network_events", [{}]),
        ("audit_integrity", 3),
        ("audit_attestation", {}),
        ("exit_code", float("nan")),
        ("exit_code", object()),
        ("session_id", 3),
        ("ended", 3),
    ]:
        with pytest.raises(audit.VerificationError):
            audit.compute_session_digest({**GOLDEN, key: value})


@pytest.mark.parametrize("good", ["a", "A-b_9", "x" * 64])
def test_good_session_ids(good: str) -> None:
    audit.validate_ledger_session_id(good)


@pytest.mark.parametrize("bad", ["", "x" * 65, "a b", "é", "a/b", "..", "a\n", 3, None])
def test_bad_session_ids(bad: Any) -> None:
    with pytest.raises(audit.VerificationError, match="invalid audit session id"):
        audit.validate_ledger_session_id(bad)
    if isinstance(bad, str):
        with pytest.raises(audit.VerificationError, match="invalid audit session id"):
            audit.build_ledger_record({**GOLDEN, "session_id": bad}, sequence=0, previous_chain=None)


@pytest.mark.parametrize("wrong", [{"sequence": -1}, {"sequence": True}, {"previous_chain": "x"}])
def test_wrong_places_in_the_ledger(wrong: dict[str, Any]) -> None:
    with pytest.raises(audit.VerificationError):
        audit.build_ledger_record(GOLDEN, **{"sequence": 0, "previous_chain": None, **wrong})


def write_ledger(path: Path) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    head = None
    for sequence, name in enumerate(["one", "two", "one"]):
        metadata = {**GOLDEN, "session_id": name, "exit_code": sequence}
        record = audit.build_ledger_record(metadata, sequence=sequence, previous_chain=head)
        head = record["chain_hash"]
        lines.append(dict(record))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


def test_verify_session_in_ledger(tmp_path: Path) -> None:
    path = tmp_path / audit.AUDIT_LEDGER_FILENAME
    session = {**GOLDEN, "session_id": "one", "exit_code": 2}
    missing = audit.verify_session_in_ledger(path, session)
    assert missing == {
        "hash_algorithm": "sha256",
        "entry_count": 0,
        "session_digest": audit.compute_session_digest(session),
        "session_found": False,
        "session_digest_matches": False,
        "ledger_chain_verified": False,
        "ledger_head": None,
    }
    with pytest.raises(FileNotFoundError):
        list(audit.iter_ledger(path))
    lines = write_ledger(path)
    assert list(audit.iter_ledger(path)) == lines
    found = audit.verify_session_in_ledger(str(path), session)
    assert list(found) == list(missing)
    assert found["entry_count"] == 3 and found["ledger_head"] == lines[-1]["chain_hash"]
    assert found["session_found"] and found["session_digest_matches"] and found["ledger_chain_verified"]
    # The last line of a session counts.
    older = audit.verify_session_in_ledger(path, {**session, "exit_code": 0})
    assert older["session_found"] and not older["session_digest_matches"]
    assert not audit.verify_session_in_ledger(path, {**session, "session_id": "three"})["session_found"]


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.update(sequence=2),
        lambda line: line.update(sequence=True),
        lambda line: line.update(prev_chain=None),
        lambda line: line.update(session_id="three"),
        lambda line: line.update(session_id="../x"),
        lambda line: line.update(session_digest=LEAF),
        lambda line: line.update(completed_at="now"),
        lambda line: line.update(completed_at="\ud800"),
        lambda line: line.update(chain_hash=LEAF),
        lambda line: line.clear(),
    ],
)
def test_an_edited_ledger_names_the_physical_line(tmp_path: Path, change: Change) -> None:
    path = tmp_path / "ledger"
    lines = write_ledger(path)
    change(lines[1])
    path.write_text("\n\n" + "\n".join(json.dumps(line) for line in lines) + "\n")
    with pytest.raises(audit.VerificationError, match="line 4"):
        audit.verify_session_in_ledger(path, GOLDEN)
