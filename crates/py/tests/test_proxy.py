"""The proxy: what it is told, what it tells programs, whom it lets through."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import nono_py
from nono_py import ExternalProxyConfig, InjectMode, ProxyConfig, RouteConfig, start_proxy
from proxy_kit import ask, authority, basic, connect, origin, status

EVENT_KEYS = [
    "timestamp_unix_ms", "mode", "decision", "target", "port", "method", "path", "status", "reason", "route_id",
    "auth_mechanism", "auth_outcome", "managed_credential_active", "injection_mode", "denial_category",
]  # fmt: skip


def test_inject_modes() -> None:
    modes = [InjectMode.HEADER, InjectMode.URL_PATH, InjectMode.QUERY_PARAM, InjectMode.BASIC_AUTH]
    assert [str(mode) for mode in modes] == ["header", "url_path", "query_param", "basic_auth"]
    assert [repr(mode) for mode in modes] == [
        "InjectMode.HEADER", "InjectMode.URL_PATH", "InjectMode.QUERY_PARAM", "InjectMode.BASIC_AUTH",
    ]  # fmt: skip
    assert len(set(modes)) == 4 and InjectMode.HEADER == InjectMode.HEADER
    with pytest.raises(TypeError):
        InjectMode()


def test_routes_say_what_they_were_given() -> None:
    plain = RouteConfig("openai", "https://api.openai.com/v1")
    assert repr(plain) == "RouteConfig(prefix='openai', upstream='https://api.openai.com/v1')"
    assert (plain.credential_key, plain.inject_mode, plain.inject_header) == (None, InjectMode.HEADER, "Authorization")
    assert (plain.endpoint_rules, plain.tls_ca, plain.credential_format) == ([], None, None)
    full = RouteConfig(
        "x", "http://x.test", "env://KEY", InjectMode.URL_PATH, "X-Key", "{}", "/bot{}/", "/b{}/", "q", "X_KEY",
        [("GET", "/a/*")], Path("/ca.pem"), "/c.pem", "/k.pem",
    )  # fmt: skip
    assert full.endpoint_rules == [("GET", "/a/*")]
    assert full.to_dict() == {
        "prefix": "x", "upstream": "http://x.test", "credential_key": "env://KEY", "inject_mode": "url_path",
        "inject_header": "X-Key", "credential_format": "{}", "path_pattern": "/bot{}/", "path_replacement": "/b{}/",
        "query_param_name": "q", "env_var": "X_KEY", "endpoint_rules": [["GET", "/a/*"]], "tls_ca": "/ca.pem",
        "tls_client_cert": "/c.pem", "tls_client_key": "/k.pem",
    }  # fmt: skip
    with pytest.raises(AttributeError):
        setattr(full, "prefix", "y")
    full.endpoint_rules.append(("x", "y"))
    assert len(full.endpoint_rules) == 1


def test_configs_say_what_they_were_given() -> None:
    config = ProxyConfig(["a.test"], [RouteConfig("x", "http://x.test")], bind_port=0)
    assert repr(config) == "ProxyConfig(hosts=1, routes=1, bind=127.0.0.1:0)"
    assert (config.allowed_hosts, config.allow_all_hosts, config.max_connections) == (["a.test"], False, 256)
    assert [route.prefix for route in config.routes] == ["x"]
    assert config.to_dict()["external_proxy"] is None
    assert ProxyConfig().allowed_hosts == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bind_addr": "localhost"}, "bind_addr"),
        ({"allowed_hosts": ["a.test"], "allow_all_hosts": True}, "allow_all_hosts"),
        ({"allowed_hosts": ["*"]}, "allowed_hosts"),
        ({"allowed_hosts": ["http://a.test/x"]}, "allowed_hosts"),
        ({"max_connections": 0}, "max_connections"),
        ({"intercept_parent_ca_pems": b"\xff"}, "intercept_parent_ca_pems"),
    ],
)
def test_what_cannot_be_meant_is_a_value_error(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ProxyConfig(**arguments)  # type: ignore[arg-type]


def test_wrong_types() -> None:
    with pytest.raises(OverflowError):
        ProxyConfig(bind_port=70000)
    with pytest.raises(OverflowError):
        ProxyConfig(max_connections=-1)
    with pytest.raises(TypeError):
        ProxyConfig("a.test")
    with pytest.raises(TypeError):
        nono_py.ProxyHandle()
    with pytest.raises(TypeError):
        type("Sub", (ProxyConfig,), {})


def test_a_password_of_another_proxy_is_not_shown() -> None:
    external = ExternalProxyConfig("http://me:hunter2-pass@proxy.test:3128", ["*.direct.test"])
    assert external.address == "http://me:hunter2-pass@proxy.test:3128"
    shown = repr(external) + str(external.to_dict()) + repr(ProxyConfig(external_proxy=external))
    shown += str(ProxyConfig(external_proxy=external).to_dict())
    assert "hunter2" not in shown and "proxy.test:3128" in shown
    assert repr(ExternalProxyConfig("proxy.test:3128")) == "ExternalProxyConfig(address='proxy.test:3128')"
    for wrong in ("nothing", "socks5://me:hunter2@x:1", "http://me:hunter2@x"):
        with pytest.raises(ValueError) as raised:
            ExternalProxyConfig(wrong)
        assert "hunter2" not in str(raised.value)


def test_environment() -> None:
    with start_proxy(ProxyConfig(["a.test"], [RouteConfig("/My-Api/", "http://127.0.0.1:1")])) as proxy:
        env = proxy.env_vars()
        assert list(env) == [
            "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy", "NONO_PROXY_TOKEN",
            "NODE_USE_ENV_PROXY",
        ]  # fmt: skip
        token = env["NONO_PROXY_TOKEN"]
        assert len(token) == 64 and int(token, 16) >= 0
        assert env["HTTP_PROXY"] == f"http://nono:{token}@127.0.0.1:{proxy.port}"
        assert env["NO_PROXY"] == "localhost,127.0.0.1"
        assert proxy.credential_env_vars() == {"MY-API_BASE_URL": f"http://127.0.0.1:{proxy.port}/My-Api"}
        pairs = proxy.sandbox_env([("ZED", "1"), ("HTTP_PROXY", "mine"), ("ABC", "2")])
        assert pairs == sorted(pairs) and ("ZED", "1") in pairs
        assert dict(pairs)["HTTP_PROXY"] == env["HTTP_PROXY"]
        assert dict(proxy.sandbox_env())["MY-API_BASE_URL"]
        for name in ("LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "", "A=B"):
            with pytest.raises(ValueError):
                proxy.sandbox_env([(name, "x")])
        assert repr(proxy) == f"ProxyHandle(port={proxy.port})"
        with start_proxy(ProxyConfig()) as other:
            assert other.env_vars()["NONO_PROXY_TOKEN"] != token


def test_closed_hosts_are_refused_with_or_without_the_token() -> None:
    with start_proxy(ProxyConfig(["open.test"])) as proxy:
        token = proxy.env_vars()["NONO_PROXY_TOKEN"]
        for login in (None, token, "wrong"):
            line = status(proxy.port, "closed.test:443", login)
            assert line.startswith("HTTP/1.1 403") and "not in the allowlist" in line
        assert status(proxy.port, "open.test:443").startswith("HTTP/1.1 407")
        assert status(proxy.port, "below.open.test:443").startswith("HTTP/1.1 403")
        events = proxy.drain_audit_events()
        assert [list(event) for event in events] == [EVENT_KEYS] * 5
        first, unlisted = events[0], events[3]
        assert (first["decision"], first["target"], first["port"]) == ("deny", "closed.test", 443)
        assert (first["mode"], first["denial_category"], first["status"]) == ("connect", "host_denied", 403)
        assert (first["auth_mechanism"], first["auth_outcome"], first["method"]) == (None, None, "CONNECT")
        assert unlisted["denial_category"] == "authentication_failed"
        assert (unlisted["auth_mechanism"], unlisted["auth_outcome"]) == ("proxy_authorization", "failed")
        assert proxy.drain_audit_events() == []
        assert token not in str(events)


def test_urllib_hears_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with start_proxy(ProxyConfig(["open.test"])) as proxy:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"https": proxy.env_vars()["HTTPS_PROXY"]}))
        with pytest.raises(urllib.error.URLError, match="not in the allowlist"):
            opener.open("https://closed.test/", timeout=30)


def test_open_hosts_are_reached() -> None:
    with origin() as server, start_proxy(ProxyConfig([f"127.0.0.1:{server.port}"])) as proxy:
        token = proxy.env_vars()["NONO_PROXY_TOKEN"]
        line, stream = connect(proxy.port, f"127.0.0.1:{server.port}", token)
        assert line.startswith("HTTP/1.1 200")
        stream.sendall(f"GET /in HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n".encode())
        assert b"200 OK" in stream.recv(4096)
        stream.close()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy.env_vars()["HTTP_PROXY"]}))
        with opener.open(f"{server.url}/plain", timeout=30) as answer:
            assert answer.status == 200
        assert server.seen == ["GET /in", "GET /plain"]
        assert "proxy-authorization" not in server.headers[1]
        assert ask(proxy.port, f"{server.url}/x").status == 407
        assert ask(proxy.port, "http://127.0.0.1:1/x", {"Proxy-Authorization": basic(token)}).status == 403
        assert ask(proxy.port, "/x").status == 400
        events = proxy.drain_audit_events()
        assert [event["decision"] for event in events] == ["allow", "allow", "allow", "deny", "deny", "deny"]
        assert {event["mode"] for event in events} == {"connect", "reverse"}
        assert events[0]["auth_outcome"] == "succeeded"


def test_without_hosts_everything_is_closed() -> None:
    with start_proxy(ProxyConfig()) as proxy:
        token = proxy.env_vars()["NONO_PROXY_TOKEN"]
        assert status(proxy.port, "127.0.0.1:80", token).startswith("HTTP/1.1 403")


def test_all_hosts_but_those_of_a_cloud() -> None:
    with origin() as server, start_proxy(ProxyConfig(allow_all_hosts=True)) as proxy:
        token = proxy.env_vars()["NONO_PROXY_TOKEN"]
        assert status(proxy.port, f"127.0.0.1:{server.port}", token).startswith("HTTP/1.1 200")
        assert status(proxy.port, f"localhost:{server.port}", token).startswith("HTTP/1.1 200")
        assert status(proxy.port, f"127.0.0.1:{server.port}").startswith("HTTP/1.1 407")
        for closed in (
            "169.254.169.254:80", "169.254.1.1:80", "metadata.google.internal:80", "metadata.azure.internal:80",
            "[fe80::1]:80", "[::ffff:169.254.169.254]:80", "100.100.100.200:80", "[fd00:ec2::254]:80",
        ):  # fmt: skip
            assert status(proxy.port, closed, token).startswith("HTTP/1.1 403"), closed


def test_no_rule_opens_a_clouds_credentials() -> None:
    hosts = ["169.254.169.254", "metadata.google.internal", "169.254.7.7"]
    with start_proxy(ProxyConfig(hosts)) as proxy:
        token = proxy.env_vars()["NONO_PROXY_TOKEN"]
        for host in hosts:
            assert status(proxy.port, f"{host}:80", token).startswith("HTTP/1.1 403"), host


def test_opened_loopback_goes_through_the_proxy() -> None:
    with start_proxy(ProxyConfig(["localhost"])) as proxy:
        assert proxy.env_vars()["NO_PROXY"] == "127.0.0.1"


def test_a_port_that_is_taken() -> None:
    with start_proxy(ProxyConfig()) as proxy:
        with pytest.raises(RuntimeError) as raised:
            start_proxy(ProxyConfig(bind_port=proxy.port))
        assert isinstance(raised.value, nono_py.ProxyError) and raised.value.kind == "bind"


def test_bind_to_all_addresses() -> None:
    with start_proxy(ProxyConfig(bind_addr="0.0.0.0")) as proxy:
        assert f"@127.0.0.1:{proxy.port}" in proxy.env_vars()["HTTP_PROXY"]
        token = proxy.env_vars()["NONO_PROXY_TOKEN"]
        assert status(proxy.port, f"127.0.0.1:{proxy.port}", token).startswith("HTTP/1.1 403")


def test_more_connections_than_allowed() -> None:
    with start_proxy(ProxyConfig(max_connections=2)) as proxy:
        held = [socket.create_connection(("127.0.0.1", proxy.port), 30) for _ in range(2)]
        # Both have to be accepted before the third: each is once it is answered.
        for stream in held:
            stream.sendall(b"CONNECT closed.test:443 HTTP/1.1\r\nHost: closed.test:443\r\n\r\n")
            assert stream.recv(12) == b"HTTP/1.1 403"
        third = socket.create_connection(("127.0.0.1", proxy.port), 30)
        assert third.recv(12) == b"HTTP/1.1 503"
        for stream in [*held, third]:
            stream.close()


def test_many_at_once() -> None:
    with origin() as server, start_proxy(ProxyConfig([f"127.0.0.1:{server.port}"])) as proxy:
        headers = {"Proxy-Authorization": basic(proxy.env_vars()["NONO_PROXY_TOKEN"])}
        answers: list[int] = []

        def one(number: int) -> None:
            answers.append(ask(proxy.port, f"{server.url}/{number}", headers).status)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [200] * 200
        assert len(server.seen) == 200 == len(proxy.drain_audit_events())


def test_only_the_last_events_are_kept() -> None:
    with start_proxy(ProxyConfig()) as proxy:
        stream = socket.create_connection(("127.0.0.1", proxy.port), 30)
        reader = stream.makefile("rb")
        for number in range(4100):
            stream.sendall(f"CONNECT n{number}.test:443 HTTP/1.1\r\nHost: n{number}.test:443\r\n\r\n".encode())
            length = 0
            while (line := reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            reader.read(length)
        events = proxy.drain_audit_events()
        assert len(events) == 4096 and events[-1]["target"] == "n4099.test"
        reader.close()
        stream.close()


def test_another_proxy_on_the_way() -> None:
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as other:

        def serve() -> None:
            for answer in (b"HTTP/1.1 200 OK\r\n\r\nhello", b"HTTP/1.1 403 No\r\n\r\n"):
                stream, _ = other.accept()
                with stream:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += stream.recv(4096)
                    seen.append(head)
                    stream.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        external = ExternalProxyConfig(f"http://me:hunter2@127.0.0.1:{other.getsockname()[1]}", ["direct.test"])
        with start_proxy(ProxyConfig(["far.test", "direct.test"], external_proxy=external)) as proxy:
            token = proxy.env_vars()["NONO_PROXY_TOKEN"]
            line, stream = connect(proxy.port, "far.test:443", token)
            assert line.startswith("HTTP/1.1 200") and stream.recv(5) == b"hello"
            stream.close()
            assert status(proxy.port, "far.test:443", token).startswith("HTTP/1.1 502")
            thread.join()
            assert all(head.startswith(b"CONNECT far.test:443 ") for head in seen)
            assert b"Basic bWU6aHVudGVyMg==" in seen[0] and token.encode() not in seen[0]
            # Looked up here, where no such name is.
            assert status(proxy.port, "direct.test:443", token).startswith("HTTP/1.1 502")
            assert len(seen) == 2
            events = proxy.drain_audit_events()
            assert [event["mode"] for event in events][:2] == ["external", "external"]
            assert events[1]["denial_category"] == "external_proxy_rejected"
            assert "hunter2" not in str(events)


def test_certificates_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    pem = authority(tmp_path).ca.read_bytes()
    route = RouteConfig("x", "https://127.0.0.1:1")
    with pytest.raises(FileNotFoundError):
        start_proxy(ProxyConfig(routes=[route], intercept_ca_dir=tmp_path / "no", intercept_parent_ca_pems=pem))
