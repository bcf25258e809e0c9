use std::path::Path;

use crate::access::{AccessMode, CapabilitySource};
use crate::data::PolicyData;
use crate::error::PolicyError;
use crate::facts::HostFacts;
use crate::profile::{MergedProfile, MergedWorkdir, ProfileGrant, ProfilePath, ProfileStore, WorkdirAccess};
use crate::request::{EnvRequest, GrantKind, HostContext, ProfileRef, RunRequest};
use crate::resolved::{
    ClosedBy, ClosedHow, ClosedPath, FsCapability, HostGrant, NetworkPolicy, PathKind, PolicyNote,
    ResolvedPolicy, RuleAccess,
};
use crate::testing::{FakeTree, data, dir, grant, host, refused, resolve_in, resolved, tree};
use AccessMode::{Read, ReadWrite, Write};

fn file(path: &str, access: AccessMode) -> RunRequest {
    RunRequest { grants: vec![grant(path, access, GrantKind::File)], ..RunRequest::default() }
}

fn granted<'a>(policy: &'a ResolvedPolicy, path: &str) -> Option<&'a FsCapability> {
    policy.grants.iter().find(|grant| grant.resolved == Path::new(path))
}

fn rule(policy: &ResolvedPolicy, path: &str) -> Option<RuleAccess> {
    policy.rules.iter().find(|rule| rule.path == Path::new(path)).map(|rule| rule.access)
}

fn closed<'a>(policy: &'a ResolvedPolicy, path: &str) -> &'a ClosedPath {
    policy.closed.iter().find(|closed| closed.resolved == Path::new(path)).unwrap()
}

fn with_profile(profile: &MergedProfile, request: &RunRequest) -> Result<ResolvedPolicy, PolicyError> {
    super::resolve(request, &host(), profile, &data(), &tree())
}

fn profile_path(path: &str, optional: bool) -> ProfilePath {
    ProfilePath { path: path.into(), optional, profile: "p".into(), exact: false }
}

#[test]
fn a_plain_run_has_the_base_groups_and_nothing_else() {
    let policy = resolved(&RunRequest::default());
    assert_eq!(granted(&policy, "/usr").unwrap().source, CapabilitySource::Group("system".into()));
    assert!(granted(&policy, "/etc/pyrc").unwrap().is_file);
    assert!(!granted(&policy, "/etc/python3").unwrap().is_file);
    assert!(granted(&policy, "/h/w").is_none() && granted(&policy, "/h/.tool").is_none());
    assert_eq!(policy.network, NetworkPolicy::Blocked);
    assert!(granted(&policy, "/usr/bin").is_some(), "/bin is shown");
    assert!(rule(&policy, "/usr/bin").is_none(), "but /usr already covers what it links to");
}

#[test]
fn spelling_is_kept_and_links_are_followed_once() {
    let policy = resolved(&dir("../shortcut", ReadWrite));
    let grant = granted(&policy, "/h/w").unwrap();
    assert_eq!(grant.original, Path::new("../shortcut"));
    assert_eq!(rule(&policy, "/h/w"), Some(RuleAccess::Mode(ReadWrite)));
}

#[test]
fn bad_grants_are_refused_by_name() {
    assert!(
        matches!(refused(&dir("nope", Read)), PolicyError::PathNotFound { path, .. } if path == Path::new("nope"))
    );
    assert!(matches!(refused(&dir("", Read)), PolicyError::PathNotFound { .. }));
    assert!(matches!(refused(&file("dangling", Read)), PolicyError::DanglingLink { .. }));
    assert!(matches!(refused(&dir(".env", Read)), PolicyError::ExpectedDirectory { .. }));
    assert!(matches!(refused(&file("src", Read)), PolicyError::ExpectedFile { .. }));
    assert!(matches!(refused(&file("sock", Read)), PolicyError::IsSocket { .. }));
    assert!(matches!(refused(&file("pipe", Read)), PolicyError::IsFifo { .. }));
    assert!(matches!(refused(&file("dev", Read)), PolicyError::IsDevice { .. }));
}

#[test]
fn the_same_path_twice_is_one_grant_with_both_accesses() {
    let mut request = dir("/usr", Write);
    request.grants.push(grant("/usr/", Read, GrantKind::Directory));
    let policy = resolved(&request);
    let all: Vec<_> = policy.grants.iter().filter(|grant| grant.resolved == Path::new("/usr")).collect();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].access, &all[0].source), (ReadWrite, &CapabilitySource::User));
}

