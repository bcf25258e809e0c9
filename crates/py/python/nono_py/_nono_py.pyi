"""The native half of ``nono_py``; import from there."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypedDict, final, overload, type_check_only

from typing_extensions import NotRequired

from ._changes import ChangeList
from ._checkpoints import CheckpointList

StrPath = str | os.PathLike[str]
Progress = Callable[[int, int], object]

__version__: str

# --- everywhere

class NonoError(RuntimeError):
    """Something nono could not do."""

    kind: str
    """A fixed word for what went wrong."""
    path: str | None
    """The path it is about."""

class SandboxError(NonoError): ...
class ExecError(NonoError): ...
class PolicyError(NonoError): ...
class ProxyError(NonoError): ...
class SnapshotError(NonoError):
    """A snapshot could not be taken, read or restored."""

    report: RestoreReport | None
    """Of a restore that is not complete: what was done, and what was not."""

class CheckpointError(NonoError): ...
class SessionError(NonoError): ...
class Cancelled(NonoError): ...

@final
class Cancel:
    """Ends long work that was started with it, from any thread."""

    def __new__(cls) -> Cancel: ...
    def cancel(self) -> None:
        """End the work at the next point where nothing is half done. It raises ``Cancelled``."""
    @property
    def is_cancelled(self) -> bool: ...

# --- capabilities

@final
class AccessMode:
    """What may be done with a path.

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
    """Who asked for a grant: the user, a group of a policy, or nono itself."""

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
        """Where it led when it was granted: absolute, without links."""
    @property
    def access(self) -> AccessMode:
        """What may be done with it."""
    @property
    def is_file(self) -> bool:
        """Whether exactly one file is granted, rather than a directory with everything below."""
    @property
    def source(self) -> CapabilitySource:
        """Who asked for it."""
    def to_dict(self) -> dict[str, Any]:
        """The grant as a plain dict: ``original``, ``resolved``, ``access``, ``is_file``, ``source``."""

@final
class CapabilitySet:
    """What a process may do: granted paths, and the network.

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
        """Join what one source asked for on the same path, and drop what adds nothing.

        What is enforced stays as it was; no grant says more than its source asked for, nor is spelled otherwise.
        """
    def path_covered(self, path: StrPath) -> bool:
        """Whether a directory grant stands at or above the path, by its letters alone.

        A path with ``..`` is covered by nothing. ``QueryContext`` follows links and asks for a mode.
        """
    def fs_capabilities(self) -> list[FsCapability]:
        """The grants, in the order they were added."""
    @property
    def is_network_blocked(self) -> bool:
        """Whether the network is closed; a proxy as the only way out does not change that."""
    def summary(self) -> str:
        """The set in words, one grant a line."""
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
    """Answers what a set would allow, as the kernel would. Later changes of the set are not seen."""

    def __new__(cls, caps: CapabilitySet) -> QueryContext: ...
    def query_path(self, path: StrPath, mode: AccessMode) -> QueryResult:
        """Whether a path may be used so: a dict with ``status`` ("allowed" or "denied") and ``reason``.

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
    """A set of capabilities as JSON, to be kept or handed to another process."""

    @staticmethod
    def from_caps(caps: CapabilitySet) -> SandboxState:
        """What a set says now."""
    @staticmethod
    def from_json(json: str) -> SandboxState:
        """Read what ``to_json()`` wrote. Unknown keys are ignored.

        Raises ValueError for anything else. Access words are checked by ``to_caps()``.
        """
    def to_json(self) -> str:
        """The state as JSON, two spaces deep. ``source`` of a grant is left out where it is the user."""
    def to_caps(self) -> CapabilitySet:
        """The set again, sources included.

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
    """What this machine can enforce."""

    @property
    def is_supported(self) -> bool:
        """Whether any set can be enforced here."""
    @property
    def platform(self) -> str:
        """The operating system, as ``linux`` or ``macos``."""
    @property
    def details(self) -> str:
        """What the kernel has, in one line; or why nothing can be enforced."""
    def to_dict(self) -> dict[str, Any]:
        """The same as a plain dict."""

def is_supported() -> bool:
    """Whether this machine can enforce anything."""

def support_info() -> SupportInfo:
    """What this machine can enforce, tried for real."""

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
        """What a group is for; None where there is no such group."""
    def resolve_groups(self, group_names: Sequence[str], caps: CapabilitySet) -> ResolvedPolicy:
        """Add what these groups allow to ``caps``, and block its network where one says so.

        Groups of another platform and paths that do not exist are passed over. Raises ValueError for a group that is
        unknown, or a path that needs HOME or TMPDIR where that is unset or relative; ``caps`` is then as it was. What
        the groups deny is in the result, for ``validate_deny_overlaps()``: a set only ever opens paths.
        """
    def resolve_deny_paths(self, group_names: Sequence[str]) -> list[str]:
        """What these groups deny: each path as written, with ``~`` and variables expanded, and where it leads."""
    def resolve_proxy_config(self, group_names: Sequence[str]) -> ProxyConfig | None:
        """The proxy these groups need together; None when none of them says anything that takes one.

        Raises ValueError where they contradict each other, and for credentials that are only named.
        """
    def validate_group_exclusions(self, excluded_groups: Sequence[str]) -> None:
        """Refuse to leave out groups that are required (ValueError). Names that are no group do not matter."""
    def to_dict(self) -> dict[str, Any]:
        """The document as plain dicts and lists, without what has its default."""

@final
class ResolvedPolicy:
    """What groups of a policy came to."""

    @property
    def names(self) -> list[str]:
        """The groups that are for this platform, in the order they were asked for."""
    @property
    def needs_unlink_overrides(self) -> bool:
        """Whether a group wants ``apply_unlink_overrides()``."""
    @property
    def deny_paths(self) -> list[str]:
        """What they deny: each path as written, and where it leads.

        Nothing enforces it but ``validate_deny_overlaps()``.
        """
    def to_dict(self) -> dict[str, Any]:
        """The same as a plain dict."""

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
    """What a command said, and how it ended."""

    @property
    def stdout(self) -> bytes:
        """What it wrote to its standard output."""
    @property
    def stderr(self) -> bytes:
        """What it wrote to its standard error; or, after ``nono:``, why it was not run."""
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
    """One request or tunnel, as ``ProxyHandle.drain_audit_events()`` tells it."""

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
    """How a secret goes into a request."""

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
        """Where the secret is, not the secret."""
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
        """A PEM file of authorities to believe for the upstream, beside the system's."""
    @property
    def tls_client_cert(self) -> str | None:
        """A PEM file with the certificate that the upstream is shown."""
    @property
    def tls_client_key(self) -> str | None:
        """A PEM file with its key."""
    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""

