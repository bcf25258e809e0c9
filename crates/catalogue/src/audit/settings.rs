//! Audit settings in `config.toml` in nono's state folder.

use std::path::Path;

use nono_audit::redact::Changes;
use nono_policy::UnknownKey;
use toml::{Table, Value};

use super::error::AuditError;
use crate::config_file::{self, SettingProblem, Unusable};

/// `[audit.redaction] flags = [], headers = [], query_keys = [], env = []`, and `not_…` for each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditSettings {
    pub redaction: Changes,
}

impl AuditSettings {
    /// Load the settings; the defaults if there is no file. An unknown key or a wrong type is an error that names it.
    pub fn load(file: &Path) -> Result<AuditSettings, AuditError> {
        read(file).map_err(|error| match error {
            Unusable::Io(source) => AuditError::Io { path: file.to_owned(), source },
            Unusable::Wrong(source) => AuditError::Settings { path: file.to_owned(), source },
        })
    }
}

fn read(file: &Path) -> Result<AuditSettings, Unusable> {
    Ok(parse(&config_file::section(file, "audit")?.unwrap_or_default())?)
}

fn below<'a>(table: &'a Table, key: &str, name: &str) -> Result<Option<&'a Table>, SettingProblem> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::Table(table)) => Ok(Some(table)),
        Some(_) => Err(SettingProblem::key(name, "should be a table")),
    }
}

fn parse(audit: &Table) -> Result<AuditSettings, SettingProblem> {
    if let Some(key) = audit.keys().find(|key| *key != "redaction") {
        return Err(UnknownKey::new("audit", key, &["redaction"]).into());
    }
    let mut settings = AuditSettings::default();
    let redaction = below(audit, "redaction", "audit.redaction")?;
    for (key, value) in redaction.into_iter().flatten() {
        let wrong = |why| move || SettingProblem::key(format!("audit.redaction.{key}"), why);
        let unknown = || UnknownKey::new("audit.redaction", key, REDACTION_KEYS);
        let list = list(&mut settings.redaction, key).ok_or_else(unknown)?;
        *list = names(value).ok_or_else(wrong("should be a list of names"))?;
    }
    Ok(settings)
}

const REDACTION_KEYS: &[&str] =
    &["flags", "headers", "query_keys", "env", "not_flags", "not_headers", "not_query_keys", "not_env"];

fn list<'a>(changes: &'a mut Changes, key: &str) -> Option<&'a mut Vec<String>> {
    let at = REDACTION_KEYS.iter().position(|known| *known == key)?;
    let Changes { flags, headers, query_keys, env, not_flags, not_headers, not_query_keys, not_env } =
        changes;
    [flags, headers, query_keys, env, not_flags, not_headers, not_query_keys, not_env].into_iter().nth(at)
}

fn names(value: &Value) -> Option<Vec<String>> {
    let name = |value: &Value| value.as_str().filter(|name| !name.trim().is_empty()).map(ToOwned::to_owned);
    value.as_array()?.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<AuditSettings, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        AuditSettings::load(&file)
            .map_err(|error| error.to_string().replace(&*file.to_string_lossy(), "FILE"))
    }

    #[test]
    fn what_a_person_may_write() {
        assert_eq!(load(""), Ok(AuditSettings::default()));
        assert_eq!(load("[rollback]\nmax_sessions = 1\n"), Ok(AuditSettings::default()));
        let settings = load("[audit.redaction]\nflags = ['--magic']\nnot_env = ['MY_KEY']\n").unwrap();
        assert_eq!(settings.redaction.flags, ["--magic"]);
        assert_eq!(settings.redaction.not_env, ["MY_KEY"]);
        for (text, error) in [
            ("audit = 1", "FILE: `audit` should be a table"),
            ("[audit]\nredact = 1", "FILE: unknown key \"audit.redact\" (nearest: \"audit.redaction\")"),
            ("[audit]\nredaction = 1", "FILE: `audit.redaction` should be a table"),
            (
                "[audit.redaction]\nflag = []",
                "FILE: unknown key \"audit.redaction.flag\" (nearest: \"audit.redaction.flags\")",
            ),
            ("[audit.redaction]\nflags = 'a'", "FILE: `audit.redaction.flags` should be a list of names"),
            ("[audit.redaction]\nflags = ['']", "FILE: `audit.redaction.flags` should be a list of names"),
        ] {
            assert_eq!(load(text), Err(error.to_owned()));
        }
    }
}
