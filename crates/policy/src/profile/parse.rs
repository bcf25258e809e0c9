//! Parser of profile files, with the position of every error.
//!
//! The text is walked beside the JSON schema of the very types it is then read into, so the schema that is printed,
//! the types and the messages cannot drift apart. The walk is stricter than the types, which would also take a list
//! for an object. Built-in profiles skip it: tests have walked them.

use std::path::Path;

use jsonc_parser::ast::{Object, Value as Node};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use once_cell::race::OnceBox;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Profile;
use crate::error::{Position, ProfileError, nearest};

/// Maximum nesting. The parser recurses, and a hostile file must not overflow its stack.
const MAX_DEPTH: usize = 64;

/// The JSON schema of a profile file.
pub fn schema() -> Value {
    schema_once().clone()
}

fn schema_once() -> &'static Value {
    static SCHEMA: OnceBox<Value> = OnceBox::new();
    SCHEMA.get_or_init(|| Box::new(schemars::schema_for!(Profile).to_value()))
}

pub(super) fn parse(text: &str, file: &Path) -> Result<Profile, ProfileError> {
    let source = ProfileSource::new(text, file, "the profile", schema_once());
    let root = source.parse()?;
    source.check_all(&root)?;
    source.value(root)
}

/// Parses a text that is known to fit the schema.
pub(super) fn parse_built_in(text: &str, name: &str) -> Result<Profile, ProfileError> {
    let file = format!("<built-in {name}>");
    // No check against the schema: generating it takes longer than reading the profile.
    let source = ProfileSource::new(text, Path::new(&file), "the profile", &Value::Null);
    source.value(source.parse()?)
}

/// Reads the text of another kind of file with the same checks: JSON with comments, checked against the schema of `T`.
/// Also returns the positions of the elements of the list under the key `list`. `what` names the file in messages.
pub fn read_listed<T: JsonSchema + DeserializeOwned>(
    text: &str,
    file: &Path,
    what: &str,
    list: &str,
) -> Result<(T, Vec<Position>), ProfileError> {
    let schema = schemars::schema_for!(T).to_value();
    let source = ProfileSource::new(text, file, what, &schema);
    let root = source.parse()?;
    source.check_all(&root)?;
    let elements = root.as_object().and_then(|object| object.get_array(list));
    let places = elements.into_iter().flat_map(|array| &array.elements);
    let places = places.map(|element| source.position(element.start())).collect();
    Ok((source.value(root)?, places))
}

struct ProfileSource<'a> {
    text: &'a str,
    file: &'a Path,
    what: &'a str,
    schema: &'a Value,
}

