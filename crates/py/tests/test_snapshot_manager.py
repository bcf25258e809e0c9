"""SnapshotManager and its values: the contract."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import nono_py
from nono_py import (
    Change,
    ChangeList,
    ContentHash,
    Coverage,
    ExclusionConfig,
    FileState,
    SnapshotError,
    SnapshotManager,
    SnapshotManifest,
)


def told(changes: list[Change], root: Path) -> list[tuple[str, str, int, str]]:
    return [
        (os.path.relpath(change.path, root), change.change_type, change.size_delta, change.kind) for change in changes
    ]


@pytest.fixture()
def manager(tmp_path: Path, project: Path) -> SnapshotManager:
    return SnapshotManager(str(tmp_path / "session"), [str(project)])


def test_there_and_back(manager: SnapshotManager, project: Path) -> None:
    baseline = manager.create_baseline()
    assert (baseline.number, baseline.parent) == (0, None)
    (project / "README").write_text("hello, world\n")
    (project / "new").write_text("123")
    (project / "src" / "main.py").unlink()
    (project / "run.sh").chmod(0o700)
    (project / "link").unlink()
    (project / "link").symlink_to("elsewhere")
    (project / "empty").rmdir()
    os.mkfifo(project / "pipe")
    manifest, changes = manager.create_incremental()
    assert (manifest.number, manifest.parent, manager.snapshot_count()) == (1, 0, 2)
    expected = [
        ("README", "modified", 7, "file"),
        ("empty", "deleted", 0, "directory"),
        ("link", "modified", 0, "symlink"),
        ("new", "created", 3, "file"),
        ("pipe", "created", 0, "special"),
        ("run.sh", "permissions_changed", 0, "file"),
        ("src/main.py", "deleted", -12, "file"),
    ]
    assert told(changes, project) == expected
    back = {"created": "deleted", "deleted": "created"}
    undone = [(path, back.get(kind, kind), -delta, what) for path, kind, delta, what in expected]
    assert told(manager.compute_restore_diff(0), project) == undone
    assert not (project / "empty").exists(), "nothing is touched by a comparison"
    assert told(manager.restore_to(0), project) == undone
    assert (project / "README").read_text() == "hello\n"
    assert os.readlink(project / "link") == "README"
    assert (project / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert (project / "empty").is_dir()
    assert manager.compute_restore_diff(0) == []
    # It changes neither the numbers nor what the next one is compared with.
    assert manager.snapshot_count() == 2
    _, changes = manager.create_incremental()
    assert told(changes, project) == undone
    assert told(manager.diff(0, 2), project) == []


def test_a_manifest_has_everything(manager: SnapshotManager, project: Path) -> None:
    (project / "run.sh").chmod(0o4755)
    os.utime(project / "run.sh", ns=(0, 1_577_934_245_678_901_234))
    server = socket.socket(socket.AF_UNIX)
    here = os.open(".", os.O_RDONLY)
    os.chdir(project)  # the name of a socket is short
    try:
        server.bind("socket")
    finally:
        os.fchdir(here)
        os.close(here)
        server.close()
    manifest = manager.create_baseline()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", manifest.timestamp)
    assert set(manifest.files) == {str(project / name) for name in ("README", "run.sh", "src/main.py")}
    assert list(manifest.files) == sorted(manifest.files)
    state = manifest.files[str(project / "run.sh")]
    assert isinstance(state, FileState)
    assert (state.size, state.mtime, state.permissions) == (10, 1_577_934_245, 0o4755)
    assert state.mtime_ns == 1_577_934_245_678_901_234
    assert state.hash.hex() == hashlib.sha256(b"#!/bin/sh\n").hexdigest()
    assert repr(state) == "FileState(size=10, permissions=4755)"
    assert manifest.symlinks == {str(project / "link"): "README"}
    assert manifest.directories == [str(project), str(project / "empty"), str(project / "src")]
    assert manifest.special == {str(project / "socket"): "socket"}
    assert manifest.id == "0" and isinstance(manifest.durable, bool)
    assert isinstance(manifest.merkle_root, ContentHash) and manifest.merkle_root != manifest.state_root
    assert repr(manifest) == "SnapshotManifest(number=0, files=3)"
    assert manifest.files is not manifest.files
    manifest.files.clear()
    assert len(manifest.files) == 3
    assert manifest.left_out() == []
    assert manifest.protection(project / "README") == {"status": "captured"}
    assert manifest.protection(project / "none") == {"status": "not_there"}
    assert manifest.protection("/etc/passwd") == {"status": "outside"}
    plain = manifest.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["files"][str(project / "README")]["size"] == 6
    assert plain["merkle_root"] == manifest.merkle_root.hex()


def test_content_hash(manager: SnapshotManager, project: Path) -> None:
    (project / "h").write_text("hello")
    manifest = manager.create_baseline()
    one = manifest.files[str(project / "h")].hash
    two = manager.load_manifest(0).files[str(project / "h")].hash
    assert one is not two and one == two and hash(one) == hash(two) == 1054880662928880172
    assert not one != two and {one: 1}[two] == 1
    assert one != one.hex() and (one == 5) is False and one != manifest.merkle_root
    assert str(one) == one.hex() == hashlib.sha256(b"hello").hexdigest()
    assert repr(one) == f"ContentHash({one.hex()[:16]}...)"
    with pytest.raises(TypeError):
        one < two  # type: ignore[operator]


def test_changes_are_a_list(manager: SnapshotManager, project: Path) -> None:
    manager.create_baseline()
    _, changes = manager.create_incremental()
    assert changes == [] and isinstance(changes, list) and isinstance(changes, ChangeList)
    (project / "<b>&\x1b[31m").write_text("x")
    _, changes = manager.create_incremental()
    [change] = changes
    path = str(project / "<b>&\x1b[31m")
    assert repr(change) == f"Change(path={path!r}, type=created)"
    assert change.old_hash is None and change.new_hash is not None
    assert changes.to_dict() == [change.to_dict()]
    assert change.to_dict()["path"] == path and json.dumps(changes.to_dict())
    page = changes._repr_html_()
    assert "&lt;b&gt;&amp;" in page and "<b>" not in page and "\x1b" not in page


def test_coverage_is_said(tmp_path: Path, project: Path) -> None:
    (project / "<secret>").write_text("s")
    manager = SnapshotManager(tmp_path / "s", [project], ExclusionConfig(exclude_patterns=["<secret>"]))
    manifest = manager.create_baseline()
    coverage = manifest.coverage
    assert isinstance(coverage, Coverage)
    assert (coverage.files, coverage.bytes, coverage.directories, coverage.others) == (3, 28, 3, 1)
    assert coverage.entries_left_out == 1 and not coverage.is_complete
    [left_out] = coverage.left_out
    assert (left_out["cause"], left_out["entries"]) == ("pattern", 1)
    path = str(project / "<secret>")
    assert left_out["examples"] == [{"path": path, "reason": "excluded by the pattern `<secret>`"}]
    assert manifest.left_out() == [(path, "excluded by the pattern `<secret>`")]
    assert manifest.protection(path)["status"] == "left_out"
    assert manifest.protection(path)["because_of"] == path
    assert json.loads(json.dumps(coverage.to_dict()))["files"] == 3
    page = coverage._repr_html_()
    assert "&lt;secret&gt;" in page and "<secret>" not in page
    assert "1 left out" in str(coverage)


def test_values_are_closed(manager: SnapshotManager, project: Path) -> None:
    manifest = manager.create_baseline()
    (project / "x").write_text("x")
    change = manager.create_incremental()[1][0]
    state = next(iter(manifest.files.values()))
    for value in [manifest.merkle_root, state, change, manifest]:
        kind = type(value)
        assert kind.__module__ == "nono_py"
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            type("Sub", (kind,), {})
        with pytest.raises(AttributeError):
            setattr(value, "unknown", 1)
        with pytest.raises(TypeError):
            pickle.dumps(value)
        with pytest.raises(TypeError):
            copy.copy(value)
    for name in ["path", "change_type", "size_delta"]:
        with pytest.raises(AttributeError):
            setattr(change, name, 1)


def test_a_second_baseline_is_refused(manager: SnapshotManager, project: Path, tmp_path: Path) -> None:
    first = manager.create_baseline()
    # So that nothing writes in the background.
    manager.settle()
    (project / "README").write_text("changed")
    before = (tmp_path / "session" / "record.json").read_bytes()
    with pytest.raises(RuntimeError) as raised:
        manager.create_baseline()
    assert isinstance(raised.value, SnapshotError)
    assert (raised.value.kind, raised.value.path) == ("has_snapshots", str(tmp_path / "session"))
    assert (tmp_path / "session" / "record.json").read_bytes() == before
    assert manager.load_manifest(0).state_root == first.state_root and manager.snapshot_count() == 1


def test_a_new_manager_resumes(manager: SnapshotManager, project: Path, tmp_path: Path) -> None:
    manager.create_baseline()
    manager.create_incremental()
    (project / "new").write_text("n")
    again = SnapshotManager(tmp_path / "session", [project])
    assert again.snapshot_count() == 2 and repr(again) == "SnapshotManager(snapshots=2)"
    manifest, changes = again.create_incremental()
    assert (manifest.number, manifest.parent, len(changes)) == (2, 1, 1)
    # The other one sees it, too.
    assert manager.snapshot_count() == 3
    assert manager.load_manifest(2).merkle_root == manifest.merkle_root
    assert SnapshotManager(tmp_path / "session", []).tracked_paths == [str(project)]
    with pytest.raises(SnapshotError) as raised:
        SnapshotManager(tmp_path / "session", [tmp_path])
    assert raised.value.kind == "other_paths"


def test_without_a_baseline(manager: SnapshotManager, tmp_path: Path) -> None:
    assert manager.snapshot_count() == 0 and repr(manager) == "SnapshotManager(snapshots=0)"
    calls: list[Callable[[], object]] = [
        manager.create_incremental,
        lambda: manager.restore_to(0),
        lambda: manager.compute_restore_diff(0),
        lambda: manager.load_manifest(0),
    ]
    for call in calls:
        with pytest.raises(SnapshotError) as raised:
            call()
        assert (raised.value.kind, raised.value.path) == ("no_baseline", str(tmp_path / "session"))
    manager.create_baseline()
    with pytest.raises(SnapshotError) as raised:
        manager.restore_to(7)
    assert raised.value.kind == "no_snapshot"
    with pytest.raises(OverflowError):
        manager.load_manifest(-1)
    with pytest.raises(OverflowError):
        SnapshotManager(tmp_path / "x", [], None, -1)
    with pytest.raises(TypeError):
        SnapshotManager(tmp_path / "x", str(tmp_path))


def test_budgets(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a" / "b" / "c").mkdir(parents=True)
    (root / "a" / "one").write_bytes(b"x" * 60)
    (root / "a" / "b" / "two").write_bytes(b"x" * 40)
    session = iter(range(100))

    def take(max_entries: int, max_bytes: int) -> SnapshotManifest:
        return SnapshotManager(tmp_path / f"s{next(session)}", [root], None, max_entries, max_bytes).create_baseline()

    assert take(2, 100).coverage.files == 2, "directories do not count, and the limit itself is within it"
    assert take(0, 0).coverage.files == 2, "0 is no limit"
    for limits, kind in [((1, 0), "too_many_files"), ((0, 99), "too_large")]:
        with pytest.raises(RuntimeError) as raised:
            take(*limits)
        assert isinstance(raised.value, SnapshotError) and raised.value.kind == kind
    # Of all tracked paths together, also later; what is over the limit is no snapshot, and what was there stays.
    manager = SnapshotManager(tmp_path / "later", [root / "a" / "one", root / "a" / "b"], None, 2)
    manager.create_baseline()
    (root / "a" / "b" / "three").write_text("3")
    with pytest.raises(SnapshotError):
        manager.create_incremental()
    assert manager.snapshot_count() == 1
    assert [change.change_type for change in manager.restore_to(0)] == ["deleted"]


def test_tracked_paths_of_all_kinds(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Missing: said, and never touched.
    manager = SnapshotManager(tmp_path / "s1", [project, tmp_path / "none"])
    manifest = manager.create_baseline()
    assert any("none is not covered" in note for note in manifest.coverage.notes)
    assert not manifest.coverage.is_complete
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "f").write_text("later")
    (project / "README").write_text("changed")
    assert [change.change_type for change in manager.restore_to(0)] == ["modified"]
    assert (tmp_path / "none" / "f").read_text() == "later"
    report = manager.last_restore
    assert report is not None and [path for path, _ in report.skipped] == [str(tmp_path / "none")]
    # All missing: the same.
    manifest = SnapshotManager(tmp_path / "s2", [tmp_path / "nowhere"]).create_baseline()
    assert manifest.files == {} and not manifest.coverage.is_complete and "nowhere" in str(manifest.coverage)
    # There, but empty because of a rule: nothing was taken, so there is no snapshot.
    nothing = SnapshotManager(tmp_path / "s2b", [project], ExclusionConfig(exclude_globs=["*"]))
    with pytest.raises(SnapshotError) as raised:
        nothing.create_baseline()
    assert raised.value.kind == "nothing_captured" and nothing.snapshot_count() == 0
    # None at all.
    assert SnapshotManager(tmp_path / "s3", []).create_baseline().files == {}
    # A file.
    manager = SnapshotManager(tmp_path / "s4", [project / "README"])
    assert list(manager.create_baseline().files) == [str(project / "README")]
    (project / "README").unlink()
    manager.restore_to(0)
    assert (project / "README").read_text() == "hello\n"
    # Below the home folder.
    monkeypatch.setenv("HOME", str(tmp_path))
    manager = SnapshotManager("~/s5", ["~/project"])
    assert str(project / "README") in manager.create_baseline().files
    assert manager.session_dir == str(tmp_path / "s5") and not Path("~").exists()
    # Relative, and as it was given.
    monkeypatch.chdir(tmp_path)
    ways: list[str | Path] = [".", "project", "./project", Path("project")]
    for number, given in enumerate(ways):
        manager = SnapshotManager(f"relative-{number}", [given])
        manifest = manager.create_baseline()
        name = os.path.join(given, *(["project"] if given == "." else []), "README")
        assert name in manifest.files, (given, list(manifest.files))
        monkeypatch.chdir("/")
        assert manager.load_manifest(0).files.keys() == manifest.files.keys()
        (project / "README").write_text(f"{given}")
        [change] = manager.create_incremental()[1]
        assert change.path == name
        assert [change.path for change in manager.restore_to(0, paths=[name])] == [name]
        assert manager.read(0, name) == b"hello\n"
        monkeypatch.chdir(tmp_path)
    # By way of a link.
    (tmp_path / "by-link").symlink_to("project")
    manifest = SnapshotManager("linked", [tmp_path / "by-link"]).create_baseline()
    assert str(tmp_path / "by-link" / "README") in manifest.files
    # One inside another, and one twice: each file once.
    manager = SnapshotManager("twice", [project, project / "src", str(project) + "/"])
    assert len(manager.create_baseline().files) == 3 and manager.tracked_paths == [str(project)]


def test_the_session_folder_may_lie_inside(project: Path) -> None:
    manager = SnapshotManager(project / "state" / "session", [project])
    manifest = manager.create_baseline()
    assert not any(path.startswith(str(project / "state")) for path in manifest.files)
    (project / "README").write_text("changed")
    assert [change.path for change in manager.create_incremental()[1]] == [str(project / "README")]
    manager.restore_to(0)
    assert manager.snapshot_count() == 2 and manager.verify() == []
    assert manifest.coverage.is_complete


def test_names_of_any_bytes(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path / "root")
    os.mkdir(root)
    names = [b"\xff\xfe", b"new\nline", "größe".encode(), b" ", b"'\"", b"-rf", "\U0001f600".encode()]
    for name in names:
        with open(os.path.join(root, name), "wb") as file:
            file.write(name)
    manager = SnapshotManager(tmp_path / "s", [tmp_path / "root"])
    manifest = manager.create_baseline()
    assert {os.fsencode(path) for path in manifest.files} == {os.path.join(root, name) for name in names}
    for name in names:
        assert manager.read(0, os.fsdecode(os.path.join(root, name))) == name
        os.unlink(os.path.join(root, name))
    gone = manager.create_incremental()[1]
    assert {os.fsencode(change.path) for change in gone} == {os.path.join(root, name) for name in names}
    assert gone._repr_html_() and repr(gone) and str(manifest.coverage)
    manager.restore_to(0)
    assert sorted(os.listdir(root)) == sorted(names)
    odd = tmp_path / os.fsdecode(b"session-\xff")
    assert SnapshotManager(odd, [os.fsdecode(root)]).session_dir == str(odd)


def test_damage_and_missing_pieces(manager: SnapshotManager, project: Path, tmp_path: Path) -> None:
    manager.create_baseline()
    session = tmp_path / "session"
    manager.settle()
    manager.close()
    with pytest.raises(SnapshotError) as raised:
        manager.create_incremental()
    assert raised.value.kind == "closed"
    manager.close()
    [manifest] = (session / "snapshots").iterdir()
    text = manifest.read_bytes()
    manifest.write_bytes(text.replace(b"a", b"b"))
    with pytest.raises(RuntimeError) as damaged:
        SnapshotManager(session, [project]).load_manifest(0)
    assert isinstance(damaged.value, SnapshotError)
    assert (damaged.value.kind, damaged.value.path) == ("damaged", str(manifest))
    manifest.write_bytes(text)
    (session / "record.json").write_text('{"format": 99}')
    with pytest.raises(SnapshotError) as record:
        SnapshotManager(session, [project])
    assert record.value.path == str(session / "record.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(SnapshotError) as place:
        SnapshotManager(tmp_path / "file" / "session", [project])
    assert place.value.kind == "not_a_directory"
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(SnapshotError) as denied:
        SnapshotManager(closed / "session", [project])
    assert denied.value.kind == "permission_denied" and str(denied.value.path).startswith(str(closed))


def test_what_cannot_be_restored_is_said(manager: SnapshotManager, project: Path) -> None:
    manager.create_baseline()
    (project / "README").write_text("changed")
    (project / "src" / "main.py").write_text("changed")
    (project / "src").chmod(0o500)
    # Its owner may open it up again, so it is restored; what is not ours cannot be.
    assert len(manager.restore_to(0)) == 3
    parent = project.parent
    (project / "README").unlink()
    for path in [project / "README", parent]:
        assert manager.load_manifest(0).protection(path)["status"] in ("captured", "outside")
    single = SnapshotManager(parent / "single", [project / "run.sh"])
    single.create_baseline()
    (project / "run.sh").unlink()
    project.chmod(0o500)
    try:
        with pytest.raises(SnapshotError) as raised:
            single.restore_to(0)
    finally:
        project.chmod(0o755)
    assert raised.value.kind == "incomplete" and raised.value.path == str(project / "run.sh")
    report = raised.value.report
    assert report is not None and not report.is_complete and report.applied == []
    assert [path for path, _ in report.failed + report.skipped] == [str(project / "run.sh")]
    assert json.dumps(report.to_dict()) and "failed=1" in repr(report)
    assert [change.change_type for change in single.restore_to(0)] == ["created"]


def test_a_folder_that_holds_what_is_excluded_stays(tmp_path: Path, project: Path) -> None:
    manager = SnapshotManager(tmp_path / "s", [project], ExclusionConfig(exclude_patterns=["__pycache__"]))
    manager.create_baseline()
    (project / "pkg" / "__pycache__").mkdir(parents=True)
    (project / "pkg" / "__pycache__" / "x.pyc").write_text("x")
    (project / "pkg" / "x.py").write_text("x")
    assert told(manager.restore_to(0), project) == [("pkg/x.py", "deleted", -1, "file")]
    assert (project / "pkg" / "__pycache__" / "x.pyc").read_text() == "x"
    report = manager.last_restore
    assert report is not None and report.is_complete and [path for path, _ in report.skipped] == [str(project / "pkg")]


def test_a_restore_can_be_undone(manager: SnapshotManager, project: Path, tmp_path: Path) -> None:
    manager.create_baseline()
    with pytest.raises(SnapshotError) as raised:
        manager.undo_restore()
    assert raised.value.kind == "no_restore"
    (project / "README").write_text("precious")
    manager.restore_to(0)
    assert manager.last_restore is not None and manager.last_restore.safety.startswith("safety-")
    other = SnapshotManager(tmp_path / "session", [project])
    assert told(other.undo_restore(), project) == [("README", "modified", 2, "file")]
    assert (project / "README").read_text() == "precious"
    other.undo_restore()
    assert (project / "README").read_text() == "hello\n"


def test_a_part_can_be_restored(manager: SnapshotManager, project: Path) -> None:
    manager.create_baseline()
    (project / "README").write_text("changed")
    (project / "src" / "main.py").write_text("changed")
    assert told(manager.compute_restore_diff(0, paths=[project / "src"]), project) == [
        ("src/main.py", "modified", 5, "file")
    ]
    manager.restore_to(0, paths=[project / "src"])
    assert (project / "README").read_text() == "changed"
    assert (project / "src" / "main.py").read_text() == "print('hi')\n"
    with pytest.raises(SnapshotError) as raised:
        manager.restore_to(0, paths=["/etc/passwd"])
    assert raised.value.kind == "not_tracked"


def test_changes_without_a_snapshot(manager: SnapshotManager, project: Path) -> None:
    manager.create_baseline()
    (project / "README").write_text("changed")
    for _ in range(2):
        assert told(manager.compute_changes(0), project) == [("README", "modified", 1, "file")]
    assert manager.snapshot_count() == 1


def test_reading_a_file_of_a_snapshot(manager: SnapshotManager, project: Path) -> None:
    manager.create_baseline()
    (project / "README").write_text("changed")
    assert manager.read(0, project / "README") == b"hello\n"
    for missing in [project / "none", project / "src", project / "link"]:
        with pytest.raises(FileNotFoundError) as raised:
            manager.read(0, missing)
        assert raised.value.filename == str(missing)


def test_a_shared_store(tmp_path: Path, project: Path) -> None:
    for name in ["one", "two"]:
        manager = SnapshotManager(tmp_path / name, [project], store=tmp_path / "store")
        manager.create_baseline()
        assert not (tmp_path / name / "store").exists()
    assert (tmp_path / "store").is_dir()


def test_the_version_of_errors() -> None:
    assert issubclass(SnapshotError, nono_py.NonoError) and SnapshotError("x").report is None
