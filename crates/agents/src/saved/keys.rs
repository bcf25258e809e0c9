//! Answers that an agent remembers about an API key. In the sandbox the agent sees a placeholder instead of the key; an
//! answer about the key is copied to the placeholder, so that the agent does not ask again.

use nono_policy::data::SavedFile;
use nono_policy::environment::ReplacedKey;
use serde_json::Value;

use super::merge::KeyChange;
use super::text;

/// Changes that add a key's placeholder to each list that contains the key.
pub(super) fn beside_keys(settings: &str, file: &SavedFile, keys: &[ReplacedKey]) -> Vec<KeyChange> {
    let Some(lists) = file.keys.as_ref().filter(|_| !keys.is_empty()) else { return Vec::new() };
    let Some(tree) = text::parse(settings, file.format) else { return Vec::new() };
    let change = |pattern: &String| {
        let key: Vec<String> = pattern.split('/').map(str::to_owned).collect();
        let list = key.iter().try_fold(&tree, |place, name| place.get(name))?.as_array()?;
        let has = |wanted: &str| list.iter().any(|one| one.as_str() == Some(wanted));
        let known = keys.iter().map(|one| (end(&one.key, lists.last), end(&one.placeholder, lists.last)));
        let missing = known
            .filter(|(key, placeholder)| has(key) && !has(placeholder))
            .map(|(_, placeholder)| Value::from(placeholder));
        let longer: Vec<Value> = list.iter().cloned().chain(missing).collect();
        (longer.len() > list.len()).then_some(KeyChange { key, value: Some(longer.into()) })
    };
    lists.lists.iter().filter_map(change).collect()
}

/// The last `count` characters of a text.
fn end(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().nth(count.saturating_sub(1)).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use nono_policy::PolicyData;
    use serde_json::json;

    use super::*;

    fn of(settings: &Value) -> Vec<KeyChange> {
        let file = PolicyData::embedded().saved_file("claude-code", ".claude.json".as_ref()).unwrap();
        let key = format!("sk-{}", "k".repeat(40));
        let placeholder = format!("nono-dummy-{}", "d".repeat(32));
        beside_keys(&settings.to_string(), file, &[ReplacedKey { key, placeholder }])
    }

    #[test]
    fn a_placeholder_stands_in_the_list_that_has_its_key() {
        let (key, placeholder) = ("k".repeat(20), "d".repeat(20));
        let both = json!({"customApiKeyResponses": {"approved": ["other", key], "rejected": []}});
        let name = |list: &str| vec!["customApiKeyResponses".to_owned(), list.to_owned()];
        let expected = KeyChange { key: name("approved"), value: Some(json!(["other", key, placeholder])) };
        assert_eq!(of(&both), [expected]);
        let refused = json!({"customApiKeyResponses": {"rejected": [key]}});
        assert_eq!(
            of(&refused),
            [KeyChange { key: name("rejected"), value: Some(json!([key, placeholder])) }]
        );
    }

    #[test]
    fn nothing_is_said_about_a_placeholder_whose_key_is_unknown() {
        let (key, placeholder) = ("k".repeat(20), "d".repeat(20));
        for settings in [
            json!({}),
            json!({"customApiKeyResponses": {"approved": ["other"], "rejected": []}}),
            json!({"customApiKeyResponses": {"approved": [key, placeholder]}}),
            json!({"customApiKeyResponses": {"approved": key}}),
            json!([]),
        ] {
            assert_eq!(of(&settings), [], "{settings}");
        }
    }

    #[test]
    fn an_end_is_of_whole_characters() {
        assert_eq!((end("abc", 2), end("aöü", 2), end("a", 2), end("", 2)), ("bc", "öü", "a", ""));
    }
}
