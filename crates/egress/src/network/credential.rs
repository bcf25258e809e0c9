//! `--credential NAME[=SOURCE]`: the service, and the source of its secret.
//!
//! Secrets are fetched outside the sandbox, before the command starts, and go to the proxy's process over its socket.
//! A file that holds one is closed to the command; a variable that holds one does not reach it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nono_policy::ResolvedPolicy;
use nono_proxy::Secret;
use thiserror::Error;

use super::command::{self, CommandError};
use super::services::{self, ServiceSpec};
use super::settings::{NetworkSettings, is_name};
use nono_supervisor::program;
use nono_supervisor::trusted::{self, Secrecy, TrustError};

const MAX_SECRET: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    Env(String),
    File(PathBuf),
    /// Command line for `/bin/sh`.
    Command(String),
    Keyring {
        service: String,
        user: Option<String>,
    },
}

/// One `--credential`, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialRequest {
    pub name: String,
    pub source: Option<SecretSource>,
}

/// Reason why a credential cannot be used. The source is never repeated: the user may have written the secret itself
/// there.
#[derive(Debug, Error)]
pub enum CredentialError {
    #[error("--credential needs a name: use letters, digits, - and _")]
    Name,
    #[error("--credential {name}: the source of the secret is not valid")]
    Source { name: String },
    #[error("--credential {name}: unknown service")]
    Unknown { name: String, known: Vec<String> },
    #[error("--credential {name} is given twice")]
    Twice { name: String },
    #[error("--credential {name}: no default variable; use --credential {name}=env:VAR")]
    NoVariable { name: String },
    #[error("--credential {name}: {} {} not set", .variables.join(" and "), are(.variables))]
    NotSet { name: String, variables: Vec<String> },
    #[error("--credential {name}: {error}")]
    File { name: String, error: TrustError },
    #[error("--credential {name}: its command: {error}")]
    Command { name: String, error: CommandError },
    #[error("--credential {name}: the keyring needs secret-tool, which is not installed")]
    NoKeyring { name: String },
    #[error("--credential {name}: the keyring: {error}")]
    Keyring { name: String, error: CommandError },
    #[error("--credential {name}: the secret is empty, or has characters that no header can carry")]
    Secret { name: String },
}

fn are(names: &[String]) -> &'static str {
    if names.len() == 1 { "is" } else { "are" }
}

const SOURCES: &str = "write NAME=env:VAR, NAME=file:PATH, NAME=cmd:COMMAND or NAME=keyring:SERVICE[/USER]";

impl CredentialError {
    /// Next step for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            CredentialError::Name
            | CredentialError::Source { .. }
            | CredentialError::NoVariable { .. }
            | CredentialError::NotSet { .. } => Some(SOURCES.to_owned()),
            CredentialError::Unknown { known, .. } => Some(format!(
                "known are {}; describe others in config.toml: [credentials.NAME] host = \"…\"",
                known.join(", ")
            )),
            CredentialError::File { error, .. } => error.hint(),
            CredentialError::NoKeyring { .. } => {
                Some("it is in the package libsecret-tools; or use cmd:COMMAND".to_owned())
            }
            _ => None,
        }
    }

    /// Whether it is a usage error, independent of the machine.
    pub fn is_usage(&self) -> bool {
        use CredentialError::{Name, NoVariable, Source, Twice, Unknown};
        matches!(self, Name | Source { .. } | Unknown { .. } | Twice { .. } | NoVariable { .. })
    }
}

impl FromStr for CredentialRequest {
    type Err = CredentialError;

    fn from_str(text: &str) -> Result<CredentialRequest, CredentialError> {
        let (name, source) = match text.split_once('=') {
            Some((name, source)) => (name, Some(source)),
            None => (text, None),
        };
        if !is_name(name) {
            return Err(CredentialError::Name);
        }
        let wrong = || CredentialError::Source { name: name.to_owned() };
        let source = source.map(|text| SecretSource::read(text).ok_or_else(wrong)).transpose()?;
        Ok(CredentialRequest { name: name.to_owned(), source })
    }
}

impl SecretSource {
    fn read(text: &str) -> Option<SecretSource> {
        let (kind, rest) = text.split_once(':')?;
        if rest.is_empty() {
            return None;
        }
        match kind {
            "env" => (!rest.contains(['=', '\0'])).then(|| SecretSource::Env(rest.to_owned())),
            "file" => Some(SecretSource::File(rest.into())),
            "cmd" => Some(SecretSource::Command(rest.to_owned())),
            "keyring" => {
                let (service, user) = match rest.rsplit_once('/') {
                    Some((service, user)) => (service, Some(user)),
                    None => (rest, None),
                };
                let fine = !service.is_empty() && user != Some("");
                fine.then(|| SecretSource::Keyring {
                    service: service.to_owned(),
                    user: user.map(str::to_owned),
                })
            }
            _ => None,
        }
    }

    /// Source with an absolute path. `~/` is the home folder: no shell expands it after a `:`.
    #[must_use]
    pub fn at(self, here: &Path, home: Option<&Path>) -> SecretSource {
        match self {
            SecretSource::File(path) => match (path.strip_prefix("~"), home) {
                (Ok(rest), Some(home)) => SecretSource::File(home.join(rest)),
                _ => SecretSource::File(here.join(path)),
            },
            other => other,
        }
    }
}

