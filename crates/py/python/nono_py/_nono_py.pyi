"""The native half of ``nono_py``; import from there."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypedDict, final, type_check_only

from typing_extensions import NotRequired

from ._checkpoints import (
    CheckpointList,
    CheckpointNote,
    CheckpointResult,
    CheckpointStatus,
    ForgetReport,
    HookChanges,
    HookStatus,
    ImportReport,
)
from ._history import Checkpoint, HistoryChanges, PruneReport, RestoreResult, VerifyReport
from ._reports import SessionReport
from ._snapshots import ChangeList, Coverage, RestoreReport

StrPath = str | os.PathLike[str]
Progress = Callable[[int, int], object]

__version__: str

# --- everywhere

class NonoError(RuntimeError):
    """Base class of nono's exceptions."""

    kind: str
    """A fixed word for the cause."""
    path: str | None
    """The path it is about."""

class SandboxError(NonoError): ...
class ExecError(NonoError): ...
class PolicyError(NonoError): ...
class ProxyError(NonoError): ...
class SnapshotError(NonoError):
    """A snapshot could not be taken, read or restored."""

    report: RestoreReport | None
    """The report of an incomplete restore."""

class CheckpointError(NonoError): ...
class SessionError(NonoError): ...
class Cancelled(NonoError): ...

@final
class Cancel:
    """Cancels long work that was started with it, from any thread."""

    def __new__(cls) -> Cancel: ...
    def cancel(self) -> None:
        """Cancel the work at the next safe point. It raises ``Cancelled``."""
    @property
    def is_cancelled(self) -> bool: ...

# --- capabilities

@final
class AccessMode:
    """Access that a grant gives on a path.

    READ includes listing and executing; WRITE includes creating, removing and renaming, but not reading back.
    """

    READ: ClassVar[AccessMode]
    WRITE: ClassVar[AccessMode]
    READ_WRITE: ClassVar[AccessMode]
    def __int__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class CapabilitySource:
    """Source of a grant: the user, a group of a policy, or nono itself."""

    @staticmethod
    def user() -> CapabilitySource:
        """The user, or a call of this package."""
    @staticmethod
    def group(name: str) -> CapabilitySource:
        """The group of a policy."""
    @staticmethod
    def system() -> CapabilitySource:
        """nono itself."""
    def to_dict(self) -> dict[str, str | None]:
        """``kind`` (user, group, profile, credential, system) and ``name``, None where there is none."""

@final
class FsCapability:
    """One granted path: as it was given, and as it was resolved when it was granted."""

    @property
    def original(self) -> str:
        """The path as it was given."""
    @property
    def resolved(self) -> str:
        """The path it resolved to when it was granted: absolute, without links."""
    @property
    def access(self) -> AccessMode:
        """The access it gives."""
    @property
    def is_file(self) -> bool:
        """Whether exactly one file is granted, rather than a directory with everything below."""
    @property
    def source(self) -> CapabilitySource:
        """The source that asked for it."""
    def to_dict(self) -> dict[str, Any]:
        """The grant as a plain dict: ``original``, ``resolved``, ``access``, ``is_file``, ``source``."""

@final
class CapabilitySet:
    """Capabilities of a process: granted paths, and the network.

    Nothing but the granted paths can be reached; the network is open until ``block_network()`` or ``proxy_only()`` is
    called. Each path is resolved once, when it is added, so that a link changed later opens nothing.
    """

    def __new__(cls) -> CapabilitySet: ...
    def allow_path(self, path: StrPath, mode: AccessMode) -> None:
        """Grant a directory and everything below it.

        Raises FileNotFoundError where nothing is, ValueError for a file, OSError where it cannot be looked up.
        """
    def allow_file(self, path: StrPath, mode: AccessMode) -> None:
        """Grant one file. Anything that is not a directory counts: devices, sockets, pipes.

        Raises FileNotFoundError where nothing is, ValueError for a directory, OSError where it cannot be looked up.
        """
    def allow_unix_socket(self, path: StrPath) -> None:
        """Let a unix socket be connected to.

        Needs a mount namespace, so ``sandboxed_exec()`` can and ``apply()`` cannot.
        """
    def deny_path(self, path: StrPath) -> None:
        """Close a path inside a granted directory.

        Needs a mount namespace, so ``sandboxed_exec()`` can and ``apply()`` cannot.
        """
    def block_network(self) -> None:
        """Close the network: TCP, UDP and everything else that leaves."""
    def proxy_only(self, proxy: ProxyHandle) -> None:
        """Close the network but for this proxy.

        ``sandboxed_exec()`` lets the command reach the proxy and nothing else. ``apply()`` can only name the port:
        whatever listens on it can be reached, at any address.
        """
    def platform_rule(self, rule: str) -> None:
        """Add a rule in the language of macOS's sandbox. It is checked everywhere, and used on macOS only.

        Raises ValueError for broken text, and for a rule that opens the whole file system.
        """
    def deduplicate(self) -> None:
        """Join grants of one source on the same path, and drop grants that add nothing.

        The enforced access stays the same; no grant shows more than its source asked for, or another spelling.
        """
    def path_covered(self, path: StrPath) -> bool:
        """Whether a directory grant is at or above the path, compared lexically.

        A path with ``..`` is covered by nothing. ``QueryContext`` follows links and asks for a mode.
        """
    def fs_capabilities(self) -> list[FsCapability]:
        """The grants, in the order they were added."""
    @property
    def is_network_blocked(self) -> bool:
        """Whether the network is closed; a proxy as the only way out does not change that."""
    def summary(self) -> str:
        """A text summary of the set, one grant per line."""
    def to_dict(self) -> dict[str, Any]:
        """The set as a plain dict.

        ``fs``, ``network``, ``network_blocked``, ``denied``, ``unix_sockets``, ``platform_rules``.
        """

@type_check_only
class _QueryAnswer(TypedDict):
    granted_path: NotRequired[str]
    access: NotRequired[str]
    granted: NotRequired[str]
    requested: NotRequired[str]

@type_check_only
class QueryResultAllowed(_QueryAnswer):
    """The answer for what is allowed: a plain dict, with ``granted_path`` and ``access`` for a path.

    This name is for type checkers only.
    """

    status: Literal["allowed"]
    reason: Literal["granted_path", "network_allowed"]

@type_check_only
class QueryResultDenied(_QueryAnswer):
    """The answer for what is denied: a plain dict, with ``granted`` and ``requested`` where the mode is what is wrong.

    This name is for type checkers only.
    """

    status: Literal["denied"]
    reason: Literal["insufficient_access", "path_not_granted", "path_denied", "network_blocked"]

