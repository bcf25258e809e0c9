"""The log of a supervised run is verified by ``nono_py.audit`` as it is by the library itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nono_py
from nono_py import audit


@pytest.mark.integration
def test_the_log_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NONO_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    report = nono_py.run(
        ["/bin/sh", "-c", "echo é > new"],
        allow=[project],
        workdir=project,
        rollback=True,
        capture_output=True,
    )
    assert report.ok and report.audit_dir is not None
    folder = Path(report.audit_dir)
    result = audit.verify_log(folder)
    assert result["event_count"] == result["stored_event_count"] == len(list(audit.iter_session(folder))) > 2
    session = json.loads((folder / "session.json").read_text())
    found = audit.verify_session_in_ledger(folder.parent / audit.AUDIT_LEDGER_FILENAME, session)
    assert found["session_found"] and found["session_digest_matches"] and found["ledger_chain_verified"]

    log = folder / "events.ndjson"
    log.write_bytes(log.read_bytes().replace(b"session_started", b"session_starteD", 1))
    with pytest.raises(audit.VerificationError, match="line 1"):
        audit.verify_log(folder)
