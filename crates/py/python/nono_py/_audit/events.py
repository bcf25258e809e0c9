"""The events of a log as strict models: no further keys, no value turned into another type."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

EVENT_TYPES = frozenset({"session_started", "session_ended", "capability_decision", "url_open", "network"})

_U16 = Annotated[int, Field(ge=0, le=0xFFFF)]
_U32 = Annotated[int, Field(ge=0, le=0xFFFF_FFFF)]
_U64 = Annotated[int, Field(ge=0, le=0xFFFF_FFFF_FFFF_FFFF)]
_I32 = Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]

Access = Literal["Read", "Write", "ReadWrite"]
NetworkMode = Literal["connect", "connect_intercept", "reverse", "external"]
NetworkDecision = Literal["allow", "deny"]
AuthMechanism = Literal["proxy_authorization", "phantom_header", "phantom_path", "phantom_query"]
AuthOutcome = Literal["succeeded", "failed"]
InjectionMode = Literal["header", "url_path", "query_param", "basic_auth", "oauth2"]
DenialCategory = Literal[
    "authentication_failed",
    "endpoint_policy",
    "managed_credential_unavailable",
    "host_denied",
    "intercept_handshake_failed",
    "upstream_connect_failed",
    "connect_bypasses_l7",
    "external_proxy_rejected",
]


class _Payload(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", validate_assignment=True)

    # Left out of the record if empty; all others are written as null.
    _left_out: ClassVar[frozenset[str]] = frozenset()

    def to_wire(self) -> dict[str, Any]:
        """The payload as it stands in a record: plain values, keys in their order."""
        wire: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if self._is_left_out(name, value):
                continue
            wire[name] = _wire(value)
        return wire

    def _is_left_out(self, name: str, value: object) -> bool:
        return value is None and name in self._left_out


def _wire(value: Any) -> Any:
    if isinstance(value, _Payload):
        return value.to_wire()
    return list(value) if isinstance(value, list) else value


class _Reason(_Payload):
    reason: str


class _Denied(_Payload):
    Denied: _Reason


ApprovalDecision = Union[Literal["Granted", "Timeout"], _Denied]
"""``"Granted"``, ``"Timeout"`` or ``{"Denied": {"reason": ...}}``."""


class CapabilityRequestPayload(_Payload):
    """A request for a path."""

    request_id: str
    path: str
    access: Access
    reason: str | None = None
    child_pid: _U32
    session_id: str


class AuditEntryPayload(_Payload):
    """An answer to a request for a path."""

    timestamp: str
    request: CapabilityRequestPayload
    decision: ApprovalDecision
    backend: str
    duration_ms: _U64


class UrlOpenRequestPayload(_Payload):
    """A request to open a URL."""

    request_id: str
    url: str
    child_pid: _U32
    session_id: str


class NetworkAuditEventPayload(_Payload):
    """One connection, or one request, through the proxy."""

    _left_out: ClassVar[frozenset[str]] = frozenset(
        {
            "route_id",
            "auth_mechanism",
            "auth_outcome",
            "managed_credential_active",
            "injection_mode",
            "denial_category",
        }
    )

    timestamp_unix_ms: _U64
    mode: NetworkMode
    decision: NetworkDecision
    route_id: str | None = None
    auth_mechanism: AuthMechanism | None = None
    auth_outcome: AuthOutcome | None = None
    managed_credential_active: bool | None = None
    injection_mode: InjectionMode | None = None
    denial_category: DenialCategory | None = None
    target: str
    port: _U16 | None = None
    method: str | None = None
    path: str | None = None
    status: _U16 | None = None
    reason: str | None = None


class ScrubPolicyDiffPayload(_Payload):
    """Differences of the redaction rules from the built-in ones. Empty lists are not written."""

    added_flags: list[str] = Field(default_factory=list)
    removed_flags: list[str] = Field(default_factory=list)
    added_headers: list[str] = Field(default_factory=list)
    removed_headers: list[str] = Field(default_factory=list)
    added_query_keys: list[str] = Field(default_factory=list)
    removed_query_keys: list[str] = Field(default_factory=list)

    def _is_left_out(self, name: str, value: object) -> bool:
        return not value


class SessionStartedEvent(_Payload):
    """A session began."""

    _left_out: ClassVar[frozenset[str]] = frozenset({"redaction_policy"})

    type: Literal["session_started"] = "session_started"
    started: str
    command: list[str]
    redaction_policy: ScrubPolicyDiffPayload | None = None


class SessionEndedEvent(_Payload):
    """A session ended."""

    type: Literal["session_ended"] = "session_ended"
    ended: str
    exit_code: _I32


class CapabilityDecisionEvent(_Payload):
    """A request for a path was answered."""

    type: Literal["capability_decision"] = "capability_decision"
    entry: AuditEntryPayload


class UrlOpenEvent(_Payload):
    """A request to open a URL was answered."""

    type: Literal["url_open"] = "url_open"
    request: UrlOpenRequestPayload
    success: bool
    error: str | None = None


class NetworkEvent(_Payload):
    """A request through the proxy, allowed or refused."""

    type: Literal["network"] = "network"
    event: NetworkAuditEventPayload


AuditEvent = Annotated[
    Union[SessionStartedEvent, SessionEndedEvent, CapabilityDecisionEvent, UrlOpenEvent, NetworkEvent],
    Field(discriminator="type"),
]
"""Any of the events, distinguished by their ``type``."""

_ANY_EVENT: TypeAdapter[_Payload] = TypeAdapter(AuditEvent)


class AuditEventRecord(_Payload):
    """One line of a log."""

    sequence: _U64
    prev_chain: str | None
    leaf_hash: str
    chain_hash: str
    event_json: str
    event: AuditEvent


def event_wire(event: object) -> dict[str, Any]:
    """An event, given as a model or as a mapping, as it stands in a record; pydantic's ValidationError if it is none."""
    # A model was checked when it was made, but a list in it may have changed since.
    given = event.to_wire() if isinstance(event, _Payload) else event
    return _ANY_EVENT.validate_python(given).to_wire()