QueryResult = QueryResultAllowed | QueryResultDenied

@final
class QueryContext:
    """Queries of a set of capabilities, answered as the kernel would. Later changes of the set are not seen."""

    def __new__(cls, caps: CapabilitySet) -> QueryContext: ...
    def query_path(self, path: StrPath, mode: AccessMode) -> QueryResult:
        """Whether this access on a path is allowed: a dict with ``status`` ("allowed" or "denied") and ``reason``.

        Allowed ("granted_path"): ``granted_path`` and ``access`` of the grant that decides, the most permissive one.
        Denied: "insufficient_access" with ``granted`` and ``requested``, "path_not_granted", or "path_denied" for what
        ``deny_path()`` closed. Links and ``..`` are followed as the kernel does; a relative path is relative to the
        working directory.
        """
    def query_network(self) -> QueryResult:
        """Whether the network is open: a dict with ``status`` and ``reason`` ("network_allowed" or "network_blocked").

        A proxy as the only way out counts as blocked.
        """

@final
class SandboxState:
    """A set of capabilities as JSON, to be stored or passed to another process."""

    @staticmethod
    def from_caps(caps: CapabilitySet) -> SandboxState:
        """The present state of a set."""
    @staticmethod
    def from_json(json: str) -> SandboxState:
        """Read what ``to_json()`` wrote. Unknown keys are ignored.

        Raises ValueError for anything else. Access words are checked by ``to_caps()``.
        """
    def to_json(self) -> str:
        """The state as JSON, two spaces deep. ``source`` of a grant is left out where it is the user."""
    def to_caps(self) -> CapabilitySet:
        """Rebuild the set, sources included.

        Each grant is the very path it was resolved to, whatever the working directory is now. Raises FileNotFoundError
        where that is gone, ValueError where it has become a file, a directory or a link to elsewhere. What
        ``deny_path()`` closed stays closed. A proxy as the only way out comes back as a blocked network.
        """
    @property
    def net_blocked(self) -> bool:
        """Whether the network is closed."""
    def to_dict(self) -> dict[str, Any]:
        """The state as a plain dict: ``fs``, ``net_blocked``, ``denied``."""

@final
class SupportInfo:
    """Support of this machine for the sandbox."""

    @property
    def is_supported(self) -> bool:
        """Whether any set can be enforced here."""
    @property
    def platform(self) -> str:
        """The operating system, as ``linux`` or ``macos``."""
    @property
    def details(self) -> str:
        """The kernel's features in one line; or the reason why nothing can be enforced."""
    def to_dict(self) -> dict[str, Any]:
        """The values as a plain dict."""

def is_supported() -> bool:
    """Whether this machine can enforce anything."""

def support_info() -> SupportInfo:
    """The support of this machine, found by trying it."""

def apply(caps: CapabilitySet) -> None:
    """Confine this process, and everything it starts, to ``caps``: at once and for ever.

    Called again, it restricts further. Refused (SandboxError) when the process has other threads, unless the kernel can
    confine all of them at once (Landlock V8): call it before threads start, or use ``sandboxed_exec()``, which does not
    mind threads. Refused also where the kernel cannot hold what the set says; then nothing was applied.

    What it cannot do, for want of namespaces: close a path inside a grant (``deny_path``), open single unix sockets, and
    with ``proxy_only()`` tell the proxy from others on the same port: connecting to that port is allowed at any address,
    and the proxy has to live in another process, or it is confined, too. Files that are open stay open.
    """

# --- policy

@final
class Policy:
    """A policy document: named groups of paths and network rules."""

    def group_names(self) -> list[str]:
        """The names of all groups, sorted."""
    def group_description(self, name: str) -> str | None:
        """The description of a group; None if there is no such group."""
    def resolve_groups(self, group_names: Sequence[str], caps: CapabilitySet) -> ResolvedPolicy:
        """Add what these groups allow to ``caps``, and block its network where one says so.

        Groups of another platform and paths that do not exist are passed over. Raises ValueError for a group that is
        unknown, or a path that needs HOME or TMPDIR where that is unset or relative; ``caps`` is then as it was. What
        the groups deny is in the result, for ``validate_deny_overlaps()``: a set only ever opens paths.
        """
    def resolve_deny_paths(self, group_names: Sequence[str]) -> list[str]:
        """The paths that these groups deny: each with ``~`` and variables expanded, and where it leads."""
    def resolve_proxy_config(self, group_names: Sequence[str]) -> ProxyConfig | None:
        """The proxy these groups need together; None when none of them says anything that takes one.

        Raises ValueError where they contradict each other, and for credentials that are only named.
        """
    def validate_group_exclusions(self, excluded_groups: Sequence[str]) -> None:
        """Refuse to leave out groups that are required (ValueError). Names that are no group do not matter."""
    def to_dict(self) -> dict[str, Any]:
        """The document as plain dicts and lists, without default values."""

@final
class ResolvedPolicy:
    """Result of resolving groups of a policy."""

    @property
    def names(self) -> list[str]:
        """The groups that are for this platform, in the order they were asked for."""
    @property
    def needs_unlink_overrides(self) -> bool:
        """Whether a group wants ``apply_unlink_overrides()``."""
    @property
    def deny_paths(self) -> list[str]:
        """The denied paths: each as written, and where it leads.

        Nothing enforces it but ``validate_deny_overlaps()``.
        """
    def to_dict(self) -> dict[str, Any]:
        """The values as a plain dict."""

def load_policy(json: str) -> Policy:
    """Read a policy document.

    Raises ValueError for anything that is not one; a key that is unknown or given twice is named.
    """

def load_embedded_policy() -> Policy:
    """nono's own policy as a document.

    It is made from what ``nono run`` uses, for the folders of this user (``XDG_CONFIG_HOME`` and the like). What is
    protected there is a group ``deny_<name>`` here; ``deny_credentials`` is all of them that hold keys, tokens and
    passwords.
    """

def embedded_policy_json() -> str:
    """The text of ``load_embedded_policy()``."""

def validate_deny_overlaps(deny_paths: Sequence[StrPath], caps: CapabilitySet) -> None:
    """Refuse grants that would leave a denied path open.

    Raises PolicyError when one lies below a directory that the user granted: grants add up and cannot be taken back in
    part. Paths are compared by their letters. Grants of groups are left to those who wrote them.
    """

def apply_unlink_overrides(caps: CapabilitySet) -> None:
    """Let files in writable grants be removed on macOS. Does nothing on Linux, where writing includes it."""

# --- exec

