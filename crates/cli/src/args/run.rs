//! Flags of `run`, `shell` and `wrap`, and their translation into a request.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use nono::{
    AccessMode, CapabilitySource, EnvRequest, GrantKind, GrantRequest, HostGrant, HostRule, Limits,
    NetworkPolicy, ProfileRef, RunRequest,
};

use super::asking::AskArgs;
use super::auditing::AuditingArgs;
use super::network::NetworkArgs;
use super::tracking::{CheckpointingArgs, TrackingArgs};
use super::values;
use crate::failure::Failure;

const GRANTS: &str = "Grants";

/// Grants, denials, network, profile and environment.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// Read and write this folder and everything in it
    #[arg(short, long, value_name = "DIR", env = "NONO_ALLOW", value_delimiter = ',', help_heading = GRANTS)]
    allow: Vec<PathBuf>,
    /// Read this folder and everything in it
    #[arg(short, long, value_name = "DIR", env = "NONO_READ", value_delimiter = ',', help_heading = GRANTS)]
    read: Vec<PathBuf>,
    /// Write this folder and everything in it
    #[arg(short, long, value_name = "DIR", env = "NONO_WRITE", value_delimiter = ',', help_heading = GRANTS)]
    write: Vec<PathBuf>,
    /// Read and write this file
    #[arg(long, value_name = "FILE", help_heading = GRANTS)]
    allow_file: Vec<PathBuf>,
    /// Read this file
    #[arg(long, value_name = "FILE", help_heading = GRANTS)]
    read_file: Vec<PathBuf>,
    /// Write this file
    #[arg(long, value_name = "FILE", help_heading = GRANTS)]
    write_file: Vec<PathBuf>,
    /// Read and write the working directory, without asking
    #[arg(long, help_heading = GRANTS)]
    pub(crate) allow_cwd: bool,
    /// Close this path even inside a granted folder
    #[arg(long, value_name = "PATH", help_heading = GRANTS)]
    deny: Vec<PathBuf>,
    /// Connect to this unix socket
    #[arg(long, value_name = "PATH", help_heading = GRANTS)]
    allow_unix_socket: Vec<PathBuf>,
    /// Open a protected path (keys, credentials, browser data, shell files); needs a grant too
    #[arg(long, value_name = "PATH", help_heading = GRANTS)]
    bypass_protection: Vec<PathBuf>,
    /// Use the network
    #[arg(long, conflicts_with = "block_net", help_heading = "Network")]
    allow_net: bool,
    /// Do not use the network (the default, unless a profile opens it)
    #[arg(long, help_heading = "Network")]
    block_net: bool,
    /// Reach only this host (HOST, *.HOST or an address; with :PORT only there), through a filter
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        env = "NONO_ALLOW_DOMAIN",
        value_delimiter = ',',
        help_heading = "Network"
    )]
    allow_domain: Vec<HostRule>,
    /// Connect by TCP to this port
    #[arg(long, value_name = "PORT", value_delimiter = ',', conflicts_with_all = ["allow_net", "block_net"], help_heading = "Network")]
    allow_connect_port: Vec<u16>,
    /// Listen by TCP on this port
    #[arg(long, value_name = "PORT", value_delimiter = ',', conflicts_with_all = ["allow_net", "block_net"], help_heading = "Network")]
    listen_port: Vec<u16>,
    /// Use this profile: a name, or a file
    #[arg(short, long, value_name = "NAME|FILE", help_heading = "Profile and environment")]
    profile: Option<OsString>,
    /// Build on this profile too
    #[arg(long, value_name = "NAME", help_heading = "Profile and environment")]
    extends: Vec<String>,
    /// Leave out the profile that the project carries (.nono/profile.json), what it closes included
    #[arg(long, help_heading = "Profile and environment")]
    pub(crate) no_project_profile: bool,
    /// Pass this variable on, or set it
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Profile and environment")]
    env: Vec<String>,
    /// Pass all variables on, except those that inject code
    #[arg(long, help_heading = "Profile and environment")]
    env_all: bool,
    /// Start in this folder
    #[arg(long, value_name = "DIR", help_heading = "Profile and environment")]
    pub(crate) workdir: Option<PathBuf>,
}

/// Flags that `run`, `shell`, `wrap` and `learn` share.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) tracking: TrackingArgs,
    #[command(flatten)]
    pub(crate) checkpointing: CheckpointingArgs,
    #[command(flatten)]
    pub(crate) asking: AskArgs,
    #[command(flatten)]
    pub(crate) auditing: AuditingArgs,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    /// End the command after this time (30s, 10m, 2h); exit 124
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Limits")]
    pub(crate) max_time: Option<Duration>,
    /// End the command when all its processes together use this much memory (512M, 2G); exit 137
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Limits")]
    pub(crate) max_memory: Option<u64>,
    /// At most this many processes and threads
    #[arg(long, value_name = "N", value_parser = values::count::<u64>, help_heading = "Limits")]
    max_procs: Option<u64>,
    /// No file grows beyond this size
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Limits")]
    max_file_size: Option<u64>,
    /// A name for this session
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Show the resolved policy, each grant with its source, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub(crate) silent: bool,
    /// Say more
    #[arg(short, long, conflicts_with = "silent")]
    pub(crate) verbose: bool,
}

