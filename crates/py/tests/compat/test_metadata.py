"""SessionMetadata."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nono_py import SessionMetadata, SnapshotManager, audit

from .kit import untyped as nono

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
EVENT: dict[str, Any] = {"timestamp_unix_ms": 5, "mode": "connect", "decision": "deny", "target": "example.com"}


@pytest.fixture()
def meta() -> SessionMetadata:
    return SessionMetadata("s1", ["make", "test"], ["/a", "/b"])


def test_defaults(meta: SessionMetadata) -> None:
    assert (meta.session_id, meta.command, meta.tracked_paths) == ("s1", ["make", "test"], ["/a", "/b"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta.started)
    assert meta.ended is None and meta.exit_code is None
    assert meta.snapshot_count == 0 and meta.audit_event_count == 0
    assert meta.merkle_roots == [] and meta.network_events == []
    assert meta.executable_identity is None and meta.audit_integrity is None and meta.audit_attestation is None
    assert repr(meta) == "SessionMetadata(id='s1', snapshots=0)"
    named = SessionMetadata(session_id="x", command=[], tracked_paths=[Path("/p")])
    assert named.tracked_paths == ["/p"]
    with pytest.raises(TypeError):
        nono.SessionMetadata("x", [])


def test_what_can_be_set(meta: SessionMetadata) -> None:
    meta.ended = "2026-01-01T00:00:00Z"
    meta.snapshot_count = 4
    meta.exit_code = -9
    assert (meta.ended, meta.snapshot_count, meta.exit_code) == ("2026-01-01T00:00:00Z", 4, -9)
    meta.exit_code = None
    meta.ended = None
    assert meta.exit_code is None and meta.ended is None
    assert repr(meta) == "SessionMetadata(id='s1', snapshots=4)"
    untyped: Any = meta
    with pytest.raises(OverflowError):
        untyped.exit_code = 2**40
    with pytest.raises(OverflowError):
        untyped.snapshot_count = -1
    for name in ("session_id", "command", "tracked_paths", "started", "merkle_roots", "network_events"):
        with pytest.raises(AttributeError):
            setattr(untyped, name, [])
    for name in ("executable_identity", "audit_event_count", "audit_integrity", "audit_attestation"):
        with pytest.raises(AttributeError):
            setattr(untyped, name, None)


def test_merkle_roots(meta: SessionMetadata, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_text("a")
    root = SnapshotManager(tmp_path / "s", [tmp_path / "root"]).create_baseline().merkle_root
    meta.add_merkle_root(root)
    meta.add_merkle_root(root=root)
    assert meta.merkle_roots == [root, root]
    meta.merkle_roots.clear()
    assert len(meta.merkle_roots) == 2
    assert json.loads(meta.to_json())["merkle_roots"] == [root.hex(), root.hex()]
    assert SessionMetadata.from_json(meta.to_json()).merkle_roots == [root, root]
    with pytest.raises(TypeError):
        nono.SessionMetadata("s", [], []).add_merkle_root(root.hex())


def test_json(meta: SessionMetadata) -> None:
    written = json.loads(meta.to_json())
    assert list(written) == KEYS
    assert meta.to_json() == json.dumps(written, indent=2, ensure_ascii=False)
    assert SessionMetadata.from_json(meta.to_json()).to_json() == meta.to_json()


def test_what_only_json_brings() -> None:
    document = json.loads(SessionMetadata("s", ["c"], ["/p"]).to_json())
    digest = "ab" * 32
    document["executable_identity"] = {"resolved_path": "/bin/true", "sha256": digest}
    document["audit_event_count"] = 3
    document["audit_integrity"] = {
        "hash_algorithm": "sha256",
        "event_count": 3,
        "chain_head": digest,
        "merkle_root": digest,
    }
    document["audit_attestation"] = {
        "predicate_type": "p",
        "key_id": "k",
        "public_key": "pk",
        "bundle_filename": "b",
    }
    document["more"] = "ignored"
    meta = SessionMetadata.from_json(json.dumps(document))
    assert meta.executable_identity == document["executable_identity"]
    assert meta.audit_event_count == 3
    assert meta.audit_integrity == document["audit_integrity"]
    assert list(meta.audit_integrity or {}) == ["hash_algorithm", "event_count", "chain_head", "merkle_root"]
    assert meta.audit_attestation == document["audit_attestation"]
    del document["more"]
    assert json.loads(meta.to_json()) == document


def test_optional_keys_may_be_missing() -> None:
    mandatory = ("session_id", "started", "command", "tracked_paths", "snapshot_count", "merkle_roots")
    document = json.loads(SessionMetadata("s", ["c"], ["/p"]).to_json())
    short = {key: document[key] for key in mandatory}
    assert json.loads(SessionMetadata.from_json(json.dumps(short)).to_json()) == document
    for key in mandatory:
        with pytest.raises(ValueError, match="^Invalid JSON:"):
            SessionMetadata.from_json(json.dumps({k: v for k, v in short.items() if k != key}))


@pytest.mark.parametrize("text", ["", "no", "{}", "[]", "3", "[" * 100_000])
def test_what_is_no_metadata(text: str) -> None:
    with pytest.raises(ValueError, match="^Invalid JSON:"):
        SessionMetadata.from_json(text)


@pytest.mark.parametrize("bad", ["xy", "ab" * 31, 3, "zz" * 32])
def test_bad_hashes(bad: Any) -> None:
    document = json.loads(SessionMetadata("s", [], []).to_json())
    document["merkle_roots"] = [bad]
    with pytest.raises(ValueError):
        SessionMetadata.from_json(json.dumps(document))


def test_network_events(meta: SessionMetadata) -> None:
    meta.set_network_events([EVENT])
    (event,) = meta.network_events
    assert list(event) == EVENT_KEYS
    assert {key: event[key] for key in EVENT} == EVENT
    assert all(event[key] is None for key in EVENT_KEYS[4:])
    meta.set_network_events(events=[{**EVENT, "port": 443}, {**EVENT, "more": 1}])
    assert [event["port"] for event in meta.network_events] == [443, None]
    meta.set_network_events([])
    assert meta.network_events == []


def test_network_events_in_json(meta: SessionMetadata) -> None:
    full = {
        **EVENT,
        "port": 443,
        "method": "GET",
        "path": "/",
        "status": 200,
        "reason": "r",
        "route_id": "x",
        "auth_mechanism": "phantom_query",
        "auth_outcome": "failed",
        "managed_credential_active": False,
        "injection_mode": "oauth2",
        "denial_category": "host_denied",
    }
    meta.set_network_events([EVENT, full])
    small, large = json.loads(meta.to_json())["network_events"]
    tail = ["target", "port", "method", "path", "status", "reason"]
    assert list(small) == ["timestamp_unix_ms", "mode", "decision", *tail]
    assert list(large) == ["timestamp_unix_ms", "mode", "decision", *EVENT_KEYS[9:], *tail]
    assert large["injection_mode"] == "o_auth2"
    again = SessionMetadata.from_json(meta.to_json())
    assert again.network_events == meta.network_events
    assert again.network_events[1]["injection_mode"] == "oauth2"


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("mode", ["connect", "connect_intercept", "reverse", "external"]),
        ("decision", ["allow", "deny"]),
        ("auth_mechanism", ["proxy_authorization", "phantom_header", "phantom_path", "phantom_query"]),
        ("auth_outcome", ["succeeded", "failed"]),
        ("injection_mode", ["header", "url_path", "query_param", "basic_auth", "oauth2"]),
        (
            "denial_category",
            [
                "authentication_failed",
                "endpoint_policy",
                "managed_credential_unavailable",
                "host_denied",
                "intercept_handshake_failed",
                "upstream_connect_failed",
                "connect_bypasses_l7",
                "external_proxy_rejected",
            ],
        ),
    ],
)
def test_words_of_events(meta: SessionMetadata, key: str, values: list[str]) -> None:
    meta.set_network_events([{**EVENT, key: value} for value in values])
    assert [event[key] for event in meta.network_events] == values
    assert SessionMetadata.from_json(meta.to_json()).network_events == meta.network_events
    with pytest.raises(ValueError):
        meta.set_network_events([{**EVENT, key: "something else"}])


def test_bad_events_change_nothing(meta: SessionMetadata) -> None:
    meta.set_network_events([EVENT])
    untyped: Any = meta
    for key in EVENT:
        with pytest.raises(ValueError):
            untyped.set_network_events([EVENT, {k: v for k, v in EVENT.items() if k != key}])
    with pytest.raises(TypeError):
        untyped.set_network_events([EVENT, 3])
    with pytest.raises(OverflowError):
        untyped.set_network_events([EVENT, {**EVENT, "timestamp_unix_ms": -1}])
    assert len(meta.network_events) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [("port", 70000), ("port", "443"), ("method", 3), ("path", []), ("status", -1), ("reason", 1), ("route_id", {})]
    + [("managed_credential_active", "yes")],
)
def test_bad_optional_values_become_none(meta: SessionMetadata, key: str, value: Any) -> None:
    meta.set_network_events([{**EVENT, key: value}])
    assert meta.network_events[0][key] is None


def test_the_digest_is_that_of_its_json(meta: SessionMetadata) -> None:
    meta.set_network_events([{**EVENT, "injection_mode": "oauth2"}])
    mapping = json.loads(meta.to_json())
    assert audit.compute_session_digest(meta) == audit.compute_session_digest(mapping)
    # The property spells one word another way; it means the same.
    mapping["network_events"] = meta.network_events
    assert audit.compute_session_digest(meta) == audit.compute_session_digest(mapping)
    assert audit.build_ledger_record(meta, sequence=0, previous_chain=None)["session_id"] == "s1"


def test_paths_that_are_no_text() -> None:
    meta = SessionMetadata("s", [], ["/caf\udce9"])
    again = SessionMetadata.from_json(meta.to_json())
    assert again.tracked_paths == meta.tracked_paths == ["/caf\udce9"]
    mapping = {**json.loads(meta.to_json()), "tracked_paths": meta.tracked_paths}
    assert audit.compute_session_digest(meta) == audit.compute_session_digest(mapping)


def test_to_dict(meta: SessionMetadata) -> None:
    shown = meta.to_dict()
    assert set(KEYS) <= set(shown)
    assert shown["session_id"] == "s1"
