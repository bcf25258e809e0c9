//! The helper process itself: confined, replaced when it dies, and never left behind.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nono::approval::{Scope, Verdict};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::server::Server;
use super::{LONG, ask, webhook};

fn status(pid: u32, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

#[test]
fn it_is_confined_before_the_first_question() {
    let server = Server::start("allow");
    let webhook = webhook(&server, LONG);
    let pid = webhook.helper_pid().unwrap();
    assert_eq!(status(pid, "Seccomp"), "2");
    assert_eq!(status(pid, "NoNewPrivs"), "1");
    assert_eq!(status(pid, "CapEff"), "0000000000000000");
    let own = std::process::id();
    assert_eq!(status(own, "Seccomp"), "0", "this process is not, so the numbers mean something");
    assert!(fs::read(format!("/proc/{pid}/environ")).unwrap().is_empty(), "nothing of the environment");
    let args = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(!args.contains("127.0.0.1") && !args.contains(super::server::SECRET), "{args}");
}

#[test]
fn it_is_replaced_when_it_dies() {
    let server = Server::start("allow");
    let webhook = webhook(&server, LONG);
    let first = webhook.helper_pid().unwrap();
    kill_process(Pid::from_raw(first.cast_signed()).unwrap(), Signal::KILL).unwrap();
    // A signal is delivered before the killed process can be seen alive again, but its pipes close a moment later.
    while fs::read_to_string(format!("/proc/{first}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::yield_now();
    }
    assert_eq!(ask(&webhook, 1).unwrap().verdict, Verdict::Allow(Scope::Session));
    let second = webhook.helper_pid().unwrap();
    assert_ne!(first, second);
    drop(webhook);
    assert!(!fs::exists(format!("/proc/{second}")).unwrap(), "it goes with the backend");
}

fn send(child: &mut Child, value: &Value) {
    let json = value.to_string();
    let length = u32::try_from(json.len()).unwrap().to_be_bytes();
    child.stdin.as_mut().unwrap().write_all(&[&length, json.as_bytes()].concat()).unwrap();
}

fn receive(child: &mut Child) -> Value {
    let output = child.stdout.as_mut().unwrap();
    let mut length = [0; 4];
    output.read_exact(&mut length).unwrap();
    let mut json = vec![0; u32::from_be_bytes(length) as usize];
    output.read_exact(&mut json).unwrap();
    serde_json::from_slice(&json).unwrap()
}

#[test]
fn it_ends_with_its_parent_even_while_a_question_waits() {
    let mut server = Server::start("hang");
    let mut child = Command::new(env!("CARGO_BIN_EXE_nono"))
        .arg("__webhook")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    send(&mut child, &json!({"url": server.url("http"), "certificates": null}));
    assert_eq!(receive(&mut child), json!({"type": "ready"}));
    let nonce = "0".repeat(32);
    let body = json!({"version": 1, "id": 1, "nonce": nonce}).to_string();
    let signature = sign(&body);
    send(
        &mut child,
        &json!({"sequence": 1, "timeout_ms": 3_600_000, "timestamp": "1", "signature": signature, "body": body}),
    );
    server.question();
    // As when the supervisor is killed: its end of the pipe is gone.
    drop(child.stdin.take());
    let patience = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > patience {
            child.kill().unwrap();
            panic!("it outlives its supervisor");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.line(), "left");
}

/// By another implementation than the one that is tested.
fn sign(body: &str) -> String {
    let script = "import hashlib, hmac, sys; print('v1=' + hmac.new(sys.argv[1].encode(), \
                  b'v1:1:' + sys.argv[2].encode(), hashlib.sha256).hexdigest())";
    let output = Command::new("python3").args(["-c", script, super::server::SECRET, body]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
