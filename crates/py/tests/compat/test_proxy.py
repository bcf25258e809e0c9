"""ProxyConfig, RouteConfig, InjectMode, ExternalProxyConfig, start_proxy, ProxyHandle."""

from __future__ import annotations

import re
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from nono_py import (
    ExternalProxyConfig,
    InjectMode,
    ProxyConfig,
    ProxyHandle,
    RouteConfig,
    sandboxed_exec,
    start_proxy,
)

from .kit import system_caps
from .kit import untyped as nono
from .test_metadata import EVENT_KEYS


@contextmanager
def serving(config: ProxyConfig | None = None) -> Iterator[ProxyHandle]:
    handle = start_proxy(config if config is not None else ProxyConfig())
    try:
        yield handle
    finally:
        handle.shutdown()


def ask(port: int, request: str) -> str:
    """The head of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(request.encode())
        answer = b""
        while b"\r\n\r\n" not in answer and (more := client.recv(4096)):
            answer += more
    return answer.decode()


def connect(handle: ProxyHandle, target: str, *, token: bool = False) -> str:
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if token:
        import base64

        secret = base64.b64encode(f"nono:{handle.env_vars()['NONO_PROXY_TOKEN']}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {secret}")
    return ask(handle.port, "\r\n".join([*lines, "", ""]))


# --- values


def test_inject_mode() -> None:
    modes = [InjectMode.HEADER, InjectMode.URL_PATH, InjectMode.QUERY_PARAM, InjectMode.BASIC_AUTH]
    names = ["HEADER", "URL_PATH", "QUERY_PARAM", "BASIC_AUTH"]
    assert [repr(mode) for mode in modes] == [f"InjectMode.{name}" for name in names]
    assert [str(mode) for mode in modes] == [name.lower() for name in names]
    assert len(set(modes)) == 4 and InjectMode.HEADER == InjectMode.HEADER


def test_route_config() -> None:
    route = RouteConfig("api", "https://api.example.com")
    assert repr(route) == "RouteConfig(prefix='api', upstream='https://api.example.com')"
    assert route.inject_mode == InjectMode.HEADER and route.inject_header == "Authorization"
    for name in (
        "credential_key",
        "credential_format",
        "path_pattern",
        "path_replacement",
        "query_param_name",
        "env_var",
        "tls_ca",
        "tls_client_cert",
        "tls_client_key",
    ):
        assert getattr(route, name) is None, name
        with pytest.raises(AttributeError):
            setattr(route, name, "x")
    assert route.endpoint_rules == []
    full = RouteConfig(
        prefix="p",
        upstream="u",
        credential_key="key",
        inject_mode=InjectMode.QUERY_PARAM,
        inject_header="X-Key",
        credential_format="{}",
        path_pattern="/a/{}",
        path_replacement="/b",
        query_param_name="q",
        env_var="KEY",
        endpoint_rules=[("GET", "/v1/**")],
        tls_ca="/ca",
        tls_client_cert="/cert",
        tls_client_key="/key",
    )
    assert full.endpoint_rules == [("GET", "/v1/**")]
    assert (full.query_param_name, full.env_var, full.path_pattern) == ("q", "KEY", "/a/{}")
    with pytest.raises(TypeError):
        nono.RouteConfig("only a prefix")


def test_external_proxy_config() -> None:
    external = ExternalProxyConfig("proxy.example:3128")
    assert repr(external) == "ExternalProxyConfig(address='proxy.example:3128')"
    assert external.address == "proxy.example:3128" and external.bypass_hosts == []
    assert ExternalProxyConfig(address="a:1", bypass_hosts=["b"]).bypass_hosts == ["b"]


def test_proxy_config() -> None:
    config = ProxyConfig()
    assert (config.bind_addr, config.bind_port, config.max_connections) == ("127.0.0.1", 0, 256)
    assert config.allowed_hosts == [] and config.routes == [] and config.allow_all_hosts is False
    assert repr(config) == "ProxyConfig(hosts=0, routes=0, bind=127.0.0.1:0)"
    route = RouteConfig("p", "https://u.example")
    full = ProxyConfig(["a", "b"], [route], ExternalProxyConfig("x:1"), "127.0.0.1", 0, 9)
    assert repr(full) == "ProxyConfig(hosts=2, routes=1, bind=127.0.0.1:0)"
    assert full.allowed_hosts == ["a", "b"] and full.max_connections == 9
    assert [route.prefix for route in full.routes] == ["p"]
    assert ProxyConfig(allow_all_hosts=True, allowed_hosts=[]).allow_all_hosts is True


def test_configurations_that_are_refused() -> None:
    with pytest.raises(ValueError):
        ProxyConfig(bind_addr="localhost")
    with pytest.raises(ValueError, match="allow_all_hosts"):
        ProxyConfig(allowed_hosts=["a"], allow_all_hosts=True)
    with pytest.raises(OverflowError):
        ProxyConfig(bind_port=70000)
    with pytest.raises(TypeError):
        nono.ProxyConfig(allowed_hosts="example.com")
    with pytest.raises(TypeError):
        nono.ProxyConfig(allow_all_hosts=1)


# --- the handle


def test_handle() -> None:
    with serving() as handle:
        assert repr(handle) == f"ProxyHandle(port={handle.port})"
        assert 0 < handle.port < 65536
        variables = handle.env_vars()
        token = variables["NONO_PROXY_TOKEN"]
        assert re.fullmatch("[0-9a-f]{64}", token)
        url = f"http://nono:{token}@127.0.0.1:{handle.port}"
        assert variables == {
            "HTTP_PROXY": url,
            "HTTPS_PROXY": url,
            "http_proxy": url,
            "https_proxy": url,
            "NO_PROXY": "localhost,127.0.0.1",
            "no_proxy": "localhost,127.0.0.1",
            "NONO_PROXY_TOKEN": token,
            "NODE_USE_ENV_PROXY": "1",
        }
        assert handle.credential_env_vars() == {}
        port = handle.port
    handle.shutdown()
    assert handle.port == port
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_tokens_differ() -> None:
    with serving() as one, serving() as two:
        assert one.env_vars()["NONO_PROXY_TOKEN"] != two.env_vars()["NONO_PROXY_TOKEN"]


def test_sandbox_env() -> None:
    with serving() as handle:
        plain = handle.sandbox_env()
        assert isinstance(plain, list) and dict(plain) == handle.env_vars()
        assert [name for name, _ in plain] == sorted(name for name, _ in plain)
        more = handle.sandbox_env(extra_env=[("ZZZ", "1"), ("HTTP_PROXY", "mine"), ("AAA", "2")])
        assert dict(more)["HTTP_PROXY"] == handle.env_vars()["HTTP_PROXY"]
        assert more[0] == ("AAA", "2") and ("ZZZ", "1") in more
        assert [name for name, _ in more] == sorted(name for name, _ in more)
        with pytest.raises(ValueError, match="LD_PRELOAD"):
            handle.sandbox_env([("LD_PRELOAD", "x")])
        with pytest.raises(ValueError):
            handle.sandbox_env([("", "x")])


def test_routes_have_addresses() -> None:
    routes = [RouteConfig("/my-api/", "http://127.0.0.1:9"), RouteConfig("other", "not a url at all")]
    with serving(ProxyConfig(routes=routes)) as handle:
        variables = handle.credential_env_vars()
        assert variables["OTHER_BASE_URL"] == f"http://127.0.0.1:{handle.port}/other"
        assert variables["MY-API_BASE_URL"] == f"http://127.0.0.1:{handle.port}/my-api"


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(RuntimeError):
            start_proxy(config=ProxyConfig(bind_port=taken.getsockname()[1]))


def test_a_glob_of_an_endpoint_that_is_none() -> None:
    route = RouteConfig("p", "https://u.example", endpoint_rules=[("GET", "/[")])
    with pytest.raises(RuntimeError):
        start_proxy(ProxyConfig(routes=[route]))


# --- on the wire


def test_a_host_outside_is_refused_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(ProxyConfig(allowed_hosts=["allowed.example"])) as handle:
        for token in (False, True):
            head = connect(handle, "refused.example:443", token=token)
            status = head.split("\r\n")[0]
            assert status.startswith("HTTP/1.1 403") and "not in the allowlist" in status
        events = handle.drain_audit_events()
        assert handle.drain_audit_events() == []
        assert [list(event) for event in events] == [EVENT_KEYS] * len(events) and events
        assert all(event["decision"] == "deny" and "refused.example" in event["target"] for event in events)
        assert all(event["mode"] == "connect" for event in events)


def test_urllib_sees_the_reason() -> None:
    with serving(ProxyConfig(allowed_hosts=["allowed.example"])) as handle:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"https": handle.env_vars()["HTTPS_PROXY"]}))
        with pytest.raises(OSError, match="not in the allowlist"):
            opener.open("https://refused.example/", timeout=30)


@pytest.mark.parametrize("host", ["169.254.169.254", "metadata.google.internal", "metadata.azure.internal"])
def test_metadata_hosts_are_never_reached(host: str) -> None:
    for config in (ProxyConfig(allow_all_hosts=True), ProxyConfig(allowed_hosts=[host])):
        with serving(config) as handle:
            assert connect(handle, f"{host}:80", token=True).startswith("HTTP/1.1 403")
            assert handle.drain_audit_events()[0]["decision"] == "deny"


def test_wildcards() -> None:
    with serving(ProxyConfig(allowed_hosts=["*.example.invalid"])) as handle:
        assert "not in the allowlist" in connect(handle, "example.invalid:443", token=True)
        inside = connect(handle, "sub.example.invalid:443", token=True)
        assert "not in the allowlist" not in inside and not inside.startswith("HTTP/1.1 200")


def test_nothing_configured_denies_everything() -> None:
    with serving() as handle:
        assert connect(handle, "example.com:443", token=True).startswith("HTTP/1.1 403")


def test_plain_requests_without_routes() -> None:
    with serving() as handle:
        assert ask(handle.port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").startswith("HTTP/1.1 400")


class Hello(BaseHTTPRequestHandler):
    seen: list[str] = []

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def upstream() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Hello)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_tunnel_to_an_allowed_host() -> None:
    with upstream() as port, serving(ProxyConfig(allowed_hosts=["127.0.0.1"])) as handle:
        target = f"127.0.0.1:{port}"
        with socket.create_connection(("127.0.0.1", handle.port), timeout=30) as client:
            import base64

            secret = base64.b64encode(f"nono:{handle.env_vars()['NONO_PROXY_TOKEN']}".encode()).decode()
            head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {secret}\r\n\r\n"
            client.sendall(head.encode())
            answer = client.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            client.sendall(f"GET / HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n".encode())
            body = b""
            while more := client.recv(4096):
                body += more
        assert body.endswith(b"hello")
        assert any(event["decision"] == "allow" for event in handle.drain_audit_events())


def test_drain_is_bounded_and_empties() -> None:
    with serving() as handle:
        for number in range(5):
            connect(handle, f"h{number}.example:443")
        targets = [event["target"] for event in handle.drain_audit_events()]
        assert len(targets) == 5 and all(f"h{number}.example" in target for number, target in enumerate(targets))
        assert handle.drain_audit_events() == []


CLIENT = """
import socket, sys, urllib.request
try:
    urllib.request.urlopen("https://refused.example/", timeout=30)
except OSError as error:
    print(error)
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30)
    print("reached")
except OSError:
    print("closed")
"""


@pytest.mark.integration
def test_the_only_way_out_of_a_sandbox() -> None:
    with upstream() as port, serving(ProxyConfig(allowed_hosts=["allowed.example"])) as handle:
        caps = system_caps()
        command = [sys.executable, "-c", CLIENT, str(port)]
        assert b"reached" in sandboxed_exec(caps, command, env=handle.sandbox_env()).stdout
        handle.drain_audit_events()
        caps.proxy_only(handle)
        said = sandboxed_exec(caps, command, env=handle.sandbox_env()).stdout.decode().splitlines()
        assert "not in the allowlist" in said[0] and said[1] == "closed"
        assert [event["decision"] for event in handle.drain_audit_events()] == ["deny"]
