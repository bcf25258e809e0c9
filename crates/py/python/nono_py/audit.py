"""Audit logs in Python: write records, read and verify logs and ledgers, prove that an event was recorded.

    from nono_py import audit

    recorder = audit.AlphaRecorder()
    with open(folder / audit.AUDIT_EVENTS_FILENAME, "a") as log:
        recorder.write(log, audit.session_started(started=now, command=["make"]))
    print(audit.verify_log(folder)["event_count"])

The format is the one of ``nono run`` (SHA-256, scheme ``alpha``), so the readers and ``verify_log`` take a session's folder
under ``~/.nono/audit`` as well: its log is ``events.ndjson`` there, and has more kinds of events. What is read may have been
tampered with: a log, a ledger or a proof that is not what was written is a ``VerificationError``, whatever is in it.

Needs pydantic: ``pip install 'nono-py[audit]'``.
"""

from __future__ import annotations

try:
    from ._audit import events as _events
except ImportError as _error:
    raise ImportError(
        "nono_py.audit needs pydantic 2: pip install 'nono-py[audit]'", name="pydantic"
    ) from _error

from ._audit import (
    AUDIT_EVENTS_FILENAME,
    AUDIT_LEDGER_FILENAME,
    CHAIN_DOMAIN_ALPHA,
    EVENT_DOMAIN_ALPHA,
    HASH_ALGORITHM_ALPHA,
    LEDGER_CHAIN_DOMAIN_ALPHA,
    MERKLE_DOMAIN_ALPHA,
    MERKLE_SCHEME_ALPHA,
    SESSION_DIGEST_DOMAIN_ALPHA,
)
from ._audit.builders import (
    approval_denied,
    approval_granted,
    approval_timeout,
    capability_decision,
    network,
    session_ended,
    session_started,
    url_open,
)
from ._audit.events import (
    EVENT_TYPES,
    ApprovalDecision,
    AuditEntryPayload,
    AuditEvent,
    AuditEventRecord,
    CapabilityDecisionEvent,
    CapabilityRequestPayload,
    NetworkAuditEventPayload,
    NetworkEvent,
    ScrubPolicyDiffPayload,
    SessionEndedEvent,
    SessionStartedEvent,
    UrlOpenEvent,
    UrlOpenRequestPayload,
)
from ._audit.ledger import (
    LedgerRecordDict,
    LedgerVerificationResultDict,
    build_ledger_record,
    compute_session_digest,
    iter_ledger,
    validate_ledger_session_id,
    verify_session_in_ledger,
)
from ._audit.log import AuditVerificationResultDict, iter_session, tail_session, verify_log
from ._audit.proof import (
    AuditInclusionProofDict,
    AuditProofNodeDict,
    build_inclusion_proof,
    verify_inclusion_proof,
)
from ._audit.recorder import AlphaRecorder
from ._nono_py import VerificationError

del _events

__all__ = [
    "AUDIT_EVENTS_FILENAME",
    "AUDIT_LEDGER_FILENAME",
    "CHAIN_DOMAIN_ALPHA",
    "EVENT_DOMAIN_ALPHA",
    "EVENT_TYPES",
    "HASH_ALGORITHM_ALPHA",
    "LEDGER_CHAIN_DOMAIN_ALPHA",
    "MERKLE_DOMAIN_ALPHA",
    "MERKLE_SCHEME_ALPHA",
    "SESSION_DIGEST_DOMAIN_ALPHA",
    "AlphaRecorder",
    "ApprovalDecision",
    "AuditEntryPayload",
    "AuditEvent",
    "AuditEventRecord",
    "AuditInclusionProofDict",
    "AuditProofNodeDict",
    "AuditVerificationResultDict",
    "CapabilityDecisionEvent",
    "CapabilityRequestPayload",
    "LedgerRecordDict",
    "LedgerVerificationResultDict",
    "NetworkAuditEventPayload",
    "NetworkEvent",
    "ScrubPolicyDiffPayload",
    "SessionEndedEvent",
    "SessionStartedEvent",
    "UrlOpenEvent",
    "UrlOpenRequestPayload",
    "VerificationError",
    "approval_denied",
    "approval_granted",
    "approval_timeout",
    "build_inclusion_proof",
    "build_ledger_record",
    "capability_decision",
    "compute_session_digest",
    "iter_ledger",
    "iter_session",
    "network",
    "session_ended",
    "session_started",
    "tail_session",
    "url_open",
    "validate_ledger_session_id",
    "verify_inclusion_proof",
    "verify_log",
    "verify_session_in_ledger",
]
