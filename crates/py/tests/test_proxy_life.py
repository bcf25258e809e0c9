"""How a proxy ends: shut down, dropped, in a forked process, with the interpreter."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import threading

import pytest

import nono_py
from nono_py import ProxyConfig, start_proxy
from proxy_kit import connect, origin, status


def is_closed(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 30).close()
    except ConnectionRefusedError:
        return True
    return False


def test_shutdown_ends_what_is_open() -> None:
    with origin() as server:
        proxy = start_proxy(ProxyConfig([f"127.0.0.1:{server.port}"]))
        token = proxy.env_vars()["NONO_PROXY_TOKEN"]
        line, stream = connect(proxy.port, f"127.0.0.1:{server.port}", token)
        assert line.startswith("HTTP/1.1 200")
        threads = [threading.Thread(target=proxy.shutdown) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stream.recv(1) == b"" and is_closed(proxy.port)
        proxy.shutdown()
        assert [event["decision"] for event in proxy.drain_audit_events()] == ["allow"]
        assert proxy.port and proxy.env_vars()
        stream.close()


def test_a_block_ends_it() -> None:
    with pytest.raises(KeyError):
        with start_proxy(ProxyConfig()) as proxy:
            assert not is_closed(proxy.port)
            raise KeyError
    assert is_closed(proxy.port)


def test_the_last_reference_ends_it() -> None:
    proxy = start_proxy(ProxyConfig())
    port = proxy.port
    assert not is_closed(port)
    del proxy
    gc.collect()
    assert is_closed(port)


def test_a_forked_process_has_no_proxy() -> None:
    with start_proxy(ProxyConfig()) as proxy:
        status(proxy.port, "closed.test:443")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                proxy.shutdown()
                events = proxy.drain_audit_events()
                port = proxy.port
                del proxy
                gc.collect()
                with start_proxy(ProxyConfig()) as own:
                    fine = status(own.port, "closed.test:443").startswith("HTTP/1.1 403") and own.port != port
                code = 0 if events == [] and fine else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        # The one here goes on.
        assert status(proxy.port, "closed.test:443").startswith("HTTP/1.1 403")
        assert len(proxy.drain_audit_events()) == 2


def test_no_process_keeps_its_port_open() -> None:
    proxy = start_proxy(ProxyConfig())
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    proxy.shutdown()
    assert is_closed(proxy.port)
    os.close(write)
    os.waitpid(child, 0)
    os.close(read)


def test_the_interpreter_ends_with_a_proxy() -> None:
    code = """
import socket, nono_py
proxy = nono_py.start_proxy(nono_py.ProxyConfig())
keep = socket.create_connection(("127.0.0.1", proxy.port))
class Late:
    def __del__(self): proxy.shutdown()
late = Late()
print("fine")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "fine", "")


def test_other_threads_go_on_meanwhile() -> None:
    proxy = start_proxy(ProxyConfig())
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(50):
        proxy.shutdown()
        proxy = start_proxy(ProxyConfig())
    over.set()
    thread.join()
    proxy.shutdown()
    assert counted > 0


def test_many_leave_nothing() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    start_proxy(ProxyConfig()).shutdown()
    before = descriptors()
    for number in range(300):
        proxy = start_proxy(ProxyConfig())
        if number % 2:
            proxy.shutdown()
        del proxy
    assert descriptors() == before
    # The kernel may show one that has just ended.
    assert threads() < 20


def test_from_asyncio() -> None:
    async def main() -> int:
        with await nono_py.aio.start_proxy(ProxyConfig()) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(b"CONNECT closed.test:443 HTTP/1.1\r\nHost: closed.test:443\r\n\r\n")
            line = await reader.readline()
            writer.close()
            return int(line.split()[1])

    assert asyncio.run(main()) == 403
