//! Lossless JSON serialisation of lists of paths and optional paths.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Lossless(#[serde(with = "nono_sys::path_serde")] PathBuf);

pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| Lossless(path.clone())))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let read = Vec::<Lossless>::deserialize(deserializer)?;
    Ok(read.into_iter().map(|path| path.0).collect())
}

pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Lossless, PathBuf, Serialize, Serializer};

    // The signature that serde calls.
    #[allow(clippy::ref_option)]
    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.clone().map(Lossless).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Lossless>::deserialize(deserializer)?.map(|path| path.0))
    }
}
