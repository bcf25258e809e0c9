use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;

fn redactor() -> Redactor {
    Redactor::new(Table::default(), &RedactionKey::from_bytes([7; 32]))
}

fn argv(words: &[&str]) -> Vec<String> {
    redactor().argv(&words.iter().map(OsString::from).collect::<Vec<_>>())
}

/// Text with `*` for every redacted value.
fn stars(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(OPENING) {
        out.push_str(&rest[..at]);
        out.push('*');
        rest = &rest[at + OPENING.len() + DIGITS + 1..];
    }
    out + rest
}

fn seen(words: &[&str]) -> String {
    stars(&argv(words).join(" "))
}

#[test]
fn flags() {
    assert_eq!(seen(&["gh", "--token", "hunter2", "x"]), "gh --token * x");
    assert_eq!(
        seen(&["gh", "--token=hunter2", "--api_key=a", "-password", "b"]),
        "gh --token=* --api_key=* -password *"
    );
    assert_eq!(
        seen(&["a", "--token", "--api-key", "s", "t"]),
        "a --token --api-key * t",
        "a flag is no value"
    );
    assert_eq!(seen(&["a", "--token", "--", "s"]), "a --token -- *");
    assert_eq!(
        seen(&["a", "--no-password", "x", "--password-file", "f"]),
        "a --no-password x --password-file f"
    );
    assert_eq!(seen(&["a", "--token="]), "a --token=");
    assert_eq!(seen(&["curl", "-u", "me:pw", "-ume:pw", "--user=me:pw"]), "curl -u me:* -ume:* --user=me:*");
    assert_eq!(seen(&["curl", "-u", "tok:"]), "curl -u *:");
    assert_eq!(seen(&["python3", "-u", "run.py", "pip", "--user", "x"]), "python3 -u run.py pip --user x");
    assert_eq!(seen(&["/usr/bin/mysql", "-psecret", "db"]), "/usr/bin/mysql -p* db");
    assert_eq!(seen(&["mkdir", "-p", "a/b"]), "mkdir -p a/b");
    assert_eq!(seen(&["docker", "run", "-p", "80:80"]), "docker run -p 80:80");
    assert_eq!(seen(&["docker", "login", "-p", "pw"]), "docker login -p *");
}

#[test]
fn headers() {
    let curl = ["curl", "-H", "Authorization: Bearer abc", "-HX-Api-Key: abc", "--header=Cookie: a=b; c=d"];
    assert_eq!(seen(&curl), "curl -H Authorization: Bearer * -HX-Api-Key: * --header=Cookie: *");
    assert_eq!(
        seen(&["http", "x.org", "X-Auth-Token:abc", "Accept:text/html"]),
        "http x.org X-Auth-Token:* Accept:text/html"
    );
    let redactor = redactor();
    assert_eq!(stars(&redactor.header("authorization", "Basic abc")), "Basic *");
    assert_eq!(redactor.header("Accept", "text/html; q=0.5"), "text/html; q=0.5");
    assert_eq!(stars(&redactor.header("Location", "https://x.org/?code=1&a=2")), "https://x.org/?code=*&a=2");
}

#[test]
fn addresses() {
    let redactor = redactor();
    let url = |text: &str| stars(&redactor.url(text));
    assert_eq!(url("https://me:pw@x.org:8080/a?b=c#d"), "https://me:*@x.org:8080/a?b=c#d");
    assert_eq!(url("https://pw@x.org/"), "https://*@x.org/");
    assert_eq!(url("ssh://git@x.org/a.git"), "ssh://git@x.org/a.git");
    assert_eq!(url("https://u:p/w?#@x.org/"), "https://u:*@x.org/");
    assert_eq!(url("https://x.org:80/a@b"), "https://x.org:80/a@b");
    assert_eq!(
        url("https://x.org/?a=1&Access%5FToken=2&sig=3;4#5"),
        "https://x.org/?a=1&Access%5FToken=*&sig=*"
    );
    assert_eq!(url("https://x.org/#access_token=1&a=2"), "https://x.org/#access_token=*&a=2");
    assert_eq!(url("https://x.org/?next=https%3A%2F%2Fy.org%2F%3Ftoken%3D1"), "https://x.org/?next=*");
    assert_eq!(
        url("https://x.org/?next=https%3A%2F%2Fy.org%2F"),
        "https://x.org/?next=https%3A%2F%2Fy.org%2F"
    );
    assert_eq!(url("/a?token=1 2"), "/a?token=*");
    assert_eq!(
        seen(&["curl", "-d", "a=b&password=c", "u:p@h", "git@x.org:a/b"]),
        "curl -d a=b&password=* u:*@h git@x.org:a/b"
    );
}

