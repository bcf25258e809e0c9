//! Answer of a tool: text for people and models, and the same as JSON for programs.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::failure::Failure;

/// Maximum size of an answer in bytes.
const MOST: usize = 32 << 10;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolAnswer {
    pub(super) text: String,
    pub(super) value: Option<Value>,
    /// Whether the call failed.
    pub(super) failed: bool,
}

impl ToolAnswer {
    pub(super) fn new(text: impl Into<String>, value: Value) -> ToolAnswer {
        ToolAnswer { text: text.into(), value: Some(value), failed: false }
    }

    pub(super) fn failed(self) -> ToolAnswer {
        ToolAnswer { failed: true, ..self }
    }

    /// Converts to the protocol's type. JSON over the limit is left out: the text has what matters.
    pub(super) fn result(self) -> CallToolResult {
        let content = vec![ContentBlock::text(cut(self.text, MOST))];
        let mut result =
            if self.failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = self.value.filter(|value| value.to_string().len() <= MOST);
        result
    }
}

impl From<Failure> for ToolAnswer {
    /// Message and hint of a failure.
    fn from(failure: Failure) -> ToolAnswer {
        let lines: Vec<String> = failure.sentences().split('\n').map(nono::diagnostic::escape).collect();
        ToolAnswer { text: lines.join("\n"), value: None, failed: true }
    }
}

/// Cuts text to this many bytes and notes how much was cut.
pub(super) fn cut(mut text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let left_out = text.len() - end;
    text.truncate(end);
    format!("{text}\n... and {left_out} more bytes, which were cut here")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_longer_than_it_may_be() {
        let answer = ToolAnswer::new("ä".repeat(MOST), json!({"text": "x".repeat(MOST)})).result();
        let text = serde_json::to_value(&answer).unwrap()["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.len() < MOST + 100, "{}", text.len());
        assert!(text.ends_with("... and 32768 more bytes, which were cut here"), "{}", &text[MOST..]);
        assert_eq!(answer.structured_content, None);
        assert_eq!(ToolAnswer::new("a", json!({})).result().structured_content, Some(json!({})));
    }

    #[test]
    fn a_failure_is_harmless_and_has_the_next_step() {
        let answer = ToolAnswer::from(Failure::new("no\u{1b}[2J").hint("do this"));
        assert_eq!((answer.text.as_str(), answer.failed), ("no\\u{1b}[2J\ndo this", true));
    }
}