#[test]
fn protected_paths_need_a_bypass_and_the_bypass_a_grant() {
    let link = refused(&file("/h/w/link", Read));
    assert!(matches!(link, PolicyError::Protected { group, .. } if group == "ssh"), "a link leads there too");
    assert!(matches!(refused(&dir("/h/.ssh", Read)), PolicyError::Protected { .. }));

    let bypass =
        |path: &str, request: RunRequest| RunRequest { bypass_protection: vec![path.into()], ..request };
    assert!(matches!(
        refused(&bypass("/h/.ssh", RunRequest::default())),
        PolicyError::BypassWithoutGrant { path } if path == Path::new("/h/.ssh")
    ));
    assert!(matches!(refused(&bypass("/other", dir("/other", Read))), PolicyError::NothingToBypass { .. }));

    let whole = resolved(&bypass("/h/.ssh", dir("/h/.ssh", Read)));
    assert_eq!(rule(&whole, "/h/.ssh"), Some(RuleAccess::Mode(Read)));
    assert!(whole.closed.iter().all(|closed| closed.resolved != Path::new("/h/.ssh")));

    let part = resolved(&bypass("/h/.ssh/config", file("/h/.ssh/config", Read)));
    assert_eq!(rule(&part, "/h/.ssh/config"), Some(RuleAccess::Mode(Read)));
    assert!(closed(&part, "/h/.ssh").has_openings);
    let both = bypass("/h/.ssh/config", file("/h/.ssh/id", Read));
    assert!(matches!(refused(&both), PolicyError::Protected { .. }));
}

#[test]
fn a_bypass_lets_a_grant_above_through_to_the_opening_only() {
    let request = RunRequest { bypass_protection: vec!["/h/.ssh/config".into()], ..dir("/h", Read) };
    let policy = resolved(&request);
    assert_eq!(rule(&policy, "/h/.ssh/config"), Some(RuleAccess::Mode(Read)));
    assert_eq!(rule(&policy, "/h/.ssh/id"), None);
    assert_eq!(rule(&policy, "/h/.ssh"), None);
}

#[test]
fn nonos_own_files_are_never_grantable() {
    for path in ["/h/.nono", "/h/.config/nono/profiles"] {
        let request = RunRequest { bypass_protection: vec!["/h/.ssh".into()], ..dir(path, Read) };
        assert!(matches!(refused(&request), PolicyError::NonoOwned { .. }), "{path}");
    }
    assert!(matches!(refused(&file("/usr/bin/nono", ReadWrite)), PolicyError::NonoOwned { .. }));
    assert!(granted(&resolved(&file("/usr/bin/nono", Read)), "/usr/bin/nono").is_some());
}

#[test]
fn a_home_grant_is_taken_apart_around_what_is_closed() {
    let policy = resolved(&dir("/h", ReadWrite));
    for (path, expected) in [
        ("/h", Some(RuleAccess::List)),
        ("/h/.config", Some(RuleAccess::List)),
        ("/h/w", Some(RuleAccess::Mode(ReadWrite))),
        ("/h/notes", Some(RuleAccess::Mode(ReadWrite))),
        ("/h/.config/other", Some(RuleAccess::Mode(ReadWrite))),
        ("/h/.config/cloud", None),
        ("/h/.config/nono", None),
        ("/h/.ssh", None),
        ("/h/.nono", None),
        ("/h/shortcut", None),
    ] {
        assert_eq!(rule(&policy, path), expected, "{path}");
    }
    assert_eq!(closed(&policy, "/h/.ssh").how, ClosedHow::NotGranted);
    let carved = policy.notes.iter().filter(|note| matches!(note, PolicyNote::Carved { .. })).count();
    assert_eq!(carved, 2);
}

#[test]
fn a_write_only_home_grant_lists_nothing() {
    let policy = resolved(&dir("/h", Write));
    assert!(policy.rules.iter().all(|rule| rule.access != RuleAccess::List));
}

#[test]
fn an_absent_protected_name_is_kept_from_appearing() {
    let tree = FakeTree::of(&["/h/w/x", "/usr/bin/nono"]);
    for access in [Read, ReadWrite] {
        let policy = resolve_in(&tree, &dir("/h", access)).unwrap();
        assert_eq!(rule(&policy, "/h"), Some(RuleAccess::List));
        assert_eq!(rule(&policy, "/h/w"), Some(RuleAccess::Mode(access)));
        assert_eq!(closed(&policy, "/h/.config/cloud").kind, PathKind::Absent);
    }
}

