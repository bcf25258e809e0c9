//! Small edits of a JSON file that preserve every other byte: order, comments, spaces, line ends.
//!
//! `jsonc-parser` reads the text into a tree of ranges, and an edit replaces a range. The parser's own editing tree
//! (`cst`) does not keep every byte: with an item it removes the comments beside it, and where it adds one it breaks a
//! container of one line into several and drops blank lines. Comments and trailing commas are accepted, since some
//! agents allow them; what else the parser is lenient about, such as missing commas, `serde_json` refuses.

use std::ops::Range;
use std::path::Path;

use jsonc_parser::ast::{ObjectProp, Value as JsonNode};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseOptions, Scanner, ScannerOptions, parse_to_ast};

use super::InstallError;

/// Error in a file and its position: lines and columns from 1, columns in characters.
#[derive(Debug)]
pub(super) struct HookFileProblem {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) what: String,
}

impl HookFileProblem {
    pub(super) fn new(text: &str, at: usize, what: impl Into<String>) -> HookFileProblem {
        let (line, column) = position(text, at);
        HookFileProblem { line, column, what: what.into() }
    }

    pub(super) fn at(self, path: &Path) -> InstallError {
        let HookFileProblem { line, column, what } = self;
        InstallError::Malformed { path: path.to_owned(), line, column, what }
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

/// Member with this name, if the node is an object that has one.
pub(super) fn get<'n, 'a>(node: &'n JsonNode<'a>, key: &str) -> Option<&'n JsonNode<'a>> {
    node.as_object()?.get(key).map(|member| &member.value)
}

pub(super) fn elements<'n, 'a>(node: &'n JsonNode<'a>) -> &'n [JsonNode<'a>] {
    node.as_array().map_or(&[], |array| &array.elements)
}

/// Spans of the items of a container, with their keys.
fn items(node: &JsonNode<'_>) -> Vec<Range<usize>> {
    match node {
        JsonNode::Object(object) => {
            object.properties.iter().map(|member| member.start()..member.end()).collect()
        }
        _ => elements(node).iter().map(|node| node.start()..node.end()).collect(),
    }
}

/// Check that a text is JSON as the standard has it.
pub(super) fn check_strict(text: &str) -> Result<(), HookFileProblem> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map(|_| ()).map_err(|error| {
        // serde_json counts bytes, and puts the position into its message.
        let before: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let said = error.to_string();
        let what = said.split(" at line ").next().unwrap_or_default();
        let what = format!("it is not valid JSON: {what}");
        HookFileProblem::new(text, before + error.column().saturating_sub(1), what)
    })
}

/// Check that a text without a byte order mark is JSON with comments, and without trailing commas.
pub(super) fn check_commented(text: &str) -> Result<(), HookFileProblem> {
    parse(text)?;
    match plain(text).1 {
        Some(comma) => {
            let what = "trailing comma, which the agent does not accept";
            Err(HookFileProblem::new(text, comma, what))
        }
        None => Ok(()),
    }
}

/// Text with spaces in place of comments and trailing commas, and the offset of the first such comma.
fn plain(text: &str) -> (String, Option<usize>) {
    let mut plain = text.as_bytes().to_vec();
    let (mut comma, mut first) = (None, None);
    let mut scanner = Scanner::new(text, &ScannerOptions::default());
    // What cannot be scanned is no JSON either.
    while let Ok(Some(token)) = scanner.scan() {
        match token {
            Token::CommentLine(_) | Token::CommentBlock(_) => {
                let comment = &mut plain[scanner.token_start()..scanner.token_end()];
                comment.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            }
            Token::Comma => comma = Some(scanner.token_start()),
            Token::CloseBrace | Token::CloseBracket => {
                if let Some(at) = comma.take() {
                    plain[at] = b' ';
                    first = first.or(Some(at));
                }
            }
            _ => comma = None,
        }
    }
    (String::from_utf8_lossy(&plain).into_owned(), first)
}

