//! Addresses that the proxy may dial.
//!
//! Addresses of the public internet are open ([`class_of`]). Everything else is closed unless a rule names that very
//! address, or names `localhost`.

use std::net::IpAddr;

use nono_policy::addresses::{self, AddressClass, class_of, class_of_host};
use nono_policy::host_rule::{Host, HostRule, Hosts};

use crate::config::RequestTarget;

/// Whether this address may be dialled for this target. The target itself was judged before.
pub fn may_dial(rules: &[HostRule], target: &RequestTarget, address: IpAddr) -> bool {
    if names_address(rules, address, target.port) {
        return true;
    }
    if is_localhost(&target.host) {
        return address.is_loopback();
    }
    !is_metadata_name(&target.host) && class_of(address).is_none()
}

fn names_address(rules: &[HostRule], address: IpAddr, port: u16) -> bool {
    let host = Host::Address(address);
    rules.iter().any(|rule| matches!(rule.hosts, Hosts::One(Host::Address(_))) && rule.matches(&host, port))
}

/// Whether the host is `localhost` or below it: always this machine (RFC 6761), whatever a resolver says.
pub fn is_localhost(host: &Host) -> bool {
    matches!(host, Host::Name(name) if addresses::is_localhost(name))
}

/// Whether the host is the name of a cloud metadata service.
pub fn is_metadata_name(host: &Host) -> bool {
    matches!(host, Host::Name(_)) && class_of_host(host) == Some(AddressClass::Metadata)
}

#[cfg(test)]
mod tests;
