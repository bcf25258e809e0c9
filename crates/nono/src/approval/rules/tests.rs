use super::*;

fn file(text: &str) -> PolicyFile {
    let rules = parse::parse(text, Path::new("/p.json"), Some(Path::new("/home/me"))).unwrap();
    PolicyFile { path: "/p.json".into(), rules }
}

fn wrong(text: &str) -> String {
    let error = parse::parse(text, Path::new("/p.json"), Some(Path::new("/home/me"))).unwrap_err();
    error.to_string()
}

fn one(rule: &str) -> String {
    format!("{{\"rules\": [\n  {{{rule}}}\n]}}")
}

fn wanted(path: &str, access: AccessMode) -> Wanted<'_> {
    let path = Path::new(path);
    Wanted { path, access, folder: path.parent(), program: Some(Path::new("/usr/bin/rg")) }
}

/// Action, and the number of the deciding rule.
fn said(file: &PolicyFile, path: &str, access: AccessMode) -> (RuleAction, Option<usize>) {
    let ruling = file.consult_at(wanted(path, access), 1_800_000_000);
    (ruling.action, ruling.rule.map(|rule| rule.number))
}

const SESSION: RuleAction = RuleAction::Allow(Scope::Session);

#[test]
fn the_first_rule_that_fits_answers() {
    let file = file(
        r#"{"rules": [ // in order
            {"path": "~/data/secret/**", "action": "deny"},
            {"path": "~/data/**", "access": "read", "action": "allow"},
            {"path": "$HOME/data/*.log", "access": "write", "action": "allow", "scope": "once"},
            {"path": "/srv/{a,b}/?", "action": "allow"},
        ]}"#,
    );
    let read = AccessMode::Read;
    assert_eq!(said(&file, "/home/me/data/x", read), (SESSION, Some(2)));
    assert_eq!(said(&file, "/home/me/data/secret/x", read), (RuleAction::Deny, Some(1)));
    assert_eq!(said(&file, "/home/me/data/secret", read), (RuleAction::Deny, Some(1)));
    assert_eq!(said(&file, "/home/me/data/secrets", read), (SESSION, Some(2)));
    assert_eq!(said(&file, "/home/me/other", read), (RuleAction::Ask, None));
    assert_eq!(said(&file, "/srv/b/c", AccessMode::ReadWrite), (SESSION, Some(4)));
    assert_eq!(said(&file, "/srv/c/c", read), (RuleAction::Ask, None));
    assert_eq!(said(&file, "/home/you/data/x", read), (RuleAction::Ask, None));
    let once = RuleAction::Allow(Scope::Once);
    assert_eq!(said(&file, "/home/me/data/x.log", AccessMode::Write), (once, Some(3)));
}

