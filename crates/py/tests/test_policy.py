"""Policy documents."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import nono_py
from nono_py import AccessMode, CapabilitySet, Policy, load_policy


def policy(**groups: dict[str, Any]) -> Policy:
    return load_policy(json.dumps({"groups": {n: {"description": f"about {n}", **g} for n, g in groups.items()}}))


@pytest.fixture()
def home(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(project))
    monkeypatch.setenv("TMPDIR", str(project / "empty"))
    return project


def shown(caps: CapabilitySet) -> list[tuple[str, str, str]]:
    return [(str(grant.source), grant.resolved, str(grant.access)) for grant in caps.fs_capabilities()]


@pytest.mark.parametrize(
    "document",
    [
        {"groups": {}, "odd": 1},
        {"groups": {}, "meta": {"odd": 1}},
        {"groups": {"g": {"description": "", "odd": 1}}},
        {"groups": {"g": {"description": "", "allow": {"odd": []}}}},
        {"groups": {"g": {"description": "", "deny": {"odd": []}}}},
        {"groups": {"g": {"description": "", "network": {"odd": 1}}}},
        {
            "groups": {
                "g": {
                    "description": "",
                    "network": {"custom_credentials": {"c": {"prefix": "p", "upstream": "u", "odd": 1}}},
                }
            }
        },
    ],
)
def test_unknown_keys_are_named_at_every_level(document: object) -> None:
    with pytest.raises(ValueError, match="odd"):
        load_policy(json.dumps(document))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "EOF"),
        ("{}", "groups"),
        ('{"groups": {"g": {}}}', "description"),
        ('{"groups": {"g": {"description": ""}, "g": {"description": ""}}}', "`g`"),
        (
            '{"groups": {"g": {"description": "", "network": {"allow_proxy": [], "allow_domain": []}}}}',
            "duplicate field `allow_domain`",
        ),
    ],
)
def test_broken_documents_are_refused(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word) as raised:
        load_policy(json=text)
    assert getattr(raised.value, "kind") == "bad_json"


def test_a_policy_tells_its_groups() -> None:
    loaded = policy(b={}, a={"allow": {"read": ["/x"]}})
    assert loaded.group_names() == ["a", "b"]
    assert loaded.group_description("a") == "about a"
    assert loaded.group_description(name="c") is None
    assert repr(loaded) == "Policy(groups=2)"
    assert loaded.to_dict()["groups"]["a"] == {"description": "about a", "allow": {"read": ["/x"]}}


def test_groups_become_grants_in_order(home: Path) -> None:
    loaded = policy(
        g={
            "allow": {
                "readwrite": ["$HOME/README"],
                "write": ["$TMPDIR"],
                "read": ["~/src", "~/none", "~other", "$FOO/x", "~/link"],
            }
        },
        mac={"platform": "macos", "allow": {"read": ["~"]}},
        linux={"platform": "linux", "allow": {"read": ["$HOME"]}},
    )
    caps = CapabilitySet()
    resolved = loaded.resolve_groups(["g", "mac", "linux"], caps)
    assert shown(caps) == [
        ("group:g", str(home / "src"), "read"),
        ("group:g", str(home / "README"), "read"),
        ("group:g", str(home / "empty"), "write"),
        ("group:g", str(home / "README"), "read+write"),
        ("group:linux", str(home), "read"),
    ]
    assert resolved.names == ["g", "linux"]
    assert (resolved.deny_paths, resolved.needs_unlink_overrides) == ([], False)
    assert repr(resolved) == "ResolvedPolicy(names=2, deny_paths=0, needs_unlink_overrides=false)"
    assert resolved.to_dict() == {"names": ["g", "linux"], "needs_unlink_overrides": False, "deny_paths": []}
    assert not caps.is_network_blocked
    assert loaded.resolve_groups(("linux", "linux"), caps).names == ["linux", "linux"]


def test_a_refusal_leaves_the_set_as_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = policy(
        good={"allow": {"read": ["~"]}, "network": {"block": True}},
        temporary={"allow": {"read": ["$TMPDIR"]}},
    )
    caps = CapabilitySet()
    with pytest.raises(ValueError, match='unknown group "god".*"good"'):
        loaded.resolve_groups(["good", "god"], caps)
    monkeypatch.delenv("TMPDIR")
    with pytest.raises(ValueError, match="TMPDIR"):
        loaded.resolve_groups(["good", "temporary"], caps)
    monkeypatch.setenv("HOME", "relative")
    with pytest.raises(ValueError, match="HOME"):
        loaded.resolve_groups(["good"], caps)
    assert caps.fs_capabilities() == [] and not caps.is_network_blocked
    for call in (loaded.resolve_deny_paths, loaded.resolve_proxy_config):
        with pytest.raises(ValueError, match="unknown group"):
            call(["nothing"])
    wrong: Any = "good"
    with pytest.raises(TypeError):
        loaded.resolve_groups(wrong, caps)


def test_denied_paths_are_listed_as_written_and_where_they_lead(home: Path) -> None:
    (home / "folder").symlink_to("src")
    loaded = policy(
        d={
            "deny": {
                "access": ["~/README", "~/link", "~/folder/new"],
                "unlink": True,
                "unlink_override_for_user_writable": True,
            }
        }
    )
    expected = [str(home / name) for name in ("README", "link", "README", "folder/new", "src/new")]
    assert loaded.resolve_deny_paths(["d"]) == expected
    caps = CapabilitySet()
    resolved = loaded.resolve_groups(["d"], caps)
    assert resolved.deny_paths == expected and resolved.needs_unlink_overrides
    assert caps.fs_capabilities() == []
    resolved.deny_paths.clear()
    assert resolved.deny_paths == expected


@pytest.mark.parametrize(
    ("network", "blocked"),
    [
        ({}, False),
        ({"block": False}, False),
        ({"block": True}, True),
        ({"allow_domain": ["a.test"]}, True),
        ({"proxy_allow": ["a.test"]}, True),
        ({"external_proxy": "p.test:1"}, True),
        ({"external_proxy_bypass": ["a.test"]}, True),
        ({"max_connections": 4}, True),
        ({"custom_credentials": {"c": {"prefix": "/c", "upstream": "https://c.test"}}}, True),
    ],
)
def test_networks_are_closed_by_what_takes_a_proxy(network: dict[str, Any], blocked: bool) -> None:
    caps = CapabilitySet()
    policy(g={"network": network}).resolve_groups(["g"], caps)
    assert caps.is_network_blocked is blocked


def test_overlaps_are_those_strictly_below_directories_of_the_user(home: Path) -> None:
    caps = CapabilitySet()
    policy(g={"allow": {"read": ["~"]}}).resolve_groups(["g"], caps)
    nono_py.validate_deny_overlaps([home / "src"], caps)
    caps.allow_path(home / "src", AccessMode.READ)
    nono_py.validate_deny_overlaps([str(home / "src"), str(home), f"{home}/srcs"], caps)
    with pytest.raises(nono_py.PolicyError) as raised:
        nono_py.validate_deny_overlaps(deny_paths=["/x", str(home / "src" / "key")], caps=caps)
    assert isinstance(raised.value, RuntimeError)
    assert (raised.value.kind, raised.value.path) == ("deny_overlap", str(home / "src" / "key"))
    assert nono_py.apply_unlink_overrides(caps) is None  # type: ignore[func-returns-value]
    wrong: Any = str(home)
    with pytest.raises(TypeError):
        nono_py.validate_deny_overlaps(wrong, caps)


def test_required_groups_stay() -> None:
    loaded = policy(must={"required": True}, also={"required": True}, may={})
    loaded.validate_group_exclusions(["may", "unknown"])
    loaded.validate_group_exclusions([])
    with pytest.raises(ValueError, match="must.*also"):
        loaded.validate_group_exclusions(["must", "may", "also"])


# --- the embedded policy


def test_the_embedded_policy_is_a_document_like_any_other(home: Path) -> None:
    embedded = nono_py.load_embedded_policy()
    again = load_policy(nono_py.embedded_policy_json())
    assert again.to_dict() == embedded.to_dict() == json.loads(nono_py.embedded_policy_json())
    assert embedded.group_description("deny_credentials")
    assert all(embedded.group_description(name) for name in embedded.group_names())
    assert str(home / ".ssh") in embedded.resolve_deny_paths(["deny_credentials"])
    with pytest.raises(ValueError, match="deny_credentials"):
        embedded.validate_group_exclusions(["deny_credentials"])
    caps = CapabilitySet()
    resolved = embedded.resolve_groups(embedded.group_names(), caps)
    assert resolved.names == embedded.group_names()
    assert os.path.realpath("/usr") in [grant.resolved for grant in caps.fs_capabilities()]
    assert all(str(grant.source).startswith("group:") for grant in caps.fs_capabilities())


def test_the_embedded_policy_knows_the_folders_of_this_user(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "settings"))
    denied = nono_py.load_embedded_policy().resolve_deny_paths(["deny_credentials"])
    assert str(home / "settings" / "gcloud") in denied
    assert str(home / ".config" / "gcloud") in denied


def test_a_grant_of_the_home_folder_overlaps_with_what_is_denied(home: Path) -> None:
    embedded = nono_py.load_embedded_policy()
    caps = CapabilitySet()
    resolved = embedded.resolve_groups(["deny_credentials"], caps)
    nono_py.validate_deny_overlaps(resolved.deny_paths, caps)
    caps.allow_path(home, AccessMode.READ)
    with pytest.raises(nono_py.PolicyError, match="lies in"):
        nono_py.validate_deny_overlaps(resolved.deny_paths, caps)