@final
class ExternalProxyConfig:
    """Another proxy on the way out: ``host:port``, or ``http://user:password@host:port``.

    ``bypass_hosts`` (``host``, ``*.host``, each perhaps with ``:port``) are reached directly, as is this machine.
    Raises ValueError for anything else.
    """

    def __new__(cls, address: str, bypass_hosts: Sequence[str] = ...) -> ExternalProxyConfig: ...
    @property
    def address(self) -> str:
        """As it was given."""
    @property
    def bypass_hosts(self) -> list[str]: ...
    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, without a password."""

@final
class ProxyConfig:
    """A proxy that lets programs reach only these hosts: ``host``, ``*.host`` (what is below it), addresses, each
    perhaps with ``:port``; and the upstreams of its routes.

    With ``allow_all_hosts`` every host is open, this machine and its neighbours too. Link-local addresses and those where
    a cloud hands out credentials are always closed; otherwise a name that leads to a private address is closed unless
    the address itself is listed. ``bind_addr`` is loopback by default: on another address whoever reaches it can try the
    token. With ``intercept_ca_dir`` tunnels to the routes' upstreams are looked into, so that keys and rules work there
    too: a bundle of certificates is written into that folder, and ``env_vars()`` points to it; without it such tunnels
    are refused, and programs go by the routes' prefixes. ``intercept_parent_ca_pems`` (PEM, str or bytes) is believed in
    place of the system's authorities. Raises ValueError for what cannot be meant.
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
        """As they were given, without those of the routes."""
    @property
    def allow_all_hosts(self) -> bool: ...
    @property
    def routes(self) -> list[RouteConfig]: ...
    @property
    def max_connections(self) -> int: ...
    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, but for the certificates."""

@final
class ProxyHandle:
    """A running proxy, from ``start_proxy``.

    It ends with ``shutdown()``, with the ``with`` block it was entered in, or with the last reference to it. It is a
    thread of this process: a process forked from this one has no proxy.
    """

    @property
    def port(self) -> int:
        """Where it listens."""
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
        """What happened since the last time, as dicts: at most the last 4096."""
    def shutdown(self) -> None:
        """End everything that is open. The second time nothing happens; events can be drained afterwards."""
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
        """As a plain dict."""
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
        """In bytes."""
    @property
    def mtime(self) -> int:
        """When it was changed, in whole seconds since 1970."""
    @property
    def mtime_ns(self) -> int:
        """The same in nanoseconds."""
    @property
    def permissions(self) -> int:
        """The permission bits: ``mode & 0o7777``."""
    def to_dict(self) -> dict[str, Any]:
        """As a plain dict."""

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
        """How many bytes a regular file grew by."""
    @property
    def kind(self) -> Literal["file", "symlink", "directory", "special"]:
        """What it is now, or was before it went."""
    @property
    def old_hash(self) -> ContentHash | None:
        """Of a regular file, before."""
    @property
    def new_hash(self) -> ContentHash | None:
        """Of a regular file, after."""
    def to_dict(self) -> dict[str, Any]:
        """As a plain dict."""

@final
class Coverage:
    """What a snapshot holds and does not hold, in numbers and examples."""

    @property
    def files(self) -> int:
        """Regular files in the snapshot."""
    @property
    def bytes(self) -> int:
        """Bytes in them."""
    @property
    def directories(self) -> int: ...
    @property
    def others(self) -> int:
        """Links, FIFOs, sockets and devices in the snapshot."""
    @property
    def entries_left_out(self) -> int:
        """Names that were left out; a directory counts once, with everything in it."""
    @property
    def left_out(self) -> list[dict[str, Any]]:
        """What was left out, by cause: cause, entries, directories, examples (dicts of path and reason)."""
    @property
    def notes(self) -> list[str]:
        """What else one should know: a tracked path that is not there, ignore rules that were set aside."""
    @property
    def is_complete(self) -> bool:
        """Nothing was left out but nono's own state, and every tracked path is in it."""
    def to_dict(self) -> dict[str, Any]:
        """As a plain dict."""
    def _repr_html_(self) -> str: ...

