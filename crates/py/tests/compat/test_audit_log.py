"""Logs: read, followed and verified, whatever was done to them; logs of `nono run`, too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from nono_py import audit

from .audit_kit import CHAIN, ENDED, GOLDEN, LEAF, NATIVE, Change, rewrite, write_log

# --- readers


def test_iter_session(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(audit.iter_session(tmp_path))
    records = write_log(tmp_path)
    path = tmp_path / audit.AUDIT_EVENTS_FILENAME
    path.write_text("\n  \n" + path.read_text().replace("\n", "\n\n"))
    assert list(audit.iter_session(str(tmp_path))) == records
    for bad in (b"nothing\n", b"[1]\n", b"\xff\n", b"[" * 100_000 + b"\n", b'{"a":NaN}\n'):
        path.write_bytes(bad)
        with pytest.raises(json.JSONDecodeError):
            list(audit.iter_session(tmp_path))


class Tail:
    """``tail_session`` in a thread; what it gave can be waited for."""

    def __init__(self, folder: Path) -> None:
        self.stop = threading.Event()
        self.got: list[int] = []
        self._grown = threading.Condition()
        self._thread = threading.Thread(target=self._run, args=(folder,))
        self._thread.start()

    def _run(self, folder: Path) -> None:
        for record in audit.tail_session(folder, poll_interval_s=0.005, stop_event=self.stop):
            with self._grown:
                self.got.append(record["sequence"])
                self._grown.notify()

    def wait_for(self, expected: list[int]) -> None:
        with self._grown:
            assert self._grown.wait_for(lambda: self.got == expected, 30), self.got

    def end(self) -> None:
        self.stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


def test_tail_session(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    path = tmp_path / audit.AUDIT_EVENTS_FILENAME
    recorder = audit.AlphaRecorder()
    try:
        with open(path, "w") as log:
            recorder.write(log, ENDED)
            recorder.write(log, ENDED)
            tail.wait_for([0, 1])
            line = json.dumps(recorder.record(ENDED))
            log.write(line[:20])
            log.flush()
            log.write(line[20:] + "\n")
            log.flush()
            tail.wait_for([0, 1, 2])
        # Another file in its place.
        fresh = tmp_path / "fresh"
        with open(fresh, "w") as log:
            audit.AlphaRecorder().write(log, ENDED)
        os.rename(fresh, path)
        tail.wait_for([0, 1, 2, 0])
        # The same file, shorter.
        path.write_text('{"sequence":9}\n')
        tail.wait_for([0, 1, 2, 0, 9])
    finally:
        tail.end()


def test_tail_session_ends_without_a_file(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    tail.end()
    assert tail.got == []
    write_log(tmp_path)
    stopped = threading.Event()
    stopped.set()
    assert list(audit.tail_session(tmp_path, poll_interval_s=0.01, stop_event=stopped)) == []


# --- verifier

KEYS = [
    "hash_algorithm",
    "merkle_scheme",
    "event_count",
    "computed_chain_head",
    "computed_merkle_root",
    "stored_event_count",
    "stored_chain_head",
    "stored_merkle_root",
    "event_count_matches",
    "records_verified",
    "missing_canonical_event_json",
]


def test_verify_log(tmp_path: Path) -> None:
    records = write_log(tmp_path)
    result = audit.verify_log(tmp_path)
    assert list(result) == KEYS
    assert result["hash_algorithm"] == "sha256" and result["merkle_scheme"] == "alpha"
    assert result["event_count"] == 3
    assert result["computed_chain_head"] == records[-1]["chain_hash"]
    leaves = [bytes.fromhex(record["leaf_hash"]) for record in records]

    def node(left: bytes, right: bytes) -> bytes:
        return sha256(audit.MERKLE_DOMAIN_ALPHA + left + right).digest()

    assert result["computed_merkle_root"] == node(node(leaves[0], leaves[1]), leaves[2]).hex()
    assert result["stored_event_count"] is None
    assert result["stored_chain_head"] is None and result["stored_merkle_root"] is None
    assert result["event_count_matches"] and result["records_verified"]
    assert result["missing_canonical_event_json"] is False
    # A summary, given and found.
    summary = {
        "hash_algorithm": "sha256",
        "event_count": 3,
        "chain_head": result["computed_chain_head"],
        "merkle_root": result["computed_merkle_root"],
    }
    given = audit.verify_log(tmp_path, stored=summary)
    (tmp_path / "session.json").write_text(json.dumps({"audit_integrity": summary}))
    assert audit.verify_log(str(tmp_path)) == given
    assert given["stored_chain_head"] == summary["chain_head"] and given["stored_event_count"] == 3


def test_an_empty_log_and_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        audit.verify_log(tmp_path)
    (tmp_path / audit.AUDIT_EVENTS_FILENAME).write_text("\n")
    result = audit.verify_log(tmp_path)
    assert result["event_count"] == 0
    assert result["computed_chain_head"] is None and result["computed_merkle_root"] is None
    with pytest.raises(audit.VerificationError):
        audit.verify_log(tmp_path, stored={"event_count": 1, "chain_head": CHAIN, "merkle_root": LEAF})


def test_one_leaf_is_the_root(tmp_path: Path) -> None:
    rewrite(tmp_path, [audit.AlphaRecorder().record(ENDED)])
    assert audit.verify_log(tmp_path)["computed_merkle_root"] == LEAF


def test_another_count_is_only_a_flag(tmp_path: Path) -> None:
    write_log(tmp_path)
    assert audit.verify_log(tmp_path, stored={"event_count": 4})["event_count_matches"] is False


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        (lambda record: record.update(sequence=5), "sequence"),
        (lambda record: record.update(sequence=True), "sequence"),
        (lambda record: record.update(sequence=1.0), "sequence"),
        (lambda record: record.pop("sequence"), "sequence"),
        (lambda record: record.update(prev_chain=LEAF), "prev_chain"),
        (lambda record: record.update(prev_chain=None), "prev_chain"),
        (lambda record: record.update(prev_chain=7), "prev_chain"),
        (lambda record: record.pop("event"), "event"),
        (lambda record: record.update(event=[]), "event"),
        (lambda record: record["event"].update(exit_code=9), "event_json"),
        (lambda record: record["event"].update(exit_code=1.0), "event_json"),
        (lambda record: record["event"].update(exit_code=True), "event_json"),
        (lambda record: record["event"].update(more=9), "event_json"),
        (lambda record: record.update(event_json="{"), "event_json"),
        (lambda record: record.update(event_json=3), "event_json"),
        (lambda record: record.update(event_json="\ud800"), "surrogate"),
        (lambda record: record.update(leaf_hash=LEAF), "leaf"),
        (lambda record: record.update(leaf_hash="x" * 64), "leaf"),
        (lambda record: record.update(leaf_hash=" " + LEAF[1:]), "leaf"),
        (lambda record: record.pop("leaf_hash"), "leaf"),
        (lambda record: record.update(chain_hash=LEAF), "chain hash"),
        (lambda record: record.pop("chain_hash"), "chain hash"),
    ],
)
def test_an_edited_record_is_found(tmp_path: Path, change: Change, fragment: str) -> None:
    records = write_log(tmp_path)
    change(records[1])
    rewrite(tmp_path, records)
    with pytest.raises(audit.VerificationError, match=fragment) as raised:
        audit.verify_log(tmp_path)
    assert "line 2" in str(raised.value)


def test_the_first_record_says_that_nothing_is_before_it(tmp_path: Path) -> None:
    records = write_log(tmp_path)
    del records[0]["prev_chain"]
    rewrite(tmp_path, records)
    with pytest.raises(audit.VerificationError, match="prev_chain"):
        audit.verify_log(tmp_path)


def test_upper_case_digits_are_accepted(tmp_path: Path) -> None:
    records = write_log(tmp_path)
    for record in records:
        for key in ("prev_chain", "leaf_hash", "chain_hash"):
            record[key] = record[key] and record[key].upper()
    rewrite(tmp_path, records)
    result = audit.verify_log(tmp_path)
    stored = {"chain_head": str(result["computed_chain_head"]).upper()}
    assert audit.verify_log(tmp_path, stored=stored)["stored_chain_head"] == result["computed_chain_head"]


@pytest.mark.parametrize(
    "stored",
    [
        {"chain_head": LEAF},
        {"merkle_root": LEAF},
        {"chain_head": "zz"},
        {"event_count": True},
        {"event_count": "3"},
        {"hash_algorithm": "md5"},
        [],
    ],
)
def test_a_wrong_summary(tmp_path: Path, stored: Any) -> None:
    write_log(tmp_path)
    with pytest.raises(audit.VerificationError):
        audit.verify_log(tmp_path, stored=stored)
    (tmp_path / "session.json").write_text(json.dumps({"audit_integrity": stored}))
    with pytest.raises(audit.VerificationError):
        audit.verify_log(tmp_path)


def test_a_session_record_that_is_none(tmp_path: Path) -> None:
    write_log(tmp_path)
    session = tmp_path / "session.json"
    for ignored in (b"no json", b"\xff", b"[" * 100_000, b'{"audit_integrity":null}', b"{}"):
        session.write_bytes(ignored)
        assert audit.verify_log(tmp_path)["stored_chain_head"] is None
    for refused in (b"[]", b"3", b'{"audit_integrity":{},"audit_integrity":null}', b'{"a":NaN}'):
        session.write_bytes(refused)
        with pytest.raises(audit.VerificationError):
            audit.verify_log(tmp_path)


def test_records_without_their_text(tmp_path: Path) -> None:
    records = write_log(tmp_path)
    for record in records:
        del record["event_json"]
    rewrite(tmp_path, records)
    result = audit.verify_log(tmp_path)
    assert result["missing_canonical_event_json"] is True and result["event_count"] == 3
    with pytest.raises(audit.VerificationError, match="event_json"):
        audit.verify_log(tmp_path, stored={"event_count": 3})
    records[1]["event"]["exit_code"] = 7
    rewrite(tmp_path, records)
    with pytest.raises(audit.VerificationError, match="leaf"):
        audit.verify_log(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"3",
        b"null",
        b"nothing",
        b"\xff\xfe",
        b'"' + b"a" * (17 << 20) + b'"',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"sequence":NaN}',
        b'{"sequence":1e999}',
        b'{"sequence":' + b"9" * 1_000_000 + b"}",
        b'{"sequence":0,"sequence":0}',
        "{}".encode("utf-16"),
        b"\xef\xbb\xbf{}",
        b"\x00",
        b"{}",
    ],
)
def test_hostile_lines(tmp_path: Path, line: bytes) -> None:
    (tmp_path / audit.AUDIT_EVENTS_FILENAME).write_bytes(line + b"\n")
    with pytest.raises(audit.VerificationError):
        audit.verify_log(tmp_path)
    ledger = tmp_path / "ledger"
    ledger.write_bytes(line + b"\n")
    with pytest.raises(audit.VerificationError):
        audit.verify_session_in_ledger(ledger, GOLDEN)


@pytest.mark.parametrize("text", [True, False])
def test_any_depth_is_refused_or_read(tmp_path: Path, text: bool) -> None:
    for depth in [*range(50, 1050, 50), *range(930, 1000)]:
        event = '{"a":' * depth + "1" + "}" * depth
        leaf = sha256(audit.EVENT_DOMAIN_ALPHA + event.encode()).digest()
        chain = sha256(audit.CHAIN_DOMAIN_ALPHA + bytes(32) + leaf).hexdigest()
        given = f'"event_json":{json.dumps(event)},' if text else ""
        line = f'{{"sequence":0,"prev_chain":null,"leaf_hash":"{leaf.hex()}","chain_hash":"{chain}",{given}"event":{event}}}'
        (tmp_path / audit.AUDIT_EVENTS_FILENAME).write_text(line)
        try:
            assert audit.verify_log(tmp_path)["event_count"] == 1
        except audit.VerificationError as error:
            assert depth > 500, error


def test_a_key_given_twice_is_found_where_it_hides(tmp_path: Path) -> None:
    write_log(tmp_path)
    path = tmp_path / audit.AUDIT_EVENTS_FILENAME
    text = path.read_text().replace('"event":{', '"event":{"exit_code":99,', 1)
    path.write_text(text)
    with pytest.raises(audit.VerificationError, match="twice"):
        audit.verify_log(tmp_path)


def test_pipes_and_folders_are_no_logs(tmp_path: Path) -> None:
    path = tmp_path / audit.AUDIT_EVENTS_FILENAME
    for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
        make(path)
        with pytest.raises(audit.VerificationError, match="regular"):
            audit.verify_log(tmp_path)
        with pytest.raises(audit.VerificationError, match="regular"):
            audit.verify_session_in_ledger(path, GOLDEN)
        path.rmdir() if path.is_dir() else path.unlink()


def test_a_large_log_is_read_line_by_line(tmp_path: Path) -> None:
    write_log(tmp_path, 5_000)
    code = (
        "import sys, tracemalloc; from nono_py import audit; tracemalloc.start()\n"
        "assert audit.verify_log(sys.argv[1])['event_count'] == 5000\n"
        "print(tracemalloc.get_traced_memory()[1])"
    )
    peak = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert int(peak.stdout) * 2 < (tmp_path / audit.AUDIT_EVENTS_FILENAME).stat().st_size


# --- logs of `nono run`


@pytest.mark.parametrize("folder", sorted(path for path in NATIVE.iterdir() if path.is_dir()), ids=lambda p: p.name)
def test_logs_of_the_program_verify(folder: Path, tmp_path: Path) -> None:
    session = json.loads((folder / "session.json").read_text())
    result = audit.verify_log(folder)
    assert result["event_count"] == result["stored_event_count"] == session["audit_event_count"] >= 2
    assert result["stored_merkle_root"] == result["computed_merkle_root"]
    assert [record["sequence"] for record in audit.iter_session(folder)] == list(range(result["event_count"]))
    found = audit.verify_session_in_ledger(NATIVE / audit.AUDIT_LEDGER_FILENAME, session)
    assert found["entry_count"] == 2
    assert found["session_found"] == found["session_digest_matches"] == session["sealed"]
    # One line less is found, by the summary.
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    log = copy / "events.ndjson"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(audit.VerificationError, match="chain head"):
        audit.verify_log(copy)


def test_two_logs_in_one_folder_are_refused(tmp_path: Path) -> None:
    write_log(tmp_path)
    (tmp_path / "events.ndjson").write_text("")
    with pytest.raises(audit.VerificationError, match="two logs"):
        audit.verify_log(tmp_path)
