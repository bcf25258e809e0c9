"""Any log that was recorded verifies; whatever is done to it is found, or changes nothing it says."""

from __future__ import annotations

import json
import string
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nono_py import audit

settings.register_profile("nono", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("nono")

texts = st.text(st.characters(codec="utf-8"), max_size=12)
u16 = st.integers(0, 0xFFFF)

events = st.one_of(
    st.builds(audit.session_started, started=texts, command=st.lists(texts, max_size=3)),
    st.builds(audit.session_ended, ended=texts, exit_code=st.integers(-(1 << 31), (1 << 31) - 1)),
    st.builds(
        audit.capability_decision,
        timestamp=texts,
        path=texts,
        access=st.sampled_from(["Read", "Write", "ReadWrite"]),
        child_pid=st.integers(0, 0xFFFF_FFFF),
        session_id=texts,
        decision=st.one_of(
            st.just("Granted"), st.just("Timeout"), st.builds(audit.approval_denied, texts)
        ),
        backend=texts,
        duration_ms=st.integers(0, (1 << 64) - 1),
        reason=st.none() | texts,
    ),
    st.builds(
        audit.url_open,
        url=texts,
        child_pid=st.integers(0, 0xFFFF_FFFF),
        session_id=texts,
        success=st.booleans(),
        error=st.none() | texts,
    ),
    st.builds(
        audit.network,
        timestamp_unix_ms=st.integers(0, (1 << 64) - 1),
        mode=st.sampled_from(["connect", "connect_intercept", "reverse", "external"]),
        decision=st.sampled_from(["allow", "deny"]),
        target=texts,
        port=st.none() | u16,
        status=st.none() | u16,
        reason=st.none() | texts,
        managed_credential_active=st.none() | st.booleans(),
    ),
)
logs = st.lists(events, min_size=1, max_size=6)


def record_all(events: list[dict[str, Any]]) -> tuple[list[bytes], dict[str, Any]]:
    """The lines of a log, and the summary of it."""
    recorder = audit.AlphaRecorder()
    records = [recorder.record(event) for event in events]
    lines = [json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records]
    proof = audit.build_inclusion_proof([record["leaf_hash"] for record in records], 0)
    summary = {
        "event_count": len(records),
        "chain_head": recorder.chain_head,
        "merkle_root": proof["merkle_root"],
    }
    return lines, summary


def verify(log: bytes, summary: dict[str, Any] | None) -> audit.AuditVerificationResultDict:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / audit.AUDIT_EVENTS_FILENAME).write_bytes(log)
        return audit.verify_log(folder, stored=summary)


def assert_refused(log: bytes, summary: dict[str, Any] | None) -> None:
    with pytest.raises(audit.VerificationError):
        verify(log, summary)


@given(logs)
def test_round_trip(events: list[dict[str, Any]]) -> None:
    lines, summary = record_all(events)
    result = verify(b"".join(lines), summary)
    assert result["event_count"] == len(events) and result["event_count_matches"]
    assert [json.loads(json.loads(line)["event_json"]) for line in lines] == events
    for line, event in zip(lines, events):
        assert audit.AuditEventRecord.model_validate(json.loads(line)).event.to_wire() == event


@settings(max_examples=400)
@given(logs, st.data())
def test_a_changed_byte_is_found_or_says_the_same(events: list[dict[str, Any]], data: st.DataObject) -> None:
    lines, summary = record_all(events)
    log = b"".join(lines)
    at = data.draw(st.integers(0, len(log) - 1))
    byte = data.draw(st.integers(0, 255))
    assume(log[at] != byte)
    changed = log[:at] + bytes([byte]) + log[at + 1 :]
    try:
        verify(changed, summary)
    except audit.VerificationError:
        return
    # What is left: the case of a hexadecimal digit, and the blank at the end of the last line.
    found = [json.loads(line) for line in changed.splitlines()]
    known = [json.loads(line) for line in lines]
    for one, other in zip(found, known, strict=True):
        assert one["event_json"] == other["event_json"] and one["event"] == other["event"]
        for key in ("prev_chain", "leaf_hash", "chain_hash"):
            assert (one[key] or "").lower() == (other[key] or "")


