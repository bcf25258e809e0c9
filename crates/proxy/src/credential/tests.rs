use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::answer::{Unreadable, clean, readable, relocated};
use super::inject::{HeaderInjection, injection};
use super::{HeaderLine, Routes};
use crate::config::{ClientTls, Config, Inject, Route, Secret};

const SECRET: &str = "sk-real/0123+456";
const PLACEHOLDER: &str = "nono-dummy-abc";

fn route(inject: Inject) -> Route {
    Route {
        name: "api".to_owned(),
        prefix: "api".to_owned(),
        https: false,
        host: "api.example.com".to_owned(),
        port: 80,
        base: "/v1".to_owned(),
        inject,
        secret: Secret::new(SECRET).into(),
        placeholder: PLACEHOLDER.to_owned(),
        endpoints: Vec::new(),
        tls: ClientTls::default(),
    }
}

fn header(name: &str, format: &str) -> Inject {
    Inject::Header { name: name.to_owned(), format: format.to_owned() }
}

fn bearer() -> Inject {
    header("Authorization", "Bearer {}")
}

fn config(routes: Vec<Route>) -> Config {
    Config { routes, ..Config::default() }
}

/// Header or target that a request gets; `None` if it is not changed.
fn put(inject: Inject, target: &str, headers: &[(&str, &str)]) -> Option<String> {
    let lines: Vec<HeaderLine<'_>> = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let route = route(inject);
    injection(&route, target, &lines).map(|injection| match injection.change {
        HeaderInjection::Header { name, value } => format!("{name}: {}", value.reveal()),
        HeaderInjection::Target(target) => target.reveal().to_owned(),
    })
}

#[test]
fn the_placeholder_in_its_place_becomes_the_secret() {
    let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
    let secret = format!("Authorization: Bearer {SECRET}");
    for value in [
        format!("Bearer {PLACEHOLDER}"),
        format!("bearer  {PLACEHOLDER}"),
        format!("token {PLACEHOLDER}"),
        PLACEHOLDER.to_owned(),
        basic(&format!("git:{PLACEHOLDER}")),
        basic(&format!("{PLACEHOLDER}:")),
        basic(&format!("x:{PLACEHOLDER}")).trim_end_matches('=').to_owned(),
    ] {
        assert_eq!(
            put(bearer(), "/", &[("authorization", &value)]).as_deref(),
            Some(secret.as_str()),
            "{value}"
        );
    }
    // One of several is enough.
    let two = [("Authorization", "Bearer other"), ("AUTHORIZATION", "Bearer nono-dummy-abc")];
    assert_eq!(put(bearer(), "/", &two), Some(secret));
    assert_eq!(
        put(header("x-api-key", "{}"), "/", &[("X-Api-Key", PLACEHOLDER)]),
        Some(format!("x-api-key: {SECRET}"))
    );
    let user = Inject::Basic { user: "me".to_owned() };
    let pair = basic(&format!("me:{SECRET}"));
    for value in [
        basic(&format!("me:{PLACEHOLDER}")),
        basic(&format!("you:{PLACEHOLDER}")),
        format!("Bearer {PLACEHOLDER}"),
    ] {
        assert_eq!(
            put(user.clone(), "/", &[("Authorization", &value)]),
            Some(format!("Authorization: {pair}"))
        );
    }
}

#[test]
fn anything_else_in_its_place_is_left_alone() {
    let longer = format!("Bearer {PLACEHOLDER}x");
    let twice = format!("Bearer {PLACEHOLDER} {PLACEHOLDER}");
    let inside = format!("Digest username={PLACEHOLDER}, realm=x");
    let encoded = format!("Basic {}", STANDARD.encode(PLACEHOLDER));
    for value in ["", "Bearer", "Bearer sk-of-the-user", &longer, &twice, &inside, &encoded, "Basic !!!"] {
        assert_eq!(put(bearer(), "/", &[("Authorization", value)]), None, "{value}");
    }
    let elsewhere =
        [("X-Api-Key", PLACEHOLDER), ("Cookie", PLACEHOLDER), ("Proxy-Authorization", PLACEHOLDER)];
    assert_eq!(put(bearer(), "/?key=nono-dummy-abc", &elsewhere), None);
    assert_eq!(put(Inject::Query { name: "key".to_owned() }, "/", &[("Authorization", PLACEHOLDER)]), None);
    assert_eq!(injection(&route(bearer()), "/", &[("Authorization", b"Bearer \xff\xfe")]), None);
}

