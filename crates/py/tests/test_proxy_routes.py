"""Routes: secrets that programs never see, rules for what may be asked, TLS."""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

import nono_py
from nono_py import InjectMode, ProxyConfig, ProxyHandle, RouteConfig, start_proxy
from proxy_kit import PATIENCE, SECRET, Answer, Origin, ask, authority, basic, connect, origin, status

KEY = "PROXY_TEST_KEY"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, SECRET)


def token_of(proxy: ProxyHandle) -> str:
    return proxy.env_vars()["NONO_PROXY_TOKEN"]


def bearer(proxy: ProxyHandle) -> dict[str, str]:
    return {"Authorization": f"Bearer {token_of(proxy)}"}


def hidden(answer: Answer, server: Origin, proxy: ProxyHandle, secret: str = SECRET) -> None:
    """The server got the secret and sent it back, and the client did not see it."""
    assert answer.status == 200
    had = server.seen[-1] + str(server.headers[-1])
    assert secret in had or base64.b64encode(f"me:{secret}".encode()).decode() in had
    assert token_of(proxy) not in had
    assert secret not in answer.text and token_of(proxy) in answer.text
    assert secret not in str(proxy.drain_audit_events())


def test_header() -> None:
    with origin() as server:
        route = RouteConfig("api", f"{server.url}/v1", credential_key=KEY)
        with start_proxy(ProxyConfig(routes=[route])) as proxy:
            token = token_of(proxy)
            env = proxy.credential_env_vars()
            assert env == {"API_BASE_URL": f"http://127.0.0.1:{proxy.port}/api", KEY: token}
            hidden(ask(proxy.port, "/api/chat?x=1", bearer(proxy)), server, proxy)
            assert server.seen == ["GET /v1/chat?x=1"]
            assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Proxy-Authorization": basic(token)}):
                assert ask(proxy.port, "/api/chat", headers).status == 401
            assert ask(proxy.port, "/other/chat", bearer(proxy)).status == 400
            event = proxy.drain_audit_events()[0]
            assert (event["decision"], event["mode"], event["route_id"]) == ("deny", "reverse", "api")
            assert (event["auth_mechanism"], event["auth_outcome"]) == ("phantom_header", "failed")
            assert event["denial_category"] == "authentication_failed"
            assert len(server.seen) == 1


def test_events_of_a_secret_that_went_in() -> None:
    with origin() as server:
        route = RouteConfig("api", server.url, credential_key=KEY)
        with start_proxy(ProxyConfig(routes=[route])) as proxy:
            ask(proxy.port, "/api/chat?x=1", bearer(proxy), "POST", b"hello")
            (event,) = proxy.drain_audit_events()
            assert (event["decision"], event["status"], event["method"], event["path"]) == ("allow", 200, "POST", "/chat")
            assert (event["target"], event["port"], event["route_id"]) == ("127.0.0.1", server.port, "api")
            assert (event["managed_credential_active"], event["injection_mode"]) == (True, "header")
            assert (event["auth_mechanism"], event["auth_outcome"]) == ("phantom_header", "succeeded")


def test_another_header_and_format() -> None:
    with origin() as server:
        routes = [
            RouteConfig("bare", server.url, KEY, inject_header="X-Api-Key"),
            RouteConfig("form", server.url, KEY, inject_header="X-Api-Key", credential_format="Token {}", env_var="MINE"),
        ]
        with start_proxy(ProxyConfig(routes=routes)) as proxy:
            assert proxy.credential_env_vars()["MINE"] == token_of(proxy)
            for prefix, expected in (("bare", SECRET), ("form", f"Token {SECRET}")):
                # The token is taken out wherever it stands.
                headers = {"X-Api-Key": token_of(proxy), **bearer(proxy)}
                answer = ask(proxy.port, f"/{prefix}/x", headers)
                assert answer.status == 200 and SECRET not in answer.text
                assert server.headers[-1]["x-api-key"] == expected
                assert token_of(proxy) not in str(server.headers[-1])


def test_query() -> None:
    with origin() as server:
        route = RouteConfig("api", server.url, KEY, InjectMode.QUERY_PARAM, query_param_name="key")
        with start_proxy(ProxyConfig(routes=[route])) as proxy:
            hidden(ask(proxy.port, f"/api/x?a=1&key={token_of(proxy)}"), server, proxy)
            assert server.seen == [f"GET /x?a=1&key={SECRET}"]
            assert ask(proxy.port, "/api/x?a=1&key=no").status == 401
            assert proxy.drain_audit_events()[0]["auth_mechanism"] == "phantom_query"


