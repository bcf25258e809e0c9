//! Descriptions of the tools for clients: name, description, arguments with their bounds, hints.

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::tool::{LISTED, LISTED_BY_DEFAULT, NAME, PATH, PATHS, REASON, TARGET};

/// Instructions for the model about all tools.
pub(super) const INSTRUCTIONS: &str = "nono keeps checkpoints of the project in this directory, each the state of all \
its files at a moment. Checkpoints are numbered from the newest, which is 1; ids are stable, numbers are not. A restore, and \
access to what the sandbox closes, wait for the person at the keyboard: you cannot give the answer, and a no is final until \
the person says otherwise.";

pub(super) fn tools() -> Vec<Tool> {
    let target = json!({"type": "string", "minLength": 1, "maxLength": TARGET,
        "description": "id or the beginning of one, name, or number in the list now (1 is the newest; numbers move with each \
            new checkpoint)"});
    let paths = |what: &str| {
        json!({"type": "array", "maxItems": PATHS, "description": what,
            "items": {"type": "string", "minLength": 1, "maxLength": PATH}})
    };
    let path = json!({"type": "string", "minLength": 1, "maxLength": PATH, "description": "file or folder"});
    let access = |what: &str| json!({"type": "string", "enum": ["read", "write", "readwrite"], "default": "read", "description": what});
    let name = |what: &str| json!({"type": "string", "minLength": 1, "maxLength": NAME, "description": what});
    let reason =
        |what: &str| json!({"type": "string", "minLength": 1, "maxLength": REASON, "description": what});
    vec![
        tool(
            "list_checkpoints",
            "List the checkpoints of this project, newest first: number, id, time, why each was taken, and what the step \
             after it changed.",
            &json!({"limit": {"type": "integer", "minimum": 1, "maximum": LISTED, "default": LISTED_BY_DEFAULT,
                "description": "how many"}}),
            &[],
            looks("List checkpoints"),
        ),
        tool(
            "diff_checkpoint",
            "Show what changed in this project since a checkpoint: names, then lines. Long diffs are cut, and say so; give \
             paths to see more of them. Binary files are shown by size and digest.",
            &json!({"checkpoint": target, "paths": paths("only these files and folders; all by default")}),
            &["checkpoint"],
            looks("Compare with a checkpoint"),
        ),
        tool(
            "create_checkpoint",
            "Take a checkpoint of this project now. Nothing in the project is changed. Useful before a risky step.",
            &json!({"reason": reason("what for, in a few words; it is shown in the list")}),
            &[],
            ToolAnnotations::with_title("Take a checkpoint")
                .read_only(false)
                .destructive(false)
                .idempotent(true)
                .open_world(false),
        ),
        tool(
            "restore_checkpoint",
            "Put files back to the state of a checkpoint. The person is shown the plan and has to agree; the call waits for \
             that. What people changed themselves is kept, and what is overwritten can be brought back with `nono \
             checkpoints undo`.",
            &json!({"checkpoint": target, "paths": paths("only these files and folders; everything by default")}),
            &["checkpoint"],
            ToolAnnotations::with_title("Restore a checkpoint")
                .read_only(false)
                .destructive(true)
                .idempotent(true)
                .open_world(false),
        ),
        tool(
            "changes",
            "Say which files changed in this directory since the last point that one can go back to: names and numbers of \
             lines, no contents.",
            &json!({}),
            &[],
            looks("What changed"),
        ),
        tool(
            "why",
            "Explain whether a path or a host is open in the sandbox, by which rule, and what would open it. Inside a sandbox \
             it is about that sandbox; outside about the one that a profile describes. Give a path or a host.",
            &json!({
                "path": path,
                "operation": access("what would be done with the path"),
                "host": name("host name or address"),
                "port": {"type": "integer", "minimum": 1, "maximum": u16::MAX, "description": "port on that host"},
                "profile": name("outside a sandbox: the profile to ask about; the default one without it"),
            }),
            &[],
            looks("Why is it open or closed"),
        ),
        tool(
            "request_access",
            "From inside a sandbox, ask the person for a file or a folder that is not open. The call waits for the answer. A \
             file that is granted for reading comes with the answer.",
            &json!({
                "path": path,
                "access": access("what is wanted"),
                "reason": reason("what for; the person reads it"),
            }),
            &["path", "reason"],
            ToolAnnotations::with_title("Ask for access")
                .read_only(false)
                .destructive(false)
                .idempotent(false)
                .open_world(false),
        ),
    ]
}

fn looks(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title).read_only(true).open_world(false)
}

fn tool(
    name: &'static str,
    description: &'static str,
    properties: &Value,
    required: &[&str],
    hints: ToolAnnotations,
) -> Tool {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties.clone());
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    let title = hints.title.clone().unwrap_or_default();
    Tool::new(name, description, schema).with_title(title).with_annotations(hints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::tool::NAMES;

    #[test]
    fn every_tool_says_what_it_is_and_what_it_takes() {
        let tools = tools();
        assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), NAMES);
        for tool in &tools {
            assert!(tool.description.as_ref().is_some_and(|text| text.ends_with('.')), "{}", tool.name);
            let hints = tool.annotations.as_ref().unwrap();
            assert_eq!(hints.open_world_hint, Some(false), "{}", tool.name);
            assert_eq!(
                hints.destructive_hint == Some(true),
                tool.name == "restore_checkpoint",
                "{}",
                tool.name
            );
            for (name, one) in tool.input_schema["properties"].as_object().unwrap() {
                assert!(one["description"].is_string(), "{} of {}", name, tool.name);
                let bounds = ["maxLength", "maximum", "maxItems", "enum"];
                assert!(bounds.iter().any(|bound| one.get(*bound).is_some()), "{} of {}", name, tool.name);
            }
        }
    }
}
