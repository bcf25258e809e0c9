//! Small edits of a JSON file that preserve every other byte: order, comments, spaces, line ends.
//!
//! The text is parsed into a tree of spans, and an edit replaces a span. Comments and trailing commas are accepted,
//! since some agents allow them ([`Commas`]); anything else that is not JSON is an error with its line and column.

use std::ops::Range;

/// Maximum nesting: the parser is recursive.
const DEPTH: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonNode {
    pub(super) span: Range<usize>,
    pub(super) kind: JsonKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JsonKind {
    Object(Vec<(String, Member)>),
    Array(Vec<JsonNode>),
    Text(String),
    /// A number, `true`, `false` or `null`.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Span from the key to the end of the value.
    pub(super) span: Range<usize>,
    pub(super) value: JsonNode,
}

/// Error and its position: lines and columns from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) what: &'static str,
}

impl JsonNode {
    /// Member with this name, if this is an object that has one.
    pub(super) fn get(&self, key: &str) -> Option<&JsonNode> {
        let JsonKind::Object(members) = &self.kind else { return None };
        members.iter().find(|(name, _)| name == key).map(|(_, member)| &member.value)
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let JsonKind::Text(text) = &self.kind { Some(text) } else { None }
    }

    pub(super) fn elements(&self) -> &[JsonNode] {
        if let JsonKind::Array(elements) = &self.kind { elements } else { &[] }
    }

    /// Spans of its items, with their keys.
    fn items(&self) -> Vec<Range<usize>> {
        match &self.kind {
            JsonKind::Object(members) => members.iter().map(|(_, member)| member.span.clone()).collect(),
            JsonKind::Array(elements) => elements.iter().map(|node| node.span.clone()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Line and column of a byte offset, from 1.
pub(super) fn position(text: &str, at: usize) -> (usize, usize) {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

/// Positions where commas are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commas {
    Between,
    /// Also after the last item.
    AtEndToo,
}

pub(super) fn parse(text: &str) -> Result<JsonNode, Wrong> {
    parse_with(text, Commas::AtEndToo)
}

pub(super) fn parse_with(text: &str, commas: Commas) -> Result<JsonNode, Wrong> {
    let mut reader = Reader { text, at: 0, depth: 0, commas };
    let read = reader.document();
    read.map_err(|what| {
        let (line, column) = position(text, reader.at);
        Wrong { line, column, what }
    })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    commas: Commas,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn document(&mut self) -> Result<JsonNode, &'static str> {
        self.space()?;
        let node = self.value()?;
        self.space()?;
        if self.at == self.text.len() { Ok(node) } else { Err("something after the end") }
    }

    /// Skip blanks, comments and a byte order mark.
    fn space(&mut self) -> Result<(), &'static str> {
        loop {
            let rest = self.rest();
            if rest.starts_with([' ', '\t', '\n', '\r', '\u{feff}']) {
                self.at += rest.chars().next().map_or(0, char::len_utf8);
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.at += rest.find("*/").ok_or("a comment that does not end")? + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self) -> Result<JsonNode, &'static str> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Reader::object)?,
            Some(b'[') => self.nested(Reader::array)?,
            Some(b'"') => JsonKind::Text(self.string()?),
            Some(_) => self.word()?,
            None => return Err("a value is missing"),
        };
        Ok(JsonNode { span: start..self.at, kind })
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<JsonKind, &'static str>,
    ) -> Result<JsonKind, &'static str> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("too deeply nested");
        }
        self.at += 1;
        let kind = read(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn object(&mut self) -> Result<JsonKind, &'static str> {
        let mut members: Vec<(String, Member)> = Vec::new();
        while self.more(b'}', members.is_empty())? {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err("a key in double quotes is missing");
            }
            let key = self.string()?;
            if members.iter().any(|(name, _)| *name == key) {
                self.at = start;
                return Err("the same key again");
            }
            self.space()?;
            if self.peek() != Some(b':') {
                return Err("a colon is missing");
            }
            self.at += 1;
            self.space()?;
            let value = self.value()?;
            members.push((key, Member { span: start..self.at, value }));
        }
        Ok(JsonKind::Object(members))
    }

