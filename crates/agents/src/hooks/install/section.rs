//! nono's own section in a Markdown file, between two HTML comments.

use super::super::agents::Agent;
use super::find;

fn marks(agent: Agent) -> (String, String) {
    let name = agent.name();
    (
        format!(
            "<!-- nono:begin {name}: written by `nono hooks install {name}`, and removed by `nono hooks remove {name}` -->"
        ),
        format!("<!-- nono:end {name} -->"),
    )
}

/// Range of the section, from its first byte to the end of its last line. `Err`: line of a mark without its
/// counterpart.
fn locate(bytes: &[u8], agent: Agent) -> Result<Option<std::ops::Range<usize>>, usize> {
    let name = agent.name();
    let (begin, end) = (format!("<!-- nono:begin {name}:"), marks(agent).1);
    let start = find(bytes, begin.as_bytes());
    let stop = find(bytes, end.as_bytes());
    let line = |at: usize| bytes[..at].split(|byte| *byte == b'\n').count();
    match (start, stop) {
        (None, None) => Ok(None),
        (Some(start), Some(stop)) if start < stop => {
            let mut after = stop + end.len();
            if bytes[after..].starts_with(b"\r") {
                after += 1;
            }
            if bytes[after..].starts_with(b"\n") {
                after += 1;
            }
            Ok(Some(start..after))
        }
        (Some(at), _) | (None, Some(at)) => Err(line(at)),
    }
}

pub(super) fn install(bytes: &[u8], agent: Agent, body: &str) -> Result<Vec<u8>, usize> {
    let (begin, end) = marks(agent);
    let newline = if find(bytes, b"\r\n").is_some() { "\r\n" } else { "\n" };
    let section = format!("{begin}\n{}\n{end}\n", body.trim_end()).replace('\n', newline);
    if let Some(range) = locate(bytes, agent)? {
        return Ok([&bytes[..range.start], section.as_bytes(), &bytes[range.end..]].concat());
    }
    let gap = if bytes.is_empty() {
        String::new()
    } else if bytes.ends_with(b"\n") {
        newline.to_owned()
    } else {
        newline.repeat(2)
    };
    Ok([bytes, gap.as_bytes(), section.as_bytes()].concat())
}

pub(super) fn remove(bytes: &[u8], agent: Agent) -> Result<Vec<u8>, usize> {
    let Some(range) = locate(bytes, agent)? else { return Ok(bytes.to_vec()) };
    let mut before = &bytes[..range.start];
    // The empty line that separates the section.
    if before.ends_with(b"\r\n\r\n") {
        before = &before[..before.len() - 2];
    } else if before.ends_with(b"\n\n") {
        before = &before[..before.len() - 1];
    }
    Ok([before, &bytes[range.end..]].concat())
}

/// Whether the section is present.
pub(super) fn is_there(bytes: &[u8], agent: Agent) -> bool {
    matches!(locate(bytes, agent), Ok(Some(_)))
}