#[test]
fn variables() {
    let env =
        ["env", "GH_TOKEN=a", "AWS_SECRET_ACCESS_KEY=b", "DB_PASSWORD=c d", "A=b", "URL=https://u:p@h/"];
    assert_eq!(seen(&env), "env GH_TOKEN=* AWS_SECRET_ACCESS_KEY=* DB_PASSWORD=* A=b URL=https://u:*@h/");
    let redactor = redactor();
    assert_eq!(stars(&redactor.env("API_KEY".as_ref(), "x".as_ref())), "*");
    assert_eq!(redactor.env("HOME".as_ref(), "/home/me".as_ref()), "/home/me");
}

#[test]
fn shells_and_quotes() {
    let line = "curl -H 'Authorization: Bearer a b' \"https://h/?token=x\" --password 'a b' c";
    assert_eq!(
        seen(&["sh", "-c", line]),
        "sh -c curl -H 'Authorization: Bearer *' \"https://h/?token=*\" --password '*' c"
    );
    assert_eq!(
        seen(&["sh", "-c", "bash -c \"mysql --password \\\"a b\\\"\""]),
        "sh -c bash -c \"mysql --password \"*\"\""
    );
    assert_eq!(
        seen(&["sh", "-c", "PGPASSWORD=\"a b\" psql; echo 'done'"]),
        "sh -c PGPASSWORD=* psql; echo 'done'"
    );
    assert_eq!(seen(&["echo", "it's fine"]), "echo it's fine");
    assert_eq!(stars(&redactor().text("Cookie: a=b; c\nAccept: d")), "Cookie: *\nAccept: d");
}

#[test]
fn json_bodies() {
    let body = r#"{"user": "me", "accessToken": "a\"b", "pin": 1, "password": 1234}"#;
    assert_eq!(seen(&["-d", body]), r#"-d {"user": "me", "accessToken": "*", "pin": 1, "password": *}"#);
    assert_eq!(
        stars(&redactor().text(r#"x "{\"token\":\"a b\",\"c\":1}" y"#)),
        r#"x "{\"token\":\"*\",\"c\":1}" y"#
    );
}

#[test]
fn shapes_anywhere() {
    let redactor = redactor();
    for secret in [
        "sk-proj-abcdefghijklmnop",
        "ghp_abcdefghijklmnop",
        "github_pat_abcdefghijklmnop",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-1234-5678",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef\n-----END OPENSSH PRIVATE KEY-----",
    ] {
        assert_eq!(stars(&redactor.text(&format!("a={secret}"))), "a=*");
        assert_eq!(stars(&redactor.text(&format!("x {secret} y"))), "x * y");
        assert_eq!(stars(&redactor.url(&format!("https://h/%3D{secret}"))), "https://h/%3D*");
    }
    assert_eq!(stars(&redactor.text("got bearer abcd.")), "got bearer *");
    assert_eq!(stars(&redactor.text("Basic dTpw basic things")), "Basic * basic things");
    assert_eq!(redactor.text("task-management-and-more"), "task-management-and-more");
    assert_eq!(stars(&redactor.text("-----BEGIN PRIVATE KEY-----\nabc")), "*", "cut off");
}

#[test]
fn equal_secrets_match() {
    let redactor = redactor();
    let mark = redactor.mark("hunter2");
    assert!(is_mark(&mark));
    assert_eq!(redactor.header("Authorization", "Bearer hunter2"), format!("Bearer {mark}"));
    assert_eq!(redactor.url("https://h/?token=hunter%32"), format!("https://h/?token={mark}"));
    assert_eq!(redactor.argv(&["--token=hunter2".into()]), [format!("--token={mark}")]);
    assert_eq!(redactor.text(&redactor.text("--token=hunter2")), format!("--token={mark}"));
    let other = Redactor::new(Table::default(), &RedactionKey::from_bytes([8; 32]));
    assert_ne!(other.mark("hunter2"), mark);
}

#[test]
fn the_table_can_be_changed() {
    let changes = Changes {
        flags: vec!["--magic".to_owned()],
        headers: vec!["X-Magic".to_owned()],
        query_keys: vec!["magic*".to_owned()],
        env: vec!["MAGIC".to_owned()],
        not_flags: vec!["--token".to_owned()],
        not_query_keys: vec!["code".to_owned()],
        ..Changes::default()
    };
    let redactor = Redactor::new(Table::with(&changes), &RedactionKey::from_bytes([7; 32]));
    let words = ["--magic", "a", "--token", "b", "MAGIC=c", "X-Magic: d", "https://h/?code=1&magical=2"];
    let words = redactor.argv(&words.map(OsString::from));
    assert_eq!(stars(&words.join(" ")), "--magic * --token b MAGIC=* X-Magic: * https://h/?code=1&magical=*");
}

#[test]
fn the_key_is_made_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("redaction.key");
    let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
        let make = || *RedactionKey::load_or_replace(&path).unwrap().0.as_bytes();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0] && *key != [0; 32]));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(RedactionKey::load_or_replace(&path), Err(KeyError::Wrong { .. })));
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(RedactionKey::load_or_replace(&path).is_err());
}

