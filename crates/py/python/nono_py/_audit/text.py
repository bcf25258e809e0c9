"""Reading untrusted files: unambiguous JSON, lines of bounded length, only regular files."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from json import JSONDecodeError
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from .._nono_py import VerificationError

# Maximum size of a line and of a session's record, so that parsing stays bounded.
MAX_BYTES = 16 << 20
# More digits than any number in a record has; without a limit, a long one costs minutes.
_MAX_DIGITS = 40


class Ambiguous(JSONDecodeError):
    """Valid JSON that two programs could read differently."""


def compact(value: object) -> bytes:
    """JSON in ASCII, without blanks, keys in the order they have."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def parse(data: bytes) -> Any:
    """The value of a JSON document.

    JSONDecodeError is all it raises: also for other encodings, NaN, numbers out of range, keys given twice, and what is
    nested too deep.
    """
    try:
        return _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise JSONDecodeError(f"not UTF-8 ({error.reason})", "", error.start) from None
    except RecursionError:
        raise JSONDecodeError("nested too deep", "", 0) from None


def parse_object(data: bytes) -> dict[str, Any]:
    """The value of a JSON document that has to be an object."""
    value = parse(data)
    if not isinstance(value, dict):
        raise JSONDecodeError("not an object", "", 0)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Ambiguous("a key is given twice", "", 0)
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise Ambiguous("a number is out of range", "", 0)
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise Ambiguous("a number is out of range", "", 0)
    return value


def _constant(name: str) -> NoReturn:
    raise Ambiguous(f"{name} is not JSON", "", 0)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_number, parse_constant=_constant
)


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read; a pipe or a device, which could keep us for ever, is an OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1. JSONDecodeError at one that is too long."""
    number = 0
    while line := file.readline(MAX_BYTES + 1):
        number += 1
        if len(line) > MAX_BYTES:
            raise JSONDecodeError(f"line {number} is longer than {MAX_BYTES} bytes", "", 0)
        if line.strip():
            yield number, line


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, one in each line."""
    with open_regular(path) as file:
        for _, line in lines(file):
            yield parse_object(line)


def check_lines(path: Path, check: Callable[[bytes], object]) -> None:
    """Check each line of a file. VerificationError with its number, or for what is no file with lines."""
    try:
        with open_regular(path) as file:
            for number, line in lines(file):
                try:
                    check(line)
                except VerificationError as error:
                    raise VerificationError(f"{path}: line {number}: {error}") from None
    except (FileNotFoundError, PermissionError):
        raise
    except (JSONDecodeError, OSError) as error:
        raise VerificationError(f"{path}: {error}") from None