@final
class ExclusionConfig:
    """What snapshots leave out, and what not.

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
        """As a plain dict."""

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
        """When it was taken: ISO 8601, UTC."""
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
        """What it holds and does not hold."""
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
        """Everything that was left out, as pairs of path and reason."""
    def protection(self, path: StrPath) -> dict[str, str]:
        """Whether this path is protected: status ("captured", "left_out", "not_there" or "outside"), and for what was
        left out because_of (the path that was) and reason."""
    def to_dict(self) -> dict[str, Any]:
        """As a plain dict, with everything in it."""

@final
class RestoreReport:
    """What a restore did."""

    @property
    def applied(self) -> ChangeList:
        """What changed in the tree, sorted by path."""
    @property
    def skipped(self) -> list[tuple[str, str]]:
        """What was left as it is, as pairs of path and reason."""
    @property
    def failed(self) -> list[tuple[str, str]]:
        """What could not be restored, or not completely, as pairs of path and reason."""
    @property
    def kept(self) -> list[str]:
        """What somebody wrote while the restore worked; it went to the store before it was displaced."""
    @property
    def lost(self) -> list[tuple[str, str]]:
        """What the snapshot had left out and is gone or changed, as pairs of path and what became of it."""
    @property
    def safety(self) -> str:
        """The id of the snapshot that was taken before."""
    @property
    def is_complete(self) -> bool:
        """Everything that the snapshot holds is as it was."""
    def to_dict(self) -> dict[str, Any]:
        """As a plain dict."""

@final
class SessionMetadata:
    """What is known about a session besides its snapshots."""

    def __new__(
        cls, session_id: str, command: Sequence[str], tracked_paths: Sequence[StrPath]
    ) -> SessionMetadata: ...
    @property
    def session_id(self) -> str: ...
    @property
    def started(self) -> str:
        """When it began: ISO 8601, UTC."""
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
        """What went through the proxy: dicts with always the same 15 keys."""
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
        """As it stands in ``session.json``."""
    @staticmethod
    def from_json(json: str) -> SessionMetadata:
        """From what stands in a ``session.json``."""
    def to_dict(self) -> dict[str, Any]:
        """As a plain dict, with the keys of ``to_json``."""

@final
class SnapshotManager:
    """Takes snapshots of folders and files, and puts them back.

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
        """What restoring this snapshot would change; nothing is touched."""
    def restore_to(
        self,
        snapshot_number: int,
        *,
        paths: Sequence[StrPath] | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> ChangeList:
        """Put everything that this snapshot holds back; only below ``paths``, if given. Gives what changed.

        If something is not as it was in the snapshot afterwards, that is a SnapshotError of the kind "incomplete", whose
        ``report`` says what was done and what was not. What the snapshot left out is left alone, and no error.
        """
    def undo_restore(
        self, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> ChangeList:
        """Undo the last restore of this session, whoever made it; done twice, it is there again."""
    def compute_changes(
        self, snapshot_number: int, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> ChangeList:
        """What changed since this snapshot was taken. No snapshot is taken now, and nothing is touched."""
    @property
    def last_restore(self) -> RestoreReport | None:
        """What the last restore by this manager did."""
    def diff(self, first: int, second: int) -> ChangeList:
        """What changed from one snapshot to another."""
    def load_manifest(self, number: int) -> SnapshotManifest:
        """A snapshot that was taken before."""
    def read(self, number: int, path: StrPath) -> bytes:
        """The bytes that a regular file had in a snapshot."""
    def save_session_metadata(self, meta: SessionMetadata) -> None:
        """Write ``session.json``, which says what the session is about."""
    @staticmethod
    def load_session_metadata(session_dir: StrPath) -> SessionMetadata:
        """What ``session.json`` of a session says."""
    def snapshot_count(self) -> int:
        """How many snapshots were taken in this session."""
    def verify(self, *, progress: Progress | None = None, cancel: Cancel | None = None) -> list[str]:
        """Check every snapshot down to the last byte; gives what is wrong, in words."""
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
        """Where everything is kept, resolved."""
    @property
    def tracked_paths(self) -> list[str]:
        """The tracked paths as they were given, each once."""

# --- checkpoints

@final
class CheckpointStats:
    """What the step after a checkpoint changed: from it to the next one; for the newest, to what the agent left."""

    @property
    def files(self) -> int:
        """Files that differ."""
    @property
    def insertions(self) -> int:
        """Lines that came."""
    @property
    def deletions(self) -> int:
        """Lines that went."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints list --json`` has it."""

@final
class Checkpoint:
    """One state of a project that is kept. Equal to another one of the same id."""

    @property
    def id(self) -> str:
        """Its lasting name: twelve hexadecimal digits."""
    @property
    def short_id(self) -> str:
        """The beginning of its id, as lists show it."""
    @property
    def number(self) -> int | None:
        """Its place in the list that it comes from, counted from 1, the newest; None if it comes from elsewhere."""
    @property
    def here(self) -> bool:
        """Whether the project was put back to it, and no work began since; False if it comes from no list."""
    @property
    def time(self) -> str:
        """When it was taken: ISO 8601, UTC."""
    @property
    def reason(self) -> str:
        """What it was taken for, in somebody's words."""
    @property
    def agent(self) -> str | None:
        """The agent that it was taken for."""
    @property
    def session(self) -> str | None:
        """The agent's own id of the conversation."""
    @property
    def turn(self) -> str | None:
        """The turn of the agent that it was taken in."""
    @property
    def tool(self) -> str | None:
        """The tool that was about to run."""
    @property
    def call(self) -> str | None:
        """The agent's own id of the call."""
    @property
    def run(self) -> str | None:
        """The session of ``nono run`` around it."""
    @property
    def name(self) -> str | None:
        """Its name, if it was given one: then it is never removed by itself."""
    @property
    def pinned(self) -> bool:
        """Whether it is kept until it is unpinned."""
    @property
    def imported_from(self) -> str | None:
        """The other tool's name of it, if it was imported."""
    @property
    def files(self) -> int:
        """How many files it holds."""
    @property
    def not_covered(self) -> int:
        """How many names it does not hold, and a restore does not touch."""
    @property
    def stats(self) -> CheckpointStats | None:
        """What the step after it changed; None until a list was asked for."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints list --json`` has it."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class CheckpointResult:
    """What came of wanting a checkpoint. A failure is one of the answers: an agent's work goes on."""

    @property
    def result(self) -> str:
        """\"taken", "skipped" or "failed"."""
    @property
    def taken(self) -> bool:
        """One was taken now."""
    @property
    def skipped(self) -> bool:
        """There was no need for one; ``why`` says which."""
    @property
    def failed(self) -> bool:
        """There is no protection; ``why`` and ``error`` say why not."""
    @property
    def is_protected(self) -> bool:
        """Whether a checkpoint shows the project as it was before: one taken now, or one that was there already."""
    @property
    def project(self) -> str:
        """The project's folder; of a failure, the folder that was asked about."""
    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint, if one was taken now."""
    @property
    def checkpoint_id(self) -> str | None:
        """The id of the checkpoint that protects: taken now, or there already."""
    @property
    def why(self) -> str | None:
        """\"disabled", "this_turn" or "unchanged"; of a failure, what went wrong."""
    @property
    def error(self) -> Exception | None:
        """The exception of a failure, which was not raised."""
    @property
    def coverage(self) -> Coverage | None:
        """What the checkpoint holds and does not hold, if one was taken now."""
    def raise_if_failed(self) -> None:
        """Raise the failure, if it is one."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints create --json`` has it."""

@final
class CheckpointChange:
    """One path that differs."""

    @property
    def path(self) -> str:
        """Absolute: where it is, or was if it is gone."""
    @property
    def change_type(self) -> str:
        """\"created", "modified", "deleted", "permissions_changed" or, in a diff, "renamed"."""
    @property
    def size_delta(self) -> int:
        """Bytes of regular files: new less old."""
    @property
    def renamed_from(self) -> str | None:
        """Where the same content stood before."""
    @property
    def executes_later(self) -> Any:
        """Why it will be executed later without anybody asking for it, if so: a hook of git, a build script."""
    @property
    def binary(self) -> bool | None:
        """Whether its content is no text; None outside of a diff."""
    @property
    def insertions(self) -> int | None:
        """Lines that came; None where there are none to be counted."""
    @property
    def deletions(self) -> int | None:
        """Lines that went; None where there are none to be counted."""
    @property
    def patch(self) -> str | None:
        """The change as a patch; None outside of a diff. Bytes that are no UTF-8 are surrogates."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints diff --json`` has it."""

@final
class CheckpointDiff:
    """What changed since a checkpoint. Its length is the number of paths, and one can go over them."""

    @property
    def checkpoint(self) -> Checkpoint:
        """What it was compared with."""
    @property
    def changes(self) -> list[CheckpointChange]:
        """One for each path; what will execute later comes first."""
    @property
    def counts(self) -> dict[str, int]:
        """How many paths of each ``change_type``."""
    @property
    def patch(self) -> str:
        """All of it as one patch for ``git apply`` and ``patch -p1``. Bytes that are no UTF-8 are surrogates."""
    @property
    def patch_bytes(self) -> bytes:
        """The same, as bytes."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints diff --json`` has it."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[CheckpointChange]: ...
    def _repr_html_(self) -> str: ...

@final
class CheckpointPlan:
    """What a restore would do; nothing was touched."""

    @property
    def project(self) -> str:
        """The project's folder."""
    @property
    def changes(self) -> list[CheckpointChange]:
        """What would be put back."""
    @property
    def kept(self) -> list[tuple[str, str]]:
        """What would stay as it is, as (path, reason)."""
    @property
    def lost(self) -> list[tuple[str, str]]:
        """What the checkpoint does not hold and is gone or changed, as (path, what became of it)."""
    @property
    def merged(self) -> list[str]:
        """Files that would be merged with what somebody else changed."""
    @property
    def turns_undone(self) -> list[str]:
        """Turns that would be gone, oldest first."""
    @property
    def unattributed(self) -> bool:
        """Nothing tells the agent's changes from a person's: all of them would go back."""
    @property
    def left_alone(self) -> list[str]:
        """Repositories that differ and would be left alone."""
    @property
    def not_covered(self) -> int:
        """How many names the checkpoint does not hold, and a restore does not touch."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints restore --dry-run --json`` has it."""
    def _repr_html_(self) -> str: ...

@final
class RestoreOutcome:
    """What a restore did, kept and could not do."""

    @property
    def project(self) -> str:
        """The project's folder."""
    @property
    def checkpoint(self) -> Checkpoint:
        """What was gone back to; of an undo, what the restore had gone back to."""
    @property
    def done(self) -> list[CheckpointChange]:
        """What was put back."""
    @property
    def kept(self) -> list[tuple[str, str]]:
        """What was left as it is, as (path, reason): changed by somebody else, say."""
    @property
    def failed(self) -> list[tuple[str, str]]:
        """What could not be put back, as (path, error)."""
    @property
    def lost(self) -> list[tuple[str, str]]:
        """What the checkpoint does not hold and is gone or changed, as (path, what became of it)."""
    @property
    def merged(self) -> list[str]:
        """Files that were merged with what somebody else changed."""
    @property
    def turns_undone(self) -> list[str]:
        """Turns that are gone, oldest first."""
    @property
    def unattributed(self) -> bool:
        """Nothing told the agent's changes from a person's: all of them went back."""
    @property
    def left_alone(self) -> list[str]:
        """Repositories that differ and were left alone."""
    @property
    def not_covered(self) -> int:
        """How many names the checkpoint does not hold, and the restore did not touch."""
    @property
    def undo(self) -> str | None:
        """The id of the restore that ``undo()`` takes back; None if nothing was changed."""
    @property
    def unrecorded(self) -> str | None:
        """Why it is not in the audit log; None if it is."""
    @property
    def is_complete(self) -> bool:
        """Whether all of it was done: nothing was kept, nothing failed."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints restore --json`` has it."""
    def _repr_html_(self) -> str: ...

@final
class CheckpointNote:
    """For an agent: what a person put back since it was asked last."""

    @property
    def project(self) -> str:
        """The project's folder."""
    @property
    def checkpoint(self) -> str:
        """The id of the checkpoint that was gone back to."""
    @property
    def turns_undone(self) -> list[str]:
        """The agent's turns that are gone; with ``came_back``, that are there again."""
    @property
    def files(self) -> list[str]:
        """What was put back, below the project; not more than a hundred."""
    @property
    def restore(self) -> str:
        """The id of the restore."""
    @property
    def came_back(self) -> bool:
        """An undo brought these turns back, after the agent was told that they are gone."""
    def to_dict(self) -> dict[str, Any]:
        """As plain values."""

@final
class CompletedRestore:
    """A restore that was cut off, and that a later call on its project completed."""

    @property
    def project(self) -> str:
        """The project's folder."""
    @property
    def checkpoint(self) -> str:
        """The id of the checkpoint that was gone back to."""
    @property
    def changed(self) -> int:
        """How many paths it changed, before it was cut off and now."""
    @property
    def kept(self) -> list[tuple[str, str]]:
        """What somebody changed meanwhile, and stays: (path, reason)."""
    def to_dict(self) -> dict[str, Any]:
        """As plain values."""

@final
class CheckpointProject:
    """One project that has checkpoints."""

    @property
    def hash(self) -> str:
        """The name of its folder below ``projects/`` in nono's state."""
    @property
    def workdir(self) -> str:
        """The project's folder."""
    @property
    def checkpoints(self) -> int:
        """How many checkpoints it has."""
    @property
    def last_touch(self) -> str:
        """When somebody worked in it last: ISO 8601, UTC."""
    @property
    def state(self) -> str:
        """\"live", or "orphan" if its folder is gone."""
    @property
    def unprotected(self) -> str | None:
        """Why the last attempt failed: nothing protects the project since then. None if it is protected."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints status --json`` has it."""

@final
class CheckpointStatus:
    """All projects, and what their checkpoints take."""

    @property
    def enabled(self) -> bool:
        """Whether ``ensure_checkpoint`` takes any."""
    @property
    def base(self) -> str:
        """nono's own folder."""
    @property
    def total_bytes(self) -> int:
        """What checkpoints take, with archives of superseded formats."""
    @property
    def store_bytes(self) -> int:
        """What checkpoints take."""
    @property
    def legacy_bytes(self) -> int:
        """What archives of superseded formats take."""
    @property
    def exact(self) -> bool:
        """Whether ``store_bytes`` was counted, and nothing was written since; else it is not less than it says."""
    @property
    def projects(self) -> list[CheckpointProject]:
        """The last one touched first."""
    @property
    def legacy(self) -> list[tuple[str, int]]:
        """Archives of superseded formats, as (name, bytes)."""
    @property
    def unprotected(self) -> list[tuple[str, str, str]]:
        """Folders whose first checkpoint failed, as (path, why, time)."""
    @property
    def problems(self) -> list[str]:
        """What cannot be read."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints status --json`` has it."""
    def _repr_html_(self) -> str: ...

@final
class PruneReport:
    """What was removed, or with ``dry_run`` would be."""

    @property
    def dry_run(self) -> bool:
        """Nothing was touched."""
    @property
    def removed(self) -> list[tuple[str, list[Checkpoint]]]:
        """Projects, and the checkpoints that went."""
    @property
    def projects_removed(self) -> list[str]:
        """Projects that went with all that was known of them."""
    @property
    def legacy(self) -> list[tuple[str, int]]:
        """Archives of superseded formats that went, as (name, bytes)."""
    @property
    def bytes_before(self) -> int:
        """What checkpoints took before."""
    @property
    def bytes_after(self) -> int:
        """What they take now."""
    @property
    def over_budget(self) -> bool:
        """It is still too much: what is left is pinned, named, or the newest of its project."""
    @property
    def problems(self) -> list[str]:
        """What could not be removed, and why."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints prune --json`` has it."""

@final
class CheckpointVerification:
    """What a check of all that checkpoints need found."""

    @property
    def good(self) -> bool:
        """Everything is as it was."""
    @property
    def projects(self) -> int:
        """Projects that were looked at."""
    @property
    def checkpoints(self) -> int:
        """Checkpoints that were looked at."""
    @property
    def objects(self) -> int:
        """Contents that were read."""
    @property
    def bytes(self) -> int:
        """And their bytes."""
    @property
    def lost(self) -> list[tuple[str, Checkpoint, list[str]]]:
        """Checkpoints that cannot be restored as a whole: (project, checkpoint, paths that are lost)."""
    @property
    def problems(self) -> list[str]:
        """What else is wrong."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints verify --json`` has it."""

@final
class ForgetReport:
    """What forgetting a path removed, or with ``dry_run`` would."""

    @property
    def dry_run(self) -> bool:
        """Nothing was touched."""
    @property
    def project(self) -> str:
        """The project's folder."""
    @property
    def path(self) -> str:
        """The path, absolute."""
    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Checkpoints that have it; only told by a dry run."""
    @property
    def snapshots(self) -> int:
        """Checkpoints, and other snapshots of the project, that had it."""
    @property
    def contents(self) -> int:
        """Contents that were removed."""
    @property
    def held_by(self) -> list[tuple[str, list[str]]]:
        """Others that have the same bytes, which stay there: (folder of a session or a project, paths)."""
    @property
    def sessions(self) -> list[tuple[str, int]]:
        """Sessions that had it, with the number of their snapshots that did."""
    @property
    def held(self) -> list[tuple[str, str]]:
        """Sessions that still have it, and why: one that runs, for example."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints forget --json`` has it."""

@final
class ImportReport:
    """What was taken over from another tool, and what was not."""

    @property
    def projects(self) -> list[tuple[str, int]]:
        """Folders whose checkpoints were found, with how many are new."""
    @property
    def checkpoints(self) -> list[str]:
        """The ids of the new ones."""
    @property
    def known(self) -> int:
        """How many were imported before."""
    @property
    def skipped(self) -> list[tuple[str, str]]:
        """What could not be taken, as (what, why)."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono checkpoints import --json`` has it."""

@final
class CheckpointCall:
    """A call of an agent's tool: a checkpoint before, and a mark of what the tool left after.

    Restores nothing by itself.
    """

    @property
    def result(self) -> CheckpointResult | None:
        """What came of the checkpoint before; None until the call began."""
    @property
    def call(self) -> str | None:
        """The id of the call, as checkpoints have it."""
    def __enter__(self) -> CheckpointCall: ...
    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> Literal[False]: ...

@final
class AgentTurns:
    """Turns of agents in the projects of a ``CheckpointManager``: what each did, and taking one back while later ones stay."""

    def __new__(cls, manager: CheckpointManager) -> AgentTurns: ...
    def list_turns(self, dir: StrPath) -> list[dict[str, Any]]:
        """The turns of the project of ``dir``, newest first: as ``nono turns --json`` has them."""
    @overload
    def undo(
        self,
        dir: StrPath,
        turn: int | str,
        paths: StrPath | Sequence[StrPath] | None = None,
        dry_run: Literal[False] = False,
        *,
        conflict_markers: bool = False,
        force: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RestoreOutcome:
        """Take one turn back: its number in the list, its id or a beginning of it.

        What came later stays: in the same text file it is merged, and what does not merge is kept, unless ``force``. With
        ``dry_run``, only the plan.
        """
    @overload
    def undo(
        self,
        dir: StrPath,
        turn: int | str,
        paths: StrPath | Sequence[StrPath] | None = None,
        *,
        dry_run: Literal[True],
        conflict_markers: bool = False,
        force: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> CheckpointPlan: ...

@final
class FileVersions:
    """Versions of files that checkpoints and sessions know."""

    def __new__(cls, manager: CheckpointManager) -> FileVersions: ...
    def list_versions(self, path: StrPath) -> list[dict[str, Any]]:
        """Every version of a file and whose doing it was, newest first: as ``nono log --json`` has them."""
    def read(self, path: StrPath, version: str) -> bytes:
        """The bytes of a file as they were.

        ``version`` is one of the list (its digest or a beginning of it), a checkpoint, or a session, as it was before it.
        """

@final
class CheckpointManager:
    """Checkpoints of all projects of one state folder: taken before risky steps, listed, compared, restored, undone.

    ``state_dir`` is nono's own folder (NONO_HOME, or ``~/.nono``), which is shared with the command ``nono
    checkpoints``; ``home`` the home folder, which is never a project. ``agent`` and ``session`` (a conversation of it)
    say on whose behalf. The other settings are those of ``[checkpoints]`` in ``config.toml``, and what it says where
    they are None; ``enabled`` is True for whoever makes a manager. One manager may be used by several threads: they
    wait for each other.

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
        """A new turn begins: what an agent does between two messages of a person.

        There is at most one checkpoint of each project in it. Without a name it gets one that no other has; gives the
        name.
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
        """A checkpoint of the project that ``dir`` belongs to, unless this turn has one or nothing changed.

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
        """A checkpoint now, whatever the turn and the setting ``enabled`` say; skipped only if nothing changed."""
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
        """A call of an agent's tool begins that needs no checkpoint: what changed until now is not its doing."""
    def agent_left(self, dir: StrPath, *, turn: str | None = None, call: str | None = None) -> None:
        """A call of an agent's tool ended: whatever differs later was changed by somebody else."""
    def agent_stopped(self, dir: StrPath, *, turn: str | None = None) -> None:
        """The agent is done for now: calls of this conversation whose end nobody told are over."""
    def take_notes(self) -> list[CheckpointNote]:
        """What restores undid and this conversation of the agent was not told yet. Asked once, it is forgotten."""
    def take_completed(self) -> list[CompletedRestore]:
        """Restores that were cut off, and that this manager completed on the way. Asked once, they are forgotten."""
    def list_checkpoints(
        self, dir: StrPath, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> CheckpointList:
        """The checkpoints of the project that ``dir`` belongs to, newest first.

        Each with what the step after it changed.
        """
    def find(
        self, dir: StrPath, checkpoint: int | str | Checkpoint | None = None, *, turn: str | None = None
    ) -> Checkpoint:
        """One checkpoint: by its number in the list, its id or a beginning of it, its name, or before a turn."""
    def uncovered(
        self, dir: StrPath, checkpoint: int | str | Checkpoint, paths: Sequence[StrPath]
    ) -> list[tuple[str, str]]:
        """Which of these paths a checkpoint does not hold although they are there, and why: (path, reason)."""
    def diff(
        self,
        dir: StrPath,
        checkpoint: int | str | Checkpoint,
        path: StrPath | Sequence[StrPath] | None = None,
        *,
        glob: str | Sequence[str] | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> CheckpointDiff:
        """What changed since a checkpoint; with ``path`` or ``glob``, in these files and folders, below ``dir``."""
    def plan(
        self,
        dir: StrPath,
        checkpoint: int | str | Checkpoint | None = None,
        paths: StrPath | Sequence[StrPath] | None = None,
        glob: str | Sequence[str] | None = None,
        turn: str | None = None,
        with_git: bool = False,
        merge: bool = False,
        force: bool = False,
        *,
        conflict_markers: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> CheckpointPlan:
        """What ``restore`` with the same arguments would do."""
    @overload
    def restore(
        self,
        dir: StrPath,
        checkpoint: int | str | Checkpoint | None = None,
        paths: StrPath | Sequence[StrPath] | None = None,
        glob: str | Sequence[str] | None = None,
        turn: str | None = None,
        with_git: bool = False,
        merge: bool = False,
        force: bool = False,
        dry_run: Literal[False] = False,
        *,
        conflict_markers: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RestoreOutcome:
        """Put a checkpoint back: all of it, or these paths and patterns below ``dir``.

        What is there now is captured first, and ``undo`` goes back to that. What people changed after the agent's last
        write is kept, unless ``merge`` or ``force``; a ``.git`` that is there is left alone, unless ``with_git``. With
        ``dry_run``, only the plan. One that is cancelled halfway is completed by the next call on the project.
        """
    @overload
    def restore(
        self,
        dir: StrPath,
        checkpoint: int | str | Checkpoint | None = None,
        paths: StrPath | Sequence[StrPath] | None = None,
        glob: str | Sequence[str] | None = None,
        turn: str | None = None,
        with_git: bool = False,
        merge: bool = False,
        force: bool = False,
        *,
        dry_run: Literal[True],
        conflict_markers: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> CheckpointPlan: ...
    @overload
    def undo(
        self,
        dir: StrPath,
        dry_run: Literal[False] = False,
        *,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RestoreOutcome:
        """Take the last restore of the project back. What somebody changed after it is kept."""
    @overload
    def undo(
        self,
        dir: StrPath,
        dry_run: Literal[True],
        *,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> CheckpointPlan: ...
    def set_name(self, dir: StrPath, checkpoint: int | str | Checkpoint, name: str) -> Checkpoint:
        """Give a checkpoint a name, which also keeps it from being removed by itself.

        An empty one takes the name away.
        """
    def pin(self, dir: StrPath, checkpoint: int | str | Checkpoint) -> Checkpoint:
        """Keep a checkpoint: it is never removed to make room."""
    def unpin(self, dir: StrPath, checkpoint: int | str | Checkpoint) -> Checkpoint:
        """Let a pinned checkpoint be removed again when room is needed."""
    def status(self) -> CheckpointStatus:
        """All projects, and what their checkpoints take."""
    def usage(self) -> int:
        """What checkpoints take on disk, in bytes, counted exactly."""
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
        """The same by the settings, at most every ``min_interval_hours``; None if it was not due."""
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
    ) -> CheckpointVerification:
        """Check that everything that checkpoints need is there and unaltered: of the project of ``dir``, or of all."""
    def settle(self, dir: StrPath) -> None:
        """Compress what was taken of a project, and make it survive a loss of power."""
    def import_checkpoints(self, dir: StrPath) -> ImportReport:
        """Take over the checkpoints that another tool keeps in this folder (Hermes); what it has is left alone."""

@final
class HookStatus:
    """Whether one agent has nono's hooks, and whether they work."""

    @property
    def agent(self) -> str:
        """The agent, as it is typed: "claude-code", "codex", "gemini", "opencode", "hermes"."""
    @property
    def scope(self) -> str:
        """Whose settings: "user" or "project"."""
    @property
    def state(self) -> str:
        """One of "not installed", "installed", "outdated", "broken"."""
    @property
    def why(self) -> str | None:
        """What is the matter, if something is."""
    @property
    def file(self) -> str:
        """The file with the hooks."""
    @property
    def binary(self) -> str | None:
        """The nono that they call."""
    @property
    def binary_exists(self) -> bool | None:
        """Whether it can be run."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono hooks status --json`` has it."""

@final
class HookChanges:
    """What was written to put hooks in or take them out, or with ``dry_run`` would be."""

    @property
    def agent(self) -> str:
        """The agent."""
    @property
    def changes(self) -> list[tuple[str, str]]:
        """Files, as (path, "create", "edit" or "delete"); none if everything is there already."""
    @property
    def notes(self) -> list[str]:
        """What a person should know: what is left alone, what the agent wants to be told."""
    @property
    def applied(self) -> bool:
        """Whether they were written."""
    @property
    def backups(self) -> list[str]:
        """Copies of files as they were."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono hooks install --json`` has it."""

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
    """Take the hooks out again: the files become what they were."""

def risk_of(
    command: str, *, cwd: StrPath | None = None, home: StrPath | None = None, tool: str = "terminal"
) -> tuple[list[str], str] | None:
    """Folders and files that a shell command may change: ``(targets, reason)`` for ``ensure_checkpoint``.

    None if it is known to change nothing. Nothing is run.
    """

# --- sessions

Conflicts = Literal["keep", "merge", "merge_with_markers", "force"]

@final
class ApprovalRequest:
    """What a command wants beyond its grants.

    ``path`` is without links, and is what a yes opens; ``reason`` and ``program`` are the command's own words.
    """

    @property
    def id(self) -> int:
        """Counts up within one run."""
    @property
    def kind(self) -> Literal["access", "restore", "restore_checkpoint", "open_url"]: ...
    @property
    def path(self) -> str | None:
        """What is wanted, resolved; of a checkpoint: its project. None where it is about no path."""
    @property
    def written(self) -> str | None:
        """As the command wrote it, where that differs from ``path``."""
    @property
    def access(self) -> Literal["read", "write", "read+write"] | None: ...
    @property
    def object(self) -> Literal["file", "directory", "new"] | None:
        """What stands at ``path``; ``"new"`` for nothing yet."""
    @property
    def folder(self) -> str | None:
        """What the answer ``"directory"`` opens; None where that would be too much."""
    @property
    def snapshot(self) -> str | None:
        """The snapshot, or the id of the checkpoint, to be restored."""
    @property
    def paths(self) -> list[str]:
        """What is to be restored; empty means all of it."""
    @property
    def url(self) -> str | None:
        """The web address to be opened."""
    @property
    def program(self) -> str:
        """The program that asks."""
    @property
    def pid(self) -> int: ...
    @property
    def reason(self) -> str | None:
        """Why, in the command's own words, where it gave any."""
    def to_dict(self) -> dict[str, Any]: ...

@final
class _ApprovalReply:
    def answer(self, said: object) -> None: ...
    def fail(self, error: BaseException) -> None: ...

@final
class Denial:
    """Something the sandbox refused, and what opens it."""

    @property
    def kind(self) -> Literal["open", "metadata", "socket", "network", "host", "other"]: ...
    @property
    def path(self) -> str | None:
        """The path it is about, or None."""
    @property
    def operation(self) -> str:
        """What was tried, in words."""
    @property
    def reason(self) -> str:
        """Why it was refused, in words."""
    @property
    def hint(self) -> str | None:
        """The keyword of ``run`` that opens exactly this, or None where none does."""
    @property
    def program(self) -> str | None:
        """The first program that was refused it, where the supervisor saw it."""
    @property
    def count(self) -> int:
        """How often; 0 where only the command's own words tell of it."""
    @property
    def probe(self) -> bool:
        """Whether it is something that programs look for at every start, and do without."""
    def to_dict(self) -> dict[str, Any]: ...

@final
class SessionChange:
    """One difference between two snapshots of a session."""

    @property
    def path(self) -> str:
        """Absolute: where it is, or was if it is gone."""
    @property
    def change_type(self) -> Literal["created", "modified", "deleted", "permissions_changed", "renamed"]: ...
    @property
    def renamed_from(self) -> str | None:
        """Where it was before, if it was renamed."""
    @property
    def size_delta(self) -> int: ...
    @property
    def executes_later(self) -> Any:
        """Why this will run outside the sandbox later (a git hook, a shell's start file), if it will."""
    def to_dict(self) -> dict[str, Any]: ...

@final
class SessionChanges:
    """The differences between two snapshots of a session: a sequence, what will run later first."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> SessionChange: ...
    def __iter__(self) -> Iterator[SessionChange]: ...
    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each kind."""
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

@final
class SessionReport:
    """What a run came to."""

    @property
    def session_id(self) -> str:
        """The id by which ``open_session``, ``nono rollback`` and ``nono audit`` know it."""
    @property
    def exit_code(self) -> int:
        """The command's own; 124 when ``max_time`` was over, 137 when it used more than ``max_memory``, 128+n when signal n
        ended it."""
    @property
    def signal(self) -> int | None:
        """The signal that ended it, or None."""
    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with code 0."""
    @property
    def limit(self) -> Literal["time", "memory", "file_size"] | None:
        """The limit that ended it."""
    @property
    def stopped(self) -> bool:
        """Whether ``stop_session`` or ``nono stop`` ended it."""
    @property
    def cancelled(self) -> bool:
        """Whether ``cancel``, Ctrl-C or an exception of ``progress`` ended it."""
    @property
    def stdout(self) -> bytes | None:
        """What it said, with ``capture_output=True``; else None."""
    @property
    def stderr(self) -> bytes | None:
        """What it said of errors, with ``capture_output=True``; else None."""
    @property
    def truncated(self) -> bool:
        """Whether it said more than ``max_output``."""
    @property
    def changes(self) -> SessionChanges | None:
        """What it changed, where it was tracked and the final snapshot could be taken; else None."""
    @property
    def coverage(self) -> dict[str, Any] | None:
        """What the first snapshot holds and does not hold, where the run was tracked."""
    @property
    def made_uncovered(self) -> list[dict[str, Any]]:
        """What it made that is in no snapshot, so that a restore leaves it: the first of it, with the reasons."""
    @property
    def lost(self) -> list[dict[str, Any]]:
        """What the first snapshot had left out and was gone or changed at the end: no restore brings it back."""
    @property
    def snapshot_count(self) -> int:
        """How many snapshots were taken."""
    @property
    def denials(self) -> list[Denial]:
        """What it was refused."""
    @property
    def expansions(self) -> list[dict[str, Any]]:
        """What it was granted while it ran."""
    @property
    def asked(self) -> int:
        """How often somebody was asked."""
    @property
    def approval_errors(self) -> list[BaseException]:
        """What ``approve`` raised, or answered that means nothing; these questions were refused."""
    @property
    def network(self) -> dict[str, Any] | None:
        """What went through the filter, where the network was filtered."""
    @property
    def audit_dir(self) -> str | None:
        """The folder of its audit log, or None."""
    @property
    def audit(self) -> dict[str, Any] | None:
        """The record of its audit log, as in its ``session.json``."""
    @property
    def checkpoints(self) -> dict[str, Any] | None:
        """The checkpoints that were taken, and what is not protected."""
    @property
    def policy(self) -> dict[str, Any]:
        """The policy it ran under."""
    @property
    def warnings(self) -> list[str]:
        """What is not as it should be and did not end the run."""
    def explain(self) -> str:
        """Why it may have failed, for people, as ``nono run`` says it."""
    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; the fields that ``--diagnostics-json`` has are called as there."""
    def _repr_html_(self) -> str: ...

@final
class RollbackReport:
    """What a restore did, or would do."""

    @property
    def dry_run(self) -> bool:
        """Whether nothing was done, since that was all that was asked for."""
    @property
    def ok(self) -> bool:
        """Whether everything that was asked for was restored: nothing kept, nothing failed, not interrupted."""
    @property
    def undo_id(self) -> str | None:
        """The id by which this restore can be undone; None where nothing was changed."""
    @property
    def changes(self) -> list[dict[str, Any]]:
        """What was changed, each with ``path``, ``change_type`` and ``size_delta``."""
    @property
    def kept(self) -> list[dict[str, Any]]:
        """What was left as it is, each with the reason."""
    @property
    def lost(self) -> list[dict[str, Any]]:
        """What the snapshot had left out and is gone or changed, each with `how` and the reason."""
    @property
    def failed(self) -> list[dict[str, Any]]:
        """What could not be restored, each with the error."""
    @property
    def interrupted(self) -> bool:
        """Whether it was cut off; ``recover`` completes it."""
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

@final
class RollbackSession:
    """A run that was tracked: what it changed, and the way back.

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
        """When it started, ISO 8601."""
    @property
    def status(self) -> Literal["live", "finished", "interrupted"]:
        """As it was when it was opened."""
    @property
    def exit_code(self) -> int | None: ...
    @property
    def pinned(self) -> bool:
        """Whether it is kept whatever room is needed."""
    @property
    def dir(self) -> str:
        """The folder that holds it."""
    @property
    def tracked_paths(self) -> list[str]:
        """What was tracked."""
    def snapshots(self) -> list[dict[str, Any]]:
        """The snapshots that can be compared and restored."""
    def coverage(self, snapshot: int = 0) -> dict[str, Any]:
        """What a snapshot holds and does not hold."""
    def changes(
        self,
        paths: Sequence[StrPath] | None = None,
        *,
        from_snapshot: int = 0,
        to_snapshot: int | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> SessionChanges:
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
        """The same as a patch for ``git apply``: bytes, since files may hold any."""
    def restore(
        self,
        paths: Sequence[StrPath] | None = None,
        *,
        snapshot: int = 0,
        conflicts: Conflicts = "keep",
        dry_run: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RollbackReport:
        """Put back what was there at a snapshot: all of it, or only ``paths`` (files, folders, globs).

        What somebody else changed after the session is kept, unless ``conflicts`` says otherwise: ``"merge"`` merges text
        files (``"merge_with_markers"`` also those that conflict), ``"force"`` restores it, too. Everything that is
        overwritten is stored first: ``undo`` takes the restore back. With ``dry_run`` nothing is changed.
        """
    def undo(
        self,
        restore: str | None = None,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> RollbackReport:
        """Take a restore back: the one with this id, or the last one that was not taken back."""
    def recover(
        self, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> RollbackReport | None:
        """Complete a restore that was cut off; None where none was."""
    def verify(self, *, progress: Progress | None = None, cancel: Cancel | None = None) -> dict[str, Any]:
        """Recompute everything that is stored, and compare it with what was sealed: ``good``, and ``problems`` if not."""
    def pin(self, pinned: bool = True) -> None:
        """Keep it whatever room is needed, or no longer."""
    def to_dict(self) -> dict[str, Any]:
        """As ``nono rollback list --json`` has it, read anew."""

@final
class RunningSession:
    """A session that runs now, started by anybody of this user."""

    @property
    def session_id(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def pid(self) -> int:
        """The process that supervises it."""
    @property
    def started(self) -> str:
        """When it started, ISO 8601."""
    @property
    def command(self) -> list[str]:
        """The command, without what may be secret in it."""
    @property
    def workdir(self) -> str: ...
    def inspect(self) -> dict[str, Any]:
        """What it is doing, as ``nono inspect --json`` has it."""
    def stop(self) -> None:
        """Have it ended, with everything that it started. Returns when its supervisor has begun to."""
    def to_dict(self) -> dict[str, Any]: ...

def list_sessions(*, path: StrPath | None = None) -> list[RollbackSession]:
    """The sessions that there are, newest first. ``path``: only those that tracked something around or below it."""

def open_session(session: StrPath | None = None) -> RollbackSession:
    """A past session: its id, a unique beginning of one, its name, "last", or the path of its folder."""

def cleanup_sessions(
    *,
    keep: int | None = None,
    older_than_days: int | None = None,
    max_bytes: int | None = None,
    remove_all: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
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
    """Have a running session ended: its id, a unique beginning of one, its name, or "last"."""

def _run(
    command: Sequence[StrPath], keywords: dict[str, Any], progress: Progress | None, cancel: Cancel | None
) -> SessionReport: ...
def _resolve(command: Sequence[StrPath], keywords: dict[str, Any]) -> dict[str, Any]: ...
def _serve_network() -> None: ...
def _serve_webhook() -> None: ...
