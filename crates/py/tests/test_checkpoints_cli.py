"""Checkpoints of Python and of the command `nono checkpoints` are the same ones."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from checkpoint_tools import manager_in, tree

NONO = os.environ.get("NONO_BIN")

pytestmark = pytest.mark.skipif(not NONO, reason="NONO_BIN names no nono to compare with")


def nono(tmp_path: Path, project: Path, *arguments: str) -> Any:
    env = {"HOME": str(tmp_path / "home"), "NONO_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    command = [str(NONO), "checkpoints", *arguments, "--json"]
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def test_each_sees_what_the_other_took(tmp_path: Path, project: Path) -> None:
    manager = manager_in(tmp_path)
    before = tree(project)
    mine = manager.create(project, "of Python")
    (project / "README").write_text("changed\n")
    theirs = nono(tmp_path, project, "create", "-m", "of the command")
    assert theirs["result"] == "taken" and set(theirs) == set(mine.to_dict())
    all = manager.list_checkpoints(project)
    assert [one.reason for one in all] == ["of the command", "of Python"]
    assert all.to_dict() == nono(tmp_path, project, "list")
    # The command sweeps first, where that is due. What it left to a process of its own makes the store smaller meanwhile.
    sizes = ("store_bytes", "total_bytes")
    before_mine = nono(tmp_path, project, "status")
    shown = manager.status().to_dict()
    after_mine = nono(tmp_path, project, "status")
    for size in sizes:
        assert before_mine[size] >= shown[size] >= after_mine[size] > 0
    not_compared = dict.fromkeys((*sizes, "exact", "enabled"))
    assert {**shown, **not_compared} == {**after_mine, **not_compared}
    assert shown["enabled"]
    (project / "new").write_text("new\n")
    assert manager.diff(project, 2).to_dict() == nono(tmp_path, project, "diff", "2")
    assert manager.plan(project, 2).to_dict() == nono(tmp_path, project, "restore", "2", "--dry-run")
    outcome = nono(tmp_path, project, "restore", "2", "--yes")
    assert tree(project) == before
    undone = manager.undo(project)
    assert (project / "new").exists() and set(undone.to_dict()) == set(outcome)
    assert manager.verify().to_dict() == nono(tmp_path, project, "verify")
    planned = manager.forget(project / "new", dry_run=True)
    assert planned.to_dict() == nono(tmp_path, project, "forget", "new", "--dry-run")
    assert manager.prune(dry_run=True).to_dict() == nono(tmp_path, project, "prune", "--dry-run")
