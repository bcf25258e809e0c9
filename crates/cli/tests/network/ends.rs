//! However a run ends, what it did on the network is in its log; and without its proxy it has no network.

use serde_json::{Value, json};

use super::live::{Live, Process, helper, supervisor};
use super::town::{Ran, Town};

const OPEN: &[&str] = &["--allow-domain", "allowed.test"];

/// An answer of which the beginning arrived, and whose end never comes.
const HANGS: &str = "curl -sSN http://allowed.test/hang";

/// The log has the request that was under way, and closes behind it.
#[track_caller]
fn is_drained(town: &Town) -> Vec<Value> {
    let log = town.log();
    let place = |kind: &str| log.iter().position(|event| event["type"] == kind);
    let (Some(network), Some(end)) = (place("network"), place("session_ended")) else { panic!("{log:?}") };
    assert!(network < end && end == log.len() - 1, "{log:?}");
    let event = &log[network];
    assert_eq!((&event["host"], &event["path"]), (&json!("allowed.test"), &json!("/hang")), "{event}");
    assert_eq!(event["decision"], "allowed", "{event}");
    assert!(event["bytes_received"].as_u64().unwrap() >= 10, "{event}");
    log
}

#[test]
fn a_command_that_is_killed_leaves_its_requests_in_the_log() {
    let Some(town) = Town::new() else { return };
    let ran = town.run(OPEN, &format!("{HANGS} | {{ read -r line; kill -KILL $$; cat; }}"));
    assert_eq!(ran.code, 137, "{ran:?}");
    let log = is_drained(&town);
    assert_eq!(log.last().unwrap()["signal"], 9);
}

#[test]
fn a_session_that_is_stopped_leaves_its_requests_in_the_log() {
    let Some(town) = Town::new() else { return };
    let mut live = Live::start(&mut town.nono(&["--name", "here", "--allow-domain", "allowed.test"], HANGS));
    live.until("beginning");
    let stop = Ran::of(town.command("nono").args(["stop", "here"]));
    assert_eq!(stop.code, 0, "{stop:?}");
    assert_ne!(live.end().code, 0);
    let log = is_drained(&town);
    assert_eq!(log.last().unwrap()["stopped"], true);
}

#[test]
fn a_command_whose_time_is_over_leaves_its_requests_in_the_log() {
    let Some(town) = Town::new() else { return };
    let ran = town.run(&["--max-time", "3s", "--allow-domain", "allowed.test"], HANGS);
    assert_eq!((ran.code, ran.out.as_str()), (124, "beginning\n"), "{ran:?}");
    let log = is_drained(&town);
    assert!(!log.last().unwrap()["limit"].is_null());
}

#[test]
fn a_supervisor_that_is_killed_takes_the_network_along() {
    let Some(town) = Town::new() else { return };
    let script = format!("curl -sS http://allowed.test/hello -o /dev/null; {HANGS}");
    let mut live = Live::start(&mut town.nono(OPEN, &script));
    live.until("beginning");
    let proxy = helper(&town).watch();
    supervisor(&town).kill();
    assert!(Process::is_over(&proxy), "the proxy goes on");
    drop(live);
    // A valid beginning, with what was over by then.
    let events = town.network();
    assert_eq!(events[0]["path"], "/hello", "{events:?}");
}

#[test]
fn without_its_proxy_a_run_goes_on_and_has_no_network() {
    let Some(town) = Town::new() else { return };
    let script = "curl -sS --fail http://allowed.test/hello && echo up; read -r _; \
                  curl -sS --max-time 60 http://allowed.test/hello; echo curl said $?; \
                  curl -sS --noproxy '*' http://allowed.test/hello; echo curl said $?; exit 0";
    let mut live = Live::start(&mut town.nono(OPEN, script));
    live.until("up");
    helper(&town).kill();
    live.go();
    let ran = live.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    let codes: Vec<_> = ran.out.lines().collect();
    // Turned away (52, 56) at once, not by the clock (28); and directly there never was a way (6, 7).
    let [first, second] = codes[..] else { panic!("{ran:?}") };
    assert!(["curl said 52", "curl said 56"].contains(&first), "{ran:?}");
    assert!(["curl said 6", "curl said 7"].contains(&second), "{ran:?}");
    let said = "[nono] warning: the network filter ended before the command: its helper ended; the command had no network";
    assert_eq!(ran.err.matches(said).count(), 1, "{ran:?}");
    assert_eq!(ran.err.matches("its helper ended").count(), 1, "said once: {ran:?}");
    assert_eq!(town.asked(), ["/hello"]);
    let log = town.log();
    let warned = log.iter().find(|event| event["type"] == "warning").unwrap_or_else(|| panic!("{log:?}"));
    assert!(warned.to_string().contains("the network filter ended: its helper ended"), "{warned}");
}