/// Parse a text without a byte order mark.
pub(super) fn parse(text: &str) -> Result<JsonNode<'_>, HookFileProblem> {
    let options = ParseOptions {
        allow_loose_object_property_names: false,
        allow_single_quoted_strings: false,
        ..ParseOptions::default()
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
        .map_err(|error| HookFileProblem::new(text, error.range().start, error.kind().to_string()))?;
    check_strict(&plain(text).0)?;
    let root = parsed.value.ok_or_else(|| HookFileProblem::new(text, 0, "a value is missing"))?;
    match repeated(&root) {
        Some(member) => Err(HookFileProblem::new(text, member.start(), "duplicate key")),
        None => Ok(root),
    }
}

/// First member whose key its object has already.
fn repeated<'n, 'a>(node: &'n JsonNode<'a>) -> Option<&'n ObjectProp<'a>> {
    let JsonNode::Object(object) = node else { return elements(node).iter().find_map(repeated) };
    object.properties.iter().enumerate().find_map(|(index, member)| {
        let is_again = object.properties[..index].iter().any(|one| one.name.as_str() == member.name.as_str());
        if is_again { Some(member) } else { repeated(&member.value) }
    })
}

/// Line ends and indentation of the file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    newline: &'static str,
    unit: String,
}

impl Layout {
    pub(super) fn of(text: &str, root: &JsonNode<'_>) -> Layout {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let unit = items(root).first().and_then(|item| indent_before(text, item.start));
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
    container: &JsonNode<'_>,
    key: Option<&str>,
    value: &serde_json::Value,
    layout: &Layout,
) -> String {
    let name = key.map(|key| format!("{}: ", serde_json::Value::from(key))).unwrap_or_default();
    let items = items(container);
    let Some(last) = items.last() else {
        let outer = line_indent(text, container.start()).to_owned();
        let indent = format!("{outer}{}", layout.unit);
        let newline = layout.newline;
        let item = format!("{newline}{indent}{name}{}{newline}{outer}", pretty(value, &indent, layout));
        // After any comment in there.
        return replaced(text, container.end() - 1..container.end() - 1, &item);
    };
    let has_comma = trailing_comma(text, last.end, container.end() - 1).is_some();
    let after = trailing_comma(text, last.end, container.end() - 1).map_or(last.end, |comma| comma + 1);
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
pub(super) fn replace(text: &str, node: &JsonNode<'_>, value: &serde_json::Value, layout: &Layout) -> String {
    let indent = line_indent(text, node.start()).to_owned();
    let value = if text[node.start()..node.end()].contains('\n') {
        pretty(value, &indent, layout)
    } else {
        value.to_string()
    };
    replaced(text, node.start()..node.end(), &value)
}

/// Remove the `index`th item, with its comma.
pub(super) fn remove(text: &str, container: &JsonNode<'_>, index: usize) -> String {
    let items = items(container);
    let inner = container.start() + 1..container.end() - 1;
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
    let mut scanner = Scanner::new(&text[from..to], &ScannerOptions::default());
    loop {
        match scanner.scan().ok()?? {
            Token::CommentLine(_) | Token::CommentBlock(_) => {}
            token => return (token == Token::Comma).then(|| from + scanner.token_start()),
        }
    }
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
        "{\n\n  \"a\": 1\n\n}",
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
            assert!(get(&again, "hooks").is_some(), "{added}");
            let count = items(&again).len();
            assert_eq!(count, items(&root).len() + 1);
            assert_eq!(remove(&added, &again, count - 1), text, "{added}");
        }
    }

    #[test]
    fn every_item_can_go_and_the_rest_stays_json() {
        for text in TEXTS {
            let root = parse(text).unwrap();
            for index in 0..items(&root).len() {
                let left = remove(text, &root, index);
                let again = parse(&left).unwrap_or_else(|wrong| panic!("{left}: {wrong:?}"));
                assert_eq!(items(&again).len(), items(&root).len() - 1, "{left}");
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
            ("{\n \"a\": \"x\n\"}", 2, 8),
            ("[1, 2", 1, 1),
            ("{\"é\": 1, \"b\" 2}", 1, 14),
            ("{\"a\": 1, \"a\": 2}", 1, 10),
            ("{ /* no end", 1, 3),
            ("[0x10]", 1, 3),
            ("[1,\u{a0}2]", 1, 4),
        ] {
            let wrong = parse(text).unwrap_err();
            assert_eq!((wrong.line, wrong.column), (line, column), "{text:?}: {wrong:?}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err(), "no end of the stack");
    }
}