@final
class ExecResult:
    """Output of a command, and how it ended."""

    @property
    def stdout(self) -> bytes:
        """Its standard output."""
    @property
    def stderr(self) -> bytes:
        """Its standard error; or, after ``nono:``, the reason why it was not run."""
    @property
    def exit_code(self) -> int:
        """Its own code; ``-n`` after signal n; 124 when its time ran out; 126 when the sandbox or the working folder
        could not be had; 127 when it could not be executed."""
    @property
    def timed_out(self) -> bool:
        """Whether its time ran out."""
    @property
    def truncated(self) -> bool:
        """Whether there was more output than ``max_output``."""
    def to_dict(self) -> dict[str, Any]:
        """The result as a plain dict, with the outputs as bytes."""

def sandboxed_exec(
    caps: CapabilitySet,
    command: Sequence[StrPath],
    cwd: StrPath | None = None,
    timeout_secs: float | None = None,
    env: Sequence[tuple[str, str]] | None = None,
    inherit_env: bool = False,
    *,
    stdin: bytes | bytearray | None = None,
    max_output: int | None = None,
    cancel: Cancel | None = None,
) -> ExecResult:
    """Run a command that can reach nothing but what ``caps`` grants, and return what it said.

    The environment is empty but for ``env``, a list of (name, value), unless ``inherit_env`` is set; variables that
    tell the loader what to run are refused. A program without a slash is looked for on this process's PATH, one with
    a slash from ``cwd``. Standard input is inherited, unless ``stdin`` has the bytes for it.

    When the command ends, or after ``timeout_secs``, or when the call is cancelled or interrupted, everything the
    command started is ended. ``max_output`` is how many bytes of each output are kept: the command goes on, the rest
    is dropped, and the result's ``truncated`` says so.

    A sandbox that cannot be had is a result with exit code 126, and nothing was run. Raises ValueError for a wrong
    argument, ExecError (a RuntimeError) for a program that is not found and where nothing can be started.
    """

# --- proxy

@type_check_only
class NetworkAuditEvent(TypedDict):
    """One request or tunnel, as ``ProxyHandle.drain_audit_events()`` returns it."""

    timestamp_unix_ms: int
    mode: Literal["connect", "connect_intercept", "reverse", "external"]
    decision: Literal["allow", "deny"]
    target: str
    port: int | None
    method: str | None
    path: str | None
    status: int | None
    reason: str | None
    route_id: str | None
    auth_mechanism: Literal["proxy_authorization", "phantom_header", "phantom_path", "phantom_query"] | None
    auth_outcome: Literal["succeeded", "failed"] | None
    managed_credential_active: bool | None
    injection_mode: Literal["header", "url_path", "query_param", "basic_auth", "oauth2"] | None
    denial_category: str | None

@final
class InjectMode:
    """Ways to insert a secret into a request."""

    HEADER: ClassVar[InjectMode]
    URL_PATH: ClassVar[InjectMode]
    QUERY_PARAM: ClassVar[InjectMode]
    BASIC_AUTH: ClassVar[InjectMode]
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class RouteConfig:
    """A service behind the proxy: ``http://127.0.0.1:<port>/<prefix>/…`` leads to ``upstream``.

    ``credential_key`` says where its secret is: the name of an environment variable (or of an entry of the service
    ``nono`` in the keyring), ``env://NAME``, ``file:///path``, or ``keyring://service/account``. A program shows the
    proxy's token where the secret goes (``inject_mode``), and never sees the secret: answers are searched for it, and it
    is replaced there. With BASIC_AUTH the secret is ``user:password``. With URL_PATH ``path_pattern`` has ``{}`` where
    the token stands, and ``path_replacement`` (the same, if None) where the secret goes. With ``endpoint_rules`` only
    these methods (``*``: any) and paths below ``upstream`` are let through; ``*`` stays within a segment, ``**`` does
    not. Nothing is checked before ``start_proxy``.
    """

    def __new__(
        cls,
        prefix: str,
        upstream: str,
        credential_key: str | None = None,
        inject_mode: InjectMode = ...,
        inject_header: str = ...,
        credential_format: str | None = None,
        path_pattern: str | None = None,
        path_replacement: str | None = None,
        query_param_name: str | None = None,
        env_var: str | None = None,
        endpoint_rules: Sequence[tuple[str, str]] = ...,
        tls_ca: StrPath | None = None,
        tls_client_cert: StrPath | None = None,
        tls_client_key: StrPath | None = None,
    ) -> RouteConfig: ...
    @property
    def prefix(self) -> str: ...
    @property
    def upstream(self) -> str: ...
    @property
    def credential_key(self) -> str | None:
        """The source of the secret, not the secret."""
    @property
    def inject_mode(self) -> InjectMode: ...
    @property
    def inject_header(self) -> str: ...
    @property
    def credential_format(self) -> str | None:
        """``{}`` stands for the secret; None: ``Bearer {}`` in ``Authorization``, the bare secret elsewhere."""
    @property
    def path_pattern(self) -> str | None: ...
    @property
    def path_replacement(self) -> str | None: ...
    @property
    def query_param_name(self) -> str | None: ...
    @property
    def env_var(self) -> str | None:
        """The variable in which programs look for the key."""
    @property
    def endpoint_rules(self) -> list[tuple[str, str]]:
        """Methods and globs of paths."""
    @property
    def tls_ca(self) -> str | None:
        """A PEM file of authorities to trust for the upstream, beside the system's."""
    @property
    def tls_client_cert(self) -> str | None:
        """A PEM file with the client certificate for the upstream."""
    @property
    def tls_client_key(self) -> str | None:
        """A PEM file with its key."""
    def to_dict(self) -> dict[str, Any]:
        """All values as a plain dict."""

@final
class ExternalProxyConfig:
    """An upstream proxy: ``host:port``, or ``http://user:password@host:port``.

    ``bypass_hosts`` (``host``, ``*.host``, each perhaps with ``:port``) are reached directly, as is this machine.
    Raises ValueError for anything else.
    """

    def __new__(cls, address: str, bypass_hosts: Sequence[str] = ...) -> ExternalProxyConfig: ...
    @property
    def address(self) -> str:
        """The address as it was given."""
    @property
    def bypass_hosts(self) -> list[str]: ...
    def to_dict(self) -> dict[str, Any]:
        """All values as a plain dict, without a password."""

