//! Helpers for the HTML representation of several classes.

/// Escapes text for HTML.
pub(crate) fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Control and formatting characters are shown as escapes.
            other if other.is_control() || steers(other) => escaped.extend(other.escape_unicode()),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Whether a character without width changes how its neighbours look.
fn steers(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A table of HTML; the cells are escaped here.
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let row = |tag: &str, cells: Vec<String>| {
        let cells: Vec<_> = cells.iter().map(|cell| escape_html(cell)).collect();
        format!("<tr><{tag}>{}</{tag}></tr>", cells.join(&format!("</{tag}><{tag}>")))
    };
    let head = row("th", head.iter().map(|cell| (*cell).to_owned()).collect());
    let body = rows.into_iter().map(|cells| row("td", cells)).collect::<Vec<_>>().concat();
    format!("<table><thead>{head}</thead><tbody>{body}</tbody></table>")
}
