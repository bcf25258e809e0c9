"""nono: run agents and commands in a sandbox the kernel enforces; snapshot folders, and undo anything.

    import nono_py as nono

    caps = nono.CapabilitySet()
    caps.allow_path("/usr", nono.AccessMode.READ)
    caps.block_network()
    print(nono.sandboxed_exec(caps, ["/usr/bin/id"]).stdout)

``nono_py.audit`` needs pydantic (``pip install nono-py[audit]``) and is imported when it is first used.
``nono_py.aio`` has the long calls for asyncio.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ._nono_py import (
    # --- everywhere
    Cancel,
    Cancelled,
    CheckpointError,
    ExecError,
    NonoError,
    PolicyError,
    ProxyError,
    SandboxError,
    SessionError,
    SnapshotError,
    __version__,
)

# --- capabilities
from ._nono_py import (
    AccessMode,
    CapabilitySet,
    CapabilitySource,
    FsCapability,
    QueryContext,
    SandboxState,
    SupportInfo,
    apply,
    is_supported,
    support_info,
)

# --- policy
from ._nono_py import (
    Policy,
    ResolvedPolicy,
    apply_unlink_overrides,
    embedded_policy_json,
    load_embedded_policy,
    load_policy,
    validate_deny_overlaps,
)

# --- exec
from ._nono_py import ExecResult, sandboxed_exec

# --- proxy
from ._nono_py import (
    ExternalProxyConfig,
    InjectMode,
    ProxyConfig,
    ProxyHandle,
    RouteConfig,
    start_proxy,
)

# --- snapshots
from ._nono_py import (
    Change,
    ContentHash,
    ExclusionConfig,
    FileState,
    SessionMetadata,
    SnapshotManager,
    SnapshotManifest,
)
from ._snapshot_block import Snapshot
from ._snapshots import ChangeList, Coverage, RestoreReport

# --- changes, restores and reports, of sessions and of checkpoints
from ._history import HistoryChange, HistoryChanges, PruneReport, RestoreResult, VerifyReport

# --- checkpoints
from ._checkpoints import (
    CheckpointList,
    CheckpointNote,
    CheckpointProject,
    CheckpointResult,
    CheckpointStatus,
    ForgetReport,
    HookChanges,
    HookStatus,
    ImportReport,
)
from ._history import Checkpoint, CheckpointStats
from ._nono_py import (
    AgentTurns,
    CheckpointCall,
    CheckpointManager,
    FileVersions,
    hooks_install,
    hooks_remove,
    hooks_status,
    risk_of,
)

# --- sessions
from ._nono_py import (
    RollbackSession,
    RunningSession,
    cleanup_sessions,
    list_sessions,
    open_session,
    running_sessions,
    stop_session,
    undo_points,
    verify_sessions,
)
from ._reports import ApprovalRequest, Denial, SessionReport
from ._session import RunOptions, Session, resolve, run

CheckpointVerification = VerifyReport
"""Former name of ``VerifyReport``."""

if TYPE_CHECKING:
    from . import aio as aio
    from . import audit as audit

__all__ = [
    # --- everywhere
    "Cancel",
    "Cancelled",
    "CheckpointError",
    "ExecError",
    "NonoError",
    "PolicyError",
    "ProxyError",
    "SandboxError",
    "SessionError",
    "SnapshotError",
    "__version__",
    "aio",
    # --- capabilities
    "AccessMode",
    "CapabilitySet",
    "CapabilitySource",
    "FsCapability",
    "QueryContext",
    "SandboxState",
    "SupportInfo",
    "apply",
    "is_supported",
    "support_info",
    # --- policy
    "Policy",
    "ResolvedPolicy",
    "apply_unlink_overrides",
    "embedded_policy_json",
    "load_embedded_policy",
    "load_policy",
    "validate_deny_overlaps",
    # --- exec
    "ExecResult",
    "sandboxed_exec",
    # --- proxy
    "ExternalProxyConfig",
    "InjectMode",
    "ProxyConfig",
    "ProxyHandle",
    "RouteConfig",
    "start_proxy",
    # --- snapshots
    "Change",
    "ChangeList",
    "ContentHash",
    "Coverage",
    "ExclusionConfig",
    "FileState",
    "RestoreReport",
    "SessionMetadata",
    "Snapshot",
    "SnapshotManager",
    "SnapshotManifest",
    # --- changes, restores and reports, of sessions and of checkpoints
    "HistoryChange",
    "HistoryChanges",
    "PruneReport",
    "RestoreResult",
    "VerifyReport",
    # --- checkpoints
    "AgentTurns",
    "Checkpoint",
    "CheckpointCall",
    "CheckpointList",
    "CheckpointManager",
    "CheckpointNote",
    "CheckpointProject",
    "CheckpointResult",
    "CheckpointStats",
    "CheckpointStatus",
    "CheckpointVerification",
    "FileVersions",
    "ForgetReport",
    "HookChanges",
    "HookStatus",
    "ImportReport",
    "hooks_install",
    "hooks_remove",
    "hooks_status",
    "risk_of",
    # --- sessions
    "ApprovalRequest",
    "Denial",
    "RollbackSession",
    "RunOptions",
    "RunningSession",
    "Session",
    "SessionReport",
    "cleanup_sessions",
    "list_sessions",
    "open_session",
    "resolve",
    "run",
    "running_sessions",
    "stop_session",
    "undo_points",
    "verify_sessions",
]


# `import *` has everything that is available.
if find_spec("pydantic") is not None:
    __all__ += ["audit"]


def __dir__() -> list[str]:
    return sorted({*globals(), "aio", "audit"})


def __getattr__(name: str) -> Any:
    # A plain import loads neither pydantic nor asyncio.
    if name in ("aio", "audit"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
