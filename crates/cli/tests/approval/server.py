"""A service that behaves in all the ways a service can.

server.py SECRET MODE[,MODE...] [CERTIFICATE]: the first connection is served by the first mode, and so on; the last mode
serves all that follow. Prints the port, then a line for each thing that happened.
"""

import hashlib
import hmac
import json
import socket
import ssl
import sys
import threading

secret = sys.argv[1].encode()
modes = sys.argv[2].split(",")


def say(text):
    print(text, flush=True)


def sign(body, key=secret, timestamp="1700000000"):
    return "v1=" + hmac.new(key, f"v1:{timestamp}:".encode() + body, hashlib.sha256).hexdigest()


def response(body, status="200 OK", kind="application/json", signed=None, more=""):
    signed = sign(body) if signed is None else signed
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    head += f"X-Nono-Timestamp: 1700000000\r\nX-Nono-Signature: {signed}\r\n{more}\r\n"
    return head.encode() + body


def read_request(stream):
    stream.readline()
    headers = {}
    for line in stream:
        name, _, value = line.decode().partition(":")
        if not value:
            break
        headers[name.strip().lower()] = value.strip()
    return headers, stream.read(int(headers.get("content-length", 0)))


def check(headers, body):
    expected = sign(body, timestamp=headers["x-nono-timestamp"])
    assert hmac.compare_digest(expected, headers["x-nono-signature"]), "the question is not signed"
    assert headers["content-type"] == "application/json", headers
    question = json.loads(body)
    assert question["version"] == 1 and len(question["nonce"]) == 32, question
    return question


seen = []


def serve(conn, mode):
    if mode == "close-at-once":
        say("got")
        return
    headers, body = read_request(conn.makefile("rb"))
    question = check(headers, body)
    seen.append(question)
    say("got " + json.dumps(question))

    def answer(decision="allow", **change):
        answer = {"id": question["id"], "nonce": question["nonce"], "decision": decision, "by": "a test"}
        answer.update(change)
        return json.dumps(answer).encode()

    if mode == "allow":
        conn.sendall(response(answer(scope="session")))
    elif mode == "deny":
        conn.sendall(response(answer("deny")))
    elif mode == "hang":
        conn.recv(1)
        say("left")
    elif mode == "close":
        pass
    elif mode == "half":
        conn.sendall(response(answer())[:-5])
    elif mode == "other-id":
        conn.sendall(response(answer(id=question["id"] + 1)))
    elif mode == "other-nonce":
        conn.sendall(response(answer(nonce="0" * 32)))
    elif mode == "replay":
        conn.sendall(response(answer(id=seen[0]["id"], nonce=seen[0]["nonce"])))
    elif mode == "other-secret":
        conn.sendall(response(answer(), signed=sign(answer(), key=b"another secret, long enough")))
    elif mode == "unsigned":
        body = answer()
        conn.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    elif mode == "two-signatures":
        conn.sendall(response(answer(), more=f"X-Nono-Signature: {sign(answer())}\r\n"))
    elif mode == "late":
        # Answers when no client waits any more.
        conn.recv(1)
        try:
            conn.sendall(response(answer()))
        except OSError:
            pass
        say("late")
    elif mode == "drip":
        try:
            for byte in response(answer()):
                conn.sendall(bytes([byte]))
                threading.Event().wait(0.1)
        except OSError:
            say("left")
    elif mode == "twice":
        conn.sendall(response(answer("deny")) + response(answer("allow")))
    elif mode == "redirect":
        conn.sendall(response(answer(), status="307 Temporary Redirect", more=f"Location: http://127.0.0.1:{port}/\r\n"))
    elif mode == "huge":
        try:
            conn.sendall(response(answer(by="x" * (1 << 20))))
        except OSError:
            pass
    elif mode == "html":
        conn.sendall(response(answer(), kind="text/html"))
    elif mode == "busy":
        conn.sendall(response(b"{}", status="503 Service Unavailable"))
    elif mode == "broken":
        conn.sendall(response(answer(), status="500 Internal Server Error"))
    else:
        raise ValueError(mode)


listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
    listener = context.wrap_socket(listener, server_side=True)
say(str(port))
number = 0
while True:
    try:
        conn, _ = listener.accept()
    except ssl.SSLError as error:
        say("no handshake")
        continue
    mode = modes[min(number, len(modes) - 1)]
    number += 1

    def run(conn=conn, mode=mode):
        with conn:
            serve(conn, mode)

    threading.Thread(target=run, daemon=True).start()
