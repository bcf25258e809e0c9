"""What the tests of the interface share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nono_py
from nono_py import AccessMode, CapabilitySet

# For what the types forbid, on purpose.
untyped: Any = nono_py

SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/dev", sys.prefix, sys.base_prefix]


def system_caps() -> CapabilitySet:
    """What programs need to start."""
    caps = CapabilitySet()
    for path in SYSTEM:
        if Path(path).is_dir():
            caps.allow_path(path, AccessMode.READ)
    return caps
