//! Hostile and ordinary profiles of a project in `/h/w`.

use std::path::Path;

use crate::access::AccessMode::{Read, ReadWrite};
use crate::error::{PolicyError, ProfileError};
use crate::profile::{EffectiveProfile, MergedProfile, ProjectProfile};
use crate::query::QueryResult;
use crate::request::{HostContext, RunRequest};
use crate::testing::{FakeTree, data, dir, host, tree};
use crate::{CapabilitySource, NetworkPolicy, ResolvedPolicy, query_path};

const FILE: &str = "/h/w/.nono/profile.json";

fn read(text: &str) -> Result<ProjectProfile, ProfileError> {
    ProjectProfile::read(text.as_bytes(), Path::new("/h/w"), Path::new(FILE))
}

fn meaning_in(tree: &FakeTree, text: &str) -> Result<EffectiveProfile, PolicyError> {
    read(text).unwrap().meaning(&host(), &data(), tree)
}

fn meaning(text: &str) -> Result<EffectiveProfile, PolicyError> {
    meaning_in(&tree(), text)
}

/// A run with the profile as the user agreed to it; by now the tree is `later`.
fn run(text: &str, later: &FakeTree, request: &RunRequest) -> Result<ResolvedPolicy, PolicyError> {
    let project = read(text).unwrap();
    let meaning = project.meaning(&host(), &data(), &tree()).unwrap();
    let mut profile = MergedProfile::default();
    profile.lay_over(&project.agreed(&meaning, &host()).unwrap());
    crate::resolve(request, &host(), &profile, &data(), later)
}

fn paths(meaning: &EffectiveProfile) -> Vec<&str> {
    meaning.grants.iter().map(|grant| grant.path.as_str()).collect()
}

#[test]
fn paths_are_the_projects_wherever_the_command_starts() {
    let project = read(
        r#"{"filesystem": {"read": ["src", "../../other", "$WORKDIR/src", "~/.tool"], "deny": [".env"]},
            "workdir": {"access": "readwrite"}}"#,
    )
    .unwrap();
    for cwd in ["/h/w", "/h/w/src", "/"] {
        let host = HostContext { cwd: cwd.into(), ..host() };
        let meaning = project.meaning(&host, &data(), &tree()).unwrap();
        assert_eq!(paths(&meaning), ["/h/w", "/h/w/src", "/other", "/h/w/src", "/h/.tool"], "{cwd}");
        assert_eq!(meaning.deny, ["/h/w/.env"]);
        assert_eq!(project.closing(&host).unwrap().filesystem.deny[0].path, "/h/w/.env");
    }
}

