//! Edit of nono's own `config.toml`: sets `[checkpoints] enabled = true` and leaves everything else as it is.

use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, value};

use super::jsonc::position;
use super::{FileEdit, InstallError, Purpose, read, text};

fn parse(path: &Path, text: &str) -> Result<DocumentMut, InstallError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        InstallError::Malformed { path: path.to_owned(), line, column, what: error.message().to_owned() }
    })
}

/// Change that enables checkpoints; None if they are enabled.
pub(super) fn enable(state_dir: &Path) -> Result<Option<FileEdit>, InstallError> {
    let path = state_dir.join("config.toml");
    let before = read(&path)?;
    let old = text(&path, before.as_deref())?;
    let mut document = parse(&path, old)?;
    let section = document.entry("checkpoints").or_insert_with(|| Item::Table(Table::new()));
    let Some(table) = section.as_table_like_mut() else {
        let what = "`checkpoints` should be a table".to_owned();
        return Err(InstallError::Malformed { path, line: 1, column: 1, what });
    };
    if table.get("enabled").and_then(Item::as_bool) == Some(true) {
        return Ok(None);
    }
    match table.get_mut("enabled").and_then(Item::as_value_mut) {
        // Keep the comment after it.
        Some(old) => {
            let decor = old.decor().clone();
            *old = true.into();
            *old.decor_mut() = decor;
        }
        None => {
            table.insert("enabled", value(true));
        }
    }
    let after = Some(document.to_string().into_bytes());
    Ok(Some(FileEdit { path, leads_to: None, purpose: Purpose::Config, before, after }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(text: Option<&str>) -> Result<Option<String>, InstallError> {
        let dir = tempfile::tempdir().unwrap();
        if let Some(text) = text {
            std::fs::write(dir.path().join("config.toml"), text).unwrap();
        }
        let change = enable(dir.path())?;
        Ok(change.map(|change| String::from_utf8(change.after.unwrap()).unwrap()))
    }

    #[test]
    fn turned_on_with_everything_else_left_alone() {
        let on = |text| enabled(text).unwrap();
        assert_eq!(on(None).unwrap(), "[checkpoints]\nenabled = true\n");
        assert_eq!(on(Some("[checkpoints]\nenabled = true # mine\n")), None);
        assert_eq!(
            on(Some("# top\n[checkpoints] # here\nenabled = false # no\nmax_snapshots = 3\n")).unwrap(),
            "# top\n[checkpoints] # here\nenabled = true # no\nmax_snapshots = 3\n"
        );
        assert_eq!(
            on(Some("[rollback]\nmax_sessions = 3 # few\n")).unwrap(),
            "[rollback]\nmax_sessions = 3 # few\n\n[checkpoints]\nenabled = true\n"
        );
        assert_eq!(
            on(Some("checkpoints = { always = true }\n")).unwrap(),
            "checkpoints = { always = true , enabled = true }\n"
        );
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_place() {
        let wrong = enabled(Some("a = 1\nb = = 2\n")).unwrap_err().to_string();
        assert!(wrong.contains("config.toml:2:"), "{wrong}");
        let wrong = enabled(Some("checkpoints = 3\n")).unwrap_err().to_string();
        assert!(wrong.contains("`checkpoints` should be a table"), "{wrong}");
    }
}
