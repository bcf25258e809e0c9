//! Recognition of temporary names. Programs save a file by writing another one beside it and renaming that: the user
//! should be asked about the file, not about a name that differs each time.

/// Words that mark a temporary name, whether or not the file exists.
const CERTAIN: &[&str] = &["tmp", "temp", "atomic"];
/// Words that mark one beside a file of that name, where the new one is made exclusively.
const BESIDE: &[&str] = &["lock", "swp", "swo", "swx", "new", "part", "partial"];
/// Words that mark copies meant to stay.
const STAYS: &[&str] = &["bak", "backup", "orig", "old", "save", "saved", "rej", "copy"];

/// File that a name may be temporary for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Original<'a> {
    pub(super) name: &'a [u8],
    /// Whether the name alone is enough; otherwise a file must exist.
    pub(super) certain: bool,
}

/// Files that `name` may be temporary for, the likeliest first. `exclusive`: it is created with `O_EXCL`.
pub(super) fn originals(name: &[u8], exclusive: bool) -> Vec<Original<'_>> {
    let visible = name.strip_prefix(b".").or_else(|| name.strip_prefix(b"#"));
    let mut found: Vec<Original<'_>> = [Some(name), visible]
        .into_iter()
        .flatten()
        .flat_map(|form| (1..form.len()).map(move |at| form.split_at(at)))
        .filter(|(_, rest)| is_separator(rest[0]))
        .filter_map(|(name, rest)| {
            let certain = is_temporary(rest, exclusive)?;
            (name != b"." && name != b"..").then_some(Original { name, certain })
        })
        .collect();
    found.sort_by_key(|original| std::cmp::Reverse(original.name.len()));
    found.dedup();
    found
}

fn is_separator(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && byte.is_ascii()
}

/// Whether the part after a file's name makes it a temporary one, and whether that is certain.
fn is_temporary(rest: &[u8], exclusive: bool) -> Option<bool> {
    let words: Vec<String> = rest
        .split(|byte| is_separator(*byte))
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.to_ascii_lowercase().as_str()));
    if has(STAYS) {
        return None;
    }
    if has(CERTAIN) {
        return Some(true);
    }
    (exclusive && (has(BESIDE) || words.iter().any(|word| is_random(word)))).then_some(false)
}

/// Whether a word looks like one of `mkstemp`. Digits alone may be a date.
fn is_random(word: &str) -> bool {
    let any = |kind: fn(&char) -> bool| word.chars().any(|one| kind(&one));
    let (digits, lower, upper) =
        (any(char::is_ascii_digit), any(char::is_ascii_lowercase), any(char::is_ascii_uppercase));
    word.len() >= 6 && [digits, lower, upper].into_iter().filter(|has| *has).count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, exclusive: bool) -> Vec<(String, bool)> {
        let shown = |one: &Original<'_>| (String::from_utf8_lossy(one.name).into_owned(), one.certain);
        originals(name.as_bytes(), exclusive).iter().map(shown).collect()
    }

    #[test]
    fn usual_temporary_names_lead_to_the_file() {
        for (name, file) in [
            ("f.tmp", "f"),
            ("f.tmp.123", "f"),
            ("notes.txt.tmp.4711.a1b2c3", "notes.txt"),
            (".claude.json.tmp.77.x1y2z3", ".claude.json"),
            (".f.txt.swp", "f.txt"),
            ("config.lock", "config"),
            ("f.txt.aB3xY9", "f.txt"),
            (".f.txt.aB3xY9", "f.txt"),
            ("f.json~new", "f.json"),
        ] {
            assert!(of(name, true).iter().any(|(one, _)| one == file), "{name}: {:?}", of(name, true));
        }
        assert_eq!(of("f.tmp.a1b2c3", true), [("f.tmp".to_owned(), false), ("f".to_owned(), true)]);
    }

    #[test]
    fn what_may_be_meant_to_stay_is_not_temporary() {
        for name in
            ["notes.txt", "f.bak", "f.tmp.bak", "f.20261117", "f.1", "copy", "tmp", ".tmp", "sedAb3xYz", ""]
        {
            assert_eq!(of(name, true), [], "{name}");
        }
        for name in ["Gemfile.lock", "f.new", "f.aB3xY9"] {
            assert_eq!(of(name, false), [], "{name}: not made exclusively");
        }
        assert!(
            of("Cargo.lock", true).iter().all(|(_, certain)| !certain),
            "only beside a file of that name"
        );
    }
}
