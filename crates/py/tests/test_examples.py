"""Each example runs by itself, without arguments, and tells something; its home stays untouched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


def test_there_are_examples_and_each_is_listed() -> None:
    files = {path.name for path in EXAMPLES.glob("*.py")}
    assert len(files) >= 8
    listed = (EXAMPLES / "README.md").read_text()
    assert [name for name in sorted(files) if f"`{name}`" not in listed] == []


@pytest.mark.integration
@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    variables = {name: value for name, value in os.environ.items() if name != "NONO_HOME"}
    done = subprocess.run(
        [sys.executable, str(example)],
        capture_output=True,
        text=True,
        cwd=work,
        env={**variables, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() and done.stderr == ""
    assert list(work.iterdir()) == []
    assert list(home.iterdir()) == []
