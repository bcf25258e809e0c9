#!/usr/bin/env python3
"""Answer nono's questions: a reference receiver for `nono run --ask --approve webhook:URL`.

Reading below the folders given by --allow-read is allowed for the session; everything else is denied. Replace `decide`
by what you need: a chat message, a ticket, a rule of your own.

A question is a POST of JSON. Its headers X-Nono-Timestamp (seconds since 1970) and X-Nono-Signature prove who sent it:
the signature is "v1=" and the hex HMAC-SHA256, with the shared secret, over "v1:" + timestamp + ":" + body. The answer
is signed in the same way, and repeats the question's id and nonce. nono takes an answer with status 200 only.

Behind anything but loopback, put it behind a server that speaks TLS: nono sends nothing over plain http elsewhere.
"""

import argparse
import collections
import hashlib
import hmac
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY = 64 * 1024
MAX_SKEW = 300  # seconds a question may be old, or ahead
REMEMBERED = 10_000  # nonces


def signature(secret, timestamp, body):
    digest = hmac.new(secret, b"v1:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return "v1=" + digest


def is_below(path, folder):
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def decide(question, folders):
    """The decision, for how long, and by whom. Paths come without links in them."""
    subject = question["subject"]
    if subject["kind"] == "access" and subject["access"] == "read" and isinstance(subject["path"], str):
        for folder in folders:
            if is_below(subject["path"], folder):
                return "allow", "session", f"reading below {folder}"
    return "deny", None, "nothing allows it"


class Answers:
    """Answers by nonce: a request that is sent again gets the same answer, and no other may use its nonce."""

    def __init__(self):
        self.lock = threading.Lock()
        self.known = collections.OrderedDict()

    def get(self, nonce, body, make):
        with self.lock:
            if nonce in self.known:
                asked, answer = self.known[nonce]
                return answer if asked == body else None
            answer = make()
            self.known[nonce] = (body, answer)
            while len(self.known) > REMEMBERED:
                self.known.popitem(last=False)
            return answer


class Receiver(BaseHTTPRequestHandler):
    timeout = 30

    def do_POST(self):
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            return self.refuse(411, "how long is it?")
        if not 0 <= length <= MAX_BODY:
            return self.refuse(413, "too long")
        body = self.rfile.read(length)
        timestamp = self.headers.get("X-Nono-Timestamp", "")
        given = self.headers.get("X-Nono-Signature", "")
        expected = signature(self.server.secret, timestamp, body)
        if not hmac.compare_digest(given.encode(), expected.encode()):
            return self.refuse(401, "the signature is wrong")
        if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > MAX_SKEW:
            return self.refuse(401, "the timestamp is too far from now")
        try:
            question = json.loads(body)
            nonce = question["nonce"]
            answer = self.server.answers.get(nonce, body, lambda: self.answer(question))
        except (ValueError, KeyError, TypeError):
            return self.refuse(400, "not a question")
        if answer is None:
            return self.refuse(409, "this nonce was used for another question")
        return self.reply(answer)

    def answer(self, question):
        decision, scope, by = decide(question, self.server.folders)
        print(f"{decision}: {json.dumps(question['subject'])} for {json.dumps(question['program'])}", flush=True)
        answer = {"id": question["id"], "nonce": question["nonce"], "decision": decision, "by": by}
        if scope:
            answer["scope"] = scope
        return json.dumps(answer).encode()

    def reply(self, body):
        timestamp = str(int(time.time()))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Nono-Timestamp", timestamp)
        self.send_header("X-Nono-Signature", signature(self.server.secret, timestamp, body))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, why):
        print(f"refused: {why}", flush=True)
        self.send_error(status, why)

    def log_message(self, *args):
        pass


def main():
    parser = argparse.ArgumentParser(description="Answer nono's questions.")
    parser.add_argument("--secret", required=True, help="a file with the shared secret")
    parser.add_argument("--port", type=int, default=8787, help="on 127.0.0.1; 0 for any that is free")
    parser.add_argument("--allow-read", action="append", default=[], metavar="DIR")
    args = parser.parse_args()
    with open(args.secret, "rb") as file:
        secret = file.read().strip()
    if len(secret) < 16:
        sys.exit("the secret is shorter than 16 bytes")
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Receiver)
    server.secret = secret
    server.answers = Answers()
    server.folders = [os.path.realpath(folder) for folder in args.allow_read]
    print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
