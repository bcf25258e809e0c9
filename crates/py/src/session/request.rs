//! Conversion of the keywords of `run(...)`, which are the flags of `nono run`, to a request of the library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nono::network::{CredentialRequest, NetworkSettings, Networking};
use nono::rollback::RollbackRequest;
use nono::session::{Auditing, Checkpointing, Host, HostStreams, Rollback};
use nono::{
    AccessMode, CapabilitySource, EnvRequest, GrantKind, GrantRequest, HostGrant, HostRule, Limits,
    NetworkPolicy, ProfileRef, RunRequest,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::host;
use crate::error::{Raise, SessionError};
use crate::list_args::Many;
use crate::paths::PathArg;

/// Declares the keywords of `run`: each by its name, with its type and default.
macro_rules! keywords {
    ($($visible:vis $name:ident: $type:ty,)*) => {
        /// The keywords, as they were given.
        #[allow(clippy::struct_excessive_bools, reason = "each is a keyword")]
        #[derive(Debug)]
        pub(crate) struct Keywords {
            $($visible $name: $type,)*
        }

        impl<'a, 'py> FromPyObject<'a, 'py> for Keywords {
            type Error = PyErr;

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Keywords> {
                let given = object.cast::<PyDict>()?;
                Ok(Keywords { $($name: keyword(&given, stringify!($name))?,)* })
            }
        }
    };
}

keywords! {
    allow: Many<PathArg>,
    read: Many<PathArg>,
    write: Many<PathArg>,
    allow_file: Many<PathArg>,
    read_file: Many<PathArg>,
    write_file: Many<PathArg>,
    allow_cwd: bool,
    deny: Many<PathArg>,
    allow_unix_socket: Many<PathArg>,
    bypass_protection: Many<PathArg>,
    allow_net: bool,
    block_net: bool,
    allow_domain: Many<String>,
    allow_connect_port: Many<u16>,
    listen_port: Many<u16>,
    credential: Many<String>,
    upstream_proxy: Option<String>,
    profile: Option<PathArg>,
    extends: Many<String>,
    pub(super) no_project_profile: bool,
    env: Option<BTreeMap<String, String>>,
    pass_env: Many<String>,
    env_all: bool,
    pub(super) workdir: Option<PathArg>,
    rollback: Option<bool>,
    rollback_exclude: Many<String>,
    rollback_include: Many<String>,
    rollback_all: bool,
    rollback_best_effort: bool,
    rollback_dest: Option<PathArg>,
    snapshot_interval: Option<f64>,
    paranoid: bool,
    checkpoints: Option<bool>,
    pub(super) approve: Option<Py<PyAny>>,
    approve_timeout: Option<f64>,
    pub(super) approve_rules: Many<PathArg>,
    pub(super) accept_weaker: bool,
    audit: Option<bool>,
    audit_integrity: Option<bool>,
    audit_sign_key: Option<PathArg>,
    max_time: Option<f64>,
    max_memory: Option<u64>,
    max_procs: Option<u64>,
    max_file_size: Option<u64>,
    name: Option<String>,
    pub(super) diagnostics: Option<bool>,
    capture_output: bool,
    stdin: Option<Vec<u8>>,
    max_output: Option<u64>,
}

fn keyword<'py, T: Default + FromPyObjectOwned<'py>>(given: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
    let Some(value) = given.get_item(name)? else { return Ok(T::default()) };
    value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        if !error.is_instance_of::<PyTypeError>(value.py()) {
            return error;
        }
        // The form of Python's own errors: the argument, then the error.
        PyTypeError::new_err(format!("argument '{name}': {}", error.value(value.py())))
    })
}

fn wrong(message: impl ToString) -> PyErr {
    Raise::new("value", message).value_error()
}

fn time(keyword: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    match seconds {
        // No limit.
        Some(f64::INFINITY) | None => Ok(None),
        Some(seconds) => match Duration::try_from_secs_f64(seconds) {
            Ok(time) => Ok(Some(time)),
            // Too large for a duration: no limit.
            Err(_) if seconds > 0.0 => Ok(None),
            Err(_) => Err(wrong(format!("{keyword} must be a number of seconds, not {seconds}"))),
        },
    }
}

fn all(paths: &[PathArg], here: &Path) -> Vec<PathBuf> {
    paths.iter().map(|path| at(here, &path.0)).collect()
}

/// Absolute, without `.`; a `..` stays for the kernel to follow.
fn at(here: &Path, path: &Path) -> PathBuf {
    here.join(path).components().collect()
}

