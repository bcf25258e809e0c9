"""What several test files use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import nono_py

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session", autouse=True)
def _an_ordinary_user() -> None:
    """As root the kernel would let through what it has to refuse."""
    assert os.geteuid() != 0, "run these by scripts/python-tests, which drops privileges"


@pytest.fixture()
def project(tmp_path: Path) -> Path:
    """A small folder with a bit of everything."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "README").write_text("hello\n")
    (root / "src" / "main.py").write_text("print('hi')\n")
    (root / "link").symlink_to("README")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    return root
