"""The profile that a project carries: what it closes holds at once, what it opens where a person agreed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import nono_py as nono

NONO = os.environ.get("NONO_BIN")


@pytest.fixture()
def here(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose profile opens ``data`` beside it and closes ``.env``."""
    monkeypatch.setenv("NONO_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project)
    (tmp_path / "home").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "data" / "x").write_text("data\n")
    (project / ".git").mkdir()
    (project / ".env").write_text("KEY=1\n")
    (project / ".nono").mkdir(mode=0o755)
    profile = project / ".nono" / "profile.json"
    profile.write_text(json.dumps({"filesystem": {"read": ["../data"], "deny": [".env"]}}))
    profile.chmod(0o644)
    return project


def read(path: str, no_project_profile: bool = False) -> bytes | None:
    report = nono.run(["cat", path], allow_cwd=True, capture_output=True, no_project_profile=no_project_profile)
    return report.stdout if report.exit_code == 0 else None


def lines(fd: int) -> Iterator[str]:
    said = ""
    while True:
        try:
            said += os.read(fd, 4096).decode()
        except OSError:
            return
        yield said


def agree() -> None:
    """Answer as a person does, on a terminal."""
    master, slave = pty.openpty()
    command = subprocess.Popen([str(NONO), "profile", "trust"], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    assert any("exactly this?" in said for said in lines(master))
    os.write(master, b"y\n")
    for _ in lines(master):
        pass
    assert command.wait() == 0
    os.close(master)


def test_what_it_closes_is_closed_and_what_it_opens_waits_for_a_person(here: Path) -> None:
    assert read(".env") is None
    assert read("README") == b"hello\n"
    assert read("../data/x") is None
    assert read(".env", no_project_profile=True) == b"KEY=1\n"


@pytest.mark.skipif(not NONO, reason="NONO_BIN names no nono to agree with")
def test_what_a_person_agreed_to_is_open_until_it_says_something_else(here: Path) -> None:
    agree()
    assert read("../data/x") == b"data\n"
    assert read("../data/x", no_project_profile=True) is None
    (here / ".nono" / "profile.json").write_text(json.dumps({"filesystem": {"read": ["../data", "../other"]}}))
    assert read("../data/x") is None


def test_one_that_cannot_be_used_runs_nothing(here: Path) -> None:
    (here / ".nono" / "profile.json").chmod(0o666)
    with pytest.raises(nono.PolicyError, match="no_project_profile=True") as raised:
        read("README")
    assert raised.value.kind == "project_profile"
    assert read("README", no_project_profile=True) == b"hello\n"
