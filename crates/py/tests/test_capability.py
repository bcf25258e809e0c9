"""Sets of capabilities, questions about them, and their JSON."""

from __future__ import annotations

import copy
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import nono_py
from nono_py import (
    AccessMode,
    CapabilitySet,
    CapabilitySource,
    QueryContext,
    SandboxState,
    load_policy,
)

READ, WRITE, READ_WRITE = AccessMode.READ, AccessMode.WRITE, AccessMode.READ_WRITE


def group_grant(caps: CapabilitySet, group: str, path: Path, mode: str) -> None:
    """A grant whose source is a group."""
    document = {"groups": {group: {"description": "", "allow": {mode: [str(path)]}}}}
    load_policy(json.dumps(document)).resolve_groups([group], caps)


def shown(caps: CapabilitySet) -> list[tuple[str, str, str]]:
    return [(str(grant.source), grant.resolved, str(grant.access)) for grant in caps.fs_capabilities()]


# --- AccessMode, CapabilitySource, FsCapability


def test_access_modes_are_values() -> None:
    modes = [READ, WRITE, READ_WRITE]
    assert [repr(mode) for mode in modes] == ["AccessMode.READ", "AccessMode.WRITE", "AccessMode.READ_WRITE"]
    assert [str(mode) for mode in modes] == ["read", "write", "read+write"]
    assert [f"{mode}" for mode in modes] == ["read", "write", "read+write"]
    assert [int(mode) for mode in modes] == [0, 1, 2]
    assert len({READ, WRITE, READ_WRITE, AccessMode.READ}) == 3
    assert READ == AccessMode.READ and READ is AccessMode.READ and READ != WRITE
    zero: object = 0
    assert READ != zero


def test_sources_show_who_asked() -> None:
    for source, word, as_dict in [
        (CapabilitySource.user(), "user", {"kind": "user", "name": None}),
        (CapabilitySource.group("tmp_read"), "group:tmp_read", {"kind": "group", "name": "tmp_read"}),
        (CapabilitySource.system(), "system", {"kind": "system", "name": None}),
    ]:
        assert str(source) == word
        assert repr(source) == f"CapabilitySource({word})"
        assert source.to_dict() == as_dict
    assert CapabilitySource.user() != CapabilitySource.user()


