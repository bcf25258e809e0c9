//! Checkpoint settings in `config.toml` in nono's state folder.

use std::io;
use std::path::{Path, PathBuf};

use nono_checkpoint::Config;
use nono_policy::UnknownKey;
use nono_sys::errno;
use thiserror::Error;
use toml::{Table, Value};

use crate::config_file::{self, SettingProblem, Unusable};
use crate::rollback::RollbackSettings;

/// Reason why the settings cannot be used.
#[derive(Debug, Error)]
pub enum SettingsError {
    #[error("{}: {}", path.display(), errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Wrong { path: PathBuf, source: SettingProblem },
}

/// Load the settings; the defaults if there is no file. An unknown key or a wrong type is an error that names it.
pub fn load(file: &Path) -> Result<Config, SettingsError> {
    read(file).map_err(|error| match error {
        Unusable::Io(source) => SettingsError::Io { path: file.to_owned(), source },
        Unusable::Wrong(source) => SettingsError::Wrong { path: file.to_owned(), source },
    })
}

fn read(file: &Path) -> Result<Config, Unusable> {
    let section = config_file::section(file, "checkpoints")?.unwrap_or_default();
    let config = apply(Config::default(), &section)?;
    // One setting for both: files without another copy are the same for runs and checkpoints.
    Ok(Config { ignored: RollbackSettings::read(file)?.ignored, ..config })
}

/// A setting given by the caller besides the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    Switch(bool),
    Number(i64),
}

/// Override settings of `config`, with the names and limits of the file.
pub fn with(config: Config, given: &[(&str, Given)]) -> Result<Config, SettingProblem> {
    let value = |given: Given| match given {
        Given::Switch(on) => Value::Boolean(on),
        Given::Number(number) => Value::Integer(number),
    };
    let table = given.iter().map(|(key, given)| ((*key).to_owned(), value(*given))).collect();
    apply(config, &table)
}

const KEYS: &[&str] = &[
    "enabled",
    "always",
    "auto_prune",
    "delete_orphans",
    "max_snapshots",
    "max_total_size_mb",
    "max_file_size_mb",
    "max_ignored_folder_mb",
    "max_files",
    "retention_days",
    "min_interval_hours",
];

fn apply(mut config: Config, table: &Table) -> Result<Config, SettingProblem> {
    for (key, value) in table {
        match key.as_str() {
            "enabled" => config.enabled = switch(key, value)?,
            "always" => config.always = switch(key, value)?,
            "auto_prune" => config.auto_prune = switch(key, value)?,
            "delete_orphans" => config.delete_orphans = switch(key, value)?,
            "max_snapshots" => config.max_snapshots = number(key, value, 1, u32::MAX)?,
            "max_total_size_mb" => config.max_total_size_mb = number(key, value, 1, MEGABYTES)?,
            "max_file_size_mb" => config.max_file_size_mb = number(key, value, 1, MEGABYTES)?,
            "max_ignored_folder_mb" => config.max_ignored_folder_mb = number(key, value, 1, MEGABYTES)?,
            "max_files" => config.max_files = number(key, value, 0, u64::MAX)?,
            "retention_days" => config.retention_days = number(key, value, 1, u32::MAX)?,
            "min_interval_hours" => config.min_interval_hours = number(key, value, 0, u32::MAX)?,
            _ => return Err(UnknownKey::new("checkpoints", key, KEYS).into()),
        }
    }
    Ok(config)
}

/// Largest number of megabytes whose bytes fit into 64 bits.
const MEGABYTES: u64 = u64::MAX >> 20;

fn wrong(key: &str, why: impl Into<String>) -> SettingProblem {
    SettingProblem::key(format!("checkpoints.{key}"), why)
}

fn switch(key: &str, value: &Value) -> Result<bool, SettingProblem> {
    value.as_bool().ok_or_else(|| wrong(key, "should be true or false"))
}

