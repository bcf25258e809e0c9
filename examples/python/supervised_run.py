"""``run(...)``: an approver answers what the command asks for; its changes are reviewed and rolled back."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nono_py as nono

SCRIPT = """
echo 'left by the agent' > report.txt
cat {allowed} >> report.txt
cat {refused} >> report.txt 2>/dev/null || echo 'I may not read everything' >> report.txt
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["NONO_HOME"] = str(Path(temporary, "state"))
        project, shared = Path(temporary, "project"), Path(temporary, "shared")
        project.mkdir()
        shared.mkdir()
        (shared / "style.md").write_text("Write short sentences.\n")
        (shared / "salaries.csv").write_text("secret\n")

        def approve(request: nono.ApprovalRequest) -> bool:
            yes = request.path is not None and request.path.endswith(".md")
            print(f"asked: {request.program} wants to {request.access} {request.path}: {'yes' if yes else 'no'}")
            return yes

        script = SCRIPT.format(allowed=shared / "style.md", refused=shared / "salaries.csv")
        session = nono.Session(
            ["sh", "-c", script],
            allow=[project],
            workdir=project,
            rollback=True,
            approve=approve,
            capture_output=True,
        )
        report = session.run()
        print(f"exit {report.exit_code}, asked {report.asked} time(s)")
        print((project / "report.txt").read_text())
        assert report.changes is not None
        for change in report.changes:
            print(f"{change.change_type}: {Path(change.path).name}")
        assert "Write short sentences." in (project / "report.txt").read_text()
        assert "secret" not in (project / "report.txt").read_text()

        session.restore()
        print(f"rolled back: {sorted(path.name for path in project.iterdir())}")
        assert not (project / "report.txt").exists()


if __name__ == "__main__":
    main()
