//! JSON of paths and snapshot ids: text if it is valid UTF-8, else the bytes in hexadecimal digits, so that none is
//! lost or confused. The same form as in the records of sessions.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nono_snapshot::SnapshotId;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Bytes that are usually text.
#[derive(Clone, Copy, Debug)]
pub struct JsonText<'a>(pub &'a [u8]);

impl Serialize for JsonText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(self.0) {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("hex", &nono_sys::hex::encode(self.0))?;
        map.end()
    }
}

pub(super) fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    JsonText(path.as_os_str().as_bytes()).serialize(serializer)
}

/// Serialise a number as a number, the name of a safety snapshot as a string.
pub(super) fn snapshot<S: Serializer>(id: &SnapshotId, serializer: S) -> Result<S::Ok, S::Error> {
    match id {
        SnapshotId::Number(number) => serializer.serialize_u32(*number),
        SnapshotId::Safety(name) => serializer.serialize_str(name),
    }
}
