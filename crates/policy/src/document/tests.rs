use std::path::{Path, PathBuf};

use super::*;
use crate::access::{AccessMode, CapabilitySource};
use crate::capability_set::CapabilitySet;
use crate::request::HostContext;
use crate::resolved::NetworkPolicy;

fn parse(text: &str) -> PolicyDocument {
    PolicyDocument::parse(text).unwrap()
}

fn place(home: &Path) -> DocumentRole {
    DocumentRole { home: Some(home.to_path_buf()), tmpdir: None, platform: "linux".into() }
}

/// A home folder with `a/`, `file`, and a link `l` to `a`.
fn home() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(dir.path()).unwrap();
    std::fs::create_dir(root.join("a")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    std::os::unix::fs::symlink("a", root.join("l")).unwrap();
    (dir, root)
}

fn open_set() -> CapabilitySet {
    let mut caps = CapabilitySet::new();
    caps.set_network(NetworkPolicy::Allowed);
    caps
}

#[test]
fn every_level_refuses_unknown_keys_by_name() {
    for text in [
        r#"{"groups": {}, "odd": 1}"#,
        r#"{"groups": {}, "meta": {"odd": 1}}"#,
        r#"{"groups": {"g": {"description": "", "odd": 1}}}"#,
        r#"{"groups": {"g": {"description": "", "allow": {"odd": []}}}}"#,
        r#"{"groups": {"g": {"description": "", "deny": {"odd": []}}}}"#,
        r#"{"groups": {"g": {"description": "", "network": {"odd": []}}}}"#,
        r#"{"groups": {"g": {"description": "", "network": {"custom_credentials":
            {"c": {"prefix": "/p", "upstream": "u", "odd": 1}}}}}}"#,
        r#"{"groups": {"g": {"description": "", "network": {"custom_credentials":
            {"c": {"prefix": "/p", "upstream": "u", "endpoint_rules": [{"method": "", "path": "", "odd": 1}]}}}}}}"#,
    ] {
        let error = PolicyDocument::parse(text).unwrap_err().to_string();
        assert!(error.contains("`odd`"), "{text}: {error}");
    }
}

