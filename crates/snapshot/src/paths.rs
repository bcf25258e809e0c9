//! Paths of any bytes in JSON: a string if they are UTF-8, otherwise an object with the bytes in hexadecimal digits.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nono_sys::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub fn from_bytes(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

pub fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathForm {
    Text(String),
    Bytes { hex: String },
}

fn form(path: &Path) -> PathForm {
    match path.to_str() {
        Some(text) => PathForm::Text(text.to_owned()),
        None => PathForm::Bytes { hex: hex::encode(bytes(path)) },
    }
}

fn path(form: PathForm) -> Option<PathBuf> {
    match form {
        PathForm::Text(text) => Some(text.into()),
        PathForm::Bytes { hex } => hex::decode(&hex).map(|bytes| std::ffi::OsString::from_vec(bytes).into()),
    }
}

pub fn serialize<S: Serializer>(value: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    form(value).serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    path(PathForm::deserialize(deserializer)?).ok_or_else(|| serde::de::Error::custom("not a path"))
}

pub mod list {
    use super::{PathBuf, PathForm, form, path};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        value.iter().map(|one| form(one)).collect::<Vec<PathForm>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        let all: Option<Vec<PathBuf>> =
            Vec::<PathForm>::deserialize(deserializer)?.into_iter().map(path).collect();
        all.ok_or_else(|| serde::de::Error::custom("not a path"))
    }
}

/// An optional path.
pub mod option {
    use super::{PathBuf, PathForm, form, path};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde hands it in so")]
    pub fn serialize<S: Serializer>(value: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_deref().map(form).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        let wrong = || serde::de::Error::custom("not a path");
        Option::<PathForm>::deserialize(deserializer)?.map(|form| path(form).ok_or_else(wrong)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct One(#[serde(with = "super")] PathBuf);

    #[test]
    fn any_bytes_go_there_and_back() {
        for name in [&b"/plain"[..], b"/\xff\xfe", b"/caf\xc3\xa9", b"/new\nline"] {
            let one = One(from_bytes(name).to_owned());
            let json = serde_json::to_string(&one).unwrap();
            assert_eq!(serde_json::from_str::<One>(&json).unwrap(), one);
        }
        for wrong in [r#"{"hex":"0"}"#, r#"{"hex":"+1"}"#, r#"{"hex":"\u00e9"}"#, "1"] {
            assert!(serde_json::from_str::<One>(wrong).is_err(), "{wrong}");
        }
    }
}
