"""An agent's turns, and going back before one of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nono_py as nono


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary, "home", "project")
        project.mkdir(parents=True)
        (project / "pyproject.toml").write_text("[project]\n")
        (project / "app.py").write_text("version = 1\n")
        manager = nono.CheckpointManager(Path(temporary, "state"), Path(temporary, "home"), agent="example")

        # Each prompt of the user begins a turn; each tool call that writes asks for a checkpoint first.
        for version in (2, 3):
            manager.new_turn()
            with manager.call(project, f"write version {version}"):
                (project / "app.py").write_text(f"version = {version}\n")

        for checkpoint in manager.list_checkpoints(project):
            print(f"{checkpoint.number}: before {checkpoint.reason!r}, {checkpoint.files} files")

        diff = manager.diff(project, 1)
        print(diff.patch)
        outcome = manager.restore(project, 1)
        print(f"went back: {[change.path for change in outcome.changes]}")
        assert (project / "app.py").read_text() == "version = 2\n"

        manager.undo(project)
        print(f"and forward: {(project / 'app.py').read_text().strip()}")
        assert (project / "app.py").read_text() == "version = 3\n"


if __name__ == "__main__":
    main()
