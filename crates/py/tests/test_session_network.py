"""The filtered network of a supervised run."""

from __future__ import annotations

import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import nono_py as nono

pytestmark = pytest.mark.integration

FETCH = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except Exception as error:
    print("refused", getattr(error, "code", error))
"""


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture()
def server() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as serving:
        threading.Thread(target=serving.serve_forever).start()
        yield serving.server_address[1]
        serving.shutdown()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NONO_HOME", str(tmp_path / "state"))


def fetch(port: int, **options: object) -> nono.SessionReport:
    command = ["/usr/bin/python3", "-I", "-c", FETCH, f"http://127.0.0.1:{port}/"]
    return nono.run(command, capture_output=True, **options)  # type: ignore[arg-type]


def test_only_the_hosts_that_were_named_are_reached(server: int) -> None:
    open_to_all = fetch(server, allow_net=True)
    assert open_to_all.stdout == b"hello\n", open_to_all
    named = fetch(server, allow_domain=[f"127.0.0.1:{server}"])
    assert named.stdout == b"hello\n", (named.stdout, named.stderr, named.warnings)
    assert named.network is not None and named.network["allowed"] == 1
    other = fetch(server, allow_domain=["127.0.0.1:9"])
    assert b"hello" not in (other.stdout or b"")
    assert other.network is not None and other.network["refused"] >= 1
    [denied] = [denial for denial in other.denials if denial.kind == "host"]
    assert denied.hint == f'allow_domain=["127.0.0.1:{server}"]'


def test_the_network_is_closed_by_default(server: int) -> None:
    report = fetch(server)
    assert b"hello" not in (report.stdout or b"") and report.network is None


def test_without_an_interpreter_to_start_nothing_runs(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(nono.SessionError) as error:
        fetch(server, allow_domain=["example.org"])
    assert error.value.kind == "no_helper"
