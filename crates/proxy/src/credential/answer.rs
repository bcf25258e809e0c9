//! Checks of a service's response before it is forwarded, and its head without the secret. Pure.

use std::sync::Arc;

use thiserror::Error;

use super::HeaderLine;
use super::scan::Forms;
use crate::config::Route;

/// Reason why a response is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    #[error(
        "the server compressed its response against the request: it cannot be checked for the credential"
    )]
    Encoded,
    #[error(
        "the server sent a partial response against the request: it cannot be checked for the credential"
    )]
    Part,
}

/// Checks that the response can be scanned. One without a body (`empty`) always can.
pub fn readable(status: u16, empty: bool, headers: &[HeaderLine<'_>]) -> Result<(), Unreadable> {
    if empty {
        return Ok(());
    }
    if status == 206 {
        return Err(Unreadable::Part);
    }
    let plain = |value: &[u8]| {
        let value = value.trim_ascii();
        value.is_empty() || value.eq_ignore_ascii_case(b"identity")
    };
    let encoding = |(name, _): &&HeaderLine<'_>| name.eq_ignore_ascii_case("content-encoding");
    if headers.iter().filter(encoding).all(|(_, value)| plain(value)) {
        Ok(())
    } else {
        Err(Unreadable::Encoded)
    }
}

/// Headers of a response that are not forwarded: the first would bypass the proxy, the others describe the unmodified
/// body.
pub const DROPPED: &[&str] =
    &["alt-svc", "content-md5", "digest", "content-digest", "repr-digest", "trailer"];

/// Value of the header without the secret; `None` if the header is dropped.
pub fn clean(forms: &Arc<Forms>, (name, value): HeaderLine<'_>) -> Option<Vec<u8>> {
    let dropped = DROPPED.iter().any(|other| other.eq_ignore_ascii_case(name));
    let named = forms.scrub(name.as_bytes()) != name.as_bytes();
    (!dropped && !named).then(|| forms.scrub(value))
}

/// Redirect target for a client that used the route's prefix. Only redirects to the same server are changed.
pub fn relocated(route: &Route, location: &str) -> Option<String> {
    let scheme = if route.https { "https://" } else { "http://" };
    let path = if location.starts_with('/') && !location.starts_with("//") {
        location
    } else {
        let rest = strip_ignoring_case(location, scheme)?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let usual = route.port == if route.https { 443 } else { 80 };
        let with_port = format!("{}:{}", route.host, route.port);
        let same = authority.eq_ignore_ascii_case(&with_port)
            || (usual && authority.eq_ignore_ascii_case(&route.host));
        same.then_some(path)?
    };
    let rest = path.strip_prefix(route.base.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with(['/', '?', '#'])).then(|| format!("/{}{rest}", route.prefix))
}

fn strip_ignoring_case<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let head = text.get(..start.len())?;
    head.eq_ignore_ascii_case(start).then(|| &text[start.len()..])
}
