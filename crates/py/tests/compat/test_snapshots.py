"""SnapshotManager, SnapshotManifest, FileState, ContentHash, Change, ExclusionConfig."""

from __future__ import annotations

import os
import re
import tempfile
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from nono_py import Change, ContentHash, ExclusionConfig, SessionMetadata, SnapshotManager, SnapshotManifest

from .kit import untyped as nono


@pytest.fixture()
def session(tmp_path: Path) -> Path:
    return tmp_path / "session"


@pytest.fixture()
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    return root


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def kept(session: Path, root: Path, exclusion: ExclusionConfig | None = None) -> set[str]:
    """The files a baseline keeps, relative to the root."""
    files = SnapshotManager(session, [root], exclusion).create_baseline().files
    return {os.path.relpath(path, root) for path in files}


def shown(changes: list[Change], root: Path) -> list[tuple[str, str, int | None]]:
    return [(os.path.relpath(change.path, root), change.change_type, change.size_delta) for change in changes]


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        if path.is_symlink():
            content = os.fsencode(os.readlink(path))
        found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, content)
    return found


# --- values


def test_content_hash(session: Path, root: Path) -> None:
    (root / "a").write_text("hello")
    (root / "b").write_text("other")
    manifest = SnapshotManager(session, [root]).create_baseline()
    one = manifest.files[str(root / "a")].hash
    assert isinstance(one, ContentHash) and isinstance(manifest.merkle_root, ContentHash)
    digest = sha256(b"hello").digest()
    assert one.hex() == str(one) == digest.hex()
    assert repr(one) == f"ContentHash({digest.hex()[:16]}...)"
    assert hash(one) == int.from_bytes(digest[:8], "little", signed=True) == 1054880662928880172
    same = manifest.files[str(root / "a")].hash
    other = manifest.files[str(root / "b")].hash
    assert one == same and one != other and len({one, same, other}) == 2
    untyped: Any = one
    assert untyped != digest.hex() and not (untyped == 3)
    with pytest.raises(TypeError):
        untyped < other


def test_file_state(session: Path, root: Path) -> None:
    (root / "a").write_text("hello")
    (root / "a").chmod(0o4755)
    os.utime(root / "a", (1_000_000_000, 1_000_000_000.5))
    state = SnapshotManager(session, [root]).create_baseline().files[str(root / "a")]
    assert (state.size, state.mtime, state.permissions) == (5, 1_000_000_000, 0o4755)
    assert isinstance(state.mtime, int)
    assert repr(state) == "FileState(size=5, permissions=4755)"
    assert state.to_dict()["size"] == 5


def test_manifest(session: Path, root: Path) -> None:
    write(root, "a", "d/b")
    (root / "link").symlink_to("a")
    (root / "empty").mkdir()
    before = datetime.now(timezone.utc) - timedelta(seconds=2)
    manager = SnapshotManager(session, [root])
    manifest = manager.create_baseline()
    assert (manifest.number, manifest.parent) == (0, None)
    assert repr(manifest) == "SnapshotManifest(number=0, files=2)"
    stamp = datetime.fromisoformat(manifest.timestamp.replace("Z", "+00:00"))
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", manifest.timestamp)
    assert before <= stamp <= datetime.now(timezone.utc) + timedelta(seconds=2)
    assert set(manifest.files) == {str(root / "a"), str(root / "d" / "b")}
    files = manifest.files
    files.clear()
    assert len(manifest.files) == 2
    assert str(root / "link") in manifest.symlinks
    assert any(str(root / "empty") == str(path) for path in manifest.directories)
    assert manifest.coverage is not None
    with pytest.raises(AttributeError):
        setattr(manifest, "number", 3)
    loaded = manager.load_manifest(number=0)
    assert loaded.merkle_root == manifest.merkle_root and set(loaded.files) == set(manifest.files)
    assert loaded.timestamp == manifest.timestamp


def test_the_root_commits_to_content_and_bits(session: Path, root: Path) -> None:
    write(root, "a")
    manager = SnapshotManager(session, [root])
    first = manager.create_baseline().merkle_root
    os.utime(root / "a", (1, 1))
    assert manager.create_incremental()[0].merkle_root == first
    (root / "a").chmod(0o600)
    second = manager.create_incremental()[0].merkle_root
    assert second != first
    (root / "a").write_text("b")
    assert manager.create_incremental()[0].merkle_root not in (first, second)


