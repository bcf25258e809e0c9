"""Servers and clients for the tests of the proxy: everything is on loopback."""

from __future__ import annotations

import base64
import http.client
import http.server
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 30.0
SECRET = "sk-real-0123456789"

Headers = dict[str, str]


@dataclass
class Origin:
    """A server that answers every request with what it got, the secret included."""

    port: int
    seen: list[str] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def origin(context: ssl.SSLContext | None = None) -> Iterator[Origin]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            body = self.rfile.read(length)
            state.seen.append(f"{self.command} {self.path}")
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            said = f"{self.command} {self.path}\n{self.headers}".encode() + body
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_DELETE = _answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 512
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    state = Origin(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Answer:
    status: int
    reason: str
    text: str


def basic(token: str) -> str:
    return "Basic " + base64.b64encode(f"nono:{token}".encode()).decode()


def ask(port: int, path: str, headers: Headers | None = None, method: str = "GET", body: bytes = b"") -> Answer:
    """One request to the proxy, whose target is `path` (a whole URL: by the proxy; a path: of the proxy)."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        client.request(method, path, body or None, headers or {})
        answer = client.getresponse()
        return Answer(answer.status, answer.reason, answer.read().decode())
    finally:
        client.close()


def connect(port: int, target: str, token: str | None = None) -> tuple[str, socket.socket]:
    """Ask for a tunnel: the status line, and the socket."""
    stream = socket.create_connection(("127.0.0.1", port), PATIENCE)
    login = f"Proxy-Authorization: {basic(token)}\r\n" if token else ""
    stream.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        more = stream.recv(1)
        if not more:
            break
        head += more
    return head.split(b"\r\n")[0].decode(), stream


def status(port: int, target: str, token: str | None = None) -> str:
    line, stream = connect(port, target, token)
    stream.close()
    return line


@dataclass
class Authority:
    """An authority with two certificates: `server` for 127.0.0.1, `client` for a client."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    def context(self, wants_client: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.pem", self.folder / "server.key")
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca)
        return context


def authority(folder: Path) -> Authority:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.fail("openssl is not installed")

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], check=True, capture_output=True, cwd=folder)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority", "-days", "2")
    for name, names in (("server", "IP:127.0.0.1,DNS:localhost"), ("client", "DNS:client.test")):
        run("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "ext").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
        run(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", f"{name}.pem", "-days", "2", "-extfile", "ext",
        )  # fmt: skip
    return Authority(folder)
