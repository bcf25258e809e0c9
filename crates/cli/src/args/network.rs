//! Flags about the filtered network.

use std::path::Path;

use clap::Args;
use nono::network::{CredentialRequest, NetworkSettings, Networking, UpstreamProxy};
use nono::session::Host;

use super::first_given;
use crate::commands::proxy;
use crate::failure::Failure;

const UPSTREAM: &str = "NONO_UPSTREAM_PROXY";

/// Credentials and upstream proxy of the filtered network.
#[derive(Debug, Args)]
pub(crate) struct NetworkArgs {
    /// Put this credential into requests to its service, and give the command a dummy. SOURCE: env:VAR, file:PATH,
    /// cmd:COMMAND or keyring:SERVICE[/USER]
    // Parsed later: clap would show a wrong value, which may be the secret itself.
    #[arg(long, value_name = "NAME[=SOURCE]", help_heading = "Network")]
    credential: Vec<String>,
    /// Reach hosts through this proxy. With a password: NONO_UPSTREAM_PROXY=http://USER:PASSWORD@HOST:PORT
    #[arg(long, value_name = "HOST:PORT", help_heading = "Network")]
    upstream_proxy: Option<String>,
}

impl NetworkArgs {
    /// Whether something in these flags may be secret: a password, or a command that has one in it.
    pub(crate) fn is_secret(&self) -> bool {
        !self.credential.is_empty() || self.upstream_proxy.is_some()
    }

    /// Name of the first of these flags that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        first_given([
            ("--credential", !self.credential.is_empty()),
            ("--upstream-proxy", self.upstream_proxy.is_some()),
        ])
    }

    /// Network settings from these flags and `config.toml`. No credential is fetched yet.
    pub(crate) fn networking(&self, host: &Host, here: &Path) -> Result<Networking, Failure> {
        let home = host.context.home.as_deref();
        let read = |text: &String| {
            let CredentialRequest { name, source } = text.parse()?;
            Ok(CredentialRequest { name, source: source.map(|source| source.at(here, home)) })
        };
        let credentials = self.credential.iter().map(read).collect::<Result<_, _>>();
        let credentials = credentials.map_err(|error| Failure::credential(&error))?;
        let upstream = self.upstream(host)?;
        let settings = NetworkSettings::load(&host.context.state_dir.join("config.toml"));
        let settings = settings.map_err(|error| Failure::new(error.to_string()))?;
        let mut networking =
            Networking::new(credentials, upstream, &settings).map_err(|error| Failure::credential(&error))?;
        let binary = host.context.binary.as_ref().map(|binary| binary.clone().into_os_string());
        networking.helper = binary.into_iter().chain([proxy::HELPER.into()]).collect();
        let certificates = host.env.iter().find(|(name, _)| name == "SSL_CERT_FILE");
        networking.certificates = certificates.map(|(_, file)| file.into());
        Ok(networking)
    }

    /// Upstream proxy from the flag or the variable. Not read by clap, which would refuse runs without a filter because
    /// of the variable, and would print its value.
    fn upstream(&self, host: &Host) -> Result<Option<UpstreamProxy>, Failure> {
        let variable = || host.env.iter().find(|(name, _)| name == UPSTREAM).map(|(_, value)| value);
        let (from, text) = match (&self.upstream_proxy, variable()) {
            (Some(text), _) => ("--upstream-proxy", text.clone()),
            (None, Some(value)) if !value.is_empty() => (UPSTREAM, value.to_string_lossy().into_owned()),
            _ => return Ok(None),
        };
        text.parse().map(Some).map_err(|error| Failure::usage(format!("{from}: {error}")))
    }
}
