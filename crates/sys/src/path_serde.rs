//! Paths in JSON, whatever bytes they hold.
//!
//! A path that is valid UTF-8 is written as a string; any other as `{"bytes": [..]}`, so that a policy with such a path
//! still round-trips exactly instead of failing to serialise.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathRepr<'a> {
    Text(Cow<'a, str>),
    Raw { bytes: Cow<'a, [u8]> },
}

pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => PathRepr::Text(text.into()),
        None => PathRepr::Raw { bytes: path.as_os_str().as_bytes().into() },
    }
    .serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(match PathRepr::deserialize(deserializer)? {
        PathRepr::Text(text) => PathBuf::from(text.into_owned()),
        PathRepr::Raw { bytes } => PathBuf::from(OsString::from_vec(bytes.into_owned())),
    })
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Lossless(#[serde(with = "self")] PathBuf);

/// Lists of paths.
pub mod list {
    use super::{Deserialize, Deserializer, Lossless, PathBuf, Serializer};

    pub fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| Lossless(path.clone())))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        let read = Vec::<Lossless>::deserialize(deserializer)?;
        Ok(read.into_iter().map(|path| path.0).collect())
    }
}

/// Optional paths.
pub mod optional {
    use super::{Deserialize, Deserializer, Lossless, PathBuf, Serialize, Serializer};

    // The signature that serde calls.
    #[allow(clippy::ref_option)]
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.clone().map(Lossless).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Lossless>::deserialize(deserializer)?.map(|path| path.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Holder(#[serde(with = "super")] PathBuf);

    #[test]
    fn text_stays_text_and_bytes_survive() {
        let text = serde_json::to_string(&Holder("/a b".into())).unwrap();
        assert_eq!(text, "\"/a b\"");
        let odd = Holder(PathBuf::from(OsString::from_vec(b"/x\xff".to_vec())));
        let json = serde_json::to_string(&odd).unwrap();
        assert_eq!(serde_json::from_str::<Holder>(&json).unwrap(), odd);
    }
}
