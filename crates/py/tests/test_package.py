"""The package as a whole: import, errors, cancelling, threads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import nono_py
from nono_py import _nono_py


def test_every_public_name_exists_and_is_documented() -> None:
    for name in nono_py.__all__:
        value = getattr(nono_py, name)
        if isinstance(value, type) or callable(value):
            assert value.__doc__, name


def test_import_needs_neither_pydantic_nor_asyncio() -> None:
    code = "import sys, nono_py; print([m for m in ('pydantic', 'asyncio') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("beside", [False, True])
def test_a_panic_is_an_error_that_says_so(beside: bool) -> None:
    with pytest.raises(nono_py.NonoError, match="a bug in nono.*on purpose") as raised:
        getattr(_nono_py, "_panic")(beside)
    assert raised.value.kind == "bug"
    assert isinstance(raised.value, RuntimeError)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError):
        getattr(nono_py, "nothing")