impl Keywords {
    pub(super) fn policy(&self, here: &Path) -> PyResult<RunRequest> {
        if let Some(name) = self.name.as_ref().filter(|name| !nono::session::is_name(name)) {
            return Err(wrong(format!(
                "name={name:?}: use up to 64 letters, digits, '-', '_' and '.', but not \"last\""
            )));
        }
        Ok(RunRequest {
            grants: self.grants(here),
            deny: all(&self.deny, here),
            bypass_protection: all(&self.bypass_protection, here),
            unix_sockets: all(&self.allow_unix_socket, here),
            network: self.network()?,
            hosts: self.hosts()?,
            env: self.variables(),
            env_all: self.env_all,
            profile: self.profile.as_ref().map(|profile| profile_ref(&profile.0, here)).transpose()?,
            extends: self.extends.to_vec(),
            projects: Vec::new(),
            limits: self.limits()?,
            allow_cwd: self.allow_cwd,
            links: Vec::new(),
            program: None,
            name: self.name.clone(),
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
        let grants = |(paths, access, kind): (&Many<PathArg>, _, _)| {
            all(paths, here).into_iter().map(move |path| GrantRequest { path, access, kind })
        };
        lists.into_iter().flat_map(grants).collect()
    }

    fn network(&self) -> PyResult<Option<NetworkPolicy>> {
        let ports = !self.allow_connect_port.is_empty() || !self.listen_port.is_empty();
        let some = ports || !self.allow_domain.is_empty();
        match (self.allow_net, self.block_net) {
            (true, true) => Err(wrong("allow_net and block_net contradict each other")),
            (true, false) if some => {
                Err(wrong("allow_net opens everything: drop it to open single hosts and ports only"))
            }
            (false, true) if some => {
                Err(wrong("block_net closes everything: drop it to open single hosts and ports"))
            }
            (true, false) => Ok(Some(NetworkPolicy::Allowed)),
            (false, true) => Ok(Some(NetworkPolicy::Blocked)),
            (false, false) => Ok(ports.then(|| NetworkPolicy::Ports {
                connect: self.allow_connect_port.to_vec(),
                listen: self.listen_port.to_vec(),
            })),
        }
    }

    fn hosts(&self) -> PyResult<Vec<HostGrant>> {
        let host = |text: &String| {
            let rule: HostRule = text.parse().map_err(|error| wrong(format!("allow_domain: {error}")))?;
            Ok(HostGrant { rule, source: CapabilitySource::User })
        };
        self.allow_domain.iter().map(host).collect()
    }

    fn variables(&self) -> Vec<EnvRequest> {
        let set = self.env.iter().flatten().map(|(name, value)| EnvRequest::Set(name.clone(), value.clone()));
        self.pass_env.iter().cloned().map(EnvRequest::Pass).chain(set).collect()
    }

    fn limits(&self) -> PyResult<Limits> {
        if self.max_procs == Some(0) {
            return Err(wrong("max_procs must be at least 1"));
        }
        Ok(Limits {
            time: time("max_time", self.max_time)?,
            memory: self.max_memory,
            processes: self.max_procs,
            file_size: self.max_file_size,
        })
    }

    pub(super) fn tracking(&self, here: &Path) -> PyResult<Rollback> {
        let request = RollbackRequest {
            exclude: self.rollback_exclude.to_vec(),
            include: self.rollback_include.to_vec(),
            all: self.rollback_all,
            dest: self.rollback_dest.as_ref().map(|dest| at(here, &dest.0)),
            interval: time("snapshot_interval", self.snapshot_interval)?,
            paranoid: self.paranoid,
            best_effort: self.rollback_best_effort,
        };
        Ok(Rollback { wanted: self.rollback, request })
    }

    pub(super) fn auditing(&self, here: &Path) -> PyResult<Auditing> {
        let wanted = self.audit.unwrap_or(true);
        if !wanted && (self.audit_integrity.is_some() || self.audit_sign_key.is_some()) {
            return Err(wrong("audit=False keeps no log, so there is nothing to seal or sign"));
        }
        let sign_key = self.audit_sign_key.as_ref().map(|key| at(here, &key.0));
        Ok(Auditing { wanted, integrity: self.audit_integrity, sign_key })
    }

    pub(super) fn checkpointing(&self) -> Checkpointing {
        Checkpointing { wanted: self.checkpoints }
    }

    pub(super) fn patience(&self) -> PyResult<Option<Duration>> {
        time("approve_timeout", self.approve_timeout)
    }

    pub(super) fn guest(&self) -> HostStreams {
        HostStreams { capture: self.capture_output, input: self.stdin.clone(), max_output: self.max_output }
    }

    /// Network settings beyond hosts. Nothing is fetched or started yet.
    pub(super) fn networking(&self, py: Python<'_>, host: &Host, here: &Path) -> PyResult<Networking> {
        let failed = |error: &dyn std::error::Error| Raise::new("network", error).as_a::<SessionError>();
        let home = host.context.home.as_deref();
        let credential = |text: &String| {
            // The error has no text of the argument, which may be the secret itself.
            let CredentialRequest { name, source } = text.parse().map_err(wrong)?;
            Ok(CredentialRequest { name, source: source.map(|source| source.at(here, home)) })
        };
        let credentials = self.credential.iter().map(credential).collect::<PyResult<Vec<_>>>()?;
        let upstream = self.upstream_proxy.as_ref().map(|text| text.parse()).transpose();
        let upstream = upstream.map_err(|error| wrong(format!("upstream_proxy: {error}")))?;
        let settings =
            NetworkSettings::load(&host.context.state_dir.join("config.toml")).map_err(|e| failed(&e))?;
        let mut networking = Networking::new(credentials, upstream, &settings).map_err(wrong)?;
        networking.helper = host::helper(py, "network").or_else(|error| {
            // Only a filtered network needs a helper, and a profile may request that too: the error comes when it is
            // started.
            if self.allow_domain.is_empty() && self.credential.is_empty() {
                Ok(Vec::new())
            } else {
                Err(error)
            }
        })?;
        let certificates = host.env.iter().find(|(name, _)| name == "SSL_CERT_FILE");
        networking.certificates = certificates.map(|(_, file)| file.into());
        Ok(networking)
    }
}

/// A name, unless it looks like a file: a slash in it, or an ending.
fn profile_ref(path: &Path, here: &Path) -> PyResult<ProfileRef> {
    if path.components().count() > 1 || path.extension().is_some() {
        return Ok(ProfileRef::File(here.join(path)));
    }
    let name = path.to_str().ok_or_else(|| wrong("the profile's name is not valid UTF-8"))?;
    Ok(ProfileRef::Name(name.to_owned()))
}
