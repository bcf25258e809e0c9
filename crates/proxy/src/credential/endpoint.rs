//! Endpoint rules of a service: methods, and paths by globs. Pure.
//!
//! Servers disagree on what `..`, `//`, `\` and escaped slashes in a path mean. Where there are rules, a path that
//! could mean another one is not matched at all.

use nono_policy::glob::Pattern;
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the pattern {pattern:?} cannot be used: {why}")]
pub struct EndpointError {
    pub pattern: String,
    pub why: &'static str,
}

/// One rule: a method (`*`: any) and a glob for the path below the route's base. `*` and `?` stay within a segment,
/// `**` is any number of segments, `[a-z]` and `[!a]` are one character, `\` takes the meaning of what follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(String, String)", try_from = "(String, String)")]
pub struct Endpoint {
    method: String,
    path: String,
    pattern: Pattern,
}

impl Endpoint {
    pub fn new(method: &str, path: &str) -> Result<Endpoint, EndpointError> {
        let wrong = |why| EndpointError { pattern: path.to_owned(), why };
        if method.is_empty() || !method.bytes().all(|byte| byte == b'*' || byte.is_ascii_graphic()) {
            return Err(EndpointError { pattern: method.to_owned(), why: "it is not a method" });
        }
        if path.is_empty() {
            return Err(wrong("it is empty"));
        }
        let below = path.strip_prefix('/').unwrap_or(path);
        let mut segments: Vec<&[u8]> = below.split('/').map(str::as_bytes).collect();
        // `folder/**` does not match the folder itself.
        if segments.last() == Some(&b"**".as_slice()) {
            segments.insert(segments.len() - 1, b"*");
        }
        let pattern = Pattern::parse(segments.into_iter()).map_err(wrong)?;
        Ok(Endpoint { method: method.to_owned(), path: path.to_owned(), pattern })
    }

    /// Whether the rule permits a request. `path` is below the route's base, without a query.
    pub fn permits(&self, method: &str, path: &str) -> bool {
        let Some(asked) = plain(path) else { return false };
        let asked: Vec<&[u8]> = asked.split('/').map(str::as_bytes).collect();
        (self.method == "*" || self.method.eq_ignore_ascii_case(method)) && self.pattern.matches(&asked)
    }
}

/// Unescaped path without its first slash; `None` if some server could read it as another path.
fn plain(path: &str) -> Option<String> {
    let text = String::from_utf8(percent_decoded(path.strip_prefix('/')?, b"/\\.%;?#")?).ok()?;
    let last = text.split('/').count() - 1;
    let usual = |(index, segment): (usize, &str)| {
        let name = segment.split(';').next().unwrap_or_default();
        name != "." && name != ".." && (!segment.is_empty() || index == last)
    };
    let fine =
        !text.contains('\\') && !text.chars().any(char::is_control) && text.split('/').enumerate().all(usual);
    fine.then_some(text)
}

/// Percent-decoded bytes; `None` if an escape is malformed, or stands for one of `refused`.
pub(crate) fn percent_decoded(text: &str, refused: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let byte = digit(digits[0])? << 4 | digit(digits[1])?;
        if refused.contains(&byte) {
            return None;
        }
        bytes.push(byte);
        rest = after;
    }
    Some(bytes)
}

impl From<Endpoint> for (String, String) {
    fn from(endpoint: Endpoint) -> (String, String) {
        (endpoint.method, endpoint.path)
    }
}

impl TryFrom<(String, String)> for Endpoint {
    type Error = EndpointError;

    fn try_from((method, path): (String, String)) -> Result<Endpoint, EndpointError> {
        Endpoint::new(&method, &path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(pattern: &str, path: &str) -> bool {
        Endpoint::new("GET", pattern).unwrap().permits("GET", path)
    }

    #[test]
    fn globs() {
        for (pattern, yes, no) in [
            ("/v1/chat", vec!["/v1/chat", "/v1/%63hat"], vec!["/v1/chat/", "/v1/chats", "/v1", "/V1/chat"]),
            ("/v1/*", vec!["/v1/a", "/v1/"], vec!["/v1", "/v1/a/b"]),
            ("/v1/**", vec!["/v1/a", "/v1/a/b/c", "/v1/"], vec!["/v1", "/v2/a", "/xv1/a"]),
            ("/**", vec!["/", "/a", "/a/b"], vec![]),
            ("/**/x", vec!["/x", "/a/x", "/a/b/x"], vec!["/a/xx", "/"]),
            ("/a/**/b/*.json", vec!["/a/b/x.json", "/a/c/d/b/x.json"], vec!["/a/b/c/x.json", "/a/b/x.jsn"]),
            ("/r[a-c]?", vec!["/rax", "/rc1"], vec!["/rdx", "/ra"]),
            ("/r[!a]", vec!["/rb"], vec!["/ra", "/r"]),
            ("/\\*", vec!["/*"], vec!["/a"]),
            ("v1/x", vec!["/v1/x"], vec!["v1/x"]),
            ("/é*", vec!["/%C3%A9t"], vec!["/e"]),
        ] {
            for path in yes {
                assert!(permits(pattern, path), "{pattern} {path}");
            }
            for path in no {
                assert!(!permits(pattern, path), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn what_could_mean_another_path_is_never_permitted() {
        for path in [
            "/v1/../admin",
            "/v1/./x",
            "/v1//x",
            "//x",
            "/v1/%2e%2e/admin",
            "/v1/%2E./x",
            "/v1/x%2fy",
            "/v1/x%5Cy",
            "/v1/x\\y",
            "/v1/%252e",
            "/v1/..;/admin",
            "/v1/%2",
            "/v1/%zz",
            "/v1/%00",
            "/v1/%ff",
            "*",
            "",
            "/v1/x%3fy",
        ] {
            assert!(!permits("/**", path), "{path}");
        }
    }

    #[test]
    fn methods() {
        let permits = |rule: &str, method: &str| Endpoint::new(rule, "/x").unwrap().permits(method, "/x");
        assert!(permits("get", "GET") && permits("*", "DELETE") && !permits("GET", "POST"));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for (method, path) in
            [("GET", "/["), ("GET", "/[z-a]"), ("GET", "/x\\"), ("GET", ""), ("", "/"), ("G T", "/")]
        {
            assert!(Endpoint::new(method, path).is_err(), "{method} {path}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = format!("/{}b", "*a".repeat(60));
        assert!(!permits(&pattern, &format!("/{}", "a".repeat(2000))));
    }
}
