"""One host is open to a command, and nothing else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import nono_py as nono

CLIENT = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler())
for url in sys.argv[1:]:
    try:
        print(url, opener.open(url, timeout=20).read().decode())
    except OSError as error:
        print(url, error)
"""


class Hello(BaseHTTPRequestHandler):
    """Stands for a service in the network."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: object) -> None:
        """Not here."""


def programs() -> nono.CapabilitySet:
    """The grants that programs need to start, Python too."""
    caps = nono.CapabilitySet()
    for path in ("/usr", "/bin", "/lib", "/lib64", sys.prefix, sys.base_prefix):
        if Path(path).is_dir():
            caps.allow_path(path, nono.AccessMode.READ)
    return caps


@contextmanager
def service() -> Iterator[str]:
    """The address of one that runs here."""
    server = HTTPServer(("127.0.0.1", 0), Hello)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(proxy: nono.ProxyHandle, address: str) -> None:
    """From a sandbox that has the proxy as its only way out."""
    caps = programs()
    caps.proxy_only(proxy)
    client = [sys.executable, "-c", CLIENT]

    # Through the proxy: to the service by its route, to another host by its name.
    through = [proxy.credential_env_vars()["SERVICE_BASE_URL"], "https://elsewhere.example/"]
    result = nono.sandboxed_exec(caps, [*client, *through], env=proxy.sandbox_env(), timeout_secs=60)
    print(result.stdout.decode(), result.stderr.decode())
    assert b"not in the allowlist" in result.stdout

    # Around it there is no way.
    direct = nono.sandboxed_exec(caps, [*client, address], timeout_secs=60)
    print(direct.stdout.decode())
    assert b"hello" not in direct.stdout


def main() -> None:
    with service() as address:
        route = nono.RouteConfig(prefix="service", upstream=address)
        proxy = nono.start_proxy(nono.ProxyConfig(routes=[route]))
        try:
            ask(proxy, address)
            for event in proxy.drain_audit_events():
                print(event["decision"], event["target"], event["reason"])
        finally:
            proxy.shutdown()


if __name__ == "__main__":
    main()
