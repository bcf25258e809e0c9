//! Where there are no namespaces the proxy is on the machine's own loopback, and the supervisor lets the command connect
//! to it alone.

use std::process::Command;

use super::town::{PRIVATE, PUBLIC, Ran, Town, skip};

const SECRET: &str = "bare-Secret-5b21e08c77";

/// nono on a machine without user namespaces.
fn nono(town: &Town, flags: &[&str], script: &str) -> Command {
    let mut command = town.command("bwrap");
    command.args(["--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--"]);
    command.args(["nono", "run", "--allow", "."]).args(flags).args(["--", "sh", "-c", script]);
    command
}

fn town() -> Option<Town> {
    if Command::new("bwrap").arg("--version").output().is_err() {
        skip("bwrap is not installed");
        return None;
    }
    Town::new()
}

#[test]
fn only_the_proxys_own_address_can_be_connected_to() {
    let Some(town) = town() else { return };
    let script = format!(
        "curl -sS --fail http://allowed.test/hello
         curl -sS --fail --cacert ca.pem https://allowed.test/hello
         /usr/bin/python3 - <<'END'
import os, socket, urllib.parse
proxy = urllib.parse.urlsplit(os.environ['HTTP_PROXY'])
for place in [('{PUBLIC}', 80), ('{PRIVATE}', 80), ('127.0.0.1', 80), ('127.0.0.2', proxy.port)]:
    try:
        socket.create_connection(place)
        print('reached', place)
    except PermissionError:
        print('closed')
socket.create_connection((proxy.hostname, proxy.port))
print('and the proxy answers')
END
         curl -sS --fail http://other.test/hello"
    );
    let ran = Ran::of(&mut nono(&town, &["--allow-domain", "allowed.test"], &script));
    let hello = format!("hello from allowed.test at {PUBLIC}\n");
    assert_eq!(ran.out, hello.repeat(2) + &"closed\n".repeat(4) + "and the proxy answers\n", "{ran:?}");
    ran.footer("[nono] weaker protection: ");
    ran.footer("open it with: --allow-domain other.test:80");
    ran.footer(&format!("tried {PUBLIC}:80"));
    let events = town.network();
    let decisions: Vec<_> = events.iter().map(|event| event["decision"].as_str().unwrap()).collect();
    assert_eq!(decisions.iter().filter(|decision| **decision == "allowed").count(), 2, "{events:?}");
    assert_eq!(town.asked(), ["/hello", "/hello"]);
}

#[test]
fn a_secret_is_out_of_reach_beside_the_command_too() {
    let Some(town) = town() else { return };
    let service = "[credentials.demo]\nhost = \"allowed.test\"\nenv = [\"DEMO_TOKEN\"]\n";
    town.world.file("state/config.toml", service, 0o600);
    // nono, the proxy and their parents are visible, and run as the same user.
    let script = "cat /proc/*/environ /proc/*/cmdline 2>errors; echo
         for pid in /proc/[0-9]*; do head -c 1 $pid/mem; done 2>&1 | grep -q denied && grep -q denied errors && echo closed
         curl -sS --fail -H \"Authorization: Bearer $DEMO_TOKEN\" https://allowed.test/hello";
    let mut command = nono(&town, &["--credential", "demo"], script);
    command.env("DEMO_TOKEN", SECRET).env("SSL_CERT_FILE", town.world.path("work/ca.pem"));
    let ran = Ran::of(&mut command);
    ran.says(&format!("\nclosed\nhello from allowed.test at {PUBLIC}\n"));
    assert!(!ran.out.contains(SECRET), "{ran:?}");
    let got = serde_json::Value::from(town.got()).to_string();
    assert!(got.contains(&format!("Bearer {SECRET}")), "{got}");
}
