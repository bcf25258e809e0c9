"""Implementation of ``nono_py.audit``; import from there. Digests, records and proofs are checked by the native module."""

from __future__ import annotations

AUDIT_EVENTS_FILENAME = "audit-events.ndjson"
AUDIT_LEDGER_FILENAME = "ledger.ndjson"
HASH_ALGORITHM_ALPHA = "sha256"
MERKLE_SCHEME_ALPHA = "alpha"

EVENT_DOMAIN_ALPHA = b"nono.audit.event.alpha\n"
CHAIN_DOMAIN_ALPHA = b"nono.audit.chain.alpha\n"
MERKLE_DOMAIN_ALPHA = b"nono.audit.merkle.alpha\n"
SESSION_DIGEST_DOMAIN_ALPHA = b"nono.audit.session-digest.alpha\n"
LEDGER_CHAIN_DOMAIN_ALPHA = b"nono.audit.ledger.chain.alpha\n"
