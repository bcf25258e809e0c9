//! Git settings that run a command.

use serde::Deserialize;

/// Keys that run a command or include other settings, in lower case. `*` stands for any name between two dots.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunningKeys {
    run: Vec<String>,
    /// Keys whose value runs as a command when it begins with `!`.
    run_with_bang: Vec<String>,
}

impl RunningKeys {
    /// Whether a config file has one of these keys.
    pub(super) fn are_in(&self, config: &[u8]) -> bool {
        let text = String::from_utf8_lossy(config);
        let mut section = String::new();
        logical_lines(&text).any(|line| {
            let mut line = line.trim_start();
            // A section header, possibly with a key after it.
            if let Some(rest) = line.strip_prefix('[') {
                let Some(end) = end_of_section(rest) else { return false };
                section = section_name(&rest[..end]);
                line = rest[end + 1..].trim_start();
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            let key = format!("{section}.{}", key.trim().to_lowercase());
            let value = value.trim().trim_start_matches('"');
            let is_one_of = |keys: &[String]| keys.iter().any(|pattern| key_matches(pattern, &key));
            is_one_of(&self.run) || (value.starts_with('!') && is_one_of(&self.run_with_bang))
        })
    }
}

/// Whether an attributes file sends contents through a filter, a merge driver or a converter.
pub(super) fn names_a_driver(attributes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(attributes);
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with('#'));
    let mut words = lines.flat_map(|line| line.split_whitespace().skip(1));
    words.any(|word| ["filter=", "diff=", "merge="].iter().any(|driver| word.starts_with(driver)))
}

/// Lines without comments, continuation lines joined.
fn logical_lines(text: &str) -> impl Iterator<Item = String> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let lines: Vec<String> = joined.lines().map(str::to_owned).collect();
    lines.into_iter().filter(|line| !line.trim_start().starts_with(['#', ';']))
}

/// Position of the bracket that closes a section header; brackets in the quoted name are skipped.
fn end_of_section(text: &str) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    text.char_indices().find_map(|(at, sign)| {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
        None
    })
}

/// Name of a section: `remote "origin"` is `remote.origin`.
fn section_name(text: &str) -> String {
    match text.split_once('"') {
        Some((section, name)) => {
            format!("{}.{}", section.trim().to_lowercase(), name.trim_end().trim_end_matches('"'))
        }
        None => text.trim().to_lowercase(),
    }
}

/// Whether the key matches. The name in the middle may contain dots, so prefix and suffix are compared.
fn key_matches(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        Some((before, after)) => {
            key.len() > before.len() + after.len() && key.starts_with(before) && key.ends_with(after)
        }
        None => key == pattern,
    }
}
