//! Routes that are more, or less, than a secret in a header.

use nono_proxy::{Category, Endpoint, Inject, Mode, RouteKey, Secret};

use super::origin::{Origin, PLACEHOLDER, SECRET};
use super::world::{World, bearer};

/// The server has no such page: it was asked.
const REACHED: &str = "404";

fn shown() -> String {
    format!("Authorization: Bearer {PLACEHOLDER}\r\n")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

#[test]
fn a_secret_in_the_path() {
    let inject = Inject::Path { pattern: "/bot{}/".to_owned(), replacement: "/b/{}/".to_owned() };
    let world = World::with(Origin::plain(), inject, |_| {});
    let answer = world.reverse(&format!("/api/bot{PLACEHOLDER}/send?a={PLACEHOLDER}"), "");
    assert_eq!(status(&answer), REACHED);
    // A slash in the secret must not become one of the path's.
    assert!(
        world.origin.last().starts_with("GET /v1/b/sk-real%2F0123+456=&%22x/send?a="),
        "{}",
        world.origin.last()
    );
    assert!(!answer.contains(SECRET));
    assert_eq!(status(&world.reverse("/api/botother/send", "")), "401");
    let events = world.events();
    assert_eq!(events[0].path.as_deref(), Some("/v1/bot***/send"));
    assert_eq!((events[0].credential.as_deref(), events[0].route.as_deref()), (Some("api"), Some("api")));
}

#[test]
fn a_route_without_a_secret_still_needs_the_token() {
    let world = World::with(Origin::plain(), bearer(), |config| {
        config.routes[0].secret = RouteKey::None;
        config.token = Some(Secret::new(PLACEHOLDER));
    });
    assert_eq!(status(&world.reverse("/api/x", "")), "401");
    assert_eq!(status(&world.reverse("/api/x", &shown())), REACHED);
    assert_eq!(
        status(&world.reverse("/api/x", &format!("Proxy-Authorization: Bearer {PLACEHOLDER}\r\n"))),
        REACHED
    );
    for head in world.origin.seen() {
        assert!(!head.contains(PLACEHOLDER), "{head}");
    }
}

#[test]
fn without_a_secret_answers_are_left_alone() {
    let world = World::with(Origin::plain(), bearer(), |config| config.routes[0].secret = RouteKey::None);
    assert_eq!(status(&world.reverse("/api/x", &format!("{}Accept-Encoding: gzip\r\n", shown()))), REACHED);
    assert!(world.origin.last().to_lowercase().contains("accept-encoding: gzip"));
}

#[test]
fn a_missing_secret_is_said_to_the_client_that_needs_it() {
    let world = World::with(Origin::plain(), bearer(), |config| {
        config.routes[0].secret = RouteKey::Missing("it is not set".to_owned());
    });
    let answer = world.reverse("/api/x", &shown());
    assert!(status(&answer) == "503" && answer.contains("it is not set"), "{answer}");
    assert_eq!(status(&world.forward("/v1/x", &shown())), "503");
    // A key of the user's own.
    assert_eq!(status(&world.forward("/v1/x", "Authorization: Bearer mine\r\n")), REACHED);
    let events = world.events();
    assert_eq!(events[0].category, Some(Category::CredentialUnavailable));
    assert!(!events[0].allowed);
}

#[test]
fn rules_hold_on_every_way() {
    let world = World::with(Origin::plain(), bearer(), |config| {
        config.routes[0].endpoints = vec![Endpoint::new("GET", "/ok/*").unwrap()];
    });
    assert_eq!(status(&world.reverse("/api/ok/1", &shown())), REACHED);
    assert_eq!(status(&world.reverse("/api/no", &shown())), "403");
    assert_eq!(status(&world.forward("/v1/ok/1", &shown())), REACHED);
    for path in ["/v1/no", "/ok/1", "/v1/ok/../no", "/v1/ok/%2e%2e"] {
        assert_eq!(status(&world.forward(path, &shown())), "403", "{path}");
    }
    assert_eq!(world.origin.seen().len(), 2);
    let events = world.events();
    assert_eq!(events[1].category, Some(Category::EndpointPolicy));
}

#[test]
fn a_tunnel_that_is_not_looked_into_leads_around_a_route() {
    let world = World::with(Origin::secure("localhost"), bearer(), |config| config.intercept = false);
    assert_eq!(world.proxy.ca_pem(), None);
    let port = world.origin.port;
    let connect =
        format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&world.request(&connect)), "403");
    assert_eq!(status(&world.reverse("/api/x", &shown())), REACHED);
    let events = world.events();
    assert_eq!((events[0].category, events[0].mode), (Some(Category::ConnectBypassesRoute), Mode::Connect));
}

#[test]
fn a_prefix_that_leads_nowhere_says_so() {
    let world = World::with(Origin::plain(), bearer(), |config| {
        config.broken = vec![("odd".to_owned(), "no URL".to_owned())];
    });
    let answer = world.reverse("/odd/x?y", &shown());
    assert!(status(&answer) == "502" && answer.contains("no URL"), "{answer}");
}
