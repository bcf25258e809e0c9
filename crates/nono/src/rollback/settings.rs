//! `config.toml` in nono's state folder, as far as it concerns rollback.

use std::path::Path;

use toml::Table;

use super::error::RollbackError;
use crate::config_file::{self, Unusable};

/// `[rollback] max_sessions = 10, max_storage_gb = 5`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub max_sessions: usize,
    pub max_storage_gb: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { max_sessions: 10, max_storage_gb: 5.0 }
    }
}

impl Settings {
    /// The file's settings; the defaults where there is no file. An unknown key or a wrong type is an error that names it.
    pub fn load(file: &Path) -> Result<Settings, RollbackError> {
        let wrong = |what: String| RollbackError::Settings { path: file.to_owned(), what };
        match config_file::section(file, "rollback") {
            Ok(None) => Ok(Settings::default()),
            Ok(Some(rollback)) => parse(&rollback).map_err(wrong),
            Err(Unusable::Io(error)) => Err(RollbackError::io(file)(error)),
            Err(Unusable::Wrong(what)) => Err(wrong(what)),
        }
    }

    /// `max_storage_gb` in bytes.
    pub fn max_bytes(&self) -> u64 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive; a cast ends at the largest"
        )]
        let bytes = (self.max_storage_gb * f64::from(1 << 30)) as u64;
        bytes
    }
}

fn parse(table: &Table) -> Result<Settings, String> {
    let mut settings = Settings::default();
    for (key, value) in table {
        match key.as_str() {
            "max_sessions" => {
                let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
                let number = number.filter(|number| *number > 0);
                settings.max_sessions =
                    number.ok_or("`rollback.max_sessions` should be a whole number from 1 on")?;
            }
            "max_storage_gb" => {
                #[allow(clippy::cast_precision_loss, reason = "nobody has that many gigabytes")]
                let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
                let number = number.filter(|number| number.is_finite() && *number > 0.0);
                settings.max_storage_gb =
                    number.ok_or("`rollback.max_storage_gb` should be a number above 0")?;
            }
            _ => return Err(format!("`rollback.{key}` is not known")),
        }
    }
    Ok(settings)
}