#[test]
fn nonos_binary_stays_readable_where_a_grant_writes_around_it() {
    let policy = resolved(&dir("/usr/bin", ReadWrite));
    assert_eq!(rule(&policy, "/usr/bin/ls"), Some(RuleAccess::Mode(ReadWrite)));
    let on_binary: Vec<_> =
        policy.rules.iter().filter(|rule| rule.path == Path::new("/usr/bin/nono")).collect();
    assert!(on_binary.iter().all(|rule| rule.access == RuleAccess::Mode(Read)));
    assert_eq!(
        rule(&resolved(&dir("/usr", Read)), "/usr"),
        Some(RuleAccess::Mode(Read)),
        "reading needs no carving"
    );
}

#[test]
fn special_entries_of_a_carved_directory() {
    let tree = FakeTree::of(&["/h/sock =", "/h/pipe |", "/h/dev !", "/usr/bin/nono"]);
    let policy = resolve_in(&tree, &dir("/h", ReadWrite)).unwrap();
    assert_eq!(rule(&policy, "/h/sock"), None);
    assert_eq!(rule(&policy, "/h/pipe"), Some(RuleAccess::Mode(ReadWrite)));
    assert_eq!(rule(&policy, "/h/dev"), Some(RuleAccess::Mode(ReadWrite)));
}

#[test]
fn a_deny_in_a_project_is_masked_and_the_grant_stays_whole() {
    let policy = resolved(&RunRequest { deny: vec![".env".into()], ..dir(".", ReadWrite) });
    assert_eq!(rule(&policy, "/h/w"), Some(RuleAccess::Mode(ReadWrite)));
    assert_eq!(closed(&policy, "/h/w/.env").how, ClosedHow::Mask);
    assert_eq!(closed(&policy, "/h/w/.env").by, ClosedBy::Deny(CapabilitySource::User));
}

#[test]
fn a_deny_beside_carved_names_is_carved_too() {
    let policy =
        resolved(&RunRequest { deny: vec!["/h/notes".into(), "/h/.config/other".into()], ..dir("/h", Read) });
    for path in ["/h/notes", "/h/.config/other"] {
        assert_eq!(rule(&policy, path), None);
        assert_eq!(closed(&policy, path).how, ClosedHow::NotGranted);
    }
    let absent = resolved(&RunRequest { deny: vec!["/h/later".into()], ..dir("/h", ReadWrite) });
    assert_eq!(closed(&absent, "/h/later").how, ClosedHow::NotGranted);
}

#[test]
fn a_deny_that_nothing_can_enforce_is_refused() {
    let request = RunRequest { deny: vec!["later".into()], ..dir(".", ReadWrite) };
    assert!(matches!(refused(&request), PolicyError::DenyAbsent { path, grant }
        if path == Path::new("later") && grant == Path::new(".")));
    let outside = resolved(&RunRequest { deny: vec!["/nowhere/x".into()], ..dir(".", ReadWrite) });
    assert_eq!(closed(&outside, "/nowhere/x").how, ClosedHow::NotGranted);

    let mut profile = MergedProfile::default();
    profile.filesystem.deny = vec![profile_path("$WORKDIR/later", true)];
    let policy = with_profile(&profile, &dir(".", ReadWrite)).unwrap();
    assert!(policy.closed.iter().all(|closed| closed.resolved != Path::new("/h/w/later")));
    assert!(
        policy
            .notes
            .iter()
            .any(|note| matches!(note, PolicyNote::Skipped { path, .. } if path.ends_with("later")))
    );
}

#[test]
fn a_grant_inside_a_deny_contradicts_it() {
    let request = RunRequest { deny: vec!["/h/w".into()], ..dir("/h/w/src", Read) };
    assert!(matches!(refused(&request), PolicyError::GrantDenied { path, deny, .. }
        if path == Path::new("/h/w/src") && deny == Path::new("/h/w")));
    let same = RunRequest { deny: vec!["/h/w".into()], ..dir("/h/w", Read) };
    assert!(matches!(refused(&same), PolicyError::GrantDenied { .. }));
    let base = resolved(&RunRequest { deny: vec!["/usr/bin".into()], ..RunRequest::default() });
    assert!(granted(&base, "/usr/bin").is_none(), "a group's offer gives way");
    assert_eq!(closed(&base, "/usr/bin").how, ClosedHow::Mask, "/usr itself still covers it");
}

