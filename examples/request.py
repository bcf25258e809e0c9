#!/usr/bin/env python3
"""Ask the supervisor of a nono sandbox for a file, from inside it. Standard library only.

    with open(request("/home/me/notes.txt", "read", "the task mentions it")) as notes: ...

One packet each way: four bytes of length (little-endian), then JSON. What is granted comes along as a descriptor.
"""

import array
import json
import os
import socket
import struct
import sys
import uuid

MAX = 64 * 1024


class Denied(Exception):
    """The answer was no; the message says why."""


def exchange(message, path=None):
    """Send one message; the answer, and the descriptor that came with it or None."""
    path = path or os.environ["NONO_REQUEST_SOCK"]
    body = json.dumps({"version": 1, "id": uuid.uuid4().hex, **message}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC) as sock:
        sock.connect(path)
        try:
            sock.send(struct.pack("<I", len(body)) + body)
        except BrokenPipeError:
            pass  # Refused at once; the reason waits to be read.
        room = socket.CMSG_SPACE(array.array("i").itemsize)
        try:
            packet, control, _, _ = sock.recvmsg(4 + MAX, room, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            # The reset comes before the reason.
            packet, control, _, _ = sock.recvmsg(4 + MAX, room, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    descriptor = descriptors[0] if descriptors else None
    if len(packet) < 4 or struct.unpack("<I", packet[:4])[0] != len(packet) - 4:
        raise OSError("the answer is no frame")
    answer = json.loads(packet[4:])
    if answer["type"] == "error":
        raise OSError(f"{answer['error']}: {answer['message']}")
    return answer, descriptor


def lossless(path):
    """A path of any bytes, as JSON."""
    raw = os.fsencode(os.path.abspath(path))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"bytes": list(raw)}


def request(path, access="read", reason=None):
    """A descriptor for `path`; `access` is read, write or read+write. Raises Denied if the answer is no."""
    message = {"type": "capability_request", "path": lossless(path), "access": access, "reason": reason}
    answer, descriptor = exchange(message)
    if not answer["granted"]:
        raise Denied(answer["reason"])
    if descriptor is None:  # Open from the start.
        flags = {"read": os.O_RDONLY, "write": os.O_WRONLY | os.O_CREAT, "read+write": os.O_RDWR | os.O_CREAT}
        return os.open(path, flags[access] | os.O_CLOEXEC, 0o666)
    return descriptor


def checkpoint(reason):
    """Request a snapshot; returns its number."""
    answer, _ = exchange({"type": "checkpoint_request", "reason": reason})
    if answer["snapshot"] is None:
        raise Denied(answer["reason"])
    return answer["snapshot"]


def restore(snapshot, paths=()):
    """Request the restore of paths (all, if there are none) from a snapshot, once the user agreed."""
    message = {"type": "restore_request", "snapshot": snapshot, "paths": [lossless(path) for path in paths]}
    answer, _ = exchange(message)
    if not answer["restored"]:
        raise Denied(answer["outcome"])
    return answer["outcome"]


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: request.py PATH [REASON]")
    try:
        with open(request(sys.argv[1], "read", *sys.argv[2:]), "rb") as granted:
            sys.stdout.buffer.write(granted.read())
    except Denied as denied:
        sys.exit(f"denied: {denied}")
