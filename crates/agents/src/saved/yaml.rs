//! Settings in YAML, as far as programs write it there. Text around a changed value stays as written; an edit whose
//! result would differ from the intended change is refused.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

use super::merge::{KeyChange, apply};

/// Maximum depth of nesting.
const DEEPEST: usize = 64;

/// A value and its position in the text.
struct YamlNode {
    value: Value,
    shape: Shape,
}

enum Shape {
    /// Start and end in bytes.
    Scalar(usize, usize),
    Mapping {
        start: usize,
        is_flow: bool,
        entries: Vec<YamlEntry>,
    },
    Sequence,
}

struct YamlEntry {
    name: String,
    start: usize,
    node: YamlNode,
}

/// Parse a text. `None`: not YAML, or with anchors, aliases or tags.
pub(super) fn parse(text: &str) -> Option<Value> {
    Some(match read(text)? {
        YamlRead::Nothing => Value::Object(Map::new()),
        YamlRead::Settings(node) => node.value,
    })
}

/// The text with these changes applied.
pub(super) fn edit(text: &str, changes: &[KeyChange]) -> Option<String> {
    let mut tree = parse(text)?;
    let mut new = text.to_owned();
    for change in changes {
        let before = tree.clone();
        apply(&mut tree, change);
        if tree == before {
            continue;
        }
        new = match &change.value {
            Some(value) => set(&new, &change.key, value)?,
            None => remove(&new, &change.key)?,
        };
        if parse(&new)? != tree {
            return None;
        }
    }
    Some(new)
}

/// Content of a YAML text.
enum YamlRead {
    Nothing,
    Settings(YamlNode),
}

/// Parse a text; `None` if it is not a single mapping or empty.
fn read(text: &str) -> Option<YamlRead> {
    if text.starts_with('\u{feff}') {
        return None;
    }
    let places: Vec<usize> = text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
    let events: Option<Vec<(Event<'_>, Span)>> = Parser::new_from_str(text).map(Result::ok).collect();
    let events = events?;
    let is_document = |(event, _): &&(Event<'_>, Span)| matches!(event, Event::DocumentStart(_));
    match events.iter().filter(is_document).count() {
        0 => return Some(YamlRead::Nothing),
        1 => {}
        _ => return None,
    }
    let mut rest = events.iter().skip_while(|event| !is_document(event)).skip(1);
    let node = node(rest.next()?, &mut rest, text, &places, 0)?;
    match (&node.value, &node.shape) {
        (Value::Null, _) => Some(YamlRead::Nothing),
        (Value::Object(_), Shape::Mapping { .. }) => Some(YamlRead::Settings(node)),
        _ => None,
    }
}

fn node<'a>(
    (event, span): &'a (Event<'a>, Span),
    events: &mut impl Iterator<Item = &'a (Event<'a>, Span)>,
    text: &str,
    places: &[usize],
    depth: usize,
) -> Option<YamlNode> {
    if depth > DEEPEST {
        return None;
    }
    let (start, end) = (*places.get(span.start.index())?, *places.get(span.end.index())?);
    match event {
        Event::Scalar(said, style, 0, None) => {
            Some(YamlNode { value: scalar(said, *style), shape: Shape::Scalar(start, end) })
        }
        Event::SequenceStart(0, None) => {
            let mut list = Vec::new();
            loop {
                match events.next()? {
                    (Event::SequenceEnd, _) => break,
                    next => list.push(node(next, events, text, places, depth + 1)?.value),
                }
            }
            Some(YamlNode { value: Value::Array(list), shape: Shape::Sequence })
        }
        Event::MappingStart(0, None) => {
            let (mut map, mut entries) = (Map::new(), Vec::new());
            loop {
                let (name, start) = match events.next()? {
                    (Event::MappingEnd, _) => break,
                    (Event::Scalar(name, _, 0, None), span) => {
                        (name.to_string(), *places.get(span.start.index())?)
                    }
                    _ => return None,
                };
                let node = node(events.next()?, events, text, places, depth + 1)?;
                if map.insert(name.clone(), node.value.clone()).is_some() {
                    return None;
                }
                entries.push(YamlEntry { name, start, node });
            }
            let is_flow = text[start..].starts_with('{');
            Some(YamlNode { value: Value::Object(map), shape: Shape::Mapping { start, is_flow, entries } })
        }
        // An anchor, an alias or a tag.
        _ => None,
    }
}

fn scalar(said: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return said.into();
    }
    match said {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => {
            let is_number = said.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            let number =
                serde_json::from_str::<Value>(said).ok().filter(|value| is_number && value.is_number());
            number.unwrap_or_else(|| said.into())
        }
    }
}

/// Set a key. Strings are quoted: the meaning of a bare word depends on the reader.
fn set(text: &str, key: &[String], value: &Value) -> Option<String> {
    let YamlRead::Settings(root) = read(text)? else { return Some(appended(text, key, value)) };
    let mut node = &root;
    for (depth, name) in key.iter().enumerate() {
        let Shape::Mapping { start, is_flow, entries } = &node.shape else { return None };
        match entries.iter().find(|entry| entry.name == *name) {
            Some(entry) => node = &entry.node,
            None if *is_flow => {
                let more = if entries.is_empty() { "" } else { ", " };
                let nested = nested(&key[depth + 1..], value);
                return Some(spliced(
                    text,
                    start + 1,
                    start + 1,
                    &format!("{}: {nested}{more}", quoted(name)),
                ));
            }
            None if depth == 0 => return Some(appended(text, key, value)),
            None => {
                let (line, indent) = line_of(text, entries.first()?.start)?;
                return Some(spliced(text, line, line, &block(&key[depth..], value, indent)));
            }
        }
    }
    match &node.shape {
        Shape::Scalar(start, end) if start < end && !text[*start..*end].contains('\n') => {
            Some(spliced(text, *start, *end, &value.to_string()))
        }
        _ => None,
    }
}