@final
class ProxyConfig:
    """A proxy that lets programs reach only these hosts: ``host``, ``*.host`` (what is below it), addresses, each
    perhaps with ``:port``; and the upstreams of its routes.

    With ``allow_all_hosts`` every host is open, this machine and its neighbours too. Link-local addresses and those
    where a cloud hands out credentials are always closed; otherwise a name that leads to a private address is closed
    unless the address itself is listed. ``bind_addr`` is loopback by default: on another address any host that reaches
    it can try the token. With ``intercept_ca_dir`` tunnels to the routes' upstreams are looked into, so that keys and
    rules work there too: a bundle of certificates is written into that folder, and ``env_vars()`` points to it; without
    it such tunnels are refused, and programs go by the routes' prefixes. ``intercept_parent_ca_pems`` (PEM, str or
    bytes) is believed in place of the system's authorities. Raises ValueError for what cannot be meant.
    """

    def __new__(
        cls,
        allowed_hosts: Sequence[str] | None = None,
        routes: Sequence[RouteConfig] = ...,
        external_proxy: ExternalProxyConfig | None = None,
        bind_addr: str = ...,
        bind_port: int = 0,
        max_connections: int = 256,
        intercept_ca_dir: StrPath | None = None,
        intercept_parent_ca_pems: str | bytes | Sequence[str] | Sequence[bytes] | None = None,
        allow_all_hosts: bool = False,
    ) -> ProxyConfig: ...
    @property
    def bind_addr(self) -> str: ...
    @property
    def bind_port(self) -> int:
        """0: any port that is free."""
    @property
    def allowed_hosts(self) -> list[str]:
        """The allowed hosts as given, without those of the routes."""
    @property
    def allow_all_hosts(self) -> bool: ...
    @property
    def routes(self) -> list[RouteConfig]: ...
    @property
    def max_connections(self) -> int: ...
    def to_dict(self) -> dict[str, Any]:
        """All values as a plain dict, without the certificates."""

@final
class ProxyHandle:
    """A running proxy, from ``start_proxy``.

    It ends with ``shutdown()``, with the ``with`` block it was entered in, or with the last reference to it. It is a
    thread of this process: a process forked from this one has no proxy.
    """

    @property
    def port(self) -> int:
        """The port it listens on."""
    def env_vars(self) -> dict[str, str]:
        """How programs find the proxy: HTTP_PROXY and its kin, the token, and where tunnels are looked into the
        certificates to believe."""
    def credential_env_vars(self) -> dict[str, str]:
        """Where programs find the routes (``<PREFIX>_BASE_URL``), and the token in place of each key that could be
        had."""
    def sandbox_env(self, extra_env: Sequence[tuple[str, str]] | None = None) -> list[tuple[str, str]]:
        """Both of the above after ``extra_env``, for ``sandboxed_exec``: sorted by name, the proxy's own win. Raises
        ValueError for a variable that no command gets."""
    def drain_audit_events(self) -> list[NetworkAuditEvent]:
        """The events since the last call, as dicts: at most the last 4096."""
    def shutdown(self) -> None:
        """End all connections. A second call does nothing; events can be drained afterwards."""
    def __enter__(self) -> ProxyHandle: ...
    def __exit__(self, *_exception: object) -> None: ...

def start_proxy(config: ProxyConfig) -> ProxyHandle:
    """Start a proxy in a thread of this process, and serve until ``shutdown()``.

    The secrets of its routes are fetched now; one that cannot be had closes its route only (503). Raises ProxyError where
    nothing can listen or a route makes no sense, FileNotFoundError or PermissionError for a file that cannot be read.
    This process holds the secrets and the connections: ``run()`` and ``Session`` put theirs into a confined process.
    """

# --- snapshots

