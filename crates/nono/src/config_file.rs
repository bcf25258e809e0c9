//! Access to single sections of `config.toml` in nono's state folder.

use std::io;
use std::path::Path;

use toml::{Table, Value};

use crate::own_file;

/// Reasons why a section cannot be read.
#[derive(Debug)]
pub(crate) enum Unusable {
    Io(io::Error),
    /// Invalid content; the reason as text.
    Wrong(String),
}

/// The section of this name; `None` if the file or the section does not exist.
pub(crate) fn section(file: &Path, name: &str) -> Result<Option<Table>, Unusable> {
    match value(file, name)? {
        None => Ok(None),
        Some(Value::Table(section)) => Ok(Some(section)),
        Some(_) => Err(Unusable::Wrong(format!("`{name}` should be a table"))),
    }
}

/// The value of this name, if there is one.
pub(crate) fn value(file: &Path, name: &str) -> Result<Option<Value>, Unusable> {
    let bytes = match own_file::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Unusable::Io)?,
    };
    let text = String::from_utf8(bytes).map_err(|_| Unusable::Wrong("it is not UTF-8 text".to_owned()))?;
    let mut table: Table =
        text.parse().map_err(|error: toml::de::Error| Unusable::Wrong(error.to_string()))?;
    Ok(table.remove(name))
}