/// Explanation of failed commands.
#[derive(Debug, Args)]
pub(crate) struct DiagnosticArgs {
    /// Do not explain a failed command
    #[arg(long, conflicts_with = "diagnostics_json", help_heading = "Diagnostics")]
    pub(crate) no_diagnostics: bool,
    /// Explain a failed command as JSON on stderr
    #[arg(long, help_heading = "Diagnostics")]
    pub(crate) diagnostics_json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) diagnostics: DiagnosticArgs,
    /// Confine the waiting parent like the command
    #[arg(long, conflicts_with_all = ["exec", "supervised"])]
    pub(crate) monitor: bool,
    /// Become the command, as `wrap` does
    #[arg(long, conflicts_with = "supervised")]
    pub(crate) exec: bool,
    /// Keep a supervisor outside the sandbox (the default)
    #[arg(long)]
    pub(crate) supervised: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) diagnostics: DiagnosticArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WrapArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl CommonArgs {
    /// First given flag that needs the network filter.
    pub(crate) fn filter_flag(&self) -> Option<&'static str> {
        self.policy.needs_filter().or(self.network.given())
    }

    /// Request made from these flags. Relative paths are relative to `here`.
    pub(crate) fn request(&self, here: &Path) -> Result<RunRequest, Failure> {
        let mut request = self.policy.request(here)?;
        request.limits = Limits {
            time: self.max_time,
            memory: self.max_memory,
            processes: self.max_procs,
            file_size: self.max_file_size,
        };
        if let Some(name) = self.name.as_ref().filter(|name| !nono::session::is_name(name)) {
            return Err(Failure::usage(format!(
                "--name {name:?}: use up to 64 letters, digits, '-', '_' and '.', but not \"last\""
            )));
        }
        request.name.clone_from(&self.name);
        Ok(request)
    }
}

impl PolicyArgs {
    pub(crate) fn request(&self, here: &Path) -> Result<RunRequest, Failure> {
        let absolute = |paths: &[PathBuf]| paths.iter().map(|path| at(here, path)).collect();
        self.check_network()?;
        let host = |rule: &HostRule| HostGrant { rule: rule.clone(), source: CapabilitySource::User };
        Ok(RunRequest {
            grants: self.grants(here),
            deny: absolute(&self.deny),
            bypass_protection: absolute(&self.bypass_protection),
            unix_sockets: absolute(&self.allow_unix_socket),
            network: self.network(),
            hosts: self.allow_domain.iter().map(host).collect(),
            env: self.env.iter().map(|text| variable(text)).collect(),
            env_all: self.env_all,
            profile: self.profile.as_ref().map(|text| profile_ref(text, here)).transpose()?,
            extends: self.extends.clone(),
            allow_cwd: self.allow_cwd,
            ..RunRequest::default()
        })
    }

    fn grants(&self, here: &Path) -> Vec<GrantRequest> {
        let lists = [
            (&self.allow, AccessMode::ReadWrite, GrantKind::Directory),
            (&self.read, AccessMode::Read, GrantKind::Directory),
            (&self.write, AccessMode::Write, GrantKind::Directory),
            (&self.allow_file, AccessMode::ReadWrite, GrantKind::File),
            (&self.read_file, AccessMode::Read, GrantKind::File),
            (&self.write_file, AccessMode::Write, GrantKind::File),
        ];
        let grant = |path: &PathBuf, access, kind| GrantRequest { path: at(here, path), access, kind };
        lists
            .into_iter()
            .flat_map(|(paths, access, kind)| paths.iter().map(move |path| grant(path, access, kind)))
            .collect()
    }

    /// First given policy flag that needs the network filter.
    fn needs_filter(&self) -> Option<&'static str> {
        (!self.allow_domain.is_empty()).then_some("--allow-domain")
    }

    /// Refuses `--allow-domain` together with `--allow-net` or `--block-net`, which leave nothing to filter.
    fn check_network(&self) -> Result<(), Failure> {
        let Some(flag) = self.needs_filter() else { return Ok(()) };
        let (whole, does, instead) = if self.allow_net {
            ("--allow-net", "opens every host", "to reach every host")
        } else if self.block_net {
            ("--block-net", "closes every host", "to reach none")
        } else {
            return Ok(());
        };
        Err(Failure::usage(format!("{whole} {does}, so {flag} has nothing to choose from")).hint(format!(
            "drop {whole} to reach those hosts alone, or {flag} (and NONO_ALLOW_DOMAIN) {instead}"
        )))
    }

    fn network(&self) -> Option<NetworkPolicy> {
        if self.allow_net {
            Some(NetworkPolicy::Allowed)
        } else if self.block_net {
            Some(NetworkPolicy::Blocked)
        } else if self.allow_connect_port.is_empty() && self.listen_port.is_empty() {
            None
        } else {
            Some(NetworkPolicy::Ports {
                connect: self.allow_connect_port.clone(),
                listen: self.listen_port.clone(),
            })
        }
    }
}

/// Absolute path without `.`; a `..` stays for the kernel to follow.
fn at(here: &Path, path: &Path) -> PathBuf {
    here.join(path).components().collect()
}

fn variable(text: &str) -> EnvRequest {
    match text.split_once('=') {
        Some((name, value)) => EnvRequest::Set(name.to_owned(), value.to_owned()),
        None => EnvRequest::Pass(text.to_owned()),
    }
}

/// Parses a profile: a file if it contains a slash or has an extension, else a name.
pub(crate) fn profile_ref(text: &OsString, here: &Path) -> Result<ProfileRef, Failure> {
    let path = Path::new(text);
    let is_file = path.components().count() > 1 || path.extension().is_some();
    if is_file {
        return Ok(ProfileRef::File(here.join(path)));
    }
    match text.to_str() {
        Some(name) => Ok(ProfileRef::Name(name.to_owned())),
        None => Err(Failure::usage("the profile's name is not valid UTF-8")),
    }
}

/// Working directory, to which relative paths are relative.
pub(crate) fn here() -> Result<PathBuf, Failure> {
    env::current_dir().map_err(|error| Failure::nowhere(&error))
}