def test_changes(session: Path, root: Path) -> None:
    write(root, "gone", "changed", "mode", "same")
    (root / "mode").chmod(0o644)
    manager = SnapshotManager(session, [root])
    manager.create_baseline()
    (root / "gone").unlink()
    (root / "changed").write_text("longer than before")
    (root / "mode").chmod(0o600)
    write(root, "new")
    manifest, changes = manager.create_incremental()
    assert (manifest.number, manifest.parent) == (1, 0)
    assert shown(changes, root) == [
        ("changed", "modified", len("longer than before") - len("changed")),
        ("gone", "deleted", -4),
        ("mode", "permissions_changed", 0),
        ("new", "created", 3),
    ]
    assert repr(changes[1]) == f"Change(path='{root / 'gone'}', type=deleted)"
    assert changes[0].to_dict()["change_type"] == "modified"
    again, none = manager.create_incremental()
    assert none == [] and (again.number, again.parent) == (2, 1)
    os.utime(root / "same", (1, 1))
    assert [c.change_type for c in manager.create_incremental()[1] if c.path.endswith("same")] in ([], ["modified"])


def test_change_lists_are_in_the_order_of_components(session: Path, root: Path) -> None:
    manager = SnapshotManager(session, [root])
    write(root, "keep")
    manager.create_baseline()
    write(root, "a.txt", "a/b", "a-b")
    paths = [c.path for c in manager.create_incremental()[1] if Path(c.path).is_file()]
    assert paths == [str(root / name) for name in ("a/b", "a-b", "a.txt")]


# --- the manager


def test_signature(session: Path, root: Path) -> None:
    write(root, "a")
    manager = SnapshotManager(str(session), [str(root)], None, 300_000, 2_147_483_648)
    assert repr(manager) == "SnapshotManager(snapshots=0)" and manager.snapshot_count() == 0
    manager.create_baseline()
    assert repr(manager) == "SnapshotManager(snapshots=1)" and manager.snapshot_count() == 1
    SnapshotManager(
        session_dir=session / "2", tracked_paths=(root,), exclusion=ExclusionConfig(), max_entries=0, max_bytes=0
    ).create_baseline()


def test_numbers_out_of_range(session: Path, root: Path) -> None:
    write(root, "a")
    manager = SnapshotManager(session, [root])
    manager.create_baseline()
    for call in (manager.load_manifest, manager.restore_to, manager.compute_restore_diff):
        with pytest.raises(RuntimeError):
            call(7)
        with pytest.raises(OverflowError):
            call(-1)
        with pytest.raises(TypeError):
            nono_call: Any = call
            nono_call("0")
    with pytest.raises(OverflowError):
        SnapshotManager(session, [root], max_entries=-1)


def test_no_incremental_without_a_baseline(session: Path, root: Path) -> None:
    with pytest.raises(RuntimeError):
        SnapshotManager(session, [root]).create_incremental()


def test_a_second_baseline_is_refused(session: Path, root: Path) -> None:
    write(root, "a")
    manager = SnapshotManager(session, [root])
    manager.create_baseline()
    manager.create_incremental()
    write(root, "b")
    for again in (manager, SnapshotManager(session, [root])):
        with pytest.raises(RuntimeError):
            again.create_baseline()
        assert again.snapshot_count() == 2
    assert set(manager.load_manifest(0).files) == {str(root / "a")}
    assert manager.create_incremental()[0].number == 2


def test_resume(session: Path, root: Path) -> None:
    write(root, "a")
    first = SnapshotManager(session, [root])
    baseline = first.create_baseline()
    first.create_incremental()
    del first
    write(root, "b")
    again = SnapshotManager(session, [root])
    assert again.snapshot_count() == 2
    assert again.load_manifest(0).merkle_root == baseline.merkle_root
    manifest, changes = again.create_incremental()
    assert (manifest.number, manifest.parent) == (2, 1)
    assert shown(changes, root) == [("b", "created", 1)]
    assert again.snapshot_count() == 3


def test_roots(tmp_path: Path, session: Path, root: Path) -> None:
    assert SnapshotManager(session / "none", []).create_baseline().files == {}
    assert SnapshotManager(session / "gone", [tmp_path / "missing"]).create_baseline().files == {}
    write(root, "one", "d/two")
    file = SnapshotManager(session / "file", [root / "one"]).create_baseline()
    assert list(file.files) == [str(root / "one")]
    both = SnapshotManager(session / "both", [root, root / "d"]).create_baseline()
    assert set(both.files) == {str(root / "one"), str(root / "d" / "two")}


