"""Rows of the Python package: calls on a large tree against the same calls in Rust, and what an import costs.

Each side runs in a process of its own, rounds alternate, and medians are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# Opening is part of it, as on the other side.
INCREMENTAL = """
import sys, time
from nono_py import SnapshotManager
tree, store, session = sys.argv[1:]
begin = time.perf_counter()
manager = SnapshotManager(session, [tree], None, 0, 0, store=store)
changes = manager.create_incremental()[1]
print((time.perf_counter() - begin) * 1e3)
assert changes == [], changes
"""

FILES = """
import sys, time
from nono_py import SnapshotManager
tree, store, session = sys.argv[1:]
manifest = SnapshotManager(session, [tree], None, 0, 0, store=store).load_manifest(0)
begin = time.perf_counter()
files = manifest.files
print((time.perf_counter() - begin) * 1e3)
assert len(files) == manifest.coverage.files
"""


def python(code: str, *words: object) -> float:
    """What a program in Python says it took, in milliseconds."""
    shown = subprocess.run([sys.executable, "-c", code, *map(str, words)], check=True, capture_output=True, text=True)
    return float(shown.stdout)


def rust(binary: str, operation: str, *words: object) -> float:
    """The same from the helper of the other benchmarks."""
    command = [binary, "snapshot", operation, *map(str, words)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    return next(float(line.split()[1]) for line in shown.stdout.splitlines() if line.startswith("ms "))


def started(code: str) -> float:
    """Processor time of a whole interpreter, in milliseconds: a busy machine disturbs it less than the clock."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used * 1e3


def imported() -> float:
    """What the import of the package takes by itself, in milliseconds."""
    command = [sys.executable, "-X", "importtime", "-c", "import nono_py"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    last = shown.stderr.splitlines()[-1]
    assert last.endswith("| nono_py"), last
    return int(last.split("|")[1]) / 1e3


def plant(root: Path) -> Path:
    """A tree of two thousand files."""
    for folder in range(40):
        (root / f"{folder}").mkdir()
        for number in range(50):
            (root / f"{folder}" / f"{number}.txt").write_text(f"{folder} {number}\n" * 20)
    return root


def row(what: str, reference: float | None, ours: float, goal: str) -> None:
    shown = "-" if reference is None else f"{reference:.1f} ms"
    ratio = "-" if reference is None else f"{ours / reference:.2f}"
    print(f"| {what} | {shown} | {ours:.1f} ms | {ratio} | {goal} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rust", required=True, help="the program of the other benchmarks")
    parser.add_argument("--tree", default=os.environ.get("NONO_BENCH_TREE"), help="the Linux source, unpacked")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="one round, on a small tree")
    options = parser.parse_args()
    small = tempfile.TemporaryDirectory()
    if options.quick:
        options.rounds = 1
        options.tree = options.tree or plant(Path(small.name))
    print("| what | reference | ours | ratio | goal |\n|---|---|---|---|---|", flush=True)
    if options.tree:
        with tempfile.TemporaryDirectory() as folder:
            place = (Path(options.tree).resolve(), Path(folder) / "store", Path(folder) / "session")
            rust(options.rust, "baseline", *place)
            rust(options.rust, "settle", *place)
            theirs, ours, files = [], [], []
            for _ in range(options.rounds):
                theirs.append(rust(options.rust, "incremental", *place))
                ours.append(python(INCREMENTAL, *place))
                files.append(python(FILES, *place))
            what = "`create_incremental` from Python, nothing changed, to the same in Rust"
            row(what, statistics.median(theirs), statistics.median(ours), "1.1")
            row("`manifest.files` of that tree", None, statistics.median(files), "150 ms")
    pairs = [(started("pass"), started("import nono_py")) for _ in range(options.rounds)]
    without, with_it = map(statistics.median, zip(*pairs))
    row("`python -c 'import nono_py'`, to `python -c pass`", without, with_it, "-")
    row("of that, the import", None, statistics.median(imported() for _ in range(options.rounds)), "50 ms")


if __name__ == "__main__":
    main()
