"""Any tree, whatever is done to it, comes back exactly; what is excluded is never touched."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nono_py import ExclusionConfig, SnapshotManager

Look = dict[bytes, tuple[object, ...]]

names = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.sampled_from([b"a", b"b", b"c", b"a.txt", b".hidden"]),
).map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"_")).filter(lambda name: name not in (b".", b".."))
paths = st.lists(names, min_size=1, max_size=3)
modes = st.sampled_from([0o644, 0o600, 0o755, 0o444, 0o4711, 0o640])
times = st.integers(min_value=0, max_value=4_000_000_000_000_000_000)
steps = st.one_of(
    st.tuples(st.just("file"), paths, st.binary(max_size=200), modes, times),
    st.tuples(st.just("folder"), paths, st.just(b""), st.sampled_from([0o755, 0o700, 0o2750]), times),
    st.tuples(st.just("link"), paths, st.binary(min_size=1, max_size=20), st.just(0), times),
    st.tuples(st.just("fifo"), paths, st.just(b""), modes, times),
    st.tuples(st.just("remove"), paths, st.just(b""), st.just(0), times),
    st.tuples(st.just("mode"), paths, st.just(b""), modes, times),
    st.tuples(st.just("attribute"), paths, st.binary(min_size=1, max_size=30), st.just(0), times),
    st.tuples(st.just("rename"), paths, st.binary(min_size=1, max_size=6), st.just(0), times),
)
# Below a folder of their own, which is excluded.
steps = st.one_of(steps, steps.map(lambda step: (step[0], [b"excluded", *step[1]], *step[2:])))
Step = tuple[str, list[bytes], bytes, int, int]


def remove(path: bytes) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def apply(root: bytes, step: Step) -> None:
    """Do it, as far as it can be done: what is in the way makes it nothing."""
    what, parts, data, mode, time = step
    path = os.path.join(root, *parts)
    data = data.replace(b"\0", b"_")
    try:
        if what in ("file", "folder", "link", "fifo"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        if what == "file":
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, mode)
        elif what == "folder":
            os.makedirs(path, exist_ok=True)
            os.chmod(path, mode)
        elif what == "link":
            remove(path)
            os.symlink(data, path)
        elif what == "fifo":
            os.mkfifo(path)
            os.chmod(path, mode)
        elif what == "remove":
            remove(path)
        elif what == "mode" and not os.path.islink(path):
            os.chmod(path, mode | 0o700 if os.path.isdir(path) else mode)
        elif what == "attribute":
            os.setxattr(path, b"user.test", data, follow_symlinks=False)
        elif what == "rename":
            os.rename(path, os.path.join(os.path.dirname(path), data.replace(b"/", b"_")))
        if os.path.lexists(path):
            os.utime(path, ns=(time, time), follow_symlinks=False)
    except OSError:
        pass


def everything(root: bytes) -> Iterator[bytes]:
    yield root
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            yield os.path.join(folder, name)


def attributes(path: bytes) -> dict[str, bytes]:
    try:
        return {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)}
    except OSError:
        return {}


def look(root: bytes) -> Look:
    found: Look = {}
    for path in everything(root):
        known = os.lstat(path)
        content: object = None
        if stat.S_ISREG(known.st_mode):
            os.chmod(path, 0o600)
            with open(path, "rb") as file:
                content = file.read()
            os.chmod(path, stat.S_IMODE(known.st_mode))
        elif stat.S_ISLNK(known.st_mode):
            content = os.readlink(path)
        found[os.path.relpath(path, root)] = (known.st_mode, known.st_mtime_ns, content, tuple(attributes(path).items()))
    return found


def is_excluded(path: bytes) -> bool:
    return path.split(b"/")[0] == b"excluded"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, max_size=12), st.lists(steps, max_size=12), st.lists(steps, max_size=6))
def test_everything_comes_back(first: list[Step], second: list[Step], third: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(os.fsencode(folder), b"root")
        os.mkdir(root)
        apply(root, ("file", [b"first"], b"first", 0o644, 0))
        for step in first:
            apply(root, step)
        before = look(root)
        config = ExclusionConfig(use_gitignore=False, exclude_patterns=["excluded"])
        manager = SnapshotManager(os.path.join(folder, "session"), [os.fsdecode(root)], config)
        manifest = manager.create_baseline()
        regular = {path for path, known in before.items() if stat.S_ISREG(int(str(known[0])))}
        shown = {os.path.relpath(os.fsencode(path), root) for path in manifest.files}
        assert shown == {path for path in regular if not is_excluded(path)}
        for path, state in manifest.files.items():
            known = before[os.path.relpath(os.fsencode(path), root)]
            assert (state.permissions, state.mtime_ns) == (stat.S_IMODE(int(str(known[0]))), known[1])
            assert manager.read(0, path) == known[2]
        for step in second:
            apply(root, step)
        middle = look(root)
        _, changes = manager.create_incremental()
        for step in third:
            apply(root, step)
        late = look(root)
        manager.restore_to(0)
        check(before, late, look(root))
        assert manager.compute_restore_diff(0) == []
        manager.undo_restore()
        check(late, late, look(root))
        manager.restore_to(1)
        check(middle, late, look(root))
        assert {change.path for change in manager.diff(0, 1)} == {change.path for change in changes}
        assert manager.verify() == []


def check(wanted: Look, present: Look, found: Look) -> None:
    """What is excluded is as it was just before; everything else as it was then. Of the root only its time may differ: a
    folder that changes in it may be the excluded one."""
    excluded = {path: known for path, known in present.items() if is_excluded(path)}
    assert {path: known for path, known in found.items() if is_excluded(path)} == excluded

    def plain(tree: Look) -> Look:
        return {path: known for path, known in tree.items() if not is_excluded(path) and path != b"."}

    assert plain(found) == plain(wanted)
