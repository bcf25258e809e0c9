"""Events from their values, checked: plain dicts, for ``AlphaRecorder``. All raise pydantic's ValidationError."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from . import events
from .events import ScrubPolicyDiffPayload


def approval_granted() -> str:
    """The decision that grants a request."""
    return "Granted"


def approval_timeout() -> str:
    """The decision for a request without an answer in time."""
    return "Timeout"


def approval_denied(reason: str) -> dict[str, dict[str, str]]:
    """The decision that denies a request."""
    return {"Denied": {"reason": reason}}


def session_started(
    *,
    started: str,
    command: Iterable[str],
    redaction_policy: Mapping[str, Any] | ScrubPolicyDiffPayload | None = None,
) -> dict[str, Any]:
    """A session began."""
    event: dict[str, Any] = {"type": "session_started", "started": started, "command": _listed(command)}
    if redaction_policy is not None:
        event["redaction_policy"] = redaction_policy
    return events.event_wire(event)


def session_ended(*, ended: str, exit_code: int) -> dict[str, Any]:
    """A session ended."""
    return events.event_wire({"type": "session_ended", "ended": ended, "exit_code": exit_code})


def capability_decision(
    *,
    timestamp: str,
    path: str | os.PathLike[str],
    access: str,
    child_pid: int,
    session_id: str,
    decision: str | Mapping[str, Any],
    backend: str,
    duration_ms: int,
    request_id: str | None = None,
    reason: str | None = None,
) -> dict[str, Any]:
    """A request for a path was answered: ``decision`` is one of ``approval_granted()`` and its like."""
    request = {
        "request_id": _request_id(request_id),
        "path": os.fspath(path) if isinstance(path, os.PathLike) else path,
        "access": access,
        "reason": reason,
        "child_pid": child_pid,
        "session_id": session_id,
    }
    entry = {
        "timestamp": timestamp,
        "request": request,
        "decision": decision,
        "backend": backend,
        "duration_ms": duration_ms,
    }
    return events.event_wire({"type": "capability_decision", "entry": entry})


def url_open(
    *,
    url: str,
    child_pid: int,
    session_id: str,
    success: bool,
    error: str | None = None,
    request_id: str | None = None,
) -> dict[str, Any]:
    """A request to open a URL was answered."""
    request = {
        "request_id": _request_id(request_id),
        "url": url,
        "child_pid": child_pid,
        "session_id": session_id,
    }
    return events.event_wire({"type": "url_open", "request": request, "success": success, "error": error})


def network(
    *,
    timestamp_unix_ms: int,
    mode: str,
    decision: str,
    target: str,
    port: int | None = None,
    method: str | None = None,
    path: str | None = None,
    status: int | None = None,
    reason: str | None = None,
    route_id: str | None = None,
    auth_mechanism: str | None = None,
    auth_outcome: str | None = None,
    managed_credential_active: bool | None = None,
    injection_mode: str | None = None,
    denial_category: str | None = None,
) -> dict[str, Any]:
    """A request through the proxy, allowed or refused."""
    event = {
        "timestamp_unix_ms": timestamp_unix_ms,
        "mode": mode,
        "decision": decision,
        "route_id": route_id,
        "auth_mechanism": auth_mechanism,
        "auth_outcome": auth_outcome,
        "managed_credential_active": managed_credential_active,
        "injection_mode": injection_mode,
        "denial_category": denial_category,
        "target": target,
        "port": port,
        "method": method,
        "path": path,
        "status": status,
        "reason": reason,
    }
    return events.event_wire({"type": "network", "event": event})


def _request_id(given: str | None) -> str:
    return uuid4().hex if given is None else given


def _listed(command: Iterable[str]) -> object:
    # A string is a sequence of its letters; it stays what it is, and is refused.
    return command if isinstance(command, (str, bytes)) or not isinstance(command, Iterable) else list(command)
