"""``nono_py.audit``: names, golden records, the recorder, builders and models."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nono_py import audit

from .audit_kit import CHAIN, ENDED, LEAF

# --- names


def test_the_48_names() -> None:
    names = """
        AUDIT_EVENTS_FILENAME AUDIT_LEDGER_FILENAME HASH_ALGORITHM_ALPHA MERKLE_SCHEME_ALPHA EVENT_TYPES
        EVENT_DOMAIN_ALPHA CHAIN_DOMAIN_ALPHA MERKLE_DOMAIN_ALPHA SESSION_DIGEST_DOMAIN_ALPHA LEDGER_CHAIN_DOMAIN_ALPHA
        VerificationError
        AuditInclusionProofDict AuditProofNodeDict AuditVerificationResultDict LedgerRecordDict
        LedgerVerificationResultDict
        iter_session tail_session verify_log build_inclusion_proof verify_inclusion_proof build_ledger_record
        compute_session_digest iter_ledger validate_ledger_session_id verify_session_in_ledger
        CapabilityRequestPayload AuditEntryPayload UrlOpenRequestPayload NetworkAuditEventPayload ScrubPolicyDiffPayload
        SessionStartedEvent SessionEndedEvent CapabilityDecisionEvent UrlOpenEvent NetworkEvent AuditEventRecord
        AuditEvent ApprovalDecision
        session_started session_ended capability_decision url_open network approval_granted approval_timeout
        approval_denied
        AlphaRecorder
    """.split()
    assert len(names) == 48
    assert sorted(audit.__all__) == sorted(names)
    for name in names:
        assert hasattr(audit, name), name


def test_constants() -> None:
    assert audit.AUDIT_EVENTS_FILENAME == "audit-events.ndjson"
    assert audit.AUDIT_LEDGER_FILENAME == "ledger.ndjson"
    assert audit.HASH_ALGORITHM_ALPHA == "sha256"
    assert audit.MERKLE_SCHEME_ALPHA == "alpha"
    assert isinstance(audit.EVENT_TYPES, frozenset)
    assert audit.EVENT_TYPES == {"session_started", "session_ended", "capability_decision", "url_open", "network"}
    assert audit.EVENT_DOMAIN_ALPHA == b"nono.audit.event.alpha\n"
    assert audit.CHAIN_DOMAIN_ALPHA == b"nono.audit.chain.alpha\n"
    assert audit.MERKLE_DOMAIN_ALPHA == b"nono.audit.merkle.alpha\n"
    assert audit.SESSION_DIGEST_DOMAIN_ALPHA == b"nono.audit.session-digest.alpha\n"
    assert audit.LEDGER_CHAIN_DOMAIN_ALPHA == b"nono.audit.ledger.chain.alpha\n"
    assert audit.VerificationError.__bases__ == (Exception,)


def test_without_pydantic_the_import_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pydantic'] = None\n"
        "import nono_py\n"
        "try:\n    from nono_py import audit\n"
        "except ImportError as error:\n    print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'nono-py[audit]'" in shown.stdout


# --- records


def test_golden_leaf_and_chain() -> None:
    recorder = audit.AlphaRecorder()
    assert (recorder.sequence, recorder.chain_head) == (0, None)
    record = recorder.record(ENDED)
    assert list(record) == ["sequence", "prev_chain", "leaf_hash", "chain_hash", "event_json", "event"]
    assert record["event_json"] == '{"type":"session_ended","ended":"t","exit_code":0}'
    assert (record["sequence"], record["prev_chain"]) == (0, None)
    assert (record["leaf_hash"], record["chain_hash"]) == (LEAF, CHAIN)
    assert (recorder.sequence, recorder.chain_head) == (1, CHAIN)
    second = recorder.record(ENDED)
    assert (second["sequence"], second["prev_chain"], second["leaf_hash"]) == (1, CHAIN, LEAF)
    expected = sha256(audit.CHAIN_DOMAIN_ALPHA + bytes.fromhex(CHAIN) + bytes.fromhex(LEAF))
    assert second["chain_hash"] == expected.hexdigest()


def test_write_is_one_compact_line_and_flushes(tmp_path: Path) -> None:
    recorder = audit.AlphaRecorder()
    path = tmp_path / "log"
    with open(path, "a") as log:
        record = recorder.write(log, audit.session_ended(ended="é", exit_code=1))
        line = path.read_bytes()  # while the file is still open
    assert line == json.dumps(record, separators=(",", ":")).encode() + b"\n"
    assert b"\\\\u00e9" in line and line.count(b"\n") == 1
    with open(path, "ab") as binary:
        recorder.write(binary, ENDED)
    with open(path, "ab", buffering=0) as raw:
        recorder.write(raw, ENDED)
    memory = io.StringIO()
    recorder.write(memory, ENDED)
    assert [json.loads(line)["sequence"] for line in path.read_text().splitlines()] == [0, 1, 2]
    assert json.loads(memory.getvalue())["sequence"] == 3


def test_a_failed_write_leaves_the_number_free() -> None:
    recorder = audit.AlphaRecorder()
    with open("/dev/full", "w") as full:
        with pytest.raises(OSError):
            recorder.write(full, ENDED)
        assert (recorder.sequence, recorder.chain_head) == (0, None)
        with pytest.raises(OSError):
            full.close()
    with pytest.raises(ValidationError):
        recorder.record({"type": "nothing"})
    assert recorder.record(ENDED)["chain_hash"] == CHAIN


def test_the_recorder_takes_models_and_is_safe_between_threads() -> None:
    recorder = audit.AlphaRecorder()
    assert recorder.record(audit.SessionEndedEvent(ended="t", exit_code=0))["chain_hash"] == CHAIN
    records: list[dict[str, Any]] = []

    def work() -> None:
        for _ in range(200):
            records.append(recorder.record(ENDED))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(record["sequence"] for record in records) == list(range(1, 1601))
    ordered = sorted(records, key=lambda record: int(record["sequence"]))
    assert all(b["prev_chain"] == a["chain_hash"] for a, b in zip(ordered, ordered[1:]))


def test_a_list_changed_after_its_check_is_not_recorded() -> None:
    event = audit.SessionStartedEvent(started="t", command=["a"])
    event.command.append(3)  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        audit.AlphaRecorder().record(event)


# --- builders


def test_session_started() -> None:
    plain = audit.session_started(started="t", command=("a", "b"))
    assert plain == {"type": "session_started", "started": "t", "command": ["a", "b"]}
    assert list(plain) == ["type", "started", "command"]
    empty = audit.session_started(started="t", command=[], redaction_policy={})
    assert list(empty) == ["type", "started", "command", "redaction_policy"]
    assert empty["redaction_policy"] == {}
    keys = ["added_flags", "removed_flags", "added_headers", "removed_headers", "added_query_keys", "removed_query_keys"]
    full = audit.session_started(
        started="t", command=[], redaction_policy={key: ["x"] for key in reversed(keys)}
    )
    assert list(full["redaction_policy"]) == keys
    some = audit.session_started(
        started="t", command=[], redaction_policy={"added_flags": [], "removed_headers": ["h"]}
    )
    assert some["redaction_policy"] == {"removed_headers": ["h"]}


def test_capability_decision() -> None:
    event = audit.capability_decision(
        timestamp="t",
        path="/x",
        access="ReadWrite",
        child_pid=5,
        session_id="s",
        decision=audit.approval_denied("no"),
        backend="terminal",
        duration_ms=7,
    )
    assert list(event) == ["type", "entry"]
    assert list(event["entry"]) == ["timestamp", "request", "decision", "backend", "duration_ms"]
    request = event["entry"]["request"]
    assert list(request) == ["request_id", "path", "access", "reason", "child_pid", "session_id"]
    assert request["reason"] is None
    assert len(request["request_id"]) == 32 and int(request["request_id"], 16) >= 0
    assert event["entry"]["decision"] == {"Denied": {"reason": "no"}}
    assert audit.approval_granted() == "Granted"
    assert audit.approval_timeout() == "Timeout"


def test_url_open() -> None:
    event = audit.url_open(url="https://x", child_pid=1, session_id="s", success=True, request_id="r")
    assert list(event) == ["type", "request", "success", "error"]
    assert list(event["request"]) == ["request_id", "url", "child_pid", "session_id"]
    assert (event["error"], event["request"]["request_id"]) == (None, "r")


def test_network() -> None:
    event = audit.network(timestamp_unix_ms=1, mode="connect", decision="deny", target="h")
    assert list(event) == ["type", "event"]
    tail = ["target", "port", "method", "path", "status", "reason"]
    assert list(event["event"]) == ["timestamp_unix_ms", "mode", "decision", *tail]
    full = audit.network(
        timestamp_unix_ms=1,
        mode="reverse",
        decision="allow",
        target="h",
        port=443,
        method="GET",
        path="/",
        status=200,
        reason="r",
        route_id="route",
        auth_mechanism="phantom_header",
        auth_outcome="succeeded",
        managed_credential_active=True,
        injection_mode="oauth2",
        denial_category="host_denied",
    )
    six = [
        "route_id",
        "auth_mechanism",
        "auth_outcome",
        "managed_credential_active",
        "injection_mode",
        "denial_category",
    ]
    assert list(full["event"]) == ["timestamp_unix_ms", "mode", "decision", *six, *tail]


@pytest.mark.parametrize(
    "build",
    [
        lambda: audit.session_ended(ended="t", exit_code=True),
        lambda: audit.session_ended(ended="t", exit_code="0"),  # type: ignore[arg-type]
        lambda: audit.session_ended(ended=1, exit_code=0),  # type: ignore[arg-type]
        lambda: audit.session_started(started="t", command="ls"),
        lambda: audit.session_started(started="t", command=[1]),  # type: ignore[list-item]
        lambda: audit.session_started(started="t", command=[], redaction_policy={"more": []}),
        lambda: audit.network(timestamp_unix_ms=1, mode="x", decision="deny", target="h"),
        lambda: audit.network(timestamp_unix_ms=1, mode="connect", decision="denied", target="h"),
        lambda: audit.network(timestamp_unix_ms=-1, mode="connect", decision="deny", target="h"),
        lambda: audit.network(timestamp_unix_ms=1, mode="connect", decision="deny", target="h", port=70000),
        lambda: audit.url_open(url="u", child_pid=1, session_id="s", success=1),  # type: ignore[arg-type]
        lambda: audit.capability_decision(
            timestamp="t",
            path="/",
            access="read",
            child_pid=1,
            session_id="s",
            decision="Granted",
            backend="b",
            duration_ms=1,
        ),
        lambda: audit.capability_decision(
            timestamp="t",
            path="/",
            access="Read",
            child_pid=1,
            session_id="s",
            decision={"Denied": {"reason": "r", "more": 1}},
            backend="b",
            duration_ms=1,
        ),
        lambda: audit.AlphaRecorder().record({**ENDED, "more": 1}),
        lambda: audit.AlphaRecorder().record({"ended": "t", "exit_code": 0}),
    ],
)
def test_wrong_values_are_validation_errors(build: Callable[[], object]) -> None:
    with pytest.raises(ValidationError):
        build()


def test_builders_take_keywords_only() -> None:
    with pytest.raises(TypeError):
        audit.session_ended("t", 0)  # type: ignore[call-arg]


def test_models_have_to_wire() -> None:
    record = audit.AlphaRecorder().record(ENDED)
    assert audit.AuditEventRecord(**record).to_wire() == record
    for name in audit.__all__:
        if name.endswith(("Payload", "Event", "Record")) and name != "AuditEvent":
            assert callable(getattr(audit, name).to_wire), name
