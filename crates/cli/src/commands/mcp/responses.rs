//! Answers that are the same inside and outside a sandbox.

use nono::checkpoints::json::Listed;
use nono::checkpoints::{Brief, json as shapes};
use nono::diagnostic::escape;
use serde_json::{Value, json};

use super::answer::ToolAnswer;
use crate::commands::checkpoints::text;

/// Hint about diffs that do not fit in an answer.
pub(super) const MORE: &str = "call diff_checkpoint with paths to see more of them";
/// Maximum length of a list in JSON.
const SOME: usize = 100;

pub(super) fn list(listed: &Listed, limit: usize) -> ToolAnswer {
    let Listed { project, checkpoints: all, here } = listed;
    let shown = &all[..limit.min(all.len())];
    let mut lines = text::list(project, shown, here.as_ref());
    if all.is_empty() {
        lines += "\nnone; create_checkpoint takes the first one";
    } else if shown.len() < all.len() {
        let older = all.len() - shown.len();
        lines = format!("{lines}\n... and {older} older ones: call it with a larger limit");
    }
    let mut value = shapes::list(project, shown, here.as_ref());
    value["total"] = json!(all.len());
    ToolAnswer::new(lines, harmless(value))
}

/// Answer about a diff. `left_out`: number of paths that are not open to the sandbox.
pub(super) fn diff(id: &str, found: &Brief, left_out: u64) -> ToolAnswer {
    if found.is_empty() && left_out == 0 {
        let text = format!("nothing changed since checkpoint {id}");
        return ToolAnswer::new(text, json!({"checkpoint": id, "files": []}));
    }
    let text = format!("Changed since checkpoint {id}:\n{}{}", found.text(MORE), not_open(left_out));
    // Escaped already; line breaks must stay.
    let mut value = json!(found);
    value["checkpoint"] = json!(id);
    value["not_open"] = json!(left_out);
    ToolAnswer::new(text, value)
}

pub(super) fn changes(title: &str, found: Brief, left_out: u64) -> ToolAnswer {
    let found = found.without_lines();
    let text = if found.is_empty() { "nothing".to_owned() } else { found.text(MORE) };
    let title = escape(title);
    let mut value = json!(found);
    value["title"] = json!(title);
    value["not_open"] = json!(left_out);
    ToolAnswer::new(format!("{title}\n{text}{}", not_open(left_out)), value)
}

fn not_open(left_out: u64) -> String {
    match left_out {
        0 => String::new(),
        one => format!("\n{one} more changed, not shown because not open to this sandbox"),
    }
}

/// Escapes every string for the terminal.
pub(super) fn harmless(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(escape(&text)),
        Value::Array(all) => all.into_iter().map(harmless).collect(),
        Value::Object(all) => {
            Value::Object(all.into_iter().map(|(name, one)| (escape(&name), harmless(one))).collect())
        }
        other => other,
    }
}

/// Shortens lists to `SOME` entries, and notes how many were left out.
pub(super) fn short(value: Value) -> Value {
    nono::json::short(value, SOME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_harmless() {
        let value = json!({"a\u{1b}": ["x\n", {"b": "\u{202e}"}], "n": 1});
        assert_eq!(harmless(value), json!({"a\\u{1b}": ["x\\u{a}", {"b": "\\u{202e}"}], "n": 1}));
    }
}
