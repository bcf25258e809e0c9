"""ExclusionConfig: what is left out, and what not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nono_py import ExclusionConfig, SnapshotManager


def taken(tmp_path: Path, root: Path, config: ExclusionConfig | None = None) -> set[str]:
    session = tmp_path / f"session-{len(list(tmp_path.iterdir()))}"
    files = SnapshotManager(session, [root], config).create_baseline().files
    return {str(Path(path).relative_to(root)) for path in files}


@pytest.fixture()
def tree(tmp_path: Path) -> Path:
    # The root lies in folders whose names are patterns below.
    root = tmp_path / "node_modules" / "build" / "root"
    for name in ["a.py", "a.pyc", "build/out.o", "build/keep.txt", "sub/build/x", "sub/a.pyc", ".hidden", ".git/config"]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


EVERYTHING = {"a.py", "a.pyc", "build/out.o", "build/keep.txt", "sub/build/x", "sub/a.pyc", ".hidden", ".git/config"}


def test_the_value() -> None:
    config = ExclusionConfig(False, ["a", "b"], ["*.x"], ["c"])
    assert not config.use_gitignore and config.exclude_patterns == ["a", "b"]
    assert config.exclude_globs == ["*.x"] and config.force_include == ["c"]
    assert repr(config) == "ExclusionConfig(gitignore=false, patterns=2, globs=1)"
    config.exclude_patterns.append("z")
    assert config.exclude_patterns == ["a", "b"]
    default = ExclusionConfig()
    assert default.use_gitignore and default.exclude_patterns == default.exclude_globs == default.force_include == []
    assert config.to_dict()["exclude_globs"] == ["*.x"]
    with pytest.raises(AttributeError):
        setattr(config, "use_gitignore", True)
    with pytest.raises(TypeError):
        ExclusionConfig(exclude_patterns="ab")
    with pytest.raises(TypeError):
        ExclusionConfig(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        (ExclusionConfig(), set()),
        (ExclusionConfig(exclude_patterns=["build"]), {"build/out.o", "build/keep.txt", "sub/build/x"}),
        (ExclusionConfig(exclude_patterns=["sub/build"]), {"sub/build/x"}),
        (ExclusionConfig(exclude_patterns=["/build"]), {"build/out.o", "build/keep.txt", "sub/build/x"}),
        (ExclusionConfig(exclude_patterns=["/out"]), {"build/out.o"}),
        (ExclusionConfig(exclude_patterns=["node_modules"]), set()),
        (ExclusionConfig(exclude_patterns=["build/root"]), set()),
        (ExclusionConfig(exclude_patterns=[""]), set()),
        (ExclusionConfig(exclude_patterns=["*.pyc"]), set()),
        (ExclusionConfig(exclude_globs=["*.pyc"]), {"a.pyc", "sub/a.pyc"}),
        (ExclusionConfig(exclude_globs=["**/*.pyc"]), {"a.pyc", "sub/a.pyc"}),
        (ExclusionConfig(exclude_globs=["sub/*.pyc"]), set()),
        (ExclusionConfig(exclude_globs=["*.PYC"]), set()),
        (ExclusionConfig(exclude_globs=["{a.pyc,b*}"]), {"a.pyc", "sub/a.pyc", "build/out.o", "build/keep.txt", "sub/build/x"}),
        (ExclusionConfig(exclude_patterns=["build"], force_include=["keep.txt"]), {"build/out.o", "sub/build/x"}),
        (ExclusionConfig(exclude_patterns=["build"], force_include=["sub/build"]), {"build/out.o", "build/keep.txt"}),
        (ExclusionConfig(exclude_globs=["*.pyc"], force_include=["sub"]), {"a.pyc"}),
    ],
)
def test_rules(tmp_path: Path, tree: Path, config: ExclusionConfig, missing: set[str]) -> None:
    assert taken(tmp_path, tree, config) == EVERYTHING - missing


def test_an_invalid_glob_is_a_value_error(tmp_path: Path, tree: Path) -> None:
    config = ExclusionConfig(exclude_globs=["[a"])
    with pytest.raises(ValueError, match=r"\[a"):
        SnapshotManager(tmp_path / "s", [tree], config)
    assert not (tmp_path / "s").exists()


def test_a_rule_that_leaves_nothing_is_an_error(tmp_path: Path, tree: Path) -> None:
    with pytest.raises(RuntimeError, match="nothing could be captured"):
        taken(tmp_path, tree, ExclusionConfig(exclude_globs=["*"]))


def test_ignore_files_are_each_roots_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for root in (one, two):
        (root / "sub").mkdir(parents=True)
        for name in ["x.log", "y.txt", "sub/x.log", "sub/keep.log", "sub/y.txt"]:
            (root / name).write_text("x")
    (one / ".gitignore").write_text("*.log\n!keep.log\n")
    (two / "sub" / ".gitignore").write_text("/y.txt\n")
    manager = SnapshotManager(tmp_path / "s", [one, two])
    files = {str(Path(path).relative_to(tmp_path)) for path in manager.create_baseline().files}
    assert files == {
        *("one/.gitignore", "one/y.txt", "one/sub/keep.log", "one/sub/y.txt"),
        *("two/x.log", "two/y.txt", "two/sub/.gitignore", "two/sub/x.log", "two/sub/keep.log"),
    }
    # A restore leaves alone what is ignored, then and now.
    (one / "x.log").write_text("log")
    (one / ".gitignore").write_text("")
    (one / "y.txt").write_text("changed")
    manager.restore_to(0)
    assert (one / "x.log").read_text() == "log" and (one / "y.txt").read_text() == "x"
    assert (one / ".gitignore").read_text() == "*.log\n!keep.log\n"
    everything = SnapshotManager(tmp_path / "all", [one, two], ExclusionConfig(use_gitignore=False))
    assert len(everything.create_baseline().files) == 12