#[test]
fn tool_groups_apply_when_included_and_give_way_to_protection() {
    let mut profile = MergedProfile::default();
    profile.groups.include = vec!["tool".into()];
    let policy = with_profile(&profile, &RunRequest::default()).unwrap();
    assert!(granted(&policy, "/h/.tool").is_some());
    assert!(granted(&policy, "/h/.ssh/tool").is_none());
    profile.groups.exclude = vec!["system".into()];
    assert!(granted(&with_profile(&profile, &RunRequest::default()).unwrap(), "/usr").is_none());
    profile.groups.exclude = vec!["ssh".into()];
    let error = with_profile(&profile, &RunRequest::default()).unwrap_err();
    assert!(matches!(error, PolicyError::ProtectedGroupExcluded { .. }));
    profile.groups.exclude = vec!["sysstem".into()];
    let error = with_profile(&profile, &RunRequest::default()).unwrap_err();
    assert!(matches!(error, PolicyError::UnknownGroup { nearest: Some(near), .. } if near == "system"));
}

#[test]
fn paths_of_a_profile_are_expanded_named_and_may_be_optional() {
    let wanted = |path: &str, optional| ProfileGrant {
        at: profile_path(path, optional),
        access: Read,
        kind: GrantKind::Directory,
    };
    let mut profile = MergedProfile::default();
    profile.filesystem.grants = vec![wanted("~/.tool", false), wanted("~/missing", true)];
    let policy = with_profile(&profile, &RunRequest::default()).unwrap();
    assert_eq!(granted(&policy, "/h/.tool").unwrap().source, CapabilitySource::Profile("p".into()));
    profile.filesystem.grants.push(wanted("~/missing", false));
    let error = with_profile(&profile, &RunRequest::default()).unwrap_err();
    assert_eq!(error.to_string(), "~/missing does not exist (granted by profile:p)");
    assert!(error.hint().unwrap().contains("optional"));
}

#[test]
fn the_working_directory_is_granted_by_profile_or_flag() {
    let mut profile = MergedProfile::default();
    profile.workdir = MergedWorkdir { access: WorkdirAccess::Read, profile: Some("p".into()) };
    let policy = with_profile(&profile, &RunRequest::default()).unwrap();
    assert_eq!(granted(&policy, "/h/w").unwrap().source, CapabilitySource::Profile("p".into()));
    let both = with_profile(&profile, &RunRequest { allow_cwd: true, ..RunRequest::default() }).unwrap();
    let grant = granted(&both, "/h/w").unwrap();
    assert_eq!((grant.access, &grant.source), (ReadWrite, &CapabilitySource::User));
    assert_eq!(both.workdir, Path::new("/h/w"));
}

#[test]
fn the_program_is_readable_unless_covered_or_closed() {
    let program = |path: &str| resolved(&RunRequest { program: Some(path.into()), ..RunRequest::default() });
    let own = program("/other/data");
    assert_eq!(granted(&own, "/other/data").unwrap().source, CapabilitySource::System);
    assert!(granted(&program("/usr/bin/ls"), "/usr/bin/ls").is_none());
    assert!(granted(&program("/h/.ssh/tool"), "/h/.ssh/tool").is_none());
}

#[test]
fn the_session_folder_is_readable_and_its_tmp_writable() {
    let tree = FakeTree::of(&["/run/s/tmp/", "/run/s/caps.json"]);
    let host = HostContext { session_dir: Some("/run/s".into()), cwd: "/".into(), ..HostContext::default() };
    let policy =
        super::resolve(&RunRequest::default(), &host, &MergedProfile::default(), &data(), &tree).unwrap();
    assert_eq!(rule(&policy, "/run/s"), Some(RuleAccess::Mode(Read)));
    assert_eq!(rule(&policy, "/run/s/tmp"), Some(RuleAccess::Mode(ReadWrite)));
}

#[test]
fn sockets_are_checked_like_grants() {
    let sockets = |path: &str| RunRequest { unix_sockets: vec![path.into()], ..RunRequest::default() };
    assert_eq!(resolved(&sockets("sock")).unix_sockets[0].resolved, Path::new("/h/w/sock"));
    assert!(matches!(refused(&sockets(".env")), PolicyError::NotASocket { .. }));
    assert!(matches!(refused(&sockets("none")), PolicyError::PathNotFound { .. }));
    assert!(matches!(
        refused(&RunRequest { deny: vec!["/h/w".into()], ..sockets("sock") }),
        PolicyError::GrantDenied { .. }
    ));
}

