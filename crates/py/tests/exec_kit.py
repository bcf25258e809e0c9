"""What the tests of commands share: a set that lets ordinary programs run, and questions about processes."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path

from nono_py import AccessMode, CapabilitySet, ExecResult, sandboxed_exec

SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib64"]
PATH = [("PATH", "/usr/bin:/bin")]


def system(*extra: Path) -> CapabilitySet:
    """The programs of the system and Python's own, and these folders to write in; no network."""
    caps = CapabilitySet()
    for path in [*SYSTEM, os.path.realpath(sys.base_prefix), sys.prefix]:
        if os.path.isdir(path):
            caps.allow_path(path, AccessMode.READ)
    for device in ["/dev/null", "/dev/zero", "/dev/urandom"]:
        caps.allow_file(device, AccessMode.READ_WRITE)
    for folder in extra:
        caps.allow_path(folder, AccessMode.READ_WRITE)
    caps.block_network()
    return caps


def sh(caps: CapabilitySet, script: str, **rest: object) -> ExecResult:
    """Run a script of the shell."""
    return sandboxed_exec(caps, ["sh", "-c", script], env=PATH, **rest)  # type: ignore[arg-type]


def marker() -> str:
    """A unique time to sleep, by which a process can be found."""
    return f"9{uuid.uuid4().int % 10**8}.5"


def running(word: str) -> list[int]:
    """Other processes with this among their arguments."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in words:
                found.append(int(entry))
    return found


def session_base() -> Path:
    """Where the folders of running commands are."""
    return Path(os.environ.get("TMPDIR", "/tmp")).resolve() / f"nono-{os.geteuid()}"


def left_folders() -> list[str]:
    """Folders of commands that this process left behind."""
    base = session_base()
    mine = f"{os.getpid():x}."
    return [entry for entry in os.listdir(base) if entry.startswith(mine)] if base.exists() else []
