//! Settings files as text: parsed into a tree, and edited key by key, with everything else left as written.

use nono_policy::data::SavedFormat;
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike, value as toml_value};

use super::merge::{KeyChange, apply};
use super::yaml;

/// Parse a settings file; an absent or empty one counts as an empty object. `None`: the text is invalid.
pub(super) fn parse(text: &str, format: SavedFormat) -> Option<Value> {
    if text.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    match format {
        SavedFormat::Json => serde_json::from_str(text).ok(),
        SavedFormat::Toml => toml::from_str::<Value>(text).ok(),
        SavedFormat::Yaml => yaml::parse(text),
    }
}

/// The text with these changes applied. `None`: the text is invalid, or a change cannot be made.
pub(super) fn edit(text: &str, format: SavedFormat, changes: &[KeyChange]) -> Option<String> {
    if changes.is_empty() {
        return Some(text.to_owned());
    }
    match format {
        SavedFormat::Json => {
            let mut tree = parse(text, format)?;
            for change in changes {
                apply(&mut tree, change);
            }
            let mut new = serde_json::to_string_pretty(&tree).ok()?;
            if text.is_empty() || text.ends_with('\n') {
                new.push('\n');
            }
            Some(new)
        }
        SavedFormat::Toml => {
            let mut document: DocumentMut = text.parse().ok()?;
            for change in changes {
                apply_toml(document.as_table_mut(), change)?;
            }
            Some(document.to_string())
        }
        SavedFormat::Yaml => yaml::edit(text, changes),
    }
}

fn apply_toml(document: &mut Table, change: &KeyChange) -> Option<()> {
    let (last, above) = change.key.split_last()?;
    let mut place: &mut dyn TableLike = document;
    for name in above {
        if place.get(name).is_none() {
            if change.value.is_none() {
                return Some(());
            }
            let mut table = Table::new();
            // A table header is written only where the table has values.
            table.set_implicit(true);
            place.insert(name, Item::Table(table));
        }
        place = place.get_mut(name)?.as_table_like_mut()?;
    }
    match &change.value {
        None => drop(place.remove(last)),
        Some(new) => {
            let new = Item::Value(to_toml(new)?);
            match place.get_mut(last) {
                // Decoration of the old value stays, such as a comment after it.
                Some(Item::Value(old)) => {
                    let decor = old.decor().clone();
                    *old = new.into_value().ok()?;
                    *old.decor_mut() = decor;
                }
                _ => drop(place.insert(last, new)),
            }
        }
    }
    Some(())
}

/// `None`: TOML has no such value.
fn to_toml(value: &Value) -> Option<toml_edit::Value> {
    let made = match value {
        Value::Null => return None,
        Value::Bool(flag) => toml_value(*flag),
        Value::String(text) => toml_value(text.as_str()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => toml_value(whole),
            (None, Some(real)) => toml_value(real),
            (None, None) => return None,
        },
        Value::Array(list) => {
            let list: Option<toml_edit::Array> = list.iter().map(to_toml).collect();
            toml_value(list?)
        }
        Value::Object(map) => {
            let mut table = toml_edit::InlineTable::new();
            for (name, value) in map {
                table.insert(name, to_toml(value)?);
            }
            toml_value(table)
        }
    };
    made.into_value().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::merge::changes;
    use super::*;

    #[test]
    fn toml_keeps_what_was_written_around_a_value() {
        let text = "# mine\nmodel = \"a\" # why\n\n[tui]\ntheme = \"x\"\n";
        let before = parse(text, SavedFormat::Toml).unwrap();
        let after = json!({"model": "b", "tui": {"theme": "x"}, "notice": {"hide": true}});
        let new = edit(text, SavedFormat::Toml, &changes(&before, &after)).unwrap();
        assert_eq!(new, "# mine\nmodel = \"b\" # why\n\n[tui]\ntheme = \"x\"\n\n[notice]\nhide = true\n");
        assert_eq!(parse(&new, SavedFormat::Toml).unwrap(), after);
        let back = edit(&new, SavedFormat::Toml, &changes(&after, &before)).unwrap();
        let back = parse(&back, SavedFormat::Toml).unwrap();
        assert_eq!((&back["model"], &back["tui"]), (&before["model"], &before["tui"]));
    }

    #[test]
    fn names_that_toml_has_to_quote() {
        let after = json!({"projects": {"/home/me/a b": {"trust_level": "trusted"}}});
        let new = edit("", SavedFormat::Toml, &changes(&json!({}), &after)).unwrap();
        assert_eq!(parse(&new, SavedFormat::Toml).unwrap(), after, "{new}");
    }

    #[test]
    fn what_is_not_in_its_format_is_not_changed() {
        let change = changes(&json!({}), &json!({"a": 1}));
        assert_eq!(edit("{ // comment\n}", SavedFormat::Json, &change), None);
        assert_eq!(edit("a = ", SavedFormat::Toml, &change), None);
        assert_eq!(
            edit("a = 1\n[x]\n", SavedFormat::Toml, &changes(&json!({}), &json!({"a": {"b": 1}}))),
            None
        );
        assert_eq!(edit("{\"b\": 2}", SavedFormat::Json, &change).unwrap(), "{\n  \"b\": 2,\n  \"a\": 1\n}");
    }
}