#[test]
fn what_is_missing_doubled_or_of_the_wrong_kind_is_refused() {
    for (text, word) in [
        ("", "EOF"),
        ("[]", "invalid"),
        ("{}", "`groups`"),
        (r#"{"groups": {"g": {}}}"#, "`description`"),
        (r#"{"groups": {}, "groups": {}}"#, "duplicate field `groups`"),
        (r#"{"groups": {"g": {"description": ""}, "g": {"description": ""}}}"#, "duplicate name `g`"),
        (
            r#"{"groups": {"g": {"description": "", "network": {"allow_domain": [], "proxy_allow": []}}}}"#,
            "duplicate field `allow_domain`",
        ),
        (
            r#"{"groups": {"g": {"description": "", "network": {"external_proxy": "a", "upstream_proxy": "a"}}}}"#,
            "duplicate field `upstream_proxy`",
        ),
        (r#"{"groups": {"g": {"description": "", "required": 1}}}"#, "boolean"),
        (r#"{"groups": {"g": {"description": "", "network": {"max_connections": -1}}}}"#, "-1"),
        (r#"{"groups": {"g": {"description": "", "allow": {"read": "/etc"}}}}"#, "sequence"),
        (
            r#"{"groups": {"g": {"description": "", "network": {"custom_credentials": {"c": {"prefix": "p"}}}}}}"#,
            "`upstream`",
        ),
        (r#"{"groups": {}} x"#, "trailing"),
    ] {
        let error = PolicyDocument::parse(text).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
        assert!(error.starts_with("Invalid policy: "), "{error}");
    }
}

#[test]
fn a_route_has_its_defaults_and_profiles_may_be_anything() {
    let document = parse(
        r#"{"meta": {"version": 3, "schema_version": "3.0"}, "profiles": [{"x": null}], "groups": {"g":
            {"description": "d", "network": {"custom_credentials": {"c": {"prefix": "/p", "upstream": "https://u"}}}}}}"#,
    );
    let route = &document.groups["g"].network.as_ref().unwrap().custom_credentials["c"];
    assert_eq!(route.inject_mode, DocumentInject::Header);
    assert_eq!(route.inject_header, "Authorization");
    assert_eq!(route.credential_format.as_deref(), Some("Bearer {}"));
    assert!(document.profiles.is_some());
    assert_eq!(parse(&document.to_json().unwrap()), document);
}

#[test]
fn groups_become_grants_in_order_and_missing_paths_are_passed_over() {
    let (_dir, home) = home();
    let document = parse(
        r#"{"groups": {
            "g": {"description": "", "allow": {"readwrite": ["$HOME/file"], "write": ["~/l"],
                "read": ["~", "~/none", "~/file/below", "$HOME", "~other/x", "$FOO"]}},
            "mac": {"description": "", "platform": "macos", "allow": {"read": ["~/a"]}}}}"#,
    );
    let mut caps = open_set();
    let resolved = document.resolve(&["g", "mac", "g"], &place(&home), &mut caps).unwrap();
    assert_eq!(resolved.names, ["g", "g"]);
    assert!(resolved.deny_paths.is_empty() && !resolved.needs_unlink_overrides);
    let seen: Vec<_> =
        caps.fs_capabilities().iter().map(|g| (g.resolved.clone(), g.access, g.is_file)).collect();
    let once = [
        (home.clone(), AccessMode::Read, false),
        (home.clone(), AccessMode::Read, false),
        (home.join("a"), AccessMode::Write, false),
        (home.join("file"), AccessMode::ReadWrite, true),
    ];
    assert_eq!(seen, [once.clone(), once].concat());
    let group = CapabilitySource::Group("g".into());
    assert!(caps.fs_capabilities().iter().all(|grant| grant.source == group));
    assert_eq!(caps.network(), &NetworkPolicy::Allowed);
}

#[test]
fn a_refusal_leaves_the_set_as_it_was() {
    let (_dir, home) = home();
    let document = parse(
        r#"{"groups": {
            "good": {"description": "", "allow": {"read": ["~"]}, "network": {"block": true}},
            "temp": {"description": "", "allow": {"read": ["$TMPDIR/x"]}},
            "deny": {"description": "", "deny": {"access": ["$TMPDIR"]}}}}"#,
    );
    let mut caps = open_set();
    let before = caps.clone();
    let mut refused = |names: &[&str], place: &DocumentRole| {
        let error = document.resolve(names, place, &mut caps).unwrap_err();
        assert_eq!(caps, before);
        error
    };
    let place = place(&home);
    assert!(matches!(refused(&["good", "god"], &place),
        DocumentError::UnknownGroup { name, nearest: Some(near) } if name == "god" && near == "good"));
    assert!(matches!(refused(&["good", "temp"], &place), DocumentError::Unset { variable: "TMPDIR", .. }));
    assert!(matches!(refused(&["good", "deny"], &place), DocumentError::Unset { .. }));
    let relative = DocumentRole { home: Some("here".into()), ..place };
    assert!(matches!(refused(&["good"], &relative), DocumentError::NotAbsolute { variable: "HOME", .. }));
    assert!(document.deny_paths(&["nothing"], &relative).is_err());
}

#[test]
fn a_second_slash_does_not_leave_the_home_folder() {
    let (_dir, home) = home();
    let document = parse(r#"{"groups": {"g": {"description": "", "allow": {"read": ["~//etc"]}}}}"#);
    let mut caps = open_set();
    document.resolve(&["g"], &place(&home), &mut caps).unwrap();
    assert!(caps.fs_capabilities().is_empty());
}

#[test]
fn denied_paths_are_listed_as_written_and_where_they_lead() {
    let (_dir, home) = home();
    let document = parse(
        r#"{"groups": {"g": {"description": "", "deny": {"access": ["~/a", "~/l", "~/l/new", "~/none/new"],
            "unlink": true, "unlink_override_for_user_writable": true}}}}"#,
    );
    let expected = ["a", "l", "a", "l/new", "a/new", "none/new"].map(|path| home.join(path));
    assert_eq!(document.deny_paths(&["g"], &place(&home)).unwrap(), expected);
    let mut caps = open_set();
    let resolved = document.resolve(&["g"], &place(&home), &mut caps).unwrap();
    assert_eq!(resolved.deny_paths, expected);
    assert!(resolved.needs_unlink_overrides);
    assert_eq!(caps, open_set());
}

