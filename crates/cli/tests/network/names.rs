//! Names: which of them a rule means, and that where they lead is judged too.

use serde_json::{Value, json};

use super::town::{PRIVATE, PUBLIC, Ran, Town};

fn get(town: &Town, rules: &[&str], urls: &[&str]) -> Ran {
    let flags: Vec<&str> = rules.iter().flat_map(|rule| ["--allow-domain", rule]).collect();
    let curls: Vec<_> =
        urls.iter().map(|url| format!("curl -sS -o out -w '%{{http_code}} ' http://{url}/hello")).collect();
    town.run(&flags, &curls.join("; "))
}

/// The server's addresses that were reached, in order.
fn reached(town: &Town) -> Vec<Value> {
    town.got()
        .iter()
        .filter(|asked| asked["path"] == "/hello")
        .map(|asked| asked["address"].clone())
        .collect()
}

#[test]
fn a_rule_means_a_host_or_all_below_it_or_one_port() {
    let Some(town) = Town::new() else { return };
    for (rule, urls, statuses) in [
        (
            "*.wide.test",
            vec!["a.wide.test", "b.a.wide.test", "wide.test", "allowed.test"],
            "200 200 403 403 ",
        ),
        ("wide.test", vec!["wide.test", "a.wide.test"], "200 403 "),
        ("allowed.test:8080", vec!["allowed.test:8080", "allowed.test"], "200 403 "),
        ("allowed.test", vec!["allowed.test:8080", "ALLOWED.Test.", "xallowed.test"], "200 200 403 "),
        ("*.wide.test:8080", vec!["a.wide.test:8080", "a.wide.test"], "200 403 "),
    ] {
        let ran = get(&town, &[rule], &urls);
        assert_eq!(ran.out, statuses, "{rule}: {ran:?}");
    }
}

#[test]
fn a_name_that_leads_to_a_private_network_needs_that_address_too() {
    let Some(town) = Town::new() else { return };
    town.outside("curl -sS --fail http://private.test/hello").says(PRIVATE);
    let ran = town.run(&["--allow-domain", "private.test"], "curl -sS --fail http://private.test/hello");
    ran.footer(&format!("connect to private.test:80: it resolves to {PRIVATE}, a private address"));
    ran.footer(&format!("open it with: --allow-domain {PRIVATE}:80"));
    let events = town.network();
    assert_eq!(events[0]["category"], "address_denied", "{events:?}");
    assert_eq!(reached(&town).len(), 1, "only from outside");
    let both =
        get(&town, &["private.test", &format!("{PRIVATE}:80")], &["private.test", "private.test:8080"]);
    assert_eq!(both.out, "200 403 ", "{both:?}");
    // The address alone does not open the name.
    assert_eq!(get(&town, &[PRIVATE], &["private.test", PRIVATE]).out, "403 200 ");
}

#[test]
fn every_kind_of_closed_address_is_closed_to_every_name() {
    let Some(town) = Town::new() else { return };
    for name in ["metadata.test", "mapped.test", "loop.test"] {
        town.outside(&format!("curl -sS --fail http://{name}/hello")).says("hello");
        let before = reached(&town).len();
        let ran = get(&town, &[name], &[name]);
        assert_eq!(ran.out, "403 ", "{name}: {ran:?}");
        assert_eq!(town.network()[0]["category"], "address_denied", "{name}");
        assert_eq!(reached(&town).len(), before, "{name}");
    }
    // Of several addresses only the open ones are dialled, whichever comes first.
    assert_eq!(get(&town, &["mixed.test"], &["mixed.test", "mixed.test", "mixed.test"]).out, "200 200 200 ");
    assert_eq!(reached(&town)[3..], [json!(PUBLIC), json!(PUBLIC), json!(PUBLIC)]);
}

#[test]
fn a_name_that_changes_its_mind_gains_nothing() {
    let Some(town) = Town::new() else { return };
    let ran = get(&town, &["rebind.test"], &["rebind.test"; 3]);
    assert_eq!(ran.out, "200 403 403 ", "{ran:?}");
    assert_eq!(reached(&town), [json!(PUBLIC)]);
    // What was judged was dialled: there was no second question in between.
    let questions =
        town.got().iter().filter(|asked| asked["name"] == "rebind.test" && asked["kind"] == 1).count();
    assert_eq!(questions, 3);
    town.outside("curl -sS --fail http://rebind.test/hello").says(PRIVATE);
}

#[test]
fn a_tunnel_is_for_the_host_it_was_asked_for() {
    let Some(town) = Town::new() else { return };
    let greet = |host: &str| {
        let script = format!(
            "openssl s_client -proxy 127.0.0.1:19080 -proxy_user nono -proxy_pass env:NONO_PROXY_TOKEN \
             -connect allowed.test:443 -servername {host} -CAfile ca.pem -verify_return_error </dev/null"
        );
        town.run(&["--allow-domain", "allowed.test"], &script)
    };
    greet("allowed.test").says("Verify return code: 0 (ok)");
    let ran = greet("other.test");
    assert!(!ran.out.contains("BEGIN CERTIFICATE"), "{ran:?}");
    ran.footer("connect to allowed.test:443: the TLS ClientHello names another host");
    let events = town.network();
    assert!(events.iter().any(|event| event["category"] == "sni_mismatch"), "{events:?}");
}

#[test]
fn without_its_token_the_proxy_serves_no_client() {
    let Some(town) = Town::new() else { return };
    let ran = town.run(
        &["--allow-domain", "allowed.test"],
        "curl -sS -w '%{http_code}' -x http://127.0.0.1:19080 http://allowed.test/hello; \
         curl -sS --fail -x http://x:wrong@127.0.0.1:19080 http://allowed.test/hello",
    );
    assert!(ran.out.ends_with("407"), "{ran:?}");
    ran.footer("the client sent no valid proxy token");
    assert_eq!(town.network()[0]["category"], "authentication_failed");
    assert!(town.asked().is_empty());
}