def test_path() -> None:
    with origin() as server:
        routes = [
            RouteConfig("bot", server.url, KEY, InjectMode.URL_PATH, path_pattern="/bot{}/", path_replacement="/b/{}/"),
            RouteConfig("end", server.url, KEY, InjectMode.URL_PATH, path_pattern="/k/{}"),
        ]
        with start_proxy(ProxyConfig(routes=routes)) as proxy:
            token = token_of(proxy)
            hidden(ask(proxy.port, f"/bot/bot{token}/send?x=1"), server, proxy)
            assert ask(proxy.port, f"/end/k/{token}").status == 200
            assert server.seen == [f"GET /b/{SECRET}/send?x=1", f"GET /k/{SECRET}"]
            for wrong in ("/bot/send", "/bot/botwrong/send", f"/end/k/{token}x", f"/bot/x?p=/bot{token}/"):
                assert ask(proxy.port, wrong).status == 401
            events = proxy.drain_audit_events()
            assert events[0]["injection_mode"] == "url_path" and events[1]["auth_mechanism"] == "phantom_path"
            assert token not in str(events)


def test_basic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, f"me:{SECRET}")
    with origin() as server:
        route = RouteConfig("api", server.url, KEY, InjectMode.BASIC_AUTH)
        with start_proxy(ProxyConfig(routes=[route])) as proxy:
            answer = ask(proxy.port, "/api/x", {"Authorization": basic(token_of(proxy))})
            pair = base64.b64encode(f"me:{SECRET}".encode()).decode()
            assert server.headers[0]["authorization"] == f"Basic {pair}"
            assert answer.status == 200 and pair not in answer.text
        monkeypatch.setenv(KEY, "no-colon-in-this")
        with start_proxy(ProxyConfig(routes=[route])) as proxy:
            assert ask(proxy.port, "/api/x", bearer(proxy)).status == 503


def test_short_secrets_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "abc")
    with origin() as server, start_proxy(ProxyConfig(routes=[RouteConfig("api", server.url, KEY)])) as proxy:
        assert ask(proxy.port, "/api/x", bearer(proxy)).status == 200
        assert server.headers[0]["authorization"] == "Bearer abc"


def test_where_secrets_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text("from-the-file-0\n")
    tool = tmp_path / "bin" / "secret-tool"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\n[ "$*" = "lookup service nono username ring" ] && echo from-the-ring-0\n'
                    '[ "$*" = "lookup service svc username me" ] && echo from-the-ring-1\nexit 0\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    keys = {
        "a": (KEY.lower(), SECRET),
        "b": (f"env://{KEY}", SECRET),
        "c": (f"file://{file}", "from-the-file-0"),
        "d": ("ring", "from-the-ring-0"),
        "e": ("keyring://svc/me", "from-the-ring-1"),
    }
    with origin() as server:
        routes = [RouteConfig(prefix, server.url, key) for prefix, (key, _) in keys.items()]
        with start_proxy(ProxyConfig(routes=routes)) as proxy:
            for prefix, (_, secret) in keys.items():
                assert ask(proxy.port, f"/{prefix}/", bearer(proxy)).status == 200
                assert server.headers[-1]["authorization"] == f"Bearer {secret}"
            # The name of a place is no name of a variable.
            env = proxy.credential_env_vars()
            assert {name for name in env if not name.endswith("_BASE_URL")} == {KEY, "RING"}


def test_a_secret_that_cannot_be_had_closes_its_route_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAD", f"{SECRET}\x7f")
    os.mkfifo(tmp_path / "fifo")
    keys = ["NOT_SET_ANYWHERE", "env://NOT_SET_ANYWHERE", "file:///nowhere/at/all", f"file://{tmp_path}/fifo", "BAD", "op://a/b"]
    with origin() as server:
        routes = [RouteConfig(f"r{number}", server.url, key, env_var=f"R{number}") for number, key in enumerate(keys)]
        with start_proxy(ProxyConfig(routes=[*routes, RouteConfig("good", server.url, KEY)])) as proxy:
            for number in range(len(keys)):
                answer = ask(proxy.port, f"/r{number}/x", bearer(proxy))
                assert answer.status == 503 and SECRET not in answer.text
            events = proxy.drain_audit_events()
            assert {event["denial_category"] for event in events} == {"managed_credential_unavailable"}
            assert {event["managed_credential_active"] for event in events} == {False}
            assert SECRET not in str(events)
            assert ask(proxy.port, "/good/x", bearer(proxy)).status == 200
            assert [name for name in proxy.credential_env_vars() if not name.endswith("_BASE_URL")] == [KEY]
            assert len(server.seen) == 1