#[test]
fn a_query_parameter_is_replaced_and_stands_alone() {
    let key = || Inject::Query { name: "key".to_owned() };
    for (target, becomes) in [
        ("/x?key=nono-dummy-abc", Some("/x?key=sk-real%2F0123%2B456")),
        ("/x?a=1&key=nono-dummy-abc&b=%20", Some("/x?a=1&key=sk-real%2F0123%2B456&b=%20")),
        ("/x?key=other&key=nono-dummy-abc&c", Some("/x?key=sk-real%2F0123%2B456&c")),
        ("/x?%6bey=nono%2Ddummy-abc", Some("/x?key=sk-real%2F0123%2B456")),
        ("/x?key=other", None),
        ("/x?key=nono-dummy-abcd", None),
        ("/x?monkey=nono-dummy-abc", None),
        ("/key=nono-dummy-abc", None),
        ("/x?key", None),
        ("/x?key=%", None),
    ] {
        assert_eq!(put(key(), target, &[]).as_deref(), becomes, "{target}");
    }
}

#[test]
fn a_prefix_leads_to_its_service() {
    let mut plain = route(bearer());
    (plain.name, plain.prefix, plain.base) = ("plain".to_owned(), "plain".to_owned(), String::new());
    let routes = Routes::new(&config(vec![route(bearer()), plain])).unwrap();
    for (target, leads) in [
        ("/api/models?x=/api", Some(("api", "/v1/models?x=/api"))),
        ("/api", Some(("api", "/v1"))),
        ("/api/", Some(("api", "/v1/"))),
        ("/plain", Some(("plain", "/"))),
        ("/plain?a", Some(("plain", "/?a"))),
        ("/plain//x", Some(("plain", "//x"))),
        ("/apis/x", None),
        ("//api/x", None),
        ("/", None),
        ("*", None),
        ("api/x", None),
    ] {
        let found = routes.reverse(target).map(|found| (found.route.name.clone(), found.target));
        assert_eq!(found, leads.map(|(name, target)| (name.to_owned(), target.to_owned())), "{target}");
    }
}

