//! Secrets on the command line are in no file of nono's.

use std::fs;
use std::io;
use std::path::Path;

use super::kit::Kit;

const SECRETS: [&str; 8] = [
    "hunter2-flag",
    "hunter2-word",
    "hunter2-userinfo",
    "hunter2-query",
    "hunter2-header",
    "hunter2-env",
    "hunter2-shell",
    "ghp_0123456789abcdefghijklmnopqrstuvwxyzA",
];

/// Words that a command may be given, each with a secret.
fn words() -> Vec<String> {
    let words = format!(
        "--token={0}|--password|{1}|https://me:{2}@example.org/path?api_key={3}&page=2|-H|Authorization: Bearer {4}|\
GITHUB_TOKEN={5}|curl -H 'X-Api-Key: {6}' https://example.org|{7}",
        SECRETS[0], SECRETS[1], SECRETS[2], SECRETS[3], SECRETS[4], SECRETS[5], SECRETS[6], SECRETS[7]
    );
    words.split('|').map(str::to_owned).collect()
}

/// The files below a folder in which one of the secrets stands.
fn found(dir: &Path, secrets: &[&str]) -> Vec<String> {
    loop {
        match search(dir, secrets) {
            // A pack is replaced by a smaller one at any time: what was listed then has another name, and is looked at there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found.unwrap(),
        }
    }
}

fn search(dir: &Path, secrets: &[&str]) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let (path, kind) = (entry.as_ref().unwrap().path(), entry?.file_type()?);
        if kind.is_dir() {
            found.extend(search(&path, secrets)?);
        } else if kind.is_file() {
            let bytes = fs::read(&path)?;
            let has = |secret: &&&str| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            found.extend(secrets.iter().find(has).map(|secret| format!("{}: {secret}", path.display())));
        }
    }
    Ok(found)
}

#[test]
fn no_secret_is_in_any_file() {
    let kit = Kit::new();
    for flags in [&["--rollback"][..], &["--audit-integrity"], &["--no-audit", "--rollback"]] {
        let mut command = kit.command(&["run", "--silent", "--allow-cwd"]);
        // It says when it runs, and ends when it is told to.
        command.args(flags).args(["--", "bash", "-c", "echo x > file; echo; read", "bash"]).args(words());
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        assert_eq!(
            found(&kit.world.path("state"), &SECRETS),
            Vec::<String>::new(),
            "while it runs, {flags:?}"
        );
        assert!(kit.nono(&["ps"]).ok().out.contains("bash"), "it can be found all the same");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(found(&kit.world.path("state"), &SECRETS), Vec::<String>::new(), "{flags:?}");
    }
    // The test would find them.
    kit.world.file("state/probe", SECRETS[3], 0o600);
    assert_eq!(found(&kit.world.path("state"), &SECRETS).len(), 1);
    // What is no secret is still there.
    let command = kit.nono(&["audit", "list", "--json"]).ok().json()[0]["command"].to_string();
    for plain in ["example.org/path", "page=2", "Authorization: Bearer", "GITHUB_TOKEN=", "--token="] {
        assert!(command.contains(plain), "{plain}: {command}");
    }
    for said in [
        kit.nono(&["audit", "show", "last"]).ok().out,
        kit.nono(&["audit", "show", "last", "--json"]).ok().out,
        kit.nono(&["audit", "export"]).ok().out,
        kit.nono(&["rollback", "list", "--all"]).ok().out,
    ] {
        assert!(SECRETS.iter().all(|secret| !said.contains(secret)), "{said}");
    }
}

/// What stands for the secrets of a run, in their order.
fn marks(kit: &Kit, words: &[&str]) -> Vec<String> {
    let before = kit.ids();
    let mut command = kit.command(&["run", "--silent", "--allow-cwd", "--", "true"]);
    assert!(command.args(words).output().unwrap().status.success());
    let command = kit.record(&kit.new_id(&before))["command"].to_string();
    let marks = command.split("[redacted:").skip(1);
    marks.map(|rest| rest.split(']').next().unwrap().to_owned()).collect()
}

#[test]
fn equal_secrets_can_be_matched() {
    let kit = Kit::new();
    let first = marks(&kit, &["--token=one", "--password", "one", "--secret", "two"]);
    assert_eq!(first.len(), 3);
    assert_eq!(first[0], first[1]);
    assert_ne!(first[0], first[2]);
    assert_eq!(
        marks(&kit, &["https://example.org/?api_key=one"]),
        [first[0].clone()],
        "in another run, elsewhere"
    );
    // Under another key it is another digest: without the key, words cannot be tried.
    let other = Kit::new();
    assert_ne!(marks(&other, &["--token=one"])[0], first[0]);
}

#[test]
fn the_table_is_the_persons() {
    let kit = Kit::new();
    assert!(marks(&kit, &["--magic", "word"]).is_empty());
    kit.world.file(
        "state/config.toml",
        "[audit.redaction]\nflags = [\"--magic\"]\nnot_flags = [\"--token\"]\n",
        0o600,
    );
    assert_eq!(marks(&kit, &["--magic", "word"]).len(), 1);
    assert!(marks(&kit, &["--token", "word"]).is_empty());
    for (text, key) in [
        ("[audit.redaction]\nflagz = [\"--magic\"]\n", "audit.redaction.flagz"),
        ("[audit]\nredact = true\n", "audit.redact"),
        ("[audit.redaction]\nflags = 3\n", "audit.redaction.flags"),
    ] {
        kit.world.file("state/config.toml", text, 0o600);
        let said = kit.run(&[], "touch ran").code(125);
        assert!(said.err.contains(key) && said.err.contains("config.toml"), "{said:?}");
        assert!(!kit.world.path("work/ran").exists());
    }
}