@given(st.lists(events, min_size=2, max_size=6), st.data())
def test_a_line_taken_out_moved_or_doubled_is_found(events: list[dict[str, Any]], data: st.DataObject) -> None:
    lines, summary = record_all(events)
    at = data.draw(st.integers(0, len(lines) - 1))
    without = lines[:at] + lines[at + 1 :]
    assert_refused(b"".join(without), summary)
    if at < len(lines) - 1:
        assert_refused(b"".join(without), None)
    to = data.draw(st.integers(0, len(lines) - 1).filter(lambda to: to != at))
    swapped = list(lines)
    swapped[at], swapped[to] = swapped[to], swapped[at]
    assert_refused(b"".join(swapped), None)
    assert_refused(b"".join([*lines[: at + 1], *lines[at:]]), None)


@given(logs, st.data())
def test_a_cut_log_is_found(events: list[dict[str, Any]], data: st.DataObject) -> None:
    lines, summary = record_all(events)
    log = b"".join(lines)
    cut = log[: data.draw(st.integers(0, len(log) - 2))]
    assert_refused(cut, summary)
    if cut and not any(cut in (b"".join(lines[:n]), b"".join(lines[:n])[:-1]) for n in range(len(lines) + 1)):
        assert_refused(cut, None)


@given(logs, events)
def test_a_log_written_anew_is_found_by_its_summary(events: list[dict[str, Any]], more: dict[str, Any]) -> None:
    _, summary = record_all(events)
    lines, _ = record_all([*events, more])
    assert_refused(b"".join(lines), summary)


@given(st.binary(max_size=400))
def test_noise_is_refused(noise: bytes) -> None:
    assume(noise.strip())
    assert_refused(noise, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
record_keys = ["sequence", "prev_chain", "leaf_hash", "chain_hash", "event_json", "event"]


@given(st.dictionaries(st.sampled_from(record_keys), json_values))
def test_made_up_records_are_refused(record: dict[str, Any]) -> None:
    assert_refused(json.dumps(record).encode(), None)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / audit.AUDIT_LEDGER_FILENAME
        ledger.write_text(json.dumps(record))
        metadata = dict.fromkeys(
            ["ended", "executable_identity", "exit_code", "audit_integrity", "audit_attestation"]
        )
        listed: dict[str, Any] = {"command": [], "tracked_paths": [], "merkle_roots": [], "network_events": []}
        counts = {"snapshot_count": 0, "audit_event_count": 0}
        with pytest.raises(audit.VerificationError):
            audit.verify_session_in_ledger(
                ledger, {"session_id": "s", "started": "t", **metadata, **listed, **counts}
            )


leaf_lists = st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=70)


@given(leaf_lists, st.data())
def test_inclusion_proofs(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    proof: Any = audit.build_inclusion_proof(leaves, index)
    root = audit.build_inclusion_proof([leaf.hex() for leaf in leaves], 0)["merkle_root"]
    assert proof["merkle_root"] == root
    assert audit.verify_inclusion_proof(proof, expected_root=root)
    other = data.draw(st.integers(0, len(leaves)).filter(lambda other: other != index))
    assert not audit.verify_inclusion_proof({**proof, "leaf_index": other}, expected_root=root)
    stranger = data.draw(st.binary(min_size=32, max_size=32).filter(lambda leaf: leaf != leaves[index]))
    assert not audit.verify_inclusion_proof({**proof, "leaf_hash": stranger.hex()}, expected_root=root)
    if proof["siblings"]:
        assert not audit.verify_inclusion_proof({**proof, "siblings": proof["siblings"][1:]})
    assert not audit.verify_inclusion_proof(
        {**proof, "siblings": [*proof["siblings"], {"direction": "left", "hash": root}]}
    )


@given(json_values)
def test_made_up_proofs_are_false(value: Any) -> None:
    assert audit.verify_inclusion_proof(value) is False
