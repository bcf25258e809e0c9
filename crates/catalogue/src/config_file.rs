//! Access to single sections of `config.toml` in nono's state folder.

use std::io;
use std::path::Path;

use nono_policy::UnknownKey;
use thiserror::Error;
use toml::{Table, Value};

use crate::own_file;

/// Reasons why a section cannot be read.
#[derive(Debug, Error)]
pub(crate) enum Unusable {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Wrong(#[from] SettingProblem),
}

/// Part of the file that is wrong.
#[derive(Debug, Error)]
pub enum SettingProblem {
    #[error("it is not UTF-8 text")]
    NotText,
    #[error(transparent)]
    Syntax(Box<toml::de::Error>),
    #[error("`{key}` {why}")]
    Key { key: String, why: String },
    #[error(transparent)]
    Unknown(#[from] UnknownKey),
}

impl SettingProblem {
    pub(crate) fn key(key: impl Into<String>, why: impl Into<String>) -> SettingProblem {
        SettingProblem::Key { key: key.into(), why: why.into() }
    }
}

/// The section of this name; `None` if the file or the section does not exist.
pub(crate) fn section(file: &Path, name: &str) -> Result<Option<Table>, Unusable> {
    match value(file, name)? {
        None => Ok(None),
        Some(Value::Table(section)) => Ok(Some(section)),
        Some(_) => Err(SettingProblem::key(name, "should be a table").into()),
    }
}

/// The value of this name, if there is one.
pub(crate) fn value(file: &Path, name: &str) -> Result<Option<Value>, Unusable> {
    let bytes = match own_file::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let text = String::from_utf8(bytes).map_err(|_| SettingProblem::NotText)?;
    let mut table: Table = text.parse().map_err(|error| SettingProblem::Syntax(Box::new(error)))?;
    Ok(table.remove(name))
}
