//! `config.toml`.

use std::fs;

use nono::checkpoints::Ignored;
use nono::rollback::{RollbackError, RollbackSettings};

#[test]
fn settings_are_read_and_mistakes_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    assert_eq!(RollbackSettings::load(&file).unwrap(), RollbackSettings::default());
    for (text, sessions, storage) in [
        ("", 10, 5.0),
        ("[other]\nmax_sessions = 'x'\n", 10, 5.0),
        ("[rollback]\nmax_sessions = 3\n", 3, 5.0),
        ("[rollback]\nmax_storage_gb = 2\n", 10, 2.0),
        ("[rollback]\nmax_storage_gb = 0.5\nmax_sessions = 1\n", 1, 0.5),
    ] {
        fs::write(&file, text).unwrap();
        let settings = RollbackSettings::load(&file).unwrap();
        let expected = RollbackSettings {
            max_sessions: sessions,
            max_storage_gb: storage,
            ..RollbackSettings::default()
        };
        assert_eq!(settings, expected, "{text}");
    }
    fs::write(&file, "[rollback]\nignored = \"leave-out\"\nmax_ignored_folder_gb = 0.5\n").unwrap();
    let settings = RollbackSettings::load(&file).unwrap();
    assert_eq!((settings.ignored, settings.max_ignored_folder()), (Ignored::LeaveOut, 1 << 29));
    for (text, days) in [("max_age_days = 30", Some(30)), ("max_age_days = 0", None)] {
        fs::write(&file, format!("[rollback]\n{text}\n")).unwrap();
        assert_eq!(RollbackSettings::load(&file).unwrap().max_age_days, days, "{text}");
    }
    fs::write(&file, "[rollback]\nmax_storage_gb = 0.5\n").unwrap();
    assert_eq!(RollbackSettings::load(&file).unwrap().max_bytes(), 1 << 29);
    for (text, named) in [
        ("[rollback]\nmax_sesions = 3\n", "rollback.max_sesions"),
        ("[rollback]\nmax_sessions = 0\n", "rollback.max_sessions"),
        ("[rollback]\nmax_sessions = 1.5\n", "rollback.max_sessions"),
        ("[rollback]\nmax_sessions = -1\n", "rollback.max_sessions"),
        ("[rollback]\nmax_age_days = -1\n", "rollback.max_age_days"),
        ("[rollback]\nmax_age_days = 'week'\n", "rollback.max_age_days"),
        ("[rollback]\nmax_storage_gb = 'much'\n", "rollback.max_storage_gb"),
        ("[rollback]\nmax_storage_gb = nan\n", "rollback.max_storage_gb"),
        ("[rollback]\nignored = true\n", "rollback.ignored"),
        ("[rollback]\nignored = \"maybe\"\n", "rollback.ignored"),
        ("[rollback]\nmax_ignored_folder_gb = 0\n", "rollback.max_ignored_folder_gb"),
        ("rollback = 1\n", "rollback"),
        ("[rollback\n", "config.toml"),
    ] {
        fs::write(&file, text).unwrap();
        let error = RollbackSettings::load(&file).unwrap_err();
        assert!(matches!(error, RollbackError::Settings { .. }), "{text}");
        let said = error.to_string();
        assert!(said.contains(named) && said.contains("config.toml"), "{said}");
    }
}