#[test]
fn the_network_is_closed_by_block_and_by_anything_a_proxy_has_to_do() {
    for (network, closed, proxy) in [
        (r"{}", false, false),
        (r#"{"block": false}"#, false, false),
        (r#"{"block": true}"#, true, false),
        (r#"{"allow_proxy": ["a.test"]}"#, true, true),
        (r#"{"upstream_bypass": ["a.test"]}"#, true, true),
        (r#"{"external_proxy": "p:1", "external_proxy_bypass": ["a.test"]}"#, true, true),
        (r#"{"max_connections": 3}"#, true, true),
    ] {
        let text = format!(r#"{{"groups": {{"g": {{"description": "", "network": {network}}}}}}}"#);
        let document = parse(&text);
        let mut caps = open_set();
        document.resolve(&["g"], &DocumentRole::default(), &mut caps).unwrap();
        assert_eq!(caps.is_network_blocked(), closed, "{network}");
        assert_eq!(document.proxy(&["g"], &DocumentRole::default()).unwrap().is_some(), proxy, "{network}");
    }
}

#[test]
fn proxies_of_groups_are_put_together() {
    let document = parse(
        r#"{"groups": {
            "a": {"description": "", "network": {"allow_domain": ["x", "y"], "max_connections": 9,
                "upstream_bypass": ["z"], "custom_credentials": {"c": {"prefix": "/c", "upstream": "https://c"}}}},
            "b": {"description": "", "network": {"proxy_allow": ["y", "w"], "max_connections": 4,
                "upstream_proxy": "p:1", "custom_credentials": {"c": {"prefix": "/c", "upstream": "https://c"}}}},
            "other": {"description": "", "network": {"external_proxy": "q:1"}},
            "named": {"description": "", "network": {"credentials": ["openai"]}},
            "clash": {"description": "", "network": {"custom_credentials": {"c": {"prefix": "/d", "upstream": "d"}}}},
            "mac": {"description": "", "platform": "macos", "network": {"allow_domain": ["m"]}}}}"#,
    );
    let place = place(Path::new("/h"));
    let proxy = |names: &[&str]| document.proxy(names, &place);
    let both = proxy(&["a", "b", "mac"]).unwrap().unwrap();
    assert_eq!(both.hosts, ["x", "y", "w"]);
    assert_eq!((both.max_connections, both.routes.len()), (Some(4), 1));
    assert_eq!(both.upstream_proxy.as_deref(), Some("p:1"));
    assert_eq!(both.upstream_bypass, ["z"]);
    assert!(proxy(&["a"]).unwrap().unwrap().upstream_bypass.is_empty());
    assert_eq!(proxy(&["mac"]).unwrap(), None);
    let conflict = proxy(&["b", "other"]).unwrap_err().to_string();
    assert_eq!(conflict, r#"Conflicting upstream_proxy values in the groups "b" and "other""#);
    assert!(proxy(&["b", "b"]).is_ok());
    assert!(matches!(proxy(&["named"]), Err(DocumentError::NamedCredentials { .. })));
    assert!(matches!(proxy(&["a", "clash"]), Err(DocumentError::RouteConflict { name }) if name == "c"));
    assert!(matches!(proxy(&["nothing"]), Err(DocumentError::UnknownGroup { .. })));
}

#[test]
fn overlaps_are_those_strictly_below_directories_of_the_user() {
    let (_dir, home) = home();
    let document = parse(r#"{"groups": {"g": {"description": "", "allow": {"read": ["~"]}}}}"#);
    let mut caps = open_set();
    document.resolve(&["g"], &place(&home), &mut caps).unwrap();
    assert_eq!(deny_overlaps(&[home.join("a")], &caps), Ok(()));
    caps.allow_file(home.join("file"), AccessMode::Read).unwrap();
    assert_eq!(deny_overlaps(&[home.join("file/x")], &caps), Ok(()));
    caps.allow_path(home.join("a"), AccessMode::Read).unwrap();
    assert_eq!(deny_overlaps(&[home.join("a"), home.join("ab"), home.clone()], &caps), Ok(()));
    let overlap = deny_overlaps(&[home.join("x"), home.join("a/b")], &caps).unwrap_err();
    assert_eq!((overlap.deny, overlap.grant), (home.join("a/b"), home.join("a")));
}

#[test]
fn required_groups_are_named() {
    let document = parse(
        r#"{"groups": {"r": {"description": "", "required": true}, "s": {"description": "", "required": true},
            "o": {"description": ""}}}"#,
    );
    assert!(document.check_exclusions(&["o", "unknown"]).is_ok());
    let error = document.check_exclusions(&["s", "o", "r"]).unwrap_err().to_string();
    assert!(error.ends_with(": s, r"), "{error}");
}

#[test]
fn the_embedded_document_is_one_like_any_other_and_denies_whatever_is_protected() {
    let host = HostContext {
        cwd: "/w".into(),
        home: Some("/h".into()),
        xdg_config: Some("/cfg".into()),
        ..HostContext::default()
    };
    let document = embedded(&host);
    assert_eq!(parse(&document.to_json().unwrap()), document);
    let credentials = &document.groups["deny_credentials"];
    assert!(!credentials.description.is_empty() && credentials.required);
    let denied = |name: &str| document.groups[name].deny.as_ref().unwrap().access.clone();
    for path in ["~/.ssh", "~/.gnupg", "~/.aws", "~/.netrc", "/cfg/gcloud", "~/.config/gcloud"] {
        assert!(denied("deny_credentials").iter().any(|known| known == path), "{path}");
    }
    let data = crate::data::PolicyData::embedded();
    let protected = data.of_kind(crate::data::GroupKind::Protected);
    let (held, closed): (Vec<_>, Vec<_>) = protected.partition(|group| data.runs_later(&group.name));
    assert!(held.iter().all(|group| !document.groups.contains_key(&format!("deny_{}", group.name))));
    for group in closed {
        assert!(denied(&format!("deny_{}", group.name)).len() >= group.closed.len(), "{}", group.name);
        assert!(group.closed.iter().all(|path| !path.contains('*')), "{}", group.name);
    }
    let texts = document.to_json().unwrap();
    assert!(!texts.contains("$XDG") && !texts.contains('*'));
    assert!(document.groups["system"].allow.as_ref().unwrap().read.contains(&"/usr".to_owned()));
}
