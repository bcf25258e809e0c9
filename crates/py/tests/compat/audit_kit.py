"""What the tests of ``nono_py.audit`` share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nono_py import audit

NATIVE = Path(__file__).parent / "fixtures" / "native"

ENDED: dict[str, Any] = {"type": "session_ended", "ended": "t", "exit_code": 0}
LEAF = "41d4327e2c77da30d255b773bc8eb2e2d1641305ad8a357d27eabfdde363f315"
CHAIN = "91eeedc870b9ad2684afee061e19f15f50c5fc05712f05d27b68b13b23ec5ec0"

GOLDEN: dict[str, Any] = {
    "session_id": "20260421-200000-11111",
    "started": "2026-04-21T20:00:00Z",
    "ended": "2026-04-21T20:00:01Z",
    "command": ["/bin/pwd"],
    "executable_identity": None,
    "tracked_paths": ["/tmp/work"],
    "snapshot_count": 0,
    "exit_code": 0,
    "merkle_roots": [],
    "network_events": [],
    "audit_event_count": 2,
    "audit_integrity": None,
    "audit_attestation": None,
}
DIGEST = "3a1ed53d426d6ea2544cec6cf6b95ccdc31fda4570d86931239ee0f7d7d39012"
LEDGER_CHAIN = "8b6dbc155d44df05e6b5e9948fb8fff142222b4b41fb37284fb0d1217000e9bb"

Change = Callable[[dict[str, Any]], object]


def write_log(folder: Path, count: int = 3) -> list[dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    recorder = audit.AlphaRecorder()
    with open(folder / audit.AUDIT_EVENTS_FILENAME, "w") as log:
        return [
            recorder.write(log, audit.session_ended(ended=f"é{number}", exit_code=number))
            for number in range(count)
        ]


def rewrite(folder: Path, records: list[Any]) -> None:
    text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    (folder / audit.AUDIT_EVENTS_FILENAME).write_text(text)
