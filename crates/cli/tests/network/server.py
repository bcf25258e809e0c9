"""The internet of a town: web servers, an index of packages, git, WebSockets and names, on every address there is.

    server.py FOLDER CERTIFICATE ADDRESS…

What was asked for is a line each in FOLDER/got. Says `ready` when everything listens.
"""

import asyncio
import base64
import contextlib
import gzip
import hashlib
import io
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tarfile
import threading
import urllib.parse
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import websockets

FOLDER = pathlib.Path(sys.argv[1])
CERTIFICATE = sys.argv[2]
ADDRESSES = sys.argv[3:]
BLOCK = bytes(range(256)) * 256

lock = threading.Lock()
released = threading.Event()
crowd = threading.Condition()
waiting = 0


def note(what):
    with lock, open(FOLDER / "got", "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


# --- packages and a repository ----------------------------------------------------------------------------------


def make_wheel():
    folder = FOLDER / "files/simple/demo"
    folder.mkdir(parents=True)
    name = "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        wheel.writestr("demo.py", "print('the wheel works')\n")
        wheel.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        wheel.writestr(
            "demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: town\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\n")
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body><a href='{name}'>{name}</a></body></html>")


def make_tarball():
    tarball = io.BytesIO()
    with tarfile.open(fileobj=tarball, mode="w:gz") as tar:
        for name, text in [
            ("package/package.json", '{"name": "demo", "version": "1.0.0", "main": "index.js"}'),
            ("package/index.js", "console.log('the tarball works')\n"),
        ]:
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return tarball.getvalue()


TARBALL = make_tarball()


def registry(base):
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(TARBALL).digest()).decode()
    dist = {"tarball": base + "/npm/demo/-/demo-1.0.0.tgz", "integrity": integrity}
    version = {"name": "demo", "version": "1.0.0", "main": "index.js", "dist": dist}
    return json.dumps({"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}})


def make_repository():
    os.environ["GIT_CONFIG_GLOBAL"] = str(FOLDER / "gitconfig")
    (FOLDER / "gitconfig").write_text(
        "[safe]\n\tdirectory = *\n[user]\n\tname = t\n\temail = t@t\n[init]\n\tdefaultBranch = main\n"
    )

    def git(*args):
        subprocess.run(["git", *args], check=True, stdout=subprocess.DEVNULL)

    there, seed = FOLDER / "git/demo.git", FOLDER / "seed"
    git("init", "-q", "--bare", str(there))
    git("-C", str(there), "config", "http.receivepack", "true")
    git("init", "-q", str(seed))
    (seed / "README").write_text("the clone works\n")
    git("-C", str(seed), "add", "README")
    git("-C", str(seed), "commit", "-q", "-m", "first")
    git("-C", str(seed), "push", "-q", str(there), "main")


# --- the web ----------------------------------------------------------------------------------------------------


class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # A whole answer is one write.
    wbufsize = 1 << 16

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (ConnectionError, ssl.SSLError):
            self.close_connection = True

    @property
    def base(self):
        scheme = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
        return f"{scheme}://{self.headers['Host']}"

    def parts(self):
        """The body, piece by piece."""
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        left = int(self.headers.get("Content-Length", 0))
        while left > 0 and (part := self.rfile.read(min(left, 1 << 16))):
            left -= len(part)
            yield part

    def answer(self, body, status=200, fields=()):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def do(self):
        url = urllib.parse.urlsplit(self.path)
        note(
            {
                "method": self.command,
                "path": self.path,
                "base": self.base,
                "address": self.connection.getsockname()[0],
                "fields": list(self.headers.items()),
            }
        )
        first, _, rest = url.path.lstrip("/").partition("/")
        getattr(self, "at_" + first, self.nothing)(rest, url.query)

    do_GET = do_HEAD = do_POST = do_PUT = do

    def nothing(self, _rest, _query):
        self.answer("nothing here\n", 404)

    def at_hello(self, _rest, _query):
        self.answer(f"hello from {self.headers['Host']} at {self.connection.getsockname()[0]}\n")

    def at_upload(self, _rest, _query):
        total, digest = 0, hashlib.sha256()
        for part in self.parts():
            total += len(part)
            digest.update(part)
        self.answer(f"{total} {digest.hexdigest()}\n")

    def at_redirect(self, _rest, query):
        self.answer("", 302, [("Location", urllib.parse.unquote(query))])

    def at_big(self, rest, _query):
        size = int(rest)
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        while size > 0:
            size -= self.wfile.write(BLOCK[: min(size, len(BLOCK))])
        self.wfile.flush()

    def at_stream(self, _rest, _query):
        """The second line comes when the client has seen the first."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in ["first\n", "second\n"]:
            self.wfile.write(f"{len(line):x}\r\n{line}\r\n".encode())
            self.wfile.flush()
            released.wait()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def at_release(self, _rest, _query):
        released.set()
        self.answer("released\n")

    def at_hold(self, _rest, _query):
        released.clear()
        self.answer("held\n")

    def at_hang(self, _rest, _query):
        """The beginning of an answer that never ends."""
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(b"beginning\n")
        self.wfile.flush()
        self.connection.recv(1)
        self.close_connection = True

    def at_crowd(self, rest, _query):
        """No request is answered before this many wait at the same time."""
        global waiting
        with crowd:
            waiting += 1
            crowd.notify_all()
            crowd.wait_for(lambda: waiting >= int(rest))
        self.answer("all here\n")

    def at_files(self, rest, _query):
        path = FOLDER / "files" / rest
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            return self.nothing(rest, "")
        kind = "text/html" if path.suffix == ".html" else "application/octet-stream"
        self.answer(path.read_bytes(), 200, [("Content-Type", kind)])

    def at_npm(self, rest, _query):
        if rest == "demo":
            self.answer(registry(self.base), 200, [("Content-Type", "application/json")])
        elif rest == "demo/-/demo-1.0.0.tgz":
            self.answer(TARBALL, 200, [("Content-Type", "application/octet-stream")])
        else:
            self.nothing(rest, "")

    def at_git(self, rest, query):
        body = b"".join(self.parts())
        env = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": os.environ["GIT_CONFIG_GLOBAL"],
            "GIT_PROJECT_ROOT": str(FOLDER / "git"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": "/" + rest,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        said = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE, check=True).stdout
        head, _, body = said.partition(b"\r\n\r\n")
        fields = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.answer(body, status, [(name, value) for name, value in fields if name != "Status"])

    def at_reflect(self, how, _query):
        """Say what came as a credential, in every way a server may."""
        secret = self.headers.get("X-Demo-Token", "nothing")
        bearer = self.headers.get("Authorization", "")
        both = f"{secret} {bearer}"
        if how == "header":
            self.answer("fine\n", 200, [("X-Echo", both), ("Set-Cookie", f"token={secret}")])
        elif how == "body":
            self.answer(f"you sent {both} {self.path}\n")
        elif how == "error":
            self.answer(f"bad token {both}\n", 500)
        elif how == "redirect":
            there = "https://other.test/hello?token=" + urllib.parse.quote(both)
            self.answer(f"moved, {secret}\n", 302, [("Location", there)])
        elif how == "gzip":
            self.answer(gzip.compress(f"you sent {both}\n".encode()), 200, [("Content-Encoding", "gzip")])
        elif how == "reason":
            self.send_response(200, f"fine {secret}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif how == "pieces":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for letter in both:
                self.wfile.write(f"1\r\n{letter}\r\n".encode())
                self.wfile.flush()
            self.wfile.write(f"0\r\nX-Late: {secret}\r\n\r\n".encode())
            self.wfile.flush()
        else:
            self.nothing(how, "")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024
    context = None

    def handle_error(self, *_):
        """Ignored: the client went away, or rejected the certificate."""

    def finish_request(self, request, client_address):
        # In the connection's own thread: a slow handshake does not delay others.
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)


def web(port, context=None):
    server = Server(("0.0.0.0", port), Web)
    server.context = context
    threading.Thread(target=server.serve_forever, daemon=True).start()


# --- names ------------------------------------------------------------------------------------------------------

PUBLIC, PRIVATE, METADATA = ADDRESSES[0], "10.20.30.40", "169.254.169.254"
asked = {}


def addresses(name, kind):
    if kind == 28:
        return ["::ffff:" + PRIVATE] if name == "mapped.test" else []
    if name == "rebind.test":
        # Harmless when it is looked at first, and then not any more.
        asked[name] = asked.get(name, 0) + 1
        return [PUBLIC] if asked[name] == 1 else [PRIVATE]
    return {"mixed.test": [PRIVATE, PUBLIC], "metadata.test": [METADATA], "loop.test": ["127.0.0.1"]}.get(name, [])


def names():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 53))

    def serve():
        while True:
            question, client = sock.recvfrom(512)
            labels, at = [], 12
            while question[at]:
                labels.append(question[at + 1 : at + 1 + question[at]].decode())
                at += 1 + question[at]
            kind = int.from_bytes(question[at + 1 : at + 3], "big")
            name = ".".join(labels).lower()
            found = addresses(name, kind)
            note({"name": name, "kind": kind, "found": found})
            family = socket.AF_INET6 if kind == 28 else socket.AF_INET
            packed = [socket.inet_pton(family, address) for address in found]
            records = b"".join(
                b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\x01\0\0\0\0" + len(data).to_bytes(2, "big") + data
                for data in packed
            )
            known = name in ("rebind.test", "mixed.test", "metadata.test", "mapped.test", "loop.test")
            flags = b"\x81\x80" if known else b"\x81\x83"
            counts = b"\0\x01" + len(packed).to_bytes(2, "big") + b"\0\0\0\0"
            sock.sendto(question[:2] + flags + counts + question[12 : at + 5] + records, client)

    threading.Thread(target=serve, daemon=True).start()


# --- WebSockets -------------------------------------------------------------------------------------------------


async def talk(connection):
    with contextlib.suppress(websockets.ConnectionClosed):
        async for message in connection:
            await connection.send(message[::-1])


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    web(80)
    web(8080)
    web(443, context)
    names()
    async with websockets.serve(talk, "0.0.0.0", 81), websockets.serve(talk, "0.0.0.0", 444, ssl=context):
        print("ready", flush=True)
        await asyncio.Future()


make_wheel()
make_repository()
asyncio.run(main())
