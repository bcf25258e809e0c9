//! Whatever a model puts into a tool call, for every agent that nono knows and each of its events: the hook ends, with 0
//! and an answer that the agent can read; before anything that may write there is a checkpoint; nothing is deleted.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::enabled;
use super::said::Said;
use super::world::World;

/// An agent as the data of the hooks describe it.
struct Agent {
    name: String,
    data: Value,
}

fn agents() -> Vec<Agent> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/src/hooks/agents/data");
    let mut agents: Vec<Agent> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let data: Value = serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
            Agent { name: data["name"].as_str().unwrap().to_owned(), data }
        })
        .collect();
    agents.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(agents.len() >= 11);
    agents
}

impl Agent {
    fn events(&self) -> Vec<(&str, &str)> {
        let events = self.data["events"].as_object().unwrap();
        events.iter().map(|(name, kind)| (name.as_str(), kind.as_str().unwrap())).collect()
    }

    fn before(&self) -> &str {
        self.events().into_iter().find(|(_, kind)| *kind == "before_tool").unwrap().0
    }

    /// The name of its shell, and the key of the line.
    fn shell(&self) -> (&str, &str) {
        let (tool, keys) = self.data["tools"]["shells"].as_object().unwrap().iter().next().unwrap();
        (tool, keys[0].as_str().unwrap())
    }

    /// One of its tools that write a file, and the key of the path. Codex has none.
    fn writer(&self) -> Option<(&str, &str)> {
        let files = self.data["tools"]["files"].as_object()?;
        files.iter().find_map(|(tool, keys)| Some((tool.as_str(), keys.get(0)?.as_str()?)))
    }

    /// A payload as it sends it, with this tool and input.
    fn payload(&self, event: &str, cwd: &Path, tool: Value, input: Value) -> Value {
        let fields = &self.data["fields"];
        let mut payload = json!({});
        let values = [
            ("session", json!("s1")),
            ("cwd", json!(cwd)),
            ("tool", tool),
            ("input", input),
            ("prompt", json!("do")),
        ];
        for (name, value) in values {
            if let Some(place) = fields[name][0].as_str() {
                put(&mut payload, place, value);
            }
        }
        put(&mut payload, fields["event"].as_str().unwrap_or("hook_event_name"), json!(event));
        payload
    }

    fn shell_call(&self, event: &str, cwd: &Path, line: &str) -> Value {
        let (tool, key) = self.shell();
        self.payload(event, cwd, json!(tool), json!({key: line}))
    }
}

/// `0` is the first of a list.
fn put(payload: &mut Value, place: &str, value: Value) {
    match place.split_once('.') {
        Some((key, "0")) => payload[key] = json!([value]),
        Some((key, rest)) => {
            if !payload[key].is_object() {
                payload[key] = json!({});
            }
            put(&mut payload[key], rest, value);
        }
        None => payload[place] = value,
    }
}

/// A project of its own, with one file.
fn project(world: &World, name: &str) -> std::path::PathBuf {
    world.file(&format!("work/{name}/Makefile"), "all:\n", 0o644);
    world.file(&format!("work/{name}/a.txt"), "one\n", 0o644);
    world.path(&format!("work/{name}"))
}

/// The hook in this folder, with a bound on its memory; one that hangs is ended.
fn hook(world: &World, dir: &Path, args: [&str; 2], input: &[u8]) -> Said {
    let mut command = world.command("sh");
    command
        .args(["-c", "ulimit -v 1500000; exec timeout 60 nono hook \"$@\"", "sh"])
        .args(args)
        .current_dir(dir);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A hook that does not read all of it is within its rights.
    let _ = stdin.write_all(input);
    drop(stdin);
    Said::of(&child.wait_with_output().unwrap())
}

/// Exit code, and an answer without anything that a terminal would act on.
#[track_caller]
fn check(agent: &Agent, event: &str, what: &str, said: &Said) {
    let name = &agent.name;
    assert_eq!(said.code, Some(0), "{name} {event} {what}: {said:.300?}");
    assert!(said.err.is_empty(), "{name} {event} {what}: {said:.300?}");
    assert!(said.out.len() < 64 << 10, "{name} {event} {what}");
    if agent.data["answer"]["nothing"] == "" {
        plain(&said.out, what);
    } else {
        let value: Value = serde_json::from_str(&said.out)
            .unwrap_or_else(|error| panic!("{name} {event} {what}: {error}: {said:.300?}"));
        assert!(value.is_object(), "{name} {event} {what}: {value}");
        for text in texts(&value) {
            plain(&text, what);
        }
    }
}

