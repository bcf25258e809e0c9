//! Sets of names of secrets, with `*` for anything.

/// Set of names, with exceptions. The built-in names are used in place, without work at the start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    known: &'static [&'static str],
    not: &'static [&'static str],
    more: Vec<String>,
    except: Vec<String>,
}

impl Names {
    /// Built-in set; all names must be in [`normal`] form.
    pub(super) const fn new(known: &'static [&'static str], not: &'static [&'static str]) -> Names {
        Names { known, not, more: Vec::new(), except: Vec::new() }
    }

    pub(super) fn add<'a>(&mut self, patterns: impl IntoIterator<Item = &'a str>) {
        self.more.extend(patterns.into_iter().map(normal));
    }

    pub(super) fn remove<'a>(&mut self, patterns: impl IntoIterator<Item = &'a str>) {
        self.except.extend(patterns.into_iter().map(normal));
    }

    /// Whether the set has `name`, which must be in [`normal`] form.
    pub(super) fn has(&self, name: &str) -> bool {
        any(self.known, &self.more, name) && !any(self.not, &self.except, name)
    }

    #[cfg(test)]
    pub(super) fn known(&self) -> impl Iterator<Item = &'static str> {
        self.known.iter().chain(self.not).copied()
    }
}

fn any(known: &[&str], more: &[String], name: &str) -> bool {
    known.iter().any(|pattern| fits(pattern, name)) || more.iter().any(|pattern| fits(pattern, name))
}

/// Canonical spelling of a name: the same for `--api_key`, `API_KEY` and `Api-Key`.
pub(super) fn normal(name: &str) -> String {
    super::steps::count(name.len());
    let name = name.trim().trim_start_matches('-');
    name.chars().map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Whether a name matches a pattern. Each piece between stars is matched at its first position after the one before.
fn fits(pattern: &str, name: &str) -> bool {
    // Fast path: nearly all comparisons end here, and every name of a long text is compared with each pattern.
    let last = pattern.as_bytes().last();
    if last != Some(&b'*') && last != name.as_bytes().last() {
        return false;
    }
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').map_or(("", rest), |(middle, last)| (middle, last));
    for piece in middle.split('*') {
        match name.find(piece) {
            Some(at) => name = &name[at + piece.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_take_anything() {
        for (pattern, name) in [
            ("token", "token"),
            ("*token", "token"),
            ("*token", "access-token"),
            ("*secret*", "client-secret-id"),
            ("a*b*c", "a-b-b-c"),
            ("*", ""),
            ("*-key*", "x-key"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("token", "tokens"),
            ("*-key", "key"),
            ("a*a", "a"),
            ("*secret*", "secre"),
            ("a*b*c", "a-c-b"),
            ("", "a"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn exceptions_win() {
        let mut names = Names::new(&["*-token"], &[]);
        assert!(names.has(&normal("--my_token")) && names.has(&normal("MY-Token")));
        names.remove(["my-token"]);
        assert!(!names.has(&normal("MY_TOKEN")) && names.has(&normal("your_token")));
    }
}
