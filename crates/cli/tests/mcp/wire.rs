//! Lines in, lines out, and the end.

use std::time::Duration;

use serde_json::json;

use super::kit::{Client, text};
use super::{changed_world, world};

#[test]
fn a_client_learns_who_it_talks_to_and_what_there_is() {
    let world = world();
    let mut client = Client::bare(&world, &["mcp"]);
    let hello = client.introduce(&json!({}));
    assert_eq!(hello["result"]["serverInfo"]["name"], "nono");
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert!(hello["result"]["instructions"].as_str().unwrap().contains("wait for the person"));
    let id = client.ask("tools/list", &json!({}));
    let tools = client.result(id)["tools"].as_array().unwrap().clone();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let all = [
        "list_checkpoints",
        "diff_checkpoint",
        "create_checkpoint",
        "restore_checkpoint",
        "changes",
        "why",
        "request_access",
    ];
    assert_eq!(names, all);
    let restore = &tools[3];
    assert_eq!(restore["annotations"]["destructiveHint"], true);
    assert_eq!(restore["inputSchema"]["properties"]["paths"]["maxItems"], 100);
    let (took, code, said) = client.end();
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn a_client_of_tomorrow_is_answered_in_a_version_that_has_questions() {
    let world = world();
    let mut client = Client::bare(&world, &["mcp"]);
    let hello = json!({"protocolVersion": "2026-07-28", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let id = client.ask("initialize", &hello);
    assert_eq!(client.result(id)["protocolVersion"], "2025-11-25");
}

#[test]
fn what_is_no_call_is_an_error_and_not_the_end() {
    let world = changed_world();
    let mut client = Client::new(&world, &json!({}));
    for line in
        ["", "{", "[]", "null", "\u{0}\u{1b}[2J", "{\"jsonrpc\":\"2.0\"}", "{\"jsonrpc\":\"2.0\",\"id\":{}}"]
    {
        client.send(line);
    }
    let id = client.ask("tools/call", &json!({"name": "rm", "arguments": {}}));
    assert_eq!(client.answer(id)["error"]["code"], -32602);
    let id = client.ask("tools/call", &json!({"name": "changes", "arguments": []}));
    assert!(client.answer(id)["error"].is_object());
    let id = client.ask("no/such/method", &json!({}));
    assert_eq!(client.answer(id)["error"]["code"], -32601);
    let said = client.refused("diff_checkpoint", &json!({}));
    assert!(said.starts_with("checkpoint is missing\n") && said.contains("tools/list"), "{said}");
    let said = client.refused("why", &json!({"path": "a", "op": "read"}));
    assert!(said.starts_with("there is no argument op"), "{said}");
    assert!(client.told("list_checkpoints", &json!({})).contains("by hand"));
    assert_eq!(client.end().1, 0);
}

#[test]
fn an_argument_of_a_megabyte_is_refused_and_one_of_many_not_even_read() {
    let world = changed_world();
    let mut client = Client::new(&world, &json!({}));
    let long = "x".repeat(1 << 20);
    for tool in ["diff_checkpoint", "restore_checkpoint"] {
        let said = client.refused(tool, &json!({"checkpoint": long}));
        assert!(said.starts_with("checkpoint is a text of 1 to 100 bytes"), "{said}");
    }
    assert!(client.refused("create_checkpoint", &json!({"reason": long})).contains("reason is a text"));
    assert!(
        client.refused("request_access", &json!({"path": long, "reason": "x"})).contains("path is a text")
    );
    client.begin("diff_checkpoint", &json!({"checkpoint": "x".repeat(5 << 20)}));
    assert!(client.told("list_checkpoints", &json!({})).contains("by hand"));
}

#[test]
fn two_calls_at_once_are_both_answered() {
    let world = changed_world();
    let mut client = Client::new(&world, &json!({}));
    let first = client.begin("changes", &json!({}));
    let second = client.begin("diff_checkpoint", &json!({"checkpoint": "1"}));
    let more: Vec<u64> = (0..20).map(|_| client.begin("list_checkpoints", &json!({}))).collect();
    for id in more {
        let result = client.result(id);
        assert!(text(&result).contains("by hand"), "{result}");
    }
    let result = client.result(second);
    assert!(text(&result).contains("+two"), "{result}");
    let result = client.result(first);
    assert!(text(&result).contains("src/a (modified, +1 -1)"), "{result}");
}

#[test]
fn who_does_not_introduce_themselves_is_not_served() {
    let world = world();
    let mut client = Client::bare(&world, &["mcp"]);
    client.tell("notifications/cancelled", &json!({"requestId": 1}));
    let (_, code, said) = client.end();
    assert_eq!(code, 125, "{said}");
    assert!(said.contains("did not begin with `initialize`"), "{said}");
    let (_, code, said) = Client::bare(&world, &["mcp"]).end();
    assert_eq!((code, said.as_str()), (0, ""), "who says nothing wants nothing");
}