fn number<T>(key: &str, value: &Value, least: u8, most: T) -> Result<T, SettingProblem>
where
    T: TryFrom<i64> + From<u8> + PartialOrd,
{
    let number = value.as_integer().and_then(|number| T::try_from(number).ok());
    number
        .filter(|number| (T::from(least)..=most).contains(number))
        .ok_or_else(|| wrong(key, format!("should be a whole number from {least} on")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        load(&file).map_err(|error| error.to_string().replace(&*file.to_string_lossy(), "FILE"))
    }

    #[test]
    fn what_a_person_may_write() {
        assert_eq!(load(Path::new("/nowhere/config.toml")).unwrap(), Config::default());
        assert_eq!(loaded(""), Ok(Config::default()));
        assert_eq!(loaded("[rollback]\nmax_sessions = 1\n"), Ok(Config::default()));
        let all = "[rollback]\nignored = \"leave-out\"\n[checkpoints]\nenabled = true\nalways = true\nmax_snapshots = 3\nmax_total_size_mb = 4\n\
                   max_file_size_mb = 5\nmax_ignored_folder_mb = 9\nmax_files = 6\n\
                   auto_prune = false\nretention_days = 8\n\
                   delete_orphans = false\nmin_interval_hours = 0\n";
        let expected = Config {
            enabled: true,
            always: true,
            max_snapshots: 3,
            max_total_size_mb: 4,
            max_file_size_mb: 5,
            max_ignored_folder_mb: 9,
            ignored: nono_checkpoint::Ignored::LeaveOut,
            max_files: 6,
            auto_prune: false,
            retention_days: 8,
            delete_orphans: false,
            min_interval_hours: 0,
        };
        assert_eq!(loaded(all), Ok(expected));
    }

    #[test]
    fn what_is_given_besides_the_file() {
        let config = Config { max_snapshots: 3, max_files: 4, ..Config::default() };
        let given = [("enabled", Given::Switch(true)), ("max_files", Given::Number(0))];
        let expected = Config { enabled: true, max_files: 0, ..config.clone() };
        assert_eq!(with(config.clone(), &given).unwrap(), expected);
        for (given, error) in [
            (
                ("max_snapshots", Given::Number(0)),
                "`checkpoints.max_snapshots` should be a whole number from 1 on",
            ),
            (("enabled", Given::Number(1)), "`checkpoints.enabled` should be true or false"),
            (
                ("enable", Given::Switch(true)),
                "unknown key \"checkpoints.enable\" (nearest: \"checkpoints.enabled\")",
            ),
        ] {
            assert_eq!(with(config.clone(), &[given]).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, error) in [
            ("checkpoints = 1", "FILE: `checkpoints` should be a table"),
            (
                "[checkpoints]\nenable = true",
                "FILE: unknown key \"checkpoints.enable\" (nearest: \"checkpoints.enabled\")",
            ),
            ("[checkpoints]\nzzz = true", "FILE: unknown key \"checkpoints.zzz\""),
            ("[checkpoints]\nenabled = 'yes'", "FILE: `checkpoints.enabled` should be true or false"),
            (
                "[checkpoints]\nmax_snapshots = 0",
                "FILE: `checkpoints.max_snapshots` should be a whole number from 1 on",
            ),
            (
                "[checkpoints]\nretention_days = -7",
                "FILE: `checkpoints.retention_days` should be a whole number from 1 on",
            ),
            (
                "[rollback]\nignored = \"leaveout\"",
                "FILE: `rollback.ignored` should be \"capture\" or \"leave-out\"",
            ),
            (
                "[checkpoints]\nmax_files = 1.5",
                "FILE: `checkpoints.max_files` should be a whole number from 0 on",
            ),
            (
                "[checkpoints]\nmax_total_size_mb = 9223372036854775807",
                "FILE: `checkpoints.max_total_size_mb` should be a whole number from 1 on",
            ),
        ] {
            assert_eq!(loaded(text), Err(error.to_owned()));
        }
        assert!(loaded("[checkpoints\n").unwrap_err().starts_with("FILE: TOML parse error"));
    }
}
