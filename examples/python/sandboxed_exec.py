"""A command that reaches one folder and nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nono_py as nono


def programs() -> nono.CapabilitySet:
    """The grants that programs need to start."""
    caps = nono.CapabilitySet()
    for path in ("/usr", "/bin", "/lib", "/lib64"):
        if Path(path).is_dir():
            caps.allow_path(path, nono.AccessMode.READ)
    return caps


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        project, secrets = Path(temporary, "project"), Path(temporary, "secrets")
        project.mkdir()
        secrets.mkdir()
        (secrets / "key").write_text("do not read me\n")

        caps = programs()
        caps.allow_path(project, nono.AccessMode.READ_WRITE)
        caps.block_network()
        print(caps.summary())

        inside = nono.sandboxed_exec(caps, ["/bin/sh", "-c", "echo made here > note; cat note"], cwd=project)
        print(f"inside:  exit {inside.exit_code}, {inside.stdout!r}")
        assert inside.exit_code == 0

        outside = nono.sandboxed_exec(caps, ["/bin/cat", str(secrets / "key")])
        print(f"outside: exit {outside.exit_code}, {outside.stderr!r}")
        assert outside.exit_code != 0 and outside.stdout == b""

        late = nono.sandboxed_exec(caps, ["/bin/sleep", "60"], timeout_secs=0.2)
        print(f"late:    exit {late.exit_code}")
        assert late.exit_code == 124

        # The same answers, without running anything.
        query = nono.QueryContext(caps)
        print(query.query_path(project / "note", nono.AccessMode.WRITE))
        print(query.query_path(secrets / "key", nono.AccessMode.READ))


if __name__ == "__main__":
    main()