#[test]
fn protected_paths_stay_closed_whatever_is_agreed_to() {
    for path in ["~/.ssh", "~/.ssh/id", "link", "../.ssh", "$XDG_CONFIG_HOME/cloud"] {
        let key = if path.contains("id") || path == "link" { "read_file" } else { "read" };
        let error = meaning(&format!(r#"{{"filesystem": {{"{key}": ["{path}"]}}}}"#)).unwrap_err();
        assert!(matches!(error, PolicyError::Protected { .. }), "{path}: {error}");
    }
    let error = meaning(r#"{"filesystem": {"allow": ["~/.nono"]}}"#).unwrap_err();
    assert!(matches!(error, PolicyError::NonoOwned { .. }), "{error}");
}

#[test]
fn everything_the_home_and_the_kernels_own_are_too_much() {
    let tree = FakeTree::of(&["/usr/bin/nono", "/h/w/up -> ..", "/run/docker.d/", "/proc/1/", "/dev/shm/"]);
    for path in ["/", "~", "..", "up", "/run", "/run/docker.d", "/proc/1", "/dev/shm", "/h"] {
        let text = format!(r#"{{"filesystem": {{"read": ["{path}"]}}}}"#);
        let error = meaning_in(&tree, &text).unwrap_err();
        assert!(matches!(error, PolicyError::TooBroadForProject { .. }), "{path}: {error}");
    }
}

#[test]
fn what_only_a_person_can_say_is_refused_by_name() {
    for (text, key) in [
        (r#"{"filesystem": {"bypass_protection": ["~/.ssh"]}}"#, "filesystem.bypass_protection"),
        (r#"{"filesystem": {"unix_socket": ["/var/run/docker.sock"]}}"#, "filesystem.unix_socket"),
        (r#"{"hooks": {"codex": {"install": "ask"}}}"#, "hooks"),
        (r#"{"interactive": true}"#, "interactive"),
        (r#"{"security": {"capability_elevation": false}}"#, "security"),
        (r#"{"rollback": {"enabled": false}}"#, "rollback.enabled: false"),
        (r#"{"environment": {"allow_vars": ["GH_TOKEN"]}}"#, "environment.allow_vars: GH_TOKEN"),
    ] {
        let error = read(text).unwrap_err();
        assert!(matches!(&error, ProfileError::NotForProjects { key: found, .. } if found == key), "{error}");
    }
    let error = read(r#"{"extends": "mine"}"#).unwrap_err();
    assert!(matches!(&error, ProfileError::ProjectExtends { base, .. } if base == "mine"), "{error}");
    let error = ProjectProfile::read(b"{\"description\": \"\xff\"}", Path::new("/h/w"), Path::new(FILE));
    assert!(matches!(error, Err(ProfileError::Read { .. })));
    assert!(matches!(
        read(r#"{"groups": {"exclude": ["ssh"]}}"#),
        Err(ProfileError::ProtectedGroupExcluded { .. })
    ));
}

#[test]
fn unknown_variables_and_hosts_are_errors() {
    let error = meaning(r#"{"filesystem": {"read": ["$SECRETS/x"]}}"#).unwrap_err();
    assert!(matches!(error, PolicyError::UnknownVariable { .. }), "{error}");
    let error = meaning(r#"{"network": {"allow_domain": ["*"]}}"#).unwrap_err();
    assert!(matches!(error, PolicyError::BadHost { .. }), "{error}");
}

#[test]
fn a_built_in_profile_brings_neither_secrets_nor_hooks() {
    let project = read(r#"{"extends": "claude-code"}"#).unwrap();
    let allowed = &project.merged.environment.allow_vars;
    assert!(
        allowed.contains(&"CLAUDE_CODE_*".to_owned()) && !allowed.contains(&"ANTHROPIC_API_KEY".to_owned())
    );
    assert!(project.merged.hooks.is_empty());
    assert!(project.merged.domain_from.values().all(|from| from == FILE));
}

#[test]
fn the_same_text_means_something_else_when_a_link_leads_elsewhere() {
    let text = r#"{"filesystem": {"read": [{"path": "data", "optional": true}], "deny": [{"path": "keys", "optional": true}]}}"#;
    let lines = ["/usr/bin/nono", "/h/w/src/", "/other/data/", "/h/x/"];
    let with = |more: &[&str]| meaning_in(&FakeTree::of(&[&lines, more].concat()), text).unwrap();
    let absent = with(&[]);
    assert_eq!(paths(&absent), ["/h/w/data"]);
    // What was named comes to be: that was agreed to.
    assert_eq!(with(&["/h/w/data/"]), absent);
    let linked = with(&["/h/w/data -> /other/data"]);
    assert_eq!(paths(&linked), ["/other/data"]);
    assert_ne!(linked, with(&["/h/w/data -> /h/x"]));
    assert_ne!(with(&["/h/w/keys -> /h/x"]), absent);
}

#[test]
fn a_link_that_is_exchanged_after_the_agreement_is_refused() {
    let text = r#"{"filesystem": {"read": ["/other"]}}"#;
    let policy = run(text, &tree(), &RunRequest::default()).unwrap();
    let found = query_path(&policy, Path::new("/other/data"), true, Read);
    let QueryResult::Allowed { source, .. } = found else { panic!("{found:?}") };
    assert_eq!(source, CapabilitySource::Profile(FILE.to_owned()));
    let later = FakeTree::of(&["/usr/bin/nono", "/h/w/", "/h/x/data", "/other -> /h/x"]);
    let error = run(text, &later, &RunRequest::default()).unwrap_err();
    assert!(matches!(error, PolicyError::NotAsAgreed { .. }), "{error}");
}

#[test]
fn a_bypass_of_the_persons_opens_nothing_for_the_project() {
    let text = r#"{"filesystem": {"allow": ["~/.config"]}}"#;
    assert!(run(text, &tree(), &RunRequest::default()).is_ok());
    let request =
        RunRequest { bypass_protection: vec!["/h/.config/cloud".into()], ..dir("/h/.config/cloud", Read) };
    let error = run(text, &tree(), &request).unwrap_err();
    assert!(matches!(error, PolicyError::BypassForProject { .. }), "{error}");
}

#[test]
fn without_consent_only_the_closing_part_is_left() {
    let project = read(
        r#"{"filesystem": {"read": ["/other"], "deny": [".env"]}, "groups": {"include": ["rust"], "exclude": ["sysfs"]},
            "network": {"block": true, "allow_domain": ["a.example"]},
            "environment": {"allow_vars": ["FOO"], "deny_vars": ["PATH"], "set_vars": {"A": "1"}}}"#,
    )
    .unwrap();
    let closing = project.closing(&host()).unwrap();
    assert!(closing.filesystem.grants.is_empty() && closing.groups.include.is_empty());
    assert!(closing.network.allow_domain.is_empty() && closing.environment.allow_vars.is_empty());
    assert!(closing.environment.set_vars.is_empty());
    assert_eq!(closing.filesystem.deny[0].path, "/h/w/.env");
    assert_eq!(closing.groups.exclude, ["sysfs"]);
    assert_eq!(
        (closing.network.block, &closing.environment.deny_vars[..]),
        (Some(true), &["PATH".to_owned()][..])
    );
}

#[test]
fn closing_alone_needs_no_consent() {
    let closes = meaning(r#"{"filesystem": {"deny": [".env"]}, "network": {"block": true}}"#).unwrap();
    assert!(!closes.widens() && closes.closes().len() == 2);
    for text in [
        r#"{"filesystem": {"read": ["src"]}}"#,
        r#"{"network": {"block": false}}"#,
        r#"{"workdir": {"access": "read"}}"#,
        r#"{"environment": {"set_vars": {"A": "1"}}}"#,
        r#"{"rollback": {"exclude_patterns": ["*.db"]}}"#,
        // The run's own profile may have left it out.
        r#"{"groups": {"include": ["system"]}}"#,
    ] {
        assert!(meaning(text).unwrap().widens(), "{text}");
    }
}

#[test]
fn it_is_laid_over_without_taking_back_what_the_run_has() {
    let own = |text: &str| {
        let profile: crate::Profile = serde_json::from_str(text).unwrap();
        let (environment, network) = (profile.environment, profile.network);
        MergedProfile { network, environment, ..MergedProfile::default() }
    };
    let over = read(
        r#"{"network": {"block": false}, "environment": {"allow_vars": ["MY_X", "FOO"], "set_vars": {"A": "2", "B": "2"}}}"#,
    )
    .unwrap()
    .merged;
    let mut filtered = own(
        r#"{"network": {"allow_domain": ["a.example"]}, "environment": {"deny_vars": ["MY_*"], "set_vars": {"A": "1"}}}"#,
    );
    filtered.lay_over(&over);
    assert_eq!(filtered.network.block, None);
    assert_eq!(filtered.environment.allow_vars, ["FOO"]);
    assert_eq!((&*filtered.environment.set_vars["A"], &*filtered.environment.set_vars["B"]), ("1", "2"));
    let mut open = own(r#"{"network": {"block": false}}"#);
    open.lay_over(&read(r#"{"network": {"allow_domain": ["b.example"]}}"#).unwrap().merged);
    let policy = crate::resolve(&RunRequest::default(), &host(), &open, &data(), &tree()).unwrap();
    assert_eq!(policy.network, NetworkPolicy::Allowed);
}

#[test]
fn the_command_can_use_the_profile_and_not_change_it() {
    let tree = FakeTree::of(&["/usr/bin/nono", "/h/.nono/store", "/h/w/.nono/profile.json", "/h/w/src/"]);
    let request = RunRequest { allow_cwd: true, ..RunRequest::default() };
    let host = HostContext { can_mask: true, ..host() };
    let policy = crate::resolve(&request, &host, &MergedProfile::default(), &data(), &tree).unwrap();
    let ask = |path: &str, want| query_path(&policy, Path::new(path), true, want).is_allowed();
    assert!(ask(FILE, Read) && !ask(FILE, ReadWrite) && !ask("/h/w/.nono/new", ReadWrite));
    assert!(ask("/h/w/src/new", ReadWrite));
}
