"""Names, signatures, documentation, and what holds for every native class."""

from __future__ import annotations

import importlib.resources
import inspect
import re
import types
from typing import Any

import pytest

import nono_py

from .kit import untyped as nono

NAMES = """
    AccessMode audit CapabilitySet CapabilitySource Change ContentHash ExclusionConfig ExecResult ExternalProxyConfig
    FileState FsCapability InjectMode Policy ProxyConfig ProxyHandle QueryContext ResolvedPolicy RouteConfig SandboxState
    SessionMetadata SnapshotManager SnapshotManifest SupportInfo apply apply_unlink_overrides embedded_policy_json
    is_supported load_embedded_policy load_policy sandboxed_exec start_proxy support_info validate_deny_overlaps
""".split()

CLASSES = [name for name in NAMES if name[0].isupper()]

WITHOUT_CONSTRUCTOR = """
    AccessMode CapabilitySource FsCapability SupportInfo SandboxState ExecResult Policy ResolvedPolicy InjectMode
    ProxyHandle ContentHash FileState Change SnapshotManifest
""".split()

VALUES = """
    FsCapability CapabilitySource SupportInfo ExecResult FileState Change SnapshotManifest ExclusionConfig
    SessionMetadata ResolvedPolicy RouteConfig ExternalProxyConfig ProxyConfig SandboxState
""".split()

# Names in their order; `*` begins what has to be given by keyword and is ours.
SIGNATURES = {
    "apply": "caps",
    "is_supported": "",
    "support_info": "",
    "sandboxed_exec": "caps command cwd timeout_secs env inherit_env",
    "load_policy": "json",
    "load_embedded_policy": "",
    "embedded_policy_json": "",
    "apply_unlink_overrides": "caps",
    "validate_deny_overlaps": "deny_paths caps",
    "start_proxy": "config",
    "CapabilitySet": "",
    "CapabilitySet.allow_path": "path mode",
    "CapabilitySet.allow_file": "path mode",
    "CapabilitySet.block_network": "",
    "CapabilitySet.proxy_only": "proxy",
    "CapabilitySet.platform_rule": "rule",
    "CapabilitySet.deduplicate": "",
    "CapabilitySet.path_covered": "path",
    "CapabilitySet.fs_capabilities": "",
    "CapabilitySet.summary": "",
    "CapabilitySource.user": "",
    "CapabilitySource.group": "name",
    "CapabilitySource.system": "",
    "QueryContext": "caps",
    "QueryContext.query_path": "path mode",
    "QueryContext.query_network": "",
    "SandboxState.from_caps": "caps",
    "SandboxState.from_json": "json",
    "SandboxState.to_json": "",
    "SandboxState.to_caps": "",
    "ContentHash.hex": "",
    "ExclusionConfig": "use_gitignore exclude_patterns exclude_globs force_include",
    "SnapshotManager": "session_dir tracked_paths exclusion max_entries max_bytes",
    "SnapshotManager.create_baseline": "",
    "SnapshotManager.create_incremental": "",
    "SnapshotManager.compute_restore_diff": "snapshot_number",
    "SnapshotManager.restore_to": "snapshot_number",
    "SnapshotManager.load_manifest": "number",
    "SnapshotManager.save_session_metadata": "meta",
    "SnapshotManager.snapshot_count": "",
    "SnapshotManager.load_session_metadata": "session_dir",
    "SessionMetadata": "session_id command tracked_paths",
    "SessionMetadata.add_merkle_root": "root",
    "SessionMetadata.set_network_events": "events",
    "SessionMetadata.to_json": "",
    "Policy.group_names": "",
    "Policy.group_description": "name",
    "Policy.resolve_groups": "group_names caps",
    "Policy.resolve_deny_paths": "group_names",
    "Policy.resolve_proxy_config": "group_names",
    "Policy.validate_group_exclusions": "excluded_groups",
    "RouteConfig": "prefix upstream credential_key inject_mode inject_header credential_format path_pattern "
    "path_replacement query_param_name env_var endpoint_rules tls_ca tls_client_cert tls_client_key",
    "ExternalProxyConfig": "address bypass_hosts",
    "ProxyConfig": "allowed_hosts routes external_proxy bind_addr bind_port max_connections intercept_ca_dir "
    "intercept_parent_ca_pems allow_all_hosts",
    "ProxyHandle.env_vars": "",
    "ProxyHandle.credential_env_vars": "",
    "ProxyHandle.sandbox_env": "extra_env",
    "ProxyHandle.drain_audit_events": "",
    "ProxyHandle.shutdown": "",
}