fn plain(text: &str, what: &str) {
    let acts = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(acts), "{what}: {text:?}");
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

fn histories(world: &World) -> usize {
    fs::read_dir(world.path("state/projects")).map_or(0, Iterator::count)
}

/// Lines that a model may write, each with whether it may change something in the project it is said in.
fn lines(world: &World) -> Vec<(String, bool)> {
    let state = world.path("state").display().to_string();
    let here = |line: &str| (line.to_owned(), true);
    vec![
        here("; nono checkpoints clear --yes"),
        here("nono checkpoints forget . --yes"),
        here("nono checkpoints prune --yes && nono hooks remove claude-code --yes"),
        here(&format!("NONO_HOME={state} nono checkpoints clear --yes")),
        (format!("rm -rf {state}"), false),
        here(&format!("echo {}; make", "x".repeat(1 << 20))),
        here("make \0\0 nul"),
        here("make # \u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[1;1H"),
        here("make # \u{202e}gnihton\u{2066}\u{200f}"),
        ("rm ../../../../../../x /proc/self/root/x ~root/x".to_owned(), false),
        here(&format!("rm {}", "a/".repeat(30_000))),
        here(&format!("make {}", "$((".repeat(50_000))),
        here("'unclosed"),
        here("\u{feff}make\r\nmake\u{2028}make"),
    ]
}

#[test]
fn before_any_line_of_a_shell_there_is_a_checkpoint() {
    let agents = agents();
    for (place, agent) in agents.iter().enumerate() {
        let world = enabled();
        let mut kept = 0;
        // A line is read by the same code whatever the agent: the first has all of them, each other one its share.
        let is_its = |n: usize| place == 0 || n % (agents.len() - 1) == place - 1;
        for (n, (line, keeps)) in lines(&world).iter().enumerate().filter(|(n, _)| is_its(*n)) {
            let dir = project(&world, &format!("p{n}"));
            let payload = agent.shell_call(agent.before(), &dir, line).to_string();
            let said = hook(&world, &dir, [&agent.name, agent.before()], payload.as_bytes());
            check(agent, agent.before(), &line.chars().take(60).collect::<String>(), &said);
            kept += usize::from(*keeps);
            assert!(histories(&world) >= kept, "{}: no checkpoint before {line:.60}", agent.name);
            assert_eq!(fs::read_to_string(dir.join("a.txt")).unwrap(), "one\n");
        }
    }
}

#[test]
fn before_any_file_or_unknown_tool_there_is_a_checkpoint() {
    for agent in agents() {
        let world = enabled();
        let state = world.path("state/config.toml").display().to_string();
        let long = "a/".repeat(30_000);
        let mut calls: Vec<(Value, Value)> = vec![
            (json!("no_such_tool"), json!({"x": 1})),
            (json!(7), json!({"command": "ls"})),
            (json!(null), json!(null)),
            (json!(["Bash"]), json!([1, 2])),
            (json!(agent.shell().0), json!({agent.shell().1: 7})),
            (json!(agent.shell().0), json!("{\"command\": [[[")),
            (json!("x\u{1b}]52;c;eA==\u{7}\u{202e}".repeat(1000)), json!({})),
        ];
        if let Some((tool, key)) = agent.writer() {
            let paths = [
                "a.txt",
                "../../../../etc/passwd",
                "/proc/self/root/etc/passwd",
                "~root/x",
                "a\0b",
                &long,
                &state,
            ];
            calls.extend(paths.iter().map(|path| (json!(tool), json!({key: path}))));
            calls.push((json!(tool), json!({key: {"deep": [1]}})));
        }
        for (n, (tool, input)) in calls.into_iter().enumerate() {
            let dir = project(&world, &format!("p{n}"));
            let what = format!("{tool:.40} {input:.60}");
            let payload = agent.payload(agent.before(), &dir, tool, input).to_string();
            let said = hook(&world, &dir, [&agent.name, agent.before()], payload.as_bytes());
            check(&agent, agent.before(), &what, &said);
        }
        let unprotected =
            ["../../../../etc/passwd", "/proc/self/root/etc/passwd", "~root/x", "the state"].len();
        let least = if agent.writer().is_some() { 15 - unprotected } else { 7 };
        assert!(histories(&world) >= least, "{}: {} of {least}", agent.name, histories(&world));
    }
}

