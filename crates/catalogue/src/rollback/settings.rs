//! Rollback settings in `config.toml` in nono's state folder.

use std::path::Path;

use nono_checkpoint::Ignored;
use nono_policy::UnknownKey;
use toml::{Table, Value};

use super::error::RollbackError;
use crate::config_file::{self, SettingProblem, Unusable};

/// `[rollback] always = false, max_sessions = 10, max_age_days = 0, max_storage_gb = 5, ignored = "capture", max_ignored_folder_gb = 2`.
#[derive(Clone, Debug, PartialEq)]
pub struct RollbackSettings {
    /// Every supervised run takes snapshots unless told otherwise. `rollback = "always"` is short for it.
    pub always: bool,
    pub max_sessions: usize,
    /// Sessions that ended longer ago are pruned; None: no limit.
    pub max_age_days: Option<u32>,
    pub max_storage_gb: f64,
    /// Treatment of files ignored by git: no other copy of them exists.
    pub ignored: Ignored,
    /// A folder ignored by git is left out, and reported, if it is larger than this.
    pub max_ignored_folder_gb: f64,
}

impl Default for RollbackSettings {
    fn default() -> RollbackSettings {
        RollbackSettings {
            always: false,
            max_sessions: 10,
            max_age_days: None,
            max_storage_gb: 5.0,
            ignored: Ignored::Capture,
            max_ignored_folder_gb: 2.0,
        }
    }
}

impl RollbackSettings {
    /// Load the settings; the defaults if there is no file. An unknown key or a wrong type is an error that names it.
    pub fn load(file: &Path) -> Result<RollbackSettings, RollbackError> {
        RollbackSettings::read(file).map_err(|error| match error {
            Unusable::Io(source) => RollbackError::Io { path: file.to_owned(), source },
            Unusable::Wrong(source) => RollbackError::Settings { path: file.to_owned(), source },
        })
    }

    pub(crate) fn read(file: &Path) -> Result<RollbackSettings, Unusable> {
        match config_file::value(file, "rollback")? {
            None => Ok(RollbackSettings::default()),
            Some(Value::Table(rollback)) => Ok(parse(&rollback)?),
            Some(Value::String(word)) if word == "always" => {
                Ok(RollbackSettings { always: true, ..RollbackSettings::default() })
            }
            Some(_) => Err(SettingProblem::key("rollback", "should be a table, or \"always\"").into()),
        }
    }

    /// `max_storage_gb` in bytes.
    pub fn max_bytes(&self) -> u64 {
        bytes(self.max_storage_gb)
    }

    /// `max_ignored_folder_gb` in bytes.
    pub fn max_ignored_folder(&self) -> u64 {
        bytes(self.max_ignored_folder_gb)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; the cast saturates")]
fn bytes(gigabytes: f64) -> u64 {
    (gigabytes * f64::from(1 << 30)) as u64
}

/// Parse a number of gigabytes.
fn gigabytes(value: &Value) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "no store has that many gigabytes")]
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
    number.filter(|number| number.is_finite() && *number > 0.0)
}

const KEYS: &[&str] =
    &["always", "max_sessions", "max_age_days", "max_storage_gb", "max_ignored_folder_gb", "ignored"];

fn parse(table: &Table) -> Result<RollbackSettings, SettingProblem> {
    let mut settings = RollbackSettings::default();
    for (key, value) in table {
        let wrong = |why| move || SettingProblem::key(format!("rollback.{key}"), why);
        let not_positive = wrong("should be a number above 0");
        match key.as_str() {
            "always" => settings.always = value.as_bool().ok_or_else(wrong("should be true or false"))?,
            "max_sessions" => {
                let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
                let number = number.filter(|number| *number > 0);
                settings.max_sessions = number.ok_or_else(wrong("should be a whole number from 1 on"))?;
            }
            "max_age_days" => {
                let days = value.as_integer().and_then(|number| u32::try_from(number).ok());
                let days = days.ok_or_else(wrong("should be a whole number, 0 for no limit"))?;
                settings.max_age_days = Some(days).filter(|days| *days > 0);
            }
            "max_storage_gb" => settings.max_storage_gb = gigabytes(value).ok_or_else(not_positive)?,
            "max_ignored_folder_gb" => {
                settings.max_ignored_folder_gb = gigabytes(value).ok_or_else(not_positive)?;
            }
            "ignored" => {
                settings.ignored = match value.as_str() {
                    Some("capture") => Ignored::Capture,
                    Some("leave-out") => Ignored::LeaveOut,
                    _ => return Err(wrong("should be \"capture\" or \"leave-out\"")()),
                };
            }
            _ => return Err(UnknownKey::new("rollback", key, KEYS).into()),
        }
    }
    Ok(settings)
}