    fn array(&mut self) -> Result<JsonKind, &'static str> {
        let mut elements = Vec::new();
        while self.more(b']', elements.is_empty())? {
            elements.push(self.value()?);
        }
        Ok(JsonKind::Array(elements))
    }

    /// Whether another item follows; consumes the comma before it, or the end.
    fn more(&mut self, end: u8, first: bool) -> Result<bool, &'static str> {
        self.space()?;
        if !first {
            match self.peek() {
                Some(b',') => {
                    let comma = self.at;
                    self.at += 1;
                    self.space()?;
                    if self.commas == Commas::Between && self.peek() == Some(end) {
                        self.at = comma;
                        return Err("a comma after the last item, which the agent does not read");
                    }
                }
                Some(byte) if byte == end => {}
                _ => return Err("a comma or the end is missing"),
            }
        }
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        if self.peek().is_none() { Err("it does not end") } else { Ok(true) }
    }

    fn string(&mut self) -> Result<String, &'static str> {
        let start = self.at;
        let mut bytes = self.rest().bytes().enumerate().skip(1);
        let length = loop {
            match bytes.next() {
                Some((_, b'\\')) => {
                    bytes.next();
                }
                Some((at, b'"')) => break at + 1,
                Some((at, b'\n')) => {
                    self.at += at;
                    return Err("a text that does not end in its line");
                }
                Some(_) => {}
                None => return Err("a text that does not end"),
            }
        };
        let text = serde_json::from_str(&self.text[start..start + length]);
        let text = text.map_err(|_| "a text with something in it that JSON does not allow")?;
        self.at = start + length;
        Ok(text)
    }

    fn word(&mut self) -> Result<JsonKind, &'static str> {
        let rest = self.rest();
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
        // Only numbers and the three literals are left.
        serde_json::from_str::<serde_json::Value>(&rest[..end]).map_err(|_| "no JSON value")?;
        self.at += end;
        Ok(JsonKind::Other)
    }
}

/// Line ends and indentation of the file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    newline: &'static str,
    unit: String,
}

impl Layout {
    pub(super) fn of(text: &str, root: &JsonNode) -> Layout {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let unit = root.items().first().and_then(|item| indent_before(text, item.start));
        Layout { newline, unit: unit.filter(|unit| !unit.is_empty()).unwrap_or_else(|| "  ".to_owned()) }
    }
}

/// Blanks before this offset, if nothing else precedes it in its line.
fn indent_before(text: &str, at: usize) -> Option<String> {
    let start = text[..at].rfind('\n')? + 1;
    let indent = &text[start..at];
    indent.chars().all(|c| c == ' ' || c == '\t').then(|| indent.to_owned())
}

/// Indentation of the line at this offset.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Pretty-printed value, all lines but the first indented by `indent`.
fn pretty(value: &serde_json::Value, indent: &str, layout: &Layout) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut lines = text.lines();
    let mut out = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let body = line.trim_start_matches(' ');
        let levels = (line.len() - body.len()) / 2;
        out.push_str(layout.newline);
        out.push_str(indent);
        out.push_str(&layout.unit.repeat(levels));
        out.push_str(body);
    }
    out
}

/// Append an item to an object (with a key) or an array.
pub(super) fn push(
    text: &str,
    container: &JsonNode,
    key: Option<&str>,
    value: &serde_json::Value,
    layout: &Layout,
) -> String {
    let name = key.map(|key| format!("{}: ", serde_json::Value::from(key))).unwrap_or_default();
    let items = container.items();
    let Some(last) = items.last() else {
        let outer = line_indent(text, container.span.start).to_owned();
        let indent = format!("{outer}{}", layout.unit);
        let newline = layout.newline;
        let item = format!("{newline}{indent}{name}{}{newline}{outer}", pretty(value, &indent, layout));
        // After any comment in there.
        return replaced(text, container.span.end - 1..container.span.end - 1, &item);
    };
    let has_comma = trailing_comma(text, last.end, container.span.end - 1).is_some();
    let after = trailing_comma(text, last.end, container.span.end - 1).map_or(last.end, |comma| comma + 1);
    let comma = if has_comma { "" } else { "," };
    let end = if has_comma { "," } else { "" };
    let item = match indent_before(text, items[0].start) {
        Some(indent) => {
            format!("{comma}{}{indent}{name}{}{end}", layout.newline, pretty(value, &indent, layout))
        }
        None => format!("{comma} {name}{value}{end}"),
    };
    replaced(text, after..after, &item)
}

/// Replace a node by another value.
pub(super) fn replace(text: &str, node: &JsonNode, value: &serde_json::Value, layout: &Layout) -> String {
    let indent = line_indent(text, node.span.start).to_owned();
    let value = if text[node.span.clone()].contains('\n') {
        pretty(value, &indent, layout)
    } else {
        value.to_string()
    };
    replaced(text, node.span.clone(), &value)
}

