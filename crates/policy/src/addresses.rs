//! Classes of addresses that stay closed even when an open name resolves to them: loopback, private networks, and cloud
//! metadata services. Only a rule that names the address itself opens one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::host_rule::{Host, HostName, HostRule, Hosts};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressClass {
    Loopback,
    Private,
    LinkLocal,
    /// Metadata service, from which cloud machines get their credentials.
    Metadata,
    /// Not a unicast address of the public internet.
    Special,
}

impl AddressClass {
    pub const ALL: [AddressClass; 5] = [
        AddressClass::Loopback,
        AddressClass::Private,
        AddressClass::LinkLocal,
        AddressClass::Metadata,
        AddressClass::Special,
    ];

    /// Adjective for messages, as in "a … address".
    pub fn word(self) -> &'static str {
        match self {
            AddressClass::Loopback => "loopback",
            AddressClass::Private => "private",
            AddressClass::LinkLocal => "link-local",
            AddressClass::Metadata => "metadata",
            AddressClass::Special => "special",
        }
    }
}

const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(169, 254, 169, 254), Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
const METADATA_NAMES: [&str; 4] =
    ["metadata.google.internal", "metadata.goog", "metadata.azure.internal", "instance-data.ec2.internal"];

/// Class of a closed address; `None` for one that any open name may resolve to.
pub fn class_of(address: IpAddr) -> Option<AddressClass> {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

/// Class of a host that is known without resolving its name.
pub fn class_of_host(host: &Host) -> Option<AddressClass> {
    match host {
        Host::Address(address) => class_of(*address),
        Host::Name(name) if METADATA_NAMES.contains(&name.as_str()) => Some(AddressClass::Metadata),
        Host::Name(name) => is_localhost(name).then_some(AddressClass::Loopback),
    }
}

/// Whether a rule that matches a host opens it although it is of a closed class.
pub fn opens_class(rule: &HostRule, host: &Host, class: AddressClass) -> bool {
    match (&rule.hosts, host) {
        (Hosts::One(Host::Address(_)), Host::Address(_)) => true,
        // A name alone can only stand for loopback (`localhost`).
        (_, Host::Name(_)) => class == AddressClass::Loopback,
        _ => false,
    }
}

pub fn is_localhost(name: &HostName) -> bool {
    name.as_str() == "localhost" || name.as_str().ends_with(".localhost")
}

fn class_v4(address: Ipv4Addr) -> Option<AddressClass> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        _ if METADATA_V4.contains(&address) => AddressClass::Metadata,
        (127, ..) => AddressClass::Loopback,
        (10, ..) | (192, 168, _) | (172, 16..=31, _) | (100, 64..=127, _) => AddressClass::Private,
        (169, 254, _) => AddressClass::LinkLocal,
        // This network, protocol assignments, documentation, 6to4 relays, benchmarks, multicast, reserved, broadcast.
        (0 | 224..=255, ..)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113) => AddressClass::Special,
        _ => return None,
    })
}

fn class_v6(address: Ipv6Addr) -> Option<AddressClass> {
    let [a, b, ..] = address.segments();
    Some(match (a, b) {
        _ if address == METADATA_V6 => AddressClass::Metadata,
        _ if address.is_loopback() => AddressClass::Loopback,
        _ if translated(address).is_some() => return translated(address).and_then(class_v4),
        _ if inside(address).is_some() => inside(address).and_then(class_v4).unwrap_or(AddressClass::Special),
        (0xfc00..=0xfdff | 0xfec0..=0xfeff, _) => AddressClass::Private,
        (0xfe80..=0xfebf, _) => AddressClass::LinkLocal,
        // Documentation, and below 2001: tunnels whose far end is unknown, and other protocols' own.
        (0x2001, 0..=0x01ff | 0x0db8) | (0x3fff, 0..=0x0fff) => AddressClass::Special,
        (0x2000..=0x3fff, _) => return None,
        // Nothing else belongs to the public internet.
        _ => AddressClass::Special,
    })
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

/// IPv4 address inside a NAT64 address. In an IPv6-only network names resolve to these, so the inner address decides.
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        _ => None,
    }
}

/// IPv4 address inside a mapped or 6to4 address. These are closed whatever is inside, since no name needs them.
fn inside(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> Option<AddressClass> {
        class_of(text.parse().unwrap())
    }

    #[test]
    fn addresses_have_their_classes_in_every_form() {
        use AddressClass::{LinkLocal, Loopback, Metadata, Private, Special};
        for (class_wanted, texts) in [
            (Loopback, &["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"][..]),
            (Private, &["10.0.0.1", "172.31.0.1", "192.168.1.1", "100.64.0.1", "fd00::1", "fec0::1"]),
            (Private, &["::ffff:10.0.0.1", "2002:a00:1::"]),
            (LinkLocal, &["169.254.0.1", "fe80::1"]),
            (Metadata, &["169.254.169.254", "100.100.100.200", "fd00:ec2::254", "::ffff:169.254.169.254"]),
            (Special, &["0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "240.0.0.1"]),
            (
                Special,
                &["::", "ff02::1", "2001:db8::1", "2001::1", "::127.0.0.1", "64:ff9b:1::1", "::ffff:8.8.8.8"],
            ),
        ] {
            for text in texts {
                assert_eq!(class(text), Some(class_wanted), "{text}");
            }
        }
        for open in ["93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:2800:220:1::1", "64:ff9b::808:808"] {
            assert_eq!(class(open), None, "{open}");
        }
    }
}
