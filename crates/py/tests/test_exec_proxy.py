"""``sandboxed_exec`` with a proxy as the only way out."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from exec_kit import PATH, system
from nono_py import CapabilitySet, ProxyConfig, ProxyHandle, sandboxed_exec, start_proxy

FETCH = """
import os, sys, urllib.error, urllib.request
os.environ.pop('NO_PROXY', None); os.environ.pop('no_proxy', None)
proxies = {'http': os.environ['HTTP_PROXY']} if sys.argv[2] == 'proxy' else {}
opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
try: print(opener.open(sys.argv[1], timeout=30).read().decode())
except urllib.error.HTTPError as error: print('status', error.code)
except OSError: print('refused')
"""


class Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello " + self.path.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture()
def server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def through(proxy: ProxyHandle) -> CapabilitySet:
    caps = system()
    caps.proxy_only(proxy)
    return caps


def fetch(caps: CapabilitySet, proxy: ProxyHandle, url: str, how: str = "proxy") -> str:
    command = [sys.executable, "-I", "-c", FETCH, url, how]
    result = sandboxed_exec(caps, command, env=proxy.sandbox_env(PATH), timeout_secs=120)
    return (result.stdout or result.stderr).decode().strip()


def test_the_proxy_and_nothing_else(server: int) -> None:
    with start_proxy(ProxyConfig([f"127.0.0.1:{server}"])) as proxy:
        caps = through(proxy)
        assert fetch(caps, proxy, f"http://127.0.0.1:{server}/a") == "hello /a"
        assert fetch(caps, proxy, "http://closed.test/") == "status 403"
        assert fetch(caps, proxy, f"http://127.0.0.1:{server}/a", "direct") == "refused"
        hosts = {event.get("target") or event.get("host") for event in proxy.drain_audit_events()}
        assert any("closed.test" in str(host) for host in hosts), hosts


def test_datagrams_do_not_leave(server: int) -> None:
    code = "import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', int(sys.argv[1])))"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard, start_proxy(ProxyConfig([])) as proxy:
        heard.bind(("127.0.0.1", 0))
        port = heard.getsockname()[1]
        sandboxed_exec(through(proxy), [sys.executable, "-I", "-c", code, str(port)], env=PATH)
        heard.setblocking(False)
        with pytest.raises(BlockingIOError):
            heard.recv(10)


def test_many_commands_and_two_proxies(server: int) -> None:
    with start_proxy(ProxyConfig([f"127.0.0.1:{server}"])) as one, start_proxy(ProxyConfig([])) as other:
        open_set, closed_set = through(one), through(other)

        def ask(turn: int) -> str:
            url = f"http://127.0.0.1:{server}/{turn}"
            return fetch(open_set, one, url) if turn % 2 else fetch(closed_set, other, url)

        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(ask, range(16)))
    assert said == [f"hello /{turn}" if turn % 2 else "status 403" for turn in range(16)]


def test_a_proxy_that_was_shut_down_serves_no_client(server: int) -> None:
    proxy = start_proxy(ProxyConfig([f"127.0.0.1:{server}"]))
    caps = through(proxy)
    proxy.shutdown()
    assert fetch(caps, proxy, f"http://127.0.0.1:{server}/a") == "refused"
    assert sandboxed_exec(caps, ["true"]).exit_code == 0