impl<'a> ProfileSource<'a> {
    fn new(text: &'a str, file: &'a Path, what: &'a str, schema: &'a Value) -> ProfileSource<'a> {
        ProfileSource { text: text.strip_prefix('\u{feff}').unwrap_or(text), file, what, schema }
    }

    fn parse(&self) -> Result<Node<'a>, ProfileError> {
        self.check_depth()?;
        let options = ParseOptions {
            allow_loose_object_property_names: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
            ..ParseOptions::default()
        };
        let ast = parse_to_ast(self.text, &CollectOptions::default(), &options).map_err(|error| {
            let at = self.position(error.range().start);
            ProfileError::Syntax { at, message: error.kind().to_string() }
        })?;
        ast.value.ok_or_else(|| {
            let message = "the file is empty".to_owned();
            ProfileError::Syntax { at: self.position(0), message }
        })
    }

    fn check_all(&self, root: &Node<'_>) -> Result<(), ProfileError> {
        self.check_doubles(root, "")?;
        self.check(root, self.schema, "")
    }

    fn value<T: DeserializeOwned>(&self, root: Node<'_>) -> Result<T, ProfileError> {
        let start = root.start();
        // The schema covers everything the types do; should it ever not, the message still has serde's reason.
        serde_json::from_value(Value::from(root))
            .map_err(|error| ProfileError::Syntax { at: self.position(start), message: error.to_string() })
    }

    fn position(&self, offset: usize) -> Position {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Position {
            file: self.file.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// Refuses deep nesting. Brackets in strings and comments count too: an over-estimate is good enough to refuse.
    fn check_depth(&self) -> Result<(), ProfileError> {
        let mut depth = 0usize;
        for (offset, byte) in self.text.bytes().enumerate() {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > MAX_DEPTH {
                let message = format!("nested more than {MAX_DEPTH} deep");
                return Err(ProfileError::Syntax { at: self.position(offset), message });
            }
        }
        Ok(())
    }

    /// Refuses duplicate keys: in JSON the last one wins, which would silently drop half of a policy.
    fn check_doubles(&self, node: &Node<'_>, path: &str) -> Result<(), ProfileError> {
        match node {
            Node::Object(object) => {
                for (index, prop) in object.properties.iter().enumerate() {
                    let name = prop.name.as_str();
                    if object.properties[..index].iter().any(|earlier| earlier.name.as_str() == name) {
                        let at = self.position(prop.range.start);
                        return Err(ProfileError::DuplicateKey { at, key: join(path, name) });
                    }
                    self.check_doubles(&prop.value, &join(path, name))?;
                }
                Ok(())
            }
            Node::Array(array) => {
                array.elements.iter().try_for_each(|element| self.check_doubles(element, path))
            }
            _ => Ok(()),
        }
    }

    /// Checks `node` against `schema` and reports the first mismatch.
    fn check(&self, node: &Node<'_>, schema: &Value, path: &str) -> Result<(), ProfileError> {
        let schema = deref(self.schema, schema);
        if !accepts(self.schema, schema, node) {
            return Err(self.wrong_type(node, schema, path));
        }
        let mut choices = alternatives(schema).into_iter().flatten();
        // An error in a value of several shapes is about the one whose type fits.
        if let Some(choice) = choices.find(|choice| accepts(self.schema, choice, node)) {
            return self.check(node, choice, path);
        }
        self.check_word(node, schema, path)?;
        self.check_range(node, schema, path)?;
        match node {
            Node::Object(object) => self.check_object(object, schema, path),
            Node::Array(array) => {
                match schema.get("items") {
                    Some(items) => array.elements.iter().enumerate().try_for_each(|(index, element)| {
                        self.check(element, items, &format!("{path}[{index}]"))
                    }),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn wrong_type(&self, node: &Node<'_>, schema: &Value, path: &str) -> ProfileError {
        ProfileError::WrongType {
            at: self.position(node.start()),
            key: if path.is_empty() { self.what } else { path }.to_owned(),
            expected: type_names(self.schema, schema),
            found: kind_of(node).to_owned(),
        }
    }

    fn check_word(&self, node: &Node<'_>, schema: &Value, path: &str) -> Result<(), ProfileError> {
        let (Some(Value::Array(words)), Node::StringLit(text)) = (schema.get("enum"), node) else {
            return Ok(());
        };
        let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
        if words.contains(&text.value.as_ref()) {
            return Ok(());
        }
        let at = self.position(node.start());
        let value = text.value.to_string();
        Err(ProfileError::BadValue { at, key: path.to_owned(), value, allowed: words.join(", ") })
    }

    fn check_range(&self, node: &Node<'_>, schema: &Value, path: &str) -> Result<(), ProfileError> {
        let Node::NumberLit(number) = node else { return Ok(()) };
        let (low, high) = (schema.get("minimum"), schema.get("maximum"));
        let (Some(low), Some(high)) = (low.and_then(Value::as_u64), high.and_then(Value::as_u64)) else {
            return Ok(());
        };
        if number.value.parse::<u64>().is_ok_and(|value| (low..=high).contains(&value)) {
            return Ok(());
        }
        let (at, allowed) = (self.position(node.start()), format!("the whole numbers {low} to {high}"));
        Err(ProfileError::BadValue { at, key: path.to_owned(), value: number.value.to_owned(), allowed })
    }

    fn check_object(&self, object: &Object<'_>, schema: &Value, path: &str) -> Result<(), ProfileError> {
        let known = schema.get("properties").and_then(Value::as_object);
        for prop in &object.properties {
            let name = prop.name.as_str();
            let below = join(path, name);
            if let Some(schema) = known.and_then(|known| known.get(name)) {
                self.check(&prop.value, schema, &below)?;
            } else {
                match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => {
                        let candidates =
                            known.into_iter().flat_map(serde_json::Map::keys).map(String::as_str);
                        let nearest = nearest(name, candidates).map(|name| join(path, &name));
                        let at = self.position(prop.range.start);
                        return Err(ProfileError::UnknownKey { at, key: below, nearest });
                    }
                    Some(other @ Value::Object(_)) => self.check(&prop.value, other, &below)?,
                    _ => {}
                }
            }
        }
        self.check_required(object, schema, path)
    }

    fn check_required(&self, object: &Object<'_>, schema: &Value, path: &str) -> Result<(), ProfileError> {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if object.get(name).is_none() {
                let message = format!("{path}: the key {name:?} is missing");
                return Err(ProfileError::Syntax { at: self.position(object.range.start), message });
            }
        }
        Ok(())
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Follows a `$ref` into the definitions of the whole schema.
fn deref<'a>(whole: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| whole.pointer(pointer)).unwrap_or(schema)
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
}

fn accepts(whole: &Value, schema: &Value, node: &Node<'_>) -> bool {
    let schema = deref(whole, schema);
    if let Some(choices) = alternatives(schema) {
        return choices.iter().any(|choice| accepts(whole, choice, node));
    }
    match schema.get("type") {
        Some(Value::String(name)) => fits(name, node),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(|name| fits(name, node)),
        _ => true,
    }
}

fn fits(name: &str, node: &Node<'_>) -> bool {
    let found = kind_of(node);
    found == name || (name == "integer" && found == "number")
}

/// Names of the types that fit, for messages. A missing key counts as null, so null is not listed among others.
fn type_names(whole: &Value, schema: &Value) -> String {
    let schema = deref(whole, schema);
    let mut names: Vec<String> = match (schema.get("type"), alternatives(schema)) {
        (Some(Value::String(name)), _) => return name.clone(),
        (Some(Value::Array(names)), _) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        (_, Some(choices)) => choices.iter().map(|choice| type_names(whole, choice)).collect(),
        _ => return "something else".to_owned(),
    };
    names.retain(|name| name != "null");
    names.join(" or ")
}

fn kind_of(node: &Node<'_>) -> &'static str {
    match node {
        Node::StringLit(_) => "string",
        Node::NumberLit(_) => "number",
        Node::BooleanLit(_) => "boolean",
        Node::Object(_) => "object",
        Node::Array(_) => "array",
        Node::NullKeyword(_) => "null",
    }
}
