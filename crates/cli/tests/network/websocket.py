"""Talk to a WebSocket server through the proxy.

websocket.py tunnel ws://HOST:PORT|wss://HOST:PORT   by CONNECT, as the library does it
websocket.py upgrade HOST:PORT                       by a plain request that changes what is spoken
"""

import asyncio
import base64
import os
import socket
import ssl
import sys
import urllib.parse

import websockets

PROXY = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
LOGIN = base64.b64encode(f"{PROXY.username}:{PROXY.password}".encode()).decode()


def ask(head):
    """The connection, after the proxy's answer."""
    sock = socket.create_connection((PROXY.hostname, PROXY.port))
    sock.sendall((head + f"\r\nProxy-Authorization: Basic {LOGIN}\r\n\r\n").encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n") and (byte := sock.recv(1)):
        answer += byte
    print(answer.split(b"\r\n")[0].decode())
    return sock


async def tunnel(url):
    place = urllib.parse.urlsplit(url)
    sock = ask(f"CONNECT {place.netloc} HTTP/1.1\r\nHost: {place.netloc}")
    secure = {}
    if place.scheme == "wss":
        secure = {"ssl": ssl.create_default_context(cafile="ca.pem"), "server_hostname": place.hostname}
    async with websockets.connect(url, sock=sock, **secure) as connection:
        for message in ["stressed", "x" * 300_000 + "y"]:
            await connection.send(message)
            print((await connection.recv())[:8])


def upgrade(place):
    sock = ask(
        f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    )
    # A text of one frame, masked with zeros.
    sock.sendall(b"\x81\x88\0\0\0\0stressed")
    frame = b""
    while len(frame) < 10 and (part := sock.recv(10 - len(frame))):
        frame += part
    print(frame[2:].decode())


if sys.argv[1] == "tunnel":
    asyncio.run(tunnel(sys.argv[2]))
else:
    upgrade(sys.argv[2])
