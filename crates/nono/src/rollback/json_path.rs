//! Lists of paths of any bytes, in JSON: a string where it is text, else an object with the bytes in hexadecimal digits.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Bytes { hex: String },
}

fn form(path: &Path) -> Form {
    let hex = || {
        path.as_os_str().as_bytes().iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    path.to_str().map_or_else(|| Form::Bytes { hex: hex() }, |text| Form::Text(text.to_owned()))
}

fn path(form: Form) -> Option<PathBuf> {
    let hex = match form {
        Form::Text(text) => return Some(text.into()),
        Form::Bytes { hex } => hex,
    };
    let digits: Option<Vec<u32>> = hex.chars().map(|digit| digit.to_digit(16)).collect();
    let pairs = digits?;
    let (pairs, []) = pairs.as_chunks::<2>() else { return None };
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| u8::try_from(high << 4 | low).ok()).collect();
    bytes.map(|bytes| OsString::from_vec(bytes).into())
}

pub(super) fn serialize<S: Serializer>(value: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    value.iter().map(|one| form(one)).collect::<Vec<Form>>().serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let all: Option<Vec<PathBuf>> = Vec::<Form>::deserialize(deserializer)?.into_iter().map(path).collect();
    all.ok_or_else(|| serde::de::Error::custom("not a path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct All(#[serde(with = "super")] Vec<PathBuf>);

    #[test]
    fn any_bytes_go_there_and_back() {
        let names = [&b"/plain"[..], b"/\xff\xfe", b"/caf\xc3\xa9", b"/new\nline"];
        let all = All(names.iter().map(|name| OsString::from_vec(name.to_vec()).into()).collect());
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<All>(&json).unwrap(), all);
        for wrong in [r#"[{"hex":"0"}]"#, r#"[{"hex":"+1"}]"#, "[1]"] {
            assert!(serde_json::from_str::<All>(wrong).is_err(), "{wrong}");
        }
    }
}
