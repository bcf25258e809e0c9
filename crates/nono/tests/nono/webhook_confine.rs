//! What the webhook's helper can reach, tried in a process that confines itself as the helper does.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends it")]

use std::net::TcpListener;
use std::process::Command;

#[test]
fn the_helper_reaches_the_network_and_nothing_of_the_users() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let test = std::env::current_exe().unwrap();
    let example = test.parent().unwrap().parent().unwrap().join("examples/webhook_confine");
    let output = Command::new(example)
        .arg(&secret)
        .arg(dir.path())
        .arg(listener.local_addr().unwrap().port().to_string())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "read yes\nmake yes\nconnect yes\nrun yes\nnames yes\n\
         read no\nmake no\nconnect yes\nrun no\nnames yes\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
