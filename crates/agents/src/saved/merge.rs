//! Changes that an agent made to its settings, and which of them take effect outside the sandbox.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use nono_policy::data::SavedFile;

/// A key with a new value, or a removed key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyChange {
    pub(super) key: Vec<String>,
    /// `None`: removed.
    pub(super) value: Option<Value>,
}

impl KeyChange {
    /// Whether the change is worth reporting: a new empty list, null or `false` changes nothing.
    pub(super) fn says_something(&self) -> bool {
        match &self.value {
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            Some(Value::Bool(false) | Value::Null) => false,
            _ => true,
        }
    }

    /// The key in dotted notation.
    pub(super) fn shown(&self) -> String {
        self.key.join(".")
    }
}

/// The changes that turn `before` into `after`, key by key. Objects are compared recursively, new ones too, so that
/// each key is judged by its own name; any other value is one change.
pub(super) fn changes(before: &Value, after: &Value) -> Vec<KeyChange> {
    let mut found = Vec::new();
    compare(&mut Vec::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(key: &mut Vec<String>, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<KeyChange>) {
    if before == after {
        return;
    }
    let object = |value: Option<&Value>| match value {
        None => Some(Map::new()),
        Some(Value::Object(map)) => Some(map.clone()),
        Some(_) => None,
    };
    let filled = |value: Option<&Value>| value.and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    match (object(before), object(after)) {
        (Some(old), Some(new)) if filled(before) || filled(after) => {
            let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
            for name in names {
                key.push(name.clone());
                compare(key, old.get(name), new.get(name), found);
                key.pop();
            }
        }
        _ => found.push(KeyChange { key: key.clone(), value: after.cloned() }),
    }
}

/// Apply a change, creating the objects above it. Does nothing where another kind of value is in the way.
pub(super) fn apply(value: &mut Value, change: &KeyChange) {
    let Some((last, above)) = change.key.split_last() else {
        if let Some(new) = &change.value {
            *value = new.clone();
        }
        return;
    };
    let mut place = value;
    for name in above {
        let Value::Object(map) = place else { return };
        if !map.contains_key(name) && change.value.is_none() {
            return;
        }
        place = map.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
    }
    let Value::Object(map) = place else { return };
    match &change.value {
        Some(new) => drop(map.insert(last.clone(), new.clone())),
        None => drop(map.shift_remove(last)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeScope {
    Outside,
    /// Only in sandboxed runs of the project.
    Inside,
    Nowhere,
}

/// The scope of a change: outside if the key is on the outward list, and no key at or below it is on the inward or
/// never list.
pub(super) fn reach(change: &KeyChange, file: &SavedFile) -> ChangeScope {
    let key: Vec<&str> = change.key.iter().map(String::as_str).collect();
    let alike = |pattern: &String| pattern.split('/').zip(&key).all(|(part, name)| fits(part, name));
    let covers = |pattern: &String| pattern.split('/').count() <= key.len() && alike(pattern);
    // A value that is replaced as a whole may contain a listed key.
    let concerns = |pattern: &String| covers(pattern) || (change.value.is_some() && alike(pattern));
    if file.never.iter().any(concerns) {
        ChangeScope::Nowhere
    } else if file.outward.iter().any(covers) && !file.inward.iter().any(concerns) {
        ChangeScope::Outside
    } else {
        ChangeScope::Inside
    }
}

fn fits(part: &str, name: &str) -> bool {
    part == "*" || part == name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(outward: &[&str], inward: &[&str]) -> SavedFile {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        SavedFile { outward: list(outward), inward: list(inward), ..SavedFile::default() }
    }

    fn outward(before: &Value, after: &Value, file: &SavedFile) -> (Vec<String>, Vec<String>) {
        let (out, kept): (Vec<_>, Vec<_>) = changes(before, after)
            .into_iter()
            .partition(|change| reach(change, file) == ChangeScope::Outside);
        let shown = |list: Vec<KeyChange>| list.iter().map(KeyChange::shown).collect();
        (shown(out), shown(kept))
    }

    #[test]
    fn changes_make_the_one_into_the_other() {
        let pairs = [
            (json!({}), json!({"a": 1, "b": {"c": [1, 2], "d": {}}})),
            (json!({"a": 1, "b": {"c": 2}}), json!({"b": {}})),
            (json!({"a": {"x": 1}}), json!({"a": 3})),
            (json!({"a": 3}), json!({"a": {"x": {"y": null}}})),
            (json!({"a": {}}), json!({"a": {"x": 1}})),
            (json!([1]), json!({"a": 1})),
        ];
        for (before, after) in pairs {
            let mut made = before.clone();
            for change in changes(&before, &after) {
                apply(&mut made, &change);
            }
            assert_eq!(made, after, "from {before}");
        }
        assert!(changes(&json!({"a": {"b": 1}}), &json!({"a": {"b": 1}})).is_empty());
    }

    #[test]
    fn changes_of_both_sides_go_together() {
        let base = json!({"n": 1, "projects": {"/a": {"t": true}}});
        let inside = json!({"n": 2, "projects": {"/a": {"t": true}, "/b": {"t": true}}});
        let mut outside = json!({"n": 1, "theme": "dark", "projects": {"/a": {"t": false}}});
        for change in changes(&base, &inside) {
            apply(&mut outside, &change);
        }
        let both = json!({"n": 2, "theme": "dark", "projects": {"/a": {"t": false}, "/b": {"t": true}}});
        assert_eq!(outside, both);
    }

    #[test]
    fn a_key_that_runs_something_stays_inside_however_it_is_written() {
        let file = file(&["*"], &["mcpServers", "projects/*/mcpServers"]);
        let after = json!({
            "theme": "dark",
            "mcpServers": {"x": {"command": "sh"}},
            "projects": {"/p": {"mcpServers": {"y": {"command": "sh"}}, "n": 1}}
        });
        let (out, kept) = outward(&json!({}), &after, &file);
        assert_eq!(out, ["theme", "projects./p.n"]);
        assert_eq!(kept, ["mcpServers.x.command", "projects./p.mcpServers.y.command"]);
        // A key replaced by a value of another kind, a list or a text, at any depth.
        for (before, after) in [
            (json!({"mcpServers": 1}), json!({"mcpServers": [{"command": "sh"}]})),
            (json!({"projects": 1}), json!({"projects": {"/p": {"mcpServers": 1}}})),
            (json!({"projects": {}}), json!({"projects": [1]})),
            (json!({}), json!([1])),
        ] {
            assert_eq!(outward(&before, &after, &file).0, [""; 0], "{after}");
        }
    }

    #[test]
    fn what_calls_nono_is_never_changed() {
        let file = SavedFile { never: vec!["hooks".to_owned(), "a/off".to_owned()], ..file(&["*"], &[]) };
        let before = json!({"hooks": {"Stop": [1]}, "a": {"off": false}});
        for after in [json!({"a": {"off": false}}), json!({"hooks": {}, "a": {"off": true}}), json!([])] {
            let all = changes(&before, &after);
            assert!(
                !all.is_empty() && all.iter().all(|change| reach(change, &file) == ChangeScope::Nowhere),
                "{all:?}"
            );
        }
        let other = changes(&before, &json!({"hooks": {"Stop": [1]}, "a": {"off": false, "b": 1}}));
        assert_eq!(
            other.iter().map(|change| reach(change, &file)).collect::<Vec<_>>(),
            [ChangeScope::Outside]
        );
    }

    #[test]
    fn only_what_is_listed_goes_out() {
        let file = file(&["model", "ui/theme"], &[]);
        let after = json!({"model": "m", "hooks": {}, "ui": {"theme": "x", "run": "y"}});
        let (out, kept) = outward(&json!({}), &after, &file);
        assert_eq!(out, ["model", "ui.theme"]);
        assert_eq!(kept, ["hooks", "ui.run"]);
    }
}