#[test]
fn hard_links_of_closed_files_are_told() {
    let tree = tree().with_links("/h/w/.env", 2);
    let request = RunRequest { deny: vec![".env".into()], ..dir(".", ReadWrite) };
    let policy = resolve_in(&tree, &request).unwrap();
    assert!(policy.notes.contains(&PolicyNote::HardLinks { path: "/h/w/.env".into(), links: 2 }));
}

#[test]
fn the_network_is_the_flags_then_the_profiles() {
    let mut profile = MergedProfile::default();
    profile.network.block = Some(false);
    let open = with_profile(&profile, &RunRequest::default()).unwrap();
    assert_eq!(open.network, NetworkPolicy::Allowed);
    let flag = RunRequest { network: Some(NetworkPolicy::Blocked), ..RunRequest::default() };
    assert_eq!(with_profile(&profile, &flag).unwrap().network, NetworkPolicy::Blocked);
    profile.network.allow_connect_port = vec![5432];
    let error = with_profile(&profile, &RunRequest::default()).unwrap_err();
    assert!(matches!(error, PolicyError::NetworkContradiction { .. }));
    profile.network.block = None;
    let ports = with_profile(&profile, &RunRequest::default()).unwrap();
    assert_eq!(ports.network, NetworkPolicy::Ports { connect: vec![5432], listen: vec![] });
}

fn open(rule: &str, source: CapabilitySource) -> HostGrant {
    HostGrant { rule: rule.parse().unwrap(), source }
}

fn hosts(policy: &ResolvedPolicy) -> Vec<String> {
    policy.hosts.iter().map(|grant| format!("{} [{}]", grant.rule, grant.source)).collect()
}

#[test]
fn hosts_of_flags_add_to_those_of_profiles() {
    let mut profile = MergedProfile { chain: vec!["p".into()], ..MergedProfile::default() };
    profile.network.allow_domain = vec!["Example.ORG".into(), "*.x.org:443".into(), "example.org.".into()];
    profile.domain_from = [("*.x.org:443".to_owned(), "base".to_owned())].into();
    let asked = RunRequest {
        hosts: vec![
            open("example.org", CapabilitySource::User),
            open("api.y.org:443", CapabilitySource::Credential("y".into())),
        ],
        ..RunRequest::default()
    };
    let own = ["example.org [profile:p]", "*.x.org:443 [profile:base]"];
    assert_eq!(hosts(&with_profile(&profile, &RunRequest::default()).unwrap()), own);
    let both = with_profile(&profile, &asked).unwrap();
    assert_eq!(hosts(&both)[..2], own);
    assert_eq!(hosts(&both)[2..], ["api.y.org:443 [credential:y]"]);
    let rules = both.hosts.iter().map(|grant| grant.rule.clone()).collect();
    assert_eq!(both.network, NetworkPolicy::Filtered { hosts: rules, connect: vec![], listen: vec![] });
    // In a request that names them in its network, too.
    let network =
        NetworkPolicy::Filtered { hosts: vec!["z.org".parse().unwrap()], connect: vec![], listen: vec![] };
    let named = RunRequest { network: Some(network), ..RunRequest::default() };
    assert_eq!(hosts(&with_profile(&profile, &named).unwrap())[2..], ["z.org [user]"]);
    for whole in [NetworkPolicy::Allowed, NetworkPolicy::Blocked] {
        let flag = RunRequest { network: Some(whole.clone()), ..RunRequest::default() };
        let policy = with_profile(&profile, &flag).unwrap();
        assert_eq!((policy.network, policy.hosts), (whole.clone(), vec![]), "a flag for the whole replaces");
        let error = with_profile(&profile, &RunRequest { hosts: asked.hosts.clone(), ..flag }).unwrap_err();
        assert!(
            matches!(error, PolicyError::HostContradiction { open, .. } if open == (whole == NetworkPolicy::Allowed))
        );
    }
}

