//! Access decisions: the allowlist and the token.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nono_policy::addresses::{AddressClass, class_of, class_of_host};

use crate::address::{is_metadata_name, may_dial};
use crate::config::{Config, RequestTarget, Token};
use crate::head::Fields;
use crate::refusal::Refusal;

/// Checks the allowlist, then the token: a client without the token learns that a host is closed, not that it should
/// log in.
pub(crate) fn admit(config: &Config, target: &RequestTarget, fields: &Fields) -> Result<(), Refusal> {
    listed(config, target)?;
    if authenticated(config, fields) { Ok(()) } else { Err(Refusal::token()) }
}

/// Checks the allowlist alone.
pub(crate) fn listed(config: &Config, target: &RequestTarget) -> Result<(), Refusal> {
    let listed =
        config.reach.all || config.allowed.iter().any(|rule| rule.matches(&target.host, target.port));
    let never = !config.reach.metadata && class_of_host(&target.host).is_some_and(is_never);
    if listed && !never { Ok(()) } else { Err(Refusal::host(config, target)) }
}

/// Whether this address may be dialled for a target that was admitted before.
pub(crate) fn dialled(config: &Config, target: &RequestTarget, address: IpAddr) -> bool {
    match class_of(address) {
        Some(class) if !config.reach.metadata && is_never(class) => false,
        None | Some(AddressClass::Loopback | AddressClass::Private) if config.reach.all => {
            !is_metadata_name(&target.host)
        }
        _ => may_dial(&config.allowed, target, address),
    }
}

/// Whether the class is closed even to a rule that names the address.
fn is_never(class: AddressClass) -> bool {
    matches!(class, AddressClass::Metadata | AddressClass::LinkLocal)
}

/// Whether the client presents the proxy's token, if it requires one.
pub(crate) fn authenticated(config: &Config, fields: &Fields) -> bool {
    config.token.as_ref().is_none_or(|token| shows(token, fields))
}

/// Whether the token is the password of `Basic` (with any user name), or the whole of `Bearer`.
fn shows(token: &Token, fields: &Fields) -> bool {
    let Some((scheme, value)) = fields
        .only("proxy-authorization")
        .and_then(|value| str::from_utf8(value).ok())
        .and_then(|value| value.split_once(' '))
    else {
        return false;
    };
    let value = value.trim_start_matches(' ');
    if scheme.eq_ignore_ascii_case("bearer") {
        return same(token.reveal().as_bytes(), value.as_bytes());
    }
    let Some(pair) = STANDARD.decode(value).ok().filter(|_| scheme.eq_ignore_ascii_case("basic")) else {
        return false;
    };
    let password = pair.iter().position(|byte| *byte == b':').map(|at| &pair[at + 1..]);
    password.is_some_and(|password| same(token.reveal().as_bytes(), password))
}

/// Constant-time comparison.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b)));
    one.len() == other.len() && differ == 0
}
