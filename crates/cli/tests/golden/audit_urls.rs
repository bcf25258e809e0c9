//! Addresses that are refused without asking: the log has them all the same.

use std::fs;

use serde_json::Value;

use super::world::World;

/// The addresses in the log of the only session: each with who decided what, and why.
fn addresses(world: &World) -> Vec<[String; 4]> {
    let sessions = fs::read_dir(world.path("state/audit")).unwrap().map(|entry| entry.unwrap().path());
    let events: Vec<_> = sessions.map(|dir| dir.join("events.ndjson")).filter(|file| file.exists()).collect();
    let [events] = &events[..] else { panic!("{events:?}") };
    let text = fs::read_to_string(events).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    let urls = events.filter(|event| event["type"] == "url_open");
    let word = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    urls.map(|event| ["url", "decision", "by", "error"].map(|key| word(&event, key))).collect()
}

#[test]
fn without_the_flag() {
    let world = World::new();
    let outcome = world.sh("nono run -s -- nono __open-url 'https://example.org/?token=hunter2'");
    assert_eq!(outcome.status.code(), Some(1));
    let [[url, decision, by, error]] = &addresses(&world)[..] else { panic!("{:?}", addresses(&world)) };
    assert!(url.starts_with("https://example.org/?token=[redacted:"), "{url}");
    assert_eq!((&**decision, &**by), ("denied", "policy"));
    assert_eq!(error, "this session was started without --open-url");
}

#[test]
fn with_the_flag() {
    let world = World::new();
    world.sh("nono run -s --open-url -- nono __open-url file:///etc/passwd https://me@example.org/ https://example.org/");
    let told: Vec<_> =
        addresses(&world).into_iter().map(|[_, decision, _, error]| (decision, error)).collect();
    let denied = [
        "only http:// and https:// addresses are opened",
        "an address must not have a user name or password before the host",
        "there is no terminal to ask on",
    ];
    assert_eq!(told, denied.map(|why| ("denied".to_owned(), why.to_owned())));
}
