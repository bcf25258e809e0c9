"""What the documents show is what happens."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nono_py
from conftest import REPOSITORY

BLOCKS = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def blocks(document: str, language: str) -> list[str]:
    text = (REPOSITORY / document).read_text()
    return [body for name, body in BLOCKS.findall(text) if name == language]


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    [example] = blocks("README.md", "python")
    shown = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert shown.returncode == 0, shown.stderr
    text = (REPOSITORY / "README.md").read_text()
    after = text[text.index(example) :]
    [(_, expected), *_] = [found for found in BLOCKS.findall(after) if found[0] == "text"]
    assert shown.stdout == expected


@pytest.mark.parametrize("number", range(len(blocks("docs/python.md", "python"))))
def test_names_in_the_manual_exist(number: int) -> None:
    block = blocks("docs/python.md", "python")[number].replace("…", "...")
    used = {
        node.attr
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "nono"
    }
    assert used
    assert used <= set(nono_py.__all__)