/// Remove a key that occupies a line of its own.
fn remove(text: &str, key: &[String]) -> Option<String> {
    let YamlRead::Settings(root) = read(text)? else { return None };
    let mut node = &root;
    let mut found = None;
    for name in key {
        let Shape::Mapping { is_flow: false, entries, .. } = &node.shape else { return None };
        let entry = entries.iter().find(|entry| entry.name == *name)?;
        (node, found) = (&entry.node, Some(entry.start));
    }
    let (line, _) = line_of(text, found?)?;
    let end = text[line..].find('\n').map_or(text.len(), |length| line + length + 1);
    match node.shape {
        Shape::Scalar(_, last) if last <= end => Some(spliced(text, line, end, "")),
        _ => None,
    }
}

fn spliced(text: &str, start: usize, end: usize, new: &str) -> String {
    format!("{}{new}{}", &text[..start], &text[end..])
}

fn appended(text: &str, key: &[String], value: &Value) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}{}", block(key, value, 0))
}

/// Start and indentation of the line at a position, if only spaces precede it.
fn line_of(text: &str, place: usize) -> Option<(usize, usize)> {
    let line = text[..place].rfind('\n').map_or(0, |end| end + 1);
    text[line..place].bytes().all(|byte| byte == b' ').then_some((line, place - line))
}

/// A key and its value as block lines.
fn block(key: &[String], value: &Value, indent: usize) -> String {
    let line = |(depth, name): (usize, &String)| {
        let blanks = " ".repeat(indent + 2 * depth);
        let said = if depth + 1 == key.len() { format!(" {value}") } else { String::new() };
        format!("{blanks}{}:{said}\n", named(name))
    };
    key.iter().enumerate().map(line).collect()
}

fn nested(key: &[String], value: &Value) -> Value {
    key.iter().rev().fold(value.clone(), |value, name| Value::Object(Map::from_iter([(name.clone(), value)])))
}

/// A name as written in YAML: quoted, unless it is a plain word.
fn named(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
    let is_word = name.len() > 3 && name.chars().all(is_plain) && !["true", "false", "null"].contains(&name);
    if is_word { name.to_owned() } else { quoted(name) }
}

fn quoted(name: &str) -> String {
    Value::from(name).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::merge::changes;
    use super::*;

    /// The text after it was edited to have the content `after`.
    fn edited(text: &str, after: &Value) -> Option<String> {
        edit(text, &changes(&parse(text)?, after))
    }

    #[test]
    fn what_stands_around_a_value_stays() {
        let text = "# mine\ndisplay:\n  skin: ares # why\n  compact: false\nlist:\n- a\n- b: 1\n";
        let mut after = parse(text).unwrap();
        assert_eq!(after, json!({"display": {"skin": "ares", "compact": false}, "list": ["a", {"b": 1}]}));
        after["display"]["skin"] = "mono".into();
        after["display"]["new"] = true.into();
        after["model"] = json!({"default": "a: b"});
        let new = edited(text, &after).unwrap();
        assert_eq!(
            new,
            "# mine\ndisplay:\n  \"new\": true\n  skin: \"mono\" # why\n  compact: false\nlist:\n- a\n- b: 1\n\
             model:\n  default: \"a: b\"\n"
        );
        assert_eq!(parse(&new).unwrap(), after);
    }

    #[test]
    fn settings_that_say_nothing_yet() {
        let after = json!({"display": {"skin": "mono"}});
        for (text, new) in [
            ("", "display:\n  skin: \"mono\"\n"),
            ("# nothing", "# nothing\ndisplay:\n  skin: \"mono\"\n"),
            ("{}\n", "{\"display\": {\"skin\":\"mono\"}}\n"),
        ] {
            assert_eq!(edited(text, &after).as_deref(), Some(new), "{text}");
        }
        assert_eq!(edited("{\"a\": 1}\n", &json!({"a": 1, "b": 2})).unwrap(), "{\"b\": 2, \"a\": 1}\n");
    }

    #[test]
    fn a_key_is_taken_out_with_its_line() {
        let text = "a: 1\nlong: \"x\" # gone\nb:\n  c: 2\n";
        assert_eq!(edited(text, &json!({"a": 1, "b": {"c": 2}})).unwrap(), "a: 1\nb:\n  c: 2\n");
        assert_eq!(edited(text, &json!({"a": 1, "long": "x", "b": {}})), None);
    }

    #[test]
    fn what_is_not_known_for_sure_is_not_changed() {
        for text in [
            "a: &x 1\n",
            "a: *x\n",
            "a: !!python/name:os.system x\n",
            "a: 1\na: 2\n",
            "- a\n",
            "a: [",
            "? [b]\n: 1\n",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("a: 1\n---\nb: 2\n"), None);
        for text in ["skin: |\n  two\n  lines\n", "skin:\n", "skin: [a]\n"] {
            assert_eq!(edited(text, &json!({"skin": "x"})), None, "{text}");
        }
    }

    #[test]
    fn texts_stay_texts() {
        for said in ["yes", "1", "null", "a: b", "# x", "ä\n\"", "*x", "!!x"] {
            let after = json!({"display": {"skin": said}});
            let new = edited("display:\n  skin: old\n", &after).unwrap();
            assert_eq!(parse(&new).unwrap(), after, "{new}");
        }
    }
}
