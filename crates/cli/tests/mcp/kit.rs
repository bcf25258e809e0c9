//! A client: one message a line, nothing else is understood.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world::World;

/// Nothing here takes that long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// What came before it was asked for.
    early: Vec<Value>,
    last: u64,
}

impl Client {
    /// A server in the world's project, to which a client with these capabilities has introduced itself.
    pub(crate) fn new(world: &World, capabilities: &Value) -> Client {
        let mut client = Client::bare(world, &["mcp"]);
        client.introduce(capabilities);
        client
    }

    /// A server that has not heard a word.
    pub(crate) fn bare(world: &World, args: &[&str]) -> Client {
        let mut command = world.command("nono");
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            for line in output.lines() {
                let line = line.unwrap();
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Client { child, input, messages, early: Vec::new(), last: 0 }
    }

    pub(crate) fn introduce(&mut self, capabilities: &Value) -> Value {
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let id = self.ask("initialize", &hello);
        let answer = self.answer(id);
        self.tell("notifications/initialized", &json!({}));
        answer
    }

    pub(crate) fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Send a request; its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Begin to call a tool.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The whole answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
    }

    pub(crate) fn result(&mut self, id: u64) -> Value {
        let answer = self.answer(id);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Call a tool; its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments);
        self.result(id)
    }

    /// The text of a call that went well.
    pub(crate) fn told(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        text(&result)
    }

    /// The text of a call that did not.
    pub(crate) fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        text(&result)
    }

    /// What the server asks or tells by itself.
    pub(crate) fn heard(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method)
    }

    pub(crate) fn reply(&mut self, to: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": to["id"], "result": result}).to_string());
    }

    fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&wanted) {
            return self.early.remove(at);
        }
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("a message in time");
            if wanted(&message) {
                return message;
            }
            self.early.push(message);
        }
    }

    /// Close stdin, and wait for the end: how long it took, the exit code, and stderr.
    pub(crate) fn end(mut self) -> (Duration, i32, String) {
        let begun = Instant::now();
        drop(self.input.take());
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(5));
        }
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (begun.elapsed(), self.child.wait().unwrap().code().unwrap(), said)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}
