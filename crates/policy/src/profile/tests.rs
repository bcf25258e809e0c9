use std::fs;
use std::path::Path;

use super::parse::parse;
use super::*;
use crate::error::ProfileError;
use crate::request::ProfileRef;

fn refused(text: &str) -> ProfileError {
    parse(text, Path::new("p.json")).unwrap_err()
}

fn store(files: &[(&str, &str)]) -> (tempfile::TempDir, ProfileStore) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let store = ProfileStore::new(Some(dir.path().to_path_buf()));
    (dir, store)
}

fn name(name: &str) -> ProfileRef {
    ProfileRef::Name(name.into())
}

#[test]
fn every_built_in_profile_loads_and_builds_on_default() {
    let store = ProfileStore::new(None);
    let list = store.list();
    assert_eq!(list.len(), 12);
    for info in list {
        assert_eq!(info.error, None);
        assert!(info.description.is_some());
        let text = builtin::text(&info.name).unwrap();
        let profile = parse(text, Path::new(&info.name)).unwrap();
        assert_eq!(profile.name.as_ref(), Some(&info.name));
        let merged = store.resolve(&name(&info.name), &[]).unwrap();
        for host in &merged.network.allow_domain {
            assert!(host.parse::<crate::host_rule::HostRule>().is_ok(), "{}: {host}", info.name);
        }
        assert_eq!(merged.chain.first().map(String::as_str), Some("default"));
        assert_eq!(merged.name(), info.name);
        let access = if info.name == "default" { WorkdirAccess::None } else { WorkdirAccess::ReadWrite };
        assert_eq!(merged.workdir.access, access);
    }
}

#[test]
fn all_keys_of_the_format_are_read() {
    let text = r#"{
        // every key once
        "name": "p", "description": "d", "extends": ["a", "b"],
        "groups": {"include": ["rust"], "exclude": []},
        "filesystem": {
            "allow": ["/a"], "read": [{"path": "~/b", "optional": true}], "write": [], "allow_file": [],
            "read_file": [], "write_file": [], "deny": ["$WORKDIR/.env"], "bypass_protection": [], "unix_socket": []
        },
        "network": {"block": true, "allow_domain": ["*.x.org"], "allow_connect_port": [5432], "listen_port": []},
        "workdir": {"access": "readwrite"},
        "environment": {"allow_vars": ["A_*"], "deny_vars": [], "set_vars": {"K": "v"}},
        "rollback": {"enabled": true, "exclude_patterns": [], "exclude_globs": [], "force_include": [], "use_gitignore": false},
        "hooks": {"claude-code": {"install": "ask"}, "codex": {"install": "never"}},
        "interactive": false, /* and */ "security": {"capability_elevation": true},
    }"#;
    let profile = parse(text, Path::new("p.json")).unwrap();
    assert_eq!(profile.bases(), ["a", "b"]);
    assert!(profile.filesystem.read[0].optional());
    assert_eq!(profile.filesystem.read[0].path(), "~/b");
    assert_eq!(profile.rollback.use_gitignore, Some(false));
    assert_eq!(profile.security.capability_elevation, Some(true));
    let json = serde_json::to_value(&profile).unwrap();
    assert_eq!(serde_json::from_value::<Profile>(json).unwrap(), profile);
}

