//! Requests and their answers.

use std::fs::File;
use std::time::Duration;

use nono_policy::AccessMode;
use nono_supervisor::channel::{Bounds, REQUEST_SOCKET};
use serde_json::json;

use crate::kit::{Init, Place, asker, python, until};

#[test]
fn each_decision_has_its_response_and_knows_the_caller() {
    let place = Place::new(Init::Other, Bounds::default());
    assert_eq!(
        place.ask("1", "granted"),
        json!({"version": 1, "type": "capability_response", "id": "1", "granted": true, "already_open": false,
               "proxy_fd": 0, "by": "the test", "reason": null})
    );
    assert_eq!(
        place.ask("2", "open"),
        json!({"version": 1, "type": "capability_response", "id": "2", "granted": true, "already_open": true,
               "proxy_fd": null, "by": null, "reason": null})
    );
    assert_eq!(
        place.ask("3", "other"),
        json!({"version": 1, "type": "capability_response", "id": "3", "granted": false, "already_open": false,
               "proxy_fd": null, "by": "the test", "reason": "the approver denied it"})
    );
    let asked = place.service.asked.lock().unwrap();
    assert_eq!(asked[0], (asker(), place.path("granted"), AccessMode::Read, Some("because".to_owned())));
}

/// A process of its own, in another language, through the socket's path.
#[test]
fn the_python_client_gets_what_was_granted() {
    let place = Place::new(Init::Us, Bounds::default());
    let socket = place.path(REQUEST_SOCKET);
    let ask = |name: &str| {
        let path = place.path(name);
        python(&socket, |command| {
            command.arg(path).arg("for the test");
        })
    };
    let said = |code, out: &str, err: &str| (Some(code), out.to_owned(), err.to_owned());
    assert_eq!(ask("granted"), said(0, "content", ""));
    assert_eq!(ask("other"), said(1, "", "denied: the approver denied it"));
    std::fs::write(place.path("open"), "open to all").unwrap();
    assert_eq!(ask("open"), said(0, "open to all", ""));
    let asked = place.service.asked.lock().unwrap();
    let (asker, path, _, reason) = &asked[0];
    assert!(asker.program.file_name().unwrap().to_string_lossy().starts_with("python"), "{asker:?}");
    assert_eq!((path, reason.as_deref()), (&place.path("granted"), Some("for the test")));
}

#[test]
fn checkpoints_and_restores() {
    let place = Place::new(Init::Other, Bounds::default());
    let ask = |message: serde_json::Value| {
        let client = place.connect();
        client.send(&message);
        client.answer().unwrap()
    };
    let checkpoint = |id: &str, reason: &str| {
        ask(json!({"version": 1, "type": "checkpoint_request", "id": id, "reason": reason}))
    };
    assert_eq!(checkpoint("1", "good")["snapshot"], 7);
    let refused = checkpoint("2", "bad");
    assert_eq!((&refused["snapshot"], &refused["reason"]), (&json!(null), &json!("nothing is tracked")));
    let restore = |id: &str, snapshot: u64| {
        let paths = json!(["/a", {"bytes": [47, 255]}]);
        ask(json!({"version": 1, "type": "restore_request", "id": id, "snapshot": snapshot, "paths": paths}))
    };
    let done = restore("3", 7);
    assert_eq!((&done["restored"], &done["outcome"]), (&json!(true), &json!("2 paths are back")));
    assert_eq!(restore("4", 8)["restored"], false);
}

#[test]
fn a_request_that_waits_for_a_person_delays_no_other() {
    let place = Place::new(Init::Other, Bounds::default());
    let waiting: Vec<_> = (0..10)
        .map(|number| {
            let client = place.connect();
            client.send(&place.wanted(&format!("later {number}"), "later"));
            client
        })
        .collect();
    place.service.until_waiting(10);
    assert_eq!(place.ask("now", "granted")["granted"], true);
    assert!(waiting.iter().all(crate::kit::Client::is_silent));
    place.service.release();
    for client in waiting {
        assert_eq!(client.answer().unwrap()["granted"], true);
    }
}

#[test]
fn who_gives_up_is_not_asked_about_any_more() {
    let place = Place::new(Init::Other, Bounds::default());
    let client = place.connect();
    client.send(&place.wanted("1", "later"));
    place.service.until_waiting(1);
    drop(client);
    place.service.until_waiting(0);
}

#[test]
fn the_end_of_the_session_ends_everything() {
    let mut place =
        Place::new(Init::Other, Bounds { patience: Duration::from_secs(1000), ..Bounds::default() });
    let idle = place.connect();
    let waiting = place.connect();
    waiting.send(&place.wanted("1", "later"));
    place.service.until_waiting(1);
    let connector = place.connector();
    drop(place.threads.take());
    idle.is_refused("ending");
    assert_eq!(waiting.answer().unwrap()["granted"], false);
    assert!(!place.path(REQUEST_SOCKET).exists());
    let late = crate::kit::new_socket();
    let refused = connector.connect_for(asker(), std::os::fd::AsFd::as_fd(&late)).unwrap_err();
    assert!(
        matches!(
            refused.kind(),
            std::io::ErrorKind::ConnectionRefused
                | std::io::ErrorKind::NotFound
                | std::io::ErrorKind::InvalidInput
        ),
        "{refused}"
    );
    until(|| !served_by_a_thread());
}

/// Whether a serving thread is left in this process. Other tests may have some of their own, which end too.
fn served_by_a_thread() -> bool {
    let names = std::fs::read_dir("/proc/self/task").unwrap().filter_map(|task| {
        let mut name = String::new();
        std::io::Read::read_to_string(&mut File::open(task.ok()?.path().join("comm")).ok()?, &mut name)
            .ok()?;
        Some(name)
    });
    names.into_iter().any(|name| name.trim_end() == "nono-request")
}
