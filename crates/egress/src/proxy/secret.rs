//! Source of a route's secret, and fetching it. Error messages contain no part of the secret.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nono_proxy::credential::{CredentialFault, check_secret};
use nono_sys::errno;
use thiserror::Error;

use crate::network::{KeyringError, keyring, value};

const MAX_SECRET: u64 = 64 << 10;
/// Keyring service used if a key names none.
const SERVICE: &str = "nono";

/// Environment and working directory of the caller, from which secrets are fetched.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
}

/// Reason a secret cannot be used.
#[derive(Debug, Error)]
pub(super) enum SecretError {
    #[error("{0}:// keys are not supported")]
    Scheme(String),
    #[error("the environment variable {0} is not set")]
    NotSet(String),
    #[error("the environment variable {0} is not text")]
    NotText(String),
    #[error("the environment variable {0} is not set, and {1}")]
    Nowhere(String, #[source] KeyringError),
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    #[error("{} is not an absolute path", .0.display())]
    Relative(PathBuf),
    #[error("{} is not a regular file", .0.display())]
    NotFile(PathBuf),
    #[error("{} cannot be read: {}", .0.display(), errno::describe(.1))]
    Unreadable(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Unfit(#[from] CredentialFault),
}

/// Whether a key is a URI that names its source.
pub(super) fn is_uri(key: &str) -> bool {
    key.contains("://")
}

pub(super) fn fetch(key: &str, around: &Surroundings) -> Result<String, SecretError> {
    let text = match key.split_once("://") {
        None => by_name(key, around),
        Some(("env", name)) => variable(name, around),
        Some(("file", path)) => file(Path::new(path)),
        Some(("keyring", entry)) => {
            let (service, user) = entry.split_once('/').unwrap_or((entry, ""));
            Ok(keyring(service, (!user.is_empty()).then_some(user), &around.env, &around.cwd)?)
        }
        Some((scheme, _)) => Err(SecretError::Scheme(scheme.to_owned())),
    }?;
    check_secret(&text, true)?;
    Ok(text)
}

/// Variable of that name, as it is or in capitals; else an entry of the keyring.
fn by_name(key: &str, around: &Surroundings) -> Result<String, SecretError> {
    let capitals = key.to_uppercase();
    if let Some(name) = [key, &capitals].into_iter().find(|name| value(&around.env, name).is_some()) {
        return variable(name, around);
    }
    keyring(SERVICE, Some(key), &around.env, &around.cwd)
        .map_err(|error| SecretError::Nowhere(key.to_owned(), error))
}

fn variable(name: &str, around: &Surroundings) -> Result<String, SecretError> {
    let found = value(&around.env, name).ok_or_else(|| SecretError::NotSet(name.to_owned()))?;
    found.to_str().map(str::to_owned).ok_or_else(|| SecretError::NotText(name.to_owned()))
}

fn file(path: &Path) -> Result<String, SecretError> {
    if !path.is_absolute() {
        return Err(SecretError::Relative(path.to_owned()));
    }
    let unreadable = |error| SecretError::Unreadable(path.to_owned(), error);
    // A FIFO would wait for a writer.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(SecretError::NotFile(path.to_owned()));
    }
    let mut text = String::new();
    file.take(MAX_SECRET).read_to_string(&mut text).map_err(unreadable)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}
