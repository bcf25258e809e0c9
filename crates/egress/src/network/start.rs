//! Start of a proxy from a checked configuration.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nono_policy::host_rule::HostRule;
use nono_policy::{NetworkPolicy, ResolvedPolicy};
use nono_proxy::{ClientTls, Config, Route, Secret};
use nono_supervisor::{ServiceError, TakesListener};
use nono_sys::errno;
use thiserror::Error;

use super::credential::{Credential, SecretSources};
use super::process::{NetworkObserver, Serving, Waiting};
use super::{CredentialError, NetworkReport, Networking, environment, placeholder};
use crate::helper::{Bundle, CertificatesError, HelperProcessError};

/// File in the session's folder with the certificates that the command shall trust.
const BUNDLE: &str = "ca-bundle.pem";

/// Reason why there is no proxy. The command must not run then.
#[derive(Debug, Error)]
pub enum NetworkError {
    #[error(transparent)]
    Credential(#[from] CredentialError),
    #[error("--credential {name} needs a filtered network")]
    NotFiltered { name: String },
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    #[error("{} cannot be written: {}", .path.display(), errno::describe(.source))]
    Bundle { path: PathBuf, source: io::Error },
    #[error("cannot get random numbers: {}", errno::describe(.0))]
    Random(io::Error),
    #[error("the network filter: {0}")]
    Helper(String),
    #[error("the network filter cannot listen: {}", errno::describe(.0))]
    Listen(io::Error),
    #[error("the network filter is already running")]
    Twice,
}

impl NetworkError {
    /// Next step for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            NetworkError::Credential(error) => error.hint(),
            NetworkError::NotFiltered { .. } => Some("add --allow-domain, and drop --allow-net".to_owned()),
            _ => None,
        }
    }
}

/// Place of the proxy's socket.
#[derive(Debug)]
pub enum Listen {
    /// In the command's own network namespace, at this loopback port: the socket is passed later, to
    /// [`Network::serve`].
    Inside { port: u16 },
    /// On this machine's loopback ([`super::bind`]); [`Network::serve_here`] starts it.
    Here(TcpListener),
}

#[derive(Debug)]
pub struct NetworkStart<'a> {
    /// Resolved policy, with the files of [`Networking::files`] closed.
    pub policy: &'a ResolvedPolicy,
    /// The caller's environment and working directory, from which secrets are fetched.
    pub env: &'a [(OsString, OsString)],
    pub cwd: &'a Path,
    /// The session's folder: readable inside, not writable.
    pub folder: &'a Path,
    /// nono's state folder, if any: a service then has the same placeholder each time.
    pub state_dir: Option<&'a Path>,
    pub listen: Listen,
}

/// Proxy of one session.
pub struct Network {
    stage: Mutex<Stage>,
    observer: Arc<dyn NetworkObserver>,
    env: Vec<(OsString, OsString)>,
    hidden: Vec<OsString>,
    secrets: Vec<Secret>,
    bundle: Option<PathBuf>,
}

enum Stage {
    Waiting(Waiting, Option<TcpListener>),
    Serving(Serving),
    Over,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("bundle", &self.bundle).finish_non_exhaustive()
    }
}

impl Network {
    /// Fetch the secrets and start the proxy process; on return it is confined. Nothing is served yet.
    pub fn start(
        networking: &Networking,
        start: NetworkStart<'_>,
        observer: Arc<dyn NetworkObserver>,
    ) -> Result<Network, NetworkError> {
        let NetworkStart { policy, env: caller, cwd, folder, state_dir, listen } = start;
        let hosts: &[HostRule] = match &policy.network {
            NetworkPolicy::Filtered { hosts, .. } => hosts,
            _ => &[],
        };
        let (port, listener) = match listen {
            Listen::Inside { port } => (port, None),
            Listen::Here(listener) => {
                (listener.local_addr().map_err(NetworkError::Listen)?.port(), Some(listener))
            }
        };
        let around = SecretSources { policy, env: caller, cwd };
        let routes = routes(&networking.credentials, &around, state_dir)?;
        let speaks_tls = routes.iter().any(|route| route.https);
        let certificates = if speaks_tls {
            Bundle::read(networking.certificates.as_deref())?.text()?
        } else {
            String::new()
        };
        let token = Secret::new(random::<32>()?);
        let secrets = routes.iter().filter_map(Route::secret).cloned().collect();
        let mut placed = Vec::new();
        for (credential, route) in networking.credentials.iter().zip(&routes) {
            placed.extend(environment::placed(credential, &route.placeholder, port));
        }
        let config = Config {
            allowed: hosts.to_vec(),
            token: Some(token.clone()),
            upstream: networking.upstream.clone(),
            routes,
            certificates: certificates.clone(),
            ..Config::default()
        };
        let waiting =
            Waiting::start(&networking.helper, config).map_err(|trouble| helper_failed(&trouble))?;
        let authority = waiting.authority.as_deref();
        let bundle = authority.map(|own| write_bundle(folder, &certificates, own)).transpose()?;
        let mut env = environment::environment(port, &token, hosts, bundle.as_deref());
        env.append(&mut placed);
        let variables = networking.credentials.iter().flat_map(Credential::variables);
        Ok(Network {
            hidden: variables.map(OsString::from).collect(),
            stage: Mutex::new(Stage::Waiting(waiting, listener)),
            observer,
            env,
            secrets,
            bundle,
        })
    }

