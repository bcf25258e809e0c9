"""``with Snapshot(...)``: an exception undoes what the block did."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nono_py as nono


def rename_everything(project: Path) -> None:
    """Stops halfway, as such programs do."""
    for number, path in enumerate(sorted(project.glob("*.txt"))):
        if number == 2:
            raise RuntimeError("the third name is taken")
        path.rename(path.with_suffix(".md"))


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary)
        for name in ("one", "two", "three"):
            (project / f"{name}.txt").write_text(name)

        try:
            with nono.Snapshot(project) as snapshot:
                print(f"protected: {len(snapshot.manifest.files)} files")
                rename_everything(project)
        except RuntimeError as error:
            print(f"failed: {error}")
        print(sorted(path.name for path in project.iterdir()))
        assert sorted(path.name for path in project.iterdir()) == ["one.txt", "three.txt", "two.txt"]

        # What ends well stays.
        with nono.Snapshot(project) as snapshot:
            (project / "one.txt").write_text("changed")
            print([(Path(change.path).name, change.change_type) for change in snapshot.changes()])
        assert (project / "one.txt").read_text() == "changed"


if __name__ == "__main__":
    main()