#[test]
fn unknown_keys_name_their_place_and_the_nearest_key() {
    let error = refused("{\n  \"filesystem\": {\n    \"alow\": []\n  }\n}");
    let ProfileError::UnknownKey { at, key, nearest } = &error else { panic!("{error}") };
    assert_eq!((at.line, at.column), (3, 5));
    assert_eq!(key, "filesystem.alow");
    assert_eq!(nearest.as_deref(), Some("filesystem.allow"));
    assert_eq!(
        error.to_string(),
        "p.json:3:5: unknown key \"filesystem.alow\" (nearest: \"filesystem.allow\")"
    );
    let error = refused(r#"{"filesystem": {"read": [{"path": "/x", "optionl": true}]}}"#);
    assert!(
        matches!(&error, ProfileError::UnknownKey { key, .. } if key == "filesystem.read[0].optionl"),
        "{error}"
    );
}

#[test]
fn wrong_types_and_values_say_what_was_expected() {
    let at_key = |text: &str| match refused(text) {
        ProfileError::WrongType { at, key, expected, found } => (at.line, at.column, key, expected, found),
        other => panic!("{text}: {other}"),
    };
    assert_eq!(
        at_key("{\n \"interactive\": \"yes\"}"),
        (2, 17, "interactive".into(), "boolean".into(), "string".into())
    );
    assert_eq!(at_key(r#"{"filesystem": {"read": "/x"}}"#).3, "array");
    assert_eq!(at_key(r#"{"filesystem": {"read": [1]}}"#).2, "filesystem.read[0]");
    assert_eq!(at_key(r#"{"extends": 3}"#).3, "string or array");
    assert_eq!(at_key("[]").2, "the profile");
    assert_eq!(at_key(r#"{"network": [false]}"#).2, "network");
    assert!(
        matches!(refused(r#"{"workdir": {"access": "all"}}"#), ProfileError::BadValue { value, .. } if value == "all")
    );
    let port = refused(r#"{"network": {"listen_port": [70000]}}"#);
    assert!(matches!(&port, ProfileError::BadValue { value, .. } if value == "70000"), "{port}");
    let missing = refused(r#"{"filesystem": {"read": [{"optional": true}]}}"#);
    assert!(missing.to_string().contains("\"path\" is missing"), "{missing}");
}

#[test]
fn broken_text_has_a_line_and_a_column() {
    for (text, line, column) in
        [("{\n  \"name\" \"x\"\n}", 2, 10), ("{\n \"name\": \"é\", oops\n}", 2, 15), ("", 1, 1)]
    {
        match refused(text) {
            ProfileError::Syntax { at, .. } => assert_eq!((at.line, at.column), (line, column), "{text}"),
            other => panic!("{text}: {other}"),
        }
    }
    assert!(matches!(refused(r#"{"name": "a", "name": "b"}"#), ProfileError::DuplicateKey { .. }));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(refused(&deep), ProfileError::Syntax { .. }));
}

#[test]
fn user_profiles_extend_and_cycles_are_shown() {
    let (_dir, store) = store(&[
        ("mine.json", r#"{"extends": ["rust-dev", "common"], "interactive": true}"#),
        ("common.jsonc", r#"{"extends": "default", "network": {"block": false}} // shared"#),
        ("a.json", r#"{"extends": "b"}"#),
        ("b.json", r#"{"extends": "c"}"#),
        ("c.json", r#"{"extends": "a"}"#),
        ("self.json", r#"{"extends": "self"}"#),
        ("lost.json", r#"{"extends": "rust-dve"}"#),
    ]);
    let merged = store.resolve(&name("mine"), &[]).unwrap();
    assert_eq!(merged.chain, ["default", "rust-dev", "common", "mine"]);
    assert_eq!(merged.network.block, Some(false));
    let more = store.resolve(&name("mine"), &["go-dev".into()]).unwrap();
    assert_eq!(more.chain, ["default", "rust-dev", "common", "go-dev", "mine"]);
    let cycle = store.resolve(&name("a"), &[]).unwrap_err();
    assert_eq!(cycle.to_string(), "profiles extend each other in a circle: a -> b -> c -> a");
    assert!(matches!(store.resolve(&name("self"), &[]), Err(ProfileError::Cycle { .. })));
    assert!(matches!(store.resolve(&name("c"), &["c".into()]), Err(ProfileError::Cycle { .. })));
    let lost = store.resolve(&name("lost"), &[]).unwrap_err();
    assert_eq!(
        lost.to_string(),
        "there is no profile \"rust-dve\", which profile \"lost\" extends (nearest: \"rust-dev\")"
    );
    let flag = |extends: &str| store.resolve(&name("mine"), &[extends.into()]).unwrap_err().to_string();
    assert_eq!(flag("zzzzzzzzzzzzzzz"), "there is no profile \"zzzzzzzzzzzzzzz\" (from --extends)");
    assert_eq!(flag("rust-dve"), "there is no profile \"rust-dve\" (from --extends; nearest: \"rust-dev\")");
}

#[test]
fn names_are_checked_and_built_in_ones_reserved() {
    let (dir, store) = store(&[
        ("codex.json", "{}"),
        ("other.json", r#"{"name": "another"}"#),
        ("groups.json", r#"{"groups": {"include": ["rusty"]}}"#),
        ("open.json", r#"{"groups": {"exclude": ["ssh"]}}"#),
    ]);
    assert!(matches!(store.load(&name("codex")), Err(ProfileError::ReservedName { .. })));
    assert!(matches!(store.load(&name("other")), Err(ProfileError::NameMismatch { .. })));
    for bad in ["", "../x", "a b", "a/b"] {
        assert!(matches!(store.load(&name(bad)), Err(ProfileError::BadName { .. })), "{bad}");
    }
    let group = store.validate(&dir.path().join("groups.json")).unwrap_err();
    assert!(matches!(group, ProfileError::UnknownGroup { nearest: Some(near), .. } if near == "rust"));
    let open = store.validate(&dir.path().join("open.json")).unwrap_err();
    assert!(matches!(open, ProfileError::ProtectedGroupExcluded { .. }));
    let listed = store.list();
    assert_eq!(listed.len(), 16);
    assert!(listed.iter().any(|info| info.name == "codex" && info.error.is_some()));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let (dir, store) = store(&[]);
    let missing = store.load(&ProfileRef::File(dir.path().join("x.json"))).unwrap_err();
    assert!(matches!(missing, ProfileError::Read { .. }));
    assert!(matches!(store.load(&ProfileRef::File(dir.path().into())), Err(ProfileError::NotAFile { .. })));
    fs::write(dir.path().join("big.json"), vec![b' '; (1 << 20) + 1]).unwrap();
    let big = store.load(&ProfileRef::File(dir.path().join("big.json"))).unwrap_err();
    assert!(matches!(big, ProfileError::TooLarge { .. }));
    fs::write(dir.path().join("bytes.json"), [0xff]).unwrap();
    assert!(matches!(
        store.load(&ProfileRef::File(dir.path().join("bytes.json"))),
        Err(ProfileError::Read { .. })
    ));
}

#[test]
fn the_schema_forbids_unknown_keys() {
    let schema = schema();
    assert_eq!(schema["additionalProperties"], false);
    assert!(schema["properties"]["filesystem"].is_object());
}
