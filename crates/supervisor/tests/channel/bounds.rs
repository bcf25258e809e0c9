//! Limits of the channels: rate, number of connections, timeouts, repeated ids.

use std::time::Duration;

use nono_supervisor::channel::Bounds;

use crate::kit::{Init, Place, until};

#[test]
fn a_flood_is_refused_at_once_and_counted() {
    let place = Place::new(Init::Other, Bounds { per_second: 0, burst: 10, ..Bounds::default() });
    let answers: Vec<_> = (0..300).map(|number| place.ask(&number.to_string(), "granted")).collect();
    let (served, refused) = answers.split_at(10);
    assert!(served.iter().all(|answer| answer["granted"] == true));
    assert!(refused.iter().all(|answer| answer["error"] == "too_fast"));
    let counts = place.threads().request_counts();
    assert_eq!((counts.served, counts.too_fast), (10, 290));
    assert_eq!(place.service.asked.lock().unwrap().len(), 10);
}

#[test]
fn there_are_so_many_connections_and_no_more() {
    let bounds = Bounds { patience: Duration::from_secs(1000), per_second: 1000, ..Bounds::default() };
    let place = Place::new(Init::Other, bounds);
    let mut idle: Vec<_> = (0..bounds.connections).map(|_| place.connect()).collect();
    assert_eq!(idle.len(), 64);
    for _ in 0..5 {
        place.connect().is_refused("too_many_connections");
    }
    assert!(idle.iter().all(crate::kit::Client::is_silent));
    // The other channel has limits of its own.
    let control = place.connect_self("control.sock");
    control.send(&serde_json::json!({"version": 1, "type": "status", "id": "1"}));
    assert_eq!(control.answer().unwrap()["status"]["requests"]["too_many_connections"], 5);
    // A closed connection makes room.
    idle.pop();
    let mut number = 0;
    until(|| {
        number += 1;
        place.ask(&number.to_string(), "granted")["granted"] == true
    });
}

#[test]
fn who_sends_nothing_is_dropped_and_meanwhile_others_are_served() {
    let place = Place::new(Init::Other, Bounds { patience: Duration::from_millis(300), ..Bounds::default() });
    let slow: Vec<_> = (0..20).map(|_| place.connect()).collect();
    assert_eq!(place.ask("1", "granted")["granted"], true);
    for client in &slow {
        client.is_refused("too_slow");
    }
    assert_eq!(place.threads().request_counts().too_slow, 20);
}

#[test]
fn a_client_that_does_not_read_delays_no_other() {
    let place = Place::new(Init::Other, Bounds::default());
    let deaf: Vec<_> = (0..40)
        .map(|number| {
            let client = place.connect();
            client.send(&place.wanted(&format!("deaf {number}"), "granted"));
            client
        })
        .collect();
    until(|| place.threads().request_counts().served == 40);
    assert_eq!(place.ask("1", "granted")["granted"], true);
    drop(deaf);
}

#[test]
fn an_id_is_good_once() {
    let place = Place::new(Init::Other, Bounds::default());
    assert_eq!(place.ask("same", "granted")["granted"], true);
    let client = place.connect();
    client.send(&place.wanted("same", "granted"));
    let answer = client.answer().unwrap();
    assert_eq!((answer["error"].as_str(), answer["id"].as_str()), (Some("replayed"), Some("same")));
    assert_eq!(place.ask("another", "granted")["granted"], true);
    assert_eq!(place.service.asked.lock().unwrap().len(), 2);
}

#[test]
fn there_is_an_end_to_requests() {
    let place = Place::new(Init::Other, Bounds { requests: 3, ..Bounds::default() });
    let errors: Vec<_> =
        (0..5).map(|number| place.ask(&number.to_string(), "granted")["error"].clone()).collect();
    assert_eq!(serde_json::json!(errors), serde_json::json!([null, null, null, "used_up", "used_up"]));
}
