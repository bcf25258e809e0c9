"""A log: written, verified, entered in a ledger; one event proven; an edit found."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import nono_py as nono
from nono_py import audit


def write_log(folder: Path) -> None:
    """As a program of your own would."""
    recorder = audit.AlphaRecorder()
    with open(folder / audit.AUDIT_EVENTS_FILENAME, "a") as log:
        recorder.write(log, audit.session_started(started="2026-01-01T10:00:00Z", command=["agent"]))
        decision = audit.approval_denied("not in this project")
        recorder.write(
            log,
            audit.capability_decision(
                timestamp="2026-01-01T10:00:03Z",
                path="/etc/shadow",
                access="Read",
                child_pid=4321,
                session_id="example",
                decision=decision,
                backend="terminal",
                duration_ms=900,
            ),
        )
        recorder.write(log, audit.session_ended(ended="2026-01-01T10:00:09Z", exit_code=0))


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_log(folder)
        for record in audit.iter_session(folder):
            print(record["sequence"], record["event"]["type"], record["chain_hash"][:12])
        result = audit.verify_log(folder)
        print(f"good: {result['event_count']} records, root {result['computed_merkle_root']}")

        # Prove one of them to a verifier that knows only the root.
        leaves = [record["leaf_hash"] for record in audit.iter_session(folder)]
        proof = audit.build_inclusion_proof(leaves, 1)
        assert audit.verify_inclusion_proof(proof, expected_root=result["computed_merkle_root"])
        print(f"record 1 is proven by {len(proof['siblings'])} digests")

        # The ledger remembers the session.
        session = nono.SessionMetadata("example", ["agent"], [])
        line = audit.build_ledger_record(session, sequence=0, previous_chain=None)
        ledger = folder / audit.AUDIT_LEDGER_FILENAME
        ledger.write_text(json.dumps(line) + "\n")
        assert audit.verify_session_in_ledger(ledger, session)["session_digest_matches"]

        # Tamper with the log.
        log = folder / audit.AUDIT_EVENTS_FILENAME
        log.write_text(log.read_text().replace("not in this project", "you are welcome here"))
        try:
            audit.verify_log(folder)
        except audit.VerificationError as error:
            print(f"found: {error}")
        else:
            raise SystemExit("the edit was not found")


if __name__ == "__main__":
    main()
