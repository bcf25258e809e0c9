"""A proxy as the only way out: of a set, of a confined process, and from a policy document."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

import nono_py
from nono_py import CapabilitySet, ProxyConfig, QueryContext, SandboxState, load_policy, start_proxy


def test_a_proxy_counts_as_a_blocked_network() -> None:
    caps = CapabilitySet()
    with start_proxy(ProxyConfig()) as proxy:
        mode = f"proxy-only (localhost:{proxy.port})"
        caps.proxy_only(proxy=proxy)
        assert caps.is_network_blocked
        assert repr(caps) == f"CapabilitySet(fs=0, network={mode})"
        assert caps.summary().endswith(f"Network:\n  outbound: {mode}")
        assert caps.to_dict()["network"] == mode
        assert QueryContext(caps).query_network() == {"status": "denied", "reason": "network_blocked"}
        caps.block_network()
        assert repr(caps) == "CapabilitySet(fs=0, network=blocked)"
        caps.proxy_only(proxy)
        assert mode in repr(caps)
    # One that was shut down can still be named.
    ended = CapabilitySet()
    ended.proxy_only(proxy)
    assert mode in repr(ended)
    wrong: Any = 8080
    with pytest.raises(TypeError):
        caps.proxy_only(wrong)


def test_a_state_has_no_proxy_and_stays_closed() -> None:
    caps = CapabilitySet()
    with start_proxy(ProxyConfig()) as proxy:
        caps.proxy_only(proxy)
        state = SandboxState.from_json(SandboxState.from_caps(caps).to_json())
    assert json.loads(state.to_json()) == {"fs": [], "net_blocked": True}
    assert repr(state.to_caps()) == "CapabilitySet(fs=0, network=blocked)"


def test_a_group_that_blocks_replaces_the_proxy() -> None:
    document = {"groups": {"g": {"description": "", "network": {"block": True}}, "h": {"description": ""}}}
    caps = CapabilitySet()
    with start_proxy(ProxyConfig()) as proxy:
        caps.proxy_only(proxy)
        load_policy(json.dumps(document)).resolve_groups(["h"], caps)
        assert "proxy-only" in repr(caps)
        load_policy(json.dumps(document)).resolve_groups(["g"], caps)
        assert "network=blocked" in repr(caps)


def in_a_child(work: Callable[[], dict[str, str]]) -> Any:
    """What `work` gives in a forked process, which has one thread whatever this one has."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writable, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as file:
        answer = file.read()
    os.waitpid(child, 0)
    return json.loads(answer)


def test_a_confined_child_reaches_the_port_of_the_proxy_alone() -> None:
    def outcome(attempt: Callable[[], object]) -> str:
        try:
            attempt()
            return "ok"
        except PermissionError:
            return "denied"
        except nono_py.SandboxError as error:
            return error.kind
        except OSError as error:
            return str(error.errno)

    with start_proxy(ProxyConfig()) as proxy, socket.create_server(("127.0.0.1", 0)) as other:
        caps = CapabilitySet()
        caps.proxy_only(proxy)
        elsewhere = other.getsockname()[1]

        def work() -> dict[str, str]:
            def connect(port: int) -> None:
                socket.create_connection(("127.0.0.1", port), timeout=30).close()

            def send() -> None:
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                    sender.sendto(b"x", ("127.0.0.1", 9))

            def listen() -> None:
                with socket.socket() as listener:
                    listener.bind(("127.0.0.1", 0))

            before = outcome(lambda: connect(elsewhere))
            nono_py.apply(caps)
            return {
                "before": before,
                "proxy": outcome(lambda: connect(proxy.port)),
                "elsewhere": outcome(lambda: connect(elsewhere)),
                "udp": outcome(send),
                "listen": outcome(listen),
            }

        assert in_a_child(work) == {
            "before": "ok",
            "proxy": "ok",
            "elsewhere": "denied",
            "udp": "denied",
            "listen": "denied",
        }


def policy(**networks: dict[str, Any]) -> nono_py.Policy:
    groups = {name: {"description": "", "network": network} for name, network in networks.items()}
    return load_policy(json.dumps({"groups": groups}))


def test_groups_make_one_proxy_together() -> None:
    loaded = policy(
        one={"allow_domain": ["a.test", "b.test"], "max_connections": 9, "upstream_bypass": ["direct.test"]},
        two={"proxy_allow": ["b.test", "*.c.test"], "max_connections": 4, "external_proxy": "proxy.test:3128"},
        three={
            "custom_credentials": {
                "service": {
                    "prefix": "/service",
                    "upstream": "https://service.test/v1",
                    "credential_key": "SERVICE_KEY",
                    "inject_mode": "query_param",
                    "query_param_name": "key",
                    "env_var": "SERVICE_KEY",
                    "endpoint_rules": [{"method": "GET", "path": "/v1/**"}],
                }
            }
        },
        blocks={"block": True},
    )
    config = loaded.resolve_proxy_config(["one", "two", "three", "blocks"])
    assert isinstance(config, ProxyConfig)
    assert config.allowed_hosts == ["a.test", "b.test", "*.c.test"]
    assert (config.max_connections, config.allow_all_hosts) == (4, False)
    (route,) = config.routes
    assert (route.prefix, route.upstream) == ("/service", "https://service.test/v1")
    assert (route.credential_key, route.query_param_name) == ("SERVICE_KEY", "key")
    assert route.inject_mode == nono_py.InjectMode.QUERY_PARAM
    assert route.endpoint_rules == [("GET", "/v1/**")]
    external = config.to_dict()["external_proxy"]
    assert "proxy.test:3128" in str(external) and "direct.test" in str(external)

    assert loaded.resolve_proxy_config(["blocks"]) is None
    alone = loaded.resolve_proxy_config(["one"])
    assert alone is not None and alone.to_dict()["external_proxy"] is None


def test_contradictions_and_unknown_names_are_refused() -> None:
    loaded = policy(
        one={"upstream_proxy": "p.test:1"},
        two={"external_proxy": "q.test:1"},
        named={"credentials": ["openai"]},
        broken={"allow_domain": ["http://a.test/"]},
    )
    with pytest.raises(ValueError, match="Conflicting upstream_proxy values"):
        loaded.resolve_proxy_config(["one", "two"])
    with pytest.raises(ValueError, match="openai"):
        loaded.resolve_proxy_config(["named"])
    with pytest.raises(ValueError, match="allowed_hosts"):
        loaded.resolve_proxy_config(["broken"])
    assert loaded.resolve_proxy_config(["one", "one"]) is not None
