"""QueryContext: what the kernel would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from nono_py import AccessMode, CapabilitySet, ProxyConfig, QueryContext, start_proxy

from .kit import untyped as nono

R, W, RW = AccessMode.READ, AccessMode.WRITE, AccessMode.READ_WRITE
NOT_GRANTED = {"status": "denied", "reason": "path_not_granted"}


def context(*grants: tuple[Path, AccessMode]) -> QueryContext:
    caps = CapabilitySet()
    for path, mode in grants:
        if path.is_dir():
            caps.allow_path(path, mode)
        else:
            caps.allow_file(path, mode)
    return QueryContext(caps)


def test_shapes(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "d").mkdir()
    query = context((root / "d", R))
    allowed = query.query_path(str(root / "d" / "new"), R)
    assert list(allowed.items()) == [
        ("status", "allowed"),
        ("reason", "granted_path"),
        ("granted_path", str(root / "d")),
        ("access", "read"),
    ]
    wrong = query.query_path(path=str(root / "d"), mode=W)
    assert list(wrong.items()) == [
        ("status", "denied"),
        ("reason", "insufficient_access"),
        ("granted", "read"),
        ("requested", "write"),
    ]
    assert dict(query.query_path(root / "d", RW))["requested"] == "read+write"
    assert query.query_path(str(root), R) == NOT_GRANTED
    assert query.query_path(str(root / "dx"), R) == NOT_GRANTED
    with pytest.raises(TypeError):
        nono.QueryContext()


def test_modes(tmp_path: Path) -> None:
    both, write = tmp_path / "b", tmp_path / "w"
    both.mkdir()
    write.mkdir()
    query = context((both, RW), (write, W))
    assert all(query.query_path(both, mode)["status"] == "allowed" for mode in (R, W, RW))
    assert query.query_path(write, W)["status"] == "allowed"
    assert query.query_path(write, R)["reason"] == "insufficient_access"
    assert dict(query.query_path(both, W))["access"] == "read+write"


def test_a_file_is_only_itself(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("")
    query = context((file, R))
    assert query.query_path(file, R)["status"] == "allowed"
    assert query.query_path(tmp_path / "g", R) == NOT_GRANTED
    assert query.query_path(str(file) + "x", R) == NOT_GRANTED


def test_links_lead_where_they_lead(tmp_path: Path) -> None:
    granted, secret = tmp_path / "g", tmp_path / "s"
    granted.mkdir()
    secret.mkdir()
    (granted / "out").symlink_to(secret)
    (tmp_path / "in").symlink_to(granted)
    query = context((granted, R))
    assert query.query_path(granted / "out" / "x", R) == NOT_GRANTED
    assert query.query_path(tmp_path / "in" / "x", R)["status"] == "allowed"


def test_the_most_permissive_grant_decides(tmp_path: Path) -> None:
    sub = tmp_path / "sub"
    sub.mkdir()
    for grants in ([(tmp_path, R), (sub, RW)], [(sub, RW), (tmp_path, R)]):
        query = context(*grants)
        assert query.query_path(sub / "x", W)["status"] == "allowed"
        assert query.query_path(tmp_path / "x", W)["reason"] == "insufficient_access"


@pytest.mark.parametrize("way", ["missing/../../secret", "../secret", "missing/../../../../../../etc/passwd", "a/../../secret"])
def test_dots_never_widen(tmp_path: Path, way: str) -> None:
    granted = tmp_path / "granted"
    (granted / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("")
    assert context((granted, RW)).query_path(f"{granted}/{way}", R)["status"] == "denied"


def test_the_set_is_copied(tmp_path: Path) -> None:
    caps = CapabilitySet()
    query = QueryContext(caps=caps)
    caps.allow_path(tmp_path, R)
    caps.block_network()
    assert query.query_path(tmp_path, R) == NOT_GRANTED
    assert query.query_network()["status"] == "allowed"


def test_network() -> None:
    caps = CapabilitySet()
    allowed = {"status": "allowed", "reason": "network_allowed"}
    denied = {"status": "denied", "reason": "network_blocked"}
    assert QueryContext(caps).query_network() == allowed
    handle = start_proxy(ProxyConfig())
    try:
        caps.proxy_only(handle)
    finally:
        handle.shutdown()
    assert QueryContext(caps).query_network() == denied
    caps.block_network()
    assert QueryContext(caps).query_network() == denied
