//! Another proxy on the way out: a real one.

use serde_json::json;

use super::town::{Running, Town};

const PASSWORD: &str = "tiny-password-47";

fn tinyproxy(town: &Town, more: &str) -> Running {
    let conf = town.folder.path().join("tinyproxy.conf");
    let text = format!("Port 3128\nListen 127.0.0.1\nTimeout 600\nMaxClients 100\nLogLevel Info\n{more}\n");
    std::fs::write(&conf, text).unwrap();
    let mut command = town.command_of_root();
    Running::start(command.args(["tinyproxy", "-d", "-c"]).arg(conf), "Accepting connections")
}

const GET: &str = "curl -sS --fail http://allowed.test/hello && \
                   curl -sS --fail --cacert ca.pem https://allowed.test/hello";

#[test]
fn requests_and_tunnels_go_through_it_and_are_judged_before() {
    let Some(town) = Town::new() else { return };
    let proxy = tinyproxy(&town, "");
    let flags = ["--allow-domain", "allowed.test", "--upstream-proxy", "127.0.0.1:3128"];
    let ran = town.run(&flags, GET);
    assert_eq!((ran.code, ran.out.matches("hello from allowed.test").count()), (0, 2), "{ran:?}");
    let said = proxy.said();
    for expected in ["GET http://allowed.test/hello", "CONNECT allowed.test:443"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // The token is for the first proxy only.
    let got = serde_json::Value::from(town.got()).to_string().to_lowercase();
    assert!(got.contains("via") && !got.contains("proxy-authorization"), "{got}");
    let before = proxy.said();
    town.run(&flags, "curl -sS --fail http://other.test/hello").footer("--allow-domain other.test:80");
    assert_eq!(proxy.said(), before, "it was not even asked");
    // An address is judged no matter which proxy would connect to it.
    let ran = town.run(&flags, "curl -sS --fail http://10.20.30.40/hello");
    ran.footer("--allow-domain 10.20.30.40:80");
    assert_eq!(proxy.said(), before);
}

#[test]
fn its_password_is_the_proxys_own_business() {
    let Some(town) = Town::new() else { return };
    let _proxy = tinyproxy(&town, &format!("BasicAuth me {PASSWORD}"));
    let run = |password: &str, script: &str| {
        let mut command = town.nono(&["--allow-domain", "allowed.test"], script);
        command.env("NONO_UPSTREAM_PROXY", format!("http://me:{password}@127.0.0.1:3128"));
        super::town::Ran::of(&mut command)
    };
    let ran = run(PASSWORD, &format!("{GET}; env; cat /proc/self/environ"));
    assert_eq!((ran.code, ran.out.matches("hello from allowed.test").count()), (0, 2), "{ran:?}");
    assert!(!ran.out.contains(PASSWORD), "{ran:?}");
    let wrong = run("wrong", "curl -sS --cacert ca.pem https://allowed.test/hello");
    assert!(wrong.code != 0 && wrong.err.contains("502"), "{wrong:?}");
    let events = town.network();
    assert_eq!(events[0]["category"], json!("upstream_proxy_rejected"), "{events:?}");
}

#[test]
fn what_is_bypassed_is_reached_directly() {
    let Some(town) = Town::new() else { return };
    let proxy = tinyproxy(&town, "");
    let config = "[network]\nupstream_proxy = \"127.0.0.1:3128\"\nupstream_bypass = [\"*.wide.test\"]\n";
    town.world.file("state/config.toml", config, 0o600);
    let flags = ["--allow-domain", "allowed.test", "--allow-domain", "*.wide.test"];
    let ran = town.run(&flags, "curl -sS --fail http://a.wide.test/hello http://allowed.test/hello");
    ran.says("hello from a.wide.test");
    let said = proxy.said();
    assert!(said.contains("allowed.test") && !said.contains("wide.test"), "{said}");
}

#[test]
fn an_unreachable_upstream_proxy_is_reported() {
    let Some(town) = Town::new() else { return };
    let flags = ["--allow-domain", "allowed.test", "--upstream-proxy", "127.0.0.1:3128"];
    let ran = town.run(&flags, "curl -sS http://allowed.test/hello");
    assert!(ran.out.contains("nono: cannot connect to 127.0.0.1:3128"), "{ran:?}");
    assert!(town.asked().is_empty());
}
