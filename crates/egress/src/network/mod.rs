//! The command's only way to the network: a filtering proxy in a process of its own.
//!
//! Use by a session:
//!
//! 1. [`Networking::new`] checks what was asked for (credentials, another proxy) and touches nothing.
//!    [`Networking::open`] adds to the request what it opens and closes: the hosts of the credentials, and the files they
//!    are in. Then the policy is resolved as always; only `NetworkPolicy::Filtered` needs a proxy
//!    ([`Networking::is_needed`]).
//! 2. [`Network::start`], before the launch: fetches the secrets, starts the process, waits until it is confined, and
//!    writes the session's certificates. [`Network::apply`] then changes the command's environment: the proxy's
//!    variables, placeholders instead of secrets.
//! 3. [`Network::serve`] when there is a socket, before the command may start: the one made inside the command's network
//!    ([`Listen::Inside`], from the launch's hook), or else [`Network::serve_here`] for one on this machine's loopback
//!    ([`Listen::Here`], made by [`bind`] so that its address is known to the policy). An error means that the command
//!    must not run.
//! 4. [`Network::finish`] after the run: closes all connections and returns a summary. The observer has received every
//!    event by then. If the value is dropped instead, the process is killed.

mod command;
mod credential;
mod environment;
mod event_queue;
mod helper;
mod host_denied;
mod placeholder;
mod process;
mod report;
pub mod services;
pub mod settings;
mod start;
mod wire;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nono_policy::environment::ReplacedKey;
use nono_policy::{CapabilitySource, HostGrant, NetworkPolicy, RunRequest};
pub use nono_proxy::{Upstream as UpstreamProxy, UpstreamError};

pub use command::CommandError;
pub use credential::{Credential, CredentialError, CredentialRequest, SecretSource};
pub(crate) use credential::{KeyringError, keyring, value};
pub use environment::environment;
pub(crate) use environment::{no_proxy, of_proxy};
pub use helper::{HelperError, serve};
pub use host_denied::HostDenied;
pub use process::{NetworkObserver, bind};
pub use report::NetworkReport;
pub use services::ServiceSpec;
pub use settings::{NetworkSettingProblem, NetworkSettings, SettingsError};
pub use start::{Listen, Network, NetworkError, NetworkStart};
pub use wire::UnsentCounts;

/// Network options of a run besides hosts: checked, nothing fetched.
#[derive(Clone, Debug, Default)]
pub struct Networking {
    credentials: Vec<Credential>,
    upstream: Option<UpstreamProxy>,
    /// Command line of the process that calls [`serve`].
    pub helper: Vec<OsString>,
    /// File of certificates to trust, instead of the system's.
    pub certificates: Option<PathBuf>,
}

impl Networking {
    /// Look up the services, and refuse duplicates. Without an upstream proxy the one in the settings is used.
    pub fn new(
        credentials: Vec<CredentialRequest>,
        upstream: Option<UpstreamProxy>,
        settings: &NetworkSettings,
    ) -> Result<Networking, CredentialError> {
        let mut found: Vec<Credential> = Vec::new();
        for request in credentials {
            let credential = Credential::new(request, settings)?;
            if found.iter().any(|other| other.service.name == credential.service.name) {
                return Err(CredentialError::Twice { name: credential.service.name });
            }
            found.push(credential);
        }
        // The bypass list applies to either proxy.
        let upstream = match (upstream, &settings.upstream) {
            (Some(given), Some(own)) => Some(UpstreamProxy { bypass: own.bypass.clone(), ..given }),
            (given, own) => given.or_else(|| own.clone()),
        };
        Ok(Networking { credentials: found, upstream, ..Networking::default() })
    }

    pub fn hosts(&self) -> impl Iterator<Item = HostGrant> {
        self.credentials.iter().map(|credential| HostGrant {
            rule: credential.service.rule(),
            source: CapabilitySource::Credential(credential.service.name.clone()),
        })
    }

    /// Files that hold secrets: closed to the command, and no approval opens them.
    pub fn files(&self) -> Vec<PathBuf> {
        let real = |file: &Path| file.canonicalize().unwrap_or_else(|_| file.to_owned());
        self.credentials.iter().filter_map(Credential::file).map(real).collect()
    }

    /// Keys from the environment, each with the placeholder that the command sees instead.
    pub fn replaced_keys(
        &self,
        env: &[(OsString, OsString)],
        state_dir: &Path,
    ) -> io::Result<Vec<ReplacedKey>> {
        let known = |credential: &Credential| {
            let key = credential.in_environment(env)?.to_owned();
            let placeholder = placeholder::of_service(state_dir, &credential.service.name);
            Some(placeholder.map(|placeholder| ReplacedKey { key, placeholder }))
        };
        self.credentials.iter().filter_map(known).collect()
    }

    /// Add what the credentials open and close to the request. Idempotent.
    pub fn open(&self, request: &mut RunRequest) {
        // A missing file is an error when it is read.
        for file in self.files().into_iter().filter(|file| file.exists()) {
            if !request.deny.contains(&file) {
                request.deny.push(file);
            }
        }
        for host in self.hosts() {
            if !request.hosts.contains(&host) {
                request.hosts.push(host);
            }
        }
    }

    /// Whether this policy needs a proxy. Credentials without a filtered network are an error: they would have no
    /// effect.
    pub fn is_needed(&self, policy: &NetworkPolicy) -> Result<bool, NetworkError> {
        match (policy, self.credentials.first()) {
            (NetworkPolicy::Filtered { .. }, _) => Ok(true),
            (_, Some(credential)) => Err(NetworkError::NotFiltered { name: credential.service.name.clone() }),
            (_, None) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networking(credentials: &[&str]) -> Result<Networking, CredentialError> {
        let read = credentials.iter().map(|text| text.parse().unwrap()).collect();
        Networking::new(read, None, &NetworkSettings::default())
    }

    #[test]
    fn a_credential_opens_its_host() {
        let mut request = RunRequest::default();
        for _ in 0..2 {
            networking(&["openai", "github"]).unwrap().open(&mut request);
        }
        let opened: Vec<_> =
            request.hosts.iter().map(|grant| (grant.rule.to_string(), grant.source.to_string())).collect();
        let expected = [("api.openai.com:443", "openai"), ("api.github.com:443", "github")];
        for ((rule, source), (host, name)) in opened.iter().zip(expected) {
            assert!(rule == host && source.contains(name), "{rule} {source}");
        }
        assert_eq!(opened.len(), 2);
    }

    #[test]
    fn a_credential_is_of_no_use_where_nothing_is_filtered() {
        let filtered = NetworkPolicy::Filtered { hosts: Vec::new(), connect: Vec::new(), listen: Vec::new() };
        let with = networking(&["openai"]).unwrap();
        assert!(with.is_needed(&filtered).unwrap());
        assert!(with.is_needed(&NetworkPolicy::Allowed).is_err());
        let without = networking(&[]).unwrap();
        assert!(!without.is_needed(&NetworkPolicy::Blocked).unwrap());
    }

    #[test]
    fn a_file_that_holds_a_secret_is_closed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut request = RunRequest::default();
        networking(&[&format!("openai=file:{}", file.path().display())]).unwrap().open(&mut request);
        assert_eq!(request.deny, [file.path().canonicalize().unwrap()]);
    }

    #[test]
    fn a_name_stands_once() {
        assert!(matches!(networking(&["openai", "openai=env:X"]), Err(CredentialError::Twice { .. })));
    }
}
