"""SessionMetadata."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nono_py import SessionMetadata, SnapshotError, SnapshotManager

KEYS = [
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
]
EVENT_KEYS = [
    "timestamp_unix_ms",
    "mode",
    "decision",
    "target",
    "port",
    "method",
    "path",
    "status",
    "reason",
    "route_id",
    "auth_mechanism",
    "auth_outcome",
    "managed_credential_active",
    "injection_mode",
    "denial_category",
]
EVENT: dict[str, Any] = {"timestamp_unix_ms": 5, "mode": "connect", "decision": "deny", "target": "example.org"}


def test_a_new_one() -> None:
    meta = SessionMetadata("id", ["make", "all"], ["/a", Path("/b")])
    assert (meta.session_id, meta.command, meta.tracked_paths) == ("id", ["make", "all"], ["/a", "/b"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta.started)
    assert meta.ended is None and meta.exit_code is None and meta.snapshot_count == 0
    assert meta.merkle_roots == [] and meta.network_events == [] and meta.audit_event_count == 0
    assert meta.executable_identity is None and meta.audit_integrity is None and meta.audit_attestation is None
    assert repr(meta) == "SessionMetadata(id='id', snapshots=0)"
    text = meta.to_json()
    assert list(json.loads(text)) == KEYS == list(meta.to_dict())
    assert text.startswith('{\n  "session_id": "id",\n') and json.loads(text) == meta.to_dict()


def test_setters() -> None:
    meta = SessionMetadata("id", [], [])
    meta.ended, meta.exit_code, meta.snapshot_count = "2026-01-01T00:00:00Z", -3, 7
    assert (meta.ended, meta.exit_code, meta.snapshot_count) == ("2026-01-01T00:00:00Z", -3, 7)
    meta.ended = meta.exit_code = None
    assert meta.ended is None and meta.exit_code is None
    for name, value in [("exit_code", 2**40), ("snapshot_count", -1), ("snapshot_count", 2**32)]:
        with pytest.raises(OverflowError):
            setattr(meta, name, value)
    for name in ["session_id", "started", "command", "tracked_paths", "merkle_roots", "network_events"]:
        with pytest.raises(AttributeError):
            setattr(meta, name, [])
    with pytest.raises(TypeError):
        SessionMetadata("id", "make", [])


def test_saved_and_loaded(tmp_path: Path, project: Path) -> None:
    manager = SnapshotManager(tmp_path / "s", [project])
    root = manager.create_baseline().merkle_root
    meta = SessionMetadata("20260101-000000-1", ["sh"], [project])
    meta.add_merkle_root(root)
    meta.add_merkle_root(root)
    meta.set_network_events([{**EVENT, "port": 443, "injection_mode": "oauth2"}])
    manager.save_session_metadata(meta)
    assert (tmp_path / "s" / "session.json").read_text().rstrip("\n") == meta.to_json()
    again = SnapshotManager.load_session_metadata(tmp_path / "s")
    assert again.merkle_roots == [root, root] and again.to_json() == meta.to_json()
    assert SessionMetadata.from_json(meta.to_json()).network_events == meta.network_events
    with pytest.raises(RuntimeError) as missing:
        SnapshotManager.load_session_metadata(tmp_path / "none")
    assert isinstance(missing.value, SnapshotError) and missing.value.kind == "not_found"
    assert str(missing.value.path).startswith(str(tmp_path / "none"))
    (tmp_path / "s" / "session.json").write_text("{}")
    with pytest.raises(SnapshotError) as malformed:
        SnapshotManager.load_session_metadata(tmp_path / "s")
    assert malformed.value.kind == "bad_metadata"


def test_from_json() -> None:
    base = json.loads(SessionMetadata("id", ["a"], ["/t"]).to_json())
    full = {
        **base,
        "executable_identity": {"resolved_path": "/bin/sh", "sha256": "ab" * 32},
        "audit_integrity": {"hash_algorithm": "sha256", "event_count": 2, "chain_head": "c", "merkle_root": "m"},
        "audit_attestation": {"predicate_type": "p", "key_id": "k", "public_key": "q", "bundle_filename": "b"},
        "audit_event_count": 2,
        "merkle_roots": ["cd" * 32],
        "unknown": 1,
    }
    meta = SessionMetadata.from_json(json.dumps(full))
    assert meta.executable_identity == full["executable_identity"]
    assert meta.audit_integrity == full["audit_integrity"] and meta.audit_attestation == full["audit_attestation"]
    assert meta.audit_event_count == 2 and meta.merkle_roots[0].hex() == "cd" * 32
    assert list(json.loads(meta.to_json())) == KEYS
    for key in ["session_id", "started", "command", "tracked_paths", "snapshot_count", "merkle_roots"]:
        with pytest.raises(ValueError, match="^Invalid JSON:"):
            SessionMetadata.from_json(json.dumps({k: v for k, v in base.items() if k != key}))
    for key in ["ended", "exit_code", "network_events", "audit_event_count", "audit_integrity", "audit_attestation"]:
        SessionMetadata.from_json(json.dumps({k: v for k, v in base.items() if k != key}))
    for wrong in ["", "[]", "nonsense", json.dumps({**base, "merkle_roots": ["zz"]}), json.dumps({**base, "network_events": [{}]})]:
        with pytest.raises(ValueError, match="^Invalid JSON:"):
            SessionMetadata.from_json(wrong)


def test_network_events() -> None:
    meta = SessionMetadata("id", [], [])
    meta.set_network_events([EVENT])
    [event] = meta.network_events
    assert list(event) == EVENT_KEYS
    assert event == {**dict.fromkeys(EVENT_KEYS), **EVENT}
    stored = json.loads(meta.to_json())["network_events"][0]
    assert list(stored) == ["timestamp_unix_ms", "mode", "decision", "target", "port", "method", "path", "status", "reason"]
    whole = {
        **EVENT,
        "port": 443,
        "method": "GET",
        "path": "/",
        "status": 200,
        "reason": "r",
        "route_id": "i",
        "auth_mechanism": "phantom_header",
        "auth_outcome": "failed",
        "managed_credential_active": True,
        "injection_mode": "oauth2",
        "denial_category": "host_denied",
    }
    meta.set_network_events([whole, {**EVENT, "extra": object()}])
    assert meta.network_events[0] == whole and len(meta.network_events) == 2
    stored = json.loads(meta.to_json())["network_events"][0]
    assert stored["injection_mode"] == "o_auth2"
    assert list(stored)[3:9] == [
        *("route_id", "auth_mechanism", "auth_outcome", "managed_credential_active", "injection_mode", "denial_category")
    ]
    # What is optional and wrong is nothing.
    meta.set_network_events([{**EVENT, "port": 70000, "method": 5, "status": "x", "managed_credential_active": 1}])
    event = meta.network_events[0]
    assert [event[key] for key in ("port", "method", "status", "managed_credential_active")] == [None] * 4


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        *(({k: v for k, v in EVENT.items() if k != key}, ValueError) for key in EVENT),
        ({**EVENT, "mode": "nothing"}, ValueError),
        ({**EVENT, "decision": "maybe"}, ValueError),
        ({**EVENT, "auth_mechanism": "x"}, ValueError),
        ({**EVENT, "auth_outcome": "x"}, ValueError),
        ({**EVENT, "injection_mode": "o_auth2"}, ValueError),
        ({**EVENT, "denial_category": "x"}, ValueError),
        ({**EVENT, "timestamp_unix_ms": -1}, OverflowError),
        ("text", TypeError),
        (5, TypeError),
    ],
)
def test_wrong_events_change_nothing(wrong: Any, error: type[Exception]) -> None:
    meta = SessionMetadata("id", [], [])
    meta.set_network_events([EVENT])
    with pytest.raises(error):
        meta.set_network_events([EVENT, wrong])
    assert len(meta.network_events) == 1