#[test]
fn a_service_is_one_host_one_port_and_one_scheme() {
    let mut other = route(header("X-Other", "{}"));
    (other.name, other.prefix, other.placeholder) =
        ("other".to_owned(), "other".to_owned(), "dummy-two".to_owned());
    let routes = Routes::new(&config(vec![route(bearer()), other])).unwrap();
    let host = |text: &str| text.parse().unwrap();
    let service = routes.service(&host("API.example.com."), 80, false).unwrap();
    assert_eq!(service.routes().len(), 2);
    let line: &[HeaderLine<'_>] = &[("X-Other", b"dummy-two")];
    let put = service.routes().iter().find_map(|route| injection(route, "/", line));
    assert_eq!(put.unwrap().credential, "other");
    for (name, port, https) in
        [("api.example.com", 81, false), ("api.example.com", 80, true), ("example.com", 80, false)]
    {
        assert!(routes.service(&host(name), port, https).is_none());
    }
    assert!(routes.ca_pem().is_none());
}

#[test]
fn routes_that_cannot_be_kept_are_refused_without_telling_the_secret() {
    let with = |change: fn(&mut Route)| {
        let mut route = route(bearer());
        change(&mut route);
        route
    };
    for wrong in [
        with(|route| route.host = "a b".to_owned()),
        with(|route| route.port = 0),
        with(|route| route.inject = header("Host", "{}")),
        with(|route| route.inject = header("proxy-authorization", "{}")),
        with(|route| route.inject = header("X Y", "{}")),
        with(|route| route.inject = header("X", "Bearer")),
        with(|route| route.inject = header("X", "{}{}")),
        with(|route| route.inject = header("X", "{}\r\nHost: x")),
        with(|route| route.inject = Inject::Query { name: "a=b".to_owned() }),
        with(|route| route.inject = Inject::Basic { user: "a:b".to_owned() }),
        with(|route| route.secret = Secret::new("sk-real").into()),
        with(|route| route.secret = Secret::new("sk-real/0123\r\nX: y").into()),
        with(|route| route.secret = Secret::new("sk-real/0123 ").into()),
        with(|route| route.secret = Secret::new("sk-real".repeat(2000)).into()),
        with(|route| route.placeholder = String::new()),
        with(|route| route.placeholder = "real/0123".to_owned()),
        with(|route| route.placeholder = "real".to_owned()),
        with(|route| route.prefix = String::new()),
        with(|route| route.prefix = "a/b".to_owned()),
        with(|route| route.base = "v1".to_owned()),
        with(|route| route.base = "/v1 x".to_owned()),
        // No authority to check the server's certificate with.
        with(|route| route.https = true),
    ] {
        let error = Routes::new(&config(vec![wrong.clone()])).expect_err(&format!("{wrong:?}"));
        let told = format!("{error} {error:?} {wrong:?}");
        assert!(!told.contains("sk-real"), "{told}");
    }
    assert!(Routes::new(&config(vec![route(bearer()), route(bearer())])).is_err());
}

#[test]
fn answers_that_cannot_be_read_are_refused() {
    let encoded: &[HeaderLine<'_>] = &[("Content-Encoding", b"gzip")];
    assert_eq!(readable(200, false, encoded), Err(Unreadable::Encoded));
    assert_eq!(readable(200, true, encoded), Ok(()));
    assert_eq!(readable(200, false, &[("content-encoding", b" Identity ")]), Ok(()));
    assert_eq!(
        readable(404, false, &[("content-encoding", b"identity"), ("content-encoding", b"br")]),
        Err(Unreadable::Encoded)
    );
    assert_eq!(readable(206, false, &[]), Err(Unreadable::Part));
    assert_eq!(readable(200, false, &[("Vary", b"gzip")]), Ok(()));
}

#[test]
fn heads_come_back_clean() {
    let routes = Routes::new(&config(vec![route(bearer())])).unwrap();
    let service = routes.service(&"api.example.com".parse().unwrap(), 80, false).unwrap();
    let forms = Arc::clone(service.forms().unwrap());
    let shown = |name, value: &str| {
        clean(&forms, (name, value.as_bytes())).map(|value| String::from_utf8(value).unwrap())
    };
    assert_eq!(
        shown("Location", "https://b/?k=sk-real%2f0123%2B456").unwrap(),
        "https://b/?k=nono-dummy-abc"
    );
    assert_eq!(shown("Set-Cookie", "k=sk-real/0123+456; Secure").unwrap(), "k=nono-dummy-abc; Secure");
    assert_eq!(shown("Content-Type", "text/plain").unwrap(), "text/plain");
    assert_eq!(shown("Alt-Svc", "h3=\":443\""), None);
    assert_eq!(shown("X-sk-real/0123+456", "1"), None);
}

#[test]
fn redirects_within_the_service_stay_under_its_prefix() {
    let mut secure = route(bearer());
    (secure.https, secure.port) = (true, 443);
    for (location, leads) in [
        ("/v1/b?x#y", Some("/api/b?x#y")),
        ("/v1", Some("/api")),
        ("/v10", None),
        ("/other", None),
        ("b", None),
        ("//evil/v1/", None),
        ("https://api.example.com/v1/b", Some("/api/b")),
        ("HTTPS://API.example.com:443/v1/b", Some("/api/b")),
        ("http://api.example.com/v1/b", None),
        ("https://api.example.com.evil/v1/b", None),
        ("https://evil/v1/b", None),
    ] {
        assert_eq!(relocated(&secure, location).as_deref(), leads, "{location}");
    }
}
