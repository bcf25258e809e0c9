"""What the tests of checkpoints share."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from nono_py import CheckpointManager

Tree = dict[str, tuple[object, ...]]


def tree(root: Path) -> Tree:
    """Everything below a folder, by the system's own word: kind, mode, time and content."""
    found: Tree = {}
    for folder, directories, files in os.walk(os.fsencode(root)):
        for name in directories + files:
            path = os.path.join(folder, name)
            stat = os.lstat(path)
            what: object = None
            if os.path.islink(path):
                what = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    what = hashlib.sha256(file.read()).hexdigest()
            time = None if os.path.isdir(path) and not os.path.islink(path) else stat.st_mtime_ns
            found[os.fsdecode(os.path.relpath(path, os.fsencode(root)))] = (stat.st_mode, time, what)
    return found


def manager_in(tmp_path: Path, **settings: Any) -> CheckpointManager:
    (tmp_path / "home").mkdir(exist_ok=True)
    return CheckpointManager(tmp_path / "state", tmp_path / "home", **settings)