/// A service and the possible sources of its secret: the first that has it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    pub service: ServiceSpec,
    sources: Vec<SecretSource>,
}

impl Credential {
    /// Look up the service: the user's own first, then the known ones.
    pub fn new(
        request: CredentialRequest,
        settings: &NetworkSettings,
    ) -> Result<Credential, CredentialError> {
        let CredentialRequest { name, source } = request;
        let own = settings.services.get(&name).cloned();
        let Some(service) = own.or_else(|| services::known(&name)) else {
            let known = settings.services.keys().cloned().chain(services::names().map(str::to_owned));
            let known: BTreeSet<_> = known.collect();
            return Err(CredentialError::Unknown { name, known: known.into_iter().collect() });
        };
        let sources: Vec<SecretSource> = match source {
            Some(source) => vec![source],
            None => service.variables.iter().cloned().map(SecretSource::Env).collect(),
        };
        if sources.is_empty() {
            return Err(CredentialError::NoVariable { name });
        }
        Ok(Credential { service, sources })
    }

    /// File that holds the secret, if any.
    pub fn file(&self) -> Option<&Path> {
        self.sources.iter().find_map(|source| match source {
            SecretSource::File(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// Variables that hold the secret, or may.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let named = self.sources.iter().filter_map(|source| match source {
            SecretSource::Env(name) => Some(name.as_str()),
            _ => None,
        });
        named.chain(self.service.variables.iter().map(String::as_str))
    }

    /// The secret, if it is in a variable.
    pub(super) fn in_environment<'a>(&self, env: &'a [(OsString, OsString)]) -> Option<&'a str> {
        let found = self.sources.iter().find_map(|source| match source {
            SecretSource::Env(name) => value(env, name),
            _ => None,
        });
        found?.to_str()
    }

    pub(super) fn fetch(&self, around: &SecretSources<'_>) -> Result<Secret, CredentialError> {
        let text = self.text(around)?;
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(CredentialError::Secret { name: self.service.name.clone() });
        }
        Ok(Secret::new(text))
    }

    fn text(&self, around: &SecretSources<'_>) -> Result<String, CredentialError> {
        let name = &self.service.name;
        let mut variables = Vec::new();
        for source in &self.sources {
            match source {
                SecretSource::Env(variable) => match value(around.env, variable) {
                    Some(value) => {
                        let value = value.to_str().map(str::to_owned);
                        return value.ok_or_else(|| CredentialError::Secret { name: name.clone() });
                    }
                    None => variables.push(variable.clone()),
                },
                SecretSource::File(path) => return around.file(name, path),
                SecretSource::Command(script) => return around.command(name, script),
                SecretSource::Keyring { service, user } => {
                    return around.keyring(name, service, user.as_deref());
                }
            }
        }
        Err(CredentialError::NotSet { name: name.clone(), variables })
    }
}

/// Environment from which secrets are fetched.
#[derive(Debug)]
pub(super) struct SecretSources<'a> {
    /// Grants of the command.
    pub(super) policy: &'a ResolvedPolicy,
    pub(super) env: &'a [(OsString, OsString)],
    pub(super) cwd: &'a Path,
}

impl SecretSources<'_> {
    fn file(&self, name: &str, path: &Path) -> Result<String, CredentialError> {
        let wrong = |error| CredentialError::File { name: name.to_owned(), error };
        let (text, _) = trusted::read(path, self.policy, Secrecy::Secret, MAX_SECRET).map_err(wrong)?;
        Ok(without_line_break(text))
    }

    fn command(&self, name: &str, script: &str) -> Result<String, CredentialError> {
        let wrong = |error| CredentialError::Command { name: name.to_owned(), error };
        let args = ["-c".into(), script.into()];
        let said = command::output(Path::new("/bin/sh"), &args, self.env, self.cwd, command::PATIENCE);
        said.map(without_line_break).map_err(wrong)
    }

    fn keyring(&self, name: &str, service: &str, user: Option<&str>) -> Result<String, CredentialError> {
        let name = name.to_owned();
        keyring(service, user, self.env, self.cwd).map_err(|error| match error {
            KeyringError::Missing => CredentialError::NoKeyring { name },
            KeyringError::Failed(error) => CredentialError::Keyring { name, error },
        })
    }
}

/// Value of a variable, unless it is empty.
pub(crate) fn value<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let found = env.iter().find(|(given, _)| given == name);
    found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
}

#[derive(Debug, Error)]
pub(crate) enum KeyringError {
    #[error("the keyring needs secret-tool, which is not installed")]
    Missing,
    #[error("the keyring: {0}")]
    Failed(#[from] CommandError),
}

/// Look up a secret in the keyring.
pub(crate) fn keyring(
    service: &str,
    user: Option<&str>,
    env: &[(OsString, OsString)],
    cwd: &Path,
) -> Result<String, KeyringError> {
    let tool = program::find(OsStr::new("secret-tool"), value(env, "PATH"), cwd);
    let tool = tool.map_err(|_| KeyringError::Missing)?;
    let mut args: Vec<OsString> = vec!["lookup".into(), "service".into(), service.into()];
    args.extend(user.into_iter().flat_map(|user| ["username".into(), user.into()]));
    Ok(without_line_break(command::output(&tool, &args, env, cwd, command::PATIENCE)?))
}

/// Remove the final line break that files and programs end with.
fn without_line_break(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
#[path = "credential_tests.rs"]
mod tests;
