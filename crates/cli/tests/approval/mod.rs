//! The webhook: the library's backend and the real helper, against a real server process on loopback that behaves well,
//! badly and not at all.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod helper;
mod server;

use crate::world;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nono::AccessMode;
use nono::approval::webhook::Secret;
use nono::approval::{
    ApprovalAnswer, ApprovalBackend, ApprovalError, Asker, Object, Question, Scope, Subject, Verdict,
    Waiting, Webhook, WebhookError, WebhookOptions,
};

use server::{SECRET, Server};
use world::World;

/// For questions that are answered: it only keeps a hang from hanging the suite.
const LONG: Duration = Duration::from_secs(60);
/// For questions that are not: all of it is waited for.
const SHORT: Duration = Duration::from_secs(2);

fn options(url: String, timeout: Duration) -> WebhookOptions {
    WebhookOptions {
        url,
        secret: Secret::new(SECRET).unwrap(),
        helper: vec![OsString::from(env!("CARGO_BIN_EXE_nono")), OsString::from("__webhook")],
        timeout,
        certificates: None,
    }
}

fn webhook(server: &Server, timeout: Duration) -> Webhook {
    let webhook = Webhook::start(options(server.url("http"), timeout)).unwrap();
    webhook.begin("20260801-101500-1");
    webhook
}

fn question(id: u64) -> Question {
    Question {
        id,
        subject: Subject::Access {
            path: "/srv/data/file".into(),
            written: None,
            access: AccessMode::Read,
            object: Object::File,
            folder: Some("/srv/data".into()),
        },
        asker: Asker { program: "/usr/bin/rg".into(), pid: 4711 },
        reason: Some("because \u{1b}[1m".to_owned()),
    }
}

/// The process that asked waits until this is set.
#[derive(Default)]
struct Gone(AtomicBool);

impl Waiting for Gone {
    fn still_wanted(&self) -> bool {
        !self.0.load(Ordering::SeqCst)
    }

    fn terminal(&self) -> Option<nono::approval::Lease> {
        None
    }
}

fn ask(webhook: &Webhook, id: u64) -> Result<ApprovalAnswer, ApprovalError> {
    webhook.decide(&question(id), &Gone::default())
}

/// No answer, and why.
#[track_caller]
fn why(result: Result<ApprovalAnswer, ApprovalError>) -> String {
    match result.unwrap_err() {
        ApprovalError::Failed { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_is_taken() {
    let mut server = Server::start("allow,deny");
    let webhook = webhook(&server, LONG);
    let answer = ask(&webhook, 1).unwrap();
    assert_eq!(answer.verdict, Verdict::Allow(Scope::Session));
    assert_eq!(answer.by, format!("webhook:{} (a test)", server.url("http")));
    let asked = server.question();
    assert_eq!(asked["session"], "20260801-101500-1");
    assert_eq!(asked["id"], 1);
    assert_eq!(asked["subject"]["path"], "/srv/data/file");
    assert_eq!(asked["subject"]["access"], "read");
    assert_eq!(asked["subject"]["object"], "file");
    assert_eq!(asked["subject"]["folder"], "/srv/data");
    assert_eq!(asked["program"], "/usr/bin/rg");
    assert_eq!(asked["pid"], 4711);
    assert_eq!(asked["reason"], "because \u{1b}[1m");
    assert_eq!(ask(&webhook, 2).unwrap().verdict, Verdict::Deny);
    assert_ne!(server.question()["nonce"], asked["nonce"]);
}

#[test]
fn answers_that_are_not_clear_are_none() {
    for (mode, expected) in [
        ("other-id", "to another question"),
        ("other-nonce", "to another question"),
        ("other-secret", "the answer has a wrong signature"),
        ("unsigned", "not signed"),
        ("two-signatures", "not signed"),
        ("html", "not application/json"),
        ("redirect", "the service redirects (status 307)"),
        ("broken", "the service answered with status 500"),
        ("huge", "limit"),
        ("half", ""),
        ("close", ""),
        ("close-at-once", ""),
    ] {
        // The well-behaved answer behind it would be taken, if the question were sent again.
        let mut server = Server::start(&format!("{mode},allow"));
        let webhook = webhook(&server, LONG);
        let said = why(ask(&webhook, 1));
        assert!(said.contains(expected), "{mode}: {said}");
        assert!(server.line().starts_with("got"), "{mode}: it was asked");
        assert!(ask(&webhook, 2).is_ok(), "{mode}: the next question is answered");
    }
}

#[test]
fn silence_is_no_answer() {
    for mode in ["hang", "drip"] {
        let mut server = Server::start(mode);
        let webhook = webhook(&server, SHORT);
        assert_eq!(why(ask(&webhook, 1)), "there was no answer in time", "{mode}");
        server.question();
        assert_eq!(server.line(), "left", "{mode}: the connection was given up");
    }
}

#[test]
fn an_answer_that_comes_too_late_counts_for_nothing() {
    let mut server = Server::start("late,deny");
    let webhook = webhook(&server, Duration::from_secs(5));
    assert_eq!(why(ask(&webhook, 1)), "there was no answer in time");
    server.question();
    assert_eq!(server.line(), "late");
    assert_eq!(ask(&webhook, 2).unwrap().verdict, Verdict::Deny, "not the late answer to the first");
}

#[test]
fn a_second_answer_counts_for_nothing() {
    let server = Server::start("twice,replay,deny");
    let webhook = webhook(&server, LONG);
    assert_eq!(ask(&webhook, 1).unwrap().verdict, Verdict::Deny);
    assert!(why(ask(&webhook, 1)).contains("to another question"), "the nonce is used up");
    assert_eq!(ask(&webhook, 3).unwrap().verdict, Verdict::Deny);
}

#[test]
fn a_busy_service_is_asked_again_with_the_same_nonce() {
    let mut server = Server::start("busy,busy,allow");
    let webhook = webhook(&server, LONG);
    assert_eq!(ask(&webhook, 1).unwrap().verdict, Verdict::Allow(Scope::Session));
    let nonces: Vec<_> = (0..3).map(|_| server.question()["nonce"].clone()).collect();
    assert!(nonces.iter().all(|nonce| *nonce == nonces[0]), "{nonces:?}");
}

#[test]
fn a_service_that_stays_busy_or_away_is_given_up() {
    let mut server = Server::start("busy");
    let webhook = webhook(&server, LONG);
    assert!(why(ask(&webhook, 1)).contains("the service answered with status 503"));
    let attempts: Vec<_> = (0..4).map(|_| server.question()["id"].clone()).collect();
    assert_eq!(attempts.len(), 4);
    drop(server);
    let said = why(ask(&webhook, 2));
    assert!(said.to_lowercase().contains("refused"), "{said}");
}

#[test]
fn a_question_that_no_process_waits_for_is_given_up() {
    let mut server = Server::start("hang,allow");
    let webhook = webhook(&server, LONG);
    let gone = Gone::default();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| webhook.decide(&question(1), &gone));
        server.question();
        gone.0.store(true, Ordering::SeqCst);
        assert_eq!(asking.join().unwrap(), Err(ApprovalError::Withdrawn));
    });
    assert_eq!(server.line(), "left");
    assert!(ask(&webhook, 2).is_ok());
}

