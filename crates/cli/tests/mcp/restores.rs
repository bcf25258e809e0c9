//! Nothing is put back unless the person says so, to the plan that they were shown.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::kit::{Client, text};
use super::world::World;
use super::{changed_world, nono};
use nono_testkit::look::read;

fn forms() -> Value {
    json!({"elicitation": {}})
}

#[test]
fn a_client_that_cannot_ask_gets_the_plan_and_the_command() {
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        let world = changed_world();
        let mut client = Client::new(&world, &capabilities);
        let said = client.refused("restore_checkpoint", &json!({"checkpoint": "1", "paths": ["src/a"]}));
        assert!(said.starts_with("Nothing was restored") && said.contains("~ src/a"), "{said}");
        let command = said.lines().last().unwrap().split_once("by typing: nono ").unwrap().1.to_owned();
        assert_eq!(read(&world, "work/src/a"), "two\n");
        let mut words: Vec<&str> = command.split(' ').collect();
        assert_eq!(words.split_off(3), ["--", "src/a"], "{command}");
        words.extend(["--yes", "--", "src/a"]);
        nono(&world, &words);
        assert_eq!(read(&world, "work/src/a"), "one\n", "it is the command");
    }
}

/// Ask for a restore, and give this answer to the question; the result.
fn answered(world: &World, give: impl FnOnce(&mut Client, &Value)) -> Value {
    let mut client = Client::new(world, &forms());
    let id = client.begin("restore_checkpoint", &json!({"checkpoint": "1"}));
    let question = client.heard("elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("back to checkpoint") && message.contains("~ src/a"), "{message}");
    assert!(message.ends_with("Restore this?"), "{message}");
    assert_eq!(question["params"]["requestedSchema"]["required"], json!(["confirm"]));
    assert_eq!(read(world, "work/src/a"), "two\n");
    give(&mut client, &question);
    client.result(id)
}

#[test]
fn with_a_yes_it_is_done_and_can_be_taken_back() {
    let world = changed_world();
    let yes = json!({"action": "accept", "content": {"confirm": true}});
    let result = answered(&world, |client, question| client.reply(question, &yes));
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(result["structuredContent"]["restored"], true, "{result}");
    assert!(text(&result).contains("undo this with: nono checkpoints undo"), "{result}");
    assert_eq!(read(&world, "work/src/a"), "one\n");
    assert!(nono(&world, &["audit", "list"]).contains("nono mcp"));
    nono(&world, &["checkpoints", "undo", "--yes"]);
    assert_eq!(read(&world, "work/src/a"), "two\n");
}

#[test]
fn whatever_is_no_yes_is_a_no() {
    for reply in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"confirm": false}}),
        json!({"action": "accept", "content": {"confirm": "true"}}),
        json!({"action": "decline", "content": {"confirm": true}}),
        json!({}),
        json!({"confirm": true}),
    ] {
        let world = changed_world();
        let result = answered(&world, |client, question| client.reply(question, &reply));
        assert_eq!(result["isError"], true, "{reply}: {result}");
        assert!(text(&result).starts_with("The person did not agree: nothing was restored"), "{result}");
        assert_eq!(read(&world, "work/src/a"), "two\n", "{reply}");
    }
    let world = changed_world();
    let result = answered(&world, |client, question| {
        let error = json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "no"}});
        client.send(&error.to_string());
    });
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(read(&world, "work/src/a"), "two\n");
}

#[test]
fn while_a_question_waits_others_are_answered_but_no_second_one_is_asked() {
    let world = changed_world();
    let mut client = Client::new(&world, &forms());
    let id = client.begin("restore_checkpoint", &json!({"checkpoint": "1"}));
    let question = client.heard("elicitation/create");
    assert!(client.told("list_checkpoints", &json!({})).contains("by hand"));
    assert!(client.told("changes", &json!({})).contains("src/a"));
    let said = client.refused("restore_checkpoint", &json!({"checkpoint": "1"}));
    assert!(said.contains("the person is being asked about another call"), "{said}");
    client.reply(&question, &json!({"action": "accept", "content": {"confirm": true}}));
    assert_eq!(client.result(id)["isError"], false);
    assert_eq!(read(&world, "work/src/a"), "one\n");
}

#[test]
fn a_call_that_is_cancelled_takes_its_question_along() {
    let world = changed_world();
    let mut client = Client::new(&world, &forms());
    let id = client.begin("restore_checkpoint", &json!({"checkpoint": "1"}));
    let question = client.heard("elicitation/create");
    client.tell("notifications/cancelled", &json!({"requestId": id}));
    let withdrawn = client.heard("notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    // A yes that comes after it has no effect.
    client.reply(&question, &json!({"action": "accept", "content": {"confirm": true}}));
    let again = client.begin("restore_checkpoint", &json!({"checkpoint": "1"}));
    let question = client.heard("elicitation/create");
    assert_eq!(read(&world, "work/src/a"), "two\n");
    client.reply(&question, &json!({"action": "decline"}));
    assert_eq!(client.result(again)["isError"], true);
    assert_eq!(read(&world, "work/src/a"), "two\n");
}

#[test]
fn the_end_of_stdin_is_the_end_of_the_question() {
    let world = changed_world();
    let mut client = Client::new(&world, &forms());
    client.begin("restore_checkpoint", &json!({"checkpoint": "1"}));
    client.heard("elicitation/create");
    let begun = Instant::now();
    let (_, code, said) = client.end();
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(read(&world, "work/src/a"), "two\n");
}

#[test]
fn what_is_as_it_was_is_not_asked_about() {
    let world = changed_world();
    nono(&world, &["checkpoints", "create"]);
    let mut client = Client::new(&world, &forms());
    let said = client.told("restore_checkpoint", &json!({"checkpoint": "1"}));
    assert!(said.contains("nothing to restore"), "{said}");
}
