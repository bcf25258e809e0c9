//! Names that tell of secrets, as a person writes them in a table: with `*` for anything.

/// A set of names, and the exceptions from it. What every run has is taken as it stands: nothing is made of it at the
/// start of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    known: &'static [&'static str],
    not: &'static [&'static str],
    more: Vec<String>,
    except: Vec<String>,
}

impl Names {
    /// All of them as [`normal`] gives them.
    pub(super) const fn new(known: &'static [&'static str], not: &'static [&'static str]) -> Names {
        Names { known, not, more: Vec::new(), except: Vec::new() }
    }

    pub(super) fn add<'a>(&mut self, patterns: impl IntoIterator<Item = &'a str>) {
        self.more.extend(patterns.into_iter().map(normal));
    }

    pub(super) fn remove<'a>(&mut self, patterns: impl IntoIterator<Item = &'a str>) {
        self.except.extend(patterns.into_iter().map(normal));
    }

    /// `name` as [`normal`] gives it.
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

/// One spelling for `--api_key`, `API_KEY` and `Api-Key`.
pub(super) fn normal(name: &str) -> String {
    super::steps::count(name.len());
    let name = name.trim().trim_start_matches('-');
    name.chars().map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Each piece between stars is found at its first place after the one before; that is enough, as stars take anything.
fn fits(pattern: &str, name: &str) -> bool {
    // Nearly all of them end here, and every name of a long text is compared with each.
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
