//! Environment of a command as a program passes it: checked, sorted, one value per name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use thiserror::Error;

/// An environment variable that is not passed to a command.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EnvError {
    #[error("environment variable {name:?} makes the loader run other code, and is not passed on")]
    Loader { name: OsString },
    #[error("environment variable {name:?}: a name must not be empty or contain \"=\"")]
    Name { name: OsString },
    #[error("environment variable {name:?} contains a NUL byte")]
    Nul { name: OsString },
}

/// The variables sorted, one per name.
pub fn sorted(given: &[(OsString, OsString)]) -> Result<Vec<(OsString, OsString)>, EnvError> {
    let mut env = BTreeMap::new();
    for (name, value) in given {
        check_variable(name, value)?;
        env.insert(name.clone(), value.clone());
    }
    Ok(env.into_iter().collect())
}

fn check_variable(name: &OsStr, value: &OsStr) -> Result<(), EnvError> {
    let bytes = name.as_bytes();
    let name = || name.to_owned();
    if has_nul(&name()) || has_nul(value) {
        return Err(EnvError::Nul { name: name() });
    }
    if bytes.is_empty() || bytes.contains(&b'=') {
        return Err(EnvError::Name { name: name() });
    }
    let loads = bytes.starts_with(b"LD_") || bytes.starts_with(b"DYLD_");
    if loads || matches!(bytes, b"LIBPATH" | b"SHLIB_PATH") {
        return Err(EnvError::Loader { name: name() });
    }
    Ok(())
}

pub fn has_nul(text: &OsStr) -> bool {
    text.as_bytes().contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables() {
        let one = |name: &str, value: &str| sorted(&[(name.into(), value.into())]);
        for name in ["LD_PRELOAD", "LD_", "DYLD_INSERT_LIBRARIES", "LIBPATH", "SHLIB_PATH"] {
            assert_eq!(one(name, ""), Err(EnvError::Loader { name: name.into() }));
        }
        for name in ["", "A=B"] {
            assert_eq!(one(name, ""), Err(EnvError::Name { name: name.into() }));
        }
        assert!(matches!(one("A\0", ""), Err(EnvError::Nul { .. })));
        assert!(matches!(one("A", "\0"), Err(EnvError::Nul { .. })));
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let env = sorted(&[pair("B", "1"), pair("A", "2"), pair("B", "3"), pair("OLD_X", "")]).unwrap();
        assert_eq!(env, [pair("A", "2"), pair("B", "3"), pair("OLD_X", "")]);
    }
}