#[test]
fn a_yes_covers_all_that_is_asked_and_a_no_any_of_it() {
    let allow = file(&one(r#""path": "/d/**", "access": "read", "action": "allow""#));
    assert_eq!(said(&allow, "/d/x", AccessMode::Read).0, SESSION);
    assert_eq!(said(&allow, "/d/x", AccessMode::Write).0, RuleAction::Ask);
    assert_eq!(said(&allow, "/d/x", AccessMode::ReadWrite).0, RuleAction::Ask);
    let deny = file(&one(r#""path": "/d/**", "access": "write", "action": "deny""#));
    assert_eq!(said(&deny, "/d/x", AccessMode::Read).0, RuleAction::Ask);
    assert_eq!(said(&deny, "/d/x", AccessMode::Write).0, RuleAction::Deny);
    assert_eq!(said(&deny, "/d/x", AccessMode::ReadWrite).0, RuleAction::Deny);
}

#[test]
fn a_program_is_matched_by_path_or_by_name() {
    let by = |program: &str, asker: &str| {
        let file = file(&one(&format!(r#""path": "/d/**", "program": "{program}", "action": "allow""#)));
        let wanted = Wanted { program: Some(Path::new(asker)), ..wanted("/d/x", AccessMode::Read) };
        file.consult_at(wanted, 0).action
    };
    let once = RuleAction::Allow(Scope::Once);
    assert_eq!(by("rg", "/usr/bin/rg"), once);
    assert_eq!(by("r*", "rg"), once);
    assert_eq!(by("/usr/bin/*", "/usr/bin/rg"), once);
    assert_eq!(by("~/bin/rg", "/home/me/bin/rg"), once);
    assert_eq!(by("rg", "/usr/bin/rgx"), RuleAction::Ask);
    assert_eq!(by("/usr/bin/rg", "/tmp/rg"), RuleAction::Ask);
    assert_eq!(by("/usr/bin/rg", "usr/bin/rg"), RuleAction::Ask, "a name is no path");
    assert_eq!(by("rg", ""), RuleAction::Ask);
}

#[test]
fn who_asks_may_be_unknown() {
    let file = file(
        r#"{"rules": [
            {"path": "/d/**", "program": "rg", "action": "allow"},
            {"path": "/d/**", "action": "deny"}
        ]}"#,
    );
    let ruling = file.consult_at(Wanted { program: None, ..wanted("/d/x", AccessMode::Read) }, 0);
    assert_eq!(ruling.action, RuleAction::Deny);
    assert_eq!(ruling.depends.iter().map(|rule| rule.number).collect::<Vec<_>>(), [1]);
}

#[test]
fn an_expired_rule_is_passed_over_and_named() {
    let file = file(
        r#"{"rules": [
            {"path": "/d/**", "action": "allow", "expires": "2020-01-01T00:00:00+01:00"},
            {"path": "/d/**", "action": "deny", "expires": "2999-01-01T00:00:00Z"}
        ]}"#,
    );
    let ruling = file.consult(wanted("/d/x", AccessMode::Read));
    assert_eq!((ruling.action, ruling.expired.len()), (RuleAction::Deny, 1));
    assert_eq!(file.consult_at(wanted("/d/x", AccessMode::Read), 1_500_000_000).action, SESSION);
    let question = Question {
        id: 1,
        subject: Subject::Access {
            path: "/d/x".into(),
            written: None,
            access: AccessMode::Read,
            object: nono_supervisor::approval::Object::File,
            folder: None,
        },
        asker: nono_supervisor::approval::Asker { program: "rg".into(), pid: 1 },
        reason: None,
    };
    let answer = file.answer(&question).unwrap();
    assert_eq!(answer.verdict, Verdict::Deny);
    assert_eq!(answer.by, "policy:/p.json#2 (line 3); #1 (line 2) has expired");
    assert_eq!(file.expired().count(), 1);
}

#[test]
fn a_directory_is_opened_whole_only_if_nothing_in_it_is_closed() {
    let file = file(
        r#"{"rules": [
            {"path": "/d/a/secret", "access": "read", "action": "deny"},
            {"path": "/d/e/old", "action": "deny", "expires": "2020-01-01T00:00:00Z"},
            {"path": "/d/**", "action": "allow", "scope": "directory"}
        ]}"#,
    );
    let directory = RuleAction::Allow(Scope::Directory);
    assert_eq!(said(&file, "/d/b/x", AccessMode::Read).0, directory);
    assert_eq!(said(&file, "/d/e/x", AccessMode::Read).0, directory, "what expired closes nothing");
    assert_eq!(said(&file, "/d/a/x", AccessMode::Read).0, SESSION);
    assert_eq!(said(&file, "/d/x", AccessMode::Read).0, SESSION, "the folder of /d/x holds /d/a");
    assert_eq!(said(&file, "/d/a/x", AccessMode::Write).0, directory, "only reading is closed there");
    assert_eq!(said(&file, "/d", AccessMode::Write).0, SESSION, "the folder of a file /d is /");
    let nowhere = Wanted { folder: None, ..wanted("/d/b/x", AccessMode::Read) };
    assert_eq!(file.consult_at(nowhere, 1_800_000_000).action, SESSION);
    let ruling = file.consult_at(wanted("/d/a/x", AccessMode::Read), 1_800_000_000);
    assert_eq!(ruling.narrowed_by.map(|rule| rule.number), Some(1));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (rule, expected) in [
        (r#""path": "/d", "action": "perhaps""#, "is not one of allow, deny, ask"),
        (r#""path": "/d""#, "the key \"action\" is missing"),
        (r#""action": "allow""#, "the key \"path\" is missing"),
        (r#""path": "/d", "action": "allow", "acces": "read""#, "unknown key \"rules[0].acces\""),
        (r#""path": "/d", "action": "allow", "access": "rw""#, "is not one of read, write, readwrite"),
        (r#""path": "/d", "action": "allow", "action": "deny""#, "appears twice"),
        (r#""path": 7, "action": "allow""#, "expected string, found number"),
        (r#""path": "d/*", "action": "allow""#, "path: must begin with /, ~/ or $HOME/"),
        (r#""path": "~you/d", "action": "allow""#, "path: must begin with"),
        (r#""path": "/d/../e", "action": "allow""#, "path: must not contain . or .."),
        (r#""path": "/d/[a", "action": "allow""#, "path: a [ is not closed"),
        (r#""path": "/d/{a", "action": "allow""#, "path: a { is not closed"),
        (r#""path": "/d", "action": "allow", "expires": "soon""#, "expires: write a time like"),
        (r#""path": "/d", "action": "deny", "scope": "once""#, "scope: only \"allow\" has a scope"),
        (r#""path": "/d/*", "action": "allow", "scope": "directory""#, "scope: \"directory\" needs a path"),
        (r#""path": "/d", "action": "allow", "program": "rg", "scope": "session""#, "for every program"),
        (r#""path": "/d", "action": "allow", "scope": "saved""#, "is not one of once, session, directory"),
        (r#""path": "/d", "action": "allow", "program": """#, "program: must not be empty"),
    ] {
        let said = wrong(&one(rule));
        assert!(said.starts_with("/p.json:2:") && said.contains(expected), "{rule}: {said}");
    }
    assert!(wrong("[]").contains("the file: expected object, found array"), "{}", wrong("[]"));
    assert!(wrong("").contains("the file is empty"));
    assert!(wrong("{}").contains("\"rules\" is missing"));
}

#[test]
fn a_path_with_a_link_in_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    std::fs::create_dir(dir.join("real")).unwrap();
    std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
    let said = wrong(&one(&format!(r#""path": "{}/link/**", "action": "deny""#, dir.display())));
    assert!(said.contains(&format!("link is a link to {}/real", dir.display())), "{said}");
    // The home folder alone may be a link: its real path is used.
    let text = one(r#""path": "~/x", "action": "deny""#);
    let rules = parse::parse(&text, Path::new("/p.json"), Some(&dir.join("link"))).unwrap();
    assert!(rules[0].path.matches(&dir.join("real/x")));
}