@final
class ContentHash:
    """A SHA-256: of a file's content, or of a whole snapshot."""

    def hex(self) -> str:
        """64 hexadecimal digits, in lower case."""
    def to_dict(self) -> dict[str, Any]:
        """The values as a plain dict."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class FileState:
    """A regular file in a snapshot."""

    @property
    def hash(self) -> ContentHash:
        """The SHA-256 of its bytes (of files over 1 GiB, over the hashes of their pieces)."""
    @property
    def size(self) -> int:
        """The size in bytes."""
    @property
    def mtime(self) -> int:
        """The time of the last change, in whole seconds since 1970."""
    @property
    def mtime_ns(self) -> int:
        """The time of the last change, in nanoseconds since 1970."""
    @property
    def permissions(self) -> int:
        """The permission bits: ``mode & 0o7777``."""
    def to_dict(self) -> dict[str, Any]:
        """The values as a plain dict."""

@final
class Change:
    """One path that differs."""

    @property
    def path(self) -> str:
        """Below the tracked path, as that was given."""
    @property
    def change_type(self) -> Literal["created", "modified", "deleted", "permissions_changed"]: ...
    @property
    def size_delta(self) -> int:
        """The number of bytes a regular file grew by."""
    @property
    def kind(self) -> Literal["file", "symlink", "directory", "special"]:
        """Its kind now, or before it was removed."""
    @property
    def old_hash(self) -> ContentHash | None:
        """The hash of a regular file before."""
    @property
    def new_hash(self) -> ContentHash | None:
        """The hash of a regular file after."""
    def to_dict(self) -> dict[str, Any]:
        """The values as a plain dict."""

@final
class ExclusionConfig:
    """Rules for what snapshots exclude.

    A pattern without ``/`` is the name of a file or folder; with ``/`` it is a part of the path below the tracked path.
    Globs are on names. ``force_include`` is taken whatever the others say, also inside of what they leave out.
    """

    def __new__(
        cls,
        use_gitignore: bool = True,
        exclude_patterns: Sequence[str] = [],
        exclude_globs: Sequence[str] = [],
        force_include: Sequence[str] = [],
        *,
        artifacts: bool = False,
        large_git_packs: bool = False,
        max_ignored_folder: int | None = None,
    ) -> ExclusionConfig: ...
    @property
    def use_gitignore(self) -> bool: ...
    @property
    def exclude_patterns(self) -> list[str]: ...
    @property
    def exclude_globs(self) -> list[str]: ...
    @property
    def force_include(self) -> list[str]: ...
    @property
    def artifacts(self) -> bool:
        """Whether what tools make, and can make again, is left out."""
    @property
    def large_git_packs(self) -> bool:
        """Whether large packs of git are taken where copying them is costly."""
    @property
    def max_ignored_folder(self) -> int | None:
        """The size in bytes beyond which a folder that git ignores is left out, where `use_gitignore` is off."""
    def to_dict(self) -> dict[str, Any]:
        """The values as a plain dict."""

@final
class SnapshotManifest:
    """One snapshot."""

    @property
    def number(self) -> int:
        """Its number in the session; 0 is the baseline."""
    @property
    def id(self) -> str:
        """Names it within its session."""
    @property
    def timestamp(self) -> str:
        """The time it was taken: ISO 8601, UTC."""
    @property
    def parent(self) -> int | None:
        """The number of the snapshot before it."""
    @property
    def merkle_root(self) -> ContentHash:
        """Commits to names, kinds, permission bits, contents and link targets."""
    @property
    def state_root(self) -> ContentHash:
        """Commits to everything that a restore puts back, to the rules and to the coverage."""
    @property
    def durable(self) -> bool:
        """Whether it was known to survive a loss of power when this manifest was made or loaded."""
    @property
    def coverage(self) -> Coverage:
        """The coverage of the snapshot."""
    @property
    def files(self) -> dict[str, FileState]:
        """The regular files by path, in the order of paths; a new dict each time."""
    @property
    def symlinks(self) -> dict[str, str]:
        """The symbolic links, and where each leads."""
    @property
    def directories(self) -> list[str]:
        """The directories, each before what is in it."""
    @property
    def special(self) -> dict[str, str]:
        """FIFOs, sockets and devices: "fifo", "socket", "char_device" or "block_device" by path."""
    def left_out(self) -> list[tuple[str, str]]:
        """All excluded paths, as pairs of path and reason."""
    def protection(self, path: StrPath) -> dict[str, str]:
        """Whether this path is protected: status ("captured", "left_out", "not_there" or "outside"), and for what was
        left out because_of (the path that was) and reason."""
    def to_dict(self) -> dict[str, Any]:
        """All values as a plain dict."""

@final
class SessionMetadata:
    """Data about a session beside its snapshots."""

    def __new__(
        cls, session_id: str, command: Sequence[str], tracked_paths: Sequence[StrPath]
    ) -> SessionMetadata: ...
    @property
    def session_id(self) -> str: ...
    @property
    def started(self) -> str:
        """The time it began: ISO 8601, UTC."""
    @property
    def ended(self) -> str | None: ...
    @ended.setter
    def ended(self, value: str | None) -> None: ...
    @property
    def command(self) -> list[str]: ...
    @property
    def tracked_paths(self) -> list[str]: ...
    @property
    def snapshot_count(self) -> int: ...
    @snapshot_count.setter
    def snapshot_count(self, value: int) -> None: ...
    @property
    def exit_code(self) -> int | None: ...
    @exit_code.setter
    def exit_code(self, value: int | None) -> None: ...
    @property
    def merkle_roots(self) -> list[ContentHash]: ...
    def add_merkle_root(self, root: ContentHash) -> None:
        """One more snapshot's."""
    @property
    def network_events(self) -> list[dict[str, Any]]:
        """The network events: dicts, always with the same 15 keys."""
    def set_network_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Replace them. If one of them is wrong, nothing is replaced."""
    @property
    def executable_identity(self) -> dict[str, Any] | None: ...
    @property
    def audit_event_count(self) -> int: ...
    @property
    def audit_integrity(self) -> dict[str, Any] | None: ...
    @property
    def audit_attestation(self) -> dict[str, Any] | None: ...
    def to_json(self) -> str:
        """The text of ``session.json``."""
    @staticmethod
    def from_json(json: str) -> SessionMetadata:
        """Parse the text of a ``session.json``."""
    def to_dict(self) -> dict[str, Any]:
        """The values as a plain dict, with the keys of ``to_json``."""

@final
class SnapshotManager:
    """Takes and restores snapshots of folders and files.

    Everything is kept in ``session_dir``; a folder that has snapshots is taken up where it was left. Several threads may
    use one manager, and several processes one folder: each waits for its turn. A tracked path that does not exist is
    named in the coverage of each snapshot, and never touched.
    """

    def __new__(
        cls,
        session_dir: StrPath,
        tracked_paths: Sequence[StrPath],
        exclusion: ExclusionConfig | None = None,
        max_entries: int = 300_000,
        max_bytes: int = 2_147_483_648,
        *,
        store: StrPath | None = None,
    ) -> SnapshotManager: ...
    def create_baseline(
        self, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> SnapshotManifest:
        """Take snapshot 0. A session that has snapshots already is left as it is, and SnapshotError raised."""
    def create_incremental(
        self, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> tuple[SnapshotManifest, ChangeList]:
        """Take the next snapshot; gives it with what changed since the last one, sorted by path."""
    def compute_restore_diff(
        self,
        snapshot_number: int,
        *,
        paths: Sequence[StrPath] | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> ChangeList:
        """The changes that restoring this snapshot would make; nothing is touched."""
    def restore_to(
        self,
        snapshot_number: int,
        *,
        paths: Sequence[StrPath] | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> ChangeList:
        """Restore everything that this snapshot holds; only below ``paths``, if given. Returns the changes.

        If something is not as it was in the snapshot afterwards, that is a SnapshotError of the kind "incomplete", whose
        ``report`` says what was done and what was not. What the snapshot left out is left alone, and no error.
        """
    def undo_restore(
        self, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> ChangeList:
        """Undo the last restore of this session, by any process; a second call undoes the undo."""
    def compute_changes(
        self, snapshot_number: int, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> ChangeList:
        """The changes since this snapshot was taken. No snapshot is taken now, and nothing is touched."""
    @property
    def last_restore(self) -> RestoreReport | None:
        """The report of the last restore by this manager."""
    def diff(self, first: int, second: int) -> ChangeList:
        """The changes from one snapshot to another."""
    def load_manifest(self, number: int) -> SnapshotManifest:
        """A snapshot that was taken before."""
    def read(self, number: int, path: StrPath) -> bytes:
        """The bytes that a regular file had in a snapshot."""
    def save_session_metadata(self, meta: SessionMetadata) -> None:
        """Write ``session.json``, which says what the session is about."""
    @staticmethod
    def load_session_metadata(session_dir: StrPath) -> SessionMetadata:
        """Load the ``session.json`` of a session."""
    def snapshot_count(self) -> int:
        """The number of snapshots taken in this session."""
    def verify(self, *, progress: Progress | None = None, cancel: Cancel | None = None) -> list[str]:
        """Verify every byte of every snapshot; returns the problems as text."""
    def settle(self, *, progress: Progress | None = None, cancel: Cancel | None = None) -> None:
        """Compress what was captured, and make it safe from a loss of power. Until then it survives a crash of this
        process, and is stored as it is."""
    def close(self, *, settle: bool = True) -> None:
        """Settle what was captured, unless ``settle`` is False, and let go of the folder. Afterwards the manager cannot be
        used any more; a new one on the same folder can. ``with manager:`` ends like this."""
    def __enter__(self) -> SnapshotManager: ...
    def __exit__(
        self,
        _type: type[BaseException] | None = None,
        _error: BaseException | None = None,
        _traceback: object | None = None,
    ) -> None: ...
    @property
    def session_dir(self) -> str:
        """The folder of the session, resolved."""
    @property
    def tracked_paths(self) -> list[str]:
        """The tracked paths as they were given, each once."""

# --- changes and restores, of sessions and checkpoints

Conflicts = Literal["keep", "merge", "merge_with_markers", "force"]

# --- checkpoints

@final
class CheckpointCall:
    """A call of an agent's tool: a checkpoint before, and the state after it recorded.

    Restores nothing by itself.
    """

    @property
    def result(self) -> CheckpointResult | None:
        """Result of the checkpoint before the call; None until the call began."""
    @property
    def call(self) -> str | None:
        """The id of the call, as checkpoints have it."""
    def __enter__(self) -> CheckpointCall: ...
    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> Literal[False]: ...

@final
class AgentTurns:
    """Turns of agents in the projects of a ``CheckpointManager``: the changes of each, and undo of one turn while later
    ones stay.
    """

    def __new__(cls, manager: CheckpointManager) -> AgentTurns: ...
    def list_turns(self, dir: StrPath) -> list[dict[str, Any]]:
        """The turns of the project of ``dir``, newest first: as ``nono turns --json`` has them."""
    def undo(
        self,
        dir: StrPath,
        turn: int | str,
        paths: StrPath | Sequence[StrPath] | None = None,
        dry_run: bool = False,
        *,
        conflicts: Conflicts = "keep",
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RestoreResult:
        """Undo one turn: its number in the list, its id or a beginning of it.

        What came later stays: in the same text file it is merged, and what does not merge is kept, unless ``conflicts`` is
        "merge_with_markers" or "force". With ``dry_run``, only the plan.
        """

@final
class FileVersions:
    """Versions of files that checkpoints and sessions know."""

    def __new__(cls, manager: CheckpointManager) -> FileVersions: ...
    def list_versions(self, path: StrPath) -> list[dict[str, Any]]:
        """Every version of a file with the author of the change, newest first: as ``nono log --json`` has them."""
    def read(self, path: StrPath, version: str) -> bytes:
        """The bytes of a file as they were.

        ``version`` is one of the list (its digest or a beginning of it), a checkpoint, or a session, as it was before it.
        """

@final
class CheckpointManager:
    """Checkpoints of all projects of one state folder: taken before risky steps, listed, compared, restored, undone.

    ``state_dir`` is nono's own folder (NONO_HOME, or ``~/.nono``), which is shared with the command ``nono
    checkpoints``; ``home`` the home folder, which is never a project. ``agent`` and ``session`` (a conversation of it)
    say on whose behalf. The other settings are those of ``[checkpoints]`` in ``config.toml``, which applies where they
    are None; ``enabled`` is True by default. One manager may be used by several threads: they wait for each other.

    Where a checkpoint is an argument: its number in the list (1 is the newest), its id or a beginning of it, its name,
    or a ``Checkpoint``.
    """

    def __new__(
        cls,
        state_dir: StrPath | None = None,
        home: StrPath | None = None,
        *,
        agent: str | None = None,
        session: str | None = None,
        enabled: bool = True,
        always: bool | None = None,
        max_snapshots: int | None = None,
        max_total_size_mb: int | None = None,
        max_file_size_mb: int | None = None,
        max_ignored_folder_mb: int | None = None,
        max_files: int | None = None,
        auto_prune: bool | None = None,
        retention_days: int | None = None,
        delete_orphans: bool | None = None,
        min_interval_hours: int | None = None,
    ) -> CheckpointManager: ...
    @property
    def state_dir(self) -> str:
        """nono's own folder."""
    @property
    def home(self) -> str:
        """The home folder."""
    @property
    def config(self) -> dict[str, Any]:
        """The settings as they are in force, by their names in ``config.toml``."""
    def new_turn(self, turn: str | None = None) -> str:
        """Begin a new turn: the agent's work between two prompts of the user.

        There is at most one checkpoint of each project in it. Without a name it gets a unique one. Returns the name.
        """
    @property
    def turn(self) -> str | None:
        """The turn that checkpoints belong to now."""
    def project_of(self, path: StrPath) -> str:
        """The folder of the project that a path belongs to, whether it has checkpoints or not."""
    def ensure_checkpoint(
        self,
        dir: StrPath,
        reason: str = "checkpoint",
        *,
        turn: str | None = None,
        tool: str | None = None,
        call: str | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> CheckpointResult:
        """Take a checkpoint of the project that ``dir`` belongs to, unless this turn has one or nothing changed.

        Failing is an answer, too. A call of an agent's tool begins with it, which ``agent_left`` ends.
        """
    def create(
        self,
        dir: StrPath,
        message: str = "by hand",
        *,
        turn: str | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> CheckpointResult:
        """Take a checkpoint now, whatever the turn and the setting ``enabled`` say; skipped only if nothing changed."""
    def call(
        self,
        dir: StrPath,
        reason: str = "checkpoint",
        *,
        turn: str | None = None,
        tool: str | None = None,
        call: str | None = None,
        required: bool = False,
    ) -> CheckpointCall:
        """``with manager.call(dir, reason):`` around a call of an agent's tool.

        A checkpoint before, and after it a mark of what the tool left, so that a restore can tell that from what people
        change. Restores nothing by itself. With ``required``, the call is not begun without a checkpoint.
        """
    def agent_begins(self, dir: StrPath, *, turn: str | None = None, call: str | None = None) -> None:
        """Begin a call of an agent's tool that needs no checkpoint: changes until now are not attributed to it."""
    def agent_left(self, dir: StrPath, *, turn: str | None = None, call: str | None = None) -> None:
        """End a call of an agent's tool: later differences are attributed to others."""
    def agent_stopped(self, dir: StrPath, *, turn: str | None = None) -> None:
        """End all open calls of this conversation, because the agent has stopped."""
    def take_notes(self) -> list[CheckpointNote]:
        """Take the notes about restores for this conversation of the agent. Each is returned once."""
    def take_completed(self) -> list[RestoreResult]:
        """Take the interrupted restores that this manager completed. Each is returned once."""
    def list_checkpoints(
        self, dir: StrPath, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> CheckpointList:
        """The checkpoints of the project that ``dir`` belongs to, newest first.

        Each with what the step after it changed.
        """
    def find(
        self, dir: StrPath, checkpoint: int | str | Checkpoint | None = None, *, turn: str | None = None
    ) -> Checkpoint:
        """Find a checkpoint: by its number in the list, its id or a beginning of it, its name, or before a turn."""
    def uncovered(
        self, dir: StrPath, checkpoint: int | str | Checkpoint, paths: Sequence[StrPath]
    ) -> list[tuple[str, str]]:
        """Existing paths among these that a checkpoint does not hold, as (path, reason)."""
    def diff(
        self,
        dir: StrPath,
        checkpoint: int | str | Checkpoint,
        path: StrPath | Sequence[StrPath] | None = None,
        *,
        glob: str | Sequence[str] | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> HistoryChanges:
        """The changes since a checkpoint; with ``path`` or ``glob``, in these files and folders, below ``dir``."""
    def plan(
        self,
        dir: StrPath,
        checkpoint: int | str | Checkpoint | None = None,
        paths: StrPath | Sequence[StrPath] | None = None,
        glob: str | Sequence[str] | None = None,
        turn: str | None = None,
        with_git: bool = False,
        *,
        conflicts: Conflicts = "keep",
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RestoreResult:
        """The plan of ``restore`` with the same arguments."""
    def restore(
        self,
        dir: StrPath,
        checkpoint: int | str | Checkpoint | None = None,
        paths: StrPath | Sequence[StrPath] | None = None,
        glob: str | Sequence[str] | None = None,
        turn: str | None = None,
        with_git: bool = False,
        dry_run: bool = False,
        *,
        conflicts: Conflicts = "keep",
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RestoreResult:
        """Restore a checkpoint: all of it, or these paths and patterns below ``dir``.

        What is there now is captured first, and ``undo`` goes back to that. What people changed after the agent's last
        write is kept, unless ``conflicts`` says otherwise: "merge" merges text files ("merge_with_markers" also those that
        conflict), "force" overwrites them. A ``.git`` that is there is left alone, unless ``with_git``. With ``dry_run``,
        only the plan. One that is cancelled halfway is completed by the next call on the project.
        """
    def undo(
        self,
        dir: StrPath,
        dry_run: bool = False,
        *,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RestoreResult:
        """Undo the last restore of the project. Later changes by others are kept."""
    def set_name(self, dir: StrPath, checkpoint: int | str | Checkpoint, name: str) -> Checkpoint:
        """Name a checkpoint, which also protects it from pruning.

        An empty one takes the name away.
        """
    def pin(self, dir: StrPath, checkpoint: int | str | Checkpoint) -> Checkpoint:
        """Pin a checkpoint: it is never removed to free space."""
    def unpin(self, dir: StrPath, checkpoint: int | str | Checkpoint) -> Checkpoint:
        """Unpin a checkpoint: it may be removed again to free space."""
    def status(self) -> CheckpointStatus:
        """Status of all projects, with the disk usage of their checkpoints."""
    def usage(self) -> int:
        """The disk usage of checkpoints in bytes, counted exactly."""
    def prune(
        self,
        *,
        retention_days: int | None = None,
        max_size_mb: int | None = None,
        max_snapshots: int | None = None,
        delete_orphans: bool | None = None,
        dry_run: bool = False,
    ) -> PruneReport:
        """Remove what is old, too much, or of projects that are gone.

        Limits that are None are those of the settings; ``max_size_mb`` and ``retention_days`` of 0 are none. Named and
        pinned checkpoints stay.
        """
    def auto_prune(self) -> PruneReport | None:
        """Prune by the settings, at most every ``min_interval_hours``; None if it was not due."""
    def free_room(self) -> PruneReport | None:
        """Make room if there is little left, by number and size alone; None if there is enough."""
    def clear(self, dir: StrPath | None = None, *, all: bool = False, dry_run: bool = False) -> PruneReport:
        """Remove all checkpoints of the project that ``dir`` belongs to, named and pinned ones too.

        With ``all``, those of all projects. No file of a project is touched.
        """
    def clear_legacy(self, *, dry_run: bool = False) -> list[tuple[str, int]]:
        """Remove archives of superseded formats: (name, bytes) of each."""
    def forget(self, path: StrPath, *, dry_run: bool = False) -> ForgetReport:
        """Remove a path and all that it ever held from every checkpoint of its project and every session.

        A session that runs keeps it, and is named. The file itself stays; this cannot be undone.
        """
    def verify(
        self, dir: StrPath | None = None, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> VerifyReport:
        """Check that everything that checkpoints need is there and unaltered: of the project of ``dir``, or of all."""
    def settle(self, dir: StrPath) -> None:
        """Compress the checkpoints of a project, and make them survive a power loss."""
    def import_checkpoints(self, dir: StrPath) -> ImportReport:
        """Import the checkpoints that another tool keeps in this folder (Hermes); its own data is left alone."""

def hooks_status(
    agent: str | None = None,
    *,
    project: StrPath | None = None,
    binary: StrPath | None = None,
    state_dir: StrPath | None = None,
    home: StrPath | None = None,
) -> list[HookStatus]:
    """Which agents have nono's hooks, and whether they work: one, or all of them.

    With ``project``, the hooks of that folder instead of the person's own.
    """

def hooks_install(
    agent: str,
    *,
    project: StrPath | None = None,
    binary: StrPath | None = None,
    dry_run: bool = False,
    state_dir: StrPath | None = None,
    home: StrPath | None = None,
) -> HookChanges:
    """Let an agent tell nono what it is about to do, so that there is a checkpoint from before.

    Adds hooks, a command /rollback and a few lines for the agent to read, and turns checkpoints on in ``config.toml``;
    what else is in the agent's files stays as it is. ``binary`` is the program ``nono``, by default the one on the PATH.
    """

def hooks_remove(
    agent: str,
    *,
    project: StrPath | None = None,
    binary: StrPath | None = None,
    dry_run: bool = False,
    state_dir: StrPath | None = None,
    home: StrPath | None = None,
) -> HookChanges:
    """Remove the hooks: the files become what they were."""

def risk_of(
    command: str, *, cwd: StrPath | None = None, home: StrPath | None = None, tool: str = "terminal"
) -> tuple[list[str], str] | None:
    """Folders and files that a shell command may change: ``(targets, reason)`` for ``ensure_checkpoint``.

    None if it is known to change nothing. Nothing is run.
    """

# --- sessions

@final
class _ApprovalReply:
    def answer(self, said: object) -> None: ...
    def fail(self, error: BaseException) -> None: ...

@final
class RollbackSession:
    """A tracked run: its changes, and their restore.

    Nothing stays open between two calls, and each of them sees the session as it is then.
    """

    @property
    def session_id(self) -> str:
        """The id of the session."""
    @property
    def name(self) -> str | None:
        """Its name, if it was given one."""
    @property
    def command(self) -> list[str]:
        """The command, without what may be secret in it."""
    @property
    def started(self) -> str:
        """The time it started, ISO 8601."""
    @property
    def status(self) -> Literal["live", "finished", "interrupted"]:
        """The status when it was opened."""
    @property
    def exit_code(self) -> int | None: ...
    @property
    def pinned(self) -> bool:
        """Whether it is protected from pruning."""
    @property
    def dir(self) -> str:
        """The folder that holds it."""
    @property
    def tracked_paths(self) -> list[str]:
        """The tracked paths."""
    def snapshots(self) -> list[dict[str, Any]]:
        """The snapshots that can be compared and restored."""
    def coverage(self, snapshot: int = 0) -> dict[str, Any]:
        """The coverage of a snapshot."""
    def changes(
        self,
        paths: Sequence[StrPath] | None = None,
        *,
        from_snapshot: int = 0,
        to_snapshot: int | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> HistoryChanges:
        """What changed from one snapshot to another (0 is the state before the command; the last one if ``to_snapshot`` is
        not given)."""
    def diff(
        self,
        paths: Sequence[StrPath] | None = None,
        *,
        from_snapshot: int = 0,
        to_snapshot: int | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> bytes:
        """The changes as a patch for ``git apply``: bytes, since files may hold any."""
    def restore(
        self,
        paths: Sequence[StrPath] | None = None,
        *,
        snapshot: int = 0,
        conflicts: Conflicts = "keep",
        dry_run: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RestoreResult:
        """Restore a snapshot: all of it, or only ``paths`` (files, folders, globs).

        Changes by others after the session are kept, unless ``conflicts`` says otherwise: "merge" merges text files
        ("merge_with_markers" also those that conflict), "force" overwrites them. Everything that is overwritten is
        stored first: ``undo`` reverts the restore. With ``dry_run`` nothing is changed.
        """
    def undo(
        self,
        restore: str | None = None,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RestoreResult:
        """Undo a restore: the one with this id, or the last one that was not undone."""
    def recover(
        self, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> RestoreResult | None:
        """Complete an interrupted restore; None if there is none."""
    def verify(self, *, progress: Progress | None = None, cancel: Cancel | None = None) -> VerifyReport:
        """Recompute everything that is stored, and compare it with what was sealed."""
    def pin(self, pinned: bool = True) -> None:
        """Protect it from pruning, or no longer."""
    def to_dict(self) -> dict[str, Any]:
        """The data of ``nono rollback list --json``, read anew."""

@final
class RunningSession:
    """A running session, started by any process of this user."""

    @property
    def session_id(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def pid(self) -> int:
        """The process that supervises it."""
    @property
    def started(self) -> str:
        """The time it started, ISO 8601."""
    @property
    def command(self) -> list[str]:
        """The command, without what may be secret in it."""
    @property
    def workdir(self) -> str: ...
    def inspect(self) -> dict[str, Any]:
        """Its present state, as in ``nono inspect --json``."""
    def stop(self) -> None:
        """Stop it, with everything that it started. Returns when its supervisor has begun to stop it."""
    def to_dict(self) -> dict[str, Any]: ...

def list_sessions(*, path: StrPath | None = None) -> list[RollbackSession]:
    """The sessions that there are, newest first. ``path``: only those that tracked something around or below it."""

def open_session(session: StrPath | None = None) -> RollbackSession:
    """A past session: its id, a unique beginning of one, its name, "last", or the path of its folder."""

def verify_sessions(*, progress: Progress | None = None, cancel: Cancel | None = None) -> VerifyReport:
    """Verify all sessions: recompute everything that is stored, and compare it with what was sealed."""

def cleanup_sessions(
    *,
    keep: int | None = None,
    older_than_days: int | None = None,
    max_bytes: int | None = None,
    remove_all: bool = False,
    dry_run: bool = False,
) -> PruneReport:
    """Remove old sessions, and free what only they needed. Running and pinned ones stay."""

def undo_points(
    path: StrPath | None = None, *, paths: StrPath | Sequence[StrPath] | None = None, to: str | None = None
) -> list[dict[str, Any]]:
    """What ``nono undo`` goes back to in a directory (this one, if none is given), newest first: sessions, and
    checkpoints that were taken before an agent or a command worked. Each has ``kind`` ("session" or "checkpoint"),
    ``id``, ``time``, ``command`` or ``reason``, and counts. ``paths``: only what changed these. ``to`` (a session, a
    checkpoint, or a time such as "10:15", "2h" or "2026-08-01 10:15"): those to go back through, one after the other,
    until then."""

def running_sessions() -> list[RunningSession]:
    """The sessions that run now, newest first."""

def stop_session(session: str) -> RunningSession:
    """Stop a running session: its id, a unique beginning of one, its name, or "last"."""

def _run(
    command: Sequence[StrPath], keywords: dict[str, Any], progress: Progress | None, cancel: Cancel | None
) -> SessionReport: ...
def _resolve(command: Sequence[StrPath], keywords: dict[str, Any]) -> dict[str, Any]: ...
def _serve_network() -> None: ...
def _serve_webhook() -> None: ...

class VerificationError(Exception):
    """A log, a ledger or a record is not what was written."""

@final
class _LogCheck:
    def __new__(cls) -> _LogCheck: ...
    @property
    def count(self) -> int: ...
    @property
    def head(self) -> str | None: ...
    @property
    def root(self) -> str | None: ...
    @property
    def missing(self) -> bool: ...
    def add(self, line: bytes) -> None: ...

@final
class _LedgerCheck:
    def __new__(cls, session_id: str) -> _LedgerCheck: ...
    @property
    def count(self) -> int: ...
    @property
    def head(self) -> str | None: ...
    @property
    def found(self) -> str | None: ...
    def add(self, line: bytes) -> None: ...

def _digest_text(value: object, name: str) -> str | None: ...
def _audit_link(event_json: bytes, head: str | None) -> tuple[str, str]: ...
def _session_digest(json: str) -> tuple[str, str]: ...
def _ledger_record(json: str, sequence: object, previous: object) -> dict[str, Any]: ...
def _check_session_id(session_id: object) -> None: ...
def _build_proof(leaf_hashes: object, leaf_index: object) -> dict[str, Any]: ...
def _check_proof(json: str, expected_root: object) -> bool: ...