    /// Add the proxy's variables to the command's environment, and remove all variables that hold secrets, by name or
    /// by value, whatever passed them on.
    pub fn apply(&self, env: &mut Vec<(OsString, OsString)>) {
        let own = self.env.iter().map(|(name, _)| name);
        let names: Vec<OsString> = self.hidden.iter().chain(own).cloned().collect();
        environment::strip(env, &names, &self.secrets);
        env.extend(self.env.iter().cloned());
        env.sort();
    }

    /// Certificates that the command shall trust, if the proxy terminates TLS.
    pub fn bundle(&self) -> Option<&Path> {
        self.bundle.as_deref()
    }

    /// Process id of the proxy, while there is one.
    pub fn helper_pid(&self) -> Option<u32> {
        match &*self.stage() {
            Stage::Waiting(waiting, _) => Some(waiting.pid()),
            Stage::Serving(serving) => serving.pid(),
            Stage::Over => None,
        }
    }

    /// Serve this socket, which listens inside the command's network. Call it before the command may start.
    pub fn serve(&self, listener: OwnedFd) -> Result<(), NetworkError> {
        self.begin(|_| Some(listener))
    }

    /// Serve the socket that was given at the start.
    pub fn serve_here(&self) -> Result<(), NetworkError> {
        self.begin(|own| own.map(OwnedFd::from))
    }

    fn begin(&self, choose: impl FnOnce(Option<TcpListener>) -> Option<OwnedFd>) -> Result<(), NetworkError> {
        let mut stage = self.stage();
        let (waiting, own) = match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Waiting(waiting, own) => (waiting, own),
            other => {
                *stage = other;
                return Err(NetworkError::Twice);
            }
        };
        let nothing = || NetworkError::Listen(io::Error::from(io::ErrorKind::NotConnected));
        let listener = choose(own).ok_or_else(nothing)?;
        *stage = Stage::Serving(
            waiting.serve(listener, self.observer.clone()).map_err(|trouble| helper_failed(&trouble))?,
        );
        Ok(())
    }

    /// Close all connections and collect the remaining events. Takes at most a few seconds.
    pub fn finish(&self) -> NetworkReport {
        match std::mem::replace(&mut *self.stage(), Stage::Over) {
            Stage::Serving(serving) => serving.finish(),
            Stage::Waiting(..) | Stage::Over => NetworkReport::default(),
        }
    }

    fn stage(&self) -> std::sync::MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TakesListener for Network {
    fn take(&self, listener: OwnedFd) -> Result<(), ServiceError> {
        Ok(self.serve(listener)?)
    }
}

fn helper_failed(trouble: &HelperProcessError) -> NetworkError {
    // Its error text may have come from outside.
    NetworkError::Helper(nono_policy::text::escape(&trouble.to_string()))
}

fn routes(
    credentials: &[Credential],
    around: &SecretSources<'_>,
    state_dir: Option<&Path>,
) -> Result<Vec<Route>, NetworkError> {
    let route = |credential: &Credential| {
        let service = &credential.service;
        Ok(Route {
            name: service.name.clone(),
            prefix: service.name.clone(),
            https: service.https,
            host: service.host.to_string(),
            port: service.port,
            base: String::new(),
            inject: service.inject.clone(),
            secret: credential.fetch(around)?.into(),
            placeholder: match state_dir {
                Some(dir) => placeholder::of_service(dir, &service.name).map_err(NetworkError::Random)?,
                None => format!("nono-dummy-{}", random::<16>()?),
            },
            endpoints: Vec::new(),
            tls: ClientTls::default(),
        })
    };
    credentials.iter().map(route).collect()
}

/// Write the system's certificates and the session's own authority to a file for the command.
fn write_bundle(folder: &Path, certificates: &str, authority: &str) -> Result<PathBuf, NetworkError> {
    let path = folder.join(BUNDLE);
    let text = format!("{}\n{authority}", certificates.trim_end());
    nono_sys::fs::make_file(&path, 0o400, text.as_bytes())
        .map_err(|source| NetworkError::Bundle { path: path.clone(), source })?;
    Ok(path)
}

fn random<const BYTES: usize>() -> Result<String, NetworkError> {
    nono_sys::random::id::<BYTES>().map_err(NetworkError::Random)
}
