"""Snapshots of a folder, what changed between them, and the way back."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nono_py as nono


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary, "project")
        (project / "build").mkdir(parents=True)
        (project / "main.py").write_text("print('hello')\n")
        (project / "build" / "main.pyc").write_text("can be made again")

        rules = nono.ExclusionConfig(exclude_patterns=["build"])
        manager = nono.SnapshotManager(Path(temporary, "session"), [project], rules)
        baseline = manager.create_baseline()
        print(f"snapshot {baseline.number}: {len(baseline.files)} file(s), root {baseline.merkle_root.hex()[:12]}")
        print(f"left out: {baseline.coverage.entries_left_out}")

        # The project changes.
        (project / "main.py").write_text("print('broken'\n")
        (project / "notes.txt").write_text("a new file\n")
        manifest, changes = manager.create_incremental()
        print(f"snapshot {manifest.number}:")
        for change in changes:
            print(f"  {change.change_type:8} {Path(change.path).name} ({change.size_delta:+} bytes)")

        # What going back would do, and then doing it.
        assert len(manager.compute_restore_diff(0)) == 2
        for change in manager.restore_to(0):
            print(f"restored: {change.change_type:8} {Path(change.path).name}")
        assert (project / "main.py").read_text() == "print('hello')\n"
        assert not (project / "notes.txt").exists()
        assert (project / "build" / "main.pyc").exists()

        # Nothing is lost by it: the other state is a snapshot, too.
        manager.restore_to(1)
        print(f"forward again: {(project / 'notes.txt').read_text()!r}")


if __name__ == "__main__":
    main()