#[test]
fn bytes_that_are_no_call_are_survived_at_every_event() {
    for agent in agents() {
        // The same code reads it for every agent: one is enough for what takes its time without optimisation.
        let depth = if agent.name == "claude-code" { 100_000 } else { 1000 };
        let deep = [b"{\"a\":".repeat(depth), b"1".to_vec(), b"}".repeat(depth)].concat();
        let world = enabled();
        let dir = project(&world, "p");
        let whole = agent.shell_call(agent.before(), &dir, "make").to_string();
        let (tool, key) = agent.shell();
        let twice =
            whole.replacen('{', &format!("{{\"tool_name\": \"Read\", \"{tool}\": {{\"{key}\": 1}}, "), 1);
        let inputs: [(&str, Vec<u8>); 8] = [
            ("nothing", Vec::new()),
            ("half", whole.as_bytes()[..whole.len() / 2].to_vec()),
            ("no JSON", b"make\0\x1b]0;t\x07".to_vec()),
            ("brackets", deep),
            ("not UTF-8", [whole.as_bytes(), b"\xff\xfe"].concat()),
            ("twice", twice.into_bytes()),
            ("a list", b"[1, 2]".to_vec()),
            ("two", [whole.as_bytes(), whole.as_bytes()].concat()),
        ];
        for (event, _) in agent.events() {
            for (what, input) in &inputs {
                check(&agent, event, what, &hook(&world, &dir, [&agent.name, event], input));
            }
        }
        assert_eq!(histories(&world), 1, "{}", agent.name);
    }
}

#[test]
fn calls_of_many_megabytes_end() {
    for agent in agents() {
        let world = enabled();
        // One that is read as a whole takes its time in a build without optimisation: once is enough. One that is too
        // long is read by the same code whatever the agent.
        let megabytes: &[usize] = if agent.name == "claude-code" { &[15, 17, 50] } else { &[1] };
        for (n, megabytes) in megabytes.iter().enumerate() {
            let dir = project(&world, &format!("p{n}"));
            let line = format!("make {}", "x".repeat(*megabytes << 20));
            let payload = agent.shell_call(agent.before(), &dir, &line).to_string();
            let said = hook(&world, &dir, [&agent.name, agent.before()], payload.as_bytes());
            check(&agent, agent.before(), "megabytes", &said);
            assert_eq!(histories(&world), n + 1, "{}: {megabytes} MB", agent.name);
        }
    }
}

/// The decision of an answer, wherever the agent has it.
fn decision(answer: &Value) -> Option<&str> {
    let specific = &answer["hookSpecificOutput"]["permissionDecision"];
    let places = [specific, &answer["permissionDecision"], &answer["decision"], &answer["permission"]];
    let refused = answer["refuse"].is_string().then_some("refuse");
    places.into_iter().find_map(Value::as_str).or(refused)
}

#[test]
fn a_call_that_removes_the_history_is_for_the_person_to_allow() {
    let expected = [
        ("claude-code", Some("ask")),
        ("cline", None),
        ("codex", Some("deny")),
        ("copilot", Some("ask")),
        ("cursor", Some("deny")),
        ("gemini", Some("deny")),
        ("goose", None),
        ("hermes", Some("block")),
        ("kiro", None),
        ("opencode", Some("refuse")),
        ("qwen", Some("ask")),
    ];
    for (agent, (name, wanted)) in agents().iter().zip(expected) {
        assert_eq!(agent.name, name);
        let world = enabled();
        let dir = project(&world, "p");
        let state = world.path("state").display().to_string();
        let ask = |line: &str| {
            let payload = agent.shell_call(agent.before(), &dir, line).to_string();
            let said = hook(&world, &dir, [name, agent.before()], payload.as_bytes());
            check(agent, agent.before(), line, &said);
            serde_json::from_str::<Value>(&said.out).unwrap_or_default()
        };
        for line in
            ["make; nono checkpoints clear --yes", &format!("rm -rf {state}/store"), "nono hooks remove all"]
        {
            let answer = ask(line);
            assert_eq!(decision(&answer), wanted, "{name} {line}: {answer}");
        }
        for line in ["make", "ls", "nono checkpoints list", "nono checkpoints restore 1", "rm -rf build"] {
            let answer = ask(line);
            assert_eq!(decision(&answer), None, "{name} {line}: {answer}");
        }
    }
}
