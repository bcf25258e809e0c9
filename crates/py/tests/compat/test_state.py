"""SandboxState: grants as JSON, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nono_py import AccessMode, CapabilitySet, ProxyConfig, SandboxState, load_policy, start_proxy

R, W, RW = AccessMode.READ, AccessMode.WRITE, AccessMode.READ_WRITE


@pytest.fixture()
def caps(tmp_path: Path) -> CapabilitySet:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("")
    caps = CapabilitySet()
    caps.allow_path(tmp_path / "d", RW)
    caps.allow_file(tmp_path / "f", R)
    return caps


def test_json(caps: CapabilitySet, tmp_path: Path) -> None:
    state = SandboxState.from_caps(caps)
    assert repr(state) == "SandboxState(fs=2, net_blocked=false)"
    assert state.net_blocked is False
    written = json.loads(state.to_json())
    assert list(written)[0] == "fs" and "net_blocked" in written and "unix_sockets" not in written
    assert list(written["fs"][0])[:4] == ["original", "resolved", "access", "is_file"]
    assert [grant["access"] for grant in written["fs"]] == ["read+write", "read"]
    assert [grant["is_file"] for grant in written["fs"]] == [False, True]
    assert written["fs"][0]["resolved"] == str((tmp_path / "d").resolve())
    assert state.to_json() == json.dumps(written, indent=2, ensure_ascii=False)


def test_round_trip(caps: CapabilitySet) -> None:
    caps.block_network()
    state = SandboxState.from_json(SandboxState.from_caps(caps=caps).to_json())
    assert repr(state) == "SandboxState(fs=2, net_blocked=true)"
    again = state.to_caps()
    assert again.is_network_blocked
    shown = [(g.original, g.resolved, g.access, g.is_file) for g in caps.fs_capabilities()]
    assert [(g.original, g.resolved, g.access, g.is_file) for g in again.fs_capabilities()] == shown


def test_sources_survive(tmp_path: Path) -> None:
    policy = load_policy(json.dumps({"groups": {"g": {"description": "", "allow": {"read": [str(tmp_path)]}}}}))
    caps = CapabilitySet()
    caps.allow_path(tmp_path, W)
    policy.resolve_groups(["g"], caps)
    again = SandboxState.from_json(SandboxState.from_caps(caps).to_json()).to_caps()
    assert [str(grant.source) for grant in again.fs_capabilities()] == ["user", "group:g"]


def test_proxy_only_comes_back_blocked() -> None:
    caps = CapabilitySet()
    handle = start_proxy(ProxyConfig())
    try:
        caps.proxy_only(handle)
    finally:
        handle.shutdown()
    state = SandboxState.from_caps(caps)
    assert state.net_blocked
    assert repr(state.to_caps()) == "CapabilitySet(fs=0, network=blocked)"


@pytest.mark.parametrize(
    "text",
    ["", "no json", "{}", "[]", '{"fs":[]}', '{"net_blocked":false}', '{"fs":[],"net_blocked":1}']
    + ['{"fs":[{"path":"/","access":"ReadWrite"}],"net_blocked":false}', "[" * 100_000],
)
def test_what_is_no_state(text: str) -> None:
    with pytest.raises(ValueError, match="^Invalid JSON:"):
        SandboxState.from_json(json=text)


def state_of(**changes: Any) -> SandboxState:
    grant = {"original": "/usr", "resolved": "/usr", "access": "read", "is_file": False, **changes}
    return SandboxState.from_json(json.dumps({"fs": [grant], "net_blocked": False, "more": 1}))


def test_unknown_keys_are_ignored() -> None:
    assert [grant.resolved for grant in state_of(more=2).to_caps().fs_capabilities()] == ["/usr"]


def test_what_cannot_be_granted_again(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        state_of(access="ReadWrite").to_caps()
    with pytest.raises(FileNotFoundError):
        missing = str(tmp_path / "missing")
        state_of(original=missing, resolved=missing).to_caps()
    with pytest.raises(ValueError):
        state_of(is_file=True).to_caps()