def test_relative_roots_give_relative_keys(session: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a/x")
    monkeypatch.chdir(root)
    assert set(SnapshotManager(session, ["a"]).create_baseline().files) == {"a/x"}


def test_home_expands(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(root, "a")
    manifest = SnapshotManager("~/session", ["~/root"]).create_baseline()
    assert set(manifest.files) == {str(root / "a")}
    assert (tmp_path / "session").is_dir()


def test_session_dir_that_cannot_be_made(tmp_path: Path, root: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError):
        SnapshotManager(tmp_path / "file" / "session", [root])


def test_budgets(session: Path, root: Path) -> None:
    (root / "d").mkdir()
    write(root, "d/a", "b")
    SnapshotManager(session / "1", [root], max_entries=2).create_baseline()
    with pytest.raises(RuntimeError):
        SnapshotManager(session / "2", [root], max_entries=1).create_baseline()
    SnapshotManager(session / "3", [root], max_bytes=4).create_baseline()
    with pytest.raises(RuntimeError):
        SnapshotManager(session / "4", [root], max_bytes=3).create_baseline()
    SnapshotManager(session / "5", [root], max_entries=0, max_bytes=0).create_baseline()


# --- restore


def test_restore(session: Path, root: Path) -> None:
    write(root, "gone", "changed", "mode", "same", "d/inner")
    (root / "empty").mkdir()
    (root / "link").symlink_to("same")
    (root / "mode").chmod(0o640)
    manager = SnapshotManager(session, [root])
    manager.create_baseline()
    known = tree(root)
    inode = (root / "same").stat().st_ino
    (root / "gone").unlink()
    (root / "changed").write_text("longer than before")
    (root / "mode").chmod(0o600)
    (root / "empty").rmdir()
    (root / "link").unlink()
    (root / "link").symlink_to("changed")
    (root / "d" / "inner").unlink()
    (root / "d").rmdir()
    write(root, "new/file")
    broken = tree(root)
    diff = manager.compute_restore_diff(snapshot_number=0)
    assert tree(root) == broken
    changes = manager.restore_to(snapshot_number=0)
    assert tree(root) == known
    assert (root / "same").stat().st_ino == inode
    by_path = {path: (kind, delta) for path, kind, delta in shown(changes, root)}
    assert by_path["gone"] == ("created", 4)
    assert by_path["changed"] == ("modified", len("changed") - len("longer than before"))
    assert by_path["mode"] == ("permissions_changed", 0)
    assert by_path["new/file"] == ("deleted", -8)
    assert "same" not in by_path
    assert shown(diff, root) == shown(changes, root)
    parts = [Path(change.path).parts for change in changes]
    assert parts == sorted(parts)
    assert manager.restore_to(0) == [] and manager.compute_restore_diff(0) == []


def test_restore_changes_neither_numbers_nor_the_previous_snapshot(session: Path, root: Path) -> None:
    write(root, "a")
    manager = SnapshotManager(session, [root])
    manager.create_baseline()
    write(root, "b")
    manager.create_incremental()
    manager.restore_to(0)
    assert manager.snapshot_count() == 2
    manifest, changes = manager.create_incremental()
    assert (manifest.number, manifest.parent) == (2, 1)
    assert shown(changes, root) == [("b", "deleted", -1)]
    manager.restore_to(1)
    assert (root / "b").read_text() == "b"


def test_the_session_may_lie_inside(root: Path) -> None:
    write(root, "a")
    session = root / ".session"
    manager = SnapshotManager(session, [root])
    assert set(manager.create_baseline().files) == {str(root / "a")}
    write(root, "b")
    assert shown(manager.create_incremental()[1], root) == [("b", "created", 1)]
    manager.restore_to(0)
    assert sorted(os.listdir(root)) == [".session", "a"]
    assert SnapshotManager(session, [root]).snapshot_count() == 2


def test_names_that_are_no_text(session: Path, root: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (root / name).write_text("x")
    manager = SnapshotManager(session, [root])
    assert set(manager.create_baseline().files) == {str(root / name)}
    (root / name).unlink()
    assert [change.path for change in manager.restore_to(0)] == [str(root / name)]
    assert (root / name).read_text() == "x"


def test_a_temporary_folder_can_be_removed(root: Path) -> None:
    write(root, *(f"d{number}/f" for number in range(30)))
    for round in range(8):
        # As code does that never heard of anything to close.
        with tempfile.TemporaryDirectory() as folder:
            manager = SnapshotManager(Path(folder, "session"), [root])
            manager.create_baseline()
            write(root, f"new{round}")
            manager.create_incremental()
            manager.restore_to(0)
            manager.restore_to(1)


def test_metadata_in_the_session(session: Path, root: Path) -> None:
    manager = SnapshotManager(session, [root])
    with pytest.raises(RuntimeError):
        SnapshotManager.load_session_metadata(session)
    meta = SessionMetadata("id", ["make"], [str(root)])
    meta.exit_code = 3
    manager.save_session_metadata(meta=meta)
    assert SnapshotManager.load_session_metadata(session_dir=str(session)).to_json() == meta.to_json()
    with pytest.raises(RuntimeError):
        SnapshotManager.load_session_metadata(session / "missing")


# --- exclusion


def test_exclusion_config() -> None:
    plain = ExclusionConfig()
    assert (plain.use_gitignore, plain.exclude_patterns, plain.exclude_globs, plain.force_include) == (True, [], [], [])
    assert repr(plain) == "ExclusionConfig(gitignore=true, patterns=0, globs=0)"
    full = ExclusionConfig(False, ["a", "b"], ["*.x"], ["c"])
    assert repr(full) == "ExclusionConfig(gitignore=false, patterns=2, globs=1)"
    assert (full.exclude_patterns, full.exclude_globs, full.force_include) == (["a", "b"], ["*.x"], ["c"])
    named = ExclusionConfig(use_gitignore=False, exclude_patterns=["a"], exclude_globs=[], force_include=[])
    assert named.exclude_patterns == ["a"]
    ExclusionConfig(exclude_globs=["["])


def test_a_glob_that_is_none(session: Path, root: Path) -> None:
    with pytest.raises(ValueError):
        SnapshotManager(session, [root], ExclusionConfig(exclude_globs=["["]))


def test_patterns(session: Path, root: Path) -> None:
    write(root, "node_modules/x", "src/node_modules/y", "src/node_modules_z", "src/gen/a", "gen/b", "keep")
    config = ExclusionConfig(exclude_patterns=["node_modules", "src/gen", ""])
    assert kept(session, root, config) == {"src/node_modules_z", "gen/b", "keep"}


def test_a_pattern_never_matches_above_the_root(tmp_path: Path, session: Path) -> None:
    root = tmp_path / "build" / "root"
    root.mkdir(parents=True)
    write(root, "a", "build/b")
    assert kept(session, root, ExclusionConfig(exclude_patterns=["build", str(tmp_path)[1:]])) == {"a"}


def test_globs(session: Path, root: Path) -> None:
    write(root, "a.pyc", "d/b.pyc", "d/c.py", "x1", "x2", "Y.PYC", "tmp.d/z")
    config = ExclusionConfig(exclude_globs=["*.pyc", "x[1]", "{tmp,temp}.?"])
    assert kept(session / "1", root, config) == {"d/c.py", "x2", "Y.PYC"}
    assert "a.pyc" not in kept(session / "2", root, ExclusionConfig(exclude_globs=["**/*.pyc"]))
    assert "d/b.pyc" not in kept(session / "3", root, ExclusionConfig(exclude_globs=["**/*.pyc"]))


def test_gitignore(session: Path, root: Path) -> None:
    write(root, "a.log", "keep.log", "d/b.log", "src/a", ".hidden", ".git/config")
    (root / ".gitignore").write_text("*.log\n!keep.log\n")
    always = {"src/a", ".hidden", ".git/config", ".gitignore", "keep.log"}
    assert kept(session / "1", root) == always
    assert kept(session / "2", root, ExclusionConfig(use_gitignore=False)) == always | {"a.log", "d/b.log"}


def test_each_root_has_its_own_rules(tmp_path: Path, session: Path) -> None:
    for name, rule in (("one", "a"), ("two", "b")):
        write(tmp_path / name, "a", "b")
        (tmp_path / name / ".gitignore").write_text(rule + "\n")
    files = SnapshotManager(session, [tmp_path / "one", tmp_path / "two"]).create_baseline().files
    names = {os.path.relpath(path, tmp_path) for path in files}
    assert names == {"one/b", "one/.gitignore", "two/a", "two/.gitignore"}


def test_force_include(session: Path, root: Path) -> None:
    write(root, "build/keep/a", "build/b", "x.log", "important.log")
    config = ExclusionConfig(
        exclude_patterns=["build"], exclude_globs=["*.log"], force_include=["important.log", "build/keep"]
    )
    assert kept(session, root, config) == {"build/keep/a", "important.log"}


def test_what_was_excluded_is_never_touched(session: Path, root: Path) -> None:
    write(root, "a", "secret.env")
    manager = SnapshotManager(session, [root], ExclusionConfig(exclude_globs=["*.env"]))
    manager.create_baseline()
    (root / "secret.env").write_text("changed")
    write(root, "more.env", "b")
    assert shown(manager.restore_to(0), root) == [("b", "deleted", -1)]
    assert (root / "secret.env").read_text() == "changed" and (root / "more.env").exists()


def test_rules_are_those_of_the_snapshot(session: Path, root: Path) -> None:
    write(root, "a.log", "b")
    SnapshotManager(session, [root]).create_baseline()
    (root / ".gitignore").write_text("*.log\n")
    again = SnapshotManager(session, [root])
    assert [path for path, _, _ in shown(again.compute_restore_diff(0), root)] == [".gitignore"]


def test_manifest_type(session: Path, root: Path) -> None:
    write(root, "a")
    made = SnapshotManager(session, [root]).create_baseline()
    assert isinstance(made, SnapshotManifest)
    assert made.to_dict()["number"] == 0