#[test]
fn tls_is_believed_by_its_certificates_only() {
    let at = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/approval").join(name);
    let server = Server::start_tls("allow", &at("server.pem"));
    let known =
        WebhookOptions { certificates: Some(at("authority.pem")), ..options(server.url("https"), LONG) };
    let webhook = Webhook::start(known).unwrap();
    assert_eq!(ask(&webhook, 1).unwrap().verdict, Verdict::Allow(Scope::Session));
    // An authority that did not certify this server.
    let unknown =
        WebhookOptions { certificates: Some(at("other.pem")), ..options(server.url("https"), LONG) };
    let webhook = Webhook::start(unknown).unwrap();
    let said = why(ask(&webhook, 2));
    assert!(said.contains("certificate") || said.contains("UnknownIssuer"), "{said}");
}

#[test]
fn what_cannot_work_is_known_at_once() {
    let refused = |change: fn(&mut WebhookOptions)| {
        let mut options = options("https://127.0.0.1:1/".to_owned(), LONG);
        change(&mut options);
        Webhook::start(options).unwrap_err()
    };
    assert!(matches!(refused(|o| o.url = "http://10.0.0.1/".to_owned()), WebhookError::Plain { .. }));
    assert!(matches!(refused(|o| o.helper = vec!["/nowhere".into()]), WebhookError::Helper { .. }));
    assert!(matches!(refused(|o| o.helper = vec!["/bin/false".into()]), WebhookError::Helper { .. }));
    // One that says more, and something else, than it should.
    assert!(matches!(refused(|o| o.helper = vec!["/bin/yes".into()]), WebhookError::Helper { .. }));
    let said = refused(|o| o.certificates = Some("/nowhere.pem".into())).to_string();
    assert!(said.contains("/nowhere.pem cannot be used"), "{said}");
}

#[test]
fn the_reference_receiver_answers() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let server = Server::receiver(&secret, "/srv/data");
    let webhook = webhook(&server, LONG);
    assert_eq!(ask(&webhook, 1).unwrap().verdict, Verdict::Allow(Scope::Session));
    let outside = |path: &str, access| {
        let object = Object::File;
        let subject = Subject::Access { path: path.into(), written: None, access, object, folder: None };
        let question = Question { subject, ..question(2) };
        webhook.decide(&question, &Gone::default()).unwrap().verdict
    };
    assert_eq!(outside("/srv/data/x", AccessMode::Read), Verdict::Allow(Scope::Session));
    assert_eq!(outside("/srv/data/x", AccessMode::ReadWrite), Verdict::Deny);
    assert_eq!(outside("/srv/database", AccessMode::Read), Verdict::Deny);
    let mut other = options(server.url("http"), LONG);
    other.secret = Secret::new("another secret, long enough").unwrap();
    assert!(why(ask(&Webhook::start(other).unwrap(), 3)).contains("401"));
}

#[test]
fn a_run_is_answered_by_the_service() {
    let world = World::new();
    world.file("home/secret", SECRET, 0o600);
    world.file("home/data/file", "what it wants", 0o644);
    let mut server = Server::start("allow,deny");
    let mut run = || {
        let mut command = world.command("nono");
        command.args(["run", "-s", "--ask", "--approve", &format!("webhook:{}", server.url("http"))]);
        command.arg("--approve-secret").arg(world.path("home/secret"));
        let output = command.arg("--").arg("cat").arg(world.path("home/data/file")).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), server.question(), output.status.success())
    };
    let (said, asked, fine) = run();
    assert_eq!((said.as_str(), fine), ("what it wants", true), "{asked}");
    assert_eq!(asked["subject"]["path"], world.path("home/data/file").to_str().unwrap());
    assert!(!asked["session"].as_str().unwrap().is_empty());
    let (said, _, fine) = run();
    assert_eq!((said.as_str(), fine), ("", false));
}
