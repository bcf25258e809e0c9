use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

fn read(text: &str) -> Result<CredentialRequest, CredentialError> {
    text.parse()
}

fn credential(text: &str) -> Credential {
    Credential::new(read(text).unwrap(), &NetworkSettings::default()).unwrap()
}

fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn fetch(text: &str, pairs: &[(&str, &str)]) -> Result<String, CredentialError> {
    let policy = nono_policy::CapabilitySet::new().to_policy().unwrap();
    let env = env(pairs);
    let around = SecretSources { policy: &policy, env: &env, cwd: Path::new("/") };
    credential(text).fetch(&around).map(|secret| secret.reveal().to_owned())
}

#[test]
fn sources_are_read() {
    let source = |text: &str| read(text).unwrap().source;
    assert_eq!(source("openai"), None);
    assert_eq!(source("openai=env:KEY"), Some(SecretSource::Env("KEY".into())));
    assert_eq!(source("openai=file:/a:b"), Some(SecretSource::File("/a:b".into())));
    assert_eq!(source("openai=cmd:pass show a=b"), Some(SecretSource::Command("pass show a=b".into())));
    let keyring = |service: &str, user: Option<&str>| {
        Some(SecretSource::Keyring { service: service.into(), user: user.map(Into::into) })
    };
    assert_eq!(source("openai=keyring:a"), keyring("a", None));
    assert_eq!(source("openai=keyring:a/b/me"), keyring("a/b", Some("me")));
}

#[test]
fn what_is_wrong_is_never_repeated() {
    for wrong in [
        "openai=sk-hunter2",
        "openai=hunter2:x",
        "openai=file:",
        "openai=env:hunter2=",
        "openai=keyring:hunter2/",
        "openai=",
        "hunter2/x=env:A",
        "=env:hunter2",
        "",
    ] {
        let error = read(wrong).unwrap_err();
        let said = format!("{error} {:?}", error.hint());
        assert!(!said.contains("hunter2") && error.is_usage(), "{wrong}: {said}");
    }
}

#[test]
fn files_are_found_from_where_they_were_named() {
    let at = |text: &str| SecretSource::File(text.into()).at(Path::new("/here"), Some(Path::new("/home/me")));
    assert_eq!(at("x"), SecretSource::File("/here/x".into()));
    assert_eq!(at("/x"), SecretSource::File("/x".into()));
    assert_eq!(at("~/x"), SecretSource::File("/home/me/x".into()));
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let error = Credential::new(read("opnai").unwrap(), &NetworkSettings::default()).unwrap_err();
    assert!(error.hint().unwrap().contains("mistral, npm, openai"), "{error:?}");
}

#[test]
fn a_bare_name_takes_the_first_usual_variable_that_is_set() {
    assert_eq!(fetch("github", &[("GITHUB_TOKEN", "b"), ("GH_TOKEN", "")]).unwrap(), "b");
    assert_eq!(fetch("github", &[("GITHUB_TOKEN", "b"), ("GH_TOKEN", "a")]).unwrap(), "a");
    let error = fetch("github", &[]).unwrap_err();
    assert!(error.to_string().contains("GH_TOKEN and GITHUB_TOKEN are not set"), "{error}");
    assert_eq!(fetch("github=env:OTHER", &[("OTHER", "c"), ("GH_TOKEN", "a")]).unwrap(), "c");
}

#[test]
fn every_variable_that_may_hold_it_is_known() {
    let credential = credential("github=env:OTHER");
    assert_eq!(credential.variables().collect::<Vec<_>>(), ["OTHER", "GH_TOKEN", "GITHUB_TOKEN"]);
}

#[test]
fn cmd_sources_take_the_output_or_show_the_error() {
    assert_eq!(fetch("openai=cmd:printf 'a\\n'", &[]).unwrap(), "a");
    let error = fetch("openai=cmd:echo why >&2; false", &[("PATH", "/bin")]).unwrap_err();
    assert!(error.to_string().contains("why"), "{error}");
}

#[test]
fn what_no_header_carries_is_no_secret() {
    for said in ["", "\\n", "a\\nb", "a\\r\\nX: y\\n", "a\\0b"] {
        let error = fetch(&format!("openai=cmd:printf '{said}'"), &[]).unwrap_err();
        assert!(matches!(error, CredentialError::Secret { .. }), "{said}: {error}");
    }
}

#[test]
fn a_keyring_needs_its_tool() {
    let error = fetch("openai=keyring:a", &[("PATH", "/nowhere")]).unwrap_err();
    assert!(matches!(error, CredentialError::NoKeyring { .. }), "{error}");
}

#[test]
fn a_keyring_is_asked_for_the_service_and_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let tool = dir.path().join("secret-tool");
    // Written by another process: a thread that forks while this one has it open for writing would keep it busy.
    let script =
        format!("printf '#!/bin/sh\\necho \"$@\"\\n' > {0} && chmod 755 {0}", tool.to_str().unwrap());
    assert!(std::process::Command::new("/bin/sh").args(["-c", &script]).status().unwrap().success());
    let path = dir.path().to_str().unwrap();
    let said = |text| fetch(text, &[("PATH", path)]).unwrap();
    assert_eq!(said("openai=keyring:a/me"), "lookup service a username me");
    assert_eq!(said("openai=keyring:a"), "lookup service a");
}

#[test]
fn a_file_must_be_the_users_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    fs::write(&file, "secret\n").unwrap();
    let text = format!("openai=file:{}", file.display());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(fetch(&text, &[]).unwrap(), "secret");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let error = fetch(&text, &[]).unwrap_err();
    assert!(error.hint().unwrap().contains("chmod 600"), "{error}");
}