/// Remove the `index`th item, with its comma.
pub(super) fn remove(text: &str, container: &JsonNode, index: usize) -> String {
    let items = container.items();
    let inner = container.span.start + 1..container.span.end - 1;
    let item = items[index].clone();
    let comma = trailing_comma(text, item.end, inner.end);
    let is_blank = |range: Range<usize>| text[range].chars().all(|c| c.is_whitespace() || c == ',');
    if items.len() == 1 {
        let end = comma.map_or(item.end, |comma| comma + 1);
        if is_blank(inner.start..item.start) && is_blank(end..inner.end) {
            return replaced(text, inner, "");
        }
        return cut(text, item, comma);
    }
    if index + 1 == items.len() {
        let previous = items[index - 1].end;
        // If the item has its own comma, the one before stays.
        let end = comma.map_or(item.end, |comma| comma + 1);
        let from = if comma.is_some() {
            trailing_comma(text, previous, inner.end).map_or(previous, |comma| comma + 1)
        } else {
            previous
        };
        if is_blank(from..item.start) {
            return replaced(text, from..end, "");
        }
        // A comment is between them: remove only the comma before it, and the item.
        let without = cut(text, item.clone(), comma);
        return match trailing_comma(&without, previous, item.start).filter(|_| comma.is_none()) {
            Some(comma) => replaced(&without, comma..comma + 1, ""),
            None => without,
        };
    }
    let next = items[index + 1].start;
    if is_blank(item.end..next) {
        return replaced(text, item.start..next, "");
    }
    cut(text, item, comma)
}

/// Remove an item and its comma, but nothing between them.
fn cut(text: &str, item: Range<usize>, comma: Option<usize>) -> String {
    let text = match comma {
        Some(comma) => replaced(text, comma..comma + 1, ""),
        None => text.to_owned(),
    };
    replaced(&text, item, "")
}

/// Comma that follows an item, possibly after comments.
fn trailing_comma(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut reader = Reader { text: &text[..to], at: from, depth: 0, commas: Commas::AtEndToo };
    reader.space().ok()?;
    (reader.peek() == Some(b',')).then_some(reader.at)
}

fn replaced(text: &str, range: Range<usize>, by: &str) -> String {
    format!("{}{by}{}", &text[..range.start], &text[range.end..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXTS: [&str; 9] = [
        "{\n  \"a\": 1,\n  \"b\": [1, 2]\n}\n",
        "{\n\t\"a\": {\n\t\t\"x\": []\n\t}\n}",
        "{\r\n    \"a\": \"\\u00e9\\\"\"\r\n}\r\n",
        "{\"a\":1,\"b\":2}",
        "// first\n{\n  \"a\": 1, // one\n  /* two */ \"b\": 2 // end\n}",
        "{\n  \"a\": 1,\n}\n",
        "{ \"a\": 1, }",
        "\u{feff}{\n \"a\": null\n}",
        "{\n  \"a\": 1 // no comma\n  , \"b\": 2\n}",
    ];

    #[test]
    fn what_was_added_can_be_taken_out_again() {
        let value = json!({"k": [{"x": "y"}, 2], "e": {}});
        for text in TEXTS {
            let root = parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
            let layout = Layout::of(text, &root);
            let added = push(text, &root, Some("hooks"), &value, &layout);
            let again = parse(&added).unwrap_or_else(|wrong| panic!("{added}: {wrong:?}"));
            assert!(again.get("hooks").is_some(), "{added}");
            let count = again.items().len();
            assert_eq!(count, root.items().len() + 1);
            assert_eq!(remove(&added, &again, count - 1), text, "{added}");
        }
    }

    #[test]
    fn every_item_can_go_and_the_rest_stays_json() {
        for text in TEXTS {
            let root = parse(text).unwrap();
            for index in 0..root.items().len() {
                let left = remove(text, &root, index);
                let again = parse(&left).unwrap_or_else(|wrong| panic!("{left}: {wrong:?}"));
                assert_eq!(again.items().len(), root.items().len() - 1, "{left}");
                assert_eq!(left.matches("//").count(), text.matches("//").count(), "comments stay: {left}");
            }
        }
    }

    #[test]
    fn laid_out_like_the_file() {
        let text = "{\n    \"a\": 1\n}\n";
        let root = parse(text).unwrap();
        let added = push(text, &root, Some("b"), &json!({"c": [1]}), &Layout::of(text, &root));
        assert_eq!(
            added,
            "{\n    \"a\": 1,\n    \"b\": {\n        \"c\": [\n            1\n        ]\n    }\n}\n"
        );
        let empty =
            push("{}", &parse("{}").unwrap(), Some("b"), &json!(1), &Layout::of("{}", &parse("{}").unwrap()));
        assert_eq!(empty, "{\n  \"b\": 1\n}");
    }

    #[test]
    fn wrong_files_say_where() {
        for (text, line, column) in [
            ("", 1, 1),
            ("{\n  \"a\": 1\n  \"b\": 2\n}", 3, 3),
            ("{\n  \"a\": tru\n}", 2, 8),
            ("{\"a\": 1} x", 1, 10),
            ("{\n  'a': 1}", 2, 3),
            ("{\n \"a\": \"x\n\"}", 2, 9),
            ("[1, 2", 1, 6),
            ("{\"é\": 1, \"b\" 2}", 1, 14),
            ("{\"a\": 1, \"a\": 2}", 1, 10),
            ("{ /* no end", 1, 3),
        ] {
            let wrong = parse(text).unwrap_err();
            assert_eq!((wrong.line, wrong.column), (line, column), "{text:?}: {wrong:?}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err(), "no end of the stack");
    }
}