def members(owner: Any) -> list[str]:
    # Sorted: several processes have to find the same tests.
    return sorted(name for name in vars(owner) if not name.startswith("_"))


def test_the_33_names() -> None:
    assert len(NAMES) == 33
    assert set(NAMES) <= set(nono_py.__all__)
    assert len(set(nono_py.__all__)) == len(nono_py.__all__)
    for name in NAMES:
        assert getattr(nono, name) is not None


def test_star_import() -> None:
    namespace: dict[str, Any] = {}
    exec("from nono_py import *", namespace)
    assert set(NAMES) <= set(namespace)


def test_the_version_is_true_and_the_types_are_shipped() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", nono_py.__version__)
    package = importlib.resources.files("nono_py")
    assert package.joinpath("py.typed").is_file()
    assert package.joinpath("_nono_py.pyi").is_file()


@pytest.mark.parametrize(("name", "names"), SIGNATURES.items())
def test_signatures(name: str, names: str) -> None:
    found: Any = nono_py
    for part in name.split("."):
        found = getattr(found, part)
    parameters = [p for p in inspect.signature(found).parameters.values() if p.name != "self"]
    assert not [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY]
    ordinary = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert ordinary == names.split()
    ours = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    assert all(p.default is not inspect.Parameter.empty for p in ours)


def test_stub_only_names_do_not_exist() -> None:
    for name in ("QueryResultAllowed", "QueryResultDenied", "QueryResult", "NetworkAuditEvent"):
        assert not hasattr(nono_py, name)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_cannot_be_subclassed_or_extended(name: str) -> None:
    owner = getattr(nono, name)
    with pytest.raises(TypeError):
        type("Sub", (owner,), {})
    assert "__dict__" not in vars(owner)
    assert owner.__module__ in ("nono_py", "builtins")


def test_objects_take_no_further_attributes() -> None:
    for value in (nono.CapabilitySet(), nono.ExclusionConfig(), nono.ProxyConfig(), nono.AccessMode.READ):
        with pytest.raises(AttributeError):
            value.nothing = 1


@pytest.mark.parametrize("name", WITHOUT_CONSTRUCTOR)
def test_classes_without_constructor(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(nono, name)()


@pytest.mark.parametrize("name", VALUES)
def test_values_have_to_dict(name: str) -> None:
    assert callable(getattr(nono, name).to_dict)


def public() -> list[str]:
    names = []
    for name in nono_py.__all__:
        value = getattr(nono, name)
        if isinstance(value, type) or callable(value) or isinstance(value, types.ModuleType):
            names.append(name)
        if isinstance(value, type) and not issubclass(value, BaseException):
            names += [f"{name}.{member}" for member in members(value)]
    return names


@pytest.mark.parametrize("name", public())
def test_everything_public_is_documented(name: str) -> None:
    owner, _, member = name.partition(".")
    value = getattr(nono, owner)
    found = getattr(value, member) if member else value
    if type(found) is value:
        return  # a member of an enumeration; its class says what they are
    assert (found.__doc__ or "").strip()


def test_everything_is_in_the_stub() -> None:
    stub = importlib.resources.files("nono_py").joinpath("_nono_py.pyi").read_text()
    for name in NAMES:
        if name != "audit":
            assert re.search(rf"^(class|def) {name}\b", stub, re.M), name


def test_only_three_classes_compare_by_value() -> None:
    assert nono.CapabilitySource.user() != nono.CapabilitySource.user()
    assert nono.ExclusionConfig() != nono.ExclusionConfig()
    assert nono.AccessMode.READ == nono.AccessMode.READ
    assert nono.InjectMode.HEADER == nono.InjectMode.HEADER


def test_bools_are_bools_and_lists_no_strings() -> None:
    with pytest.raises(TypeError):
        nono.ExclusionConfig(use_gitignore=1)
    with pytest.raises(TypeError):
        nono.ExclusionConfig(exclude_patterns="abc")
    assert nono.ExclusionConfig(exclude_patterns=("a", "b")).exclude_patterns == ["a", "b"]
    with pytest.raises(TypeError):
        nono.SnapshotManager("/nowhere", "abc")
    with pytest.raises(TypeError):
        nono.SessionMetadata("s", "abc", [])
    with pytest.raises(OverflowError):
        nono.ProxyConfig(bind_port=70000)


def test_lists_are_fresh_and_properties_read_only() -> None:
    config = nono.ExclusionConfig(exclude_patterns=["a"])
    config.exclude_patterns.append("b")
    assert config.exclude_patterns == ["a"]
    with pytest.raises(AttributeError):
        config.exclude_patterns = []