#[test]
fn hosts_and_ports_go_together() {
    let ports = |policy: ResolvedPolicy| match policy.network {
        NetworkPolicy::Filtered { connect, listen, .. } => (connect, listen),
        other => panic!("{other:?}"),
    };
    let mut profile = MergedProfile::default();
    profile.network.allow_connect_port = vec![5432];
    let asked = RunRequest { hosts: vec![open("x.org", CapabilitySource::User)], ..RunRequest::default() };
    assert_eq!(ports(with_profile(&profile, &asked).unwrap()), (vec![5432], vec![]));
    let network = Some(NetworkPolicy::Ports { connect: vec![], listen: vec![80] });
    let flags = RunRequest { network, ..asked.clone() };
    assert_eq!(ports(with_profile(&profile, &flags).unwrap()), (vec![], vec![80]), "flags for ports replace");
    // An open network is narrowed by flags, but a profile must not say both.
    let mut whole = MergedProfile::default();
    whole.network.block = Some(false);
    assert_eq!(ports(with_profile(&whole, &asked).unwrap()), (vec![], vec![]));
    whole.network.allow_domain = vec!["x.org".into()];
    for request in [RunRequest::default(), asked] {
        let error = with_profile(&whole, &request).unwrap_err();
        assert!(matches!(error, PolicyError::NetworkContradiction { .. }));
    }
}

#[test]
fn a_pattern_that_names_no_host_is_an_error() {
    let mut profile = MergedProfile { chain: vec!["p".into()], ..MergedProfile::default() };
    profile.network.allow_domain = vec!["http://x.org".into()];
    profile.domain_from = [("http://x.org".to_owned(), "base".to_owned())].into();
    let error = with_profile(&profile, &RunRequest::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("profile base: network.allow_domain: \"http://x.org\" is not a host"),
        "{error}"
    );
}

#[test]
fn variables_that_inject_code_are_refused_by_name() {
    let env = |request| RunRequest { env: vec![request], ..RunRequest::default() };
    let pass = |name: &str| env(EnvRequest::Pass(name.into()));
    let set = |name: &str, value: &str| env(EnvRequest::Set(name.into(), value.into()));
    assert!(
        matches!(refused(&pass("LD_PRELOAD")), PolicyError::NeverVariable { name } if name == "LD_PRELOAD")
    );
    assert!(matches!(refused(&set("BASH_ENV", "x")), PolicyError::NeverVariable { .. }));
    assert!(matches!(refused(&pass("LD_*")), PolicyError::NeverVariable { .. }));
    assert!(matches!(refused(&set("NONO_CAP_FILE", "x")), PolicyError::ReservedVariable { .. }));
    assert!(matches!(refused(&set("", "x")), PolicyError::BadVariable { .. }));
    assert!(matches!(refused(&set("A=B", "x")), PolicyError::BadVariable { .. }));
    assert!(matches!(refused(&set("A", "x\0y")), PolicyError::BadVariable { .. }));
    assert_eq!(resolved(&pass("GH_TOKEN")).environment.allow, ["PATH", "GH_TOKEN"]);
    let mut profile = MergedProfile::default();
    profile.environment.deny_vars = vec!["FOO".into()];
    let policy = with_profile(&profile, &pass("FOO")).unwrap();
    assert!(policy.environment.deny.is_empty(), "the flag is stronger than the profile");
}

#[test]
fn without_a_home_there_is_nothing_to_protect_there() {
    let homeless = HostContext { home: None, ..host() };
    let policy =
        super::resolve(&dir("/other", Read), &homeless, &MergedProfile::default(), &data(), &tree()).unwrap();
    assert!(policy.closed.iter().all(|closed| !matches!(closed.by, ClosedBy::Protected(_))));
}

#[test]
fn the_real_policy_resolves_on_this_host_for_every_profile() {
    let temp = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(temp.path()).unwrap();
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::create_dir_all(home.join("work")).unwrap();
    let host = HostContext {
        cwd: home.join("work"),
        home: Some(home.clone()),
        state_dir: home.join(".nono"),
        config_dir: home.join(".config/nono"),
        ..HostContext::default()
    };
    let store = ProfileStore::new(None);
    for info in store.list() {
        let profile = store.resolve(&ProfileRef::Name(info.name.clone()), &[]).unwrap();
        let request = dir(home.to_str().unwrap(), ReadWrite);
        let policy = super::resolve(&request, &host, &profile, PolicyData::embedded(), &HostFacts).unwrap();
        assert!(policy.rules.iter().all(|rule| rule.path != home.join(".ssh")), "{}", info.name);
        assert_eq!(policy.profiles.last(), Some(&info.name));
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<ResolvedPolicy>(&json).unwrap(), policy);
    }
}
