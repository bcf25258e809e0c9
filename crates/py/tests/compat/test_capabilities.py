"""AccessMode, CapabilitySource, FsCapability, CapabilitySet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nono_py import AccessMode, CapabilitySet, CapabilitySource, ProxyConfig, QueryContext, start_proxy

from .kit import untyped as nono

R, W, RW = AccessMode.READ, AccessMode.WRITE, AccessMode.READ_WRITE


def test_access_mode() -> None:
    assert [repr(mode) for mode in (R, W, RW)] == ["AccessMode.READ", "AccessMode.WRITE", "AccessMode.READ_WRITE"]
    assert [str(mode) for mode in (R, W, RW)] == ["read", "write", "read+write"]
    assert f"{RW}" == "read+write"
    assert {R: 1, W: 2, RW: 3}[nono.AccessMode.WRITE] == 2
    assert len({R, W, RW, AccessMode.READ}) == 3
    assert R != W
    assert nono.AccessMode.READ != 0 and not (nono.AccessMode.READ == 0)
    assert [int(mode) for mode in (nono.AccessMode.READ, nono.AccessMode.WRITE, nono.AccessMode.READ_WRITE)] == [0, 1, 2]
    assert AccessMode.READ is AccessMode.READ
    with pytest.raises(TypeError):
        nono.AccessMode.READ < nono.AccessMode.WRITE


def test_capability_source() -> None:
    assert str(CapabilitySource.user()) == "user"
    assert str(CapabilitySource.group("tmp_read")) == "group:tmp_read"
    assert str(CapabilitySource.group(name="x")) == "group:x"
    assert str(CapabilitySource.system()) == "system"
    assert repr(CapabilitySource.group("a")) == "CapabilitySource(group:a)"
    assert repr(CapabilitySource.user()) == "CapabilitySource(user)"


def test_fs_capability(tmp_path: Path) -> None:
    link = tmp_path / "link"
    real = tmp_path / "real"
    real.mkdir()
    link.symlink_to(real)
    caps = CapabilitySet()
    assert caps.fs_capabilities() == []
    caps.allow_path(str(link), RW)
    (real / "f").write_text("")
    caps.allow_file(path=str(real / "f"), mode=R)
    first, second = caps.fs_capabilities()
    assert (first.original, first.resolved) == (str(link), str(real.resolve()))
    assert (first.access, first.is_file, str(first.source)) == (RW, False, "user")
    assert repr(first) == f"FsCapability(path='{real.resolve()}', access=read+write, is_file=false)"
    assert str(first) == f"{real.resolve()} (read+write)"
    assert (second.is_file, second.access) == (True, R)
    assert repr(second).endswith("access=read, is_file=true)")
    assert caps.fs_capabilities()[0] != caps.fs_capabilities()[0]
    with pytest.raises(AttributeError):
        nono_first = first
        setattr(nono_first, "access", R)


def test_allow_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caps = CapabilitySet()
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(FileNotFoundError):
        caps.allow_path(str(tmp_path / "missing"), R)
    with pytest.raises(FileNotFoundError):
        caps.allow_path("", R)
    with pytest.raises(ValueError):
        caps.allow_path(str(file), R)
    with pytest.raises(OSError):
        caps.allow_path(str(file / "below"), R)
    with pytest.raises(OSError):
        caps.allow_path("a\0b", R)
    with pytest.raises(TypeError):
        nono.CapabilitySet().allow_path("/", "read")
    with pytest.raises(TypeError):
        nono.CapabilitySet().allow_path(3, R)
    assert caps.fs_capabilities() == []
    monkeypatch.chdir(tmp_path)
    caps.allow_path(".", R)
    assert caps.fs_capabilities()[0].resolved == str(tmp_path.resolve())
    assert caps.fs_capabilities()[0].original == "."
    caps.allow_path(tmp_path, R)
    monkeypatch.setenv("HOME", str(tmp_path))
    caps.allow_path("~", R)
    assert {grant.resolved for grant in caps.fs_capabilities()} == {str(tmp_path.resolve())}
    assert len(caps.fs_capabilities()) == 3


def test_allow_file(tmp_path: Path) -> None:
    caps = CapabilitySet()
    with pytest.raises(FileNotFoundError):
        caps.allow_file(str(tmp_path / "missing"), R)
    with pytest.raises(ValueError):
        caps.allow_file(str(tmp_path), R)
    os.mkfifo(tmp_path / "pipe")
    caps.allow_file(tmp_path / "pipe", W)
    caps.allow_file("/dev/null", RW)
    assert [grant.is_file for grant in caps.fs_capabilities()] == [True, True]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(folder)
    caps = CapabilitySet()
    caps.allow_path(folder, R)
    assert caps.fs_capabilities()[0].resolved == folder
    assert caps.path_covered(folder + "/x")
    assert QueryContext(caps).query_path(folder, R)["status"] == "allowed"


def test_network_modes() -> None:
    caps = CapabilitySet()
    assert caps.is_network_blocked is False
    assert repr(caps) == str(caps) == "CapabilitySet(fs=0, network=allowed)"
    caps.block_network()
    assert caps.is_network_blocked is True
    assert repr(caps) == "CapabilitySet(fs=0, network=blocked)"
    handle = start_proxy(ProxyConfig())
    try:
        caps.proxy_only(handle)
        assert repr(caps) == f"CapabilitySet(fs=0, network=proxy-only (localhost:{handle.port}))"
        assert caps.is_network_blocked is True
        caps.block_network()
        assert "network=blocked" in repr(caps)
    finally:
        handle.shutdown()
    caps.proxy_only(proxy=handle)
    assert "proxy-only" in repr(caps)
    with pytest.raises(AttributeError):
        setattr(caps, "is_network_blocked", False)


@pytest.mark.parametrize(
    "rule",
    [
        "(allow process-exec (subpath \"/\"))",
        '(allow file-read* (literal "/"))',
        '  (allow file-read* (subpath "/usr"))',
        "(version 1) ; a comment ( here",
        "(deny default) #| a ( block |#",
        '(allow file-read* (subpath "/a(b"))',
    ],
)
def test_platform_rules_that_pass(rule: str) -> None:
    CapabilitySet().platform_rule(rule)


@pytest.mark.parametrize(
    "rule",
    [
        '(allow file-read* (subpath "/"))',
        '(allow file-write* (subpath "/"))',
        '(allow\n file-read* #| x |# (subpath ; y\n "/"))',
        "",
        "allow",
        "(allow",
        "(allow))",
        '(allow "x)',
        "(allow) #| open",
    ],
)
def test_platform_rules_that_do_not(rule: str) -> None:
    with pytest.raises(ValueError):
        CapabilitySet().platform_rule(rule=rule)


def test_deduplicate(tmp_path: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(str(tmp_path), R)
    caps.allow_path(str(tmp_path), W)
    assert len(caps.fs_capabilities()) == 2
    caps.deduplicate()
    (kept,) = caps.fs_capabilities()
    assert kept.access == RW
    (tmp_path / "sub").mkdir()
    caps.allow_path(tmp_path / "sub", R)
    caps.deduplicate()
    assert len(caps.fs_capabilities()) == 2


def test_deduplicate_keeps_where_a_grant_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    monkeypatch.chdir(one)
    caps = CapabilitySet()
    caps.allow_path(one, R)
    caps.allow_path(".", R)
    caps.deduplicate()
    state = nono.SandboxState.from_json(nono.SandboxState.from_caps(caps).to_json())
    monkeypatch.chdir(two)
    assert [grant.resolved for grant in state.to_caps().fs_capabilities()] == [str(one.resolve())]


def test_path_covered(tmp_path: Path) -> None:
    caps = CapabilitySet()
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("")
    caps.allow_path(tmp_path / "d", R)
    caps.allow_file(tmp_path / "f", R)
    root = tmp_path.resolve()
    assert caps.path_covered(str(root / "d")) and caps.path_covered(path=str(root / "d" / "x" / "y"))
    assert not caps.path_covered(str(root / "dx"))
    assert not caps.path_covered(str(root / "f"))
    assert not caps.path_covered(str(root))


def test_summary(tmp_path: Path) -> None:
    caps = CapabilitySet()
    lines = caps.summary().split("\n")
    assert [line.strip() for line in lines] == ["(no capabilities granted)", "Network:", "outbound: allowed"]
    assert lines[1:] == ["Network:", "  outbound: allowed"]
    (tmp_path / "f").write_text("")
    caps.allow_path(tmp_path, RW)
    caps.allow_file(tmp_path / "f", R)
    caps.block_network()
    root = tmp_path.resolve()
    assert caps.summary() == "\n".join(
        [
            "Filesystem:",
            f"  {root} [read+write] (dir)",
            f"  {root / 'f'} [read] (file)",
            "Network:",
            "  outbound: blocked",
        ]
    )