/// A power loss can leave an empty key: one of several processes moves it aside, replaces it, and reports it once.
#[test]
fn a_damaged_key_is_replaced_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("redaction.key");
    for (number, wrong) in [0, 31, 33].into_iter().enumerate() {
        std::fs::write(&path, vec![7; wrong]).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let loaded: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| RedactionKey::load_or_replace(&path).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(loaded.iter().all(|(key, _)| key.as_bytes() == loaded[0].0.as_bytes()), "one key for all");
        let told: Vec<_> = loaded.iter().filter_map(|(_, aside)| aside.as_ref()).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(std::fs::read(told[0]).unwrap(), vec![7; wrong]);
        assert_eq!(RedactionKey::load_or_replace(&path).unwrap().1, None);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2 + number, "and nothing else lies there");
        std::fs::remove_file(&path).unwrap();
    }
}

/// Secret of letters that occur in no marker and in no other text of the tests, so that it cannot appear by chance.
fn secret() -> impl Strategy<Value = String> {
    "[G-Z]{8,24}"
}

fn noise() -> impl Strategy<Value = String> {
    prop_oneof!["[a-f]{0,6}", "\\PC{0,12}", "[-=:&?#'\"@/ ]{0,6}"]
}

proptest! {
    #[test]
    fn a_secret_never_survives_in_words(
        secret in secret(),
        before in proptest::collection::vec("[a-f./]{1,8}", 0..4),
        form in 0..12_usize,
        after in noise(),
    ) {
        let forms = [
            vec!["--token".to_owned(), secret.clone()],
            vec![format!("--password={secret}")],
            vec!["-H".to_owned(), format!("Authorization: Bearer {secret}")],
            vec![format!("-HX-Api-Key:{secret}")],
            vec!["-u".to_owned(), format!("me:{secret}")],
            vec![format!("MY_SECRET_THING={secret}")],
            vec![format!("https://me:{secret}@h/")],
            vec![format!("https://h/a?b=c&sig={secret}&d=e")],
            vec![format!("ghp_{secret}{secret}")],
            vec!["sh".to_owned(), "-c".to_owned(), format!("x --password '{secret}'")],
            vec![format!("{{\"client_secret\": \"{secret}\"}}")],
            vec![format!("--url=https://h/?access_token={secret}")],
        ];
        let words = before.iter().chain(&forms[form]).chain([&after]).map(OsString::from).collect::<Vec<_>>();
        let seen = redactor().argv(&words).join(" ");
        prop_assert!(!seen.contains(&secret), "{seen}");
    }

    #[test]
    fn a_secret_never_survives_in_an_address(
        secret in secret(), path in "[a-z/%.]{0,12}", query in "[a-z=&;]{0,12}", end in "[a-z#?&=]{0,8}", form in 0..4_usize,
    ) {
        let url = match form {
            0 => format!("https://me:{secret}@h/{path}?{query}{end}"),
            1 => format!("https://h/{path}?{query}&token={secret}{end}"),
            2 => format!("https://h/{path}?{query}#access_token={secret}{end}"),
            _ => format!("http://{secret}@h/{path}"),
        };
        for seen in [redactor().url(&url), redactor().text(&url), redactor().text(&format!("see '{url}' or"))] {
            prop_assert!(!seen.contains(&secret), "{url} {seen}");
        }
    }

    #[test]
    fn a_secret_never_survives_in_a_header(
        secret in secret(), name in 0..4_usize, before in "[a-z]{0,6} ?", after in "[ ;=a-z]{0,6}",
    ) {
        let name = ["Authorization", "cookie", "X-API-KEY", "proxy-authorization"][name];
        let seen = redactor().header(name, &format!("{before}{secret}{after}"));
        prop_assert!(!seen.contains(&secret), "{seen}");
        let seen = redactor().text(&format!("GET / HTTP/1.1\r\n{name}: {before}{secret}{after}\r\nA: b"));
        prop_assert!(!seen.contains(&secret) && seen.ends_with("\r\nA: b"), "{seen}");
    }

    #[test]
    fn anything_goes_in(words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6)) {
        let redactor = redactor();
        for word in &words {
            let text = String::from_utf8_lossy(word);
            let _ = (redactor.url(&text), redactor.text(&text), redactor.header(&text, &text));
        }
        let words: Vec<OsString> = words.into_iter().map(OsString::from_vec).collect();
        prop_assert_eq!(redactor.argv(&words).len(), words.len());
    }

    /// No text panics, however its punctuation is arranged.
    #[test]
    fn odd_texts(text in "[-a-c=:&?#'\"@/\\\\ ]{0,24}(token|Bearer |https://|eyJ|--password|-----BEGIN )?[-a-c=:&?#'\"@/\\\\ ]{0,24}") {
        let redactor = redactor();
        let _ = (redactor.url(&text), redactor.text(&text), redactor.argv(&[text.clone().into()]));
    }
}
