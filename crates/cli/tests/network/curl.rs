//! curl: what is open works and is in the log, what is not is refused and named.

use serde_json::json;

use super::town::{OTHER, PUBLIC, Town};

const OPEN: &[&str] = &["--allow-domain", "allowed.test"];

#[test]
fn an_open_host_answers_and_is_in_the_log() {
    let Some(town) = Town::new() else { return };
    let ran = town.run(
        OPEN,
        "curl -sS --fail http://allowed.test/hello && curl -sS --fail --cacert ca.pem https://allowed.test/hello",
    );
    assert_eq!(ran.out, format!("hello from allowed.test at {PUBLIC}\n").repeat(2), "{ran:?}");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let events = town.network();
    let [plain, tunnel] = &events[..] else { panic!("{events:?}") };
    for (event, port, method, mode, path) in
        [(plain, 80, "GET", "forward", json!("/hello")), (tunnel, 443, "CONNECT", "connect", json!(null))]
    {
        assert_eq!((&event["host"], &event["port"]), (&json!("allowed.test"), &json!(port)), "{event}");
        assert_eq!((&event["method"], &event["mode"]), (&json!(method), &json!(mode)), "{event}");
        assert_eq!((&event["decision"], &event["status"]), (&json!("allowed"), &json!(200)), "{event}");
        assert_eq!((&event["path"], &event["address"]), (&path, &json!(PUBLIC)), "{event}");
        let sent = event["bytes_sent"].as_u64().unwrap();
        assert!(sent > 50 && event["bytes_received"].as_u64().unwrap() > 100, "{event}");
    }
    let opened = town.opened();
    let [opened] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!((&opened["port"], &opened["address"]), (&json!(443), &json!(PUBLIC)), "{opened}");
    assert_eq!((&opened["bytes_sent"], &tunnel["phase"]), (&json!(0), &json!("ended")), "{opened}");
}

#[test]
fn another_host_is_refused_and_named_with_its_flag() {
    let Some(town) = Town::new() else { return };
    town.outside("curl -sS --fail http://other.test/hello").says(&format!("at {OTHER}"));
    let ran =
        town.run(OPEN, "curl -sS http://other.test/hello; curl -sS --cacert ca.pem https://other.test/hello");
    assert!(ran.out.contains("nono: other.test:80 is not in the allowlist"), "{ran:?}");
    ran.footer("CONNECT tunnel failed, response 403");
    for place in ["other.test:80", "other.test:443"] {
        ran.footer(&format!("[nono]   connect to {place}: the host is not allowed"));
        ran.footer(&format!("[nono]     open it with: --allow-domain {place}"));
    }
    let events = town.network();
    assert_eq!(events.len(), 2, "{events:?}");
    for event in &events {
        assert_eq!((&event["decision"], &event["status"]), (&json!("denied"), &json!(403)), "{event}");
        assert_eq!((&event["category"], &event["address"]), (&json!("host_denied"), &json!(null)), "{event}");
    }
    assert_eq!(town.asked(), ["/hello"], "only what was asked outside");
    // The flag that was named is the one that is missing.
    town.run(&["--allow-domain", "other.test:80"], "curl -sS --fail http://other.test/hello").says(OTHER);
}

#[test]
fn a_redirect_leads_no_further_than_a_request() {
    let Some(town) = Town::new() else { return };
    for (scheme, place) in [("http", "other.test:80"), ("https", "other.test:443")] {
        let follow = |host: &str| {
            let url = format!("'{scheme}://allowed.test/redirect?{scheme}://{host}/hello'");
            town.run(OPEN, &format!("curl -sSL --fail --cacert ca.pem {url}"))
        };
        follow("allowed.test").says("hello from allowed.test");
        let ran = follow("other.test");
        ran.footer(&format!("open it with: --allow-domain {place}"));
        assert_eq!(ran.out, "");
    }
    let asked = town.got();
    assert!(asked.iter().all(|asked| asked["address"] != json!(OTHER)), "{asked:?}");
}

#[test]
fn uploads_arrive_whole() {
    let Some(town) = Town::new() else { return };
    let ran = town.run(
        OPEN,
        "head -c 3000000 /dev/urandom >file; sha256sum <file; for url in http https; do
            curl -sS --fail --cacert ca.pem -T file $url://allowed.test/upload
            curl -sS --fail --cacert ca.pem -T - $url://allowed.test/upload <file
            curl -sS --fail --cacert ca.pem -H 'Expect: 100-continue' --data-binary @file $url://allowed.test/upload
        done",
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut lines = ran.out.lines();
    let expected = format!("3000000 {}", lines.next().unwrap().split(' ').next().unwrap());
    assert_eq!(lines.collect::<Vec<_>>(), [expected.as_str(); 6]);
    let events = town.network();
    assert_eq!(events.len(), 6);
    assert!(events.iter().all(|event| event["bytes_sent"].as_u64().unwrap() > 3_000_000), "{events:?}");
}

#[test]
fn an_answer_is_passed_on_as_it_comes() {
    let Some(town) = Town::new() else { return };
    for url in ["http://allowed.test", "https://allowed.test"] {
        // The server says the second line when the first has arrived: a proxy that waits for the whole would wait for ever.
        let script = format!(
            "curl -sSN --cacert ca.pem {url}/stream | {{ read -r first; curl -sS --cacert ca.pem {url}/release; \
             echo $first; cat; }}"
        );
        let ran = town.run(OPEN, &script);
        assert_eq!((ran.code, ran.out.as_str()), (0, "released\nfirst\nsecond\n"), "{ran:?}");
        town.outside("curl -sS http://allowed.test/hold").says("held");
    }
}

#[test]
fn http_2_goes_through_a_tunnel() {
    let Some(town) = Town::new() else { return };
    let mut server = town.command_of_root();
    server
        .arg("node")
        .arg(super::town::here("http2.js"))
        .arg("8443")
        .arg(town.folder.path().join("server.pem"));
    let _server = super::town::Running::start(&mut server, "ready");
    let urls = "https://allowed.test:8443/a https://allowed.test:8443/b";
    let ran =
        town.run(OPEN, &format!("curl -sS --fail --http2 --cacert ca.pem -w '%{{http_version}}\\n' {urls}"));
    assert_eq!(ran.out, "/a of allowed.test:8443\n2\n/b of allowed.test:8443\n2\n", "{ran:?}");
}
