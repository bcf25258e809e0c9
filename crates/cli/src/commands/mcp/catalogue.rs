//! Descriptions of the tools for clients: name, description, arguments with their bounds, hints.

use rmcp::model::Tool;

/// Instructions for the model about all tools.
pub(super) const INSTRUCTIONS: &str = "nono keeps checkpoints of the project in this directory, each the state of all \
its files at a moment. Checkpoints are numbered from the newest, which is 1; ids are stable, numbers are not. A restore, and \
access to what the sandbox closes, wait for the person at the keyboard: you cannot give the answer, and a no is final until \
the person says otherwise.";

/// The tools, as in `tools.json`.
pub(super) fn tools() -> Vec<Tool> {
    // A test reads the file.
    serde_json::from_str(include_str!("tools.json")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::tool::{LISTED, LISTED_BY_DEFAULT, NAME, NAMES, PATH, PATHS, REASON, TARGET};

    #[test]
    fn every_tool_says_what_it_is_and_what_it_takes() {
        let tools = tools();
        let limit = &tools[0].input_schema["properties"]["limit"];
        assert_eq!((&limit["maximum"], &limit["default"]), (&LISTED.into(), &LISTED_BY_DEFAULT.into()));
        let paths = &tools[1].input_schema["properties"]["paths"];
        let path_bounds = (&paths["maxItems"], &paths["items"]["maxLength"]);
        assert_eq!(path_bounds, (&PATHS.into(), &PATH.into()));
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
                if let Some(most) = one.get("maxLength") {
                    let most_of = [
                        ("checkpoint", TARGET),
                        ("path", PATH),
                        ("host", NAME),
                        ("profile", NAME),
                        ("reason", REASON),
                    ];
                    assert!(most_of.iter().any(|(of, bound)| name == of && *most == *bound), "{name}");
                }
                let bounds = ["maxLength", "maximum", "maxItems", "enum"];
                assert!(bounds.iter().any(|bound| one.get(*bound).is_some()), "{} of {}", name, tool.name);
            }
        }
    }
}