def test_without_a_secret() -> None:
    with origin() as server, start_proxy(ProxyConfig(routes=[RouteConfig("api", f"{server.url}/v1/")])) as proxy:
        assert ask(proxy.port, "/api/x").status == 401
        assert ask(proxy.port, "/api/x", bearer(proxy)).status == 200
        assert ask(proxy.port, "/api", {"Proxy-Authorization": basic(token_of(proxy))}).status == 200
        assert server.seen == ["GET /v1/x", "GET /v1"]
        assert token_of(proxy) not in str(server.headers)
        assert {event["managed_credential_active"] for event in proxy.drain_audit_events()} == {False}


def test_an_upstream_that_is_no_url() -> None:
    config = ProxyConfig(routes=[RouteConfig("odd", "not a url"), RouteConfig("ftp", "ftp://x.test")])
    with start_proxy(config) as proxy:
        assert ask(proxy.port, "/odd/x", bearer(proxy)).status == 502
        assert ask(proxy.port, "/ftp", bearer(proxy)).status == 502
        assert set(proxy.credential_env_vars()) == {"ODD_BASE_URL", "FTP_BASE_URL"}
        assert proxy.drain_audit_events()[0]["decision"] == "deny"


def test_endpoint_rules() -> None:
    rules = [("GET", "/items/*"), ("POST", "/{chat,text}/**"), ("*", "/any")]
    with origin() as server:
        route = RouteConfig("api", f"{server.url}/v1", KEY, endpoint_rules=rules)
        with start_proxy(ProxyConfig(routes=[route])) as proxy:
            for method, path in (("GET", "/items/1?q=/x"), ("POST", "/chat/a/b"), ("POST", "/text/a"), ("DELETE", "/any")):
                assert ask(proxy.port, f"/api{path}", bearer(proxy), method).status == 200, path
            assert len(server.seen) == 4
            proxy.drain_audit_events()
            closed = [
                ("POST", "/items/1"), ("GET", "/items/1/2"), ("GET", "/items"), ("POST", "/chat"), ("GET", "/"),
                ("GET", "/items/../admin"), ("GET", "/items/..%2fadmin"), ("GET", "/items/%2e%2e"), ("GET", "//items/1"),
            ]  # fmt: skip
            for method, path in closed:
                assert ask(proxy.port, f"/api{path}", bearer(proxy), method).status == 403, path
            events = proxy.drain_audit_events()
            assert {event["denial_category"] for event in events} == {"endpoint_policy"}
            # By the upstream's own name the same rules hold.
            headers = {"Proxy-Authorization": basic(token_of(proxy)), **bearer(proxy)}
            assert ask(proxy.port, f"{server.url}/v1/items/1", headers).status == 200
            assert server.headers[-1]["authorization"] == f"Bearer {SECRET}"
            for path in ("/v1/admin", "/items/1", "/"):
                assert ask(proxy.port, f"{server.url}{path}", headers).status == 403
            assert len(server.seen) == 5


@pytest.mark.parametrize(
    "route",
    [
        RouteConfig("x", "http://127.0.0.1:1", endpoint_rules=[("GET", "/[")]),
        RouteConfig("x", "http://127.0.0.1:1", endpoint_rules=[("GET", "/{a")]),
        RouteConfig("x", "http://127.0.0.1:1", KEY, InjectMode.URL_PATH),
        RouteConfig("x", "http://127.0.0.1:1", KEY, InjectMode.QUERY_PARAM),
        RouteConfig("x", "http://127.0.0.1:1", KEY, credential_format="no place"),
        RouteConfig("x", "http://127.0.0.1:1", KEY, inject_header="Content-Length"),
        RouteConfig("a/b", "http://127.0.0.1:1"),
        RouteConfig("", "http://127.0.0.1:1"),
        RouteConfig("x", "https://127.0.0.1:1", tls_client_cert="/x"),
    ],
)
def test_routes_that_make_no_sense(route: RouteConfig) -> None:
    with pytest.raises(nono_py.ProxyError) as raised:
        start_proxy(ProxyConfig(routes=[route]))
    assert SECRET not in str(raised.value)


def test_prefixes_stand_once() -> None:
    routes = [RouteConfig("x", "http://127.0.0.1:1"), RouteConfig("/x/", "http://127.0.0.1:2")]
    with pytest.raises(RuntimeError):
        start_proxy(ProxyConfig(routes=routes))