def test_a_grant_shows_itself(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_file(project / "link", READ)
    (grant,) = caps.fs_capabilities()
    assert grant.original == str(project / "link")
    assert grant.resolved == str(project / "README")
    assert (grant.access, grant.is_file, str(grant.source)) == (READ, True, "user")
    assert repr(grant) == f"FsCapability(path='{project}/README', access=read, is_file=true)"
    assert str(grant) == f"{project}/README (read)"
    assert grant.to_dict() == {
        "original": str(project / "link"),
        "resolved": str(project / "README"),
        "access": "read",
        "is_file": True,
        "source": "user",
    }
    with pytest.raises(AttributeError):
        setattr(grant, "resolved", "/")


def test_classes_are_closed() -> None:
    for value in (CapabilitySet(), QueryContext(CapabilitySet()), CapabilitySource.user(), READ):
        kind = type(value)
        assert kind.__module__ == "nono_py"
        with pytest.raises(TypeError):
            type("Sub", (kind,), {})
        with pytest.raises(AttributeError):
            setattr(value, "unknown", 1)
        with pytest.raises(TypeError):
            pickle.dumps(value)
        with pytest.raises(TypeError):
            copy.copy(value)
    for made_elsewhere in (
        AccessMode,
        CapabilitySource,
        nono_py.FsCapability,
        nono_py.SupportInfo,
        SandboxState,
        nono_py.Policy,
        nono_py.ResolvedPolicy,
    ):
        with pytest.raises(TypeError):
            made_elsewhere()


# --- CapabilitySet


def test_a_new_set_grants_nothing_and_leaves_the_network_open() -> None:
    caps = CapabilitySet()
    assert caps.fs_capabilities() == []
    assert not caps.is_network_blocked
    assert repr(caps) == str(caps) == "CapabilitySet(fs=0, network=allowed)"
    assert caps.summary() == "(no capabilities granted)\nNetwork:\n  outbound: allowed"
    caps.block_network()
    assert caps.is_network_blocked
    assert repr(caps) == "CapabilitySet(fs=0, network=blocked)"


def test_paths_are_checked_when_they_are_added(project: Path) -> None:
    caps = CapabilitySet()
    for missing in (project / "none", ""):
        with pytest.raises(FileNotFoundError) as raised:
            caps.allow_path(missing, READ)
        assert getattr(raised.value, "kind") == "not_found"
        with pytest.raises(FileNotFoundError):
            caps.allow_file(missing, READ)
    with pytest.raises(ValueError, match="README is not a directory"):
        caps.allow_path(project / "README", READ)
    with pytest.raises(ValueError, match="src is a directory"):
        caps.allow_file(project / "src", READ)
    with pytest.raises(NotADirectoryError) as not_a_directory:
        caps.allow_file(project / "README" / "x", READ)
    assert not_a_directory.value.filename == str(project / "README" / "x")
    with pytest.raises(OSError):
        caps.allow_path(str(project) + "\0", READ)
    closed = project / "closed"
    (closed / "in").mkdir(parents=True)
    closed.chmod(0)
    with pytest.raises(PermissionError):
        caps.allow_path(closed / "in", READ)
    closed.chmod(0o755)
    assert caps.fs_capabilities() == []


def test_arguments_have_their_types(project: Path) -> None:
    caps = CapabilitySet()
    arguments: list[tuple[Any, Any]] = [(1, READ), (None, READ), (project, 0), (project, "read")]
    for path, mode in arguments:
        with pytest.raises(TypeError):
            caps.allow_path(path, mode)
    caps.allow_path(path=str(project), mode=READ)
    caps.allow_file(path=os.fspath(project / "README"), mode=WRITE)
    caps.allow_file("/dev/null", READ_WRITE)
    assert [grant.is_file for grant in caps.fs_capabilities()] == [False, True, True]


def test_home_relative_paths_and_any_bytes(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(project)
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    os.mkdir(odd)
    caps = CapabilitySet()
    caps.allow_path("~/project", READ)
    caps.allow_path("src", READ)
    caps.allow_path(odd, READ)
    resolved = [grant.resolved for grant in caps.fs_capabilities()]
    assert resolved == [str(project), str(project / "src"), odd]
    assert f"  {odd} [read] (dir)\n" in caps.summary()
    assert odd in repr(caps.fs_capabilities()[2])
    assert caps.path_covered(odd + "/x")
    state = SandboxState.from_json(SandboxState.from_caps(caps).to_json())
    assert [grant.resolved for grant in state.to_caps().fs_capabilities()] == resolved


def test_the_summary_has_one_line_a_grant(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, READ_WRITE)
    caps.allow_file(project / "README", WRITE)
    caps.block_network()
    assert caps.summary() == (
        f"Filesystem:\n  {project} [read+write] (dir)\n  {project}/README [write] (file)\n"
        "Network:\n  outbound: blocked"
    )


def test_lists_are_fresh(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, READ)
    caps.fs_capabilities().clear()
    assert len(caps.fs_capabilities()) == 1
    assert caps.fs_capabilities()[0] != caps.fs_capabilities()[0]


def test_covering_is_lexical_and_never_through_dots(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, READ)
    caps.allow_file("/dev/null", READ)
    assert caps.path_covered(str(project)) and caps.path_covered(project / "any" / "where")
    assert not caps.path_covered(f"{project}x")
    assert not caps.path_covered(f"{project}/../etc")
    assert not caps.path_covered("/dev/null")
    assert not caps.path_covered("project")


def test_a_set_is_a_plain_dict(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, READ)
    caps.deny_path(project / "src")
    caps.platform_rule("(allow mach-lookup)")
    as_dict = caps.to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict
    assert as_dict["network"] == "allowed" and as_dict["network_blocked"] is False
    assert as_dict["denied"] == [str(project / "src")]
    assert as_dict["platform_rules"] == ["(allow mach-lookup)"]
    assert [entry["resolved"] for entry in as_dict["fs"]] == [str(project)]


def test_platform_rules_are_checked_everywhere() -> None:
    caps = CapabilitySet()
    for fine in (
        '(allow process-exec (subpath "/"))',
        '(allow file-read* (literal "/"))',
        ' (deny file-write* (subpath "/x")) ; a word',
    ):
        caps.platform_rule(rule=fine)
    for broken in (
        "",
        "allow",
        "(allow",
        "(a))",
        '(a "b)',
        "(a #| b)",
        '(allow file-read* (subpath "/"))',
        '(allow #| |# file-write* ; x\n(subpath "/"))',
    ):
        with pytest.raises(ValueError) as raised:
            caps.platform_rule(broken)
        assert getattr(raised.value, "kind") == "platform_rule"
    assert len(caps.to_dict()["platform_rules"]) == 3


def test_duplicates_of_one_source_are_joined(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, READ)
    caps.allow_path(project, WRITE)
    caps.allow_path(project / "src", READ)
    assert len(caps.fs_capabilities()) == 3
    caps.deduplicate()
    assert shown(caps) == [("user", str(project), "read+write"), ("user", str(project / "src"), "read")]


def test_deduplicate_gives_no_grant_what_another_asked_for(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, READ)
    group_grant(caps, "g", project, "write")
    context = QueryContext(caps)
    before = [context.query_path(project / "new", mode)["status"] for mode in (READ, WRITE, READ_WRITE)]
    caps.deduplicate()
    assert shown(caps) == [("user", str(project), "read"), ("group:g", str(project), "write")]
    context = QueryContext(caps)
    after = [context.query_path(project / "new", mode)["status"] for mode in (READ, WRITE, READ_WRITE)]
    # The kernel adds up grants whatever their source, so both give the same answers.
    assert before == after == ["allowed"] * 3

    narrower = CapabilitySet()
    narrower.allow_path(project, READ_WRITE)
    group_grant(narrower, "g", project, "read")
    narrower.deduplicate()
    assert shown(narrower) == [("user", str(project), "read+write")]


def test_deduplicate_keeps_what_original_means(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    caps = CapabilitySet()
    caps.allow_path(str(project), READ)
    caps.allow_path(".", WRITE)
    caps.deduplicate()
    (grant,) = caps.fs_capabilities()
    assert (grant.original, grant.access) == (str(project), READ_WRITE)
    monkeypatch.chdir(tmp_path)
    (again,) = SandboxState.from_caps(caps).to_caps().fs_capabilities()
    assert again.resolved == str(project)


# --- QueryContext


def test_answers_have_their_keys(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project / "src", READ)
    caps.allow_file(project / "README", READ_WRITE)
    context = QueryContext(caps)
    allowed = context.query_path(project / "src" / "main.py", READ)
    assert list(allowed.items()) == [
        ("status", "allowed"),
        ("reason", "granted_path"),
        ("granted_path", str(project / "src")),
        ("access", "read"),
    ]
    assert list(context.query_path(str(project / "src"), READ_WRITE).items()) == [
        ("status", "denied"),
        ("reason", "insufficient_access"),
        ("granted", "read"),
        ("requested", "read+write"),
    ]
    assert context.query_path(project / "run.sh", READ) == {"status": "denied", "reason": "path_not_granted"}
    for mode in (READ, WRITE, READ_WRITE):
        assert context.query_path(project / "README", mode)["status"] == "allowed"
        assert context.query_path(project / "link", mode)["status"] == "allowed"
    caps.allow_path(project, READ_WRITE)
    assert context.query_path(project / "run.sh", READ)["status"] == "denied"


def test_write_only_answers(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, WRITE)
    context = QueryContext(caps)
    assert context.query_path(project / "new" / "newer", WRITE)["status"] == "allowed"
    assert context.query_path(project, READ)["reason"] == "insufficient_access"


@pytest.mark.parametrize("order", [1, -1])
def test_the_most_permissive_grant_decides(project: Path, order: int) -> None:
    caps = CapabilitySet()
    for path, mode in [(project, READ), (project / "src", READ_WRITE)][::order]:
        caps.allow_path(path, mode)
    answer = QueryContext(caps).query_path(project / "src" / "main.py", WRITE)
    assert answer["status"] == "allowed"
    assert answer["granted_path"] == str(project / "src")
    assert answer["access"] == "read+write"


def test_neither_dots_nor_links_widen_an_answer(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("")
    (project / "out").symlink_to("../secret")
    (project / "dangling").symlink_to(tmp_path / "secret" / "new")
    caps = CapabilitySet()
    caps.allow_path(project, READ_WRITE)
    context = QueryContext(caps)
    for path in (
        f"{project}/../secret/key",
        f"{project}/missing/../../secret/key",
        f"{project}/missing/../../../../../../../../etc/passwd",
        f"{project}/src/../out/key",
        f"{project}/out/key",
        f"{project}/out/new",
        f"{project}/dangling",
        f"{project}/missing/../dangling",
        f"{project}x",
        "",
        f"{project}/\0",
    ):
        for mode in (READ, WRITE, READ_WRITE):
            assert context.query_path(path, mode) == {"status": "denied", "reason": "path_not_granted"}, path
    assert context.query_path(f"{project}/src/../new", WRITE)["status"] == "allowed"


def test_denied_paths_answer_so(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, READ_WRITE)
    caps.deny_path(project / "src")
    answer = QueryContext(caps).query_path(project / "src" / "main.py", READ)
    assert answer == {"status": "denied", "reason": "path_denied"}
    caps.allow_file(project / "src" / "main.py", READ)
    with pytest.raises(nono_py.PolicyError) as raised:
        QueryContext(caps)
    assert raised.value.kind == "contradiction"


def test_relative_paths_are_relative_to_the_working_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caps = CapabilitySet()
    caps.allow_path(project / "src", READ)
    context = QueryContext(caps)
    monkeypatch.chdir(project)
    assert context.query_path("src/main.py", READ)["status"] == "allowed"
    assert context.query_path("README", READ)["status"] == "denied"


def test_the_network_is_one_question() -> None:
    caps = CapabilitySet()
    assert QueryContext(caps).query_network() == {"status": "allowed", "reason": "network_allowed"}
    caps.block_network()
    assert QueryContext(caps=caps).query_network() == {"status": "denied", "reason": "network_blocked"}


# --- SandboxState


def test_a_state_is_json_of_a_fixed_shape(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, READ_WRITE)
    state = SandboxState.from_caps(caps)
    assert state.to_json() == (
        '{\n  "fs": [\n    {\n'
        f'      "original": "{project}",\n      "resolved": "{project}",\n'
        '      "access": "read+write",\n      "is_file": false\n    }\n  ],\n'
        '  "net_blocked": false\n}'
    )
    assert repr(state) == "SandboxState(fs=1, net_blocked=false)"
    assert state.net_blocked is False
    assert state.to_dict()["fs"][0]["source"] == "user"


def test_a_state_keeps_grants_network_and_sources(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_file(project / "README", WRITE)
    group_grant(caps, "tools", project / "src", "read")
    caps.block_network()
    again = SandboxState.from_json(SandboxState.from_caps(caps).to_json()).to_caps()
    assert shown(again) == shown(caps)
    assert [grant.is_file for grant in again.fs_capabilities()] == [True, False]
    assert again.is_network_blocked


def test_a_state_never_leads_elsewhere(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "src")
    caps = CapabilitySet()
    caps.allow_path(".", READ)
    state = SandboxState.from_json(SandboxState.from_caps(caps).to_json())
    monkeypatch.chdir(tmp_path)
    assert [grant.resolved for grant in state.to_caps().fs_capabilities()] == [str(project / "src")]
    (project / "src").rename(project / "moved")
    with pytest.raises(FileNotFoundError):
        state.to_caps()
    (project / "src").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="not what was granted"):
        state.to_caps()
    (project / "src").unlink()
    (project / "src").write_text("")
    with pytest.raises(ValueError, match="is not a directory"):
        state.to_caps()


def test_a_state_keeps_closed_what_was_closed(project: Path) -> None:
    caps = CapabilitySet()
    caps.allow_path(project, READ)
    caps.deny_path(project / "src")
    state = SandboxState.from_json(SandboxState.from_caps(caps).to_json())
    assert state.to_dict()["denied"] == [str(project / "src")]
    answer = QueryContext(state.to_caps()).query_path(project / "src" / "main.py", READ)
    assert answer == {"status": "denied", "reason": "path_denied"}
    (project / "src").rename(project / "moved")
    with pytest.raises(FileNotFoundError):
        state.to_caps()


def test_documents_of_others_load_or_are_refused(project: Path) -> None:
    for broken in ("", "{}", "[]", '{"fs": []}', '{"fs": [], "net_blocked": 1}', "garbage"):
        with pytest.raises(ValueError, match="^Invalid JSON:"):
            SandboxState.from_json(broken)

    def document(**changes: object) -> str:
        grant = {"original": "x", "resolved": str(project), "access": "read", "is_file": False, **changes}
        return json.dumps({"fs": [grant], "net_blocked": True, "later": {"x": 1}})

    caps = SandboxState.from_json(document()).to_caps()
    assert shown(caps) == [("user", str(project), "read")] and caps.is_network_blocked
    for changes in (
        {"access": "ReadWrite"},
        {"is_file": True},
        {"resolved": "."},
        {"resolved": f"{project}/src/.."},
    ):
        with pytest.raises(ValueError):
            SandboxState.from_json(document(**changes)).to_caps()
    with pytest.raises(ValueError, match="original"):
        SandboxState.from_json(json.dumps({"fs": [{"path": "/", "access": "ReadWrite"}], "net_blocked": True}))


# --- SupportInfo


def test_support_is_said_in_one_line() -> None:
    info = nono_py.support_info()
    assert info.is_supported is nono_py.is_supported() is True
    assert info.platform == "linux"
    assert info.details.startswith("Landlock V") and "\n" not in info.details
    assert repr(info) == "SupportInfo(supported=true, platform='linux')"
    assert info.to_dict() == {"is_supported": True, "platform": "linux", "details": info.details}
