//! Placeholders for secrets inside the sandbox: the same for a service on this machine each time, since agents ask the
//! user about an unknown key and remember the answer.

use std::io;
use std::path::Path;

use nono_sys::fs::{make_file, write_whole};
use nono_sys::hex;
use ring::hmac;

const KEY: &str = "dummies.key";
const KEY_BYTES: usize = 32;

/// Placeholder of a service. It cannot be predicted without the state folder.
pub(super) fn of_service(state_dir: &Path, service: &str) -> io::Result<String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key(state_dir)?);
    let digits = hex::encode(hmac::sign(&key, service.as_bytes()).as_ref());
    Ok(format!("nono-dummy-{}", digits.get(..32).unwrap_or(&digits)))
}

/// Read the key, or create one: a new key makes agents ask again.
fn key(state_dir: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = state_dir.join(KEY);
    let read = || std::fs::read(&path).map(|bytes| <[u8; KEY_BYTES]>::try_from(bytes).ok());
    match read() {
        Ok(Some(key)) => return Ok(key),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(None) | Err(_) => {}
    }
    let key = nono_sys::random::bytes::<KEY_BYTES>()?;
    match make_file(&path, 0o600, &key) {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match read()? {
            Some(theirs) => Ok(theirs),
            // An incomplete key is replaced.
            None => write_whole(&path, &key).map(|()| key),
        },
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_the_same_on_a_machine_and_differs_elsewhere() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = of_service(one.path(), "anthropic").unwrap();
        assert_eq!(of_service(one.path(), "anthropic").unwrap(), first);
        assert_ne!(of_service(one.path(), "openai").unwrap(), first);
        assert_ne!(of_service(other.path(), "anthropic").unwrap(), first);
        assert!(first.starts_with("nono-dummy-") && first.len() == 43, "{first}");
        std::fs::write(one.path().join(KEY), "half").unwrap();
        assert_ne!(of_service(one.path(), "anthropic").unwrap(), first);
        assert_eq!(std::fs::read(one.path().join(KEY)).unwrap().len(), KEY_BYTES);
    }
}