def test_tls_to_the_upstream(tmp_path: Path) -> None:
    keys = authority(tmp_path)
    with origin(keys.context()) as server:
        upstream = f"https://127.0.0.1:{server.port}"
        routes = [RouteConfig("api", upstream, KEY, tls_ca=keys.ca)]
        with start_proxy(ProxyConfig(routes=routes)) as proxy:
            hidden(ask(proxy.port, "/api/x", bearer(proxy)), server, proxy)
            # A tunnel would lead around the route.
            target = f"127.0.0.1:{server.port}"
            assert status(proxy.port, target, token_of(proxy)).startswith("HTTP/1.1 403")
            assert proxy.drain_audit_events()[0]["denial_category"] == "connect_bypasses_l7"
            assert "SSL_CERT_FILE" not in proxy.env_vars()
        with start_proxy(ProxyConfig(routes=[RouteConfig("api", upstream, KEY)])) as proxy:
            answer = ask(proxy.port, "/api/x", bearer(proxy))
            assert answer.status == 502 and "certificate" in answer.text.lower()
            assert proxy.drain_audit_events()[0]["denial_category"] == "upstream_connect_failed"
        missing = RouteConfig("api", upstream, KEY, tls_ca=tmp_path / "nothing.pem")
        with pytest.raises(FileNotFoundError) as raised:
            start_proxy(ProxyConfig(routes=[missing]))
        assert raised.value.filename == str(tmp_path / "nothing.pem")


def test_a_certificate_for_the_upstream(tmp_path: Path) -> None:
    keys = authority(tmp_path)
    with origin(keys.context(wants_client=True)) as server:
        upstream = f"https://127.0.0.1:{server.port}"
        shows = RouteConfig(
            "api", upstream, tls_ca=keys.ca, tls_client_cert=tmp_path / "client.pem", tls_client_key=tmp_path / "client.key"
        )
        with start_proxy(ProxyConfig(routes=[shows])) as proxy:
            assert ask(proxy.port, "/api/x").status == 401
            assert ask(proxy.port, "/api/x", bearer(proxy)).status == 200
        with start_proxy(ProxyConfig(routes=[RouteConfig("api", upstream, tls_ca=keys.ca)])) as proxy:
            assert ask(proxy.port, "/api/x", bearer(proxy)).status == 502
        wrong = RouteConfig(
            "api", upstream, tls_ca=keys.ca, tls_client_cert=tmp_path / "client.pem", tls_client_key=tmp_path / "ca.key"
        )
        with pytest.raises(nono_py.ProxyError, match="client certificate"):
            start_proxy(ProxyConfig(routes=[wrong]))


def test_tunnels_are_looked_into(tmp_path: Path) -> None:
    keys = authority(tmp_path)
    folder = tmp_path / "bundle"
    folder.mkdir()
    with origin(keys.context()) as server:
        url = f"https://127.0.0.1:{server.port}"
        route = RouteConfig("api", url, KEY, endpoint_rules=[("GET", "/ok/**")])
        pem = keys.ca.read_text()
        config = ProxyConfig(routes=[route], intercept_ca_dir=folder, intercept_parent_ca_pems=pem)
        with start_proxy(config) as proxy:
            env = proxy.env_vars()
            names = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"]
            assert {Path(env[name]).parent for name in names} == {folder}
            assert pem.strip() in Path(env["SSL_CERT_FILE"]).read_text()
            line, stream = connect(proxy.port, f"127.0.0.1:{server.port}", token_of(proxy))
            assert line.startswith("HTTP/1.1 200")
            trust = ssl.create_default_context(cafile=env["SSL_CERT_FILE"])
            with trust.wrap_socket(stream, server_hostname="127.0.0.1") as secure:
                ask_for = f"GET /ok/x HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                secure.sendall(f"{ask_for}Authorization: Bearer {token_of(proxy)}\r\nConnection: close\r\n\r\n".encode())
                said = b""
                while more := secure.recv(4096):
                    said += more
            assert said.startswith(b"HTTP/1.1 200") and SECRET.encode() not in said
            assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
            curl = shutil.which("curl")
            if curl is None:
                pytest.fail("curl is not installed")
            shown = subprocess.run(
                [curl, "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", str(PATIENCE), f"{url}/other"],
                env={**env, "NO_PROXY": "", "no_proxy": ""}, capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert shown.stdout == "403" and len(server.seen) == 1
            events = proxy.drain_audit_events()
            assert {event["mode"] for event in events} == {"connect_intercept"}
            assert [event["denial_category"] for event in events if event["decision"] == "deny"] == ["endpoint_policy"]
            assert any(event["injection_mode"] == "header" for event in events)
