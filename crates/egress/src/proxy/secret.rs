//! Source of a route's secret, and fetching it. Error messages contain no part of the secret.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nono_proxy::credential::check_secret;
use nono_sys::errno;

use crate::network::{keyring, value};

const MAX_SECRET: u64 = 64 << 10;
/// Keyring service used if a key names none.
const SERVICE: &str = "nono";

/// Environment and working directory of the caller, from which secrets are fetched.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
}

impl Surroundings {
    fn variable(&self, name: &str) -> Option<&OsStr> {
        value(&self.env, name)
    }
}

/// Whether a key is a URI that names its source.
pub(super) fn is_uri(key: &str) -> bool {
    key.contains("://")
}

/// Fetch the secret, or return an error message.
pub(super) fn fetch(key: &str, around: &Surroundings) -> Result<String, String> {
    let text = match key.split_once("://") {
        None => by_name(key, around),
        Some(("env", name)) => variable(name, around),
        Some(("file", path)) => file(Path::new(path)),
        Some(("keyring", entry)) => {
            let (service, user) = entry.split_once('/').unwrap_or((entry, ""));
            from_keyring(service, (!user.is_empty()).then_some(user), around)
        }
        Some((scheme, _)) => Err(format!("{scheme}:// keys are not supported")),
    }?;
    check_secret(&text, true).map_err(|why| why.to_string())?;
    Ok(text)
}

/// Variable of that name, as it is or in capitals; else an entry of the keyring.
fn by_name(key: &str, around: &Surroundings) -> Result<String, String> {
    let capitals = key.to_uppercase();
    if let Some(name) = [key, &capitals].into_iter().find(|name| around.variable(name).is_some()) {
        return variable(name, around);
    }
    from_keyring(SERVICE, Some(key), around)
        .map_err(|why| format!("the environment variable {key} is not set, and {why}"))
}

fn variable(name: &str, around: &Surroundings) -> Result<String, String> {
    let value = around.variable(name).ok_or_else(|| format!("the environment variable {name} is not set"))?;
    value.to_str().map(str::to_owned).ok_or_else(|| format!("the environment variable {name} is not text"))
}

fn file(path: &Path) -> Result<String, String> {
    let wrong = |why: String| format!("{} {why}", path.display());
    if !path.is_absolute() {
        return Err(wrong("is not an absolute path".to_owned()));
    }
    let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {}", errno::describe(&error)));
    // A FIFO would wait for a writer.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(wrong("is not a regular file".to_owned()));
    }
    let mut text = String::new();
    file.take(MAX_SECRET).read_to_string(&mut text).map_err(unreadable)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

fn from_keyring(service: &str, user: Option<&str>, around: &Surroundings) -> Result<String, String> {
    keyring(service, user, &around.env, &around.cwd).map_err(|error| error.to_string())
}
