"""Policy, ResolvedPolicy and what goes with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nono_py import (
    AccessMode,
    CapabilitySet,
    Policy,
    ProxyConfig,
    apply_unlink_overrides,
    embedded_policy_json,
    load_embedded_policy,
    load_policy,
    validate_deny_overlaps,
)


def policy(**groups: dict[str, Any]) -> Policy:
    return load_policy(json.dumps({"groups": {name: {"description": name, **group} for name, group in groups.items()}}))


def test_names_and_descriptions() -> None:
    loaded = policy(b={}, a={"description": "first"})
    assert loaded.group_names() == ["a", "b"]
    assert loaded.group_description("a") == "first"
    assert loaded.group_description(name="nothing") is None
    assert repr(loaded) == "Policy(groups=2)"


def test_embedded() -> None:
    document = json.loads(embedded_policy_json())
    loaded = load_embedded_policy()
    assert loaded.group_names() == sorted(document["groups"])
    assert loaded.group_description("deny_credentials")
    assert load_policy(embedded_policy_json()).group_names() == loaded.group_names()
    assert loaded.resolve_deny_paths(["deny_credentials"])


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"groups": {}, "surprise": 1}, "surprise"),
        ({"groups": {}, "meta": {"surprise": 1}}, "surprise"),
        ({"groups": {"g": {"description": "", "surprise": 1}}}, "surprise"),
        ({"groups": {"g": {"description": "", "allow": {"surprise": []}}}}, "surprise"),
        ({"groups": {"g": {"description": "", "deny": {"surprise": []}}}}, "surprise"),
        ({"groups": {"g": {"description": "", "network": {"surprise": []}}}}, "surprise"),
        (
            {
                "groups": {
                    "g": {
                        "description": "",
                        "network": {"custom_credentials": {"c": {"prefix": "p", "upstream": "u", "surprise": 1}}},
                    }
                }
            },
            "surprise",
        ),
        ({}, "groups"),
        ({"groups": {"g": {}}}, "description"),
        ({"groups": {"g": {"description": 3}}}, None),
        ({"groups": {"g": {"description": "", "required": 1}}}, None),
        ({"groups": {"g": {"description": "", "network": {"allow_domain": [], "allow_proxy": []}}}}, None),
        ({"groups": {"g": {"description": "", "network": {"upstream_proxy": "a", "external_proxy": "b"}}}}, None),
        ([], None),
    ],
)
def test_bad_documents(document: Any, key: str | None) -> None:
    with pytest.raises(ValueError, match=key):
        load_policy(json.dumps(document))


@pytest.mark.parametrize("text", ["", "no json", "[" * 100_000])
def test_no_documents(text: str) -> None:
    with pytest.raises(ValueError):
        load_policy(json=text)


def test_what_is_optional() -> None:
    document = {"meta": {"version": 3, "schema_version": "3.0"}, "groups": {}, "profiles": {"any": ["thing"]}}
    assert load_policy(json.dumps(document)).group_names() == []


def test_resolve_groups(tmp_path: Path) -> None:
    for name in "rwb":
        (tmp_path / name).mkdir()
    (tmp_path / "f").write_text("")
    loaded = policy(
        g={
            "allow": {
                "readwrite": [str(tmp_path / "b")],
                "write": [str(tmp_path / "w")],
                "read": [str(tmp_path / "r"), str(tmp_path / "missing"), str(tmp_path / "f")],
            }
        },
        other={"platform": "macos", "allow": {"read": [str(tmp_path)]}},
        here={"platform": "linux"},
    )
    caps = CapabilitySet()
    resolved = loaded.resolve_groups(["g", "other", "here"], caps)
    assert resolved.names == ["g", "here"]
    assert resolved.deny_paths == [] and resolved.needs_unlink_overrides is False
    assert repr(resolved) == "ResolvedPolicy(names=2, deny_paths=0, needs_unlink_overrides=false)"
    grants = caps.fs_capabilities()
    root = tmp_path.resolve()
    assert [(grant.resolved, grant.access, grant.is_file) for grant in grants] == [
        (str(root / "r"), AccessMode.READ, False),
        (str(root / "f"), AccessMode.READ, True),
        (str(root / "w"), AccessMode.WRITE, False),
        (str(root / "b"), AccessMode.READ_WRITE, False),
    ]
    assert {str(grant.source) for grant in grants} == {"group:g"}
    assert resolved.to_dict()["names"] == ["g", "here"]


def test_duplicated_names_resolve_twice(tmp_path: Path) -> None:
    caps = CapabilitySet()
    loaded = policy(g={"allow": {"read": [str(tmp_path)]}})
    loaded.resolve_groups(group_names=("g", "g"), caps=caps)
    assert len(caps.fs_capabilities()) == 2


def test_unknown_groups() -> None:
    loaded = policy(g={})
    with pytest.raises(ValueError, match="nothing"):
        loaded.resolve_groups(["nothing"], CapabilitySet())
    with pytest.raises(ValueError):
        loaded.resolve_deny_paths(["nothing"])
    with pytest.raises(ValueError):
        loaded.resolve_proxy_config(["nothing"])
    untyped: Any = loaded
    with pytest.raises(TypeError):
        untyped.resolve_groups("g", CapabilitySet())


@pytest.mark.parametrize(
    ("network", "blocked"),
    [
        ({"block": True}, True),
        ({"block": False}, False),
        ({}, False),
        ({"allow_domain": ["example.com"]}, True),
        ({"proxy_allow": ["example.com"]}, True),
        ({"upstream_proxy": "proxy:3128"}, True),
    ],
)
def test_network(network: dict[str, Any], blocked: bool) -> None:
    caps = CapabilitySet()
    policy(g={"network": network}).resolve_groups(["g"], caps)
    assert caps.is_network_blocked is blocked


def test_paths_expand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    paths = ["~", "~/sub", "$HOME", "$HOME/sub", "$TMPDIR", "$TMPDIR/sub"]
    caps = CapabilitySet()
    loaded = policy(g={"allow": {"read": paths}})
    loaded.resolve_groups(["g"], caps)
    root = tmp_path.resolve()
    assert [grant.resolved for grant in caps.fs_capabilities()] == [str(root), str(root / "sub")] * 3
    for value in (None, "relative"):
        if value is None:
            monkeypatch.delenv("HOME")
        else:
            monkeypatch.setenv("HOME", value)
        with pytest.raises(ValueError):
            loaded.resolve_groups(["g"], CapabilitySet())


def test_deny_paths(tmp_path: Path) -> None:
    real, link = tmp_path.resolve() / "real", tmp_path.resolve() / "link"
    real.mkdir()
    link.symlink_to(real)
    loaded = policy(g={"deny": {"access": [str(link), str(link / "missing")], "unlink": True}})
    expected = {str(link), str(real), str(link / "missing"), str(real / "missing")}
    assert set(loaded.resolve_deny_paths(["g"])) == expected
    caps = CapabilitySet()
    resolved = loaded.resolve_groups(["g"], caps)
    assert set(resolved.deny_paths) == expected
    assert caps.fs_capabilities() == []


def test_unlink_overrides(tmp_path: Path) -> None:
    caps = CapabilitySet()
    loaded = policy(g={"deny": {"unlink_override_for_user_writable": True}})
    assert loaded.resolve_groups(["g"], caps).needs_unlink_overrides is True
    caps.allow_path(tmp_path, AccessMode.READ_WRITE)
    before = caps.summary()
    apply_unlink_overrides(caps=caps)
    assert caps.summary() == before


def test_deny_overlaps(tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    user = CapabilitySet()
    user.allow_path(root, AccessMode.READ)
    with pytest.raises(RuntimeError):
        validate_deny_overlaps([root + "/secret"], user)
    validate_deny_overlaps(deny_paths=[root, root + "x", "/elsewhere"], caps=user)
    group = CapabilitySet()
    policy(g={"allow": {"read": [root]}}).resolve_groups(["g"], group)
    validate_deny_overlaps([root + "/secret"], group)


def test_group_exclusions() -> None:
    loaded = policy(must={"required": True}, may={})
    loaded.validate_group_exclusions(["may", "unknown"])
    with pytest.raises(ValueError, match="must"):
        loaded.validate_group_exclusions(excluded_groups=["must"])


def test_proxy_config() -> None:
    loaded = policy(
        a={"network": {"allow_domain": ["one", "two"], "max_connections": 20}},
        b={"network": {"allow_proxy": ["two", "three"], "max_connections": 10, "external_proxy": "p:1"}},
        same={"network": {"upstream_proxy": "p:1"}},
        other={"network": {"upstream_proxy": "q:1"}},
        block={"network": {"block": True}},
        secret={"network": {"credentials": ["openai"]}},
        bypass={"network": {"upstream_bypass": ["x"]}},
        route={"network": {"custom_credentials": {"c": {"prefix": "api", "upstream": "https://api.example.com"}}}},
        none={},
    )
    config = loaded.resolve_proxy_config(["a", "b", "same"])
    assert isinstance(config, ProxyConfig)
    assert config.allowed_hosts == ["one", "two", "three"]
    assert config.max_connections == 10
    assert loaded.resolve_proxy_config(group_names=["none"]) is None
    assert loaded.resolve_proxy_config(["block"]) is None
    assert loaded.resolve_proxy_config([]) is None
    assert loaded.resolve_proxy_config(["bypass"]) is not None
    with pytest.raises(ValueError, match="Conflicting upstream_proxy values"):
        loaded.resolve_proxy_config(["b", "other"])
    with pytest.raises(ValueError):
        loaded.resolve_proxy_config(["secret"])
    routed = loaded.resolve_proxy_config(["route"])
    assert routed is not None
    (route,) = routed.routes
    assert (route.prefix, route.upstream, route.inject_header) == ("api", "https://api.example.com", "Authorization")
    assert repr(route.inject_mode) == "InjectMode.HEADER" and route.credential_format == "Bearer {}"
